"""Variances of sums whose parts hang together within patients.

A pair belongs to the patient who is asked about and to the patient whose picture is shown instead. Two pairs that share
a patient in either role may go up and down together: what a picture does to the answers it does wherever it is shown.
The variance therefore sums the products of all pairs of influences that share a patient (dyadic clusters: Fafchamps and
Gubert 2007; Aronow, Samii and Assenova 2015), which two-way clusters (Cameron, Gelbach and Miller 2011) do only for
pairs that share one in the same role. It is never taken below the one-way variances, so it is never negative.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Clusters:
    """Who hangs together with whom, by observation.

    patient  (n,) code from 0
    partner  (n,) code of the patient whose picture is shown instead, coded like `patient`; none: the same patient
    topic    (n,) code of the finding, where questions are a sample too; none: they are fixed
    """

    patient: IntArray
    partner: IntArray | None = None
    topic: IntArray | None = None

    @property
    def count(self) -> int:
        """How many patients are asked about."""
        return int((np.bincount(self.patient) > 0).sum()) if len(self.patient) else 0

    def chosen(self, rows: BoolArray | IntArray) -> Clusters:
        """The same of some observations."""
        partner, topic = (None if each is None else each[rows] for each in (self.partner, self.topic))
        return Clusters(self.patient[rows], partner, topic)


def covariance(influences: FloatArray, clusters: Clusters) -> FloatArray:
    """Covariance of the sums of `influences` over observations.

    influences  (n, k) each observation's part in the deviation of k estimates: residual times weight, summing to 0
    returns     (k, k), with G/(G-1) for G patients, or effective partners if fewer; along the diagonal never below what
                one-way clusters give
    raises      ValueError with fewer than two patients: nothing is known of how patients differ
    """
    patients = clusters.count
    if patients < 2:
        raise ValueError("a variance between patients needs two of them")
    own = _sums(clusters.patient, influences)
    found = own.T @ own
    if clusters.partner is not None and not np.array_equal(clusters.partner, clusters.patient):
        found = _not_below(_dyadic(influences, clusters.patient, clusters.partner), found)
        shown = _sums(clusters.partner, influences)
        found = _not_below(found, shown.T @ shown)
    if clusters.topic is not None:
        topics = _sums(clusters.topic, influences)
        both = _sums(_codes(clusters.patient, clusters.topic), influences)
        found = _not_below(found + topics.T @ topics - both.T @ both, found)
        found = _not_below(found, topics.T @ topics)
    count = float(patients)
    if clusters.partner is not None:
        count = max(2.0, min(count, effective(np.bincount(clusters.partner).astype(np.float64))))
    corrected: FloatArray = found * (count / (count - 1))
    return corrected


def totals(codes: IntArray, values: npt.NDArray[np.float64], size: int = 0) -> FloatArray:
    """Sums of `values` by code, from 0 on."""
    return np.bincount(codes, values, size).astype(np.float64, copy=False)


def effective(parts: FloatArray) -> float:
    """How many equal parts would be as uneven as these: (sum)^2 / sum of squares (Kish 1965). 0 of nothing."""
    squares = float(parts @ parts)
    return float(parts.sum()) ** 2 / squares if squares > 0 else 0.0


def cr2(values: FloatArray, patients: IntArray) -> tuple[float, float, float]:
    """Mean, its standard error and degrees of freedom: CR2 with Bell and McCaffrey's (2002).

    For a mean the adjustment of patient g is 1/(1 - w), w its share of the observations, and with a = w^2/(1 - w) the
    degrees of freedom are 1/(sum w^2 + (sum a)^2 - sum a^2).
    """
    sizes = np.bincount(patients).astype(np.float64)
    sums = np.bincount(patients, values)[sizes > 0]
    sizes = sizes[sizes > 0]
    total, mean = sizes.sum(), float(values.mean())
    shares = sizes / total
    variance = float(((sums - mean * sizes) ** 2 / (1 - shares)).sum() / total**2)
    parts = shares**2 / (1 - shares)
    freedom = 1 / float((shares**2).sum() + parts.sum() ** 2 - (parts**2).sum())
    return mean, variance**0.5, freedom


def _sums(codes: IntArray, influences: FloatArray) -> FloatArray:
    columns = [totals(codes, influences[:, place]) for place in range(influences.shape[1])]
    found: FloatArray = np.column_stack(columns)
    return found


def _dyadic(influences: FloatArray, patient: IntArray, partner: IntArray) -> FloatArray:
    """Products of all observations that share a patient in any role; those that share both counted once."""
    size = int(max(patient.max(), partner.max())) + 1
    apart = patient != partner
    nodes = np.zeros((size, influences.shape[1]))
    for place in range(influences.shape[1]):
        column = influences[:, place]
        nodes[:, place] = totals(patient, column, size) + totals(partner[apart], column[apart], size)
    low, high = np.minimum(patient, partner)[apart], np.maximum(patient, partner)[apart]
    twice = _sums(np.unique(low * size + high, return_inverse=True)[1], influences[apart])
    found: FloatArray = nodes.T @ nodes - twice.T @ twice
    return found


def _codes(first: IntArray, second: IntArray) -> IntArray:
    found: IntArray = np.unique(first * (int(second.max()) + 1) + second, return_inverse=True)[1].astype(np.int64)
    return found


def _not_below(found: FloatArray, least: FloatArray) -> FloatArray:
    """`found`, with what lies below the diagonal of `least` scaled up to it (correlations stay)."""
    have, want = np.diag(found), np.diag(least)
    if (have >= want).all():
        return found
    if (have <= 0).any():
        return least if (have < want).all() else found + np.diag(np.maximum(want - have, 0))
    scale = np.sqrt(np.maximum(want / have, 1))
    raised: FloatArray = found * np.outer(scale, scale)
    return raised
