"""The gain of the image, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from overread.estimates.inference.gain import balance, gain_of, majority, mean_correct

NAN = float("nan")


def test_each_finding_and_each_answer_within_it_weighs_the_same():
    """Finding 0: one of answer 0, three of answer 1; finding 1: two and one; finding 2 has one answer alone."""
    topic = np.array([0, 0, 0, 0, 1, 1, 1, 2])
    truth = np.array([0, 1, 1, 1, 0, 0, 1, 1])
    weights = balance(topic, truth, np.ones(8, dtype=bool))
    assert weights.tolist() == pytest.approx([1 / 4, 1 / 12, 1 / 12, 1 / 12, 1 / 8, 1 / 8, 1 / 4, 0])


def test_the_gain_is_over_what_both_answered():
    """Answer 0: 1 and (lost); answer 1: 1 and 0. Against an opponent of 0, 1, 1, 1: balanced 3/4 less (0 + 1)/2."""
    found = gain_of(
        np.array([1, 1, 1, 0]), np.array([0, NAN, 1, 1]), np.arange(4), np.zeros(4, dtype=int), np.array([0, 0, 1, 1])
    )
    assert found is not None
    assert (found.balanced, found.opponent, found.estimate) == pytest.approx((0.75, 0.5, 0.25))
    assert (found.pairs, found.lost, found.accuracy) == (3, 0.25, pytest.approx(2 / 3))


def test_a_finding_of_which_one_answer_alone_is_correct_gives_nothing():
    assert gain_of(np.ones(3), np.zeros(3), np.arange(3), np.zeros(3, dtype=int), np.ones(3, dtype=int)) is None


def test_an_answer_that_is_always_the_same_gains_nothing_over_another():
    """'No' to every radiograph and 'yes' to black: balanced, both are at one half, whatever is prevalent."""
    truth = np.array([1] * 95 + [0] * 5)
    topic, patients = np.zeros(100, dtype=int), np.arange(100) // 2
    found = gain_of((truth == 1).astype(float), (truth == 0).astype(float), patients, topic, truth)
    assert found is not None
    assert found.estimate == pytest.approx(0)
    assert found.accuracy - found.opponent_accuracy == pytest.approx(0.9)
    low, high = found.interval
    assert low is not None and high is not None and low < 0 < high


def test_the_majority_of_a_finding_scores_one_half_balanced_and_one_that_a_patient_turns_guesses():
    topic = np.array([0] * 10 + [1] * 4)
    truth = np.array([1] * 8 + [0] * 2 + [1, 1, 0, 0])
    patients = np.arange(14)
    scores = majority(topic, truth, patients, np.full(14, 2))
    assert scores.tolist() == [1] * 8 + [0] * 2 + [0.5] * 4


def test_a_majority_is_no_worse_than_a_guess_among_the_options():
    """Four options, and nine different answers of ten: the commonest is worth 2/10 over 9 answers, a guess 1/4."""
    truth = np.array([0, 0, 0, *range(1, 9)])
    scores = majority(np.zeros(11, dtype=int), truth, np.arange(11), np.full(11, 4))
    assert scores.tolist() == [0.25] * 11


def test_runs_are_averaged_over_those_answered():
    answered = np.array([True, True, False, False])
    correct = np.array([True, False, False, False])
    assert mean_correct(answered, correct, np.array([0, 0, 0, 1]), 2).tolist() == [0.5, pytest.approx(NAN, nan_ok=True)]
