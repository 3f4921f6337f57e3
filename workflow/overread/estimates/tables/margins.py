"""Margins: whether the log-probabilities move more in one comparison than in the other, pair by pair.

A flip is coarse: an answer can stay while what lies below it moves. For an effect of two flip comparisons (say, an
image swap without and with the report), each question has a move of its margin in both; `moves_more` is the share of
questions whose margin moves further in the first. Equal moves, but for rounding, are no more.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from overread.config import Comparison, Effect, Statistics
from overread.core.columns import DATASET, EFFECT, FROM_0, HIGH, LOW, MODEL, PAIRS, PATIENTS, number, share
from overread.estimates.intervals import mean_interval
from overread.estimates.scored import CellKey, code_patients
from overread.estimates.tables import Table
from overread.estimates.tables.flips import compared

TABLE = Table(
    __name__,
    __doc__,
    (
        DATASET, MODEL, EFFECT, PAIRS, PATIENTS,
        number(
            "mean_abs_change_first", "how far the margin moves in the first comparison, on average", unit="nat",
            range=FROM_0,
        ),
        number("mean_abs_change_second", "the same of the second comparison", unit="nat", range=FROM_0),
        share("moves_more", "share of the questions whose margin moves further in the first comparison"), LOW, HIGH,
    ),
    lambda run: margins_table(run.cells, run.spec.comparisons, run.spec.effects, run.spec.statistics),
)  # fmt: skip
ROUNDING = 1e-6
"""Moves, in log-probability, that differ by less are equal."""


def margins_table(
    cells: Mapping[CellKey, pd.DataFrame],
    comparisons: Mapping[str, Comparison],
    effects: Mapping[str, Effect],
    statistics: Statistics,
) -> pd.DataFrame:
    """A row a dataset, model and effect of two flip comparisons, sorted; over the questions whose margins are known in
    all four arms.
    """
    rows: list[list[object]] = []
    for dataset, model in sorted({key[:2] for key in cells}):
        of_model = {key[2]: frame for key, frame in cells.items() if key[:2] == (dataset, model)}
        for name in sorted(effects):
            if not set(effects[name].minus) <= set(comparisons):
                continue
            first, second = (_moves(of_model, comparisons[each]) for each in effects[name].minus)
            if first is None or second is None:
                continue
            pairs = first.merge(second, on=["question", "run"], suffixes=("_1", "_2"), validate="one_to_one")
            if not len(pairs):
                continue
            (patients,) = code_patients(pairs["patient_1"])
            more = pairs["moved_1"] > pairs["moved_2"] + ROUNDING
            one = mean_interval(more, patients, statistics)
            moved = [float(np.mean(pairs[column].to_numpy())) for column in ("moved_1", "moved_2")]
            rows.append([dataset, model, name, len(pairs), one.patients, *moved, one.estimate, one.low, one.high])
    return TABLE.frame(rows)


def _moves(of_model: Mapping[str, pd.DataFrame], comparison: Comparison) -> pd.DataFrame | None:
    """How far each question's margin moved; None if the comparison is of another kind, or an arm was not run."""
    pairs = compared(of_model, comparison)
    if pairs is None:
        return None
    pairs["moved"] = (pairs["margin_a"] - pairs["margin_b"]).abs()
    return pairs.loc[pairs["moved"].notna(), ["question", "run", "patient", "moved"]]
