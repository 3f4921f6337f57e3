"""The sentences of a report's section, whose lines may be wrapped in the middle of one."""

from __future__ import annotations

import re
from collections.abc import Iterator

from overread.core.text import sentences as in_line

SHORT = 0.6
"""A line that is shorter than this share of the longest was not wrapped there: its end ends a sentence."""

_ITEM = re.compile(r"\s*(?:\d{1,2}[.)]\s|[-*•]\s)")


def paragraphs(text: str) -> Iterator[str]:
    """The stretches of a section in which sentences run on: wrapped lines joined, items of a list each by itself."""
    lines = [line.strip() for line in text.split("\n")]
    longest = max((len(line) for line in lines), default=0)
    joined, last = "", ""
    for line in lines:
        if joined and (not line or _ITEM.match(line) or _ends(last, line, longest)):
            yield joined
            joined = ""
        joined = f"{joined} {line}".strip()
        last = line
    if joined:
        yield joined


def _ends(line: str, following: str, longest: int) -> bool:
    """Whether a new sentence begins in the line that follows: what was wrapped fills its line."""
    return len(line) < SHORT * longest and not following[:1].islower()


def sentences(text: str) -> list[str]:
    """The sentences of a section, in order, without its line breaks."""
    return [sentence for paragraph in paragraphs(text) for sentence in in_line(paragraph)]
