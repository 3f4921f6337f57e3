"""Accuracy in the paper's layout: each setting in its place, with its interval and its questions."""

from __future__ import annotations

from typing import Any

import pytest

from overread.config import Setting
from overread.reporting.presented import Presented
from overread.reporting.presented_conditions import condition_of, conditions
from overread.reporting.rows import Row

VIEWS: dict[str, Any] = {
    "flair-axial": {"kind": "slice", "series": "FLAIR", "plane": "axial"},
    "all-series": {"kind": "slice", "series": "all", "plane": "axial"},
    "montage": {"kind": "montage", "planes": ["axial"]},
    "three-montages": {"kind": "montage", "planes": ["axial", "sagittal", "coronal"]},
    "flair-volume": {"kind": "volume", "series": "FLAIR"},
}
PAPER: dict[str, dict[str, Any]] = {
    "single-slice": {"images": "flair-axial"},
    "single-slice-montage": {"images": "montage"},
    "single-slice-black": {"images": "flair-axial", "source": "black"},
    "single-slice-reshuffled": {"images": "flair-axial", "options": "shuffled"},
    "multi-slice": {"images": "all-series"},
    "multi-slice-montages": {"images": "three-montages"},
    "multi-slice-reshuffled": {"images": "all-series", "options": "shuffled"},
    "volume": {"images": "flair-volume"},
    "volume-black": {"images": "flair-volume", "source": "black"},
    "text-only": {},
    "text-only-reshuffled": {"options": "shuffled"},
}


def spec(settings: dict[str, dict[str, Any]], **more: Any) -> dict[str, Any]:
    whole = {name: Setting.model_validate(one) for name, one in settings.items()}
    return {"settings": whole, "views": VIEWS, **more}


def row(model: str, setting: str, accuracy: float | None, questions: int = 2387, dataset: str = "mri") -> Row:
    values = ("", "", "") if accuracy is None else tuple(str(accuracy + end) for end in (0, -0.02, 0.03))
    names = dict(zip(("accuracy", "low", "high"), values, strict=True))
    return {"dataset": dataset, "model": model, "setting": setting, "questions": str(questions), **names}


def table(rows: list[Row], whole: dict[str, Any], modality: str = "mri") -> Presented:
    (one,) = conditions(rows, {"m": "MedGemma", "q": "Qwen"}, whole, "95 %", {"mri": modality})
    return one


def cells(one: Presented) -> dict[tuple[str, str], dict[str, str]]:
    """By model and input, what stands under each heading."""
    heads = [column.heading for column in one.columns]
    found = {}
    for line in one.rows:
        texts = [cell.text.replace("\N{NO-BREAK SPACE}", " ").replace("\n", " ") for cell in line]
        found[texts[0], texts[1]] = dict(zip(heads[2:], texts[2:], strict=True))
    return found


def first(found: dict[tuple[str, str], dict[str, str]]) -> dict[tuple[str, str], dict[str, str]]:
    """The accuracies alone."""
    return {key: {head: text.split(" ")[0] for head, text in line.items()} for key, line in found.items()}


def test_the_rows_and_columns_of_the_papers_table_4() -> None:
    """MedGemma's and Qwen3's rows of Table 4, with its numbers: montages stand beside the slices that they gather."""
    asked = {
        "single-slice": 0.5537, "single-slice-montage": 0.5169, "single-slice-black": 0.4338,
        "single-slice-reshuffled": 0.4338, "multi-slice": 0.6357, "multi-slice-montages": 0.5908,
        "multi-slice-reshuffled": 0.5116,
    }  # fmt: skip
    rows = [row("m", setting, value) for setting, value in asked.items()]
    rows += [row("q", "text-only", 0.5257), row("q", "text-only-reshuffled", 0.4773)]
    one = table(rows, spec(PAPER))
    assert [column.heading for column in one.columns[2:]] == [
        "MRI", "MRI montage", "Black image", "Reshuffled", "Text only",
    ]  # fmt: skip
    dash = "\N{EN DASH}"
    heads = [column.heading for column in one.columns[2:]]
    assert {key: list(line.values()) for key, line in first(cells(one)).items()} == {
        ("MedGemma", "all-series"): ["63.6", "59.1", dash, "51.2", dash],
        ("MedGemma", "flair-axial"): ["55.4", "51.7", "43.4", "43.4", dash],
        ("Qwen", "no image"): [dash, dash, dash, "47.7", "52.6"],
    }
    assert heads[0] == "MRI"


def test_each_number_stands_with_its_interval_and_its_questions() -> None:
    found = cells(table([row("m", "single-slice", 0.5537, 75)], spec(PAPER)))
    assert found == {("MedGemma", "flair-axial"): {"MRI": "55.4 [53.4, 58.4] n = 75"}}


def test_text_alone_stands_once_in_the_models_first_line() -> None:
    rows = [row("m", name, 0.5) for name in ("single-slice", "multi-slice")] + [row("m", "text-only", 0.25)]
    found = first(cells(table(rows, spec(PAPER))))
    assert [line["Text only"] for line in found.values()] == ["25.0", "\N{EN DASH}"]


def test_a_montage_that_could_belong_to_two_inputs_keeps_its_own_line() -> None:
    settings = {**PAPER, "other-slice": {"images": "t1-axial"}}
    whole = spec(settings)
    whole["views"] = {**VIEWS, "t1-axial": {"kind": "slice", "series": "T1", "plane": "axial"}}
    rows = [row("m", name, 0.5) for name in ("single-slice", "other-slice", "single-slice-montage")]
    assert ("MedGemma", "montage") in cells(table(rows, whole))


def test_without_the_views_a_montage_is_an_input_of_its_own() -> None:
    """A run recorded before views were: its rows are as they can be told."""
    whole = spec(PAPER)
    del whole["views"]
    rows = [row("m", name, 0.5) for name in ("single-slice", "single-slice-montage")]
    found = first(cells(table(rows, whole)))
    assert {key: line["MRI"] for key, line in found.items()} == {
        ("MedGemma", "flair-axial"): "50.0", ("MedGemma", "montage"): "50.0",
    }  # fmt: skip


def test_ways_of_asking_and_reading_have_lines_of_their_own() -> None:
    settings = {
        "xray": {"images": "frontal", "readout": "yes-no"},
        "first-token": {"images": "frontal", "readout": "first-token"},
        "text-first": {"images": "frontal", "readout": "first-token", "order": "text-first"},
        "one": {"images": "frontal", "readout": "yes-no", "questions": "one-per-study"},
        "question-only": {"readout": "yes-no"},
    }
    rows = [row("m", name, 0.5) for name in settings]
    found = first(cells(table(rows, spec(settings), "xray")))
    assert list(found) == [
        ("MedGemma", "frontal"), ("MedGemma", "frontal, first-token readout"),
        ("MedGemma", "frontal, one question a study"), ("MedGemma", "frontal, text first, first-token readout"),
    ]  # fmt: skip
    assert [line["Text only"] for line in found.values()] == ["50.0", *["\N{EN DASH}"] * 3]
    assert all(line["X-ray"] == "50.0" for line in found.values())


@pytest.mark.parametrize(
    ("setting", "condition"),
    [
        ({"images": "v"}, "own"), ({"images": "v", "source": "black"}, "black"),
        ({"images": "v", "source": "substitute"}, "swapped"), ({"images": "v", "report": "full"}, "both"),
        ({"images": "v", "source": "substitute", "report": "full"}, "both-swapped"), ({"report": "full"}, "report"),
        ({}, "text"), ({"images": "v", "options": "shuffled"}, "reshuffled"),
        ({"images": "v", "options": "rotated-1"}, None), ({"images": "v", "report": "neutral"}, None),
        ({"images": "v", "report": "full", "warning": True}, None),
        ({"images": "v", "source": "black", "report": "full"}, None),
        ({"images": "v", "report": "full", "attention": "from-3"}, None),
        ({"images": "v", "source": "black", "options": "shuffled"}, None),
    ],
)  # fmt: skip
def test_a_setting_goes_under_the_one_condition_that_it_is(setting: dict[str, Any], condition: str | None) -> None:
    whole = spec({"one": setting})
    assert condition_of(whole["settings"]["one"], whole) == condition


def test_an_accuracy_that_the_table_leaves_blank_is_a_dash() -> None:
    rows = [row("m", "single-slice", None), row("m", "single-slice-black", 0.5)]
    found = first(cells(table(rows, spec(PAPER))))
    assert found["MedGemma", "flair-axial"]["MRI"] == "\N{EN DASH}"
