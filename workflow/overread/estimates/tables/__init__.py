"""The tables of a study: one module per table, found by being here; those in `readers/` need people's ratings.

A module is named as its table and begins with what the table holds: the first paragraph of its docstring is printed in
docs/tables.md and in Snakemake's report. Its `TABLE` declares the columns and how they are made from a run.
Nothing here imports a table before it is asked for: the rules want only their names.
"""

from __future__ import annotations

import ast
import importlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from overread.core.columns import Column
from overread.core.csv_files import CsvFile
from overread.core.errors import unknown

if TYPE_CHECKING:
    import pandas as pd

    from overread.estimates.run import Run

FOLDER = Path(__file__).parent
AGAIN = "make the tables again"


class Table(CsvFile):
    """A table's declaration.

    module   the module's `__name__`, whose last part names the table
    holds    the module's `__doc__`
    build    its rows, sorted, with the declared columns
    """

    def __init__(
        self, module: str, holds: str | None, columns: Sequence[Column], build: Callable[[Run], pd.DataFrame], *,
        more: Sequence[Column] = (), decimals: int = 6,
    ) -> None:  # fmt: skip
        self.name, self.build = module.rpartition(".")[2], build
        path = f"tables/{self.name}.csv"
        super().__init__(path, _first_paragraph(holds), columns, more=more, decimals=decimals, again=AGAIN)

    def frame(self, rows: Iterable[Sequence[object]], more: Sequence[str] = ()) -> pd.DataFrame:
        """Rows as the table's frame, with `more` columns where it has them."""
        import pandas as pd

        return pd.DataFrame(rows, columns=[*self.names, *more])

    def frame_of(self, rows: Iterable[Mapping[str, object]]) -> pd.DataFrame:
        """As `frame`, blank where a row lacks a column; whole numbers stay whole beside blanks."""
        import pandas as pd

        return pd.DataFrame([[row.get(name) for name in self.names] for row in rows], columns=self.names, dtype=object)

    def save(self, frame: pd.DataFrame, folder: Path) -> Path:
        """Write a frame of this table into the folder of the tables; whole numbers stay whole beside blanks."""
        path = folder / f"{self.name}.csv"
        rows = frame.astype(object).where(frame.notna(), None)
        names = [str(name) for name in frame.columns]
        whole = {column.name for column in self.columns if column.kind == "whole"}
        counts = [name in whole for name in names]
        self.write(
            path,
            (
                [_whole(cell) if count else cell for cell, count in zip(row, counts, strict=True)]
                for row in rows.itertuples(index=False, name=None)
            ),
            names=names,
        )
        return path


def _whole(cell: object) -> object:
    """A count that pandas made a fraction since others of its column are missing; any other cell as it is."""
    return int(cell) if isinstance(cell, float) and cell.is_integer() else cell


def names(*, readers: bool = False) -> tuple[str, ...]:
    """The names of the tables of models, or of those of readers."""
    return tuple(sorted(name for name, path in _modules().items() if (path.parent != FOLDER) == readers))


def table(name: str) -> Table:
    """The table of a name. BadInput-like KeyError with the names there are, if there is none."""
    found: Table = importlib.import_module(module(name)).TABLE
    return found


def module(name: str) -> str:
    """Where a table is made. Nothing is imported."""
    path = _modules().get(name)
    if path is None:
        raise KeyError(unknown("table", name, _modules()))
    return ".".join((__name__, *path.relative_to(FOLDER).with_suffix("").parts))


def description(name: str) -> str:
    """What a table holds, without importing it."""
    return _first_paragraph(ast.get_docstring(ast.parse(_modules()[name].read_text(encoding="utf-8"))))


def _modules() -> dict[str, Path]:
    return {path.stem: path for path in sorted(FOLDER.rglob("*.py")) if path.stem != "__init__"}


def _first_paragraph(docstring: str | None) -> str:
    return " ".join((docstring or "").strip().partition("\n\n")[0].split())
