"""The interval of every number that is printed: closed form (`statistics.intervals: design`), or the bootstrap.

Both take whole patients. The closed form is in `inference.limits`; its width is never zero. The bootstrap's percentile
interval is as narrow as what was seen: it covers less than it says with few patients or few events.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from overread.estimates import bootstrap
from overread.estimates.bootstrap import FloatArray, IntArray, Interval, Ratio
from overread.estimates.inference.clusters import Clusters
from overread.estimates.inference.limits import Combined, proportion, signed, stratified

if TYPE_CHECKING:
    from overread.config import Statistics


def mean_interval(
    values: npt.ArrayLike,
    patients: npt.ArrayLike,
    statistics: Statistics,
    *,
    partners: IntArray | None = None,
    bounds: tuple[float, float] = (0.0, 1.0),
) -> Interval:
    """A mean of values that come in patients, with its interval in their unit.

    values    (n,) within `bounds`
    patients  (n,) codes from 0; partners (n,) of the pictures shown instead, coded alike
    raises    ValueError if there is no value, or one is not finite or out of bounds
    """
    values, codes = _checked(values, patients)
    if statistics.intervals == "bootstrap":
        return bootstrap.clustered_interval(values, codes, **_drawn(statistics))
    low, high = bounds
    if values.min() < low or values.max() > high:
        raise ValueError(f"a value is not from {low:g} to {high:g}")
    found = proportion((values - low) / (high - low), Clusters(codes, partners))
    return _interval(found, statistics, low, high - low)


def difference_interval(
    a: npt.ArrayLike, b: npt.ArrayLike, patients: npt.ArrayLike, statistics: Statistics
) -> Interval:
    """The mean of `a` less the mean of `b` over the same pairs, both from 0 to 1."""
    first, codes = _checked(a, patients)
    second, _ = _checked(b, patients)
    if statistics.intervals == "bootstrap":
        return bootstrap.paired_difference(first, second, codes, **_drawn(statistics))
    return _interval(
        signed((first - second) / len(first), np.full(len(first), 1 / len(first)), Clusters(codes)), statistics
    )


def balanced_interval(
    values: npt.ArrayLike, classes: npt.NDArray[np.object_], patients: npt.ArrayLike, statistics: Statistics
) -> Interval:
    """The mean over classes of the mean of values from 0 to 1."""
    values, codes = _checked(values, patients)
    names = np.unique(classes)
    if statistics.intervals == "bootstrap":
        ratios = [_of_class(values, classes == name, codes) for name in names]
        return bootstrap.weighted_ratios(ratios, [1 / len(names)] * len(names), **_drawn(statistics))
    strata = [(classes == name).astype(np.float64) for name in names]
    return _interval(stratified(values, strata, [1 / len(names)] * len(names), Clusters(codes)), statistics)


def balanced_difference(
    a: npt.ArrayLike,
    classes_a: npt.NDArray[np.object_],
    b: npt.ArrayLike,
    classes_b: npt.NDArray[np.object_],
    patients: npt.ArrayLike,
    statistics: Statistics,
) -> Interval:
    """The balanced mean of `a` less that of `b` over the same pairs, each balanced over classes of its own."""
    first, codes = _checked(a, patients)
    second, _ = _checked(b, patients)
    sides = ((first, classes_a), (second, classes_b))
    if statistics.intervals == "bootstrap":
        ratios, weights = [], []
        for sign, (values, classes) in zip((1.0, -1.0), sides, strict=True):
            names = np.unique(classes)
            ratios += [_of_class(values, classes == name, codes) for name in names]
            weights += [sign / len(names)] * len(names)
        return bootstrap.weighted_ratios(ratios, weights, **_drawn(statistics))
    up, down = (_balance(classes) for _, classes in sides)
    return _interval(signed(first * up - second * down, up, Clusters(codes), down=down), statistics)


def combined_interval(
    parts: list[tuple[int, FloatArray, FloatArray, IntArray, IntArray]], statistics: Statistics
) -> Interval:
    """A sum of means, each times its sign; a question that is in several of them counts as one observation.

    parts  of each mean: its sign, its values, the most that each could be below 0 (0 for flips, 1 for differences of
           accuracy), its observations' codes and their patients, coded alike in all
    """
    if statistics.intervals == "bootstrap":
        ratios = [Ratio(values, np.ones_like(values), patients) for _, values, _, _, patients in parts]
        return bootstrap.weighted_ratios(ratios, [float(part[0]) for part in parts], **_drawn(statistics))
    size = max(int(codes.max()) for _, _, _, codes, _ in parts) + 1
    moves, up, down = np.zeros(size), np.zeros(size), np.zeros(size)
    patient = np.zeros(size, dtype=np.int64)
    for sign, values, below, codes, patients in parts:
        each = 1 / len(values)
        moves += np.bincount(codes, sign * each * values, size)
        above = np.bincount(codes, np.full(len(codes), each), size)
        under = np.bincount(codes, each * below, size)
        up += above if sign > 0 else under
        down += under if sign > 0 else above
        patient[codes] = patients
    return _interval(signed(moves, up, Clusters(patient), down=down), statistics)


def _interval(found: Combined, statistics: Statistics, start: float = 0.0, unit: float = 1.0) -> Interval:
    low, high = found.limits(statistics.level)
    ends = [None if end is None else start + unit * end for end in (low, high)]
    return Interval(start + unit * found.estimate, ends[0], ends[1], found.patients, found.shown, found.effective)


def _checked(values: npt.ArrayLike, patients: npt.ArrayLike) -> tuple[FloatArray, IntArray]:
    numbers, codes = np.asarray(values, dtype=np.float64), np.asarray(patients, dtype=np.int64)
    if numbers.shape != codes.shape or numbers.ndim != 1:
        raise ValueError(f"shapes differ: {numbers.shape} and patients {codes.shape}")
    if not len(numbers):
        raise ValueError("no trial: a mean over nothing is not defined")
    if not np.isfinite(numbers).all():
        raise ValueError("a value is not finite: leave such trials out and count them")
    return numbers, codes


def _of_class(values: FloatArray, chosen: npt.NDArray[np.bool_], patients: IntArray) -> Ratio:
    return Ratio(values * chosen, chosen.astype(np.float64), patients)


def _balance(classes: npt.NDArray[np.object_]) -> FloatArray:
    """(n,) 1 over the classes and the observations of each's class."""
    _, codes, counts = np.unique(classes, return_inverse=True, return_counts=True)
    found: FloatArray = 1 / (len(counts) * counts[codes])
    return found


def _drawn(statistics: Statistics) -> dict[str, Any]:
    return {"level": statistics.level, "draws": statistics.draws, "seed": statistics.seed}
