"""Several readers of the same cases: what holds for other readers as well (multi-reader multi-case).

The model is that of Obuchowski and Rockette (1995) with the degrees of freedom of Hillis (2007), for one test: readers
and cases are both samples. The covariance between the readers' accuracies comes from a jackknife over patients, all of
whose cases are left out together. With r readers and Cov2, the mean covariance of two of them:

    se^2 = MS(R)/r + max(Cov2, 0),  df = (MS(R) + r max(Cov2, 0))^2 / (MS(R)^2/(r - 1))
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy import special

from overread.estimates.inference.clusters import FloatArray, IntArray


class Components(NamedTuple):
    """What the inference is made of: the readers' mean, their mean square, and the mean covariance of two of them."""

    mean: float
    readers: int
    ms_r: float
    cov2: float


class Estimate(NamedTuple):
    """An estimate that holds for other readers of other cases, with its interval."""

    value: float
    low: float
    high: float
    error: float
    freedom: float


def components(estimates: FloatArray, without: FloatArray) -> Components:
    """Mean square and covariance.

    estimates  (r,) each reader's accuracy
    without    (N, r) the same with each of N patients left out
    raises     ValueError with fewer than two readers or two patients
    """
    (readers,) = estimates.shape
    patients = len(without)
    if readers < 2 or patients < 2:
        raise ValueError("readers as a sample need two readers of two patients")
    centred = without - without.mean(axis=0)
    covariance = (patients - 1) / patients * (centred.T @ centred)
    cov2 = float(covariance[~np.eye(readers, dtype=bool)].mean())
    return Components(float(estimates.mean()), readers, float(estimates.var(ddof=1)), cov2)


def mean_of_readers(found: Components, level: float = 0.95) -> Estimate:
    """The mean accuracy of readers like these. Limits stay from 0 to 1.

    An error of 0, which all readers alike on all cases give, is no knowledge of others: then there is no interval, and
    both limits are NaN.
    """
    spread = found.ms_r + found.readers * max(found.cov2, 0.0)
    freedom = spread**2 / (found.ms_r**2 / (found.readers - 1)) if found.ms_r > 0 else math.inf
    low, high, error = _interval(found.mean, spread / found.readers, freedom, level)
    return Estimate(found.mean, max(low, 0.0), min(high, 1.0), error, freedom)


def accuracy_components(correct: FloatArray, patients: IntArray) -> Components:
    """Of shares of correct answers.

    correct    (questions, r) whether each reader was correct, from 0 to 1
    patients   (questions,) codes from 0
    """
    codes = np.unique(patients, return_inverse=True)[1]
    count = int(codes.max()) + 1
    sums = np.zeros((count, correct.shape[1]))
    np.add.at(sums, codes, correct)
    total = sums.sum(axis=0)
    without = (total - sums) / (len(correct) - np.bincount(codes, minlength=count))[:, None]
    return components(total / len(correct), without)


def _interval(value: float, variance: float, freedom: float, level: float) -> tuple[float, float, float]:
    if variance <= 0:
        return math.nan, math.nan, 0.0
    error = math.sqrt(variance)
    quantile = (1 + level) / 2
    reach = error * float(special.ndtri(quantile) if math.isinf(freedom) else special.stdtrit(freedom, quantile))
    return value - reach, value + reach, error
