"""Lengths in the text of an option: `3.1 x 2.9 x 3.8 cm`, `9 mm right to left`, `1-2 cm`, `less than 5 mm`, `none`.

Millimetres as exact decimals, so that 2.1 cm and 3.1 cm are 10 mm apart and not 9.999.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal

from overread.core.text import plain

Interval = tuple[Decimal, Decimal]

INFINITE = Decimal("Infinity")
_IN_MM = {"mm": Decimal(1), "cm": Decimal(10)}

_NUMBER = r"\d+(?:[.,]\d+)?"
_UNIT = r"(?:mm|cm|millimet(?:er|re)s?|centimet(?:er|re)s?)(?:\b|(?=x\s*\d))"
# An axis between a number and what follows it: 3.1 (AP) x 2.9 (TR) cm.
_AXIS_INSIDE = re.compile(
    r"(?<=[\dm])\s*\(?(?:ap|tr|tv|cc|si|ml|lr|rl|anteroposterior|transverse|craniocaudal|axial|coronal|sagittal)\)?"
    rf"(?=\s*(?:x|by|\*)\s*\d|\s*{_UNIT})"
)
_WITH_UNIT = rf"{_NUMBER}(?:\s*-?\s*{_UNIT})?"
_VALUE = rf"{_WITH_UNIT}(?:\s*(?:-|to)\s*{_WITH_UNIT})?"
_LENGTH = re.compile(
    r"(?P<than><=?|>=?|(?:less|smaller|fewer|shorter|lower) than|(?:more|greater|larger|longer|higher) than|at least"
    r"|at most|up to|under|over|below|above|no more than)?\s*"
    rf"(?P<values>{_VALUE}(?:\s*(?:x|by|\*)\s*{_VALUE})*)"
)
_ONE = re.compile(
    rf"(?P<low>{_NUMBER})(?:\s*-?\s*(?P<unit1>{_UNIT}))?"
    rf"(?:\s*(?:-|to)\s*(?P<high>{_NUMBER})(?:\s*-?\s*(?P<unit2>{_UNIT}))?)?"
)
_LESS = {
    "<", "<=", "less than", "smaller than", "fewer than", "shorter than", "lower than", "at most", "up to", "under",
    "below", "no more than",
}  # fmt: skip
_BETWEEN = re.compile(rf"\bbetween\s+({_WITH_UNIT})\s+and\b")
_OR_LESS = re.compile(r"^\s*(?:or|and) (?:less|smaller|shorter|lower|below|under)\b")
_OR_MORE = re.compile(r"^\s*(?:or|and) (?:more|greater|larger|longer|higher|above|over)\b|^\s*\+")
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
    text = _AXIS_INSIDE.sub("", _BETWEEN.sub(r"\1 to", plain(option)))
    if _NONE.fullmatch(text.strip(" .")):
        return Size(((Decimal(0), Decimal(0)),), "", ())
    found = [match for match in _LENGTH.finditer(text) if re.search(_UNIT, match["values"])]
    if len(found) != 1:
        return None
    match = found[0]
    units = [_unit(unit) for unit in re.findall(_UNIT, match["values"])]
    before, after = text[: match.start()], text[match.end() :]
    less, more = _OR_LESS.match(after), _OR_MORE.match(after)
    if bound := less or more:
        after = after[bound.end() :]
    axes = []
    for value in _ONE.finditer(match["values"]):
        # A value without a unit takes the next one that is written: 3.1 x 2.9 cm.
        later = re.search(_UNIT, match["values"][value.start() :])
        unit = _unit(later.group()) if later else units[-1]
        low = _mm(value["low"], _unit(value["unit1"]) if value["unit1"] else unit)
        high = _mm(value["high"], _unit(value["unit2"]) if value["unit2"] else unit) if value["high"] else low
        low, high = min(low, high), max(low, high)
        if match["than"] in _LESS or less:
            low = Decimal(0)
        elif match["than"] or more:
            high = INFINITE
        axes.append((low, high))
    words = re.findall(r"[^\W\d_]+", _ABOUT.sub(" ", f"{before} {after}"))
    return Size(tuple(axes), "cm" if "cm" in units else "mm", tuple(words))


def _unit(written: str) -> str:
    return "cm" if written.startswith("c") else "mm"


def _mm(number: str, unit: str) -> Decimal:
    return Decimal(number.replace(",", ".")) * _IN_MM[unit]


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
