"""CSV files of the tables: fixed decimals, so that a rerun is equal to the byte."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import pandas as pd

from overread.core.records import replacing


def write_csv(table: pd.DataFrame, path: Path, *, decimals: int = 6) -> None:
    """Rows as they stand. Fractions get `decimals` decimals; whole numbers and text stay as they are; none is blank."""
    with replacing(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(table.columns)
        for row in table.itertuples(index=False, name=None):
            rows.writerow([_cell(value, decimals) for value in row])


def _cell(value: object, decimals: int) -> str:
    if value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, float):
        return f"{round(value, decimals) + 0.0:.{decimals}f}"  # + 0.0 makes 0 of -0
    return str(value)
