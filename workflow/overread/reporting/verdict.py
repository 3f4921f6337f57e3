"""The verdict on a model in words: what its numbers let one say of the image, the report and the order of options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from overread.reporting.beyond import layer_statements
from overread.reporting.conclusion import OPPONENTS, Conclusion, conclude
from overread.reporting.contrasts import (
    NEARLY_ALWAYS,
    NOT_COMPETENCE,
    Statement,
    Tables,
    beside,
    cautions,
    difference_of,
    gains,
    signed,
    swaps,
)
from overread.reporting.effect_words import effects
from overread.reporting.evidence import Answer, Evidence
from overread.reporting.rows import number
from overread.reporting.words import capital, count, listed, percent
from overread.settings.report import Report

OFTEN_UNREAD = 0.05
"""From this share of answers that could not be used on, a setting is named for it."""


ASPECTS = ("image", "report-effect", "report", "order", "layers", "other", "accuracy", "constant", "unread")
"""The order in which things are said."""


@dataclass(frozen=True)
class Judgement:
    """All that is said of one model on one dataset: what is concluded, and statements that describe it."""

    dataset: str
    model: str
    conclusion: Conclusion
    statements: tuple[Statement, ...]

    @property
    def headline(self) -> str:
        return self.conclusion.words.headline

    @property
    def main(self) -> tuple[Statement, ...]:
        """The statements that stand in brief below the conclusion."""
        return tuple(one for one in self.statements if one.aspect in ("image", "report-effect", "order"))

    @property
    def caveats(self) -> tuple[str, ...]:
        """What to keep in mind, each once."""
        return tuple(dict.fromkeys(caveat for statement in self.statements for caveat in statement.caveats))


def judge(dataset: str, model: str, tables: Tables, spec: Mapping[str, Any]) -> Judgement:
    """The verdict on `model` from its rows.

    spec  the report's: settings, comparisons, effects, statistics and models are read
    """
    own = tables.of(dataset, model)
    sampled = bool((spec["models"].get(model, {}).get("decoding") or {}).get("temperature") or 0)
    statements = [
        *gains(own, spec),
        *swaps(own, spec, sampled=sampled),
        *effects(own, spec),
        *layer_statements(own),
        *_opponents(own, spec),
        *_constant(own),
        *_unread(own),
    ]
    statements.sort(key=lambda one: (ASPECTS.index(one.aspect), one.beside))
    conclusion = conclude(dataset, model, own, spec)
    return Judgement(dataset, model, conclusion, tuple(statements))


# -- accuracy against what does not see the image --------------------------------------------------------------------


def _opponents(own: Tables, spec: Mapping[str, Any]) -> list[Statement]:
    """A statement per setting with the study's own image and opponent: balanced within each finding."""
    statements = []
    for row in own.gain:
        setting, evidence = spec["settings"][row["setting"]], Evidence.of(row, "gain")
        answer, what = evidence.against(), OPPONENTS[row["opponent"]]
        title = f"{row['setting']}: whether it does better than {what}"
        if answer in (Answer.MORE, Answer.LESS):
            title = f"{row['setting']}: does {'better' if answer is Answer.MORE else 'worse'} than {what}"
        text = (
            f"Balanced accuracy within each finding, averaged over findings: {percent(number(row['balanced_within']))} "
            f"with the image{beside(setting)}, {percent(number(row['opponent_balanced']))} {what}: a difference of "
            f"{difference_of(evidence)}, over {count(number(row['questions']) or 0, 'question')} answered both times."
        )
        if answer is Answer.CANNOT_TELL:
            text += f" {evidence.why_not()}"
        caveats = ((NOT_COMPETENCE,) if setting[Report].shown else ()) + cautions(evidence)
        statements.append(Statement("accuracy", row["setting"], answer, title, text, caveats, number=signed(evidence)))
    return statements


# -- what stands out in single settings ------------------------------------------------------------------------------


def _constant(own: Tables) -> list[Statement]:
    found: dict[str, dict[str, float]] = {}
    for row in own.positions:
        share = number(row["chosen_share"])
        if share is not None and share >= NEARLY_ALWAYS:
            found.setdefault(row["position"], {})[row["setting"]] = share
    if not found:
        return []
    told = []
    for position, shares in sorted(found.items()):
        least = percent(min(shares.values())) + (" or more" if len(set(shares.values())) > 1 else "")
        told.append(f"option {position} in {least} of its answers under {listed(sorted(shares))}")
    text = capital(f"{'; '.join(told)}.")
    return [Statement("constant", "positions", Answer.DESCRIPTION, "It gives nearly always the same answer", text)]


def _unread(own: Tables) -> list[Statement]:
    found = []
    for row in own.accuracy:
        counts = {name: number(row[name]) or 0 for name in ("answered", "unparsed", "refused", "truncated")}
        total, lost = sum(counts.values()), sum(counts.values()) - counts["answered"]
        if total and lost / total >= OFTEN_UNREAD:
            found.append(f"{percent(lost / total)} under {row['setting']}")
    if not found:
        return []
    text = f"Unreadable, refused or cut off: {listed(found)}. These count as not correct, and lower the accuracy there."
    return [Statement("unread", "accuracy", Answer.DESCRIPTION, "Many of its answers could not be used", text)]
