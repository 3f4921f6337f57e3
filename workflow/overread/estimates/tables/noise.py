"""The noise floor: how often an answer changes when nothing is changed but the run.

A model that decodes greedily should have none; what there is comes from sampling, or from arithmetic that depends on
what else is in a batch. Each cell with two runs or more has a row, over the pairs of each run with the next one; a cell
whose runs put other requests, because each shuffles the options anew, has none.
"""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from overread.config import Statistics
from overread.core.columns import DATASET, FLIP_RATE, HIGH, LOW, MODEL, PAIRS, PATIENTS, RUNS, SETTING, UNPAIRED
from overread.estimates.scored import CellKey
from overread.estimates.tables import Table
from overread.estimates.tables.flips import flip_interval, reruns_of

TABLE = Table(
    __name__,
    __doc__,
    (DATASET, MODEL, SETTING, RUNS, PAIRS, PATIENTS, FLIP_RATE, LOW, HIGH, UNPAIRED),
    lambda run: noise_table(run.cells, run.spec.statistics),
)


def noise_table(cells: Mapping[CellKey, pd.DataFrame], statistics: Statistics) -> pd.DataFrame:
    """A row a cell with reruns of which a pair was answered twice, sorted by dataset, model and setting."""
    rows: list[list[object]] = []
    for key in sorted(cells):
        pairs = reruns_of(cells[key])
        if pairs is None or not pairs["both"].any():
            continue
        one, answered = flip_interval(pairs, statistics), int(pairs["both"].sum())
        measures = [one.patients, one.estimate, one.low, one.high, len(pairs) - answered]
        rows.append([*key, cells[key]["run"].nunique(), answered, *measures])
    return TABLE.frame(rows)
