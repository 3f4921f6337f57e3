"""Accuracy against the truth of the study whose picture is shown, on both sides of an image swap.

A swap keeps the question and its report, so `accuracy.csv` scores both arms against the question's own study. Here each
arm is scored against the study that its picture shows. Labels of X-rays come from reports: this is agreement with what
somebody wrote about that picture, not with an independent reading of it.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from overread.config import Comparison, Statistics
from overread.core.columns import (
    COMPARISON,
    DATASET,
    HIGH,
    LOW,
    MODEL,
    PAIRS,
    PATIENTS,
    SETTING,
    difference,
    number,
    text,
)
from overread.estimates.bootstrap import Ratio, weighted_ratios
from overread.estimates.scored import CellKey, code_patients
from overread.estimates.tables import Table
from overread.estimates.tables.flips import pairs_of

ARMS = ("first", "second", "difference")
TABLE = Table(
    __name__,
    __doc__,
    (
        DATASET, MODEL, COMPARISON, text("arm", "which arm, or the first less the second", values=ARMS),
        SETTING, PAIRS, PATIENTS,
        difference("accuracy_for_image", "share answered with what is true of the study whose image is shown"),
        LOW, HIGH,
        difference("balanced_accuracy_for_image", "the same as a mean over what is true of the image"),
        number("balanced_low", "lower end of the balanced accuracy's interval"),
        number("balanced_high", "upper end of the balanced accuracy's interval"),
    ),
    lambda run: own_label_table(run.cells, run.spec.comparisons, run.spec.statistics),
)  # fmt: skip


def own_label_table(
    cells: Mapping[CellKey, pd.DataFrame], comparisons: Mapping[str, Comparison], statistics: Statistics
) -> pd.DataFrame:
    """Three rows a dataset, model and flip comparison whose arms show pictures of different studies: `ARMS`.

    Over the pairs that failed in neither arm and of which the truth of both pictures is known and among the options; a
    response that gave no answer is not right. The balanced accuracy is the mean over what is true of the arm's picture.
    """
    rows: list[list[object]] = []
    for dataset, model in sorted({key[:2] for key in cells}):
        for name in sorted(comparisons):
            settings = comparisons[name].settings
            a, b = ((dataset, model, setting) for setting in settings)
            if comparisons[name].flips is None or a == b or a not in cells or b not in cells:
                continue
            pairs = pairs_of(cells[a], cells[b])
            known = pairs["image_known_a"] & pairs["image_known_b"] & (pairs["image_study_a"] != pairs["image_study_b"])
            pairs = pairs[known & (pairs["status_a"] != "failed") & (pairs["status_b"] != "failed")]
            if len(pairs):
                measures = _measures(pairs, statistics)
                for arm, shown in zip(ARMS, (*settings, " - ".join(settings)), strict=True):
                    rows.append([dataset, model, name, arm, shown, len(pairs), *measures[arm]])
    return TABLE.frame(rows)


def _measures(pairs: pd.DataFrame, statistics: Statistics) -> dict[str, list[object]]:
    """Patients, accuracy and balanced accuracy of each arm, and of the first less the second, with intervals."""
    (patients,) = code_patients(pairs["patient"])
    plain: dict[str, list[tuple[float, Ratio]]] = {}
    balanced: dict[str, list[tuple[float, Ratio]]] = {}
    for arm, side in zip(ARMS, ("a", "b"), strict=False):
        right = pairs[f"right_for_image_{side}"].to_numpy(np.float64)
        truths = pairs[f"image_label_{side}"].to_numpy(dtype=object).astype(str)
        names = np.unique(truths)
        plain[arm] = [(1.0, Ratio(right, np.ones_like(right), patients))]
        balanced[arm] = [
            (1 / len(names), Ratio(right * (truths == one), (truths == one).astype(np.float64), patients))
            for one in names
        ]
    for parts in (plain, balanced):
        parts["difference"] = parts["first"] + [(-weight, ratio) for weight, ratio in parts["second"]]
    measures: dict[str, list[object]] = {}
    for arm in ARMS:
        found = [
            weighted_ratios([ratio for _, ratio in parts[arm]], [w for w, _ in parts[arm]], **statistics.model_dump())
            for parts in (plain, balanced)
        ]
        measures[arm] = [found[0].patients, *(v for one in found for v in (one.estimate, one.low, one.high))]
    return measures
