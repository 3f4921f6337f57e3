"""Numbers and settings in words, as the report writes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

SPACE = "\N{NO-BREAK SPACE}"
MINUS = "\N{MINUS SIGN}"

SOURCES = {
    "own": "the study's own image",
    "substitute": "another study's image",
    "black": "a black image",
}
REPORTS = {
    "none": "no report",
    "full": "the whole report",
    "neutral": "neutral prose of the same length in place of the report",
    "boilerplate": "clinical boilerplate in place of the report",
    "without-finding": "the report without the sentences that mention the finding",
    "with-answer": "the report with a sentence that states the correct answer",
    "substitute": "another study's report",
}
READOUTS = {
    "choice": "the model names one of the options",
    "yes-no": "the model answers yes or no",
    "first-token": "yes against no is read from the probabilities of the first token",
    "free-text": "the model answers in its own words",
    "similarity": "the option whose text lies nearest to the image is taken",
}


def percent(share: float | None, digits: int = 1) -> str:
    """`83.3 %` of 0.833; a dash for none."""
    return "\N{EN DASH}" if share is None else f"{signless(100 * share, digits)}{SPACE}%"


def points(difference: float, digits: int = 1) -> str:
    """`+16.7 points` of 0.167."""
    value = round(100 * difference, digits)
    sign = MINUS if value < 0 else "+" if value > 0 else ""
    return f"{sign}{abs(value):.{digits}f}{SPACE}points"


def signless(value: float, digits: int) -> str:
    """A number with a true minus sign, and never -0.0."""
    rounded = round(value, digits)
    return f"{MINUS if rounded < 0 else ''}{abs(rounded):.{digits}f}"


def interval(low: float | None, high: float | None, digits: int = 1) -> str:
    """`[19.7, 22.1]`, unbreakable, of 0.197 and 0.221, in per cent or points; empty if there is none."""
    if low is None or high is None:
        return ""
    return f"[{signless(100 * low, digits)},{SPACE}{signless(100 * high, digits)}]"


def count(number: float | int, singular: str, plural: str | None = None) -> str:
    """`1 patient`, `1,234 patients`."""
    return f"{int(number):,}{SPACE}{singular if int(number) == 1 else plural or singular + 's'}"


def listed(items: list[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return items[0] if len(items) == 1 else ", ".join(items[:-1]) + " and " + items[-1] if items else ""


def image_of(setting: Mapping[str, Any]) -> str:
    """What a setting shows: `the study's own image (frontal)`, `a black image`, `no image`."""
    if setting["images"] == "none":
        return "no image"
    if setting["source"] == "black":
        return SOURCES["black"]
    return f"{SOURCES[setting['source']]} ({setting['images']})"


def options_of(setting: Mapping[str, Any]) -> str:
    order = setting["options"]
    if order.startswith("rotated-"):
        return f"options rotated by {order.removeprefix('rotated-')}"
    return "options in a shuffled order" if order == "shuffled" else "options as written"


def report_of(setting: Mapping[str, Any]) -> str:
    text = REPORTS.get(setting["report"], f"the report as the template report-{setting['report']} makes it")
    if setting["warning"]:
        text += ", with a warning that it may be wrong"
    mode, _, layer = setting["attention"].partition("-")
    if mode == "from":
        text += f", hidden from the model's attention from layer {layer} on"
    elif mode == "only":
        text += f", hidden from the model's attention in layer {layer} alone"
    return text


def readout_of(setting: Mapping[str, Any]) -> str:
    return READOUTS[setting["readout"]]


def describe(setting: Mapping[str, Any]) -> str:
    """A setting as one sentence: what is shown, and how the answer is read."""
    parts = [image_of(setting), report_of(setting), options_of(setting)]
    if setting["order"] == "text-first":
        parts.append("the text before the image")
    if setting["questions"] == "one-per-study":
        parts.append("one question a study")
    return capital(f"{'; '.join(parts)}; {readout_of(setting)}.")


def capital(text: str) -> str:
    """The text as a sentence begins; names that start it are kept as they are otherwise."""
    return text[:1].upper() + text[1:]
