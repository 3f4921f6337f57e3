"""Cells that hold a word for nothing: what pandas, R, Excel, SQL and others write where a value is missing.

One rule for every reader: in a column of names or numbers (patients, paths, findings) such a word is a blank cell. In
running text and in answers "none" and "na" may mean what they say, so only words that no person writes are blank there.
"""

from __future__ import annotations

WRITTEN_BY_SOFTWARE = frozenset(
    {"nan", "-nan", "<na>", "nat", "null", "(null)", "#n/a", "#na", "#null!", "\\n", "1.#qnan", "-1.#ind"}
)
WORDS = WRITTEN_BY_SOFTWARE | {"na", "n/a", "n.a.", "none", "nil"}


def filled(cell: str | None, *, free_text: bool = False) -> str:
    """The cell without blanks at its ends; nothing if it says that nothing is there."""
    text = (cell or "").strip()
    return "" if text.casefold() in (WRITTEN_BY_SOFTWARE if free_text else WORDS) else text


def says_nothing(cell: str | None) -> bool:
    """Whether a cell is not blank, but holds a word for nothing."""
    return bool((cell or "").strip()) and not filled(cell)
