"""Lengths in the text of an option: `3.1 x 2.9 x 3.8 cm`, `9 mm right to left`, `1-2 cm`, `less than 5 mm`, `none`.

Millimetres as exact decimals, so that 2.1 cm and 3.1 cm are 10 mm apart and not 9.999.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal

from overread.questions.normalise import plain

Interval = tuple[Decimal, Decimal]

INFINITE = Decimal("Infinity")
_IN_MM = {"mm": Decimal(1), "cm": Decimal(10)}

_NUMBER = r"\d+(?:[.,]\d+)?"
_UNIT = r"(?:mm|cm|millimet(?:er|re)s?|centimet(?:er|re)s?)\b"
_AXIS = r"(?:\s*\(?(?:ap|tr|tv|cc|si|ml|lr|rl|anteroposterior|transverse|craniocaudal|axial|coronal|sagittal)\)?)?"
_VALUE = rf"{_NUMBER}\s*(?:{_UNIT})?(?:\s*(?:-|to)\s*{_NUMBER}\s*(?:{_UNIT})?)?"
_LENGTH = re.compile(
    r"(?P<than><=?|>=?|(?:less|smaller|fewer|shorter|lower) than|(?:more|greater|larger|longer|higher) than|at least"
    r"|at most|up to|under|over|below|above|no more than)?\s*"
    rf"(?P<values>{_VALUE}{_AXIS}(?:\s*(?:x|by|\*)\s*{_VALUE}{_AXIS})*)"
)
_ONE = re.compile(
    rf"(?P<low>{_NUMBER})\s*(?P<unit1>{_UNIT})?(?:\s*(?:-|to)\s*(?P<high>{_NUMBER})\s*(?P<unit2>{_UNIT})?)?"
)
_LESS = {
    "<", "<=", "less than", "smaller than", "fewer than", "shorter than", "lower than", "at most", "up to", "under", "below",
    "no more than",
}  # fmt: skip
_NONE = re.compile(
    r"(?:none|absent|no|0|zero)(?: (?:measurable|significant|midline|shift|deviation|present|seen|displacement))*"
)
_ABOUT = re.compile(
    r"\b(?:about|approximately|approx|around|roughly|circa|ca|nearly|almost|measuring|measures?|of|the|a|an|is|it)\b|~"
)


@dataclass(frozen=True)
class Size:
    """A length, an area's or a body's extents.

    axes   an interval in mm for each dimension; of a single value both ends are equal
    unit   the unit as written: cm if any value has it
    words  what else the option says, in its order: `right to left`, `mild`
    """

    axes: tuple[Interval, ...]
    unit: str
    words: tuple[str, ...]


def size_of(option: str) -> Size | None:
    """The one length that an option states, or None: no unit, no number, or two lengths in one option."""
    text = plain(option)
    if _NONE.fullmatch(text.strip(" .")):
        return Size(((Decimal(0), Decimal(0)),), "", ())
    found = [match for match in _LENGTH.finditer(text) if re.search(_UNIT, match["values"])]
    if len(found) != 1:
        return None
    match = found[0]
    units = [unit[:1] + "m" for unit in re.findall(_UNIT, match["values"])]
    axes = []
    for value in _ONE.finditer(match["values"]):
        # A value without a unit takes the next one that is written: 3.1 x 2.9 cm.
        later = re.search(_UNIT, match["values"][value.start() :])
        unit = later.group()[:1] + "m" if later else units[-1]
        low = _mm(value["low"], (value["unit1"] or "")[:1] + "m" if value["unit1"] else unit)
        high = _mm(value["high"], unit if not value["unit2"] else value["unit2"][:1] + "m") if value["high"] else low
        axes.append(_bounded(min(low, high), max(low, high), match["than"]))
    rest = f"{text[: match.start()]} {text[match.end() :]}"
    words = re.findall(r"[^\W\d_]+", _ABOUT.sub(" ", rest))
    return Size(tuple(axes), "cm" if "cm" in units else "mm", tuple(words))


def _mm(number: str, unit: str) -> Decimal:
    return Decimal(number.replace(",", ".")) * _IN_MM[unit]


def _bounded(low: Decimal, high: Decimal, than: str | None) -> Interval:
    if not than:
        return low, high
    return (Decimal(0), high) if than in _LESS else (low, INFINITE)


def distance(one: Size, two: Size) -> Decimal:
    """How far apart two sizes are, in mm: the widest gap over their dimensions, 0 where intervals touch.

    Sizes of unequal numbers of dimensions are compared over those that both have; nothing (0 mm) has any number.
    """
    gaps = [max(b[0] - a[1], a[0] - b[1], Decimal(0)) for a, b in zip(one.axes, two.axes, strict=False)]
    return max(gaps)


def told_apart_by_words(one: Size, two: Size) -> bool:
    """Whether their words alone make them two answers: `right to left` and `left to right`, `mild` and `severe`.

    An option that only says more than the other (`5 mm`, `5 mm to the left`) is not told apart by that.
    """
    first, second = set(one.words), set(two.words)
    if first == second:
        return one.words != two.words
    return not (first <= second or second <= first)
