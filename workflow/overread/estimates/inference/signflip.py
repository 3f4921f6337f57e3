"""The exact sign-flip test of whole numbers.

Under the null hypothesis each patient's surplus is as likely as its opposite, all of a patient's answers at once. The
distribution of the sum over all choices of signs is the convolution of {-d, +d} over patients (Pagano and Tritchler
1983), so p is exact however many patients there are: there is no smallest p that drawing signs would leave.
"""

from __future__ import annotations

import numpy as np

from overread.estimates.inference.clusters import FloatArray, IntArray

NOTHING = 1e-290
"""Chances below this are left out: p is exact to it."""


def sign_flip_p(surplus: IntArray | FloatArray) -> float:
    """One-sided p that the sum of `surplus` is above 0.

    surplus   (patients,) whole numbers
    returns   the share of all choices of signs whose sum is at least the observed one; 1 where nobody has a surplus
    raises    ValueError for a number that is not whole
    """
    given = np.asarray(surplus)
    whole = np.rint(given).astype(np.int64)
    if not np.array_equal(whole, given):
        raise ValueError("the exact sign-flip test is of whole numbers")
    sizes = np.sort(np.abs(whole[whole != 0]))
    if not len(sizes):
        return 1.0
    sizes = sizes // np.gcd.reduce(sizes)
    divisor = int(np.abs(whole[whole != 0]).sum() // sizes.sum())
    # Half-sums: choosing + for patient i adds d_i to the sum of the positive ones, of which T = 2 x - total.
    reached = (int(whole.sum()) // divisor + int(sizes.sum())) // 2
    chances, first = np.ones(1), 0
    for size in sizes:
        # What those sizes sum to whose sign is +, from `first` on.
        further = np.zeros(len(chances) + int(size))
        further[: len(chances)] = chances / 2
        further[size:] += chances / 2
        kept = np.flatnonzero(further > NOTHING)
        first, chances = first + int(kept[0]), further[kept[0] : kept[-1] + 1]
    return min(1.0, float(chances[max(reached - first, 0) :].sum()))
