"""Where a question's evidence stands in a text, word for word.

Spaces and line breaks may differ: they are brought to one form when questions are made. Nothing else may, and where a
sentence is not found, the page says so and marks nothing in its place.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from overread.core.text import sentences


@dataclass(frozen=True)
class Marked:
    """Texts by name as stretches (text, whether it is evidence), and the evidence that is in none of them."""

    sections: dict[str, list[tuple[str, bool]]]
    missing: tuple[str, ...]

    @property
    def found(self) -> bool:
        return any(is_evidence for parts in self.sections.values() for _, is_evidence in parts)


def mark(texts: Mapping[str, str], evidence: str) -> Marked:
    """Every occurrence of the evidence, as a whole; else every occurrence of each of its sentences."""
    spans: dict[str, list[tuple[int, int]]] = {name: [] for name in texts}
    missing = []
    for wanted in [evidence] if _occurs(texts, evidence) else _sentences(evidence):
        pattern = _pattern(wanted)
        places = {name: [match.span() for match in pattern.finditer(text)] for name, text in texts.items()}
        if not any(places.values()):
            missing.append(wanted)
        for name, found in places.items():
            spans[name].extend(found)
    return Marked({name: _stretches(text, spans[name]) for name, text in texts.items()}, tuple(missing))


def _occurs(texts: Mapping[str, str], evidence: str) -> bool:
    return bool(evidence.split()) and any(_pattern(evidence).search(text) for text in texts.values())


def _sentences(evidence: str) -> list[str]:
    return [part for part in sentences(evidence) if part.split()]


def _pattern(wanted: str) -> re.Pattern[str]:
    """The words in their order with any space between them, and not inside longer words."""
    return re.compile(r"(?<!\w)" + r"\s+".join(map(re.escape, wanted.split())) + r"(?!\w)")


def _stretches(text: str, spans: list[tuple[int, int]]) -> list[tuple[str, bool]]:
    parts, place = [], 0
    for start, end in sorted(spans):
        if end <= place:
            continue
        start = max(start, place)
        if start > place:
            parts.append((text[place:start], False))
        parts.append((text[start:end], True))
        place = end
    if place < len(text):
        parts.append((text[place:], False))
    return parts
