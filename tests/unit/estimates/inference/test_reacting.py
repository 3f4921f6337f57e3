"""Reacting: exact tests against floors, by hand and calibrated."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from overread.estimates.inference.reacting import reacting_of, strictest

from .made import study, swap


def test_without_a_floor_there_are_flips_and_no_test():
    (one,) = reacting_of(swap((0, "y", "n", "y", "n"), (1, "y", "n", "y", "y"), (1, "y", "n", "y", "r")))
    assert (one.floor, one.floor_rate, one.p) == ("not measured", None, 1.0)
    assert one.flip_rate == pytest.approx(2 / 3), "a refusal is an outcome of its own"


def test_a_placebo_is_set_against_the_swap_question_by_question():
    """Flips 1, 1, 0 under the swap and 1, 0, 0 under the placebo; patient 1's surplus is 1 of 3 questions: p = 1/2."""
    one = swap(
        (0, "y", "n", "y", "n"), (1, "y", "n", "y", "n"), (2, "y", "n", "y", "y"), placebo=["n", "y", "y"],
    )  # fmt: skip
    (found,) = reacting_of(one)
    assert (found.floor, found.flip_rate, found.floor_rate) == ("placebo", pytest.approx(2 / 3), pytest.approx(1 / 3))
    assert found.surplus.estimate == pytest.approx(1 / 3)
    assert found.p == 0.5


def test_all_runs_of_both_arms_count_in_reruns():
    """Two runs each. Own y y, other n n: from own run 1, the other's run 2 differs and its own does not; from the
    other's run 1, own run 2 differs and the other's does not: 2 of 2 surplus. Own y n, other y n: none."""
    one = swap((0, "y", "n", "yy", "nn"), (1, "y", "n", "yn", "yn"))
    (found,) = reacting_of(one)
    assert found.floor == "reruns"
    assert (found.flip_rate, found.floor_rate) == ((2 + 2) / 4, 2 / 4)
    assert found.p == 0.5


def test_runs_that_only_the_own_picture_has_are_what_both_are_set_against():
    """Own y y, other n, of one run: run 2 of own against run 1 of both."""
    one = swap((0, "y", "n", "yy", "n-"), (1, "y", "n", "yy", "n-"))
    one = replace(one, shown=one.shown[:, :1])
    (found,) = reacting_of(one)
    assert (found.pairs, found.flip_rate, found.floor_rate, found.p) == (2, 1.0, 0.0, 0.25)


def test_the_strictest_floor_is_the_one_beyond_which_least_is_seen():
    one = swap((0, "y", "n", "yy", "nn"), (1, "y", "n", "yy", "nn"), placebo=["nn", "nn"])
    found = reacting_of(one)
    assert [each.floor for each in found] == ["placebo", "reruns"]
    assert strictest(found) is found[0]


def rejected(reader: str, runs: int, floor: str, studies: int = 300, patients: int = 60) -> float:
    ps = []
    for seed in range(studies):
        made = study(reader, patients, seed, runs=runs)
        made = made if floor == "placebo" else replace(made, placebo=None)
        ps.append(next(one.p for one in reacting_of(made) if one.floor == floor))
    return float(np.mean(np.array(ps) <= 0.05))


@pytest.mark.parametrize(("runs", "floor"), [(2, "reruns"), (3, "reruns"), (1, "placebo")])
def test_the_test_errs_as_often_as_it_says(runs: int, floor: str):
    """A blind sampler: between 3 and 5.5 % of studies, and 2.5 points of simulation error (2 s.e.)."""
    assert 0.03 - 0.025 <= rejected("sampled", runs, floor) <= 0.055 + 0.025


def test_rounding_is_not_taken_for_the_image_with_a_placebo():
    assert rejected("rounding", 1, "placebo", studies=200) <= 0.05 + 0.02


@pytest.mark.parametrize(("runs", "floor"), [(2, "reruns"), (1, "placebo")])
def test_a_reader_that_follows_is_found(runs: int, floor: str):
    assert rejected("follows", runs, floor, studies=40) == 1
