"""Krippendorff's alpha with an interval clustered by patient."""

from __future__ import annotations

import numpy as np
import pandas as pd

from overread.config import Statistics
from overread.estimates.bootstrap import FloatArray, Interval, patient_draws
from overread.estimates.scored import code_patients


def alpha_interval(frame: pd.DataFrame, column: str, statistics: Statistics) -> Interval:
    """Krippendorff's alpha for nominal data, with the percentile interval of a bootstrap over patients.

    alpha = 1 - (n - 1) D / (n^2 - sum over values of n_v^2), where n_v is how often value v was given to questions that
    two raters or more rated, n their sum, and D the sum over questions of the ordered pairs of unequal values over
    (raters of the question - 1) (Krippendorff 2011, "Computing Krippendorff's alpha-reliability"). D and n_v are sums
    over questions, so a drawn alpha needs only each patient's sums. A draw in which one value alone occurs has no
    alpha and is left out.

    frame     a row a rater and question: question, patient and `column`
    returns   NaN as the estimate where alpha is not defined
    """
    shared = frame[frame.groupby("question")["question"].transform("size") > 1]
    if not len(shared):
        return Interval(float("nan"), None, None, 0)
    (codes,) = code_patients(shared["patient"])
    counts = pd.crosstab(shared["question"], shared[column])
    patients = pd.Series(codes, index=shared["question"]).groupby(level=0).first().loc[counts.index].to_numpy()
    given = counts.to_numpy(np.float64)
    raters = given.sum(axis=1)
    unequal = (raters**2 - (given**2).sum(axis=1)) / (raters - 1)
    count = int(patients.max()) + 1
    sums = np.zeros((count, 1 + given.shape[1]))
    np.add.at(sums, patients, np.column_stack([unequal, given]))
    estimate = float(_alphas(sums.sum(axis=0, keepdims=True))[0])
    if count < 2:
        return Interval(estimate, None, None, count)
    drawn = _alphas(patient_draws(count, statistics.draws, statistics.seed).astype(np.float64) @ sums)
    drawn = drawn[np.isfinite(drawn)]
    if not len(drawn):
        return Interval(estimate, None, None, count)
    low, high = np.quantile(drawn, [(1 - statistics.level) / 2, (1 + statistics.level) / 2])
    return Interval(estimate, float(low), float(high), count)


def _alphas(sums: FloatArray) -> FloatArray:
    """Alpha by row of (rows, 1 + values): the sum of unequal pairs, and how often each value was given."""
    total = sums[:, 1:].sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        alphas: FloatArray = 1 - (total - 1) * sums[:, 0] / (total**2 - (sums[:, 1:] ** 2).sum(axis=1))
    return alphas
