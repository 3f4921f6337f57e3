"""Which option a place in a text names: by its text, its number or its letter, in whatever brackets.

All text here is as `plain` makes it.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from typing import NamedTuple

from overread.responses.parsing.plain import plain

CJK = "\u3400-\u9fff"

_OPEN = re.compile(
    r"""[\s"'(\[{<]*
    (?P<word> (?:option|choice|number|letter)(?![a-z]) [\s_]* (?:number|letter|no\.)? \s* [:\#.]? \s* ["'(\[]*
      | (?:选项|选)\s*["'(\[]* )?
    (?:\#+\s*)?""",
    re.VERBOSE,
)
_SEPARATOR = re.compile(r"[\s\"')\]}]*[.:)\]-]?[\s\"'(]*")
_END = r"(?=\s*(?:$|[;!?|\n]|,(?!\d)|\.(?!\w)))"
_CLOSED = re.compile(
    rf"""(?:[ ]?["')\]}}>])* (?: {_END} | (?=\s*是?正确)
       | (?=\s+(?:because|since|as|based|given|due|is|rather|instead|but|not|for|with|from)\b) )""",
    re.VERBOSE,
)
_TEXT_CLOSED = re.compile(rf"""(?:{_CLOSED.pattern}) | ["')\]}}>]*(?=\s*:)""", re.VERBOSE)
_MARK_CLOSED = re.compile(rf"[.:)\]]+{_END}")
_OR_ANOTHER = re.compile(
    r"""["')\]}\s]*
    (?: (?P<or> [/&~] | ,(?=\d) | \b(?:or|and|to|versus|vs)\b | [或和与] ) | [,|-] (?:\s*(?:or|and|to)\b)? ) \s*""",
    re.VERBOSE,
)
_EITHER = ("or", "versus", "vs", "/", "或")
_MOST_NAMED = 20
"""A model in a loop names one option without end."""
_UNBOUNDED = re.compile(r"[\"')\]}\s]*(?:or|and|to)\s+(?:more|less|fewer|above|below|larger|greater|higher|lower|up)\b")
_ASIDE = re.compile(r"\s*\(([^()\n]{1,100})\)")
_MARK = re.compile(rf"(\d{{1,2}}|[a-z])(?:(?!\w)|(?=[{CJK}]))")
_TOKEN = re.compile(r"\d+(?:\.\d+)?|[^\W\d_]+|[^\w\s]|_")
_FIRST_WORDS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
_CHINESE = "一二三四五六七八九十"
_ORDINAL = re.compile(
    rf"(?:the\s+)?({'|'.join(_ORDINALS)}|\d{{1,2}}(?:st|nd|rd|th))\s+(?:option|choice|one|answer)\b"
    rf"|第\s*([{_CHINESE}]|\d{{1,2}})\s*(?:个选项|个|项)"
)
_WORD = re.compile(rf"({'|'.join(_FIRST_WORDS)})\b")
_SAID = {"yes": ("是的", "是", "有"), "no": ("不是", "没有", "否", "不", "无")}
"""Words that say yes or no and nothing else."""


class Named(NamedTuple):
    """Place shown of an option and where it ends; place None for a contradiction or a place that is not there.

    by_text  whether its text was said, and not its number or letter alone
    """

    place: int | None
    end: int
    by_text: bool = False


class Options:
    """The options of one trial, as they may be named.

    listed    whether they were shown with numbers; without a list a number or a letter means nothing
    cut_off   whether the text ended because its tokens did: what stands at its very end may be half of a word
    """

    def __init__(self, options: Sequence[str], *, listed: bool, cut_off: bool = False) -> None:
        self.texts = [re.sub(r"\s+", " ", plain(option)).rstrip(".") for option in options]
        self.patterns = [_pattern(text) for text in self.texts]
        self.listed, self.cut_off = listed, cut_off

    def worded(self, place: int | None) -> bool:
        """Whether an option's text is a word, and no bare number or letter."""
        return place is not None and re.search(r"[^\W\d]{2}", self.texts[place]) is not None

    def at(self, text: str, start: int) -> Named | None:
        """The option that is named at `start`; None if there is none."""
        found = self._single(text, start)
        for _ in range(_MOST_NAMED):
            another = _OR_ANOTHER.match(text, found.end) if found and found.place is not None else None
            if found is None or another is None:
                break
            other = self._single(text, another.end())
            if other is None:
                # "2 and a half", "yes or possibly no"
                alternative = another["or"] and (not found.by_text or another["or"] in _EITHER)
                return None if alternative else found
            # "2 to 3 cm" is a range, although 3 cm may be the second option.
            mixed = another["or"] and other.by_text != found.by_text
            if other.place != found.place or mixed:
                return Named(None, other.end)
            found = Named(found.place, other.end, found.by_text or other.by_text)
        return found

    def whole(self, span: str) -> Named | None:
        """The option that a span consists of."""
        named = self.at(span, 0)
        return named if named and re.compile(r"[\s.,;:!\"')\]}|>]*$").match(span, named.end) else None

    def unfinished(self, text: str, named: Named) -> bool:
        """Whether an option stands at the very end of a text that was cut off: it may be the half of another."""
        return self.cut_off and not text[named.end :].strip() and text[named.end - 1 : named.end].isalnum()

    def could_go_on(self, said: str, place: int) -> bool:
        """Whether a cut-off text that names `place` could have become another option's name."""
        longer = any(each != place and text.startswith(said) and text != said for each, text in enumerate(self.texts))
        return longer or (self.listed and said.isdigit() and int(said) * 10 <= len(self.texts))

    def _single(self, text: str, start: int) -> Named | None:
        """One option, with what is said of it in brackets."""
        found = self._one(text, start)
        if found is None or _UNBOUNDED.match(text, found.end):
            return None
        aside = _ASIDE.match(text, found.end)
        if aside is None:
            return found
        inside = self.whole(aside[1])
        agrees = inside is None or inside.place == found.place
        return Named(found.place if agrees else None, aside.end(), found.by_text)

    def _one(self, text: str, start: int) -> Named | None:
        opened = _OPEN.match(text, start)
        assert opened is not None  # it matches nothing too
        found = self._named(text, opened.end(), explicit=opened["word"] is not None)
        # An option may itself begin with the word "number" or with a bracket.
        return found or (self._named(text, start, explicit=False) if opened.end() > start else None)

    def _named(self, text: str, start: int, *, explicit: bool) -> Named | None:
        """explicit: the word "option" stands before it, so that a number is no option's text"""
        named = self._text(text, start)
        marked = self._mark(text, start) or self._ordinal(text, start, explicit) if self.listed else None
        if named and marked and named.end <= marked.end:
            if explicit:
                return marked
            # A text that is also another option's number ("1" among counts) says nothing.
            same = named.place == marked.place or named.end < marked.end
            return marked if same else Named(None, marked.end)
        return named or marked

    def _text(self, text: str, start: int) -> Named | None:
        """The longest option text at `start` that ends there too."""
        article = re.compile(r"the\s+").match(text, start)
        ends = [
            (match.end(), place)
            for place, pattern in enumerate(self.patterns)
            if pattern and (match := pattern.match(text, start) or (article and pattern.match(text, article.end())))
        ]
        for end, place in sorted(ends, reverse=True):
            closed = _TEXT_CLOSED.match(text, end)
            if closed is None and not _OR_ANOTHER.match(text, end) and not _ASIDE.match(text, end):
                continue
            if self.cut_off and end == len(text) and self.could_go_on(text[start:end], place):
                return Named(None, end)
            return Named(place, closed.end() if closed else end, by_text=True)
        return None

    def _mark(self, text: str, start: int) -> Named | None:
        """A number or letter at `start`, alone or with its option's text."""
        mark = _MARK.match(text, start)
        if mark is None:
            return None
        place = self.place_of(mark[1])
        separator = _SEPARATOR.match(text, mark.end())
        if separator and separator.end() > mark.end():
            named = self._text(text, separator.end())
            if named is not None:
                return Named(place if named.place == place else None, named.end, by_text=True)
        closed = _CLOSED.match(text, mark.end()) or _MARK_CLOSED.match(text, mark.end())
        if closed is None and not _OR_ANOTHER.match(text, mark.end()) and not _ASIDE.match(text, mark.end()):
            return None
        if self.cut_off and mark.end() == len(text) and place is not None and self.could_go_on(mark[1], place):
            return Named(None, mark.end())
        return Named(place, closed.end() if closed else mark.end())

    def _ordinal(self, text: str, start: int, explicit: bool) -> Named | None:
        """ "The second option", or, after the word "option", "two"."""
        ordinal = _ORDINAL.match(text, start)
        if ordinal:
            said = ordinal[1] or ordinal[2]
            digits = re.match(r"\d+", said)
            number = int(digits[0]) if digits else (_ORDINALS.index(said) if ordinal[1] else _CHINESE.index(said)) + 1
        elif explicit and (word := _WORD.match(text, start)):
            ordinal, number = word, _FIRST_WORDS.index(word[1]) + 1
        else:
            return None
        closed = _CLOSED.match(text, ordinal.end())
        return Named(number - 1 if number <= len(self.texts) else None, closed.end()) if closed else None

    def place_of(self, mark: str) -> int | None:
        """Place of a number from "1" or a letter from "a"; None beyond the options."""
        place = int(mark) - 1 if mark.isdigit() else ord(mark) - ord("a")
        return place if 0 <= place < len(self.texts) else None


def _pattern(text: str) -> re.Pattern[str] | None:
    """An option's text with any space between its words, and with or without one between a number and its unit."""
    tokens = list(_TOKEN.finditer(text))
    if not tokens:
        return None
    parts = [re.escape(tokens[0][0])]
    for before, after in itertools.pairwise(tokens):
        one, two = before[0][-1], after[0][0]
        if before.end() == after.start():
            gap = r"\s*" if one.isalnum() and two.isalnum() else ""
        else:
            gap = r"\s*" if one.isdigit() != two.isdigit() else r"\s+"
        parts.append(gap + re.escape(after[0]))
    return re.compile("|".join(["".join(parts), *_SAID.get(text, ())]))
