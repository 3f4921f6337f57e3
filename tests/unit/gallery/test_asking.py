"""Readers of the gallery as a model of a real study: back end `calibrated` with a `reader`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError

from overread.backends.base import load
from overread.backends.calibrated.section import CalibratedModel
from overread.core.errors import BadInput
from overread.core.records import Block, Response, Trial, request_key
from overread.gallery.readers import GALLERY
from overread.responses.answering import response

COUNT = 500
FINDING = "Edema"


def model(name: str, **reader: object) -> CalibratedModel:
    return CalibratedModel.model_validate({"label": "r", "backend": "calibrated", "reader": {"name": name, **reader}})


def trial(number: int, picture: str | None, *, report: bool = False, run: int = 1, pixel: str = "") -> Trial:
    """Question `number`; picture: own, other (of the opposite truth), black or None. Odd numbers are no."""
    label = ("yes", "no")[number % 2]
    blocks = [Block(role="question", text=f"Question {number}?")]
    if report:
        blocks.insert(0, Block(role="report", text=f"Report {number}."))
    if picture is not None:
        blocks.insert(0, Block(role="image", image="x.png", pixels=f"{picture}{number}{pixel}"))
    shown = {"own": f"s{number}", "other": f"s{number + 1}"}.get(picture or "")
    return Trial(
        dataset="d", setting=f"{picture}-{report}-{pixel}", run=run, question=f"q{number}", topic=FINDING,
        study=f"s{number}", patient=f"p{number // 4}", image_study=shown, image_patient=None, label=label,
        image_label={"own": label, "other": ("no", "yes")[number % 2]}.get(picture or ""), blocks=tuple(blocks),
        options=("no", "yes"), permutation=(1, 0), answer=0 if label == "no" else 1, readout="choice",
        restricted=False,
    )  # fmt: skip


def ask(which: CalibratedModel, trials: list[Trial]) -> list[Response]:
    back_end = load(which, "r")
    return [
        response(request_key(back_end.identity(), each, back_end.also(each)), each, "r", answer)
        for each, answer in zip(trials, back_end.answer(trials, Path()), strict=True)
    ]


def rate(which: CalibratedModel, a: dict[str, object], b: dict[str, object]) -> float:
    """The share of questions whose outcome differs between two arms."""
    arms = [ask(which, [trial(number, **arm) for number in range(COUNT)]) for arm in (a, b)]  # type: ignore[arg-type]
    return float(np.mean([(x.status, x.choice) != (y.status, y.choice) for x, y in zip(*arms, strict=True)]))


@pytest.mark.parametrize("name", GALLERY)
def test_every_reader_answers_every_trial_alike_in_any_order(name: str):
    trials = [trial(n, picture) for n in range(20) for picture in ("own", "other", "black", None)]
    forwards, backwards = ask(model(name), trials), ask(model(name), trials[::-1])
    assert forwards == backwards[::-1]
    assert {each.status for each in forwards} <= {"answered", "refused"}
    assert len({each.request for each in forwards}) == len(trials)


def test_readers_do_with_trials_what_they_do_in_a_simulation():
    own, other = {"picture": "own"}, {"picture": "other"}
    assert rate(model("reads-30"), own, other) == pytest.approx(0.3, abs=0.09)
    assert rate(model("prior"), own, other) == 0
    prevalence = {"prevalence": {FINDING: 0.4}}
    assert rate(model("pixels", **prevalence), own, other) == pytest.approx(0.48, abs=0.09)
    assert rate(model("pixels", **prevalence), own, {**own, "pixel": "-shifted"}) == 0
    assert rate(model("raw-pixels", **prevalence), own, {**own, "pixel": "-shifted"}) == pytest.approx(0.48, abs=0.09)
    assert rate(model("prior-sampled", **prevalence), own, {**own, "run": 2}) == pytest.approx(0.48, abs=0.09)
    assert rate(model("refuses-black"), own, {"picture": "black"}) == pytest.approx(0.41, abs=0.09)
    assert rate(model("one-finding", finding=FINDING), own, other) == 1
    assert rate(model("one-finding"), own, other) == 0
    beside = [{"picture": each, "report": True} for each in ("own", "other")]
    assert rate(model("reads-without-report"), *beside) == 0


def test_shares_of_yes_are_the_files():
    given = ask(model("prior", prevalence={FINDING: 0.1}), [trial(number, "own") for number in range(COUNT)])
    assert np.mean([each.choice == 0 for each in given]) == pytest.approx(0.1, abs=0.06)
    given = ask(model("prior", usual=0.5), [trial(number, "own") for number in range(COUNT)])
    assert np.mean([each.choice == 0 for each in given]) == pytest.approx(0.5, abs=0.09)


def test_a_model_file_names_a_reader_or_a_reliance():
    with pytest.raises(BadInput, match=r"no reader of the gallery 'pixel'.*Did you mean pixels"):
        load(model("pixel"), "r")
    for content in ({}, {"reader": {"name": "prior"}, "reliance": {}}):
        with pytest.raises(ValidationError, match="either 'reliance' or 'reader'"):
            CalibratedModel.model_validate({"label": "r", "backend": "calibrated", **content})
