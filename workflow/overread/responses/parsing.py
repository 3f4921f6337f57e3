"""From what a model wrote to the option it gave: never by a guess.

Only an explicit answer counts: the whole text or a line of it that is an option, an opening "Yes," or "No,", or a
phrase such as "the answer is". An option is named by its text, or, where the options were listed, by its number or
letter. The last explicit phrase wins; lines that name different options are no answer. What is left is told apart:
refused, truncated, unparsed.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from overread.records import Status

_THINKING = re.compile(r"<think>.*?(?:</think>|$)|<unused94>.*?(?:<unused95>|$)", re.DOTALL)

_CUE = re.compile(
    r"""(?:
        \banswer\b (?:\s+(?:to|for)\s+(?:the|this|your)\s+question)? ["']?
        | \b(?:final|correct|right|best|my|the)\s+(?:option|choice)\b
      )
      \s* (?:\bis\b\s*:? | \bwould\s+be\b | [:=] | -+>?) \s*
      (?:(?:most\s+likely|likely|probably|therefore|clearly)\s+)?
      | \bi(?:'d|'ll|\s+would|\s+will)?\s+(?:choose|select|pick|go\s+with)\s+""",
    re.VERBOSE,
)
_DENIED = re.compile(r"\b(?:not|never|if|whether|unless|wrong|incorrect|cannot|could|might|may)\b|n't\b")
_RIGHT_OPTION = re.compile(r"\b(?:option|choice)\s+(?=\S+\s+is\s+(?:the\s+)?(?:correct|right|best)\b)")

_REFUSAL = re.compile(
    r"""\bi(?:'m|\s+am)\s+(?:sorry|unable|not\s+able)\b
      | \bi\s+(?:can't|cannot|can\s+not|won't|will\s+not|am\s+not\s+qualified)\b
      | \bas\s+an?\s+(?:ai|language\s+model|artificial)\b
      | \b(?:unable|not\s+able|impossible|not\s+possible)\s+to\s+(?:determine|answer|tell|assess|say|view|see|read)\b
      | \bcannot\s+be\s+(?:determined|answered|assessed)\b
      | \bconsult\s+(?:a|your|with)\b""",
    re.VERBOSE,
)
_REFUSING_REASONS = {"refusal", "content_filter"}

_OPEN = re.compile(r"[\s\"'(\[{<$]*(?:(?:option|choice|number)\s+[\"'(\[]*|\#+\s*)?")
_SEPARATOR = re.compile(r"[\s\"')\]}]*[.:)\]-]?[\s\"'(]*")
_CLOSED = re.compile(r"[\"')\]}>$]*(?=\s*(?:$|[,;!?\n]|\.(?!\d))|\s+(?:because|since|as|based|given|due|is)\b)")
_OR_ANOTHER = re.compile(r"[\"')\]}\s]*(?:[,/&|]|\bor\b|\band\b)(?:\s*(?:or|and)\b)?\s*")


def parse(
    text: str, options: Sequence[str], *, listed: bool, finish_reason: str | None = None
) -> tuple[Status, int | None]:
    """Status and place shown of the option that `text` gives.

    options         as shown
    listed          whether they were listed with numbers; without a list a number or a letter means nothing
    finish_reason   `length` tells a text that was cut off before its answer; `refusal` and `content_filter` a refusal
    """
    plain = _plain(_THINKING.sub("", text))
    reader = _Options(options, listed, cut_off=finish_reason == "length")
    place = _explicit(plain, reader)
    if place is not None:
        return "answered", place
    if finish_reason in _REFUSING_REASONS or _REFUSAL.search(plain):
        return "refused", None
    return ("truncated" if finish_reason == "length" else "unparsed"), None


def _plain(text: str) -> str:
    """Small letters, plain quotes and dashes, no Markdown or LaTeX around words."""
    text = unicodedata.normalize("NFKC", text).casefold()
    text = text.translate(str.maketrans("‘’“”–—−", "''\"\"---"))
    text = re.sub(
        r"\\(?:boxed|text|textbf)\s*\{([^{}]*)\}", r"\1", re.sub(r"\\(?:text|textbf)\s*\{([^{}]*)\}", r"\1", text)
    )
    return re.sub(r"[*`]+|(?<!\w)_+|_+(?!\w)|</?(?:answer|b|i)>", "", text).strip()


class _Options:
    """Reads the option that stands at a place of a text."""

    def __init__(self, options: Sequence[str], listed: bool, cut_off: bool) -> None:
        self.texts = [re.sub(r"\s+", " ", _plain(option)) for option in options]
        self.patterns = [
            re.compile(r"\s+".join(re.escape(word) for word in text.split())) if text else None for text in self.texts
        ]
        self.listed, self.cut_off = listed, cut_off

    def at(self, text: str, start: int) -> tuple[int | None, int] | None:
        """Place and end of the option at `start`; the place is None for a contradiction; None if no option is there."""
        begin = _OPEN.match(text, start)
        start = begin.end() if begin else start
        named = self._text(text, start)
        marked = self._mark(text, start) if self.listed else None
        if named and marked and named[1] <= marked[1]:
            # A text that is also another option's number ("1" among counts) says nothing.
            named = marked if named[0] == marked[0] or named[1] < marked[1] else (None, marked[1])
        found = named or marked
        if found is None:
            return None
        another = _OR_ANOTHER.match(text, found[1])
        if another:
            other = self.at(text, another.end())
            if other is not None and other[0] != found[0]:
                return None, other[1]
        return found

    def _text(self, text: str, start: int) -> tuple[int | None, int] | None:
        """The longest option text at `start` that ends there too."""
        ends = [
            (match.end(), place)
            for place, pattern in enumerate(self.patterns)
            if pattern and (match := pattern.match(text, start))
        ]
        for end, place in sorted(ends, reverse=True):
            closed = _CLOSED.match(text, end)
            if closed is None and not _OR_ANOTHER.match(text, end):
                continue
            longer = any(other.startswith(self.texts[place]) and other != self.texts[place] for other in self.texts)
            if self.cut_off and longer and end == len(text):
                return None, end
            return place, closed.end() if closed else end
        return None

    def _mark(self, text: str, start: int) -> tuple[int | None, int] | None:
        """A number or letter at `start`, alone or with its option's text."""
        mark = re.compile(r"(\d{1,2}|[a-z])(?!\w)").match(text, start)
        if mark is None:
            return None
        place: int | None = int(mark[1]) - 1 if mark[1].isdigit() else ord(mark[1]) - ord("a")
        if not 0 <= (place if place is not None else -1) < len(self.texts):
            place = None
        separator = _SEPARATOR.match(text, mark.end())
        if separator and separator.end() > mark.end():
            named = self._text(text, separator.end())
            if named is not None:
                return (place if named[0] == place else None), named[1]
        closed = _CLOSED.match(text, mark.end()) or re.compile(r"[.:)\]]+\s*(?=$|\n)").match(text, mark.end())
        if closed is None and not _OR_ANOTHER.match(text, mark.end()):
            return None
        return place, closed.end() if closed else mark.end()


def _explicit(text: str, options: _Options) -> int | None:
    """The option that the text gives in so many words, or None."""
    stated = [place for _, place in sorted(_stated(text, options))]
    if stated:
        return stated[-1]
    spans = [*text.splitlines(), text]
    lines = {place for span in spans if (place := _whole(span, options)) is not _NOTHING}
    opening = _opening(text, options)
    if opening is not None and not _REFUSAL.search(text):
        lines.add(opening)
    if len(lines) != 1:
        return None
    (only,) = lines
    return only if isinstance(only, int) else None


def _stated(text: str, options: _Options) -> list[tuple[int, int | None]]:
    """Where a phrase such as "the answer is" gives an option, and which."""
    found: list[tuple[int, int | None]] = []
    for cue in [*_CUE.finditer(text), *_RIGHT_OPTION.finditer(text)]:
        sentence = re.split(r"[.!?\n](?:\s|$)", text[: cue.start()])[-1]
        if _DENIED.search(sentence):
            continue
        option = options.at(text, cue.end())
        if option is None or re.compile(r"\s*\?").match(text, option[1]):
            continue
        found.append((cue.start(), option[0]))
    return found


_NOTHING = "nothing"


def _whole(span: str, options: _Options) -> int | str | None:
    """The option that a line or a text consists of; None for a contradiction; _NOTHING for anything else."""
    if not span.strip():
        return _NOTHING
    option = options.at(span, 0)
    if option is None or re.compile(r"[\s.,;:!\"')\]}]*$").match(span, option[1]) is None:
        return _NOTHING
    return option[0]


def _opening(text: str, options: _Options) -> int | None:
    """`Yes, ...`: an option's text that opens the text and is set off by a mark. "No effusion" opens with no answer."""
    for place, pattern in enumerate(options.patterns):
        match = pattern.match(text) if pattern and re.search(r"[^\W\d]{2}", options.texts[place]) else None
        if match and re.compile(r"\s*(?:[,;:!]|\.(?!\d)|-\s|\n)").match(text, match.end()):
            return place
    return None
