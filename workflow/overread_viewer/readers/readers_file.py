"""`readers.yaml`: who reads which questions of a run, in what order, and what they see.

`load` raises one `BadConfig` that lists every problem, a line each, with the file, the key, the value and what is
allowed. Relative paths are relative to the file.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Discriminator, Field, StringConstraints, Tag, field_validator, model_validator

from overread.config.base import Distinct, FilePath, Name, NotEmpty, Section
from overread.config.messages import Problem, validated
from overread.config.reading import read_yaml
from overread.core.errors import BadConfig

MOST_QUESTIONS = 10_000
MOST_NAME = 100


def _displayable(name: str) -> str:
    if not name.isprintable():
        raise ValueError("must be printable text on one line")
    return name


def _series_tag(value: Any) -> str:
    return "text" if isinstance(value, str) else "list"


DisplayName = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MOST_NAME), AfterValidator(_displayable)
]
SeriesChoice = Annotated[
    Annotated[Literal["none", "all"], Tag("text")]
    | Annotated[tuple[Annotated[str, StringConstraints(min_length=1)], ...], NotEmpty, Distinct, Tag("list")],
    Discriminator(_series_tag),
]
OptionOrder = Literal["as-written", "shuffled", "shuffled-by-rater", "release", "sheet"]


class QuestionChoice(Section):
    """Which questions are read: drawn, or named by a file."""

    sample: int | None = Field(default=None, ge=1, le=MOST_QUESTIONS, description="how many questions are drawn")
    by: Literal["topic"] | None = Field(
        default=None, description="topic: each topic has its share of the sample; without it, the draw is simple"
    )
    ids: FilePath | None = Field(default=None, description="text file with a question's id on each line")
    sheet: FilePath | None = Field(default=None, description="readers.csv of the questions stage")

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        given = [key for key in ("sample", "ids", "sheet") if getattr(self, key) is not None]
        if len(given) != 1:
            raise ValueError(f"needs one of sample, ids and sheet; it has {' and '.join(given) or 'none'}")
        if self.by is not None and self.sample is None:
            raise ValueError("by goes with sample: a file names its questions itself")
        return self


class Fixed(Section):
    """What may not change once a study has begun: all that is asked and shown."""

    name: Name = Field(description="of the subset, as in tables/human.csv")
    dataset: Name
    questions: QuestionChoice
    seed: int = Field(default=0, ge=0, description="of the sample, the raters' orders and the options' orders")
    view: Name | None = Field(default=None, description="the view whose pictures are shown")
    series: SeriesChoice = Field(
        default="none", description="whole series to scroll through: none, all (masks apart), or their names"
    )
    order: Literal["by-rater", "same", "as-listed"] = "by-rater"
    options: OptionOrder = Field(
        default="shuffled", description="order of the options; the same for all raters unless it is shuffled-by-rater"
    )
    release: FilePath | None = Field(default=None, description="folder of the release whose option orders are kept")
    practice: int = Field(default=0, ge=0, le=50, description="questions to begin with that are not counted")

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.view is None and self.series == "none":
            raise ValueError("names neither a view nor series: raters would see no image")
        if (self.options == "release") != (self.release is not None):
            raise ValueError("`options: release` and `release: <folder>` go together")
        if self.options == "sheet" and self.questions.sheet is None:
            raise ValueError("`options: sheet` needs questions.sheet")
        return self


class ReadersFile(Fixed):
    """A reader study. Raters can be added at any time."""

    raters: dict[Name, DisplayName] = Field(min_length=1, description="the name shown, by the rater's id")
    break_after: int | None = Field(default=None, ge=1, description="propose a break after so many questions")
    database: FilePath
    ratings: FilePath

    @field_validator("raters")
    @classmethod
    def _told_apart(cls, raters: dict[str, str]) -> dict[str, str]:
        if len(set(raters.values())) != len(raters):
            raise ValueError("two raters have the same name; tell them apart")
        return raters

    def fixed(self) -> Fixed:
        return Fixed.model_validate({name: getattr(self, name) for name in Fixed.model_fields})


def differences(began: Fixed, now: Fixed) -> list[str]:
    """The keys whose values are not those that the study began with. A file of questions may have moved."""

    def told(one: Fixed) -> dict[str, object]:
        values = one.model_dump(mode="json")
        values["release"] = one.release and Path(one.release).name
        values["questions"] |= {
            key: path and Path(path).name for key, path in (("ids", one.questions.ids), ("sheet", one.questions.sheet))
        }
        return values

    before, after = told(began), told(now)
    return [key for key in before if before[key] != after[key]]


def load(path: Path) -> ReadersFile:
    """The reader study that a file describes.

    Without them, `database` is `<name>.sqlite` and `ratings` is `<name>-ratings.csv`, beside the file.
    """
    content = read_yaml(path)
    name = content.get("name")
    if isinstance(name, str) and re.fullmatch(r"[a-z0-9.-]+", name):
        content = {"database": f"{name}.sqlite", "ratings": f"{name}-ratings.csv"} | content
    elif "name" in content or not {"database", "ratings"} <= set(content):
        content = {"database": "study.sqlite", "ratings": "ratings.csv"} | content  # the name's own error is enough
    problems: list[Problem] = []
    context = {"folder": str(path.parent.resolve())}
    found = validated(lambda: ReadersFile.model_validate(content, context=context), ReadersFile, problems)
    if found is None:
        raise BadConfig("\n".join(_line(path, where, what) for where, what in problems))
    return found


def _line(path: Path, where: str, what: str) -> str:
    return f"{path}: {where}: {what}" if where else f"{path}: {what}"
