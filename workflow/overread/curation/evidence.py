"""Whether a quotation is really in the report.

A quotation may differ from the report in case, punctuation, spacing and a slip of the pen; it may leave something out
where it says so with an ellipsis. It may not differ in a number, a side or a negation, however alike the letters: "no
enhancement" is not "enhancement". The score is the Indel similarity (0 to 100) of the quotation and the stretch of the
report that is most like it (rapidfuzz's partial ratio alignment).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate

from overread.core.text import sentences, words

SIDES = {"left", "right", "bilateral", "bilaterally", "unilateral", "midline", "leftward", "rightward"}
NEGATIONS = {"no", "not", "none", "without", "absent", "negative", "nor", "never", "neither", "cannot", "denies"}
_FEW_WORDS = 2
"""So few words are in any report: they are evidence only as a whole clause, like `No hydrocephalus.`"""

_QUOTED = re.compile(r"[\"“”]([^\"“”]{8,}?)[\"“”]|(?<!\w)['‘]([^'‘’]{8,}?)['’](?!\w)")
_SECTION = re.compile(r"^\s*(?:findings?|impressions?)\s*[:-]\s*", re.IGNORECASE)


@dataclass(frozen=True)
class Match:
    """Where a quotation was found: how alike, in which section, in which sentences of the report, word for word."""

    score: float
    section: str
    sentence: str
    difference: str = ""
    """What may not differ and does: `left / right`. Empty if nothing does."""


def quotations(evidence: Iterable[str], reasoning: str = "") -> list[str]:
    """What was quoted: the evidence, or where there is none the passages between quotation marks in the reasoning.

    A passage with an ellipsis counts as its parts.
    """
    given = [text for text in evidence if text.strip()]
    if not given:
        given = [one or two for one, two in _QUOTED.findall(reasoning)]
    parts = [
        part
        for text in given
        for part in re.split(r"\.{3,}|…|\[\.*\]", _SECTION.sub("", text.strip().strip("\"'“”‘’")))
    ]
    return [part.strip() for part in parts if words(part)]


def find(quotation: str, report: Mapping[str, str]) -> Match:
    """The stretch of the report that is most like a quotation, over its sections. Score 0 if there is none."""
    best = Match(0.0, "", "")
    for section in sorted(report):
        found = _in_section(quotation, section, report[section])
        if (found.score, not found.difference) > (best.score, not best.difference):
            best = found
    return best


def _in_section(quotation: str, section: str, text: str) -> Match:
    from rapidfuzz import fuzz

    parts, spoken, ends = _spoken(text)
    whole, wanted = " ".join(spoken), " ".join(words(quotation))
    if not whole:
        return Match(0.0, section, "")
    if len(wanted.split()) <= _FEW_WORDS:
        return _clause(wanted, section, parts)
    if len(wanted) > len(whole):
        # Else the section would be looked for in the quotation, and a report in a made-up frame would score 100.
        score, start, end = fuzz.ratio(wanted, whole), 0, len(whole)
    else:
        found = fuzz.partial_ratio_alignment(wanted, whole)
        if found is None:
            return Match(0.0, section, "")
        score, start, end = found.score, found.dest_start, found.dest_end
    start, end = _whole_words(whole, start, end)
    touched = [place for place, stop in enumerate(ends) if stop > start and stop - len(spoken[place]) < end]
    sentence = " ".join(parts[place] for place in touched)
    before = whole[ends[touched[0]] - len(spoken[touched[0]]) : start].split() if touched else []
    return Match(float(score), section, sentence, _difference(wanted.split(), whole[start:end].split(), before))


@lru_cache(maxsize=64)  # all questions of a study are held against the same text
def _spoken(text: str) -> tuple[list[str], list[str], list[int]]:
    """The sentences of a section, their words, and where each ends in all the words joined by spaces."""
    parts = sentences(text)
    spoken = [" ".join(words(part)) for part in parts]
    ends = [place - 1 for place in accumulate(len(part) + 1 for part in spoken)]
    return parts, spoken, ends


def _clause(wanted: str, section: str, parts: list[str]) -> Match:
    """The sentence that has these few words between two marks of punctuation."""
    for part in parts:
        if wanted in (" ".join(words(clause)) for clause in re.split(r"[.,;:!?()](?=\s|$)", part)):
            return Match(100.0, section, part)
    return Match(0.0, section, "")


def _whole_words(text: str, start: int, end: int) -> tuple[int, int]:
    """The stretch moved to the ends of words: a word that is cut belongs to it if half of its letters do."""
    return _edge(text, start, start_of_stretch=True), _edge(text, end, start_of_stretch=False)


def _edge(text: str, place: int, *, start_of_stretch: bool) -> int:
    left = text.rfind(" ", 0, place) + 1
    right = text.find(" ", place)
    right = len(text) if right < 0 else right
    if left in (place, place + 1) or right == place:
        return place
    inside = right - place if start_of_stretch else place - left
    keep = 2 * inside >= right - left
    return left if keep == start_of_stretch else right


def _difference(wanted: list[str], found: list[str], before: list[str]) -> str:
    """What a quotation has otherwise than the report in numbers, sides and negations, or "".

    before  the words of the sentence in front of the stretch: a negation right there must not be cut off
    """
    one, two = _critical(wanted), _critical(found)
    if one != two:
        only, missing = sorted((one - two).elements()), sorted((two - one).elements())
        return f"{' '.join(only) or 'nothing'} / {' '.join(missing) or 'nothing'}"
    cut = [word for word in before[-3:] if word in NEGATIONS]
    return f"nothing / {' '.join(cut)}" if cut else ""


def _critical(text: list[str]) -> Counter[str]:
    return Counter(word for word in text if word[0].isdigit() or word in SIDES or word in NEGATIONS)
