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
from overread.estimates.intervals import (
    balanced_difference,
    balanced_interval,
    difference_interval,
    mean_interval,
)
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
    right, truth = {}, {}
    for side in ("a", "b"):
        right[side] = pairs[f"right_for_image_{side}"].to_numpy(np.float64)
        truth[side] = pairs[f"image_label_{side}"].to_numpy(dtype=object).astype(str).astype(object)
    found = [
        [
            mean_interval(right[side], patients, statistics),
            balanced_interval(right[side], truth[side], patients, statistics),
        ]
        for side in ("a", "b")
    ]
    found.append(
        [
            difference_interval(right["a"], right["b"], patients, statistics),
            balanced_difference(right["a"], truth["a"], right["b"], truth["b"], patients, statistics),
        ]
    )
    return {
        arm: [both[0].patients, *(value for one in both for value in (one.estimate, one.low, one.high))]
        for arm, both in zip(ARMS, found, strict=True)
    }
