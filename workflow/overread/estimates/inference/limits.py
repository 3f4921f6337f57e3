"""Limits of shares, and of sums and differences of shares, that are never of no width.

A share's limits are those of Korn and Graubard (1998): Clopper and Pearson's, with the number of answers replaced by an
effective one, n* = min(n, p(1-p)/v (z/t)^2), where v is the variance between patients. What differs from the published
form was chosen by simulation (`tests/benchmarks/bench_coverage.py`: 10 to 300 patients, shares of 0.5 to 50 %,
intra-patient correlations of 0 to 0.4, patients of equal and of uneven size):

    t has the degrees of freedom of the patients who show the event (their effective number + 2, at most G - 1): one
    patient says little of how patients vary, however many others show nothing;
    with no event at all n* is the number of patients, so nothing seen among 60 patients is 0 to 6.0 %;
    from none to eight patients with the event the limits go over from Clopper and Pearson's, which are too wide on
    average, to Jeffreys', which are not.

A difference is made of two shares, of what moves up and of what moves down, and a sum of several of its parts. Their
limits are combined by the distances of each from its share, with the correlations between patients (MOVER: Newcombe
1998; Zou and Donner 2008), so a difference that nobody shows has the width that unseen moves leave it. Moves of either
direction tell how patients hang together: the more of them there are, the more what is not seen of the other direction
counts by observations instead of by patients.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import special  # type: ignore[import-untyped, unused-ignore]

from overread.estimates.inference.clusters import Clusters, FloatArray, covariance, effective, totals

EXTRA = 2.0
"""Degrees of freedom above the effective number of patients with an event."""
SEEN = 8
"""From this many patients with an event on the limits are Jeffreys'."""
LEAST = 1e-12
"""The smallest p that is told apart from 0."""


class Share(NamedTuple):
    """A share and what its limits need.

    n        effective number of observations, were they independent
    none     `n` where no observation, or every one, has the event: patients
    freedom  degrees of freedom of the variance
    shown    patients with the event, or without it, whichever are fewer; of a difference, those with either move
    alone    the number of events that would vary as much as these observations, were they independent: `n` for events,
             more for values between, since halves of a move vary less than whole ones
    """

    share: float
    variance: float
    n: float
    none: float
    freedom: float
    shown: int
    alone: float | None = None

    def limits(self, alpha: float) -> tuple[float, float]:
        """Lower and upper limit, each one-sided at `alpha`."""
        p, seen = self.share, min(1.0, self.shown / SEEN)
        if self.variance > 0 and 0 < p < 1:
            z, t = special.ndtri(1 - alpha), special.stdtrit(self.freedom, 1 - alpha)
            n = min(self.n if self.alone is None else self.alone, p * (1 - p) / self.variance * (z / t) ** 2)
        else:
            n = self.none + (self.n - self.none) * seen
        offset = 0.5 * (1 - seen)
        x = n * p
        low = 0.0 if p <= 0 else float(special.betaincinv(x + 0.5 - offset, n - x + 0.5 + offset, alpha))
        high = 1.0 if p >= 1 else float(special.betaincinv(x + 0.5 + offset, n - x + 0.5 - offset, 1 - alpha))
        return min(low, p), max(high, p)


@dataclass(frozen=True, slots=True)
class Combined:
    """A sum of shares, each times a number.

    parts        the numbers and the shares
    correlation  (k, k) between the shares
    patients     G; fewer than two have no interval
    shown        patients with an event in any part
    effective    as many equal patients would say as much: (sum of patients' weights)^2 / sum of their squares
    """

    parts: tuple[tuple[float, Share], ...]
    correlation: FloatArray
    patients: int
    shown: int
    effective: float

    @property
    def estimate(self) -> float:
        return sum(number * share.share for number, share in self.parts)

    def limits(self, level: float) -> tuple[float | None, float | None]:
        """The two-sided interval of `level`; none with fewer than two patients."""
        if self.patients < 2:
            return None, None
        low, high = self._distances((1 - level) / 2)
        least, most = (sum(number for number, _ in self.parts if (number > 0) == up) for up in (False, True))
        return max(self.estimate - low, least), min(self.estimate + high, most)

    def p_above(self, bound: float = 0.0) -> float:
        """One-sided p that it is above `bound`: the level at which the lower limit comes down to it."""
        return self._p(lambda alpha: self.estimate - self._distances(alpha)[0] > bound, self.estimate > bound)

    def p_below(self, bound: float = 0.0) -> float:
        """One-sided p that it is below `bound`."""
        return self._p(lambda alpha: self.estimate + self._distances(alpha)[1] < bound, self.estimate < bound)

    def p_within(self, bound: float) -> float:
        """p of equivalence, that it lies between -bound and bound: the larger of two one-sided (Schuirmann 1987)."""
        return max(self.p_above(-bound), self.p_below(bound))

    def _distances(self, alpha: float) -> tuple[float, float]:
        """How far the lower and the upper limit are from the estimate, each one-sided at `alpha`."""
        signs = np.array([math.copysign(1.0, number) for number, _ in self.parts])
        down, up = np.empty(len(self.parts)), np.empty(len(self.parts))
        for place, (number, share) in enumerate(self.parts):
            low, high = share.limits(alpha)
            ends = abs(number) * (share.share - low), abs(number) * (high - share.share)
            down[place], up[place] = ends if number > 0 else ends[::-1]
        signed = self.correlation * np.outer(signs, signs)
        return tuple(math.sqrt(max(0.0, float(each @ signed @ each))) for each in (down, up))  # type: ignore[return-value]

    def _p(self, holds: Callable[[float], bool], possible: bool) -> float:
        """The smallest alpha at which it `holds`, which is more easily so the larger alpha is."""
        if self.patients < 2 or not possible or not holds(0.4999):
            return 1.0 if self.patients < 2 or not possible else 0.5
        low, high = math.log(LEAST), math.log(0.4999)
        if holds(LEAST):
            return LEAST
        for _ in range(22):
            middle = (low + high) / 2
            low, high = (low, middle) if holds(math.exp(middle)) else (middle, high)
        return math.exp(high)


def signed(moves: FloatArray, up: FloatArray, clusters: Clusters, *, down: FloatArray | None = None) -> Combined:
    """The sum of signed moves, as the share that goes up less the share that goes down.

    moves    (n,) each observation's part of the estimate
    up       (n,) the most that each could add, above 0 (a mean of n differences of -1 to 1: 1/n each)
    down     (n,) the most that each could take away; the same if not given
    """
    capacities = [up, up if down is None else down]
    sizes = [float(each.sum()) for each in capacities]
    parts = [np.maximum(moves, 0.0), np.maximum(-moves, 0.0)]
    shares = [float(part.sum()) / size if size > 0 else 0.0 for part, size in zip(parts, sizes, strict=True)]
    moved = totals(clusters.patient, np.abs(moves))
    return _combined([sizes[0], -sizes[1]], parts, capacities, shares, clusters, moved)


def proportion(values: FloatArray, clusters: Clusters, weights: FloatArray | None = None) -> Combined:
    """The (weighted) mean of values from 0 to 1."""
    weights = np.ones(len(values)) if weights is None else weights
    total = float(weights.sum())
    part = weights * values
    return _combined([1.0], [part], [weights], [float(part.sum()) / total], clusters)


def placed(scores: FloatArray, weights: FloatArray, clusters: Clusters) -> Combined:
    """An AUC from placements: each observation's share of opposite ones that it stands in order with.

    scores    (n,) from 0 to 1; weights (n,) how many opposite ones each was set against
    returns   the weighted mean, whose influences are twice those of a mean, since a pair counts for both its sides
    """
    total = float(weights.sum())
    share = float((weights * scores).sum()) / total
    return _combined([1.0], [weights * scores], [weights], [share], clusters, factor=2.0)


def stratified(
    values: FloatArray, strata: Sequence[FloatArray], numbers: Sequence[float], clusters: Clusters
) -> Combined:
    """A sum of means over strata, each times a number; `strata` holds each one's (n,) weights, 0 outside it."""
    parts = [weights * values for weights in strata]
    shares = [float(part.sum() / weights.sum()) for part, weights in zip(parts, strata, strict=True)]
    return _combined(list(numbers), parts, list(strata), shares, clusters)


def _combined(
    numbers: list[float],
    parts: list[FloatArray],
    capacities: list[FloatArray],
    shares: list[float],
    clusters: Clusters,
    moved: FloatArray | None = None,
    factor: float = 1.0,
) -> Combined:
    """`moved`: how much each patient moves in either direction, where the shares are the two of one difference."""
    patients = clusters.count
    weights = totals(clusters.patient, np.sum(capacities, axis=0))
    any_event = totals(clusters.patient, np.sum(parts, axis=0)) > 0
    if patients < 2:
        empty = [Share(share, 0.0, 1.0, 1.0, 1.0, 0) for share in shares]
        pairs = tuple(zip(numbers, empty, strict=True))
        return Combined(pairs, np.eye(len(shares)), patients, int(any_event.sum()), effective(weights))
    sizes = [float(each.sum()) or 1.0 for each in capacities]
    influences = np.column_stack(
        [
            factor * (part - share * capacity) / size
            for part, share, capacity, size in zip(parts, shares, capacities, sizes, strict=True)
        ]
    )
    found = covariance(influences, clusters)
    made = []
    independent = (influences**2).sum(axis=0)
    for place, (part, capacity, share) in enumerate(zip(parts, capacities, shares, strict=True)):
        variances = float(found[place, place]), float(independent[place])
        made.append(_share(part, capacity, share, variances, clusters, moved))
    deviations = np.sqrt(np.maximum(np.diag(found), 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        correlation = found / np.outer(deviations, deviations)
    correlation = np.clip(np.where(np.isfinite(correlation), correlation, 0.0), -1.0, 1.0)
    np.fill_diagonal(correlation, 1.0)
    pairs = tuple(zip(numbers, made, strict=True))
    return Combined(pairs, correlation, patients, int(any_event.sum()), effective(weights))


def _share(
    part: FloatArray,
    capacity: FloatArray,
    share: float,
    variances: tuple[float, float],
    clusters: Clusters,
    moved: FloatArray | None,
) -> Share:
    present = capacity > 0
    size, total = int(present.sum()), effective(capacity)
    with_event = totals(clusters.patient, part)
    without = np.maximum(totals(clusters.patient, capacity) - with_event, 0.0)
    without[without < 1e-9 * capacity.max(initial=0.0)] = 0.0
    patients = int((np.bincount(clusters.patient[present]) > 0).sum()) if size else 0
    sides = [moved] if moved is not None else [with_event, without]
    shown = min(int((side > 0).sum()) for side in sides)
    freedom = min(patients - 1.0, min(effective(side) for side in sides) + EXTRA)
    if clusters.topic is not None:
        freedom = min(freedom, float(np.unique(clusters.topic[present]).size) - 1)
    if clusters.partner is not None:
        # Few pictures in the place of many are few clusters, however many patients are asked about.
        seen = effective(totals(clusters.partner, part)) + EXTRA
        freedom = min(freedom, effective(totals(clusters.partner, capacity)) - 1.0, seen)
    none = patients * total / size if size else 1.0
    alone = share * (1 - share) / variances[1] if variances[1] > 0 else total
    return Share(share, variances[0], total, max(none, 1e-9), max(freedom, 1.0), shown, alone)
