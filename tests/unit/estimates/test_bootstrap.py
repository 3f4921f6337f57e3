"""Patient-clustered bootstrap."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from overread.estimates import bootstrap
from overread.estimates.bootstrap import (
    Interval,
    Ratio,
    clustered_interval,
    paired_difference,
    patient_draws,
    ratio_difference,
    ratio_interval,
)


def trials(patients: int, seed: int, *, most: int = 9) -> pd.DataFrame:
    """Trials of patients of unequal size whose values hang together within a patient."""
    draw = np.random.default_rng(seed)
    sizes = draw.integers(1, most, patients)
    patient = np.repeat(np.arange(patients), sizes)
    level = draw.normal(size=patients)[patient]
    first, second, third = level + draw.normal(size=(3, len(patient)))
    return pd.DataFrame({"patient": patient, "first": first, "second": second, "third": np.abs(third) + 0.1})


def slow_draws(rows: pd.DataFrame, draws: int, seed: int) -> list[pd.DataFrame]:
    """Each draw written out: a patient drawn three times has its rows three times."""
    counts = patient_draws(rows["patient"].nunique(), draws, seed)
    by_patient = [group for _, group in rows.groupby("patient", sort=True)]
    return [
        pd.concat([group for group, times in zip(by_patient, drawn, strict=True) for _ in range(int(times))])
        for drawn in counts
    ]


def slow_percentile(values: list[float], share: float) -> float:
    """Linear interpolation between order statistics, the definition written out."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


def assert_equals_slow(interval: Interval, values: list[float], level: float) -> None:
    assert interval.low == pytest.approx(slow_percentile(values, (1 - level) / 2), abs=1e-12)
    assert interval.high == pytest.approx(slow_percentile(values, (1 + level) / 2), abs=1e-12)


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_the_interval_of_a_mean_equals_a_loop_over_the_same_draws(level: float):
    rows = trials(23, seed=1)
    drawn = slow_draws(rows, 150, seed=7)
    interval = clustered_interval(rows["first"], rows["patient"], level=level, draws=150, seed=7)
    assert interval.estimate == pytest.approx(rows["first"].mean(), abs=1e-12)
    assert interval.patients == 23
    assert_equals_slow(interval, [draw["first"].mean() for draw in drawn], level)


def test_the_interval_of_a_paired_difference_equals_a_loop_over_the_same_draws():
    rows = trials(19, seed=2)
    drawn = slow_draws(rows, 150, seed=0)
    interval = paired_difference(rows["first"], rows["second"], rows["patient"], draws=150)
    assert interval.estimate == pytest.approx(rows["first"].mean() - rows["second"].mean(), abs=1e-12)
    assert_equals_slow(interval, [draw["first"].mean() - draw["second"].mean() for draw in drawn], 0.95)


def test_the_interval_of_a_ratio_of_sums_equals_a_loop_over_the_same_draws():
    rows = trials(17, seed=3)
    drawn = slow_draws(rows, 150, seed=0)
    interval = ratio_interval(Ratio(rows["first"], rows["third"], rows["patient"]), draws=150)
    assert interval.estimate == pytest.approx(rows["first"].sum() / rows["third"].sum(), abs=1e-12)
    assert_equals_slow(interval, [draw["first"].sum() / draw["third"].sum() for draw in drawn], 0.95)


def test_a_difference_of_two_ratios_uses_one_draw_over_the_union_of_patients():
    """Patients 0 to 11 have trials on the first side, 4 to 15 on the second; a draw takes from all 16."""
    rows = trials(16, seed=4)
    rows["side one"], rows["side two"] = rows["patient"] < 12, rows["patient"] >= 4
    one, two = rows[rows["side one"]], rows[rows["side two"]]
    interval = ratio_difference(
        Ratio(one["first"], np.ones(len(one)), one["patient"]),
        Ratio(two["second"], two["third"], two["patient"]),
        draws=200,
    )
    drawn = slow_draws(rows, 200, seed=0)
    values = [
        draw.loc[draw["side one"], "first"].mean()
        - draw.loc[draw["side two"], "second"].sum() / draw.loc[draw["side two"], "third"].sum()
        for draw in drawn
    ]
    assert interval.patients == 16
    assert interval.estimate == pytest.approx(one["first"].mean() - two["second"].sum() / two["third"].sum(), abs=1e-12)
    assert_equals_slow(interval, values, 0.95)


def test_a_draw_in_which_a_side_has_no_trial_is_left_out():
    """Two patients, one on each side: only draws of both have an estimate, and that is always 1 - 0."""
    interval = ratio_difference(Ratio([1.0], [1.0], [0]), Ratio([0.0], [1.0], [1]), draws=500)
    counts = patient_draws(2, 500, 0)
    assert (counts == 2).any(), "some draws must lack a side, or this shows nothing"
    assert interval == Interval(1.0, 1.0, 1.0, 2)


def test_an_interval_is_as_wide_as_its_patients_allow():
    """Ten trials of one patient carry no more than one: 30 patients x 10 equal trials == 30 patients x 1."""
    values = np.random.default_rng(5).normal(size=30)
    one = clustered_interval(values, np.arange(30))
    ten = clustered_interval(np.repeat(values, 10), np.repeat(np.arange(30), 10))
    assert (ten.low, ten.high) == pytest.approx((one.low, one.high), abs=1e-12)
    apart = clustered_interval(np.repeat(values, 10), np.arange(300))
    assert apart.high - apart.low < 0.5 * (one.high - one.low)


def test_a_paired_difference_cancels_what_both_arms_share():
    rows = trials(25, seed=6)
    same = paired_difference(rows["first"], rows["first"], rows["patient"])
    assert same == Interval(0.0, 0.0, 0.0, 25)
    side = Ratio(rows["first"], rows["third"], rows["patient"])
    assert ratio_difference(side, side) == Interval(0.0, 0.0, 0.0, 25)
    shifted = paired_difference(rows["first"] + 0.25, rows["first"], rows["patient"])
    assert (shifted.low, shifted.high) == pytest.approx((0.25, 0.25), abs=1e-12)


@given(order=st.permutations(range(40)), seed=st.integers(0, 3))
def test_the_order_of_rows_changes_nothing(order: list[int], seed: int):
    draw = np.random.default_rng(8)
    values, patients = draw.normal(size=40), draw.integers(0, 9, 40)
    straight = clustered_interval(values, patients, draws=300, seed=seed)
    mixed = clustered_interval(values[order], patients[order], draws=300, seed=seed)
    assert (mixed.estimate, mixed.low, mixed.high) == pytest.approx(
        (straight.estimate, straight.low, straight.high), abs=1e-12
    )


def test_codes_that_no_trial_has_change_nothing():
    values, patients = np.arange(12.0), np.repeat([0, 1, 2, 3], 3)
    assert clustered_interval(values, patients * 10 + 5) == clustered_interval(values, patients)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_value_that_is_not_finite_is_refused(value: float):
    with pytest.raises(ValueError, match="not finite"):
        clustered_interval([0.0, value, 1.0], [0, 1, 2])
    with pytest.raises(ValueError, match="not finite"):
        ratio_interval(Ratio([0.0, 1.0, 1.0], [1.0, value, 1.0], [0, 1, 2]))


def test_no_trial_at_all_is_refused():
    with pytest.raises(ValueError, match="no trial"):
        clustered_interval([], [])


def test_values_and_patients_of_different_length_are_refused():
    with pytest.raises(ValueError, match="shapes differ"):
        clustered_interval([1.0, 0.0], [0, 1, 1])


def test_denominators_that_sum_to_zero_are_refused():
    with pytest.raises(ValueError, match="sum to zero"):
        ratio_interval(Ratio([1.0, 1.0], [0.0, 0.0], [0, 1]))


def test_one_patient_has_an_estimate_and_no_interval():
    assert clustered_interval([1.0, 0.0, 1.0, 1.0], [3, 3, 3, 3]) == Interval(0.75, None, None, 1)


def test_draw_counts_follow_from_seed_and_number_of_patients():
    counts = patient_draws(12, 400, 3)
    assert counts.shape == (400, 12)
    assert (counts.sum(axis=1) == 12).all()
    assert (patient_draws(12, 100, 3) == counts[:100]).all()
    assert (patient_draws(12, 400, 4) != counts).any()
    # A count is binomial(12, 1/12): mean 1, variance 11/12; 4,800 of them.
    assert counts.mean() == 1
    assert counts.var() == pytest.approx(11 / 12, abs=0.06)


def test_kept_draw_counts_cannot_be_changed_by_a_caller():
    with pytest.raises(ValueError, match="read-only"):
        patient_draws(5, 100, 0)[0, 0] = 9


def test_working_in_blocks_gives_the_same_draws_and_intervals(monkeypatch: pytest.MonkeyPatch):
    rows = trials(31, seed=9)
    whole, interval = patient_draws(31, 500, 1), clustered_interval(rows["first"], rows["patient"], draws=500, seed=1)
    monkeypatch.setattr(bootstrap, "_kept", {})
    monkeypatch.setattr(bootstrap, "BLOCK", 31 * 7)
    assert (patient_draws(31, 500, 1) == whole).all()
    blocked = clustered_interval(rows["first"], rows["patient"], draws=500, seed=1)
    assert (blocked.low, blocked.high) == pytest.approx((interval.low, interval.high), abs=1e-12)


def test_kept_draw_counts_stay_within_their_memory(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(bootstrap, "_kept", {})
    monkeypatch.setattr(bootstrap, "KEPT_BYTES", 3 * 100 * 10 * 4)
    for seed in range(7):
        patient_draws(10, 100, seed)
        assert sum(counts.nbytes for counts in bootstrap._kept.values()) <= bootstrap.KEPT_BYTES
