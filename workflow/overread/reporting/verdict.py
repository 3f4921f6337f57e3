"""The verdict on a model in words: what its numbers let one say of the image, the report and the order of options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from overread.reporting.beyond import layer_statements, sentence
from overread.reporting.contrasts import (
    NEARLY_ALWAYS,
    NOT_COMPETENCE,
    Statement,
    Tables,
    beside,
    cautions,
    gains,
    rate,
    swaps,
)
from overread.reporting.effect_words import effects
from overread.reporting.evidence import Answer, Evidence
from overread.reporting.rows import number, where
from overread.reporting.words import capital, count, listed, percent
from overread.settings.image import Image
from overread.settings.options import Options
from overread.settings.report import Report

OFTEN_UNREAD = 0.05
"""From this share of answers that could not be used on, a setting is named for it."""


USES = (
    ("Shows no use of the image", Answer.NONE),
    ("Cannot tell whether it uses the image", Answer.CANNOT_TELL),
    ("Use of the image was not tested", Answer.DESCRIPTION),
    ("Reacts to the image; whether it reads it cannot be told", Answer.MORE),
    ("Uses the image", Answer.MORE),
)
"""What a headline begins with, from the least use of the image to the most, and what it amounts to."""
NO_USE, UNTOLD, UNTESTED, REACTS, USED = (words for words, _ in USES)

ASPECTS = ("image", "report-effect", "report", "order", "layers", "other", "accuracy", "constant", "unread")
"""The order in which things are said."""


@dataclass(frozen=True)
class Judgement:
    """All that is said of one model on one dataset."""

    dataset: str
    model: str
    headline: str
    sentence: str
    """Whether its answers depend on the image beyond the noise floor, by the adjusted tests; empty without a swap."""
    statements: tuple[Statement, ...]

    @property
    def rank(self) -> int:
        """How much use of the image is shown, as a place in `USES`."""
        return next(place for place, (words, _) in enumerate(USES) if self.headline.startswith(words))

    @property
    def use(self) -> Answer:
        """Whether any use of the image is shown."""
        return USES[self.rank][1]

    @property
    def main(self) -> tuple[Statement, ...]:
        """The statements that the headline rests on."""
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
        *_baselines(own, spec),
        *_constant(own),
        *_unread(own),
    ]
    statements.sort(key=lambda one: (ASPECTS.index(one.aspect), one.beside))
    beyond = sentence(own, spec)
    return Judgement(dataset, model, _headline(statements), beyond, tuple(statements))


# -- accuracy against its baselines ----------------------------------------------------------------------------------


def _baselines(own: Tables, spec: Mapping[str, Any]) -> list[Statement]:
    """Of each setting with the study's own image that an accuracy comparison uses (else any), or of those there are."""
    comparisons = spec["comparisons"].values()
    names = {name for one in comparisons for name in one.get("accuracy") or ()}
    names = names or {name for one in comparisons for name in one.get("flips") or ()}
    rows = [row for row in own.accuracy if spec["settings"][row["setting"]][Image].own] or list(own.accuracy)
    statements = []
    for row in [row for row in rows if row["setting"] in names] or rows:
        setting, evidence = spec["settings"][row["setting"]], Evidence.of(row, "accuracy")
        shares = {
            place["position"]: number(place["gold_share"]) or 0.0
            for place in where(own.positions, setting=row["setting"])
        }
        chance, first = number(row["chance"]), number(row["always_first"])
        commonest = max(shares, key=lambda place: shares[place], default="1")
        best = max(chance or 0.0, first or 0.0, shares.get(commonest, 0.0))
        answer = evidence.against(best)
        than = "answering without looking"
        title = f"{row['setting']}: whether it does better than {than}"
        if answer in (Answer.MORE, Answer.LESS):
            title = f"{row['setting']}: {'better' if answer is Answer.MORE else 'worse'} than {than}"
        asked = [count(number(row["questions"]) or 0, "question"), count(evidence.patients, "patient")]
        asked += [count(number(row["runs"]) or 1, "run")]
        shown = "" if setting[Image].own else f" {setting[Image].instead()}"
        text = (
            f"Correct in {rate(evidence)} of the answers"
            f"{shown}{beside(setting)}, {setting.words_of(Options)} ({', '.join(asked)}). "
            f"Without looking: by chance, {percent(chance)}; always the first option, {percent(first)}"
        )
        if commonest != "1" and shares[commonest] > (first or 0.0):
            text += f"; always option {commonest}, {percent(shares[commonest])}"
        text += "."
        if answer in (Answer.CANNOT_TELL, Answer.NONE):
            text += f" {evidence.why_not(f'the best of these, {percent(best)}')}"
        caveats = ((NOT_COMPETENCE,) if setting[Report].shown else ()) + cautions(evidence)
        statements.append(Statement("accuracy", row["setting"], answer, title, text, caveats, number=rate(evidence)))
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


# -- the headline, and pieces of sentences ---------------------------------------------------------------------------


def _headline(statements: Sequence[Statement]) -> str:
    """What is first said of a model: whether it uses the image, then what bends its answers.

    What it does without a report counts; only where that was not asked, what it does beside one.
    """
    about_image = [one for one in statements if one.aspect == "image"]
    alone = [one for one in about_image if not one.beside]
    parts = [_use_of_image(alone or about_image) + ("" if alone or not about_image else " beside a report")]
    if any(one.answer is Answer.LESS for one in about_image):
        parts.append("is correct more often without its image in at least one comparison")
    if any(one.aspect == "report-effect" and one.answer is Answer.MORE for one in statements):
        parts.append("follows it less once the report is there")
    if any(one.aspect == "order" and one.answer is Answer.MORE for one in statements):
        parts.append("leans on the order of the options")
    if any(one.aspect == "constant" for one in statements):
        parts.append("gives nearly always the same answer in at least one setting")
    return "; ".join(parts)


def _use_of_image(statements: Sequence[Statement]) -> str:
    if not statements:
        return UNTESTED
    if any(one.reads for one in statements):
        return USED
    if any(one.answer is Answer.MORE for one in statements):
        return REACTS
    if all(one.answer is Answer.NONE for one in statements):
        return NO_USE
    return UNTOLD
