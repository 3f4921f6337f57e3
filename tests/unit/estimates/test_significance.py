"""The test of an image swap against reruns: by hand, calibrated, and with power."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from data.handmade import Asked, read, write_cell
from overread.config import Comparison, Setting, Statistics
from overread.estimates.tables import significance
from overread.estimates.tables.significance import TABLE, is_tested, sign_flip_p, significance_table

FEW = Statistics(draws=200)
SETTINGS = {
    name: Setting.model_validate(one)
    for name, one in {
        "own": {"images": "frontal"},
        "other": {"images": "frontal", "source": "substitute"},
        "report": {"images": "frontal", "report": "full"},
        "report-other": {"images": "frontal", "report": "full", "source": "substitute"},
        "black": {"images": "frontal", "source": "black"},
        "hidden": {"images": "frontal", "report": "full", "attention": "from-0"},
        "hidden-other": {"images": "frontal", "report": "full", "attention": "from-0", "source": "substitute"},
        "neutral": {"images": "frontal", "report": "neutral"},
        "neutral-other": {"images": "frontal", "report": "neutral", "source": "substitute"},
    }.items()
}
SWAP = {"swap": Comparison(flips=("own", "other"))}


def by_enumeration(surplus: list[float]) -> float:
    """Every choice of signs, written out."""
    sums = [sum(s * one for s, one in zip(signs, surplus, strict=True)) for signs in signs_of(len(surplus))]
    return sum(total >= sum(surplus) - 1e-9 for total in sums) / len(sums)


def signs_of(number: int) -> list[tuple[int, ...]]:
    return list(itertools.product((1, -1), repeat=number))


@pytest.mark.parametrize(
    ("surplus", "p"),
    [
        ([], 1.0), ([0, 0], 1.0), ([2], 0.5), ([-2], 1.0), ([1, 1, 1], 1 / 8), ([3, 1, -1], 3 / 8), ([1, -1], 3 / 4),
    ],
)  # fmt: skip
def test_p_is_the_share_of_signs_that_reach_what_was_observed(surplus: list[float], p: float):
    """3, 1, -1 sum to 3: so do + + - (3), + - + (3) and + + + (5), of eight."""
    assert sign_flip_p(np.array(surplus, dtype=float), seed=0) == p
    assert by_enumeration([one for one in surplus if one]) == p


def test_drawn_signs_agree_with_all_signs(monkeypatch: pytest.MonkeyPatch):
    surplus = np.array([5.0, 3, -1, 2, 4, -2, 1, 1, -3, 2])
    exact = sign_flip_p(surplus, seed=0)
    assert exact == by_enumeration(surplus.tolist())
    monkeypatch.setattr(significance, "EXACT", 3)
    drawn = sign_flip_p(surplus, seed=1)
    assert drawn != exact
    assert drawn == pytest.approx(exact, abs=4 * np.sqrt(exact * (1 - exact) / significance.DRAWS))


def test_drawn_p_is_never_zero():
    assert sign_flip_p(np.ones(200), seed=0, draws=99) == 0.01


def asked(answers: dict[str, list[str | None]], image: str) -> list[Asked]:
    """By patient: the answers to its questions."""
    return [
        Asked(f"{patient}-{place}", patient, "yes", one, image=(image, patient, "yes"))
        for patient, given in answers.items()
        for place, one in enumerate(given)
    ]


def table_of(tmp_path: Path, own: list[dict[str, Any]], other: list[dict[str, Any]]) -> list[dict[str, Any]]:
    cells = read(
        tmp_path,
        write_cell(tmp_path, "own", *(asked(run, "s1") for run in own)),
        write_cell(tmp_path, "other", *(asked(run, "s2") for run in other)),
    )
    table = significance_table(cells, SWAP, SETTINGS, FEW)
    assert tuple(table.columns) == TABLE.names
    return table.to_dict("records")


def test_the_swap_is_set_against_the_rerun_question_by_question(tmp_path: Path):
    """Run 1 own against run 2 swapped: p1 flips 2 of 2, p2 1 of 2, p3 0 of 1; reruns: p1 0, p2 1 and p3 0.

    p3's second question was not answered in run 2, and is in neither. Surplus 2, 0, 0: p = 1/2.
    """
    own = [
        {"p1": ["yes", "yes"], "p2": ["yes", "yes"], "p3": ["yes", "yes"]},
        {"p1": ["yes", "yes"], "p2": ["no", "yes"], "p3": ["yes", None]},
    ]
    other = [
        {"p1": ["yes", "yes"], "p2": ["yes", "yes"], "p3": ["no", "no"]},
        {"p1": ["no", "no"], "p2": ["yes", "no"], "p3": ["yes", "no"]},
    ]
    (row,) = table_of(tmp_path, own, other)
    assert (row["floor_basis"], row["report_shown"], row["pairs"], row["patients"]) == ("measured", "none", 5, 3)
    assert (row["flip_rate"], row["floor_rate"]) == (3 / 5, 1 / 5)
    assert (row["surplus"], row["p"], row["p_holm"]) == (pytest.approx(2 / 5), 0.5, 0.5)


def test_without_a_rerun_the_floor_is_no_flips_and_said_not_to_be_measured(tmp_path: Path):
    own, other = {"p1": ["yes"], "p2": ["yes", "no"], "p3": ["no"]}, {"p1": ["no"], "p2": ["no", "no"], "p3": ["no"]}
    (row,) = table_of(tmp_path, [own], [other])
    assert (row["floor_basis"], row["pairs"], row["flip_rate"], row["floor_rate"]) == ("not measured", 4, 0.5, 0)
    assert row["p"] == 1 / 4


def test_all_tests_of_a_study_are_adjusted_together_by_holm(tmp_path: Path):
    """p of 1/8, 1/4 and 1: times 3 and 2 and 1, never falling."""
    cells = {}
    for model, flipped in (("three", 3), ("two", 2), ("none", 0)):
        own = {f"p{place}": ["yes"] for place in range(4)}
        other = {f"p{place}": ["no" if place < flipped else "yes"] for place in range(4)}
        cells |= read(
            tmp_path,
            write_cell(tmp_path, "own", asked(own, "s1"), model=model),
            write_cell(tmp_path, "other", asked(other, "s2"), model=model),
        )
    table = significance_table(cells, SWAP, SETTINGS, FEW).set_index("model")
    assert table["p"].to_dict() == {"none": 1, "three": 1 / 8, "two": 1 / 4}
    assert table["p_holm"].to_dict() == {"none": 1, "three": 3 / 8, "two": 1 / 2}


@pytest.mark.parametrize(
    ("pair", "tested"),
    [
        (("own", "other"), True), (("report", "report-other"), True), (("own", "black"), False),
        (("other", "own"), False), (("own", "report-other"), False), (("own", "own"), False),
        (("hidden", "hidden-other"), False), (("neutral", "neutral-other"), False),
    ],
)  # fmt: skip
def test_what_is_tested_is_a_swap_of_images_beside_the_whole_report_or_none(pair: tuple[str, str], tested: bool):
    assert is_tested(Comparison(flips=pair), SETTINGS) is tested
    assert not is_tested(Comparison.model_construct(flips=None, accuracy=pair), SETTINGS)


def simulated(seed: int, *, effect: float, patients: int = 30) -> tuple[np.ndarray, np.ndarray]:
    """Flips of each patient under the swap and in the rerun: readings of 1 to 12 questions, whose noise differs.

    Each reading says yes with the question's own probability; the swapped one says the opposite in `effect` of the
    questions.
    """
    draw = np.random.default_rng([41, seed])
    flips = np.zeros((2, patients))
    for patient in range(patients):
        questions = draw.integers(1, 13)
        unsure = np.where(draw.random(questions) < draw.beta(0.5, 1.5), 0.5, 0.02)
        first, again, swapped = (draw.random(questions) < unsure for _ in range(3))
        swapped = swapped ^ (draw.random(questions) < effect)
        flips[:, patient] = (first != swapped).sum(), (first != again).sum()
    return flips[0], flips[1]


def rejected(effect: float, studies: int = 400) -> float:
    """The share of studies with p of at most 0.05."""
    surplus = [np.subtract(*simulated(one, effect=effect)) for one in range(studies)]
    return float(np.mean([sign_flip_p(one, seed=place, draws=399) <= 0.05 for place, one in enumerate(surplus)]))


def test_where_the_image_is_noise_only_it_is_found_in_five_per_cent_of_studies():
    """A reader with a noise floor of about 13 %. Of 400 studies 5 % strays by 1.1 points; ties keep it below."""
    assert 0.02 <= rejected(0.0) <= 0.05 + 2.5 * np.sqrt(0.05 * 0.95 / 400)


def test_a_reader_that_follows_the_image_beyond_its_noise_is_found():
    assert rejected(0.2, 200) > 0.9
    assert 0.1 < rejected(0.05, 200) < 0.6


def test_taking_the_noise_floor_for_nothing_would_find_an_image_where_there_is_noise_only():
    """What the rerun is for: against no flips at all the same readers are always found to use the image."""
    assert all(sign_flip_p(simulated(one, effect=0.0)[0], seed=0, draws=399) <= 0.05 for one in range(50))
