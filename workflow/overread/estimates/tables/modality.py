"""Modality ablation: what a model scores from the question alone, the report alone, the image alone, and both.

Settings that differ in nothing but whether the study's own image and its full report are shown are one family, found
by what they are and not by their names. Balanced accuracy is the mean recall over the right options, so a model that
always says the same scores what a guess scores. The differences draw patients once for both sides.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pandas as pd

from overread.config import Setting, Statistics
from overread.core.columns import (
    DATASET,
    DIFFERENCE,
    HIGH,
    LOW,
    MODEL,
    PATIENTS,
    QUESTIONS,
    SETTING,
    VIEW,
    text,
)  # fmt: skip
from overread.core.records import content_hash
from overread.estimates.intervals import balanced_difference, balanced_interval
from overread.estimates.scored import CellKey, code_patients
from overread.estimates.tables import Table
from overread.estimates.tables.accuracy import BALANCED_ACCURACY
from overread.settings.image import Image
from overread.settings.order import Order
from overread.settings.report import Report

NOTHING = "nothing was answered"
TABLE = Table(
    __name__,
    __doc__,
    (
        DATASET, MODEL, VIEW,
        text("shown", "`question`, `report`, `image` or `both`; in a row of a difference, what is added to what"),
        SETTING,
        *(
            column.but(blank=NOTHING)
            for column in (QUESTIONS, PATIENTS, BALANCED_ACCURACY.but(range=DIFFERENCE), LOW, HIGH)
        ),
    ),
    lambda run: modality_table(run.cells, run.spec.settings, run.spec.statistics),
)  # fmt: skip
ALIKE = ("images", "report", "warning", "attention", "order", "options", "readout", "questions")
"""Fields that a family may have changed. What else a setting does, `shown` does not say: it has no row."""
SHOWN = {(False, False): "question", (False, True): "report", (True, False): "image", (True, True): "both"}
"""Whether image and report are shown -> the name of it."""
ADDED = {"image added to the question": ("image", "question"), "image added to the report": ("both", "report")}
"""The differences: what is shown, and what it is compared with."""


def modality_table(
    cells: Mapping[CellKey, pd.DataFrame], settings: Mapping[str, Setting], statistics: Statistics
) -> pd.DataFrame:
    """Rows of each dataset, model and family with a setting that shows the image and one that doesn't.

    `shown` is question, report, image or both, or one of `ADDED`, whose `balanced_accuracy` is the difference and whose
    `setting` names both as `first - second`.
    """
    rows: list[list[object]] = []
    for dataset, model in sorted({key[:2] for key in cells}):
        of_model = {key[2]: frame for key, frame in cells.items() if key[:2] == (dataset, model)}
        for view, family in _families({name: settings[name] for name in sorted(of_model)}):
            found = {shown: of_model[name] for shown, name in family.items()}
            for shown in SHOWN.values():
                if shown in family:
                    start = [dataset, model, view, shown, family[shown]]
                    rows.append([*start, *_row([found[shown]], statistics)])
            for added, (first, second) in ADDED.items():
                if first in family and second in family:
                    start = [dataset, model, view, added, f"{family[first]} - {family[second]}"]
                    rows.append([*start, *_row([found[first], found[second]], statistics)])
    return TABLE.frame(rows)


def _families(settings: Mapping[str, Setting]) -> list[tuple[str, dict[str, str]]]:
    """View and settings, by what they show, of each family; the first by name where two settings are the same."""
    plain = {
        name: one for name, one in settings.items() if one[Report].report in ("none", "full") and one.is_plain(*ALIKE)
    }
    groups: dict[str, dict[tuple[str, bool], str]] = {}
    for name, one in plain.items():
        # A setting without an image has no order of image and text: it belongs to the families of both orders.
        images = one[Image].images
        orders = [one[Order].order] if one[Image].shown else ["image-first", "text-first"]
        for order in orders:
            rest = {**one.model_dump(mode="json", exclude={"images", "report"}), "order": order}
            groups.setdefault(content_hash(rest), {}).setdefault((images, one[Report].shown), name)
    families = []
    for group in groups.values():
        for view in sorted({images for images, _ in group} - {"none"}):
            family = {
                SHOWN[images != "none", report]: name
                for (images, report), name in group.items()
                if images in (view, "none")
            }
            if {"question", "report"} & set(family):
                families.append((view, family))
    return sorted(families, key=lambda one: (one[0], sorted(one[1].values())))


def _row(frames: list[pd.DataFrame], statistics: Statistics) -> list[object]:
    """Questions, patients and the balanced accuracy of the first frame, less that of the second where there is one.

    A difference is over what failed on neither side: a question counts in both or in neither.
    """
    scored = [frame[frame["status"] != "failed"] for frame in frames]
    if len(scored) == 1:
        (rows,) = scored
        if not len(rows):
            return [None] * 5
        (patients,) = code_patients(rows["patient"])
        interval = balanced_interval(rows["right"], _classes(rows), patients, statistics)
    else:
        columns = ["question", "run", "patient", "right", "yes_no", "gold_yes", "gold"]
        rows = scored[0][columns].merge(
            scored[1][["question", "run", "right"]], on=["question", "run"], suffixes=("", "_b"), validate="one_to_one"
        )
        if not len(rows):
            return [None] * 5
        (patients,) = code_patients(rows["patient"])
        classes = _classes(rows)
        interval = balanced_difference(rows["right"], classes, rows["right_b"], classes, patients, statistics)
    return [rows["question"].nunique(), interval.patients, interval.estimate, interval.low, interval.high]


def _classes(rows: pd.DataFrame) -> npt.NDArray[np.object_]:
    """The right option of each row: yes and no where these are the options, else the place shown."""
    return np.where(rows["yes_no"], np.where(rows["gold_yes"], "yes", "no"), rows["gold"].astype(str)).astype(object)
