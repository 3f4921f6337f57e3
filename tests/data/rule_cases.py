"""The hand-written cases of `rules/`: each a row with the verdict that a person gave it."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent / "rules"


def cases(name: str) -> list[object]:
    """A test parameter a row, named by its place and its first column; `\\n` and `\\r` in a cell are line ends."""
    with (FOLDER / f"{name}.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert rows, name
    assert all(None not in row and None not in row.values() for row in rows), f"{name}.csv has a row of other length"
    unescaped = [{key: cell.replace("\\r", "\r").replace("\\n", "\n") for key, cell in row.items()} for row in rows]
    return [pytest.param(row, id=f"{place}: {next(iter(row.values()))[:50]}") for place, row in enumerate(unescaped, 2)]
