"""Sight: whether a model sees the picture at all. The positive control: questions about marks drawn at random on it.

What is drawn is independent of the study, and each option is correct equally often. So whoever does not see the
picture is correct with a chance of 1/options in every question, whatever it answers, and `p` is exact (the sum of
independent draws of different chances). Answers of the first run are tested, those of all runs are in the accuracy. A
refusal or an answer that can't be read is not correct.

`sees` is said of all questions together: yes where p is significant and the accuracy's lower limit lies above the
middle between chance and 1; in part where p is significant and it does not; not shown where p is not.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from scipy.stats import binom  # type: ignore[import-untyped, unused-ignore]

from overread.config import Setting, Statistics
from overread.core.columns import DATASET, HIGH, LOW, MODEL, PATIENTS, QUESTIONS, SETTING, P, number, text
from overread.estimates.intervals import mean_interval
from overread.estimates.scored import CellKey, code_patients
from overread.estimates.tables import Table
from overread.estimates.tables.accuracy import ACCURACY, ALL_FAILED, CHANCE
from overread.estimates.tables.grounding import ABOUT
from overread.settings.edit import Edits

SEES = ("yes", "in part", "not shown")
TABLE = Table(
    __name__,
    __doc__,
    (
        DATASET, MODEL, SETTING, ABOUT, number("mark_size", "the marks' diameter as a share of the shorter edge"),
        number("mark_contrast", "their contrast, from -1 (black) to 1 (white)"), QUESTIONS, PATIENTS,
        *(column.but(blank=ALL_FAILED) for column in (ACCURACY, LOW, HIGH)), CHANCE,
        P.but(blank=ALL_FAILED), text("sees", "what all questions together show", values=SEES, blank="of a topic"),
    ),
    lambda run: sight_table(run.cells, run.spec.settings, run.spec.statistics),
)  # fmt: skip


def sight_table(
    cells: Mapping[CellKey, pd.DataFrame], settings: Mapping[str, Setting], statistics: Statistics
) -> pd.DataFrame:
    """A row a cell whose setting asks about marks, for all questions and for each topic."""
    rows: list[list[object]] = []
    for key in sorted(cells):
        mark = settings[key[2]][Edits].asking
        if mark is None:
            continue
        frame = cells[key]
        strengths = {one.name: one.value for one in mark.strengths()}
        groups = {"all": frame} | {str(topic): own for topic, own in frame.groupby("topic", sort=True)}
        for about, own in groups.items():
            measures = _measures(own, statistics)
            sees = _sees(measures[2:], statistics) if about == "all" else None
            rows.append([*key, about, strengths.get("size"), strengths.get("contrast"), *measures, sees])
    return TABLE.frame(rows)


def _measures(rows: pd.DataFrame, statistics: Statistics) -> list[object]:
    asked = rows["question"].nunique(), rows["patient"].nunique()
    chance = float((1 / rows["n_options"]).mean())
    scored = rows[rows["status"] != "failed"]
    if not len(scored):
        return [*asked, None, None, None, chance, None]
    (patients,) = code_patients(scored["patient"])
    interval = mean_interval(scored["right"], patients, statistics)
    first = scored[scored["run"] == scored["run"].min()]
    p = p_by_chance(int(first["right"].sum()), first["n_options"].to_numpy())
    return [*asked, interval.estimate, interval.low, interval.high, chance, p]


def _sees(measures: list[object], statistics: Statistics) -> str:
    _, low, _, chance, p = measures
    if not isinstance(p, float) or p > (1 - statistics.level) / 2:
        return "not shown"
    assert isinstance(chance, float)
    return "yes" if isinstance(low, float) and low > (1 + chance) / 2 else "in part"


def p_by_chance(correct: int, n_options: np.ndarray) -> float:
    """The chance of so many correct answers or more, each independently correct with a chance of 1/options."""
    mass = np.ones(1)
    for options, many in zip(*np.unique(n_options, return_counts=True), strict=True):
        mass = np.convolve(mass, binom.pmf(np.arange(many + 1), many, 1 / options))
    return float(min(1.0, mass[correct:].sum()))
