"""What people answered in a reader study: `ratings.csv`, a line a rater and question, held against the questions.

A line that fits no question of the run stops the table with one line that names it: a rating of an older wording is a
rating of another question. Practice questions are no part of a file; only finished questions are.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd
from pydantic import Field, ValidationError

from overread.core.cells import as_it_was
from overread.core.errors import BadInput
from overread.core.inputs import regular
from overread.core.records import Question, Record, one_line
from overread.settings.options import permutation

Ratings = Mapping[str, tuple[str, pd.DataFrame]]
"""By reader study: its data set, and its ratings as `ratings_frame` gives them."""
YesNo = Literal["yes", "no"]


class Rating(Record):
    """A line of `ratings.csv`: one person's answer to one question, and their view of it."""

    rater: str = Field(min_length=1)
    subset: str
    dataset: str
    study: str
    patient: str
    question: str
    place: int = Field(ge=1, description="the question's place in the rater's order, from 1")
    chosen: str = Field(description="text of the option that the rater chose; empty: can't tell")
    agrees: YesNo = Field(description="whether the rater agrees with the reference answer, shown after the rater's own")
    relevant: YesNo = Field(description="whether the rater found the question relevant")
    confidence: int = Field(
        ge=1, le=5, description="how sure the rater was, from 1 to 5: of a question, or the mean over questions"
    )
    answerable: YesNo = Field(
        description="whether the rater found it answerable from the images, or the share of questions"
    )
    comment: str = Field(description="what the rater wrote about the question")
    seconds: float = Field(ge=0, allow_inf_nan=False)
    started_at: str = Field(description="when the question was first seen, UTC")
    answered_at: str = Field(description="when the own answer was stored, UTC")
    seconds_in_view: float | None = Field(
        default=None, ge=0, allow_inf_nan=False, description="how long the page was in front; blank if it is not known"
    )


COLUMNS = tuple(Rating.model_fields)
OPTIONAL = ("seconds_in_view",)


def ratings_frame(subset: str, dataset: str, paths: Sequence[Path], questions: Iterable[Question]) -> pd.DataFrame:
    """The ratings of one subset, a row a rater and question, sorted by rater and question.

    columns   rater, question, patient; n_options; choice: place as written, -1 for can't tell; label: a name of the
              choice for measures of agreement (see `_label`); right; agrees, relevant, answerable; confidence; seconds,
              seconds_in_view
    raises    BadInput with file and line for a line that is no rating, or no rating of these questions, and for two
              ratings of one question by one rater
    """
    asked = {one.question: one for one in questions}
    seen: dict[tuple[str, str], str] = {}
    rows = []
    for place, rating in _read(paths):
        question = asked.get(rating.question)
        problem = _misfit(rating, subset, dataset, question)
        if problem or question is None:
            raise BadInput(f"{place}: {problem}")
        key = (rating.rater, rating.question)
        if key in seen:
            raise BadInput(f"{place}: {key[0]} has rated question {key[1]} before, at {seen[key]}")
        seen[key] = place
        choice = question.options.index(rating.chosen) if rating.chosen else -1
        rows.append(
            {
                "rater": rating.rater, "question": rating.question, "patient": rating.patient,
                "n_options": len(question.options), "choice": choice, "label": _label(question, choice),
                "right": rating.chosen == question.answer, "agrees": rating.agrees == "yes",
                "relevant": rating.relevant == "yes", "answerable": rating.answerable == "yes",
                "confidence": rating.confidence, "seconds": rating.seconds,
                "seconds_in_view": np.nan if rating.seconds_in_view is None else rating.seconds_in_view,
            }
        )  # fmt: skip
    if not rows:
        raise BadInput(f"{', '.join(map(str, paths))}: no rating; export the reader study once a question is finished")
    return pd.DataFrame(rows).sort_values(["rater", "question"], ignore_index=True)


def _label(question: Question, choice: int) -> str:
    """A choice's name in a random order of the options that follows from the question alone; `none` for can't tell.

    As written the right option mostly stands first, so that by those places two readers who are both right would seem
    to agree by chance.
    """
    return "none" if choice < 0 else str(permutation(question, "shuffled", 0).index(choice) + 1)


def _misfit(rating: Rating, subset: str, dataset: str, question: Question | None) -> str:
    """What keeps a rating from being one of these questions, or nothing."""
    if rating.subset != subset:
        return f"subset: {rating.subset!r}, but the config lists the file under human.{subset}"
    if rating.dataset != dataset:
        return f"dataset: {rating.dataset!r}, but human.{subset}.dataset is {dataset!r}"
    if question is None:
        return (
            f"question: no {rating.question!r} among the questions of {dataset}: its wording has changed since, or it "
            "was dropped; take the line out, or keep the questions that were rated"
        )
    for name, given, own in (
        ("study", rating.study, question.study),
        ("patient", rating.patient, question.patient),
    ):
        if given != own:
            return f"{name}: {given!r}, but question {rating.question} is of {own!r}"
    if rating.chosen and rating.chosen not in question.options:
        options = ", ".join(repr(option) for option in question.options)
        return f"chosen: {rating.chosen!r} is no option of question {rating.question}; there are: {options}"
    return ""


def _read(paths: Sequence[Path]) -> Iterator[tuple[str, Rating]]:
    """The ratings with `file:line`, the line on which each ends."""
    for path in paths:
        try:
            with regular(path).open(newline="", encoding="utf-8-sig") as file:
                table = csv.DictReader(file, strict=True)
                _check_columns(path, table.fieldnames)
                for row in table:
                    yield f"{path}:{table.line_num}", _rating(f"{path}:{table.line_num}", row)
        except FileNotFoundError:
            raise BadInput(f"{path}: no such file; it should be the export of a reader study") from None
        except (OSError, UnicodeDecodeError, csv.Error) as error:
            raise BadInput(f"{path}: not readable as CSV in UTF-8: {error}") from None


def _check_columns(path: Path, found: Sequence[str] | None) -> None:
    missing = [name for name in COLUMNS if name not in (found or ()) and name not in OPTIONAL]
    strange = [name for name in found or () if name not in COLUMNS]
    if missing or strange:
        wrong = f"no column {missing[0]!r}" if missing else f"the column {strange[0]!r} is not known"
        raise BadInput(f"{path}:1: {wrong}; a file of ratings has: {', '.join(COLUMNS)}")


def _rating(place: str, row: Mapping[str | None, str | list[str] | None]) -> Rating:
    if None in row or None in row.values():
        raise BadInput(f"{place}: not as many cells as there are columns; export the file again")
    try:
        blank = {name for name in OPTIONAL if not row.get(name)}
        return Rating.model_validate({name: as_it_was(str(row[name])) for name in COLUMNS if name not in blank})
    except ValidationError as error:
        raise BadInput(f"{place}: {one_line(error)}") from None
