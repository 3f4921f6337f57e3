"""Cells of files that people open in a spreadsheet.

A spreadsheet computes a cell that begins like a formula, and what stands in a question, a comment or a name came from a
model or from a person. Such a cell is written with an apostrophe before it, by which it is text, and read back without.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_FORMULA = re.compile(r"'*[=+\-@\t\r\n＝＋－＠]")
_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")


def harmless(text: str) -> str:
    """The cell with an apostrophe before it where a spreadsheet would compute it. Numbers stay numbers."""
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


def as_it_was(cell: str) -> str:
    """What `harmless` was given; any other cell as it is."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


def row_as_it_was(row: Mapping[str, str | None]) -> dict[str, str]:
    """A row of `csv.DictReader`: each cell as it was, a missing one blank; cells beyond the head are left out."""
    return {name: as_it_was(cell or "") for name, cell in row.items() if isinstance(name, str)}
