"""What a comparison or an effect says of a model, in words.

A comparison is understood by what its two settings differ in, never by its name. Where an interval includes 0, or too
few patients stand behind it, the verdict is that it cannot be told; and each says what its number does not mean.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from overread.config import Setting
from overread.reporting.evidence import FEW_PATIENTS, Answer, Evidence, beyond_floor, unseen_share
from overread.reporting.rows import Row, number, where
from overread.reporting.words import capital, count, interval, percent, points
from overread.settings.attention import Hiding
from overread.settings.image import Image
from overread.settings.options import Options
from overread.settings.order import Order
from overread.settings.questions import Questions
from overread.settings.readout import Readout
from overread.settings.report import Report

TOLD = tuple(name for kind in (Image, Report, Hiding, Order, Options, Readout, Questions) for name in kind.model_fields)
"""The fields that these sentences speak of. Where another is changed, the two settings are told by their names."""

FEW = 0.05
"""Below this share of answers that move, they are said to be few, however sure it is that some do."""
NEARLY_ALWAYS = 0.95
"""From this share of one answer on, a model is said to give nearly always the same."""

NOT_COMPETENCE = "Accuracy beside a report is no measure of reading the image: the report may hold the answer."
NOT_FROZEN = (
    "An answer that stays the same does not prove that the image went unused: what lies below it may have moved."
)
NOT_AN_ERROR = "A flip is not a mistake: the other image may show something else."
USED_NOT_READ = "That an image makes a difference shows that it is used, not that it is read well."
SENSIBLE = (
    "Leaning on a report can be sensible, since an expert wrote it; where the task is to read this very image, it "
    "hides what the model can see."
)


@dataclass(frozen=True)
class Tables:
    """The rows that a verdict is drawn from, of all datasets and models."""

    accuracy: Sequence[Row]
    flips: Sequence[Row]
    effects: Sequence[Row]
    positions: Sequence[Row]
    significance: Sequence[Row] = ()
    layers: Sequence[Row] = ()
    verdicts: Sequence[Row] = ()
    following: Sequence[Row] = ()
    gain: Sequence[Row] = ()
    grounding: Sequence[Row] = ()
    sight: Sequence[Row] = ()

    def of(self, dataset: str, model: str) -> Tables:
        parts = (getattr(self, field.name) for field in fields(self))
        return Tables(*(where(rows, dataset=dataset, model=model) for rows in parts))


@dataclass(frozen=True)
class Statement:
    """One thing said of a model.

    aspect  accuracy, image, report, report-effect, order, layers, constant, unread or other
    about   the comparison, effect or setting that it rests on
    beside  whether a report stood beside the image; of aspect image
    number  its estimate with its interval; empty for a description
    """

    aspect: str
    about: str
    answer: Answer
    title: str
    text: str
    caveats: tuple[str, ...] = ()
    number: str = ""
    beside: bool = False


# -- what a comparison compares --------------------------------------------------------------------------------------


def contrast(a: Setting, b: Setting) -> str:
    """What alone two settings differ in.

    returns  image (one shows the study's own, the other not), report, order (of the options) or other
    """
    differing = a.difference(b).keys()
    if not (a.is_plain(*TOLD) and b.is_plain(*TOLD)):
        return "other"
    if differing and differing <= Image.model_fields.keys() and a[Image].own != b[Image].own:
        return "image"
    if differing == {"report"}:
        return "report"
    orders = (a[Options].options, b[Options].options)
    return "order" if differing == {"options"} and "as-written" in orders else "other"


def beside(setting: Setting) -> str:
    """Beside which report, or without one, as the end of a clause."""
    return f" beside {setting.words_of(Report)}" if setting[Report].shown else " without a report"


# -- differences in accuracy -----------------------------------------------------------------------------------------


def gains(own: Tables, spec: Mapping[str, Any]) -> list[Statement]:
    """A statement for each comparison of accuracy that the model has."""
    statements = []
    for name, comparison in spec["comparisons"].items():
        rows = where(own.effects, effect=name)
        if not comparison.get("accuracy") or not rows:
            continue
        first, second = comparison["accuracy"]
        evidence = Evidence.of(rows[0], "estimate")
        kind = contrast(spec["settings"][first], spec["settings"][second])
        # The side with more to go by comes first, so that a positive difference means what the title says.
        if _lesser(spec["settings"][first], kind) and not _lesser(spec["settings"][second], kind):
            first, second, evidence = second, first, evidence.negated()
        statements.append(_gain(kind, name, first, second, evidence, own, spec))
    return statements


def _lesser(setting: Setting, kind: str) -> bool:
    if kind == "image":
        return not setting[Image].own
    if kind == "report":
        return not setting[Report].shown
    return kind == "order" and setting[Options].options != "as-written"


def _gain(
    kind: str, name: str, first: str, second: str, evidence: Evidence, own: Tables, spec: Mapping[str, Any]
) -> Statement:
    a, b = spec["settings"][first], spec["settings"][second]
    answer = evidence.against()
    caveats: tuple[str, ...] = ()
    if kind == "image":
        arms = ("with the study's own image", b[Image].instead())
        titles = (
            f"It is correct more often with its own image than {b[Image].instead()}{beside(a)}",
            f"It is correct more often {b[Image].instead()} than with its own{beside(a)}",
        )
        matter = f"the image changes its accuracy{beside(a)}"
        caveats = (NOT_COMPETENCE if a[Report].shown else USED_NOT_READ,)
    elif kind == "report":
        arms = (f"with {a.words_of(Report)}", f"with {b.words_of(Report)}")
        titles = ("The report helps", "The report makes it worse")
        matter = "the report changes its accuracy"
        caveats = (NOT_COMPETENCE,)
    elif kind == "order":
        arms = ("with the options as written", f"with {b.words_of(Options)}")
        titles = ("It leans on the order of the options", "It does better when the options change their order")
        matter = "the order of the options changes its accuracy"
    else:
        arms = (f"under {first}", f"under {second}")
        titles = (
            f"Correct more often under {first} than under {second}",
            f"Correct more often under {second} than under {first}",
        )
        matter = f"{first} and {second} differ in accuracy"
    text = f"{_accuracies(own, first, second, arms)}a difference of {difference_of(evidence)}."
    if answer is Answer.NONE:
        text += " Every patient has the same accuracy in both."
    elif answer is Answer.CANNOT_TELL:
        text += f" {evidence.why_not()}"
    if kind == "order":
        text += _first_place(own, first, second, arms)
    image = kind == "image"
    return Statement(
        kind, name, answer, title_of(answer, titles, matter), text, caveats + cautions(evidence),
        number=signed(evidence), beside=image and a[Report].shown,
    )  # fmt: skip


def _accuracies(own: Tables, first: str, second: str, arms: tuple[str, str]) -> str:
    values = [next(iter(where(own.accuracy, setting=name)), None) for name in (first, second)]
    if values[0] is None or values[1] is None:
        return f"Accuracy {arms[0]} against accuracy {arms[1]}: "
    a, b = (number(row["accuracy"]) for row in values if row is not None)
    return f"Correct in {percent(a)} {arms[0]} and in {percent(b)} {arms[1]}: "


def _first_place(own: Tables, first: str, second: str, arms: tuple[str, str]) -> str:
    """How often the first place is chosen, and how often it is correct, in either arm."""
    parts = []
    for name, arm in zip((first, second), arms, strict=True):
        for row in where(own.positions, setting=name, position="1"):
            chosen, gold = number(row["chosen_share"]), number(row["gold_share"])
            if chosen is not None and gold is not None:
                parts.append(
                    f"{arm}, {percent(chosen)} of its answers are the first option, which is correct in {percent(gold)}"
                )
    return f" {capital('; '.join(parts))}." if parts else ""


# -- flips -----------------------------------------------------------------------------------------------------------


def swaps(own: Tables, spec: Mapping[str, Any], *, sampled: bool) -> list[Statement]:
    """A statement for each comparison of flips that the model has.

    sampled  whether the model draws its answers by chance, so that some flips are chance
    """
    statements = []
    in_curves = {row["comparison"] for row in own.layers}
    for name, comparison in spec["comparisons"].items():
        rows = where(own.flips, comparison=name, group="all")
        if not comparison.get("flips") or not rows or name in in_curves:
            continue
        if comparison["flips"][0] == comparison["flips"][1]:
            statements.append(_rerun(name, rows[0], comparison["flips"][0], spec))
        else:
            statements.append(_swap(name, rows[0], own, spec, sampled=sampled))
    return statements


def _rerun(name: str, row: Row, setting: str, spec: Mapping[str, Any]) -> Statement:
    """A setting against itself: how often answers change when nothing is changed but the run."""
    evidence = Evidence.of(row, "flip_rate")
    answer = evidence.against()
    titles = {Answer.MORE: "Its answers change by themselves", Answer.NONE: "No answer changes by itself"}
    text = (
        f"{rate(evidence)} of its answers under {setting} change when the same is asked again "
        f"({count(number(row['pairs']) or 0, 'pair')}, {count(evidence.patients, 'patient')})."
    )
    if answer is Answer.NONE:
        limit = unseen_share(evidence.patients, spec["statistics"]["level"])
        text += f" Up to {percent(limit)} of such patients could still show a change."
    elif answer is Answer.CANNOT_TELL:
        text += f" {evidence.why_not()}"
    title = titles.get(answer, "Whether its answers change by themselves")
    return Statement("other", name, answer, title, text, cautions(evidence), number=rate(evidence))


def _swap(name: str, row: Row, own: Tables, spec: Mapping[str, Any], *, sampled: bool) -> Statement:
    first, second = spec["comparisons"][name]["flips"]
    a, b = spec["settings"][first], spec["settings"][second]
    image = contrast(a, b) == "image"
    given, other = (b, a) if image and b[Image].own else (a, b)
    evidence = Evidence.of(row, "flip_rate")
    answer = beyond_floor(row, evidence)
    what = f"when {other[Image].replaced()},{beside(given)}" if image else f"between {first} and {second}"
    matter = (
        f"its answers move with the image{beside(given)}"
        if image
        else f"its answers differ between {first} and {second}"
    )
    text = (
        f"{rate(evidence)} of its answers change {what} "
        f"({count(number(row['pairs']) or 0, 'pair')}, {count(evidence.patients, 'patient')})."
    )
    caveats: list[str] = []
    if image and other[Image].shows_the_study():
        text += _follows(name, own)
    if answer is Answer.MORE:
        few = (evidence.estimate or 0.0) < FEW
        title = f"Few answers move with the image{beside(given)}" if image and few else capital(matter)
        if image:
            caveats.append(NOT_AN_ERROR)
    elif answer is Answer.NONE:
        title = (
            f"No answer moves with the image{beside(given)}"
            if image
            else f"No answer differs between {first} and {second}"
        )
        limit = unseen_share(evidence.patients, spec["statistics"]["level"])
        text += (
            " The interval has no width, since no patient showed a flip; up to "
            f"{percent(limit)} of such patients could still show one."
        )
    else:
        title = f"Whether {matter}"
        text += (
            " That is not clear of the noise floor." if evidence.against() is Answer.MORE else f" {evidence.why_not()}"
        )
    if number(row.get("floor")) is not None:
        low, high = number(row["floor_low"]), number(row["floor_high"])
        text += f" When the same is asked again, {percent(number(row['floor']))} {interval(low, high)} change."
    text += _margins(row)
    if image and answer is not Answer.MORE:
        caveats.append(NOT_FROZEN)
    yes = [share for share in (number(row["yes_rate_a"]), number(row["yes_rate_b"])) if share is not None]
    if len(yes) == 2:
        text += f" It says yes in {percent(yes[0])} under {first} and in {percent(yes[1])} under {second}."
    if any(share >= NEARLY_ALWAYS or share <= 1 - NEARLY_ALWAYS for share in yes):
        caveats.append(
            "Where nearly every answer is the same, few can flip: a low rate then says little about the image."
        )
    if sampled and number(row.get("floor")) is None:
        caveats.append("This model draws its answers by chance (temperature above 0), and some flips are that chance.")
    return Statement(
        "image" if image else "other", name, answer, title, text, (*caveats, *cautions(evidence)),
        number=rate(evidence), beside=image and given[Report].shown,
    )  # fmt: skip


def _follows(name: str, own: Tables) -> str:
    """How far answers move towards what the shown picture says, within each finding; empty where that is not known."""
    for row in where(own.following, comparison=name, group="all"):
        evidence = Evidence.of(row, "following")
        if evidence.estimate is None:
            continue
        towards, away = (percent(number(row[column])) for column in ("towards", "away"))
        return (
            f" Where the correct answer differs between the two images, {towards} of the answers move towards what the "
            f"shown image says and {away} away from it: a difference of {signed(evidence)}."
        )
    return ""


def _margins(row: Row) -> str:
    mean, moved = number(row["mean_abs_margin_change"]), number(row["margin_moved_over_0_5"])
    if mean is None or moved is None:
        return " It gives no log-probabilities, so that what lies below the answer is unknown."
    return (
        f" The log-probability margin moves by {mean:.2f} on average; {percent(moved)} of the pairs move by over 0.5."
    )


# -- pieces of sentences -----------------------------------------------------------------------------------------------


def title_of(answer: Answer, titles: tuple[str, str], matter: str) -> str:
    if answer is Answer.MORE:
        return titles[0]
    if answer is Answer.LESS:
        return titles[1]
    return f"{'No sign that' if answer is Answer.NONE else 'Whether'} {matter}"


def rate(evidence: Evidence) -> str:
    """A share with its interval: `20.9 % [19.7, 22.1]`."""
    return f"{percent(evidence.estimate)} {interval(evidence.low, evidence.high)}".strip()


def signed(evidence: Evidence) -> str:
    """A difference with its interval: `+16.7 points [15.6, 17.7]`."""
    if evidence.estimate is None:
        return ""
    return f"{points(evidence.estimate)} {interval(evidence.low, evidence.high)}".strip()


def difference_of(evidence: Evidence) -> str:
    return f"{signed(evidence) or 'unknown size'} over {count(evidence.patients, 'patient')}"


def cautions(evidence: Evidence) -> tuple[str, ...]:
    """What to keep in mind about an interval of few patients."""
    if not evidence.few:
        return ()
    return (f"With fewer than {FEW_PATIENTS} patients the interval is likely to be too narrow.",)
