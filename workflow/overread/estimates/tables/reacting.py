"""Reacting: how many answers change when the image is swapped, beyond those that change anyway (the floor).

`inference.reacting` says how each floor is measured and tested: a placebo, reruns, or a label-matched substitute. A
change between an answer and a refusal counts.
"""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from overread.config import Statistics
from overread.core.columns import (
    COMPARISON,
    DATASET,
    FLIP_RATE,
    FLOOR_RATE,
    HIGH,
    LOW,
    MODEL,
    PATIENTS,
    PATIENTS_MOVED,
    QUESTIONS,
    SURPLUS,
    P,
    text,
)  # fmt: skip
from overread.estimates.found import Found
from overread.estimates.inference.reacting import FLOORS
from overread.estimates.tables import Table

UNMEASURED = "no floor was measured"
FLOOR_KIND = text("floor_kind", "how the floor was measured", values=FLOORS)
TABLE = Table(
    __name__,
    __doc__,
    (
        DATASET, MODEL, COMPARISON, FLOOR_KIND, QUESTIONS, PATIENTS, FLIP_RATE,
        *(column.but(blank=UNMEASURED) for column in (FLOOR_RATE, SURPLUS, LOW, HIGH, P)), PATIENTS_MOVED,
    ),
    lambda run: reacting_table(run.found, run.spec.statistics),
)  # fmt: skip


def reacting_table(found: Iterable[Found], statistics: Statistics) -> pd.DataFrame:
    """A row a dataset, model, image swap and floor, sorted."""
    rows: list[list[object]] = []
    for of_model in found:
        for name in sorted(of_model.swaps):
            for one in of_model.tested[name].reacting:
                measured = one.floor_rate is not None
                end: list[object] = [None] * 4
                if measured:
                    end = [one.surplus.estimate, *one.surplus.limits(statistics.level), one.p]
                start = [of_model.dataset, of_model.model, name, one.floor, one.pairs, one.patients]
                rows.append([*start, one.flip_rate, one.floor_rate, *end, one.surplus.shown])
    return TABLE.frame(rows)
