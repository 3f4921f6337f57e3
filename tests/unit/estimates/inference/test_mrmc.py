"""Readers as a sample: the published analysis of Van Dyke's data (two tests, five readers, 114 cases), and by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from overread.estimates.inference.mrmc import (
    Components,
    accuracy_components,
    components,
    difference_of_tests,
    mean_of_readers,
)

SENSITIVITY = Components(
    np.array([0.8222222, 0.92]), 5, 0.02390123, 0.001802469, 0.0, 0.0009943883, 0.00101459, 0.0006604938
)


def test_the_difference_of_sensitivities_is_the_published_one():
    found = difference_of_tests(SENSITIVITY)
    assert found.value == pytest.approx(-0.0977778, abs=1e-6)
    assert found.freedom == pytest.approx(15.71732, abs=1e-4)
    assert found.p == pytest.approx(0.02008822, abs=1e-6)
    assert (found.low, found.high) == pytest.approx((-0.1780371, -0.0175185), abs=1e-5)
    spread = SENSITIVITY.ms_tr + 5 * (SENSITIVITY.cov2 - SENSITIVITY.cov3)
    assert SENSITIVITY.ms_t / spread == pytest.approx(6.689493, abs=1e-4)


def test_readers_who_covary_less_within_a_test_add_nothing():
    fewer = SENSITIVITY._replace(cov2=0.0, cov3=0.001)
    assert difference_of_tests(fewer).error == pytest.approx(math.sqrt(2 * SENSITIVITY.ms_tr / 5))
    assert difference_of_tests(fewer).freedom == pytest.approx(4)


def test_mean_squares_and_covariances_by_hand():
    """Tests 0.6, 0.8 and 0.7, 0.7 of two readers: MS(T) 0, MS(TR) = 4 x 0.05^2, MS(R) = 0.02.

    Two patients left out in turn, +-d: covariances are (1/2) (d d + d d) = d d of each two.
    """
    estimates = np.array([[0.6, 0.8], [0.7, 0.7]])
    moved = np.array([[0.01, 0.02], [0.03, 0.04]])
    found = components(estimates, np.stack([estimates + moved, estimates - moved]))
    assert found.means.tolist() == pytest.approx([0.7, 0.7])
    assert (found.ms_t, found.ms_tr, found.ms_r) == pytest.approx((0, 0.01, 0.02))
    assert found.cov1 == pytest.approx((0.01 * 0.03 + 0.02 * 0.04) / 2)
    assert found.cov2 == pytest.approx((0.01 * 0.02 + 0.03 * 0.04) / 2)
    assert found.cov3 == pytest.approx((0.01 * 0.04 + 0.02 * 0.03) / 2)


def test_all_questions_of_a_patient_are_left_out_together():
    """Ten equal questions of a patient say no more than one: covariances of 10 patients x 10 and of 10 x 1 agree."""
    draw = np.random.default_rng(1)
    once = (draw.random((10, 1, 3)) < 0.7).astype(float)
    one = accuracy_components(once, np.arange(10))
    ten = accuracy_components(np.repeat(once, 10, axis=0), np.repeat(np.arange(10), 10))
    assert ten.cov2 == pytest.approx(one.cov2)
    assert ten.ms_r == pytest.approx(one.ms_r)


def test_the_mean_of_readers_like_these_is_covered():
    """Five readers of 0.8 +- 0.08 on 75 questions: an interval over cases alone covers far less than 95 %."""
    draw = np.random.default_rng(2)
    covered, cases = [], []
    for _ in range(400):
        skill = np.clip(draw.normal(0.8, 0.08, 5), 0, 1)
        correct = (draw.random((75, 1, 5)) < skill).astype(float)
        found = mean_of_readers(accuracy_components(correct, np.arange(75)))
        covered.append(found.low <= 0.8 <= found.high)
        reach = 1.96 * correct.mean(axis=(1, 2)).std(ddof=1) / 75**0.5
        cases.append(abs(correct.mean() - 0.8) <= reach)
    assert 0.93 <= np.mean(covered) <= 0.985
    assert np.mean(cases) < 0.75


def test_one_reader_is_no_sample_of_readers():
    with pytest.raises(ValueError, match="two readers"):
        accuracy_components(np.ones((5, 1, 1)), np.arange(5))
