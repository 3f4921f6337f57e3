"""The trials that the report shows are those that its rule names, with the pictures and prompts of those trials."""

from __future__ import annotations

import base64
import io
from pathlib import Path
from typing import Any

import made
import pytest
from PIL import Image
from report_run import Run

from overread.core.errors import BadInput
from overread.core.records import read_responses, read_trials
from overread.reporting.examples import examples
from overread.settings.setting import read_settings


def typed(run: Run) -> dict[str, Any]:
    """The spec as the report reads it: its settings are objects."""
    return {**run.spec, "settings": read_settings(run.spec["settings"])}


def flips_by_question(small: Run, dataset: str, pair: tuple[str, str]) -> dict[str, int]:
    """Flips of run 1 where every model answered both arms and the truth differs, counted the slow way."""
    counts: dict[str, int] = {}
    other = {one.question: one for one in read_trials(small.folder / dataset / "trials" / pair[1] / "run-1.parquet")}
    given = {
        (model, setting): {
            one.question: one.choice
            for one in read_responses(small.folder / dataset / "responses" / model / setting / "run-1.parquet")
        }
        for model in made.MODELS
        for setting in pair
    }
    for question, trial in other.items():
        choices = [(given[model, pair[0]][question], given[model, pair[1]][question]) for model in made.MODELS]
        if trial.label != trial.image_label and None not in [choice for both in choices for choice in both]:
            counts[question] = sum(own != swapped for own, swapped in choices)
    return counts


@pytest.mark.parametrize(
    ("dataset", "comparison", "pair"),
    [
        ("mri", "image-swap", ("single-slice", "swapped")),
        ("xray", "swap-with-report", ("xray-report", "xray-report-swapped")),
    ],
)
def test_the_examples_are_those_that_the_rule_names(
    small: Run, dataset: str, comparison: str, pair: tuple[str, str]
) -> None:
    counts = flips_by_question(small, dataset, pair)
    most, fewest = examples(small.folder, dataset, dataset, typed(small))
    trials = {one.question: one for one in read_trials(small.folder / dataset / "trials" / pair[0] / "run-1.parquet")}
    wanted = [
        min(counts, key=lambda question: (-counts[question], question)),
        min(counts, key=lambda question: (counts[question], question)),
    ]
    assert counts[wanted[0]] > counts[wanted[1]]
    for shown, question in zip((most, fewest), wanted, strict=True):
        trial = trials[question]
        assert (shown.comparison, shown.study, shown.topic) == (comparison, trial.study, trial.topic)
        assert shown.answer == shown.arms[0].truth == trial.label
        assert shown.prompt == tuple((block.role, block.text) for block in trial.blocks if block.text is not None)
        own = [one for one in shown.given if one.comparison == comparison]
        assert len(own) == len(made.MODELS)
        assert sum(bool(one.flipped) for one in own) == counts[question]
        assert all((one.own != one.other) == one.flipped for one in own)


def test_the_pictures_of_an_example_are_those_of_its_two_trials(small: Run) -> None:
    for shown in examples(small.folder, "xray", "xray", typed(small)):
        studies = [arm.image_study for arm in shown.arms]
        assert studies[0] == shown.study != studies[1]
        for arm in shown.arms:
            (picture,) = arm.pictures
            content = base64.b64decode(picture.uri.removeprefix("data:image/png;base64,"))
            with (
                Image.open(io.BytesIO(content)) as embedded,
                Image.open(small.folder / "xray" / "images" / arm.image_study / "pictures" / "frontal-0.png") as file,
            ):
                assert embedded.size == file.size == (picture.width, picture.height)
                assert embedded.tobytes() == file.tobytes()


def test_without_a_swap_there_is_no_example_and_the_report_says_so(small: Run, tmp_path: Path) -> None:
    page = small.page(tmp_path / "report.html", comparisons={"gain": {"accuracy": ["xray", "xray-black"]}}, effects={})
    assert "There is no pair of trials to show" in page


def test_a_restricted_trial_is_never_shown_even_if_asked_for(restricted: Run) -> None:
    with pytest.raises(BadInput, match="is restricted"):
        examples(restricted.folder, "xray", "xray", typed(restricted))
