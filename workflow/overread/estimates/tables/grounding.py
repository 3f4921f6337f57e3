"""Grounding: how far answers depend on the lesion. What its erasure changes, less what that of an equal region without
lesion does.

Settings are found by what they are: one whose picture is not edited, one that differs from it in `erase` alone, and one
in `erase-control` with the same filling, feather and label. All three are counted over the questions that all
three answered. A reader of the rest of the picture, or of nothing, has a grounding of 0, however often its answers
change when a picture is touched.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd

from overread.config import Setting, Statistics
from overread.core.columns import (
    DATASET,
    HIGH,
    LOW,
    MODEL,
    PATIENTS,
    PATIENTS_MOVED,
    SETTING,
    P,
    count,
    difference,
    number,
    share,
    text,
)  # fmt: skip
from overread.edits.base import EditSection
from overread.estimates.inference.clusters import Clusters
from overread.estimates.inference.limits import Combined, signed
from overread.estimates.scored import CellKey, code_patients
from overread.estimates.tables import Table
from overread.settings.edit import Edits

ABOUT = text("asked_about", "what the questions are about: all, or a topic")
TABLE = Table(
    __name__,
    __doc__,
    (
        DATASET, MODEL, SETTING, text("erased", "the setting with the lesion erased"),
        text("control", "the setting with an equal region without lesion erased"),
        ABOUT,
        count("triples", "answers to a question in one run that all three settings gave"),
        PATIENTS, share("accuracy_own", "share of them correct with the picture as it is"),
        share("accuracy_erased", "with the lesion erased"), share("accuracy_control", "with the control erased"),
        share("flips_erased", "share of them that change when the lesion is erased"),
        share("flips_control", "share of them that change when the control is erased"),
        difference("grounding", "flips when the lesion is erased less flips when the control is"), LOW, HIGH, P,
        difference("lost_accuracy", "accuracy with the control erased less that with the lesion erased"),
        number("lost_low", "lower end of its interval", blank="one patient"),
        number("lost_high", "upper end of its interval", blank="one patient"),
        share("incomplete", "share of the answers asked for in all three that one of them lacks"), PATIENTS_MOVED,
    ),
    lambda run: grounding_table(run.cells, run.spec.settings, run.spec.statistics),
)  # fmt: skip


class Triple(NamedTuple):
    """Names of settings."""

    own: str
    erased: str
    control: str


def triples(settings: Mapping[str, Setting]) -> Iterator[Triple]:
    """The settings that belong together, sorted."""
    for own, plain in sorted(settings.items()):
        if plain[Edits].effective_edits:
            continue
        edited = {
            name: one[Edits].effective_edits
            for name, one in sorted(settings.items())
            if plain.difference(one).keys() == {"edit"}
        }
        for erased, first in edited.items():
            for control, second in edited.items():
                if _alike(first, second):
                    yield Triple(own, erased, control)


def _alike(erase: tuple[EditSection, ...], control: tuple[EditSection, ...]) -> bool:
    """Whether two edits do the same to the lesion and to a place without."""
    if [one.kind for one in (*erase, *control)] != ["erase", "erase-control"]:
        return False
    same = ("label", "by", "feather")
    return all(getattr(erase[0], name) == getattr(control[0], name) for name in same)


def grounding_table(
    cells: Mapping[CellKey, pd.DataFrame], settings: Mapping[str, Setting], statistics: Statistics
) -> pd.DataFrame:
    """A row a dataset, model, triple of settings and group."""
    rows: list[list[object]] = []
    for dataset, model in sorted({key[:2] for key in cells}):
        of_model = {key[2]: frame for key, frame in cells.items() if key[:2] == (dataset, model)}
        for triple in triples({name: settings[name] for name in of_model}):
            frame = side_by_side([of_model[name] for name in triple])
            groups = {"all": frame} | {str(topic): own for topic, own in frame.groupby("topic", sort=True)}
            for group, own in groups.items():
                answered = own[own["answered"]]
                if not len(answered):
                    continue
                *measures, moved = _measures(answered, statistics)
                rows.append([dataset, model, *triple, group, *measures, float(1 - own["answered"].mean()), moved])
    return TABLE.frame(rows)


def side_by_side(frames: list[pd.DataFrame]) -> pd.DataFrame:
    """The questions that all cells ask, a row a question and run: choice, right and status of each, by its place."""
    shared = ["question", "run", "topic", "patient"]
    whole = frames[0][shared]
    for place, frame in enumerate(frames):
        arm = frame[["question", "run", "status", "choice", "right"]]
        renamed = arm.rename(columns={name: f"{name}_{place}" for name in ("status", "choice", "right")})
        whole = whole.merge(renamed, on=["question", "run"], validate="one_to_one")
    whole = whole[(whole[[f"status_{place}" for place in range(len(frames))]] != "failed").all(axis=1)]
    answered = (whole[[f"status_{place}" for place in range(len(frames))]] == "answered").all(axis=1)
    return whole.assign(answered=answered)


def _measures(rows: pd.DataFrame, statistics: Statistics) -> list[object]:
    own, erased, control = (rows[f"choice_{place}"].to_numpy() for place in range(3))
    flips = (own != erased).astype(np.float64), (own != control).astype(np.float64)
    right = [rows[f"right_{place}"].to_numpy(dtype=np.float64) for place in range(3)]
    grounding, lost = mean_difference(flips[0] - flips[1], rows), mean_difference(right[2] - right[1], rows)
    return [
        len(rows), grounding.patients, *(float(one.mean()) for one in right), *(float(one.mean()) for one in flips),
        grounding.estimate, *grounding.limits(statistics.level), grounding.p_above(0.0),
        lost.estimate, *lost.limits(statistics.level), grounding.shown,
    ]  # fmt: skip


def mean_difference(differences: np.ndarray, rows: pd.DataFrame) -> Combined:
    """The mean of differences between -1 and 1, clustered by patient."""
    (patients,) = code_patients(rows["patient"])
    return signed(differences / len(rows), np.full(len(rows), 1 / len(rows)), Clusters(patients))
