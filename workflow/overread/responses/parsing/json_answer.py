"""The answer that a JSON object in a text gives, whether the object is whole or was cut off.

Only the value of a key such as `answer` or `choice` counts: what stands in `reasoning` is no answer. A key that stands
twice with different values, NaN, several values: no answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Literal

from overread.responses.parsing.named import Options
from overread.responses.parsing.plain import plain

_KEY = re.compile(
    r"(?:(?:final|correct|best|right|selected|chosen|predicted|most_likely|my|the)[ _-]?)?"
    r"(?:answer|choice|option|response|prediction|selection)(?:[ _-]?(?:number|letter|text|choice|option|id))?",
    re.IGNORECASE,
)
_OBJECT = re.compile(r"(?:\[\s*)?\{\s*(?:[\"'][\w -]|[\"']?$|\})")
_PAIR = re.compile(
    rf"""["'](?P<key>{_KEY.pattern})["']\s*:\s*
    (?: "(?P<double>(?:[^"\\]|\\.)*)(?P<double_end>"|$) | '(?P<single>[^'\n]*)(?P<single_end>'|$)
      | (?P<bare>-?\d+(?:\.\d+)?|[A-Za-z]+)(?=\s*(?P<bare_end>[,}}\]\n]|$)) )""",
    re.VERBOSE | re.IGNORECASE,
)

Verdict = int | None | Literal["cut off", "no object", "no answer"]


def answer_in_json(text: str, options: Options) -> tuple[Verdict, str]:
    """What the JSON in a text says, and the text without it.

    An option's place; None for a contradiction or for a value that is no option; "cut off" for an object that ends
    before its answer; "no answer" for one that has none; "no object" where there is no JSON
    """
    begin = _OBJECT.search(text)
    if begin is None:
        return "no object", text
    verdicts: list[Verdict] = []
    rest, place = [], 0
    decoder = json.JSONDecoder(object_pairs_hook=_Pairs, parse_constant=lambda name: name)
    while (begin := _OBJECT.search(text, place)) is not None:
        rest.append(text[place : begin.start()])
        try:
            content, end = decoder.raw_decode(text, begin.start())
        except (ValueError, RecursionError):
            verdicts += _of_fragment(text[begin.start() :], options)
            place = len(text)
            break
        values = list(_answers(content))
        verdicts += [_place(each, options) for each in values]
        place = end
    rest.append(text[place:])
    without = "".join(rest)
    if not verdicts:
        return "no answer", without
    return (verdicts[0] if all(each == verdicts[0] for each in verdicts) else None), without


class _Pairs(list[tuple[str, Any]]):
    """An object with all of its pairs: a key may stand twice."""


def _answers(content: object) -> Iterator[object]:
    """The values of all keys that name an answer."""
    if isinstance(content, _Pairs):
        for key, value in content:
            if not _KEY.fullmatch(key.strip()):
                continue
            nested = list(_answers(value)) if isinstance(value, _Pairs) else []
            yield from nested or [value]
    elif isinstance(content, list):
        for each in content:
            yield from _answers(each)


def _place(value: object, options: Options) -> int | None:
    if isinstance(value, list) and not isinstance(value, _Pairs) and len(value) == 1:
        (value,) = value
    if isinstance(value, bool) or not isinstance(value, int | str):
        return None
    named = options.whole(plain(str(value)))
    return named.place if named else None


def _of_fragment(text: str, options: Options) -> list[Verdict]:
    """Of an object that is not whole, or in single quotes."""
    found: list[Verdict] = []
    for pair in _PAIR.finditer(text):
        kind = next(each for each in ("double", "single", "bare") if pair[each] is not None)
        said, ended = plain(pair[kind]), bool(pair[f"{kind}_end"]) or not options.cut_off
        place = _place(said, options)
        if not ended and (place is None or options.could_go_on(said, place)):
            found.append("cut off")
        else:
            found.append(place)
    return found or (["cut off"] if options.cut_off else [])
