"""Rows of a CSV or Parquet file as text, each with its number; what is odd about a row is said, not mended."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from overread.core.errors import BadInput, unknown
from overread.core.inputs import regular

LARGEST_CELL = 10_000_000
"""Characters. The csv module's own limit, 131,072, is too near to the length of real cells."""


@dataclass(frozen=True)
class Row:
    """One row: its cells by column, without blanks at their ends."""

    number: int  # the first row below the head is 1
    cells: dict[str, str]
    problem: str | None = None

    @property
    def place(self) -> str:
        return f"row {self.number}"


def read_head(path: Path) -> list[str]:
    """The columns of a CSV or Parquet file. BadInput if there is no such file or it can't be read."""
    with _readable(path):
        if _is_parquet(path):
            import pyarrow.parquet as pq

            return list(pq.read_schema(regular(path)).names)
        with regular(path).open(newline="", encoding="utf-8-sig") as file:
            return [name.strip() for name in next(csv.reader(file, strict=True), [])]


def read_rows(path: Path, needed: Iterable[str], others: Iterable[str] | None = ()) -> Iterator[Row]:
    """Rows of `path`, Parquet if its name says so, else CSV.

    needed  columns that must be there
    others  columns that are taken if they are there; None: all
    raises  BadInput: no such file, not readable, a column is missing or stands twice
    """
    there = read_head(path)
    wanted = _chosen(path, there, list(needed), others)
    with _readable(path):
        yield from _parquet(path, wanted) if _is_parquet(path) else _csv(path, there, wanted)


def _is_parquet(path: Path) -> bool:
    return path.suffix.lower() in (".parquet", ".pq")


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise BadInput(f"{path}: no such file") from None
    except (csv.Error, OSError, ValueError, NotImplementedError) as error:  # Arrow's own errors are some of these
        kind = "Parquet" if _is_parquet(path) else "CSV"
        raise BadInput(f"{path}: not readable as {kind} ({' '.join(str(error).split())})") from None


def _chosen(path: Path, there: list[str], needed: list[str], others: Iterable[str] | None) -> list[str]:
    for name in needed:
        if name not in there:
            sign = next((sign for sign in (";", "\t", "|") if len(there) == 1 and sign in there[0]), None)
            hint = f"; it looks separated by {sign!r}; commas are expected" if sign else ""
            raise BadInput(f"{path}: {unknown('column', name, there)}{hint}")
    wanted = set(there) if others is None else {*needed, *others}
    twice = sorted({name for name in there if name in wanted and there.count(name) > 1})
    if twice:
        raise BadInput(f"{path}: two columns are called {twice[0]!r}; rename one")
    return [name for name in there if name in wanted and name]


def _csv(path: Path, head: list[str], wanted: list[str]) -> Iterator[Row]:
    """`strict`, since a quotation mark that is never closed would swallow all rows below it in silence."""
    csv.field_size_limit(max(csv.field_size_limit(), LARGEST_CELL))
    places = [(name, head.index(name)) for name in wanted]
    number = 0
    with regular(path).open(newline="", encoding="utf-8-sig") as file:
        table = csv.reader(file, strict=True)
        next(table, None)
        try:
            for cells in table:
                if not cells:
                    continue
                number += 1
                odd = None
                if len(cells) != len(head):
                    odd = f"{len(cells)} cells where the head has {len(head)}"
                    cells += [""] * (len(head) - len(cells))
                yield Row(number, {name: cells[place].strip() for name, place in places}, odd)
        except csv.Error as error:
            raise csv.Error(f"after row {number}: {error}") from None


def _parquet(path: Path, wanted: list[str]) -> Iterator[Row]:
    import pyarrow.parquet as pq

    number = 0
    with pq.ParquetFile(regular(path)) as file:
        for batch in file.iter_batches(columns=wanted):
            for cells in batch.to_pylist():
                number += 1
                nested = [name for name, value in cells.items() if isinstance(value, (list, dict, bytes))]
                odd = f"column {nested[0]!r} holds no plain values" if nested else None
                yield Row(number, {name: _text(value) for name, value in cells.items()}, odd)


def _text(value: object) -> str:
    """A cell as a CSV would hold it: 3.0 is 3, and what is missing is blank."""
    if value is None or (isinstance(value, float) and value != value):
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip()
