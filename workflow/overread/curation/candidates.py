"""Candidates: questions that a model wrote from a report, before anybody has vouched for them.

A candidate is a record of what the author said, right or wrong: three options, twice the same option, an answer that is
no option, evidence that is nowhere in the report all fit in here. The rules that come later drop such a candidate by
name; nothing is lost on the way. A model's replies stand beside the candidates, a row a study, word for word.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Literal, TypeVar

from pydantic import Field, ValidationError

from overread.core.errors import BadInput
from overread.core.inputs import regular
from overread.core.records import Record, content_hash, one_line, replacing

Tag = Literal["YES", "NO", "REFUSED"]
"""The validator's verdict: fit, not fit, or it would not say."""


class Wording(Record):
    """A question as somebody worded it."""

    stem: str
    options: tuple[str, ...] = Field(description="as written; four were asked for")
    answer: str = Field(description="the text that is claimed to be the right option")


class Candidate(Wording):
    """A question as the author wrote it, or as the validator left it."""

    study: str
    patient: str
    index: int = Field(ge=0, description="place in the author's reply, from 0: with the study it names the candidate")
    reasoning: str = Field(description="why the answer is right, with its quotations; the validator's once validated")
    evidence: tuple[str, ...] = Field(description="sentences said to be copied from the report")
    origin: str = Field(description="id of the model that wrote it")
    request: str = Field(description="key of the author's request: the row of the replies with its raw text")
    tag: Tag | None = Field(default=None, description="the validator's verdict; none before validation")
    tag_reason: str | None = None
    rewritten: bool = Field(default=False, description="whether the validator changed stem, options or answer")
    before: Wording | None = Field(default=None, description="the author's wording of a rewritten candidate")
    validator: str | None = Field(default=None, description="id of the model that validated it")

    @property
    def name(self) -> str:
        """`<study>-<index>`, the same before and after validation, however it is reworded."""
        return f"{self.study}-{self.index:02d}"

    @property
    def wording(self) -> Wording:
        return Wording(stem=self.stem, options=self.options, answer=self.answer)

    @property
    def content(self) -> str:
        """Hash of study and wording: that of the `records.Question` it can become."""
        return content_hash([self.study, self.stem, list(self.options), self.answer])


class StudyReply(Record):
    """What became of a study's request: its raw reply, or why there is none."""

    study: str
    patient: str
    outcome: Literal["written", "validated", "refused", "no-report", "no-questions"]
    reason: str = Field(default="", description="why nothing was asked about the study")
    questions: int = Field(default=0, ge=0, description="how many candidates came of it")
    left_over: int = Field(default=0, ge=0, description="questions beyond the number asked for: not used")
    request: str | None = Field(default=None, description="key of the request")
    text: str = Field(default="", description="the reply, word for word")
    finish_reason: str | None = None
    served_by: str | None = Field(default=None, description="the model as the server names it")
    adjusted: str = Field(default="", description="parameters that the model did not take, and what was done")
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


R = TypeVar("R", Candidate, StudyReply)


def write_candidates(candidates: Iterable[Candidate], path: Path) -> None:
    """One JSON object a line, sorted by study and place in the author's reply."""
    ordered = sorted(candidates, key=lambda one: (one.study, one.index))
    _write(ordered, path)


def read_candidates(path: Path) -> list[Candidate]:
    """BadInput with file and line for what is no candidate."""
    return _read(path, Candidate)


def write_replies(replies: Iterable[StudyReply], path: Path) -> None:
    """One JSON object a line, sorted by study."""
    ordered = sorted(replies, key=lambda one: one.study)
    _write(ordered, path)


def read_replies(path: Path) -> list[StudyReply]:
    """BadInput with file and line for what is no reply."""
    return _read(path, StudyReply)


def _write(rows: Iterable[Record], path: Path) -> None:
    with replacing(path) as temporary:
        temporary.write_text("".join(f"{row.model_dump_json()}\n" for row in rows), encoding="utf-8")


def _read(path: Path, kind: type[R]) -> list[R]:
    try:
        lines = regular(path).read_text(encoding="utf-8").split("\n")  # splitlines would also cut at U+2028
    except FileNotFoundError:
        raise BadInput(f"{path}: no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{path}: not readable as UTF-8 text: {error}") from None
    rows = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            rows.append(kind.model_validate_json(line))
        except ValidationError as error:
            raise BadInput(f"{path}:{number}: {one_line(error)}") from None
    return rows
