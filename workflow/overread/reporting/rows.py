"""The tables as they are read back: rows of text by column, so that what is shown is what stands in the file."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path

from overread.core.errors import BadInput
from overread.estimates import tables

Row = dict[str, str]


def read(folder: Path, table: str) -> list[Row]:
    """The rows of `<folder>/<table>.csv`.

    raises  BadInput if there is no such file, a declared column is missing, or a cell does not fit its column
    """
    return tables.table(table).read(folder / f"{table}.csv")


def declared(table: str) -> tuple[str, ...]:
    """The names of a table's columns, as its module declares them."""
    return tables.table(table).names


def number(text: str | None) -> float | None:
    """The number of a cell; none for a blank one and for nan."""
    if text is None or not text.strip():
        return None
    try:
        value = float(text)
    except ValueError:
        raise BadInput(f"a table holds {text!r} where a number should be; make the tables again") from None
    return value if math.isfinite(value) else None


def ordered(rows: Iterable[Row], column: str) -> list[str]:
    """The values of a column, each once, in the order they are met."""
    return list(dict.fromkeys(row[column] for row in rows))


def where(rows: Iterable[Row], **values: str) -> list[Row]:
    """The rows whose columns have these values."""
    return [row for row in rows if all(row[name] == value for name, value in values.items())]


def columns(rows: Sequence[Row]) -> list[str]:
    """The columns of a table, in the file's order."""
    return list(rows[0]) if rows else []
