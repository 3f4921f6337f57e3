"""Following: worked out by hand, and 0 for whatever does not read."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from overread.estimates.inference.following import following_of, moves, weights

from .made import study, swap


def test_a_move_is_towards_what_the_shown_picture_says_or_away_from_it():
    """Own picture y, other n: y to n is towards, n to y away; a refusal is half of a move; runs are averaged."""
    one = swap(
        (0, "y", "n", "y", "n"), (0, "y", "n", "n", "y"), (0, "y", "n", "y", "y"), (0, "y", "n", "y", "r"),
        (0, "y", "n", "r", "y"), (0, "y", "n", "r", "u"),
    )  # fmt: skip
    assert moves(one).tolist() == [1, -1, 0, 0.5, -0.5, 0]
    several = swap((0, "y", "n", "yyn", "nn-"))
    # Own: yes in 2 of 3, so -1/3 towards no; other: no in 2 of 2, so 1.
    assert moves(several).tolist() == [pytest.approx((1 + 1 / 3) / 2)]


def test_the_two_directions_of_a_finding_count_alike():
    """Two of yes to no and one of no to yes: 1/3, 1/3 and 2/3; a finding of one direction has no weight."""
    one = swap(
        (0, "y", "n", "y", "y"), (1, "y", "n", "y", "y"), (2, "n", "y", "y", "y"), (3, "y", "y", "y", "y"),
        (4, "y", "n", "y", "y"), (5, "y", "?", "y", "y"), topics=[0, 0, 0, 0, 1, 0],
    )  # fmt: skip
    assert weights(one).tolist() == pytest.approx([1 / 3, 1 / 3, 2 / 3, 0, 0, 0])


def test_the_estimate_is_the_weighted_mean():
    """Moves 1, 0 and -1 of the pairs above: (1/3 - 2/3) / (4/3) = -1/4; towards 1/4, away 1/2."""
    one = swap((0, "y", "n", "y", "n"), (1, "y", "n", "n", "n"), (2, "n", "y", "y", "n"))
    found = following_of(one)
    assert found is not None
    assert (found.estimate, found.towards, found.away) == pytest.approx((-0.25, 0.25, 0.5))
    assert (found.pairs, found.findings, found.combined.patients) == (3, 1, 3)


def test_options_that_are_not_yes_and_no_move_towards_the_one_that_is_true_of_the_shown_picture():
    one = replace(
        swap((0, "y", "n", "y", "n"), (1, "y", "n", "y", "n"), (2, "y", "n", "y", "n")), yes=np.full(3, -1),
        truth_own=np.array([0, 0, 0]), truth_shown=np.array([2, 2, 2]),
        own=np.array([[0], [1], [3]]), shown=np.array([[2], [2], [1]]),
    )  # fmt: skip
    # From the own truth to the other's, from neither to the other's, from neither to neither.
    assert moves(one).tolist() == [1, 0.5, 0]
    assert weights(one).tolist() == [0.5, 0.5, 0.5]


def test_what_lost_answers_may_hide_is_half_of_them_either_way():
    """One of four arms of two pairs is refused: of weight 1/4, it may be worth +-1/4 more or less."""
    one = swap((0, "y", "n", "y", "r"), (1, "n", "y", "n", "y"))
    found = following_of(one)
    assert found is not None
    assert found.estimate == pytest.approx(0.75)
    assert found.bounds == pytest.approx((0.5, 1.0))
    assert found.lost == pytest.approx(0.5)


def test_nothing_that_changes_gives_nothing():
    assert following_of(swap((0, "y", "y", "y", "n"), (1, "n", "n", "y", "n"))) is None


@pytest.mark.parametrize("within", [True, False])
@pytest.mark.parametrize("reader", ["blind", "sampled", "pixels", "drift", "rounding"])
def test_a_reader_that_does_not_read_is_at_0_and_its_interval_holds_it(reader: str, within: bool):
    """200 studies of 60 patients: above 0 in 2.5 % of them and 2.2 points of simulation error (2 s.e.)."""
    found = [following_of(study(reader, 60, seed, within=within)) for seed in range(200)]
    lows = [one.interval[0] for one in found if one is not None]
    assert np.mean([low > 0 for low in lows if low is not None]) <= 0.025 + 0.022
    estimates = np.array([one.estimate for one in found if one is not None])
    assert abs(estimates.mean()) <= 3 * estimates.std() / np.sqrt(200) + 1e-12


@pytest.mark.parametrize("within", [True, False])
def test_a_reader_that_follows_is_at_its_reliance(within: bool):
    found = [following_of(study("follows", 60, seed, within=within)) for seed in range(60)]
    assert np.mean([one.estimate for one in found if one]) == pytest.approx(0.3, abs=0.01)
    assert all(one.interval[0] > 0.1 for one in found if one and one.interval[0] is not None)
    assert (
        np.mean(
            [one.interval[0] <= 0.3 <= one.interval[1] for one in found if one and one.interval[0] and one.interval[1]]
        )
        >= 0.9
    )


def test_pooling_over_findings_does_not_make_a_reader_of_prevalence_follow():
    """Label-changed pairs lie in common findings, where a sampler moves more: flips differ, following does not."""
    one = study("sampled", 300, 5)
    flipped = (one.own != one.shown)[:, 0]
    assert flipped[one.changed].mean() > flipped[~one.changed].mean() + 0.05
    found = following_of(one)
    assert found is not None and abs(found.estimate) < 0.06


def test_generalising_over_findings_is_never_narrower():
    one = study("follows", 60, 1)
    fixed, sampled = following_of(one), following_of(one, by_topic=True)
    assert fixed is not None and sampled is not None
    low, high = fixed.wider
    assert low is not None and high is not None
    assert low <= min(fixed.interval[0], sampled.interval[0])  # type: ignore[type-var]
    assert high >= max(fixed.interval[1], sampled.interval[1])  # type: ignore[type-var]
