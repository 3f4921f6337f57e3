"""People look through a sample of the questions: what they are given, and what becomes of their decisions.

A sample is drawn by the content of the questions: when one question is dropped, another takes its place and the rest of
the sample stays. A decision is accept, edit or reject with a reason; the rule that joins several people's decisions is
given, never guessed. Sheets are CSV with a line a question, to be filled in with any spreadsheet.
"""

from __future__ import annotations

import csv
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, ValidationError, model_validator

from overread.core.cells import harmless, row_as_it_was
from overread.core.csv_files import csv_text
from overread.core.errors import BadInput
from overread.core.inputs import regular
from overread.core.records import Question, Record, content_hash, one_line, replacing
from overread.curation.candidates import Wording
from overread.curation.filter import problems
from overread.curation.rules import Rules

Rule = Literal["any", "majority", "all"]
"""Who must reject a question for it to be dropped: one person, no fewer than keep it, or everybody who decided."""

DECISION = ("reviewer", "decision", "reason")
READING = ("reader", "answer", "relevant", "confidence", "answerable", "comment")
"""What a reader fills in: the number of the option chosen, and their view of the question."""


class Decision(Record):
    """One person's decision about a question. An edit names only the parts that change."""

    question: str
    reviewer: str = Field(min_length=1)
    decision: Literal["accept", "edit", "reject"]
    reason: str = ""
    stem: str | None = None
    options: tuple[str | None, ...] = ()
    answer: str | None = None

    @model_validator(mode="after")
    def _whole(self) -> Self:
        edits = self.stem is not None or self.answer is not None or any(self.options)
        if self.decision == "reject" and not self.reason.strip():
            raise ValueError("a rejection needs a reason")
        if (self.decision == "edit") != edits:
            raise ValueError("an edit changes something, and nothing else does: fill in new_... or another decision")
        return self

    def edited(self, question: Question) -> Question:
        """The question with the edit in it. Its answer follows its option if only the option's text changed."""
        options = tuple(
            new or old
            for old, new in zip(question.options, [*self.options, *([None] * len(question.options))], strict=False)
        )
        answer = self.answer or options[question.answer_index]
        values = question.model_dump(exclude={"question"}) | {"options": options, "answer": answer}
        return Question.model_validate(values | ({"stem": self.stem} if self.stem else {}))


class Outcome(Record):
    """What became of a reviewed question."""

    question: str
    study: str
    verdict: Literal["kept", "edited", "rejected"]
    became: str = Field(description="the edited question's id; else the same id; empty if it was rejected")
    accepts: int
    edits: int
    rejects: int
    reasons: str
    checks: str = Field(description="what code has against an edited question; a person's word stands over it")


def sample(questions: Iterable[Question], count: int, seed: int, purpose: str = "review") -> list[Question]:
    """`count` questions by study and id, or all if there are fewer. Two purposes draw independently of each other."""
    drawn = sorted(questions, key=lambda one: content_hash(["sample", purpose, seed, one.question]))[:count]
    return sorted(drawn, key=lambda one: (one.study, one.question))


def write_review_sheet(questions: Sequence[Question], path: Path) -> None:
    """A line a question with its answer and the sentence it came from, and empty cells for the decision.

    The sentence is the report's: the sheet is as restricted as the report is.
    """
    count = _most_options(questions)
    _write(path, _review_head(count), [_review_cells(one, count) for one in questions])


def decided_sheet(questions: Iterable[Question], decisions: Iterable[Decision]) -> str:
    """The text of a review sheet that is filled in: a line a decision, by study, question and reviewer.

    `read_decisions` of it gives the same decisions. Those about no question of `questions` are left out.
    """
    by_id = {one.question: one for one in questions}
    made = [one for one in decisions if one.question in by_id]
    ordered = sorted(made, key=lambda one: (by_id[one.question].study, one.question, one.reviewer))
    count = _most_options([by_id[one.question] for one in ordered])
    rows = [
        [
            *_review_cells(by_id[one.question], count), one.reviewer, one.decision, one.reason, one.stem or "",
            *_padded([text or "" for text in one.options], count), one.answer or "",
        ]
        for one in ordered
    ]  # fmt: skip
    return _text(_review_head(count), rows)


def _review_head(count: int) -> list[str]:
    numbers = range(1, count + 1)
    asked = ["question", "study", "topic", "stem", *(f"option_{k}" for k in numbers), "answer", "evidence"]
    return [*asked, *DECISION, "new_stem", *(f"new_option_{k}" for k in numbers), "new_answer"]


def _review_cells(one: Question, count: int) -> list[str]:
    return [one.question, one.study, one.topic, one.stem, *_padded(one.options, count), one.answer, one.evidence]


def write_reader_sheet(questions: Sequence[Question], orders: Mapping[str, Sequence[int]], path: Path) -> None:
    """A line a question with its options in the order of the release, without answer or evidence."""
    count = _most_options(questions)
    head = ["question", "study", "stem", *(f"option_{k}" for k in range(1, count + 1)), *READING]
    rows = [
        [one.question, one.study, one.stem, *_padded([one.options[k] for k in orders[one.question]], count)]
        for one in questions
    ]
    _write(path, head, rows)


def read_decisions(paths: Iterable[Path]) -> list[Decision]:
    """The decisions of one or more filled-in sheets. A line without a decision is not decided yet and is left out.

    raises   BadInput with file and line; also if one person decides twice about a question
    """
    decisions: list[Decision] = []
    seen: dict[tuple[str, str], str] = {}
    for path in paths:
        for number, row in _rows(path):
            if not row.get("decision", "").strip():
                continue
            place = f"{path}:{number}"
            try:
                decision = Decision(
                    question=row["question"].strip(),
                    reviewer=row["reviewer"].strip(),
                    decision=row["decision"].strip().lower(),
                    reason=row["reason"].strip(),
                    stem=row.get("new_stem", "").strip() or None,
                    options=tuple(text.strip() or None for name, text in row.items() if name.startswith("new_option_")),
                    answer=row.get("new_answer", "").strip() or None,
                )
            except KeyError as error:
                raise BadInput(f"{path}: no column {error}; export the sheet again and fill that in") from None
            except ValidationError as error:
                raise BadInput(f"{place}: {one_line(error)}") from None
            key = (decision.reviewer, decision.question)
            if key in seen:
                raise BadInput(f"{place}: {key[0]} has decided about question {key[1]} before, at {seen[key]}")
            seen[key] = place
            decisions.append(decision)
    return decisions


def read_ratings(paths: Iterable[Path], column: str, rater: str) -> dict[str, dict[str, str]]:
    """rater -> question -> what the sheets say in `column`; empty cells are left out.

    raises   BadInput for a column that is not there, a rating without a rater, and two ratings of one question by one
    """
    ratings: dict[str, dict[str, str]] = defaultdict(dict)
    for path in paths:
        for number, row in _rows(path):
            if missing := {"question", column, rater} - set(row):
                raise BadInput(f"{path}: no column {sorted(missing)[0]!r}; there are: {', '.join(row)}")
            value, who, question = row[column].strip(), row[rater].strip(), row["question"].strip()
            if not value:
                continue
            if not who:
                raise BadInput(f"{path}:{number}: {column} is filled in, but not {rater}")
            if question in ratings[who]:
                raise BadInput(f"{path}:{number}: {who} has rated question {question} before")
            ratings[who][question] = value.lower()
    if len(ratings) < 2:
        raise BadInput(f"column {column!r}: {len(ratings)} rater; agreement needs two at least")
    return dict(ratings)


def apply_decisions(
    questions: Sequence[Question], decisions: Iterable[Decision], rule: Rule, rules: Rules
) -> tuple[list[Question], list[Outcome]]:
    """The questions after the review, and what became of each reviewed one.

    Questions that nobody decided about stay as they are.
    raises   BadInput for a decision about a question that is not there, for two different edits of a kept question, and
             for an edit that makes no question
    """
    by_id = {one.question: one for one in questions}
    about: dict[str, list[Decision]] = defaultdict(list)
    for decision in decisions:
        if decision.question not in by_id:
            raise BadInput(f"a decision of {decision.reviewer}: no question {decision.question!r} among the questions")
        about[decision.question].append(decision)
    kept: list[Question] = []
    outcomes: list[Outcome] = []
    for question in questions:
        if question.question not in about:
            kept.append(question)
            continue
        became, outcome = _decided(question, about[question.question], rule, rules)
        kept += [became] if became is not None else []
        outcomes.append(outcome)
    return kept, outcomes


def _decided(
    question: Question, decisions: Sequence[Decision], rule: Rule, rules: Rules
) -> tuple[Question | None, Outcome]:
    counts = Counter(one.decision for one in decisions)
    needed = {"any": 1, "majority": (len(decisions) + 1) // 2, "all": len(decisions)}[rule]
    became: Question | None = question
    against: list[str] = []
    if counts["reject"] >= needed:
        became = None
    elif counts["edit"]:
        became = _one_edit(question, [one for one in decisions if one.decision == "edit"])
        against = problems(Wording(stem=became.stem, options=became.options, answer=became.answer), rules)
    verdict: Literal["kept", "edited", "rejected"] = (
        "rejected" if became is None else "kept" if became is question else "edited"
    )
    return became, Outcome(
        question=question.question,
        study=question.study,
        verdict=verdict,
        became=became.question if became is not None else "",
        accepts=counts["accept"],
        edits=counts["edit"],
        rejects=counts["reject"],
        reasons="; ".join(f"{one.reviewer}: {one.reason}" for one in decisions if one.reason),
        checks="; ".join(against),
    )


def _one_edit(question: Question, edits: Sequence[Decision]) -> Question:
    try:
        results = {edit.edited(question).question: edit for edit in edits}
        if len(results) == 1:
            return edits[0].edited(question)
    except ValidationError as error:
        raise BadInput(f"the edit of question {question.question}: {one_line(error)}") from None
    names = " and ".join(edit.reviewer for edit in results.values())
    raise BadInput(f"question {question.question} was edited in different ways by {names}: agree on one of them")


def write_outcomes(outcomes: Iterable[Outcome], path: Path) -> None:
    rows = [[str(value) for value in one.model_dump().values()] for one in outcomes]
    _write(path, list(Outcome.model_fields), rows)


def _rows(path: Path) -> list[tuple[int, dict[str, str]]]:
    try:
        with regular(path).open(newline="", encoding="utf-8-sig") as file:
            table = csv.DictReader(file)
            return [(table.line_num, row_as_it_was(row)) for row in table]
    except FileNotFoundError:
        raise BadInput(f"{path}: no such file; it should be a sheet with decisions") from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise BadInput(f"{path}: not readable as CSV in UTF-8: {error}") from None


def _write(path: Path, head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    with replacing(path) as temporary:
        temporary.write_text(_text(head, rows), encoding="utf-8", newline="")


def _text(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """CSV; a row that is shorter than the head is filled up."""
    return csv_text(head, ([*row, *([""] * (len(head) - len(row)))] for row in rows), guard=harmless)


def _most_options(questions: Sequence[Question]) -> int:
    return max((len(one.options) for one in questions), default=0)


def _padded(options: Sequence[str], count: int) -> list[str]:
    return [*options, *([""] * (count - len(options)))]
