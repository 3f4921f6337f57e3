"""The sign-flip test by convolution, against every choice of signs written out and against scipy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from overread.estimates.inference.signflip import sign_flip_p


def by_enumeration(surplus: list[int]) -> float:
    sums = [
        sum(s * one for s, one in zip(signs, surplus, strict=True))
        for signs in itertools.product((1, -1), repeat=len(surplus))
    ]
    return sum(total >= sum(surplus) for total in sums) / len(sums)


@pytest.mark.parametrize(
    ("surplus", "p"),
    [
        ([], 1.0), ([0, 0], 1.0), ([2], 0.5), ([-2], 1.0), ([1, 1, 1], 1 / 8), ([3, 1, -1], 3 / 8), ([1, -1], 3 / 4),
        ([3, -1, 2, 0, 1, 4, -2, 1, 0, 2], 21 / 256),
    ],
)  # fmt: skip
def test_p_is_the_share_of_signs_that_reach_what_was_observed(surplus: list[int], p: float):
    """3, 1, -1 sum to 3: so do + + - (3), + - + (3) and + + + (5), of eight."""
    assert sign_flip_p(np.array(surplus, dtype=np.int64)) == p


@given(st.lists(st.integers(-9, 9), max_size=10))
def test_it_is_exact(surplus: list[int]):
    assert sign_flip_p(np.array(surplus, dtype=np.int64)) == pytest.approx(
        by_enumeration([one for one in surplus if one])
    )


def test_it_agrees_with_scipy():
    surplus = np.array([3.0, -1, 2, 0, 1, 4, -2, 1, 0, 2])
    other = stats.permutation_test(
        (surplus,), np.sum, permutation_type="samples", n_resamples=np.inf, alternative="greater"
    )
    assert sign_flip_p(surplus) == pytest.approx(other.pvalue)


def test_there_is_no_smallest_p():
    assert sign_flip_p(np.ones(200)) == pytest.approx(0.5**200)
    assert sign_flip_p(7 * np.ones(1000)) < 1e-280


def test_thousands_of_patients_agree_with_the_normal_limit():
    surplus = np.random.default_rng(3).integers(-9, 10, 5000)
    expected = stats.norm.sf((surplus.sum() - 0.5) / np.sqrt(float((surplus**2).sum())))
    assert sign_flip_p(surplus) == pytest.approx(expected, rel=0.02)


def test_what_is_not_whole_is_refused():
    with pytest.raises(ValueError, match="whole numbers"):
        sign_flip_p(np.array([0.5, 1.0]))
