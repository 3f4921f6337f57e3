"""From reports to a released dataset, by Snakemake, with an author and a validator behind real HTTP servers."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from data.openai_server import OpenaiServer
from data.written_questions import BAD, Checker, Reported, Writer
from overread.core.records import read_questions, read_studies
from overread_viewer.unfinished import Unfinished, open_run
from workflow.runner import Workflow

pytestmark = pytest.mark.workflow

CONFIG = {
    "name": "generated",
    "datasets": {
        "mri": {
            "source": "phantom",
            "modality": "mri",
            "studies": 3,
            "questions": {
                "origin": "generated",
                "author": "author",
                "validator": "validator",
                "review": {"look_through": 5, "readers": 4},
                "release": {"title": "Questions about phantoms", "name": "phantom-questions"},
            },
        }
    },
    "settings": {"text-only": {"readout": "choice"}},
    "evaluations": [{"dataset": "mri", "models": ["calibrated-first-option"], "settings": ["text-only"]}],
    "statistics": {"draws": 200},
}


@pytest.fixture
def generated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Workflow, OpenaiServer, OpenaiServer]]:
    """A study whose reports are read, and servers whose author spoils one question a study."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    workflow = Workflow(tmp_path / "study", CONFIG, ["calibrated-first-option"])
    for role in ("author", "validator"):
        workflow.add_model(
            role, {"label": role, "backend": "openai", "model": role, "endpoint": "http://127.0.0.1:1/v1"}
        )
    workflow.run("studies")
    asked = read_questions(workflow.results / "mri/source/questions.jsonl")
    about = [
        Reported(
            study, [question for question in asked if question.study == study.study and question.topic == "location"]
        )
        for study in read_studies(workflow.results / "mri/studies.parquet")
    ]
    written = {one.study.study: [*one.written(), BAD["none of the above"](one.written()[0])] for one in about}
    with OpenaiServer(Writer(about, written)) as author, OpenaiServer(Checker()) as validator:
        for role, server in (("author", author), ("validator", validator)):
            workflow.add_model(role, {"label": role, "backend": "openai", "model": role, "endpoint": server.endpoint})
        yield workflow, author, validator


def test_reports_become_a_released_dataset_that_models_answer(generated):
    workflow, author, validator = generated
    workflow.run("all", "sheets", "release")
    folder = workflow.results / "mri"
    assert (len(author.asked), len(validator.asked)) == (3, 3)
    questions = read_questions(folder / "questions.jsonl")
    assert len(questions) == 3
    rejected = [json.loads(line) for line in (folder / "questions/rejected.jsonl").read_text().splitlines()]
    assert [one["rule"] for one in rejected] == ["forbidden"] * 3
    with (folder / "questions/review.csv").open(newline="") as sheet:
        assert len(list(csv.DictReader(sheet))) == 3
    assert list((folder / "release").glob("*.jsonl"))
    assert (workflow.results / "report.html").is_file()
    assert not workflow.planned()


def test_a_review_takes_a_question_out_and_asks_no_model_again(generated):
    workflow, author, validator = generated
    workflow.run("sheets")
    viewed = open_run(workflow.results)
    assert isinstance(viewed, Unfinished), "the viewer has the questions before any model is asked"
    assert viewed.datasets == ("mri",)
    workflow.run("all")
    sheet = workflow.folder / "decided.csv"
    with (workflow.results / "mri/questions/review.csv").open(newline="") as blank:
        reader = csv.DictReader(blank)
        rows = list(reader)
    for number, row in enumerate(rows):
        row.update(
            reviewer="A", decision="reject" if number == 0 else "accept", reason="ambiguous" if number == 0 else ""
        )
    with sheet.open("w", newline="") as filled:
        table = csv.DictWriter(filled, fieldnames=list(rows[0]))
        table.writeheader()
        table.writerows(rows)
    config = workflow.config
    config["datasets"]["mri"]["questions"]["review"]["decisions"] = [str(sheet)]
    workflow.config = config
    workflow.run()
    assert rows[0]["question"] not in {one.question for one in read_questions(workflow.results / "mri/questions.jsonl")}
    assert (len(author.asked), len(validator.asked)) == (3, 3)
