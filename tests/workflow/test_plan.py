"""What Snakemake plans, on a fresh clone and after a change."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

from workflow.runner import ROOT, SMALL, Workflow

pytestmark = pytest.mark.workflow


def snakemake(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "snakemake", *arguments], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


ASK = "ask_phantom-xray_tiny-reader"
"""The demo asks all of a model in one job, so that its weights are loaded once."""


def test_the_literal_command_plans_from_the_repositorys_root():
    """`snakemake --profile slurm -n` finds the profile through the committed link, without a cluster."""
    assert (ROOT / "slurm").is_symlink()
    output = snakemake("--profile", "slurm", "-n", "--forceall")
    assert ASK in output


def test_a_plain_dry_run_plans_the_demo():
    output = snakemake("-n", "--forceall")
    for rule in ("make_phantom", "read_studies", "build_questions", "build_trials", ASK, "write_report"):
        assert rule in output


def test_the_rulegraph_draws_the_five_stages():
    graph = snakemake("--rulegraph", "--forceall")
    assert graph[graph.index("digraph") :].startswith("digraph")
    for rule in ("read_studies", "build_questions", "index_images", "build_trials", ASK, "make_tables"):
        assert f'label = "{rule}"' in graph


@pytest.mark.parametrize(("targets", "asks"), [("studies questions images trials", False), ("responses", True)])
def test_each_stage_is_a_target(targets, asks):
    """The last, `tables`, is one in test_frozen.py."""
    output = snakemake("-n", "--forceall", *targets.split())
    assert (ASK in output) == asks
    for target in targets.split():
        assert re.search(rf"^(localrule|rule) {target}:|^{target} +1$", output, flags=re.MULTILINE), target


def test_a_finished_study_plans_nothing(study: Workflow):
    assert not study.planned()


def test_a_new_model_plans_its_own_jobs_and_the_tables(study: Workflow):
    config = study.config
    study.add_model("newcomer", {"label": "N", "backend": "calibrated", "reliance": {"image": 1.0}})
    assert not study.planned()  # a file alone asks nothing
    config["evaluations"][0]["models"].append("newcomer")
    study.config = config
    planned, cells = study.planned_with_cells()
    assert planned == {
        "ask_model": 6,
        "record_asked": 1,
        "record_study": 1,
        "make_tables": 1,
        "draw_figures": 1,
        "write_report": 1,
        "all": 1,
    }
    assert cells == {("newcomer", setting) for setting in ("own", "swapped", "reshuffled")}


def test_a_new_label_asks_nothing_again(study: Workflow):
    file = study.model_file("calibrated-70")
    file.write_text(file.read_text().replace("label: Calibrated", "label: Well calibrated"))
    assert study.planned() == {"record_study": 1, "draw_figures": 1, "write_report": 1, "all": 1}


def test_a_changed_setting_runs_only_that_setting_again(study: Workflow):
    config = study.config
    config["settings"]["reshuffled"]["options"] = "rotated-1"
    study.config = config
    planned, cells = study.planned_with_cells()
    assert planned["build_trials"] == planned["ask_model"] == 2
    assert cells == {("calibrated-70", "reshuffled")}


def test_another_order_of_the_config_plans_nothing(study: Workflow):
    config = study.config
    config["evaluations"] = [
        {**one, "settings": one["settings"][::-1], "models": one["models"][::-1]} for one in config["evaluations"][::-1]
    ]
    for part in ("datasets", "views", "comparisons"):
        config[part] = dict(reversed(config[part].items()))
    study.config = config
    assert not study.planned()


def test_a_changed_question_asks_only_its_own_requests(study: Workflow):
    """The questions come from the user's file; one stem is changed in it."""
    config = study.config
    own = study.folder / "questions.jsonl"
    lines = (study.results / "mri/questions.jsonl").read_text().splitlines()
    own.write_text("\n".join(lines) + "\n")
    config["datasets"]["mri"]["questions"] = {"origin": "file", "path": str(own)}
    study.config = config
    study.run()
    assert study.asked("calibrated-70", "own") == (0, len(lines))

    question = json.loads(lines[0])
    question.update(stem=question["stem"] + " (Look twice.)", question="")
    own.write_text("\n".join([json.dumps(question), *lines[1:]]) + "\n")
    study.run()
    for setting in ("own", "swapped", "reshuffled"):
        assert study.asked("calibrated-70", setting) == (1, len(lines) - 1)


def test_a_study_of_which_nothing_can_run_is_an_error_and_no_empty_report():
    """Both papers whole: on a machine without the data nothing is planned, and it is said where to look."""
    done = subprocess.run(
        [sys.executable, "-m", "snakemake", "-n", "--configfile", "config/config.yaml"],
        cwd=ROOT, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode != 0
    assert "nothing asked for can run now" in done.stderr


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda c: c["settings"]["own"].update(imags="x"), "no key 'imags'"),
        (lambda c: c["evaluations"][0].update(models=["calibratd-70"]), "Did you mean calibrated-70?"),
        (lambda c: c["settings"]["own"].update(images="flair"), "no view 'flair'"),
        (lambda c: c["settings"]["swapped"].update(extends="swapped"), "comes back to itself"),
        (lambda c: c["datasets"].update(mri={**c["datasets"]["mri"], "source": "ucsf-pdgm"}), "mri"),
    ],
)
def test_a_config_error_is_told_before_any_job(tmp_path, change, said):
    config = json.loads(json.dumps(SMALL))
    change(config)
    workflow = Workflow(tmp_path / "study", config, ["calibrated-70"])
    output = workflow.run(fails=True)
    assert said in output
    assert "Traceback" not in output
    assert not (workflow.folder / "results").exists()
