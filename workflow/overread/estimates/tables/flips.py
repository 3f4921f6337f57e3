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

`floor` is the noise floor: how often the answers to the same questions change under the comparison's first setting
when nothing is changed but the run. It is blank where that setting was run once. A comparison of a setting with itself
is that of its runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import numpy as np
import pandas as pd

from overread.config import Comparison, Statistics
from overread.core.columns import (
    BOUND_HIGH,
    BOUND_LOW,
    COMPARISON,
    DATASET,
    FLIP_RATE,
    FLOOR,
    FLOOR_HIGH,
    FLOOR_LOW,
    FROM_0,
    GROUP,
    HIGH,
    LOW,
    MODEL,
    PAIRS,
    PATIENTS,
    PATIENTS_MOVED,
    UNPAIRED,
    count,
    number,
    share,
)
from overread.estimates.bootstrap import IntArray, Interval
from overread.estimates.intervals import mean_interval
from overread.estimates.scored import CellKey, code_patients, paired
from overread.estimates.tables import Table

RUN_ONCE = "the first setting was run once"
NO_MARGIN = "no pair has log-probabilities"
NOT_YES_NO = "no question is answered by yes or no"
ONE_ANSWER = "no yes/no question, or one patient"
TABLE = Table(
    __name__,
    __doc__,
    (
        DATASET, MODEL, COMPARISON, GROUP, PAIRS, PATIENTS, FLIP_RATE, LOW, HIGH,
        number(
            "mean_abs_margin_change", "how far the margin moves, whichever way, on average", unit="nat", range=FROM_0,
            blank=NO_MARGIN,
        ),
        share("margin_moved_over_0_5", "share of the pairs whose margin moves by more than 0.5 nat", blank=NO_MARGIN),
        share("yes_rate_a", "share of the yes/no pairs answered yes under the first setting", blank=NOT_YES_NO),
        share("yes_rate_b", "share of the yes/no pairs answered yes under the second setting", blank=NOT_YES_NO),
        UNPAIRED, *(column.but(blank=RUN_ONCE) for column in (FLOOR, FLOOR_LOW, FLOOR_HIGH)),
        count("all_pairs", "pairs of which no arm failed, answered or not"),
        share("outcome_flip_rate", "share of them whose outcomes differ, a refusal being one"),
        number("outcome_low", "lower end of its interval"), number("outcome_high", "upper end of its interval"),
        BOUND_LOW, BOUND_HIGH,
        share("expected_rate", "flips that the two yes rates give two unrelated answers", blank=NOT_YES_NO),
        number("ac1", "agreement of the two arms beyond chance: Gwet's AC1", range=(-1.0, 1.0), blank=ONE_ANSWER),
        number("ac1_low", "lower end of its interval, with chance as it is", blank=ONE_ANSWER),
        number("ac1_high", "upper end of its interval, with chance as it is", blank=ONE_ANSWER),
        share("changed_labels", "share of the pairs whose correct option differs: what a perfect reader would flip",
              blank="no label is known in both arms"),
        PATIENTS_MOVED.but(blank="not counted by the bootstrap"),
    ),
    lambda run: flips_table(run.cells, run.spec.comparisons, run.spec.statistics),
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
        of_model = {key[2]: frame for key, frame in cells.items() if key[:2] == (dataset, model)}
        for name in sorted(comparisons):
            pairs = compared(of_model, comparisons[name])
            if pairs is None:
                continue
            again = reruns_of(of_model[comparisons[name].settings[0]])
            for group, chosen in groups(pairs).items():
                if chosen["both"].any():
                    interval = flip_interval(chosen, statistics)
                    measures = [*_measures(chosen, interval), *_floor(again, chosen, statistics)]
                    measures += _of_all(chosen, interval, statistics)
                    rows.append([dataset, model, name, group, *measures])
    return TABLE.frame(rows)


def compared(of_model: Mapping[str, pd.DataFrame], comparison: Comparison) -> pd.DataFrame | None:
    """The pairs of a flip comparison; None if it is of another kind, an arm was not run, or there was no rerun."""
    a, b = (of_model.get(setting) for setting in comparison.settings)
    if comparison.flips is None or a is None or b is None:
        return None
    return reruns_of(a) if a is b else pairs_of(a, b)


def reruns_of(rows: pd.DataFrame) -> pd.DataFrame | None:
    """The pairs of each run of a cell with the next one; `run` is the first of the two.

    Only trials that put the same request are reruns: where each run shuffles the options anew, there is none.
    returns   None where there is no pair
    """
    by_run = runs_of(rows)
    found = [pairs_of(by_run[one], by_run[following].assign(run=one)) for one, following in pairwise(sorted(by_run))]
    if not found:
        return None
    pairs = pd.concat(found, ignore_index=True)
    pairs = pairs[pairs["trial_a"] == pairs["trial_b"]].reset_index(drop=True)
    return pairs if len(pairs) else None


def runs_of(rows: pd.DataFrame) -> dict[int, pd.DataFrame]:
    """The rows of each run of a cell."""
    return {int(run): rows[rows["run"] == run] for run in rows["run"].unique()}


def flip_interval(pairs: pd.DataFrame, statistics: Statistics) -> Interval:
    """The flip rate of pairs with its interval. At least one must have been answered in both arms."""
    both = pairs[pairs["both"]]
    patients, partners = clusters_of(both)
    return mean_interval(both["flipped"], patients, statistics, partners=partners)


def clusters_of(pairs: pd.DataFrame) -> tuple[IntArray, IntArray]:
    """The patient of each pair, and the patient whose picture stands in for the own one: the same where none does."""
    own = pairs["patient"]
    partner = pairs["image_patient_b"].where(pairs["image_patient_b"].notna(), own)
    first = pairs["image_patient_a"].where(pairs["image_patient_a"].notna(), own)
    # The arm that shows the own picture may be either.
    patients, partners = code_patients(own, partner.where(partner != own, first))
    return patients, partners


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


def _measures(pairs: pd.DataFrame, interval: Interval) -> list[object]:
    both = pairs[pairs["both"]]
    moved = (both["margin_a"] - both["margin_b"]).abs().dropna()
    polar = both[both["yes_no"]]
    return [
        len(both), interval.patients, interval.estimate, interval.low, interval.high,
        _mean(moved), _mean(moved > MARGIN_MOVE), _mean(polar["said_yes_a"]), _mean(polar["said_yes_b"]),
        len(pairs) - len(both),
    ]  # fmt: skip


def _of_all(pairs: pd.DataFrame, interval: Interval, statistics: Statistics) -> list[object]:
    """What the columns from `all_pairs` on hold."""
    asked = pairs[(pairs["status_a"] != "failed") & (pairs["status_b"] != "failed")]
    patients, partners = clusters_of(asked)
    same = (asked["status_a"] == asked["status_b"]) & (asked["choice_a"] == asked["choice_b"])
    changed = mean_interval(~same, patients, statistics, partners=partners)
    flipped, lost = int(asked["flipped"].sum()), int((~asked["both"]).sum())
    bounds = [flipped / len(asked), (flipped + lost) / len(asked)]
    known = asked[asked["image_known_a"] & asked["image_known_b"]]
    ceiling = _mean(known["image_label_a"] != known["image_label_b"])
    return [
        len(asked), changed.estimate, changed.low, changed.high, *bounds, *_beyond_chance(pairs, statistics), ceiling,
        interval.shown,
    ]  # fmt: skip


def _beyond_chance(pairs: pd.DataFrame, statistics: Statistics) -> list[float | None]:
    """Of the yes/no pairs answered in both arms: the flips expected of two unrelated answers with their yes rates, and
    AC1 with its interval (Gwet 2008): 1 - flips/(1 - pe), with pe = 2 m (1 - m) and m the mean of the yes rates.
    """
    polar = pairs[pairs["both"] & pairs["yes_no"]]
    if not len(polar):
        return [None] * 4
    a, b = (float(polar[column].mean()) for column in ("said_yes_a", "said_yes_b"))
    expected, mean = a * (1 - b) + b * (1 - a), (a + b) / 2
    beyond = 1 - 2 * mean * (1 - mean)
    interval = flip_interval(polar, statistics)
    if interval.low is None or interval.high is None:
        return [expected, None, None, None]
    return [expected, *(1 - rate / beyond for rate in (interval.estimate, interval.high, interval.low))]


def _floor(again: pd.DataFrame | None, chosen: pd.DataFrame, statistics: Statistics) -> list[float | None]:
    """How often the answers to the questions of `chosen` change in reruns, with its interval; blank without any."""
    if again is None:
        return [None] * 3
    again = again[again["question"].isin(chosen["question"])]
    if not again["both"].any():
        return [None] * 3
    one = flip_interval(again, statistics)
    return [one.estimate, one.low, one.high]


def _mean(values: pd.Series[float] | pd.Series[bool]) -> float | None:
    return float(np.mean(values.to_numpy())) if len(values) else None
