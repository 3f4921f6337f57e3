"""What code checks of a generated question, whatever its author and its validator say of it.

A check returns why a question fails, in words with the text that made it fail, or None. `CHECKS` is their order: a
question is dropped by the first that it fails, and counted there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from itertools import combinations

from overread.core.text import normalise, plain
from overread.curation.candidates import Wording
from overread.curation.evidence import Match, find, quotations
from overread.curation.measures import Size, distance, size_of, told_apart_by_words
from overread.curation.rules import Rules, first, hits

OPTIONS = 4

Check = Callable[[Wording, Rules], str | None]


def four_distinct_options(asked: Wording, rules: Rules) -> str | None:
    """Four options that differ in more than case, punctuation, spelling and numbering."""
    del rules
    if len(asked.options) != OPTIONS:
        return f"{len(asked.options)} options"
    forms = [normalise(option) for option in asked.options]
    if not all(forms):
        return "an empty option"
    twice = [option for option, form in zip(asked.options, forms, strict=True) if forms.count(form) > 1]
    return f"the same option twice: {' | '.join(twice)}" if twice else None


def answer_among_options(asked: Wording, rules: Rules) -> str | None:
    """The answer is the text of one of the options."""
    del rules
    return None if answer_of(asked) is not None else f"{asked.answer!r} is no option"


def answer_of(asked: Wording) -> str | None:
    """The option that the answer names, as the option is written, or None. A bare number or letter names none."""
    wanted = normalise(asked.answer)
    found = [option for option in asked.options if normalise(option) == wanted]
    return found[0] if wanted and len(found) == 1 else None


def no_forbidden_phrase(asked: Wording, rules: Rules) -> str | None:
    """No reference to the report, no answer that is none, and no option that names another by its place."""
    for part in (asked.stem, *asked.options):
        if found := hits(part, rules.forbidden):
            return f"{found[0]!r} in {part!r}"
    for option in asked.options:
        if _BY_PLACE.search(option):
            return f"{option!r} names other options by their place"
    if _OPTIONS_IN_STEM.search(asked.stem):
        return "the stem holds options"
    return None


_BY_PLACE = re.compile(
    r"(?i)\b(?:both|either|neither|options?|choices?)\s+\(?(?:[1-4]|[A-D])\)?\s*(?:and|or|nor|&|,)\s*\(?(?:[1-4]|[A-D])\)?(?![\w.])"
)
_OPTIONS_IN_STEM = re.compile(r"(?s)(?<!\w)1[).]\s.*(?<!\w)2[).]\s.*(?<!\w)3[).]\s")


def dimension_named(asked: Wording, rules: Rules) -> str | None:
    """Where the options are sizes, the stem says of which dimensions, as many as the options have."""
    sizes = _sizes(asked, rules)
    if sizes is None:
        return None
    counts = {len(size.axes) for size in sizes if size.unit}
    if len(counts) > 1:
        return f"options of {' and '.join(map(str, sorted(counts)))} dimensions"
    count = counts.pop()
    if count == 1:
        named = hits(asked.stem, rules.dimensions.names) or _axes(asked.stem, rules)
        return None if named else "sizes of one dimension, and the stem does not say which"
    axes = _axes(asked.stem, rules)
    if len(axes) == count:
        return None
    said = f"{len(axes)} ({', '.join(axes)})" if axes else "none"
    return f"sizes of {count} dimensions, and the stem names {said}"


def _axes(stem: str, rules: Rules) -> list[str]:
    """The axes that a stem lists in their order: DIMENSION: (AP x transverse x CC)."""
    known = {normalise(axis) for axis in rules.dimensions.axes}
    listed = re.findall(r"\(([^()]*)\)|dimensions?\s*:\s*\(?([^()?]*)", plain(stem))
    best: list[str] = []
    for one, two in listed:
        parts = [
            part
            for part in re.split(r"\s+(?:x|by|and)\s+|[,;/*]|\s+x(?=\S)|(?<=[^\s])x\s+", one or two)
            if part.strip()
        ]
        words = [normalise(part) for part in parts]
        if words and all(word in known for word in words) and len(words) > len(best):
            best = words
    return best


def sizes_spaced(asked: Wording, rules: Rules) -> str | None:
    """Any two sizes among the options are far enough apart for only one of them to be right within the margin."""
    sizes = {option: size for option in asked.options if (size := size_of(option)) is not None}
    if sum(bool(size.unit) for size in sizes.values()) < 2:
        return None
    least, why = _least_distance(asked.stem, list(sizes.values()), rules)
    for (text, one), (other, two) in combinations(sizes.items(), 2):
        if not told_apart_by_words(one, two) and distance(one, two) < least:
            return f"{text} and {other} are {_plain(distance(one, two))} mm apart; {why} need {_plain(least)} mm"
    return None


def _least_distance(stem: str, sizes: list[Size], rules: Rules) -> tuple[Decimal, str]:
    """The distance for what the stem names first: the midline shift due to a mass, a mass that causes a shift."""
    spacing = rules.spacing
    things: list[tuple[tuple[str, ...], Decimal | None, str]] = [
        (spacing.small_structures, spacing.small, "small structures"),
        (spacing.large_structures, spacing.large, "midline shift and large structures"),
        (rules.location.lesions, None, ""),
    ]
    places = [first(stem, terms, rules.location.but) for terms, _, _ in things]
    named = [(place, number) for number, place in enumerate(places) if place is not None]
    if named:
        _, least, why = things[min(named)[1]]
        if least is not None:
            return least, why
    if any(size.unit == "cm" for size in sizes):
        return spacing.cm, "sizes in cm"
    return spacing.mm, "sizes in mm"


def _sizes(asked: Wording, rules: Rules) -> list[Size] | None:
    """The options as sizes, or None where they are not all sizes: `mild (5 mm)` is told by its word."""
    sizes = [size_of(option) for option in asked.options]
    sized = [size for size in sizes if size is not None and size.unit]
    if len(sized) < 2 or len(sized) + sizes.count(_NOTHING) < len(sizes):
        return None
    about_size = _size_words(rules.dimensions.names + rules.dimensions.axes)
    alike = len({size.words for size in sized}) == 1
    return sized if alike or all(about_size.issuperset(size.words) for size in sized) else None


_NOTHING = size_of("none")


@cache
def _size_words(names: tuple[str, ...]) -> frozenset[str]:
    return frozenset(word for name in names for word in normalise(name).split()) | _DIRECTIONS


_DIRECTIONS = {
    "left", "right", "to", "in", "midline", "leftward", "rightward", "anterior", "posterior", "superior", "inferior",
    "x", "by", "from",
}  # fmt: skip


def lesion_located(asked: Wording, rules: Rules) -> str | None:
    """A stem about a lesion names a side or a place, unless it is the place that it asks for."""
    lesions = hits(asked.stem, rules.location.lesions, rules.location.but)
    if not lesions or hits(asked.stem, rules.location.places) or hits(asked.stem, rules.location.asks_where):
        return None
    return f"{lesions[0]!r} without a side or a place"


CHECKS: Mapping[str, Check] = {
    "options": four_distinct_options,
    "answer": answer_among_options,
    "forbidden": no_forbidden_phrase,
    "dimension": dimension_named,
    "spacing": sizes_spaced,
    "location": lesion_located,
}
"""What a wording alone is checked for. Evidence is checked against the report, before these."""


@dataclass(frozen=True)
class Grounds:
    """Where a question's evidence stands in the report, or why it was not accepted."""

    matches: tuple[Match, ...]
    problem: str | None = None

    @property
    def score(self) -> float:
        """The score of the quotation that is least like the report."""
        return min((match.score for match in self.matches), default=0.0)

    @property
    def sections(self) -> tuple[str, ...]:
        return tuple(sorted({match.section for match in self.matches}))

    @property
    def text(self) -> str:
        """The sentences of the report, each once, in the order they were quoted."""
        return " ".join(dict.fromkeys(match.sentence for match in self.matches))


def evidence_in_report(evidence: tuple[str, ...], reasoning: str, report: Mapping[str, str], rules: Rules) -> Grounds:
    """Every quotation is found in Findings or Impression, none differs in a number, a side or a negation."""
    quoted = quotations(evidence, reasoning)
    if not quoted:
        return Grounds((), "nothing is quoted")
    matches = tuple(find(quotation, report) for quotation in quoted)
    for quotation, match in zip(quoted, matches, strict=True):
        if match.score < rules.evidence.score:
            return Grounds(matches, f"not in the report (score {match.score:.0f}): {quotation}")
        if match.difference:
            return Grounds(matches, f"differs from the report ({match.difference}): {quotation}")
    return Grounds(matches)


def _plain(number: Decimal) -> str:
    return f"{number.normalize():f}"
