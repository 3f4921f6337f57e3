"""Limits of shares and of differences: published values, never of no width, and covering what they say."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from overread.estimates.inference.clusters import Clusters, covariance, cr2
from overread.estimates.inference.limits import Combined, Share, proportion, signed

A = ([6] * 10, [0, 0, 0, 0, 1, 0, 0, 4, 0, 2])
B = ([14, 3, 8, 5, 1, 9, 2, 12, 4, 7, 6, 9], [2, 0, 1, 0, 0, 3, 0, 1, 0, 0, 1, 0])


def answers(sizes: list[int], events: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """Values and patients: so many answers of each patient, of which so many are events."""
    values = [1.0] * 0
    for size, event in zip(sizes, events, strict=True):
        values += [1.0] * event + [0.0] * (size - event)
    return np.array(values), np.repeat(np.arange(len(sizes)), sizes)


@pytest.mark.parametrize(("case", "error"), [(A, 0.0704921), (B, 0.0341953)])
def test_the_standard_error_is_that_of_the_survey_packages(case: tuple[list[int], list[int]], error: float):
    values, patients = answers(*case)
    influences = ((values - values.mean()) / len(values))[:, None]
    assert covariance(influences, Clusters(patients))[0, 0] ** 0.5 == pytest.approx(error, abs=1e-7)


def test_cr2_has_bell_and_mccaffreys_degrees_of_freedom():
    mean, error, freedom = cr2(*answers(*B))
    assert mean == pytest.approx(8 / 80)
    assert (error, freedom) == (pytest.approx(0.0346844, abs=1e-7), pytest.approx(8.088259, abs=1e-6))


def test_limits_are_clopper_and_pearsons_of_an_effective_number_where_few_have_an_event():
    """Case A: n* is .10 .. of 60, with 3 patients who have an event; by hand from its variance."""
    values, patients = answers(*A)
    found = proportion(values, Clusters(patients))
    ((_, share),) = found.parts
    n = 7 / 60 * 53 / 60 / 0.0704921**2
    assert n == pytest.approx(20.73913, abs=1e-3)
    effective = (7**2) / (1 + 16 + 4)
    assert share.freedom == pytest.approx(effective + 2)
    n *= (stats.norm.ppf(0.975) / stats.t.ppf(0.975, effective + 2)) ** 2
    shift = 0.5 * (1 - 3 / 8)
    x = n * 7 / 60
    low, high = found.limits(0.95)
    assert low == pytest.approx(stats.beta.ppf(0.025, x + 0.5 - shift, n - x + 0.5 + shift), rel=1e-4)
    assert high == pytest.approx(stats.beta.ppf(0.975, x + 0.5 + shift, n - x + 0.5 - shift), rel=1e-4)
    # Korn and Graubard's own, with all ten patients' degrees of freedom, is narrower.
    assert low < 0.0132152 and high > 0.3708464


def test_nothing_seen_is_bounded_by_the_patients():
    """No event in 60 answers of 10 patients: up to 1 - .025^(1/10)."""
    found = proportion(np.zeros(60), Clusters(np.repeat(np.arange(10), 6)))
    assert found.limits(0.95) == (0.0, pytest.approx(0.3084971, abs=1e-7))
    turned = proportion(np.ones(60), Clusters(np.repeat(np.arange(10), 6)))
    assert turned.limits(0.95) == (pytest.approx(1 - 0.3084971, abs=1e-7), 1.0)


def test_a_difference_that_nobody_shows_has_the_width_that_unseen_moves_leave_it():
    share = np.full(60, 1 / 60)
    found = signed(np.zeros(60), share, Clusters(np.repeat(np.arange(30), 2)))
    bound = 1 - 0.025 ** (1 / 30)
    assert found.limits(0.95) == (pytest.approx(-bound), pytest.approx(bound))
    assert found.p_within(0.2) < 0.025 < found.p_within(0.1)


def test_p_is_the_level_at_which_the_limit_comes_down_to_the_bound():
    draw = np.random.default_rng(1)
    moves = draw.choice([-1.0, 0.0, 1.0], p=[0.1, 0.7, 0.2], size=200)
    found = signed(moves / 200, np.full(200, 1 / 200), Clusters(np.repeat(np.arange(50), 4)))
    p = found.p_above(0.0)
    assert 0 < p < 0.5
    low, _ = found.limits(1 - 2 * p)
    assert low == pytest.approx(0.0, abs=1e-4)
    high = found.p_below(0.3)
    assert found.limits(1 - 2 * high)[1] == pytest.approx(0.3, abs=1e-4)
    assert found.p_within(0.3) == max(found.p_above(-0.3), found.p_below(0.3))


def test_a_difference_of_many_moves_agrees_with_the_cluster_t_interval():
    draw = np.random.default_rng(2)
    moves = draw.choice([-1.0, 0.0, 1.0], p=[0.2, 0.5, 0.3], size=3000)
    patients = np.repeat(np.arange(300), 10)
    found = signed(moves / 3000, np.full(3000, 1 / 3000), Clusters(patients))
    mean, error, freedom = cr2(moves, patients)
    reach = stats.t.ppf(0.975, freedom) * error
    assert found.estimate == pytest.approx(mean)
    assert found.limits(0.95) == (pytest.approx(mean - reach, abs=0.002), pytest.approx(mean + reach, abs=0.002))


def test_limits_stay_within_what_can_be():
    found = signed(np.array([0.5, 0.0]), np.full(2, 0.5), Clusters(np.arange(2)))
    low, high = found.limits(0.95)
    assert low is not None and high is not None and -1 <= low < 0.5 < high <= 1


def test_one_patient_has_no_interval_and_no_p():
    found = proportion(np.array([1.0, 0.0]), Clusters(np.zeros(2, dtype=np.int64)))
    assert found.limits(0.95) == (None, None)
    assert (found.p_above(0.0), found.p_within(0.1)) == (1.0, 1.0)


def test_two_way_clusters_are_cameron_gelbach_and_millers_and_never_below_one_way():
    """11010 10010 11110 00010 11011 01010 by patient and question: .00977778, .02611111, .00858238."""
    table = np.array(
        [[int(c) for c in row] for row in ["11010", "10010", "11110", "00010", "11011", "01010"]], dtype=float
    )
    values = table.ravel()
    patients, questions = (each.ravel() for each in np.indices(table.shape))
    influences = ((values - values.mean()) / 30)[:, None]
    ways = [covariance(influences, Clusters(each))[0, 0] for each in (patients, questions)]
    # statsmodels' factor has (N - 1)/(N - k) besides, which is 1 here.
    assert ways == [pytest.approx(0.00977778, abs=1e-8), pytest.approx(0.02611111, abs=1e-8)]
    both = covariance(influences, Clusters(patients, topic=questions))[0, 0]
    assert both >= max(ways[0], ways[1] * (5 - 1) / 5 * 6 / 5 - 1e-9)
    # 1001 0110 1010 0101: the sum of the parts is negative.
    table = np.array([[1, 0, 0, 1], [0, 1, 1, 0], [1, 0, 1, 0], [0, 1, 0, 1]], dtype=float)
    influences = ((table.ravel() - 0.5) / 16)[:, None]
    patients, questions = (each.ravel() for each in np.indices(table.shape))
    assert covariance(influences, Clusters(patients, topic=questions))[0, 0] >= 0


def test_pairs_that_share_a_patient_in_another_role_hang_together():
    """Pairs (1, 2) and (2, 3) share patient 2: 1 + 4 + 2 x 1 x 2 = 9; (4, 5) is alone: 9."""
    influences = np.array([1.0, 2.0, -3.0])[:, None]
    clusters = Clusters(np.array([1, 2, 4]), np.array([2, 3, 5]))
    assert covariance(influences, clusters)[0, 0] == pytest.approx((9 + 9) * 3 / 2)
    one_way = covariance(influences, Clusters(np.array([1, 2, 4])))[0, 0]
    assert one_way == pytest.approx((1 + 4 + 9) * 3 / 2)


def test_two_pairs_of_the_same_two_patients_count_once():
    influences = np.array([1.0, 1.0, -2.0])[:, None]
    clusters = Clusters(np.array([1, 2, 4]), np.array([2, 1, 4]))
    assert covariance(influences, clusters)[0, 0] == pytest.approx((4 + 4) * 3 / 2)


def covered(rate: float, correlation: float, patients: int, *, uneven: bool, studies: int = 400) -> float:
    """The share of simulated studies whose interval holds the true share: beta-binomial answers."""
    draw = np.random.default_rng([7, int(1000 * rate), patients])
    hits = 0
    for _ in range(studies):
        sizes = 1 + np.floor(draw.lognormal(1.5, 0.9, patients)).astype(int) if uneven else np.full(patients, 13)
        total = 1 / correlation - 1 if correlation else 1e9
        shares = draw.beta(rate * total, (1 - rate) * total, patients)
        codes = np.repeat(np.arange(patients), sizes)
        low, high = proportion((draw.random(len(codes)) < shares[codes]).astype(float), Clusters(codes)).limits(0.95)
        hits += low is not None and high is not None and low <= rate <= high
    return hits / studies


@pytest.mark.parametrize("uneven", [False, True])
@pytest.mark.parametrize(("rate", "correlation", "patients"), [(0.005, 0.4, 300), (0.05, 0.4, 60), (0.5, 0.1, 20)])
def test_limits_cover_what_they_say(rate: float, correlation: float, patients: int, uneven: bool):
    """At least 93 %; of 400 studies that strays by 1.3 points. Percentile intervals cover 48 to 90 % here."""
    assert covered(rate, correlation, patients, uneven=uneven) >= 0.93 - 2 * 0.013


def test_a_share_with_a_variance_of_zero_in_the_middle_has_a_width():
    low, high = Share(0.5, 0.0, 4, 2, 1.0, 2).limits(0.025)
    assert low < 0.3 and high > 0.7


def test_parts_that_hang_together_cancel():
    """Of two shares that go up and down together the difference is narrower than of two that do not."""
    parts = ((1.0, Share(0.3, 0.001, 400, 50, 49, 40)), (-1.0, Share(0.25, 0.001, 400, 50, 49, 40)))
    widths = []
    for r in (0.0, 0.8):
        low, high = Combined(parts, np.array([[1, r], [r, 1.0]]), 50, 40, 50).limits(0.95)
        assert low is not None and high is not None
        widths.append(high - low)
    assert widths[1] == pytest.approx(widths[0] * 0.2**0.5, rel=0.02)
