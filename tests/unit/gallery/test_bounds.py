"""Bounds of simulated shares: exact, and neither deaf nor jumpy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from overread.gallery.bounds import ERROR, Bound, interval


def test_the_first_count_that_breaks_a_bound_by_hand():
    """Of 400 studies at 2.5 %, 21 or more are seen in 0.16 %, 22 or more in 0.07 %."""
    most = Bound(most=0.025)
    assert not most.broken(21, 400) and most.broken(22, 400)
    least = Bound(least=0.95)
    assert not least.broken(365, 400) and least.broken(364, 400)


@given(bound=st.floats(0.01, 0.5), studies=st.integers(20, 2000))
def test_a_share_at_its_bound_breaks_it_as_rarely_as_said(bound: float, studies: int):
    from scipy.stats import binom

    counts = np.arange(studies + 1)
    broken = [Bound(most=bound).broken(int(count), studies) for count in counts[:: max(1, studies // 50)]]
    assert broken == sorted(broken)  # once too many, always too many
    first = int(binom.isf(ERROR, studies, bound)) + 1
    assert float(binom.sf(first - 1, studies, bound)) <= ERROR


def test_no_studies_break_nothing_and_open_bounds_are_never_broken():
    assert not Bound(0.95, 0.98).broken(0, 0)
    assert not Bound().broken(400, 400) and not Bound().broken(0, 400)


def test_intervals_are_clopper_and_pearsons():
    """0 of 10: 1 - 0.025^(1/10)."""
    assert interval(0, 10) == (0.0, pytest.approx(1 - 0.025**0.1))
    low, high = interval(30, 100)
    assert (low, high) == (pytest.approx(0.2124, abs=1e-4), pytest.approx(0.3998, abs=1e-4))
