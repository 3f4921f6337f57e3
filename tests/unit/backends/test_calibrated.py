"""The calibrated reader: its rates are those that its parameters say, and its draws are paired."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overread.backends.base import load
from overread.backends.calibrated.backend import CONFIDENCE
from overread.backends.calibrated.section import CalibratedModel, GalleryReader, Reliance
from overread.core.records import Block, Response, Trial, request_key
from overread.responses.answering import response

COUNT = 4000
FOUR = ("Left frontal lobe", "Right frontal lobe", "Left temporal lobe", "Right temporal lobe")


def reader(seed: int = 0, **reliance: Any) -> CalibratedModel:
    return CalibratedModel(label="c", backend="calibrated", reliance=Reliance(**reliance), seed=seed)


def trial(
    number: int, *, image: str | None = None, report: bool = False, label: str | None = "yes", **changes: Any
) -> Trial:
    """Question `number`; image: own, other (with the other label), black or None."""
    options: tuple[str, ...] = changes.pop("options", ("yes", "no"))
    other = options[1 - options.index(label)] if label in options[:2] else None
    blocks = [Block(role="question", text=f"Question {number}?")]
    if report:
        blocks.insert(0, Block(role="report", text=f"Report {number}."))
    if image is not None:
        blocks.insert(0, Block(role="image", image="x.png", pixels=f"{image}{number}"))
    return Trial(
        dataset="d",
        setting=f"{image}-{report}",
        run=changes.pop("run", 1),
        question=f"q{number}",
        topic="t",
        study=f"s{number}",
        patient=f"p{number // 4}",
        image_study=None if image in (None, "black") else f"s-{image}{number}",
        image_patient=None,
        label=label,
        image_label=changes.pop("image_label", {"own": label, "other": other}.get(image or "")),
        blocks=tuple(blocks),
        options=options,
        permutation=changes.pop("permutation", tuple(range(len(options)))),
        answer=0,
        readout=changes.pop("readout", "yes-no"),
        restricted=False,
        **changes,
    )


def ask(model: CalibratedModel, trials: Sequence[Trial]) -> list[Response]:
    back_end = load(model, "c")
    return [
        response(request_key(back_end.identity(), each, back_end.also(each)), each, "c", answer)
        for each, answer in zip(trials, back_end.answer(trials, Path()), strict=True)
    ]


def flip_rate(model: CalibratedModel, *, report: bool, count: int = COUNT, **changes: Any) -> float:
    own = ask(model, [trial(number, image="own", report=report, **changes) for number in range(count)])
    swapped = ask(model, [trial(number, image="other", report=report, **changes) for number in range(count)])
    pairs = [(a.choice, b.choice) for a, b in zip(own, swapped, strict=True) if a.status == b.status == "answered"]
    return sum(a != b for a, b in pairs) / len(pairs)


def near(rate: float, truth: float, count: int = COUNT) -> bool:
    """Within four standard errors of a binomial share: one seed in 16,000 falls outside."""
    return abs(rate - truth) <= 4 * math.sqrt(truth * (1 - truth) / count) + 1e-12


@pytest.mark.parametrize("image", [0.0, 0.3, 0.7, 1.0])
def test_without_a_report_the_flip_rate_is_the_image_reliance(image: float) -> None:
    assert near(flip_rate(reader(image=image, report=0.9, unparsed=0.1), report=False), image, int(COUNT * 0.9))


def test_with_a_report_the_image_has_what_the_report_leaves() -> None:
    assert near(flip_rate(reader(image=0.7, report=0.9), report=True), 0.1 * 0.7)


def test_image_beside_report_comes_before_the_report() -> None:
    assert near(flip_rate(reader(image=0.7, report=1.0, image_beside_report=0.25), report=True), 0.25)
    assert near(flip_rate(reader(image=0.7, report=1.0, image_beside_report=0.25), report=False), 0.7)


@given(report=st.floats(0, 1), first=st.floats(0, 1), yes=st.floats(0, 1), seed=st.integers(0, 5), shown=st.booleans())
def test_a_reader_that_ignores_the_image_never_flips(
    report: float, first: float, yes: float, seed: int, shown: bool
) -> None:
    model = reader(seed, report=report, first_option=first, yes=yes, unparsed=0.1)
    assert flip_rate(model, report=shown, count=60) == 0


def test_reliances_of_patients_have_the_mean_and_the_spread_of_their_beta_distribution() -> None:
    """Beta(r*c, (1-r)*c) has mean r and variance r (1 - r) / (c + 1); patients ask 40 questions each here."""
    model, mean, concentration, patients, each = reader(image=0.6, by_patient=4.0), 0.6, 4.0, 400, 40
    rates = []
    for patient in range(patients):
        numbers = range(patient * each, (patient + 1) * each)
        changes = {"patient": f"p{patient}"}
        own = ask(model, [trial(n, image="own").model_copy(update=changes) for n in numbers])
        other = ask(model, [trial(n, image="other").model_copy(update=changes) for n in numbers])
        rates.append(sum(a.choice != b.choice for a, b in zip(own, other, strict=True)) / each)
    average = sum(rates) / patients
    variance = sum((rate - average) ** 2 for rate in rates) / (patients - 1)
    between = mean * (1 - mean) / (concentration + 1)
    within = mean * (1 - mean) * (1 - 1 / (concentration + 1)) / each
    assert abs(average - mean) < 4 * math.sqrt((between + within) / patients)
    assert abs(variance / (between + within) - 1) < 0.3


def test_a_guess_says_yes_as_often_as_it_is_told() -> None:
    answers = ask(reader(yes=0.8), [trial(number) for number in range(COUNT)])
    assert near(sum(each.choice == 0 for each in answers) / COUNT, 0.8)
    answers = ask(
        reader(yes=0.8, first_option=0.5), [trial(n, options=("no", "yes"), label="no") for n in range(COUNT)]
    )
    assert near(sum(each.answer == 0 for each in answers) / COUNT, 0.5 + 0.5 * 0.2)


def test_a_guess_among_four_takes_the_first_place_shown_as_often_as_it_is_told() -> None:
    trials = [trial(n, options=FOUR, label=FOUR[0], permutation=(2, 0, 3, 1), readout="choice") for n in range(COUNT)]
    answers = ask(reader(first_option=0.4), trials)
    shares = [sum(each.answer == place for each in answers) / COUNT for place in range(4)]
    assert near(shares[0], 0.4 + 0.6 / 4)
    assert all(near(share, 0.6 / 4) for share in shares[1:])
    assert all(each.choice == (2, 0, 3, 1)[each.answer or 0] for each in answers)


def test_unparsed_answers_come_at_their_rate_and_in_both_arms_of_a_pair() -> None:
    model = reader(image=0.5, unparsed=0.2)
    own = ask(model, [trial(number, image="own") for number in range(COUNT)])
    swapped = ask(model, [trial(number, image="other") for number in range(COUNT)])
    assert near(sum(each.status == "unparsed" for each in own) / COUNT, 0.2)
    assert [each.status for each in own] == [each.status for each in swapped]


def test_a_picture_of_nobody_and_no_picture_are_guessed_at() -> None:
    """Black and none: image reliance has nothing to hold on to, so the truth is met by chance."""
    model = reader(image=1.0, yes=0.5)
    for image in ("black", None):
        answers = ask(model, [trial(number, image=image) for number in range(COUNT)])
        assert near(sum(each.choice == 0 for each in answers) / COUNT, 0.5)


def test_a_substitute_whose_label_is_no_option_is_guessed_at() -> None:
    trials = [
        trial(n, image="other", options=FOUR, label=FOUR[0], image_label="Left occipital lobe", readout="choice")
        for n in range(COUNT)
    ]
    answers = ask(reader(image=1.0), trials)
    assert near(sum(each.answer == 0 for each in answers) / COUNT, 0.25)


def test_runs_and_settings_share_their_draws() -> None:
    model = reader(image=0.5, yes=0.5, unparsed=0.1)
    first, second = (ask(model, [trial(number, image="own", run=run) for number in range(200)]) for run in (1, 2))
    assert [each.choice for each in first] == [each.choice for each in second]
    other_seed = ask(reader(1, image=0.5, yes=0.5, unparsed=0.1), [trial(number, image="own") for number in range(200)])
    assert [each.choice for each in first] != [each.choice for each in other_seed]


def test_log_probabilities_agree_with_the_answer_and_move_with_the_image() -> None:
    model = reader(image=0.5, yes=0.5)
    own = ask(model, [trial(number, image="own") for number in range(200)])
    swapped = ask(model, [trial(number, image="other") for number in range(200)])
    for a, b in zip(own, swapped, strict=True):
        assert a.logprobs is not None
        assert b.logprobs is not None
        assert sum(map(math.exp, a.logprobs)) == pytest.approx(1)
        assert max(range(2), key=a.logprobs.__getitem__) == a.answer
        margin, other = a.logprobs[0] - a.logprobs[1], b.logprobs[0] - b.logprobs[1]
        wanted = 2 * math.log(CONFIDENCE["image"] / (1 - CONFIDENCE["image"])) if a.choice != b.choice else 0.0
        assert abs(margin - other) == pytest.approx(wanted)


def test_a_changed_truth_changes_the_request() -> None:
    back_end = load(reader(image=1.0), "c")
    asked = trial(1, image="own")
    corrected = asked.model_copy(update={"label": "no", "image_label": "no"})
    keys = {request_key(back_end.identity(), each, back_end.also(each)) for each in (asked, corrected)}
    assert len(keys) == 2


def test_without_a_reader_of_the_gallery_its_identity_is_the_one_from_before_there_was_one() -> None:
    """Else every answer it gave before would be asked for again."""
    reliance = {
        "report": 0.0, "image": 0.7, "image_beside_report": None, "first_option": 0.0, "yes": 0.5, "unparsed": 0.0,
        "by_patient": None,
    }  # fmt: skip
    assert reader(image=0.7).identity() == {"backend": "calibrated", "reliance": reliance, "seed": 0}
    of_gallery = CalibratedModel(label="c", backend="calibrated", reader=GalleryReader(name="majority"))
    assert of_gallery.identity()["reader"]["name"] == "majority"
