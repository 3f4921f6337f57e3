"""Readers of the gallery: each does what its description says, by counts that hold whatever the inference."""

from __future__ import annotations

import numpy as np
import pytest

from overread.gallery.cohorts import Design
from overread.gallery.readers import GALLERY, Given, Truth
from overread.gallery.simulate import Answers, Arm, Study

ARMS = [
    Arm("own", "own", runs=2), Arm("swapped", "substitute", runs=2), Arm("placebo", "placebo"), Arm("black", "black"),
    Arm("none", "none"), Arm("own-report", "own", report=True), Arm("swapped-report", "substitute", report=True),
]  # fmt: skip
STUDY = Study(Design(patients=600).draw(np.random.default_rng(5)), ARMS)
CHANGED = STUDY.cohort.gold != STUDY.cohort.substitute_truth


def answers(name: str, study: Study = STUDY) -> Answers:
    return study.answers(GALLERY[name], 11)


def outcome(given: Given) -> np.ndarray:
    return np.where(given.answered, given.choice, -1)


def flips(found: Answers, a: str, b: str, run: int = 0) -> np.ndarray:
    return outcome(found[a][0]) != outcome(found[b][run])


def following(found: Answers, suffix: str = "") -> float:
    """Moves towards what the picture shown says less moves away from it, of the pairs whose truth differs."""
    own, shown = (outcome(found[name + suffix][0])[CHANGED] for name in ("own", "swapped"))
    gold, other = STUDY.cohort.gold[CHANGED], STUDY.cohort.substitute_truth[CHANGED]
    return float(((own == gold) & (shown == other)).mean() - ((own == other) & (shown == gold)).mean())


@pytest.mark.parametrize("name", GALLERY)
def test_following_is_what_the_reader_says_of_itself(name: str):
    """Zero for every reader that does not read; standard errors are at most 0.012, by 600 patients."""
    if name == "one-finding":
        share = (STUDY.cohort.topic[CHANGED] == 6).mean()
        assert following(answers(name)) == pytest.approx(share)
    elif name != "refuses-flips":  # what it would follow it refuses
        assert following(answers(name)) == pytest.approx(GALLERY[name].following, abs=0.04)


@pytest.mark.parametrize("name", [name for name, one in GALLERY.items() if one.truth in (Truth.BLIND, Truth.UNTOLD)])
def test_a_blind_reader_answers_alike_whatever_the_picture_but_for_chance(name: str):
    """Its swap flips as often as its rerun does."""
    found = answers(name)
    swap, rerun = (flips(found, "own", arm, 1).mean() for arm in ("swapped", "own"))
    assert swap == pytest.approx(rerun, abs=0.02)
    if not GALLERY[name].temperature and name != "drifts" and "rounding" not in name:
        assert swap == 0


def test_greedy_readers_repeat_themselves():
    for name, reader in GALLERY.items():
        if not reader.temperature and name != "drifts" and "rounding" not in name:
            assert not flips(answers(name), "own", "own", 1).any(), name


def test_readers_of_the_table_of_wrong_headlines():
    black = answers("black-yes")
    assert (black["black"][0].choice == 0).all() and (black["own"][0].choice == 1).all()
    refuses = answers("refuses-black")
    assert (~refuses["black"][0].answered).mean() == pytest.approx(0.41, abs=0.02)
    assert not flips(refuses, "own", "swapped").any()
    flipped = answers("refuses-flips")
    assert (~flipped["swapped"][0].answered).mean() == pytest.approx(0.41, abs=0.03)
    both = flipped["swapped"][0].answered
    assert (flipped["own"][0].choice == flipped["swapped"][0].choice)[both].all()
    assert (flipped["own"][0].choice == STUDY.cohort.gold).mean() == pytest.approx(0.9, abs=0.01)
    margins = answers("margins-move")
    moved = np.abs(margins["own"][0].lean - margins["swapped"][0].lean) > 0.5
    assert moved.mean() == pytest.approx(0.85, abs=0.01)
    assert not flips(margins, "own", "swapped").any()


def test_a_shifted_pixel_changes_raw_pixels_and_not_the_picture():
    assert flips(answers("raw-pixels"), "own", "placebo").mean() == pytest.approx(
        flips(answers("raw-pixels"), "own", "swapped").mean(), abs=0.02
    )
    assert not flips(answers("pixels"), "own", "placebo").any()


@pytest.mark.parametrize("share", [0.1, 0.5, 1])
def test_rounding_turns_its_share_of_answers(share: float):
    """One of two arms is turned, and not both: 2 s (1 - s)."""
    expected = 2 * share / 100 * (1 - share / 100)
    assert flips(answers(f"rounding-{share:g}"), "own", "own", 1).mean() == pytest.approx(expected, abs=0.003)


def test_what_is_read_with_and_without_the_report():
    alone, beside = answers("reads-without-report"), answers("reads-with-report")
    assert (following(alone), following(alone, "-report")) == (pytest.approx(0.5, abs=0.04), 0)
    assert (following(beside), following(beside, "-report")) == (0, pytest.approx(0.5, abs=0.04))


def test_margins_have_the_sign_of_the_answer_unless_it_is_drawn():
    for name, reader in GALLERY.items():
        if not reader.temperature:
            given = answers(name)["own"][0]
            assert ((given.lean > 0) == (given.choice == 0)).all(), name


def test_losing_by_the_image_on_four_options():
    """Knows 60 % and guesses a quarter of the rest from the words (0.7); reads 30 % of a picture and no more."""
    study = Study(Design(patients=400, prevalences=(), four_option=5).draw(np.random.default_rng(1)), ARMS)
    found = answers("reads-worse", study)
    shares = {arm: (found[arm][0].choice == study.cohort.gold).mean() for arm in ("own", "none", "black")}
    assert shares == {"own": pytest.approx(0.3, abs=0.03), "none": pytest.approx(0.7, abs=0.03), "black": 0}


def test_the_same_seed_gives_the_same_answers_and_frames():
    for name in ("prior-sampled", "pixels"):
        first, second = (STUDY.cells(answers(name), name) for _ in range(2))
        assert all(frame.equals(second[key]) for key, frame in first.items())
