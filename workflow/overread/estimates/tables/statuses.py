"""What became of the responses of each cell: how many gave an option, were unreadable, refused, cut off or failed.

A model that refuses more often under one setting than under another is not compared on the same questions. The interval
is clustered by patient, over all trials of the cell.
"""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from overread.config import Statistics
from overread.core.columns import DATASET, HIGH, LOW, MODEL, PATIENTS, SETTING, count, share, text
from overread.estimates.intervals import mean_interval
from overread.estimates.scored import CellKey, code_patients
from overread.estimates.tables import Table
from overread.estimates.tables.accuracy import STATUSES

NAMES = tuple(status.name for status in STATUSES)
TABLE = Table(
    __name__,
    __doc__,
    (
        DATASET, MODEL, SETTING, text("status", "what the response is: only `answered` gives an option", values=NAMES),
        count("trials", "trials with this status, over all runs"), PATIENTS,
        share("share", "these as a share of the cell's trials"), LOW, HIGH,
    ),
    lambda run: statuses_table(run.cells, run.spec.statistics),
)  # fmt: skip


def statuses_table(cells: Mapping[CellKey, pd.DataFrame], statistics: Statistics) -> pd.DataFrame:
    """One row per cell and status, also where no trial has it; sorted by cell, then as in accuracy.csv."""
    rows: list[list[object]] = []
    for key in sorted(cells):
        frame = cells[key]
        (patients,) = code_patients(frame["patient"])
        for name in NAMES:
            of_status = frame["status"] == name
            found = mean_interval(of_status, patients, statistics)
            rows.append([*key, name, int(of_status.sum()), found.patients, found.estimate, found.low, found.high])
    return TABLE.frame(rows)
