"""Text brought to one form, so that the same words compare as equal whatever their case, punctuation and spacing.

And a report's text cut into its sentences.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

_SAME = str.maketrans(
    {
        "‘": "'",
        "’": "'",
        "“": '"',
        "”": '"',
        "–": "-",
        "—": "-",
        "‑": "-",
        "−": "-",
        "×": "x",
        "≤": "<=",
        "≥": ">=",
        "\u00ad": None,
    }
)
_NUMBERING = re.compile(r"^\s*(?:\(?[1-9a-hA-H][).:]|option\s+[1-9a-hA-H]\s*[:.)])\s+", re.IGNORECASE)
_BRITISH = {
    "tumour": "tumor", "tumours": "tumors", "oedema": "edema", "oedematous": "edematous", "haemorrhage": "hemorrhage",
    "haemorrhages": "hemorrhages", "haemorrhagic": "hemorrhagic", "grey": "gray", "centre": "center",
    "centred": "centered",
    "ischaemia": "ischemia", "ischaemic": "ischemic", "metre": "meter",
    "centimetre": "cm", "centimetres": "cm", "centimeter": "cm", "centimeters": "cm", "millimetre": "mm",
    "millimetres": "mm", "millimeter": "mm", "millimeters": "mm",
}  # fmt: skip


_SENTENCE = re.compile(r"[^\n]+?(?:[.!?](?=\s|$)|$)", re.MULTILINE)
_ABBREVIATION = re.compile(r"(?:\b(?:e\.g|i\.e|approx|dr|vs|cf|no|fig|st|etc)|(?:^|\s)\d{1,2})\.$", re.IGNORECASE)


@lru_cache(maxsize=4096)  # every rule looks at the same few texts of a question
def plain(text: str) -> str:
    """Lower case, one kind of quote, dash and space. Punctuation stays."""
    return re.sub(r"\s+", " ", unicodedata.normalize("NFKC", text.translate(_SAME)).casefold()).strip()


def words(text: str) -> list[str]:
    """The words of a text with its numbers, signs and comparisons; numbers without trailing zeros; one spelling.

    A number keeps its unit apart (`5mm` is `5`, `mm`), and its decimal point; a hyphen between words is a space.
    """
    apart = re.sub(r"(?<=[\dm])\s*x\s*(?=\d)", " x ", plain(text))
    found = re.findall(r"<=|>=|[<>+%~]|\d+(?:[.,]\d+)?|[^\W\d_]+(?:'[^\W\d_]+)?\d*", apart)
    return [_BRITISH.get(word, _number(word) if word[0].isdigit() else word) for word in found]


def normalise(text: str) -> str:
    """`words` of a text without the number or letter of an option in front, joined by single spaces."""
    return " ".join(words(_NUMBERING.sub("", text)))


def sentences(text: str) -> list[str]:
    """The sentences of a section. A number's or an abbreviation's full stop ends none, a line break does."""
    found: list[str] = []
    joined = ""
    for match in _SENTENCE.finditer(text):
        joined = f"{joined} {match.group().strip()}".strip()
        ends_line = text[match.end() : match.end() + 1] in ("", "\n")
        if joined and (ends_line or not _ABBREVIATION.search(joined)):
            found.append(joined)
            joined = ""
    return found


def _number(text: str) -> str:
    """One way to write a number: `2.0`, `2,0` and `2` are the same."""
    text = text.replace(",", ".")
    whole, _, part = text.partition(".")
    part = part.rstrip("0")
    return f"{int(whole)}.{part}" if part else str(int(whole))
