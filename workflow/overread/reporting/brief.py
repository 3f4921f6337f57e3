"""The verdicts in brief: which model uses the image least, and on which numbers that rests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from overread.reporting.conclusion import Conclusion
from overread.reporting.contrasts import Statement, Tables
from overread.reporting.evidence import Answer
from overread.reporting.rows import Row, number, where
from overread.reporting.verdict import Judgement
from overread.reporting.words import SPACE, count


@dataclass(frozen=True)
class Line:
    """A number that a verdict rests on."""

    answer: Answer
    title: str
    about: str
    number: str
    behind: str
    """How many pairs and patients, and the adjusted p of a tested swap; empty where no table says."""


@dataclass(frozen=True)
class Brief:
    """A model on a dataset, in brief."""

    model: str
    conclusion: Conclusion
    lines: tuple[Line, ...]


def in_brief(judgements: Sequence[Judgement], tables: Tables, labels: Mapping[str, str]) -> list[Brief]:
    """The models of one dataset, that which uses the image least first.

    They go by their verdict, then by how far their answers follow the image, then by their label.
    """

    def least(judgement: Judgement) -> tuple[int, float, str]:
        conclusion = judgement.conclusion
        return conclusion.rank, conclusion.size, labels.get(judgement.model, judgement.model)

    return [
        Brief(
            one.model,
            one.conclusion,
            tuple(_line(statement, tables.of(one.dataset, one.model)) for statement in one.main),
        )
        for one in sorted(judgements, key=least)
    ]


def _line(statement: Statement, own: Tables) -> Line:
    row = next(iter([*_flips(statement, own), *where(own.effects, effect=statement.about)]), None)
    behind = [
        count(found, word)
        for name, word in (("pairs", "pair"), ("patients", "patient"))
        if row is not None and (found := number(row.get(name))) is not None
    ]
    tests = where(own.significance, comparison=statement.about) if _flips(statement, own) else []
    behind += [f"adjusted{SPACE}p{SPACE}{_p(p)}" for test in tests if (p := number(test["p_holm"])) is not None]
    return Line(statement.answer, statement.title, statement.about, statement.number, ", ".join(behind))


def _p(value: float) -> str:
    return f"<{SPACE}0.001" if value < 0.001 else f"={SPACE}{value:.3f}"


def _flips(statement: Statement, own: Tables) -> list[Row]:
    return where(own.flips, comparison=statement.about, group="all") if statement.aspect == "image" else []
