"""How much a study asks for, and how a person is told."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from data.configs import MODELS, SETTINGS, config_of, small, written
from overread import plan
from overread.config import load
from overread.core.records import Picture, Question, Study, write_pictures, write_questions, write_studies
from overread.plan.view import collapsed, in_words, show_check, show_plan
from overread_phantom import source

ROOT = Path(__file__).parents[2]
PAPERS = ROOT / "config" / "config.yaml"


@pytest.fixture(autouse=True)
def _no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


# -- amounts -----------------------------------------------------------------------------------------------------------


def test_amounts_are_counted_in_the_results_where_they_are(tmp_path: Path) -> None:
    """Two studies, of which one has three questions: a run asks 3, one-per-study asks 1, and one job is done."""
    settings = {**SETTINGS, "one": {"extends": "plain", "questions": "one-per-study"}}
    evaluations = [{"dataset": "mri", "models": ["truth"], "settings": ["plain", "one", "slices"], "runs": 2}]
    config = config_of(tmp_path, settings=settings, evaluations=evaluations, comparisons={})
    folder = tmp_path / "results" / "mri"
    fields: dict[str, Any] = {"dataset": "mri", "modality": "mri", "images": {}, "labels": {}, "restricted": False}
    studies = [Study(study=name, patient=name, report={"findings": "x" * 400}, **fields) for name in ("a", "b")]
    questions = [
        Question(
            study="a", patient="a", stem=f"{number:04d}?", options=("one", "two"), answer="one", topic="t", origin="o"
        )
        for number in range(3)
    ]
    pictures = [
        Picture(
            study="a", view="all-series", order=order, name="n", path="p", pixels="0", width=1, height=1, series="s"
        )
        for order in range(7)
    ]
    write_studies(studies, folder / "studies.parquet")
    write_questions(questions, folder / "questions.jsonl")
    write_pictures(pictures, folder / "images.parquet")
    done = folder / "responses" / "truth" / "plain" / "run-2.parquet"
    done.parent.mkdir(parents=True)
    done.touch()
    whole = plan.estimate(config, tmp_path / "results")
    loads = {load.cell.setting: load for load in whole.loads}
    size = whole.sizes["mri"]
    assert (size.studies, size.patients, size.questions, size.basis) == (2, 2, 3, "counted")
    assert size.report_tokens == 100
    assert (loads["plain"].requests, loads["plain"].images, loads["plain"].answered_jobs) == (6, 6, 1)
    assert (loads["one"].requests, loads["one"].answered_jobs) == (2, 0)
    assert loads["slices"].images == 3 * 2 * 7, "seven series were rendered, fewer than the 23 at most"


def test_tokens_are_text_and_pictures_and_unknown_where_a_picture_is(tmp_path: Path) -> None:
    known = {**MODELS["reader"], "takes": {"images": 1, "image_tokens": 256}, "resources": {"gpu": 2, "runtime": 90}}
    evaluations = [{"dataset": "xray", "models": ["known", "reader", "truth"], "settings": ["report"], "runs": 4}]
    config = config_of(tmp_path, {"known": known}, evaluations=evaluations, comparisons={})
    loads = {load.cell.model: load for load in plan.estimate(config, None).loads}
    requests = 96 * 14 * 4
    assert loads["known"].requests == requests
    assert loads["known"].prompt_tokens == requests * (25 + 40 + 120 + 256)
    assert loads["reader"].prompt_tokens is None
    assert loads["reader"].text_tokens == requests * (25 + 40 + 120)
    assert loads["truth"].prompt_tokens == 0, "a calibrated reader reads no tokens"
    assert (loads["known"].jobs, loads["known"].gpu_jobs, loads["known"].gpu_hours) == (4, 4, 4 * 2 * 1.5)


def test_the_phantoms_are_estimated_as_large_as_they_are_made() -> None:
    from overread_phantom.grammar import TOPICS
    from overread_phantom.xray import STUDIES_PER_PATIENT

    assert len(TOPICS) == source.QUESTIONS_A_STUDY
    mean = sum(count * share for count, share in enumerate(STUDIES_PER_PATIENT, start=1))
    assert mean == pytest.approx(source.STUDIES_A_PATIENT)


# -- for a person ------------------------------------------------------------------------------------------------------


def printed(path: Path, width: int) -> str:
    console = Console(width=width, file=io.StringIO(), force_terminal=False)
    show_plan(path, console=console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize(("width", "most_lines"), [(100, 200), (160, 140)])
def test_the_printed_plan_of_both_papers_is_short_and_fits(width: int, most_lines: int) -> None:
    """348 cells, most of them with several obstacles: a sweep is one row, a reason is one row."""
    text = printed(PAPERS, width)
    assert all(len(line) <= width for line in text.splitlines())
    assert len(text.splitlines()) <= most_lines
    assert "hidden-single-swapped-* (62)" in text
    assert "44,786" in text
    assert text.count("datasets.ucsf-pdgm.root") == 1


def test_the_printed_plan_says_what_would_run_and_what_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    models = {**MODELS, "reader": {**MODELS["reader"], "weights": "./gone"}}
    text = printed(written(tmp_path, small(), models), 120)
    assert "6 cells of dataset, model and setting in 14 jobs: 2 can run now, 4 missing" in text
    assert "no folder of weights for reader at models/gone" in text


def test_the_plan_as_json_holds_every_cell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    show_plan(written(tmp_path, small()), json=True)
    whole = json.loads(capsys.readouterr().out)
    assert {(cell["dataset"], cell["model"], cell["setting"]) for cell in whole["cells"]} == {
        cell.name for cell in plan.cells(config_of(tmp_path))
    }
    assert whole["datasets"]["mri"]["studies"] == 24


def test_check_ends_with_one_only_if_something_must_be_mended(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = written(tmp_path, small())
    assert show_check(path) == 0
    assert capsys.readouterr().err == ""
    written(tmp_path, small(evaluations=[{"dataset": "mri", "models": ["reader"], "settings": ["slices"]}]))
    assert show_check(path) == 1
    assert len(capsys.readouterr().err.splitlines()) == 1
    written(tmp_path, small(setings={}))
    assert show_check(path) == 1
    assert "Did you mean settings?" in capsys.readouterr().err


def test_a_setting_in_words_says_only_what_does_not_go_without_saying() -> None:
    settings = load(PAPERS).settings
    assert in_words(settings["single-slice"]) == ["flair-axial", "choice"]
    assert in_words(settings["hidden-swapped-from-7"]) == [
        "frontal", "swapped image", "with report", "report hidden from layer 7 on", "one question a study", "yes-no",
    ]  # fmt: skip
    assert in_words(settings["text-only-reshuffled"]) == ["no image", "reshuffled", "choice"]


def test_part_of_a_sweep_says_of_how_many() -> None:
    config = load(PAPERS)
    names = ["single-slice", *config.sweeps["hidden"][:5], *config.sweeps["hidden-single"]]
    assert collapsed(names, config) == ["single-slice", "hidden-* (5 of 63)", "hidden-single-* (62)"]
