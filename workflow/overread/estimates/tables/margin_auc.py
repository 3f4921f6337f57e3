"""Reading below the answer: whether log-probabilities move towards what the shown picture says.

`inference.auc` says how it is made: 0.5 for a reader that does not read. `moved` is the share of the pairs whose answer
stays and whose margin moves by more than 0.5.
"""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from overread.config import Statistics
from overread.core.columns import COMPARISON, DATASET, HIGH, LOW, MODEL, PATIENTS, QUESTIONS, P, number, share
from overread.estimates.found import Found
from overread.estimates.tables import Table

NO_DIRECTIONS = "no finding changes in both directions"
NONE_STAYS = "no answer stays"
MARGIN_AUC = share("auc", "share of pairs of moves, one in each direction, that stand in the expected order")
TABLE = Table(
    __name__,
    __doc__,
    (
        DATASET, MODEL, COMPARISON, QUESTIONS, PATIENTS,
        *(column.but(blank=NO_DIRECTIONS) for column in (MARGIN_AUC, LOW, HIGH, P)),
        share("moved", "share of the pairs whose answer stays and whose margin moves", blank=NONE_STAYS),
        number("moved_low", "lower end of its interval", blank=NONE_STAYS),
        number("moved_high", "upper end of its interval", blank=NONE_STAYS),
    ),
    lambda run: auc_table(run.found, run.spec.statistics),
)  # fmt: skip


def auc_table(found: Iterable[Found], statistics: Statistics) -> pd.DataFrame:
    """A row a dataset, model and image swap with margins, sorted."""
    rows: list[list[object]] = []
    for one in found:
        for name in sorted(one.swaps):
            below = one.tested[name].below
            if below is None:
                continue
            auc: list[object] = [0, 0, None, None, None, None]
            if below.auc is not None:
                ends = below.auc.limits(statistics.level)
                auc = [below.pairs, below.auc.patients, below.auc.estimate, *ends, below.auc.p_above(0.5)]
            moved: list[object] = [None] * 3
            if below.moved is not None:
                moved = [below.moved.estimate, *below.moved.limits(statistics.level)]
            rows.append([one.dataset, one.model, name, *auc, *moved])
    return TABLE.frame(rows)
