"""Patient-clustered bootstrap.

Trials of one patient are not independent, so whole patients are drawn with replacement and all of a patient's trials
travel together (Efron and Tibshirani 1993, chapter 8); the interval runs between percentiles of the drawn estimates
(chapter 13).

Every estimate is a weighted sum of ratios of sums over trials: one ratio, the difference of two, the mean of a ratio
a class. A drawn estimate therefore needs only each patient's sums and how often each patient was drawn: one product of
a (draws, patients) matrix with the sums. All ratios share that matrix, so what the sides of a difference have in common
cancels.

Where every patient has the same value the interval has no width: what was never seen can't be drawn. An interval from
0 to 0 says that nothing was seen among so many patients, not that it can't happen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Counts = npt.NDArray[np.uint32]

KEPT_BYTES = 512 * 2**20
"""How much memory the draw counts kept for the next interval may take."""
BLOCK = 2**22
"""How many counts are turned into floating point at once."""


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate with its interval, in the unit of the estimate. Without two patients there is no interval.

    shown      patients with an event; None where that is not counted
    effective  as many patients of equal size would say as much
    """

    estimate: float
    low: float | None
    high: float | None
    patients: int
    shown: int | None = None
    effective: float | None = None


class Ratio(NamedTuple):
    """A ratio of sums over trials: sum(numerators) / sum(denominators).

    numerators, denominators  (n,) finite
    patients                  (n,) the patient of each trial, a code of 0 or more
    """

    numerators: npt.ArrayLike
    denominators: npt.ArrayLike
    patients: npt.ArrayLike


def clustered_interval(
    values: npt.ArrayLike, patients: npt.ArrayLike, *, level: float = 0.95, draws: int = 10_000, seed: int = 0
) -> Interval:
    """Percentile interval of a mean whose observations come in patients.

    values    (n,) one observation a trial, any unit
    patients  (n,) the patient of each trial, a code of 0 or more
    returns   the mean over all trials and its `level` interval, in the unit of `values`
    raises    ValueError if there is no trial, or a value is not finite
    """
    values = np.asarray(values, dtype=np.float64)
    return ratio_interval(Ratio(values, np.ones_like(values), patients), level=level, draws=draws, seed=seed)


def paired_difference(
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    patients: npt.ArrayLike,
    *,
    level: float = 0.95,
    draws: int = 10_000,
    seed: int = 0,
) -> Interval:
    """The mean of `a` less the mean of `b` over the same trials. Both arms of a pair are drawn together.

    a, b      (n,) the two observations of each pair
    patients  (n,) the patient of each pair
    raises    ValueError if there is no pair, or a value is not finite
    """
    difference = np.asarray(a, dtype=np.float64) - np.asarray(b, dtype=np.float64)
    return clustered_interval(difference, patients, level=level, draws=draws, seed=seed)


def ratio_interval(ratio: Ratio, *, level: float = 0.95, draws: int = 10_000, seed: int = 0) -> Interval:
    """Percentile interval of a ratio of sums.

    raises    ValueError if there is no trial, a value is not finite or the denominators sum to zero
    """
    return weighted_ratios([ratio], [1.0], level=level, draws=draws, seed=seed)


def ratio_difference(
    first: Ratio, second: Ratio, *, level: float = 0.95, draws: int = 10_000, seed: int = 0
) -> Interval:
    """The first ratio less the second, with one draw of patients for both.

    The patients of both are coded alike; those drawn are the union. A patient may have trials on one side only. A
    draw in which one side has no trial at all has no estimate and is left out.

    raises    ValueError if a side has no trial, a value is not finite or its denominators sum to zero
    """
    return weighted_ratios([first, second], [1.0, -1.0], level=level, draws=draws, seed=seed)


def weighted_ratios(
    ratios: Sequence[Ratio], weights: Sequence[float], *, level: float = 0.95, draws: int = 10_000, seed: int = 0
) -> Interval:
    """A sum of ratios, each times its weight, with one draw of patients for all of them.

    The patients of all ratios are coded alike; those drawn are the union. A draw in which a ratio has no trial at all
    has no estimate and is left out.

    raises    ValueError if a ratio has no trial, a value is not finite or its denominators sum to zero
    """
    sums, present = _per_patient(list(ratios))
    totals = sums.sum(axis=0)
    parts = [_quotient(totals[2 * place], totals[2 * place + 1]) for place in range(len(ratios))]
    estimate = float(sum(weight * part for weight, part in zip(weights, parts, strict=True)))
    return _interval(estimate, sums, np.asarray(weights, dtype=np.float64), present, level, draws, seed)


def patient_draws(patients: int, draws: int, seed: int) -> Counts:
    """How often each patient was drawn, (draws, patients): as many as there are patients, with replacement.

    The counts follow from `seed` and `patients` alone; fewer draws are the first rows of more. They are kept for the
    next call, and read-only.
    """
    key = (patients, draws, seed)
    if key not in _kept:
        generator = np.random.default_rng([seed, patients])
        counts = np.empty((draws, patients), dtype=np.uint32)
        shares = np.full(patients, 1 / patients)
        step = max(1, BLOCK // patients)
        for start in range(0, draws, step):
            rows = min(step, draws - start)
            counts[start : start + rows] = generator.multinomial(patients, shares, size=rows)
        counts.flags.writeable = False
        if sum(each.nbytes for each in _kept.values()) + counts.nbytes > KEPT_BYTES:
            _kept.clear()
        _kept[key] = counts
    return _kept[key]


_kept: dict[tuple[int, int, int], Counts] = {}


def _per_patient(ratios: list[Ratio]) -> tuple[FloatArray, int]:
    """Sums by patient, (patients, 2 x ratios): numerator and denominator of each ratio; and the number of patients."""
    checked = [_checked(ratio) for ratio in ratios]
    size = max(int(codes.max()) for _, _, codes in checked) + 1
    present = np.zeros(size, dtype=bool)
    columns = []
    for numerators, denominators, codes in checked:
        present[codes] = True
        columns += [np.bincount(codes, numerators, size), np.bincount(codes, denominators, size)]
    sums: FloatArray = np.column_stack(columns).astype(np.float64)[present]
    return sums, len(sums)


def _checked(ratio: Ratio) -> tuple[FloatArray, FloatArray, IntArray]:
    numerators = np.asarray(ratio.numerators, dtype=np.float64)
    denominators = np.asarray(ratio.denominators, dtype=np.float64)
    codes = np.asarray(ratio.patients, dtype=np.int64)
    if not (numerators.ndim == 1 and numerators.shape == denominators.shape == codes.shape):
        raise ValueError(f"shapes differ: {numerators.shape}, {denominators.shape} and patients {codes.shape}")
    if not len(codes):
        raise ValueError("no trial: a mean over nothing is not defined")
    if not (np.isfinite(numerators).all() and np.isfinite(denominators).all()):
        raise ValueError("a value is not finite: leave such trials out and count them")
    return numerators, denominators, codes


def _quotient(numerator: float, denominator: float) -> float:
    if denominator == 0:
        raise ValueError("the denominators sum to zero")
    return float(numerator / denominator)


def _interval(
    estimate: float, sums: FloatArray, weights: FloatArray, patients: int, level: float, draws: int, seed: int
) -> Interval:
    """Percentiles of the drawn estimates. sums (patients, 2 x ratios), weights (ratios,)."""
    if patients < 2:
        return Interval(estimate, None, None, patients)
    drawn = _drawn_sums(patient_draws(patients, draws, seed), sums)
    with np.errstate(divide="ignore", invalid="ignore"):
        estimates = drawn[:, 0::2] / drawn[:, 1::2]
    values = estimates @ weights
    values = values[np.isfinite(values)]
    if not len(values):
        return Interval(estimate, None, None, patients)
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return Interval(estimate, float(low), float(high), patients)


def _drawn_sums(counts: Counts, sums: FloatArray) -> FloatArray:
    """`counts @ sums`, (draws, columns), in blocks: as floating point the counts take twice the memory."""
    drawn = np.empty((len(counts), sums.shape[1]))
    step = max(1, BLOCK // counts.shape[1])
    for start in range(0, len(counts), step):
        drawn[start : start + step] = counts[start : start + step].astype(np.float64) @ sums
    return drawn
