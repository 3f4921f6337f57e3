"""Several readers of the same cases: what holds for other readers as well (multi-reader multi-case).

The model is that of Obuchowski and Rockette (1995) with the degrees of freedom of Hillis (2007): readers and cases are
both samples. Covariances between the readers' accuracies come from a jackknife over patients, all of whose cases are
left out together. With t tests (conditions) and r readers, Cov1 is of one reader in two tests, Cov2 of two readers in
one test, Cov3 of two readers in two tests:

    one test     se^2 = MS(R)/r + max(Cov2, 0),              df = (MS(R) + r max(Cov2, 0))^2 / (MS(R)^2/(r - 1))
    difference   D = MS(TR) + r max(Cov2 - Cov3, 0), se^2 = 2 D/r, df = D^2 / (MS(TR)^2/((t - 1)(r - 1)))

F of no difference among the tests is MS(T)/D on t - 1 and df degrees of freedom.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy import special

from overread.estimates.inference.clusters import FloatArray, IntArray


class Components(NamedTuple):
    """What the inference is made of.

    means            (t,) of the tests over readers
    ms_t, ms_tr      mean squares of tests and of tests by readers; 0 with one test
    ms_r             mean square of readers, of the first test
    """

    means: FloatArray
    readers: int
    ms_t: float
    ms_tr: float
    ms_r: float
    cov1: float
    cov2: float
    cov3: float


class Estimate(NamedTuple):
    """An estimate that holds for other readers of other cases, with its interval; p of no difference, for one."""

    value: float
    low: float
    high: float
    error: float
    freedom: float
    p: float | None = None


def components(estimates: FloatArray, without: FloatArray) -> Components:
    """Mean squares and covariances.

    estimates  (t, r) each reader's accuracy under each test
    without    (N, t, r) the same with each of N patients left out
    raises     ValueError for fewer than two readers, or two patients
    """
    tests, readers = estimates.shape
    patients = len(without)
    if readers < 2 or patients < 2:
        raise ValueError("readers as a sample need two readers of two patients")
    flat = (without - without.mean(axis=0)).reshape(patients, tests * readers)
    covariance = (patients - 1) / patients * (flat.T @ flat)
    of = covariance.reshape(tests, readers, tests, readers)
    same_test, same_reader = np.eye(tests, dtype=bool), np.eye(readers, dtype=bool)
    kinds = {
        name: (one[:, None, :, None] & two[None, :, None, :])
        for name, one, two in (
            ("cov1", ~same_test, same_reader), ("cov2", same_test, ~same_reader), ("cov3", ~same_test, ~same_reader),
        )
    }  # fmt: skip
    found = {name: float(of[chosen].mean()) if chosen.any() else 0.0 for name, chosen in kinds.items()}
    by_test, by_reader = estimates.mean(axis=1), estimates.mean(axis=0)
    ms_t = ms_tr = 0.0
    if tests > 1:
        ms_t = readers * float(((by_test - estimates.mean()) ** 2).sum()) / (tests - 1)
        rest = estimates - by_test[:, None] - by_reader[None, :] + estimates.mean()
        ms_tr = float((rest**2).sum()) / ((tests - 1) * (readers - 1))
    return Components(by_test, readers, ms_t, ms_tr, float(estimates[0].var(ddof=1)), **found)


def mean_of_readers(found: Components, level: float = 0.95) -> Estimate:
    """The mean accuracy of readers like these, under the first test. Limits stay from 0 to 1.

    An error of 0, which all readers alike on all cases give, is no knowledge of others: then there is no interval, and
    both limits are NaN.
    """
    spread = found.ms_r + found.readers * max(found.cov2, 0.0)
    freedom = spread**2 / (found.ms_r**2 / (found.readers - 1)) if found.ms_r > 0 else math.inf
    low, high, error = _interval(float(found.means[0]), spread / found.readers, freedom, level)
    return Estimate(float(found.means[0]), max(low, 0.0), min(high, 1.0), error, freedom)


def difference_of_tests(found: Components, level: float = 0.95) -> Estimate:
    """The first test's mean less the second's."""
    tests = len(found.means)
    spread = found.ms_tr + found.readers * max(found.cov2 - found.cov3, 0.0)
    freedom = spread**2 / (found.ms_tr**2 / ((tests - 1) * (found.readers - 1))) if found.ms_tr > 0 else math.inf
    value = float(found.means[0] - found.means[1])
    low, high, error = _interval(value, 2 * spread / found.readers, freedom, level)
    ratio = found.ms_t / spread if spread > 0 else math.inf
    p = float(special.fdtrc(tests - 1, freedom if math.isfinite(freedom) else 1e9, ratio))
    return Estimate(value, low, high, error, freedom, p)


def accuracy_components(correct: FloatArray, patients: IntArray) -> Components:
    """Of shares of correct answers.

    correct    (questions, t, r) whether each reader was correct under each test, from 0 to 1
    patients   (questions,) codes from 0
    """
    codes = np.unique(patients, return_inverse=True)[1]
    count = int(codes.max()) + 1
    sums = np.zeros((count, *correct.shape[1:]))
    np.add.at(sums, codes, correct)
    sizes = np.bincount(codes, minlength=count)
    total = sums.sum(axis=0)
    without = (total - sums) / (len(correct) - sizes)[:, None, None]
    return components(total / len(correct), without)


def _interval(value: float, variance: float, freedom: float, level: float) -> tuple[float, float, float]:
    if variance <= 0:
        return math.nan, math.nan, 0.0
    error = math.sqrt(variance)
    quantile = (1 + level) / 2
    reach = error * float(special.ndtri(quantile) if math.isinf(freedom) else special.stdtrit(freedom, quantile))
    return value - reach, value + reach, error
