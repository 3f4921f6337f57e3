"""Readers as a sample: by hand, and by simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest

from overread.estimates.inference.mrmc import Components, accuracy_components, components, mean_of_readers


def test_mean_square_and_covariance_by_hand():
    """Readers of 0.6 and 0.8: MS(R) = 0.02. Two patients left out in turn, +-d: Cov2 = (1/2) (d d' + d d') = d d'."""
    estimates, moved = np.array([0.6, 0.8]), np.array([0.01, 0.02])
    found = components(estimates, np.stack([estimates + moved, estimates - moved]))
    assert (found.mean, found.readers) == (pytest.approx(0.7), 2)
    assert (found.ms_r, found.cov2) == (pytest.approx(0.02), pytest.approx(0.01 * 0.02))


def test_error_and_freedom_by_hand():
    """se^2 = (0.02 + 2 x 0.0002) / 2 = 0.0102; df = (0.0204 / 0.02)^2 x 1 = 1.0404. Less than none is none."""
    found = mean_of_readers(Components(0.7, 2, 0.02, 0.0002))
    assert (found.error, found.freedom) == (pytest.approx(math.sqrt(0.0102)), pytest.approx(1.0404))
    assert mean_of_readers(Components(0.7, 2, 0.02, -0.0002)).freedom == pytest.approx(1)


def test_all_questions_of_a_patient_are_left_out_together():
    """Ten equal questions of a patient say no more than one: covariances of 10 patients x 10 and of 10 x 1 agree."""
    draw = np.random.default_rng(1)
    once = (draw.random((10, 3)) < 0.7).astype(float)
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
        correct = (draw.random((75, 5)) < skill).astype(float)
        found = mean_of_readers(accuracy_components(correct, np.arange(75)))
        covered.append(found.low <= 0.8 <= found.high)
        reach = 1.96 * correct.mean(axis=1).std(ddof=1) / 75**0.5
        cases.append(abs(correct.mean() - 0.8) <= reach)
    assert 0.93 <= np.mean(covered) <= 0.985
    assert np.mean(cases) < 0.75


def test_one_reader_is_no_sample_of_readers():
    with pytest.raises(ValueError, match="two readers"):
        accuracy_components(np.ones((5, 1)), np.arange(5))
