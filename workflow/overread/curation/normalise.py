"""Text brought to one form, so that the same words compare as equal whatever their case, punctuation and spacing."""

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


def _number(text: str) -> str:
    """One way to write a number: `2.0`, `2,0` and `2` are the same."""
    text = text.replace(",", ".")
    whole, _, part = text.partition(".")
    part = part.rstrip("0")
    return f"{int(whole)}.{part}" if part else str(int(whole))
