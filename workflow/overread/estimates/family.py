"""The image swaps of a model as arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from overread.config import Comparison, Statistics
from overread.estimates.bootstrap import FloatArray, IntArray
from overread.estimates.inference.decide import Rules
from overread.estimates.inference.swap import ABSENT, OUTCOMES, Swap

OfModel = Mapping[str, pd.DataFrame]
"""A model's cells by setting."""


def rules_of(statistics: Statistics) -> Rules:
    """What the config sets beforehand."""
    smallest = statistics.smallest_effect
    by_topic = statistics.clusters == "patients-and-questions"
    return Rules(statistics.level, smallest.following, smallest.gain, statistics.lost, by_topic)


def asked_by(of_model: OfModel, comparisons: Mapping[str, Comparison]) -> list[str]:
    """The comparisons whose two settings a model has cells for, other than of a setting with itself."""
    return [
        name
        for name, one in comparisons.items()
        if set(one.settings) <= set(of_model) and one.settings[0] != one.settings[1]
    ]


def swap_of(
    of_model: OfModel, comparison: Comparison, comparisons: Mapping[str, Comparison] | None = None
) -> Swap | None:
    """The arrays of a flip comparison, over the questions that both settings ask; None where there is none.

    comparisons   where its floors are looked for: those with a `kind` and the same first setting
    """
    own, shown = (of_model[name] for name in comparison.settings)
    questions = np.intersect1d(own["question"].unique(), shown["question"].unique())
    if not len(questions):
        return None
    index = pd.Index(questions)
    arms = [_Arm(frame, index) for frame in (own, shown)]
    floors: dict[str, IntArray] = {}
    for one in (comparisons or {}).values():
        if one.kind is not None and one.settings[0] == comparison.settings[0] and one.settings[1] in of_model:
            floors.setdefault(one.kind, _Arm(of_model[one.settings[1]], index).outcomes)
    first, second = arms
    whose = pd.Series(second.first("image_patient"), dtype=object)
    partner = whose.where(whose.notna(), pd.Series(first.first("patient"), dtype=object))
    codes = pd.factorize(np.concatenate([first.first("patient"), partner.to_numpy()]), sort=True)[0].astype(np.int64)
    margins = [arm.margins for arm in arms]
    return Swap(
        patient=codes[: len(index)], partner=codes[len(index) :],
        topic=pd.factorize(first.first("topic"), sort=True)[0].astype(np.int64),
        own=first.outcomes, shown=second.outcomes,
        truth_own=first.first("image_choice").astype(np.int64),
        truth_shown=second.first("image_choice").astype(np.int64), yes=first.first("yes_choice").astype(np.int64),
        margin_own=margins[0], margin_shown=margins[1] if margins[0] is not None else None,
        placebo=floors.get("placebo"), matched=floors.get("label-matched"),
    )  # fmt: skip


def outcomes_of(status: pd.Series[str], choice: IntArray) -> IntArray:
    """Each trial's outcome: the option given, by its place as written, or why there is none; `ABSENT` if it failed."""
    found = choice.astype(np.int64, copy=True)
    for name, code in OUTCOMES.items():
        found[(status == name).to_numpy()] = code
    found[(status == "failed").to_numpy()] = ABSENT
    return found


class _Arm:
    """A cell's rows of some questions, as (questions, runs)."""

    def __init__(self, frame: pd.DataFrame, questions: pd.Index[str]) -> None:
        place = questions.get_indexer(pd.Index(frame["question"]))
        known = np.flatnonzero(place >= 0)
        self.rows = frame.iloc[known]
        self.place = place[known].astype(np.int64)
        runs, self.run = np.unique(self.rows["run"].to_numpy(), return_inverse=True)
        self.shape = (len(questions), len(runs))

    @property
    def outcomes(self) -> IntArray:
        found = np.full(self.shape, ABSENT, dtype=np.int64)
        found[self.place, self.run] = outcomes_of(self.rows["status"], self.rows["choice"].to_numpy(np.int64))
        return found

    @property
    def margins(self) -> FloatArray | None:
        """None without any."""
        values = self.rows["margin"].to_numpy(np.float64)
        if not np.isfinite(values).any():
            return None
        found = np.full(self.shape, np.nan)
        found[self.place, self.run] = values
        return found

    def first(self, column: str) -> npt.NDArray[Any]:
        """(questions,) what a column holds of each question, which is the same in all runs."""
        values = self.rows[column].to_numpy()
        found = np.empty(self.shape[0], dtype=object if values.dtype == object else values.dtype)
        found[self.place] = values
        return found
