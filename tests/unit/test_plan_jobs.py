"""What the rules ask of the plan, without Snakemake."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from data.configs import MODELS, config_of
from overread import plan
from overread.config.kinds import VIEWS
from overread.core.provenance import code_of
from overread.core.records import Study, write_studies
from overread.plan.asking import Asking
from overread.plan.jobs import Jobs, as_json, files_at, images_of
from overread.plan.telling import Rated, labels, what_was_run, whole_study

ROOT = Path(__file__).parents[2]


def jobs_of(folder: Path, **sections: Any) -> Jobs:
    config = config_of(folder, **sections)
    return Jobs(config, ROOT, plan.runnable(config))


def test_a_section_is_the_same_text_whatever_its_order():
    assert as_json({"b": 1, "a": {"d": 2, "c": 3}}) == as_json({"a": {"c": 3, "d": 2}, "b": 1})


def test_the_runs_of_a_data_set_stand_once_for_all_models(tmp_path: Path):
    jobs = jobs_of(tmp_path)
    assert jobs.datasets == ["mri", "xray"]
    assert jobs.runs_of("mri") == [(setting, run) for setting in ("black", "plain") for run in (1, 2, 3)]
    assert jobs.runs_of("xray") == [("report", 1), ("report-swapped", 1)]


def test_only_views_that_a_setting_shows_are_rendered_and_depended_on(tmp_path: Path):
    jobs = jobs_of(tmp_path)
    assert list(jobs.views("mri")) == ["flair"]
    assert list(jobs.views("xray")) == ["frontal"]
    assert jobs.view_code("xray") == code_of("images render", VIEWS.places["frontal"])
    assert jobs.view_code("xray") != jobs.view_code("mri")


def test_what_is_asked_does_not_change_what_is_read(tmp_path: Path):
    one = jobs_of(tmp_path / "one")
    datasets = {
        "mri": {"source": "phantom", "modality": "mri", "studies": 24, "questions": {"origin": "grammar"}},
        "xray": {
            "source": "phantom", "modality": "xray", "patients": 40, "substitutes": {"count": 2},
            "questions": {"origin": "findings", "findings": ["Edema"]},
        },
    }  # fmt: skip
    two = jobs_of(tmp_path / "two", datasets=datasets)
    assert as_json(one.source_section("xray")) == as_json(two.source_section("xray"))
    assert one.substitutes_section("xray") != two.substitutes_section("xray")


def test_where_studies_and_questions_come_from(tmp_path: Path):
    jobs = jobs_of(tmp_path)
    assert jobs.source("mri") == "results/small/mri/source"
    assert jobs.question_files("mri") == "results/small/mri/source"
    assert jobs.question_files("xray") == []
    (tmp_path / "own.jsonl").touch()
    questions = {"origin": "file", "path": "own.jsonl"}
    own = {"mri": {"source": "phantom", "modality": "mri", "studies": 2, "questions": questions}}
    evaluations = [{"dataset": "mri", "models": ["truth"], "settings": ["plain"]}]
    jobs = jobs_of(tmp_path, datasets=own, evaluations=evaluations, comparisons={})
    assert jobs.question_files("mri") == str(tmp_path / "own.jsonl")


def test_a_report_is_told_only_what_it_is_made_with(tmp_path: Path):
    jobs = jobs_of(tmp_path)
    assert jobs.finding_words("report") == []
    assert jobs.report_options("report", []) == ""
    assert {Path(file).name for file in jobs.templates("report")} >= {"question.j2", "report.j2"}
    edited = jobs_of(
        tmp_path,
        settings={"plain": {"images": "frontal", "report": "neutral", "readout": "yes-no"}},
        evaluations=[{"dataset": "xray", "models": ["reader"], "settings": ["plain"]}], comparisons={},
    )  # fmt: skip
    words = edited.finding_words("plain")
    assert isinstance(words, str)
    assert Path(words).is_file()
    assert shlex.split(edited.report_options("plain", words)) == ["--findings", words]
    assert "report-neutral.j2" in {Path(file).name for file in edited.templates("plain")}


def test_a_label_or_more_memory_asks_no_model_again(tmp_path: Path):
    one = Asking(jobs_of(tmp_path), with_conda=False)
    models = {"truth": {**MODELS["truth"], "label": "Well calibrated", "resources": {"mem_mb": 9000}}}
    two = Asking(jobs_of(tmp_path, models=models), with_conda=False)
    assert as_json(one.section("truth")) == as_json(two.section("truth"))
    assert labels(one.jobs) != labels(two.jobs)


def test_each_file_of_responses_is_made_by_one_job_however_runs_are_put_together(tmp_path: Path):
    asking = Asking(jobs_of(tmp_path), with_conda=False)
    wanted = sorted(asking.all_responses())
    assert len(wanted) == len(set(wanted)) == 2 * 2 * 3 + 2
    for group in ("setting", "model"):
        together = asking.together(group)  # type: ignore[arg-type]
        made = [file for one in together for file in asking.responses(one.dataset, one.model, one.runs)]
        assert sorted(made) == wanted
        assert len({one.name for one in together}) == len(together)
        for one in together:
            trials = asking.jobs.trials(one.dataset, one.runs)
            assert [Path(file).name for file in trials] == [
                Path(file).name for file in asking.responses(one.dataset, one.model, one.runs)
            ]
    whole = next(one for one in asking.together("model") if one.model == "truth")
    assert whole.runs == {"black": 3, "plain": 3}
    assert asking.minutes("truth", whole.runs) == 6 * asking.models["truth"].resources.runtime


def test_new_weights_in_a_folder_are_seen(tmp_path: Path):
    asking = Asking(jobs_of(tmp_path), with_conda=False)
    assert asking.weights("reader") == []
    file = tmp_path / "models" / "weights" / "part" / "model.safetensors"
    file.parent.mkdir()
    file.touch()
    assert asking.weights("reader") == [str(file)]
    assert asking.weights("truth") == []


def test_only_a_server_is_told_of_attested_endpoints_and_a_ledger(tmp_path: Path):
    server = {
        "label": "S",
        "backend": "openai",
        "model": "m",
        "endpoint": "http://localhost:1/v1",
        "takes": {"images": 1},
    }
    jobs = jobs_of(
        tmp_path,
        models={**MODELS, "server": server},
        attested_endpoints=["https://b.example/v1", "https://a.example/v1"],
    )
    asking = Asking(jobs, with_conda=False)
    assert asking.server("truth") == ""
    assert shlex.split(asking.server("server")) == [
        "--attested", "https://a.example/v1", "--attested", "https://b.example/v1",
        "--ledger", "results/small/work/spent/server.jsonl",
    ]  # fmt: skip


def test_vllm_has_an_interpreter_of_its_own(tmp_path: Path):
    model = {
        "label": "V",
        "backend": "vllm",
        "weights": "./weights",
        "takes": {"images": 1},
        "python": "/opt/vllm/python",
    }
    jobs = jobs_of(tmp_path, models={**MODELS, "fast": model})
    assert Asking(jobs, with_conda=False).python("fast") == "/opt/vllm/python"
    assert Asking(jobs, with_conda=True).python("fast") == "python"
    assert Asking(jobs, with_conda=False).python("reader") == "python"
    assert Asking(jobs, with_conda=True).environment("fast").endswith("envs/vllm.yaml")


def test_tables_are_told_what_was_run_in_an_order_of_their_own(tmp_path: Path):
    jobs = jobs_of(tmp_path)
    told = what_was_run(jobs)
    assert {"cells", "settings", "comparisons", "effects", "statistics", "decoding"} == set(told)
    assert [cell["setting"] for cell in told["cells"]] == ["black", "plain"] * 2 + ["report", "report-swapped"]
    whole = whole_study(jobs)
    assert set(whole["models"]) == {"reader", "truth"}
    assert set(whole["views"]) == {"flair", "frontal"}
    assert json.loads(as_json(whole)) == whole


def test_readers_stand_beside_the_models_once_their_ratings_are_there(tmp_path: Path):
    ratings = tmp_path / "ratings.csv"
    ratings.touch()
    subset = {"dataset": "mri", "ratings": [str(ratings)]}
    assert not Rated(Asking(jobs_of(tmp_path), with_conda=False))
    rated = Rated(Asking(jobs_of(tmp_path, human={"first": subset}), with_conda=False))
    assert rated
    assert rated.ratings() == [str(ratings)]
    assert rated.datasets() == ["mri"]
    assert len(rated.responses()) == 6 + 2 * 2 * 3
    assert rated.section()["first"]["ratings"] == [str(ratings)]


def test_images_are_read_anew_when_their_file_is_written_anew(tmp_path: Path):
    file = tmp_path / "studies.parquet"

    def study(name: str) -> Study:
        images = {"frontal": f"/{name}.png"}
        return Study(
            study=name, patient="p", dataset="d", modality="xray", restricted=False, images=images, report={}, labels={}
        )

    write_studies([study("one")], file)
    assert images_of(file) == {"one": {"frontal": "/one.png"}}
    write_studies([study("one"), study("two")], file)
    assert set(images_of(file)) == {"one", "two"}


@pytest.mark.parametrize("made", ["folder", "file", "nothing"])
def test_files_of_an_image(tmp_path: Path, made: str):
    place = tmp_path / "image"
    if made == "folder":
        place.mkdir()
        (place / "b.dcm").touch()
        (place / "a.dcm").touch()
    elif made == "file":
        place.touch()
    wanted = {"folder": [f"{place}/a.dcm", f"{place}/b.dcm"], "file": [str(place)], "nothing": []}
    assert files_at(str(place)) == wanted[made]
