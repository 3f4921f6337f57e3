"""Accuracy: how often the right option was given, in one setting of one model.

Accuracy is right answers over all trials that did not fail. A response that could not be read, a refusal and a
cut-off answer are not right, and are counted in their own columns. All runs are pooled, which is the mean of the runs
where every run asks the same questions; the patients are the clusters of the interval, so repeating a run does not
narrow it.

`balanced_accuracy` is the mean recall over the right options: yes and no where these are the options, else the places
shown. `chance` is what a guess among the options scores on average, `always_first` what the first option shown
scores.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from overread.config import Statistics
from overread.core.columns import DATASET, HIGH, LOW, MODEL, PATIENTS, QUESTIONS, RUNS, SETTING, count, share
from overread.estimates.intervals import mean_interval
from overread.estimates.scored import CellKey, code_patients
from overread.estimates.tables import Table

ACCURACY = share("accuracy", "share answered correctly of the trials that did not fail")
BALANCED_ACCURACY = share(
    "balanced_accuracy", "mean recall over the correct options: yes and no where these are the options, else the places"
)
STATUSES = (
    count("answered", "trials whose response gives one option"),
    count("unparsed", "trials whose response could not be read; not correct"),
    count("refused", "trials that the model refused to answer; not correct"),
    count("truncated", "trials whose response was cut off; not correct"),
    count("failed", "trials whose request failed for good; in no share"),
)
CHANCE = share("chance", "what a guess among the options scores on average")
ALWAYS_FIRST = share("always_first", "what the first option shown scores")
ALL_FAILED = "every trial failed"
TABLE = Table(
    __name__,
    __doc__,
    (
        DATASET, MODEL, SETTING, RUNS, QUESTIONS, PATIENTS,
        *(column.but(blank=ALL_FAILED) for column in (ACCURACY, LOW, HIGH, BALANCED_ACCURACY)),
        *STATUSES, *(column.but(blank=ALL_FAILED) for column in (CHANCE, ALWAYS_FIRST)),
    ),
    lambda run: accuracy_table(run.cells, run.spec.statistics),
)  # fmt: skip


def accuracy_table(cells: Mapping[CellKey, pd.DataFrame], statistics: Statistics) -> pd.DataFrame:
    """A row a cell, sorted by dataset, model and setting. Statuses are counted over all runs."""
    rows = [[*key, *_measures(cells[key], statistics)] for key in sorted(cells)]
    return TABLE.frame(rows)


def _measures(rows: pd.DataFrame, statistics: Statistics) -> list[object]:
    scored = rows[rows["status"] != "failed"]
    counts = rows["status"].value_counts()
    measures: list[object] = [rows["run"].nunique(), rows["question"].nunique(), rows["patient"].nunique()]
    if len(scored):
        (patients,) = code_patients(scored["patient"])
        interval = mean_interval(scored["right"], patients, statistics)
        measures += [interval.estimate, interval.low, interval.high, balanced_accuracy(scored)]
    else:
        measures += [None] * 4
    measures += [int(counts.get(status.name, 0)) for status in STATUSES]
    if len(scored):
        measures += [float((1 / scored["n_options"]).mean()), float((scored["gold"] == 0).mean())]
    else:
        measures += [None] * 2
    return measures


def balanced_accuracy(rows: pd.DataFrame) -> float:
    """The mean over the right options' classes of the share answered right."""
    classes = np.where(rows["yes_no"], np.where(rows["gold_yes"], "yes", "no"), rows["gold"].astype(str))
    return float(rows["right"].groupby(classes).mean().mean())
