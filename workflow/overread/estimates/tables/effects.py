"""Effects: the difference of two comparisons, and of two accuracies, with the interval of the difference itself.

`minus: [first, second]` is the first comparison's rate less the second's. A patient counts in both at once, over the
union of their patients, so what both share cancels; the same holds for the difference of two effects. A comparison of
accuracy is the accuracy under its first setting less that under its second, over the trials that did not fail under
either: paired, so that a question counts in both or in neither.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd

from overread.config import Comparison, Effect, Statistics
from overread.core.columns import DATASET, EFFECT, HIGH, LOW, MODEL, PATIENTS, difference
from overread.estimates.bootstrap import FloatArray, Interval
from overread.estimates.intervals import combined_interval, difference_interval
from overread.estimates.scored import CellKey, code_patients, paired
from overread.estimates.tables import Table
from overread.estimates.tables.flips import compared

TABLE = Table(
    __name__,
    __doc__,
    (
        DATASET, MODEL, EFFECT, difference("estimate", "the first less the second"),
        LOW, HIGH, PATIENTS,
    ),
    lambda run: effects_table(run.cells, run.spec.comparisons, run.spec.effects, run.spec.statistics),
)  # fmt: skip


class Side(NamedTuple):
    """One comparison: a value a pair, the pair's patient, its question and its run.

    below   the most that a value could be under 0: 0 of flips, 1 of right less right
    """

    values: FloatArray
    pairs: pd.DataFrame
    below: float = 0.0


def effects_table(
    cells: Mapping[CellKey, pd.DataFrame],
    comparisons: Mapping[str, Comparison],
    effects: Mapping[str, Effect],
    statistics: Statistics,
) -> pd.DataFrame:
    """A row a dataset, model and effect, sorted; comparisons of accuracy stand among them under their own names.

    What lacks an arm, or has no pair, is left out.
    """
    rows: list[list[object]] = []
    for dataset, model in sorted({key[:2] for key in cells}):
        of_model = {key[2]: frame for key, frame in cells.items() if key[:2] == (dataset, model)}
        found = {}
        for name, comparison in comparisons.items():
            if comparison.accuracy is not None and (pairs := _not_failed(of_model, comparison)) is not None:
                (patients,) = code_patients(pairs["patient"])
                found[name] = difference_interval(pairs["right_a"], pairs["right_b"], patients, statistics)
        for name, effect in effects.items():
            terms = effect.terms(comparisons, effects, (name,))
            sides = [_side(of_model, comparisons[comparison]) for _, comparison in terms]
            whole = [side for side in sides if side is not None]
            if len(whole) == len(terms):
                found[name] = combined(whole, [sign for sign, _ in terms], statistics)
        for name in sorted(found):
            one = found[name]
            rows.append([dataset, model, name, one.estimate, one.low, one.high, one.patients])
    return TABLE.frame(rows)


def combined(sides: list[Side], signs: list[int], statistics: Statistics) -> Interval:
    """The sum of the sides' means, each with its sign, with whole patients for all at once."""
    codes = code_patients(*(side.pairs["patient"] for side in sides))
    asked = pd.concat([side.pairs[["question", "run"]] for side in sides], ignore_index=True)
    questions = pd.factorize(asked["question"])[0] * (int(asked["run"].max()) + 1) + asked["run"].to_numpy()
    places = np.unique(questions, return_inverse=True)[1].astype(np.int64)
    ends = np.cumsum([len(side.values) for side in sides])[:-1]
    parts = [
        (sign, side.values, np.full(len(side.values), side.below), each, patients)
        for sign, side, each, patients in zip(signs, sides, np.split(places, ends), codes, strict=True)
    ]
    return combined_interval(parts, statistics)


def flip_side(pairs: pd.DataFrame) -> Side | None:
    """Whether each pair flipped, of those whose two arms were answered; None without any."""
    both = pairs[pairs["both"]]
    return Side(both["flipped"].to_numpy(np.float64), both) if len(both) else None


def _side(of_model: Mapping[str, pd.DataFrame], comparison: Comparison) -> Side | None:
    if comparison.accuracy is not None:
        pairs = _not_failed(of_model, comparison)
        if pairs is None:
            return None
        return Side(pairs["right_a"].to_numpy(np.float64) - pairs["right_b"].to_numpy(np.float64), pairs, 1.0)
    pairs = compared(of_model, comparison)
    return None if pairs is None else flip_side(pairs)


def _not_failed(of_model: Mapping[str, pd.DataFrame], comparison: Comparison) -> pd.DataFrame | None:
    """The pairs of a comparison of accuracy; none if an arm was not run or nothing pairs."""
    a, b = (of_model.get(setting) for setting in comparison.settings)
    if a is None or b is None:
        return None
    pairs = paired(a, b)
    pairs = pairs[(pairs["status_a"] != "failed") & (pairs["status_b"] != "failed")]
    return pairs if len(pairs) else None
