"""Grounding and metamorphic relations of readers whose behaviour is known: what they look at, and how often."""

from __future__ import annotations

import itertools
import os

import numpy as np
import pandas as pd
import pytest

from overread.config import Comparison, Setting, Statistics
from overread.core.records import Question
from overread.estimates.tables.grounding import Triple, grounding_table, triples
from overread.estimates.tables.metamorphic import metamorphic_table, swapped

SETTINGS = {
    "own": Setting(images="v"),
    "erased": Setting(images="v", edit={"kind": "erase"}),
    "elsewhere": Setting(images="v", edit={"kind": "erase-control"}),
    "mirrored": Setting(images="v", edit={"kind": "mirror"}),
    "shifted": Setting(images="v", edit={"kind": "shift"}),
    "blurred": Setting(images="v", edit={"kind": "blur", "mm": 2}),
}
OPTIONS = ("Left temporal lobe", "Right temporal lobe", "Left thalamus", "Brain stem")
TOPICS = ("location", "size")


STUDIES = int(os.environ.get("STUDIES", "60"))
"""How many are simulated a cell; `STUDIES=400 pytest ...` for a closer look."""


def error(share: float) -> float:
    """Two standard errors of a simulated share."""
    return 2 * float(np.sqrt(share * (1 - share) / STUDIES))


def questions(patients: int, per_patient: int) -> list[Question]:
    made = []
    for patient, number in itertools.product(range(patients), range(per_patient)):
        topic = TOPICS[number % 2]
        options = OPTIONS if topic == "location" else ("1 cm", "2 cm", "3 cm", "4 cm")
        made.append(
            Question(
                study=f"s{patient}",
                patient=f"p{patient}",
                stem=f"Question {number}?",
                options=options,
                answer=options[patient % 4],
                topic=topic,
                origin="test",
            )
        )
    return made


def cell(asked: list[Question], choices: np.ndarray, status: str | np.ndarray = "answered") -> pd.DataFrame:
    gold = np.array([one.answer_index for one in asked])
    return pd.DataFrame(
        {
            "question": [one.question for one in asked], "run": 1, "topic": [one.topic for one in asked],
            "patient": [one.patient for one in asked], "status": status, "choice": choices, "right": choices == gold,
        }
    )  # fmt: skip


def other(choice: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return (choice + rng.integers(1, 4, len(choice))) % 4


def cells(
    asked: list[Question], looks: float, touched: float, sides: float, seed: int
) -> dict[tuple[str, str, str], pd.DataFrame]:
    """A reader that answers otherwise with probability `looks` where the lesion is gone, with `touched` after any edit,
    and names the other side of a mirrored picture with probability `sides`. A patient's answers hang together.
    """
    rng = np.random.default_rng(seed)
    gold = np.array([one.answer_index for one in asked])
    patient = pd.factorize(np.array([one.patient for one in asked]))[0]

    def happens(share: float) -> np.ndarray:
        """With correlation 0.3 within a patient."""
        common = rng.random(patient.max() + 1) < share
        return np.where(rng.random(len(asked)) < 0.3, common[patient], rng.random(len(asked)) < share)

    own = np.where(rng.random(len(asked)) < 0.7, gold, other(gold, rng))
    disturbed = np.where(happens(touched), other(own, rng), own)
    becomes = np.array([swapped(one.options)[choice] for one, choice in zip(asked, own, strict=True)])
    named = np.where(becomes < 0, own, becomes)
    return {
        ("d", "m", "own"): cell(asked, own),
        ("d", "m", "shifted"): cell(asked, disturbed),
        ("d", "m", "elsewhere"): cell(asked, np.where(happens(touched), other(own, rng), own)),
        ("d", "m", "erased"): cell(asked, np.where(happens(looks), other(own, rng), own)),
        ("d", "m", "mirrored"): cell(asked, np.where(happens(sides), named, own)),
        ("d", "m", "blurred"): cell(asked, own),
    }


@pytest.mark.parametrize(("looks", "touched"), [(0.6, 0.05), (0.1, 0.1), (0.0, 0.0), (0.3, 0.3), (0.05, 0.0)])
def test_intervals_hold_what_a_reader_is_known_to_do(looks: float, touched: float) -> None:
    """Of many studies of 40 patients: the interval of the grounding covers the truth in 93 % or more, and a reader that
    does not look at the lesion is said to in 2.5 % at most; both up to the simulation's error."""
    asked = questions(40, 4)
    held, shown = 0, 0
    for seed in range(STUDIES):
        made = cells(asked, looks, touched, 0.5, seed)
        table = grounding_table(made, SETTINGS, Statistics())
        row = table[table["asked_about"] == "all"].iloc[0]
        held += row["low"] <= looks - touched <= row["high"]
        shown += row["p"] <= 0.025
    assert held / STUDIES >= 0.93 - error(0.05)
    if looks <= touched:
        assert shown / STUDIES <= 0.025 + error(0.025)
    if looks >= 0.6:
        assert shown == STUDIES


@pytest.mark.parametrize("sides", [0.0, 0.5, 0.9])
def test_a_mirrored_answer_must_name_the_other_side_and_any_other_must_stay(sides: float) -> None:
    asked = questions(40, 4)
    held = 0
    for seed in range(STUDIES):
        made = cells(asked, 0.0, 0.1, sides, seed)
        table = metamorphic_table(made, SETTINGS, {}, Statistics(), {"d": asked})
        row = table[table["edited"] == "mirrored"].iloc[0]
        choice = made["d", "m", "own"]["choice"].to_numpy()
        becomes = np.array([swapped(one.options)[place] for one, place in zip(asked, choice, strict=True)])
        sided = (becomes >= 0) & (becomes != choice)
        share = sided.sum() / (becomes >= 0).sum()
        held += row["low"] <= sides * share + (1 - share) <= row["high"]
        assert row["relation"] == "swap-sides" and row["placebo"] == "shifted"
        assert row["not_expected"] == (becomes < 0).sum() > 0
    assert held / STUDIES >= 0.93 - error(0.05)


def test_what_has_no_relation_has_no_row_and_the_named_placebo_is_taken() -> None:
    asked = questions(10, 2)
    made = cells(asked, 0.5, 0.0, 0.0, 0)
    comparisons = {"still": Comparison(flips=("own", "elsewhere"), kind="placebo")}
    table = metamorphic_table(made, SETTINGS, comparisons, Statistics(), {"d": asked})
    assert set(table["edited"]) == {"elsewhere", "mirrored", "shifted"}
    assert set(table[table["edited"] != "elsewhere"]["placebo"]) == {"elsewhere"}
    assert table[table["edited"] == "elsewhere"]["placebo"].isna().all()


def test_an_answer_that_one_setting_lacks_is_counted_and_says_nothing() -> None:
    asked = questions(12, 2)
    made = cells(asked, 1.0, 0.0, 0.0, 0)
    status = np.where(np.arange(24) < 6, "refused", "answered")
    made["d", "m", "erased"]["status"] = status
    row = grounding_table(made, SETTINGS, Statistics()).iloc[0]
    assert row["triples"] == 18 and row["incomplete"] == 0.25 and row["grounding"] == 1.0


def test_settings_belong_together_by_what_they_are() -> None:
    more = SETTINGS | {
        "around": Setting(images="v", edit={"kind": "erase", "by": "around"}),
        "around-control": Setting(images="v", edit={"kind": "erase-control", "by": "around", "place": "mirrored"}),
        "with-report": Setting(images="v", report="full", edit={"kind": "erase"}),
    }
    assert list(triples(more)) == [
        Triple("own", "around", "around-control"), Triple("own", "erased", "elsewhere"),
    ]  # fmt: skip


def test_sides_are_exchanged_in_words_and_capitals() -> None:
    assert swapped(("Left lobe", "Right lobe", "midline", "to the LEFT of it")) == [1, 0, 2, -1]
    assert swapped(("bright", "left")) == [0, -1]


def test_a_finding_whose_boxes_are_erased_must_be_denied() -> None:
    """Only questions about that very finding, yes or no, are expected to be; whatever was answered before."""
    settings = {
        "own": Setting(images="v"),
        "gone": Setting(images="v", edit={"kind": "erase", "label": "Cardiomegaly", "by": "around"}),
        "all-gone": Setting(images="v", edit={"kind": "erase", "by": "around"}),
    }  # fmt: skip
    asked = [
        Question(
            study=f"s{one}", patient=f"p{one}", stem=f"{topic}?", options=("yes", "no"), answer="yes", topic=topic,
            origin="findings",
        )
        for one in range(20) for topic in ("cardiomegaly", "Edema")
    ]  # fmt: skip
    yes, half = np.zeros(40, dtype=int), np.tile([1, 0, 0, 0], 10)  # of the finding every other is denied
    made = {
        ("d", "m", "own"): cell(asked, yes), ("d", "m", "gone"): cell(asked, half),
        ("d", "m", "all-gone"): cell(asked, half),
    }  # fmt: skip
    (row,) = metamorphic_table(made, settings, {}, Statistics(), {"d": asked}).to_dict("records")
    assert (row["edited"], row["relation"], row["expected"], row["not_expected"]) == ("gone", "no-finding", 20, 20)
    assert row["kept"] == 0.5 and row["low"] < 0.5 < row["high"]
