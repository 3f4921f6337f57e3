"""Ratings of four questions by three raters, for tests whose right result is worked out on paper."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from overread.core.records import Question
from overread.estimates.ratings import COLUMNS, ratings_frame

OPTIONS = ("front", "back", "top", "bottom")


def question(number: int, patient: str, answer: str = "front") -> Question:
    return Question(
        study=f"s{number}", patient=patient, stem=f"Where is mass {number}?", options=OPTIONS, answer=answer,
        topic="location", origin="author",
    )  # fmt: skip


QUESTIONS = [question(1, "p1"), question(2, "p1"), question(3, "p2"), question(4, "p3", "back")]


def rating(rater: str, one: Question, chosen: str, **changes: Any) -> dict[str, Any]:
    values = {
        "rater": rater, "subset": "fellows", "dataset": "data", "study": one.study, "patient": one.patient,
        "question": one.question, "place": 1, "chosen": chosen, "agrees": "yes", "relevant": "yes", "confidence": 4,
        "answerable": "yes", "comment": "", "seconds": "20.5", "started_at": "2026-01-01T00:00:00Z",
        "answered_at": "2026-01-01T00:00:20Z",
    }  # fmt: skip
    return {**values, **changes}


def write(path: Path, rows: Iterable[Mapping[str, Any]], columns: Iterable[str] = COLUMNS) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, fieldnames=list(columns))
        table.writeheader()
        table.writerows(rows)
    return path


def frame(tmp_path: Path, rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    return ratings_frame("fellows", "data", [write(tmp_path / "ratings.csv", rows)], QUESTIONS)


def three_raters() -> list[dict[str, Any]]:
    """Four questions, of which the fourth's right option is `back`."""
    given = {
        "A": ("front", "front", "back", ""),
        "B": ("front", "back", "top", "back"),
        "C": ("front", "back", "back", "back"),
    }
    return [
        rating(rater, one, chosen)
        for rater, answers in given.items()
        for one, chosen in zip(QUESTIONS, answers, strict=True)
    ]
