"""Ratings of a reader study that come in after a finished run."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import pytest

from overread.core.records import Question, read_questions
from overread.estimates.ratings import COLUMNS
from workflow.runner import Workflow

pytestmark = pytest.mark.workflow

READERS = "Readers and models on the questions of fellows (mri)"
ONLY_THE_READERS = {"set_beside_readers": 1, "write_report": 1, "all": 1}


def rate(path: Path, questions: list[Question], raters: dict[str, Callable[[int], bool]]) -> None:
    """A file of ratings: each rater is right where its function of the question's number says so."""
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, fieldnames=COLUMNS)
        table.writeheader()
        for rater, right in raters.items():
            for number, one in enumerate(questions):
                wrong = next(option for option in one.options if option != one.answer)
                table.writerow(
                    {
                        "rater": rater, "subset": "fellows", "dataset": "mri", "study": one.study,
                        "patient": one.patient, "question": one.question, "place": number + 1,
                        "chosen": one.answer if right(number) else wrong, "agrees": "yes", "relevant": "yes",
                        "confidence": 4, "answerable": "yes", "comment": "a, \"b\"\nc", "seconds": 12,
                        "started_at": "2026-01-01T00:00:00Z", "answered_at": "2026-01-01T00:00:12Z",
                        "seconds_in_view": "",
                    }
                )  # fmt: skip


def human(workflow: Workflow) -> list[dict[str, str]]:
    with (workflow.results / "tables/human.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_ratings_that_come_later_run_the_readers_tables_and_the_report_alone(study: Workflow):
    questions = read_questions(study.results / "mri/questions.jsonl")[:6]
    assert len(questions) == 6
    ratings, config = study.folder / "ratings.csv", study.config
    config["human"] = {"fellows": {"dataset": "mri"}}
    study.config = config
    assert not study.planned(), "a reader study without ratings asks for nothing"

    rate(ratings, questions, {"A": lambda number: number < 3})
    config["human"]["fellows"]["ratings"] = ["../ratings.csv"]
    study.config = config
    assert study.planned() == ONLY_THE_READERS
    study.run()
    rows = human(study)
    assert [(row["kind"], row["rater"], row["model"], row["setting"]) for row in rows] == [
        ("rater", "A", "", ""),
        *(("model", "", "calibrated-70", setting) for setting in ("own", "reshuffled", "swapped")),
    ]
    assert [row["questions"] for row in rows] == ["6"] * 4
    assert (rows[0]["accuracy"], rows[1]["runs"]) == ("0.500000", "2")
    assert READERS in (study.results / "report.html").read_text()
    assert not study.planned()

    rate(ratings, questions, {"A": lambda number: number < 3, "B": lambda number: True})
    assert study.planned() == ONLY_THE_READERS
    study.run()
    assert [row["kind"] for row in human(study)][:3] == ["rater", "rater", "consensus"]

    del config["human"]
    study.config = config
    assert study.planned() == {"write_report": 1, "all": 1}
    study.run()
    assert READERS not in (study.results / "report.html").read_text()


def test_ratings_that_are_not_there_or_fit_no_question_are_told_in_one_line(study: Workflow):
    config = study.config
    config["human"] = {"fellows": {"dataset": "mri", "ratings": ["../ratings.csv"]}}
    study.config = config
    said = study.run("--dry-run", fails=True)
    assert "human.fellows.ratings: no file at" in said
    assert "Traceback" not in said

    questions = read_questions(study.results / "mri/questions.jsonl")[:2]
    changed = questions[1].model_copy(update={"question": "0" * 16})
    rate(study.folder / "ratings.csv", [questions[0], changed], {"A": lambda number: True})
    assert (
        f"ratings.csv:5: question: no '{'0' * 16}' among the questions of mri" in study.run(fails=True) + study.logs()
    )
    assert (study.results / "report.html").is_file(), "the report of before is still there"
