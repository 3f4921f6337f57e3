"""Image swaps against the noise floor: whether answers change beyond what was measured, by exact one-sided tests.

The test is `inference.reacting`'s: against the strictest floor that was measured. Where none was, there is no p: what
the answers change by themselves is not known, not even of a model that decodes greedily.

A model's tests on a data set are adjusted together by Holm (1979); those of another model change nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from overread.config import Comparison
from overread.core.columns import (
    COMPARISON,
    DATASET,
    FLIP_RATE,
    FLOOR_RATE,
    MODEL,
    P_HOLM,
    PAIRS,
    PATIENTS,
    REPORT_SHOWN,
    SURPLUS,
    P,
    text,
)
from overread.estimates.family import swap_of
from overread.estimates.inference.decide import holm
from overread.estimates.inference.reacting import reacting_of, strictest
from overread.estimates.primary import is_swap
from overread.estimates.scored import CellKey
from overread.estimates.tables import Table
from overread.estimates.tables.reacting import FLOOR_KIND, UNMEASURED
from overread.settings.report import Report
from overread.settings.setting import Setting

FLOORS = ("measured", "not measured")
OTHERWISE = ("order", "options", "readout", "questions")
"""Fields that may differ from the plain setting's in a swap that is tested."""
TABLE = Table(
    __name__,
    __doc__,
    (
        DATASET, MODEL, COMPARISON, REPORT_SHOWN,
        text("floor_basis", "whether the noise floor was measured", values=FLOORS), PAIRS, PATIENTS, FLIP_RATE,
        *(column.but(blank=UNMEASURED) for column in (FLOOR_RATE, SURPLUS, P, P_HOLM)), FLOOR_KIND,
    ),
    lambda run: significance_table(run.cells, run.spec.comparisons, run.spec.settings),
)  # fmt: skip


def significance_table(
    cells: Mapping[CellKey, pd.DataFrame], comparisons: Mapping[str, Comparison], settings: Mapping[str, Setting]
) -> pd.DataFrame:
    """A row a dataset, model and image swap beside the whole report or without any, sorted.

    `flip_rate`, `floor_rate` and `surplus`, their difference, are over the questions that the test uses, and count a
    change between an answer and a refusal, so that the first may differ from the one in flips.csv.
    """
    rows: list[list[object]] = []
    for dataset, model in sorted({key[:2] for key in cells}):
        of_model = {key[2]: frame for key, frame in cells.items() if key[:2] == (dataset, model)}
        found = []
        for name in sorted(comparisons):
            if set(comparisons[name].settings) <= set(of_model) and is_tested(comparisons[name], settings):
                swap = swap_of(of_model, comparisons[name], comparisons)
                one = strictest(reacting_of(swap)) if swap is not None else None
                if one is not None:
                    found.append((name, one))
        measured = [name for name, one in found if one.floor_rate is not None]
        adjusted = dict(zip(measured, holm([one.p for _, one in found if one.floor_rate is not None]), strict=True))
        for name, one in found:
            known = one.floor_rate is not None
            report = settings[comparisons[name].settings[0]][Report].report
            start = [dataset, model, name, report, FLOORS[0 if known else 1], one.pairs, one.patients, one.flip_rate]
            end = [one.surplus.estimate, one.p, adjusted[name]] if known else [None] * 3
            rows.append([*start, one.floor_rate, *end, one.floor])
    return TABLE.frame(rows)


def is_tested(comparison: Comparison, settings: Mapping[str, Setting]) -> bool:
    """Whether a flip comparison changes the study's own image for another's and nothing else, beside the whole report
    or without one. Edited, hidden and doubted reports answer other questions, and would dilute the adjustment.
    """
    if not is_swap(comparison, settings):
        return False
    a = settings[comparison.settings[0]]
    return a[Report].report in ("none", "full") and a.is_plain("images", "report", *OTHERWISE)
