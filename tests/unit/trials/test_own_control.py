"""A control that Overread does not know: two lines of config and one template file, and no code."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from typer.testing import CliRunner

from data.configs import config_of, small
from overread import plan
from overread.cli import app
from overread.config import Config, load
from overread.core.records import (
    Picture,
    Question,
    Study,
    read_trials,
    write_pictures,
    write_questions,
    write_studies,
    write_substitutes,
)
from overread.trials import template_files

TEMPLATE = """\
Befundbericht:
{% for name, text in sections.items() %}
{{ {"findings": "Befund", "impression": "Beurteilung"}[name] }}: {{ sentences(text)[:1] | join(" ") }}
{% endfor %}
"""
SETTINGS = {
    **small()["settings"],
    "german": {"extends": "report", "report": "german"},
    "german-swapped": {"extends": "german", "source": "substitute"},
}


def config_with(folder: Path, template: bool = True) -> Config:
    (folder / "my" / "prompts").mkdir(parents=True)
    if template:
        (folder / "my" / "prompts" / "report-german.j2").write_text(TEMPLATE)
    evaluations = [{"dataset": "xray", "models": ["reader"], "settings": ["german", "german-swapped"]}]
    return config_of(folder, prompts="my/prompts", settings=SETTINGS, evaluations=evaluations, comparisons={})


def test_a_template_file_makes_a_control_runnable(tmp_path: Path) -> None:
    config = config_with(tmp_path)
    assert [cell.setting for cell in plan.runnable(config)] == ["german", "german-swapped"]
    assert plan.check(config)[0] == []


def test_without_the_file_the_plan_says_which_there_are_and_how_to_add_it(tmp_path: Path) -> None:
    config = config_with(tmp_path, template=False)
    assert plan.runnable(config) == []
    (row, _) = plan.not_run(config)
    assert row["when"] == "missing"
    for part in ("no report 'german'", "boilerplate, full, neutral, none", "report-german.j2", "my/prompts"):
        assert part in row["why"]
    errors, _ = plan.check(config)
    assert [line.partition(":")[0] for line in errors] == ["settings.german.report", "settings.german-swapped.report"]


def test_a_slip_of_the_pen_is_an_error_with_what_was_meant(tmp_path: Path) -> None:
    evaluations = [{"dataset": "xray", "models": ["reader"], "settings": ["slip"]}]
    config = config_of(
        tmp_path, settings={**SETTINGS, "slip": {"extends": "report", "report": "neutrl"}}, evaluations=evaluations
    )
    assert any("Did you mean neutral?" in line for line in plan.check(config)[0])


def test_folders_and_files_for_reports_must_be_there(tmp_path: Path) -> None:
    config = config_of(tmp_path, prompts="nowhere", reports={"findings": "none.yaml", "tokenizer": "models"})
    assert [line.partition(":")[0] for line in plan.check(config)[0]] == [
        "prompts", "reports.findings", "reports.tokenizer",
    ]  # fmt: skip


def test_the_control_is_built_from_config_and_template_alone(tmp_path: Path) -> None:
    config = config_with(tmp_path)
    report = {"findings": "The heart is large. The lungs are clear.", "impression": "Cardiomegaly."}
    write_studies(
        [Study(study="a", patient="p", dataset="xray", modality="xray", images={}, report=report, labels={},
               restricted=False)], tmp_path / "studies.parquet",
    )  # fmt: skip
    write_pictures(
        [
            Picture(
                study="a", view="frontal", order=0, name="F", path="a.png", pixels="a", width=1, height=1, series="f"
            )
        ],
        tmp_path / "images.parquet",
    )
    write_questions(
        [Question(study="a", patient="p", stem="Large?", options=("yes", "no"), answer="yes", topic="Cardiomegaly",
                  origin="findings")], tmp_path / "questions.jsonl",
    )  # fmt: skip
    write_substitutes([], tmp_path / "substitutes.csv")
    assert config.prompts is not None
    done = CliRunner().invoke(
        app,
        ["trials", "build", str(tmp_path / "questions.jsonl"), "--studies", str(tmp_path / "studies.parquet"),
         "--pictures", str(tmp_path / "images.parquet"), "--substitutes", str(tmp_path / "substitutes.csv"),
         "--setting", config.settings["german"].model_dump_json(), "--name", "german", "--prompts", config.prompts,
         "--section", config.datasets["xray"].questions.model_dump_json(), "--out", str(tmp_path / "run-1.parquet")],
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    (trial,) = read_trials(tmp_path / "run-1.parquet")
    assert trial.blocks[1].text == "Befundbericht:\nBefund: The heart is large.\nBeurteilung: Cardiomegaly."


def test_a_setting_depends_on_its_own_template_and_no_other_edit(tmp_path: Path) -> None:
    """What the rule watches: another control's template re-runs nothing."""
    own, mine = tmp_path / "own", tmp_path / "mine"
    for folder, names in (
        (own, ("question", "report", "report-neutral", "generate")), (mine, ("report", "report-german")),
    ):  # fmt: skip
        folder.mkdir()
        for name in names:
            (folder / f"{name}.j2").touch()
    assert template_files("german", mine, own) == sorted(
        [mine / "report-german.j2", mine / "report.j2", own / "question.j2"]
    )
    assert template_files("full", mine, own) == [mine / "report.j2", own / "question.j2"]


def test_snakemake_plans_the_control(tmp_path: Path) -> None:
    config_with(tmp_path)
    assert load(tmp_path / "study.yaml")
    root = Path(__file__).parents[3]
    done = subprocess.run(
        [sys.executable, "-m", "snakemake", "--snakefile", str(root / "Snakefile"), "--directory", str(tmp_path),
         "--configfile", str(tmp_path / "study.yaml"), "--cores", "1", "-n", "--printshellcmds", "trials"],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "--out results/small/xray/trials/german/run-1.parquet" in done.stdout
    assert f"--prompts {tmp_path / 'my' / 'prompts'}" in done.stdout
