"""accuracy.csv and accuracy_wide.csv, worked out by hand."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from data.handmade import Asked, read, write_cell
from overread.config import Setting, Statistics
from overread.estimates.tables.accuracy import TABLE, accuracy_table
from overread.estimates.tables.accuracy_wide import accuracy_wide_table, condition

FOUR = ("a", "b", "c", "d")
FEW = Statistics(draws=500)


def table(tmp_path: Path, *runs: list[Asked]) -> pd.Series:
    rows = accuracy_table(read(tmp_path, write_cell(tmp_path, "setting", *runs)), FEW)
    assert tuple(rows.columns) == TABLE.names
    assert len(rows) == 1
    return rows.iloc[0]


def test_accuracy_counts_every_status_and_leaves_only_failed_ones_out(tmp_path: Path):
    """Two runs of five questions: 3 + 1 right of 5 + 4 that did not fail."""
    first = [
        Asked("q1", "p1", "yes", "yes"),
        Asked("q2", "p1", "yes", "no"),
        Asked("q3", "p2", "no", "no"),
        Asked("q4", "p2", "no", "no"),
        Asked("q5", "p3", "no", None),
    ]
    second = [
        Asked("q1", "p1", "yes", "yes"),
        Asked("q2", "p1", "yes", None, status="refused"),
        Asked("q3", "p2", "no", None, status="truncated"),
        Asked("q4", "p2", "no", "yes"),
        Asked("q5", "p3", "no", None, status="failed"),
    ]
    row = table(tmp_path, first, second)
    assert (row["dataset"], row["model"], row["setting"]) == ("data", "reader", "setting")
    assert (row["runs"], row["questions"], row["patients"]) == (2, 5, 3)
    assert row["accuracy"] == pytest.approx(4 / 9)
    statuses = ["answered", "unparsed", "refused", "truncated", "failed"]
    assert row[statuses].tolist() == [6, 1, 1, 1, 1]
    # Yes is right four times and was found twice; no is right five times and was found twice.
    assert row["balanced_accuracy"] == pytest.approx((2 / 4 + 2 / 5) / 2)
    assert row["chance"] == 0.5
    assert row["always_first"] == pytest.approx(4 / 9)
    assert 0 <= row["low"] < row["accuracy"] < row["high"] <= 1


def test_always_first_and_balance_go_by_the_place_shown(tmp_path: Path):
    """The right option is shown first, first, second and fourth; only the first two are answered right."""
    row = table(
        tmp_path,
        [
            Asked("q1", "p1", "a", "a", options=FOUR),
            Asked("q2", "p1", "b", "b", options=FOUR, shown=("b", "a", "c", "d")),
            Asked("q3", "p2", "a", "b", options=FOUR, shown=("b", "a", "c", "d")),
            Asked("q4", "p2", "a", "d", options=FOUR, shown=("d", "c", "b", "a")),
        ],
    )
    assert row["always_first"] == 0.5
    assert row["accuracy"] == 0.5
    assert row["balanced_accuracy"] == pytest.approx((1 + 0 + 0) / 3)
    assert row["chance"] == 0.25


def test_chance_is_the_mean_over_questions_with_different_numbers_of_options(tmp_path: Path):
    row = table(tmp_path, [Asked("q1", "p1", "a", "a", options=FOUR), Asked("q2", "p2", "yes", "no")])
    assert row["chance"] == pytest.approx((1 / 4 + 1 / 2) / 2)


def test_the_patient_and_not_the_trial_is_what_an_interval_rests_on(tmp_path: Path):
    """One patient always right, one always wrong: a draw of two scores 0, 1/2 or 1, however many their trials."""
    asked = [
        Asked(f"{patient}-{n}", patient, "yes", given)
        for patient, given in (("p1", "yes"), ("p2", "no"))
        for n in "abc"
    ]
    row = table(tmp_path, asked, asked)
    assert (row["accuracy"], row["low"], row["high"]) == (0.5, 0.0, 1.0)


def test_one_patient_has_no_interval(tmp_path: Path):
    row = table(tmp_path, [Asked("q1", "p1", "yes", "yes")])
    assert (row["accuracy"], row["patients"]) == (1.0, 1)
    assert row[["low", "high"]].isna().all()


def test_a_cell_in_which_everything_failed_has_no_accuracy(tmp_path: Path):
    row = table(tmp_path, [Asked("q1", "p1", "yes", None, status="failed")])
    assert row["failed"] == 1
    assert row[["accuracy", "low", "high", "balanced_accuracy", "chance", "always_first"]].isna().all()


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"images": "flair"}, "own image"),
        ({"images": "flair", "source": "black"}, "black image"),
        ({"images": "flair", "source": "substitute"}, "swapped image"),
        ({"images": "flair", "options": "shuffled"}, "reshuffled"),
        ({"images": "flair", "options": "rotated-2"}, "rotated by 2"),
        ({}, "text only"),
        ({"options": "shuffled"}, "reshuffled"),
        ({"images": "frontal", "report": "full"}, "with report"),
        ({"report": "full"}, "with report"),
        ({"images": "frontal", "report": "full", "source": "substitute"}, "swapped image, with report"),
        ({"images": "frontal", "report": "neutral"}, "with neutral prose"),
        (
            {"images": "frontal", "report": "full", "warning": True, "order": "text-first"},
            "with report, warned, text first",
        ),
        ({"images": "frontal", "report": "full", "attention": "from-3"}, "with report, report hidden from layer 3 on"),
        ({"images": "frontal", "report": "full", "attention": "only-0"}, "with report, report hidden in layer 0"),
        ({"images": "frontal", "readout": "first-token"}, "first-token readout"),
        ({"images": "frontal", "questions": "one-per-study"}, "one question a study"),
    ],
)
def test_a_condition_says_what_a_setting_does_apart_from_its_view(fields: dict[str, object], name: str):
    assert condition(Setting.model_validate(fields)) == name


def wide(rows: list[tuple[str, str, str, float | None]], settings: dict[str, dict[str, object]]) -> pd.DataFrame:
    accuracy = pd.DataFrame(rows, columns=["dataset", "model", "setting", "accuracy"])
    return accuracy_wide_table(accuracy, {name: Setting.model_validate(one) for name, one in settings.items()})


def test_the_wide_table_has_a_row_a_model_and_input_and_a_column_a_condition():
    """The layout of UCSF-PDGM-VQA's table 4: MRI, black image, reshuffled and text only, by model and input."""
    settings: dict[str, dict[str, object]] = {
        "slice": {"images": "slice"},
        "slice-black": {"images": "slice", "source": "black"},
        "slice-shuffled": {"images": "slice", "options": "shuffled"},
        "montage": {"images": "montage"},
        "text": {},
        "text-shuffled": {"options": "shuffled"},
    }
    rows = [
        ("mri", "vlm", "text", 0.1857),
        ("mri", "vlm", "slice", 0.553749),
        ("mri", "llm", "text-shuffled", 0.4773),
        ("mri", "vlm", "montage", 0.5169),
        ("mri", "vlm", "slice-black", 0.4338),
        ("mri", "vlm", "slice-shuffled", 0.4338),
        ("mri", "llm", "text", None),
    ]
    table = wide(rows, settings)
    assert list(table.columns) == ["dataset", "model", "input", "own image", "reshuffled", "black image", "text only"]
    filled = table.astype(object).where(table.notna(), None).to_numpy().tolist()
    assert [row[:3] for row in filled] == [
        ["mri", "llm", "no image"], ["mri", "vlm", "montage"], ["mri", "vlm", "no image"], ["mri", "vlm", "slice"],
    ]  # fmt: skip
    assert [row[3:] for row in filled] == [
        [None, pytest.approx(47.73), None, None],
        [pytest.approx(51.69), None, None, None],
        [None, None, None, pytest.approx(18.57)],
        [pytest.approx(55.3749), pytest.approx(43.38), pytest.approx(43.38), None],
    ]
    pd.testing.assert_frame_equal(wide(rows[::-1], dict(reversed(settings.items()))), table)


def test_settings_of_one_input_and_condition_keep_apart_by_their_names():
    settings: dict[str, dict[str, object]] = {
        "numbers": {"images": "slice", "readout": "choice"},
        "words": {"images": "slice", "readout": "yes-no"},
    }
    table = wide([("d", "m", "numbers", 0.5), ("d", "m", "words", 0.25)], settings)
    assert list(table.columns[3:]) == ["own image (numbers)", "own image (words)"]
    assert table.iloc[0, 3:].tolist() == [50, 25]


def test_settings_that_share_a_condition_in_two_datasets_share_a_column():
    settings: dict[str, dict[str, object]] = {"slice": {"images": "slice"}, "xray": {"images": "frontal"}}
    table = wide([("mri", "m", "slice", 0.5), ("xray", "m", "xray", 0.25)], settings)
    assert list(table.columns[3:]) == ["own image"]
    assert table["own image"].tolist() == [50, 25]
