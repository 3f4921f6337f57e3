"""Flip rates: how often the answer changes when one thing about a trial is changed.

A comparison names two settings. A pair is one question in one run, answered under both; it flips if the option given,
by its place as written, differs. Pairs with an arm that was not answered say nothing about a change: they are left
out and counted in `unpaired`.

Groups of a comparison, left out where they have no pair:
    all                               the whole
    a topic                           the questions of a finding or a kind
    label-changed, label-unchanged    whether the right option differs between the two studies whose pictures are shown
    within-patient, across-patients   whether these two studies are of one patient
The last four hold only pairs whose arms show pictures of two studies. A pair with a label that is not known is in
neither of the two groups about labels.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from overread.config import Comparison, Statistics
from overread.tables.bootstrap import clustered_interval
from overread.tables.scored import CellKey, code_patients, paired

COLUMNS = (
    "dataset", "model", "comparison", "group", "pairs", "patients", "flip_rate", "low", "high",
    "mean_abs_margin_change", "margin_moved_over_0_5", "yes_rate_a", "yes_rate_b", "unpaired",
)  # fmt: skip
GROUPS = ("all", "label-changed", "label-unchanged", "within-patient", "across-patients")
"""The groups that are no topic."""
MARGIN_MOVE = 0.5
"""A change of the margin that counts as a move, in log-probability (ModaLens)."""


def flips_table(
    cells: Mapping[CellKey, pd.DataFrame], comparisons: Mapping[str, Comparison], statistics: Statistics
) -> pd.DataFrame:
    """A row a dataset, model, comparison and group. A comparison of which an arm was not run is left out.

    The margin columns are over the pairs whose two arms have a margin, the yes rates over those of yes/no questions;
    blank where there is none.
    """
    rows: list[list[object]] = []
    for dataset, model in sorted({key[:2] for key in cells}):
        for name in sorted(comparisons):
            a, b = ((dataset, model, setting) for setting in comparisons[name].settings)
            if comparisons[name].flips is None or a not in cells or b not in cells:
                continue
            for group, chosen in groups(pairs_of(cells[a], cells[b])).items():
                if chosen["both"].any():
                    rows.append([dataset, model, name, group, *_measures(chosen, statistics)])
    return pd.DataFrame(rows, columns=list(COLUMNS))


def pairs_of(a: pd.DataFrame, b: pd.DataFrame) -> pd.DataFrame:
    """Pairs with two columns more: `both`, whether both arms were answered, and `flipped`."""
    pairs = paired(a, b)
    pairs["both"] = (pairs["status_a"] == "answered") & (pairs["status_b"] == "answered")
    pairs["flipped"] = pairs["both"] & (pairs["choice_a"] != pairs["choice_b"])
    return pairs


def groups(pairs: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The pairs of each group, in the order of the table. A group may be empty."""
    chosen = {"all": pairs}
    for topic in sorted(pairs["topic"].unique()):
        chosen[f"{topic} (topic)" if topic in GROUPS else topic] = pairs[pairs["topic"] == topic]
    pictured = pairs["image_study_a"].notna() & pairs["image_study_b"].notna()
    swapped = pairs[pictured & (pairs["image_study_a"] != pairs["image_study_b"])]
    known = swapped["image_label_a"].notna() & swapped["image_label_b"].notna()
    changed = swapped["image_label_a"] != swapped["image_label_b"]
    within = swapped["image_patient_a"] == swapped["image_patient_b"]
    return chosen | {
        "label-changed": swapped[known & changed],
        "label-unchanged": swapped[known & ~changed],
        "within-patient": swapped[within],
        "across-patients": swapped[~within],
    }


def _measures(pairs: pd.DataFrame, statistics: Statistics) -> list[object]:
    both = pairs[pairs["both"]]
    (patients,) = code_patients(both["patient"])
    interval = clustered_interval(both["flipped"], patients, **statistics.model_dump())
    moved = (both["margin_a"] - both["margin_b"]).abs().dropna()
    polar = both[both["yes_no"]]
    return [
        len(both), interval.patients, interval.estimate, interval.low, interval.high,
        _mean(moved), _mean(moved > MARGIN_MOVE), _mean(polar["said_yes_a"]), _mean(polar["said_yes_b"]),
        len(pairs) - len(both),
    ]  # fmt: skip


def _mean(values: pd.Series[float] | pd.Series[bool]) -> float | None:
    return float(np.mean(values.to_numpy())) if len(values) else None
