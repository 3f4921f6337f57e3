"""Findings: for each difference of two flip comparisons, the same by finding and by kind of pair.

A pooled difference need not hold for any finding: one that a model answers alike whatever it is shown can't flip. Each
row has the rates of both comparisons, each over its own pairs, and their difference with one draw of patients for both.
"""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from overread.config import Comparison, Effect, Statistics
from overread.core.columns import (
    DATASET,
    EFFECT,
    FLOOR,
    FLOOR_HIGH,
    FLOOR_LOW,
    GROUP,
    HIGH,
    LOW,
    MODEL,
    PAIRS,
    PATIENTS,
    difference,
    share,
    text,
)
from overread.estimates.scored import CellKey
from overread.estimates.tables import Table
from overread.estimates.tables.effects import combined, flip_side
from overread.estimates.tables.flips import RUN_ONCE, compared, groups

RATE = {"rate": "flip rate", "low": "lower end of the flip rate", "high": "upper end of the flip rate"}
TABLE = Table(
    __name__,
    __doc__,
    (
        DATASET, MODEL, EFFECT, GROUP, text("first", "the first comparison's name"),
        text("second", "the second comparison's name"), PAIRS, PATIENTS,
        *(
            share(f"{start}_{which}", f"{meaning} of the {which} comparison")
            for which in ("first", "second")
            for start, meaning in RATE.items()
        ),
        difference("difference", "the first less the second"), LOW, HIGH,
        *(column.but(blank=RUN_ONCE) for column in (FLOOR, FLOOR_LOW, FLOOR_HIGH)),
    ),
    lambda run: findings_table(
        run.cells, run.table("flips"), run.spec.comparisons, run.spec.effects, run.spec.statistics
    ),
)  # fmt: skip


def findings_table(
    cells: Mapping[CellKey, pd.DataFrame],
    flips: pd.DataFrame,
    comparisons: Mapping[str, Comparison],
    effects: Mapping[str, Effect],
    statistics: Statistics,
) -> pd.DataFrame:
    """A row a dataset, model, effect of two flip comparisons and group that both have, in the order of flips.csv.

    `first` and `second` name the comparisons, `pairs` are the first's; `floor` is the first's noise floor.

    flips   as `flips_table` gives it
    """
    rows: list[list[object]] = []
    known = {(one["dataset"], one["model"], one["comparison"], one["group"]): one for one in flips.to_dict("records")}
    for dataset, model in sorted({key[:2] for key in cells}):
        of_model = {key[2]: frame for key, frame in cells.items() if key[:2] == (dataset, model)}
        for name in sorted(effects):
            pair = effects[name].minus
            if not set(pair) <= set(comparisons):
                continue
            first, second = (compared(of_model, comparisons[each]) for each in pair)
            if first is None or second is None:
                continue
            others = groups(second)
            for group, chosen in groups(first).items():
                sides = [flip_side(chosen), flip_side(others[group]) if group in others else None]
                whole = [side for side in sides if side is not None]
                if len(whole) < 2:
                    continue
                one = combined(whole, [1, -1], statistics)
                own, other = (known[dataset, model, each, group] for each in pair)
                measures = [own["pairs"], one.patients]
                measures += [each[column] for each in (own, other) for column in ("flip_rate", "low", "high")]
                measures += [one.estimate, one.low, one.high]
                measures += [own[column] for column in ("floor", "floor_low", "floor_high")]
                rows.append([dataset, model, name, group, *pair, *measures])
    return TABLE.frame(rows)
