"""The one way in which CSV files are written and read back: by the columns that are declared for them.

Fractions have a fixed number of decimals, so that a rerun is equal to the byte.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from overread.core.columns import Column
from overread.core.errors import BadInput
from overread.core.inputs import regular
from overread.core.outputs import replacing

Rows = Iterable[Mapping[str, object] | Sequence[object]]
Guard = Callable[[str], str]


def csv_text(
    names: Sequence[str],
    rows: Rows,
    *,
    decimals: int | None = 6,
    delimiter: str = ",",
    line_end: str = "\n",
    guard: Guard = str,
) -> str:
    """CSV of rows as they come, each a list or a mapping by column; what a mapping lacks, None and NaN are blank.

    decimals  of fractions; None leaves them as Python writes them
    guard     changes each cell of text, for a file that people open in a spreadsheet
    """
    file = io.StringIO(newline="")
    table = csv.writer(file, delimiter=delimiter, lineterminator=line_end)
    table.writerow(names)
    for row in rows:
        cells = [row.get(name) for name in names] if isinstance(row, Mapping) else list(row)
        if len(cells) != len(names):
            raise ValueError(f"a row of {len(cells)} cells for the {len(names)} columns {', '.join(names)}")
        table.writerow([_cell(value, decimals, guard) for value in cells])
    return file.getvalue()


def write_csv(
    path: Path,
    names: Sequence[str],
    rows: Rows,
    *,
    decimals: int | None = 6,
    delimiter: str = ",",
    guard: Guard = str,
) -> None:
    """`csv_text` as a file, which is there whole or not at all."""
    text = csv_text(names, rows, decimals=decimals, delimiter=delimiter, guard=guard)
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="")


def _cell(value: object, decimals: int | None, guard: Guard) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        if math.isnan(value):
            return ""
        # + 0.0 makes 0 of -0
        return str(value) if decimals is None else f"{round(value, decimals) + 0.0:.{decimals}f}"
    return guard(value) if isinstance(value, str) else str(value)


class CsvFile:
    """The declaration of a file: where it lies, what it holds, and its columns. Declaring it registers it.

    path      beneath `results/<name>/`, as docs/tables.md prints it: `tables/accuracy.csv`
    holds     a sentence or two
    columns   in the file's order
    more      columns that the file has besides, as many as the study gives: `answer_position_<k>`
    decimals  of its fractions
    again     what makes it anew, for messages
    """

    declared: ClassVar[dict[str, CsvFile]] = {}

    def __init__(
        self, path: str, holds: str, columns: Sequence[Column], *, more: Sequence[Column] = (), decimals: int = 6,
        again: str = "make it again",
    ) -> None:  # fmt: skip
        self.path, self.holds, self.columns, self.more = path, holds, tuple(columns), tuple(more)
        self.decimals, self.again = decimals, again
        CsvFile.declared[path] = self

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    def write(self, path: Path, rows: Rows, *, names: Sequence[str] | None = None, guard: Guard = str) -> None:
        """Write `rows` with the declared columns, or with `names` where the file has more of them."""
        write_csv(path, self.names if names is None else names, rows, decimals=self.decimals, guard=guard)

    def read(self, path: Path) -> list[dict[str, str]]:
        """The rows as text by column, so that what is shown is what stands in the file.

        raises  BadInput if there is no such file, a declared column is missing, or a cell does not fit its column
        """
        try:
            with regular(path).open(newline="", encoding="utf-8") as file:
                reader = csv.DictReader(file)
                rows = [{name: text or "" for name, text in row.items()} for row in reader]
                present = reader.fieldnames or []
        except FileNotFoundError:
            raise BadInput(f"{path}: no such file; {self.again}") from None
        except (csv.Error, UnicodeDecodeError) as error:
            raise BadInput(f"{path}: not readable as CSV: {error}; {self.again}") from None
        missing = [name for name in self.names if name not in present]
        if missing:
            raise BadInput(f"{path}: no column {', '.join(missing)}; {self.again}")
        for number, row in enumerate(rows, start=1):
            for column in self.columns:
                problem = column.problem(row[column.name]) if row[column.name] else ""
                if problem:
                    raise BadInput(
                        f"{path}: row {number}: {column.name}: {row[column.name]!r} is {problem}; {self.again}"
                    )
        return rows
