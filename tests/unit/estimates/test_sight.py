"""Sight: of readers whose sight is known, over many simulated studies of marks drawn at random."""

from __future__ import annotations

import os

import numpy as np
import pandas as pd
import pytest

from overread.config import Setting, Statistics
from overread.core.records import Question
from overread.edits.shared.controls import SHAPES, drawing, questions
from overread.estimates.tables.sight import p_by_chance, sight_table

STUDIES = int(os.environ.get("STUDIES", "60"))
SETTINGS = {
    "marks": Setting(images="v", edit={"kind": "mark", "drawn": "at-random"}),
    "small": Setting(images="v", edit={"kind": "mark", "drawn": "at-random", "size": 0.05}),
    "plain": Setting(images="v"),
}


def error(share: float) -> float:
    """Three standard errors of a share over the studies."""
    return float(3 * np.sqrt(share * (1 - share) / STUDIES))


def asked(patients: int, seed: int, *, yes_no: bool = False) -> list[Question]:
    return [
        one
        for patient in range(patients)
        for one in questions(f"s{patient}", f"p{patient}", seed, "white", yes_no=yes_no)
    ]


def cell(questions: list[Question], choices: list[int], status: str = "answered") -> pd.DataFrame:
    given = np.array(choices)
    gold = np.array([one.answer_index for one in questions])
    return pd.DataFrame(
        {
            "question": [one.question for one in questions], "run": 1, "topic": [one.topic for one in questions],
            "patient": [one.patient for one in questions], "status": status, "right": given == gold,
            "n_options": [len(one.options) for one in questions],
        }
    )  # fmt: skip


def sees(share: float):
    """Correct where it sees, which it does in a share of the pictures; else a guess."""

    def reader(questions: list[Question], rng: np.random.Generator) -> list[int]:
        looks = {one.study: rng.random() < share for one in questions}
        return [one.answer_index if looks[one.study] else int(rng.integers(len(one.options))) for one in questions]

    return reader


def first(questions: list[Question], rng: np.random.Generator) -> list[int]:
    return [0] * len(questions)


def last(questions: list[Question], rng: np.random.Generator) -> list[int]:
    return [len(one.options) - 1 for one in questions]


def by_text(questions: list[Question], rng: np.random.Generator) -> list[int]:
    """Blind, and different from question to question: by a hash of the text."""
    return [int(one.question, 16) // 7 % len(one.options) for one in questions]


def by_study(questions: list[Question], rng: np.random.Generator) -> list[int]:
    """Blind, with answers of a study that hang together."""
    place = {one.study: int(rng.integers(12)) for one in questions}
    return [place[one.study] % len(one.options) for one in questions]


@pytest.mark.parametrize("reader", [first, last, by_text, by_study, sees(0.0)])
@pytest.mark.parametrize("yes_no", [False, True])
def test_who_does_not_see_is_hardly_ever_said_to(reader, yes_no: bool) -> None:
    shown = 0
    for seed in range(STUDIES):
        made = asked(24, seed, yes_no=yes_no)
        cells = {("d", "m", "marks"): cell(made, reader(made, np.random.default_rng(seed)))}
        row = sight_table(cells, SETTINGS, Statistics()).iloc[0]
        shown += row["sees"] != "not shown"
    assert shown / STUDIES <= 0.025 + error(0.025)


@pytest.mark.parametrize("share", [0.3, 0.7, 0.95])
def test_the_interval_holds_how_much_is_seen(share: float) -> None:
    held, found = 0, 0
    for seed in range(STUDIES):
        made = asked(40, seed)
        chance = float(np.mean([1 / len(one.options) for one in made]))
        cells = {("d", "m", "marks"): cell(made, sees(share)(made, np.random.default_rng(seed)))}
        row = sight_table(cells, SETTINGS, Statistics()).iloc[0]
        assert row["chance"] == pytest.approx(chance)
        held += row["low"] <= share + (1 - share) * chance <= row["high"]
        found += row["sees"] != "not shown"
    assert held / STUDIES >= 0.93 - error(0.05)
    if share >= 0.7:
        assert found == STUDIES


def test_who_sees_everything_sees() -> None:
    made = asked(24, 0)
    cells = {("d", "m", name): cell(made, [one.answer_index for one in made]) for name in ("marks", "small", "plain")}
    table = sight_table(cells, SETTINGS, Statistics())
    assert set(table["setting"]) == {"marks", "small"}  # a setting that asks the data set's questions has no row
    whole = table[table["asked_about"] == "all"].set_index("setting")
    assert (whole["sees"] == "yes").all() and whole.loc["small", "mark_size"] == 0.05
    assert set(table["asked_about"]) == {
        "all",
        *(f"mark: {name}" for name in ("present", "letter", "shape", "side", "number")),
    }


def test_a_refusal_is_not_correct_and_a_failed_request_is_no_answer() -> None:
    made = asked(24, 0)
    right = [one.answer_index for one in made]
    refused = cell(made, right, "refused").assign(right=False)
    row = sight_table({("d", "m", "marks"): refused}, SETTINGS, Statistics()).iloc[0]
    assert row["accuracy"] == 0 and row["sees"] == "not shown" and row["p"] == pytest.approx(1)
    failed = cell(made, right, "failed").assign(right=False)
    row = sight_table({("d", "m", "marks"): failed}, SETTINGS, Statistics()).iloc[0]
    assert pd.isna(row["accuracy"]) and pd.isna(row["p"]) and row["sees"] == "not shown"


def test_p_is_that_of_independent_guesses() -> None:
    assert p_by_chance(2, np.array([2, 2])) == pytest.approx(0.25)
    assert p_by_chance(2, np.array([2, 4])) == pytest.approx(0.125)
    assert p_by_chance(0, np.array([2, 3, 4])) == pytest.approx(1)
    assert p_by_chance(1, np.array([2, 3])) == pytest.approx(1 - 1 / 2 * 2 / 3)


def test_every_option_is_correct_equally_often_whatever_the_study() -> None:
    drawn = [drawing(f"study {number}", 0) for number in range(4000)]
    marked = [one for one in drawn if one is not None]
    assert len(marked) / 4000 == pytest.approx(0.5, abs=0.03)
    assert np.mean([one.side == "left" for one in marked]) == pytest.approx(0.5, abs=0.035)
    assert np.mean([one.number == 3 for one in marked]) == pytest.approx(1 / 3, abs=0.035)
    shaped = [one.shape for one in marked if one.shape is not None]
    assert all(shaped.count(shape) / len(shaped) == pytest.approx(0.25, abs=0.045) for shape in SHAPES)
    middles = [middle for one in marked for middle in one.middles(0.25)]
    assert all(0.125 < x < 0.875 and 0.125 < y < 0.875 for x, y in middles)
    assert all((x < 0.5) == (one.side == "left") for one in marked for x, _ in one.middles(0.2))
