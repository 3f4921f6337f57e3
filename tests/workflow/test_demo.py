"""The demo study whole, as `make demo` runs it: what its report says must be true of readers made for it."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

from workflow.demo import local_demo

pytestmark = pytest.mark.workflow


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's results, made in a folder of their own by the local profile."""
    return local_demo(tmp_path_factory)


def rows(demo: Path, table: str, **wanted: str) -> list[dict[str, str]]:
    with (demo / "tables" / f"{table}.csv").open(newline="") as file:
        found = [row for row in csv.DictReader(file) if all(row[key] == value for key, value in wanted.items())]
    assert found, f"{table} has no row with {wanted}"
    return found


def number(demo: Path, table: str, column: str, **wanted: str) -> float:
    (row,) = rows(demo, table, **wanted)
    return float(row[column])


def test_the_report_is_one_file_that_says_what_it_rests_on(demo: Path):
    report = (demo / "report.html").read_text()
    assert "Semi-synthetic" in report
    assert "Tiny reader" in report
    assert not re.search(r"""(src|href)=["'](?!data:|#)""", report)


def test_no_study_of_the_demo_is_rejected(demo: Path):
    for dataset in ("phantom-mri", "phantom-xray"):
        assert len((demo / dataset / "studies_rejected.csv").read_text().splitlines()) == 1


def test_tiny_reader_reads_the_image_far_above_chance(demo: Path):
    """At least 0.75 with the image alone, where chance is 0.5; and better than one who always says no."""
    found = {"dataset": "phantom-xray", "model": "tiny-reader", "setting": "xray"}
    assert number(demo, "accuracy", "balanced_accuracy", **found) >= 0.75
    assert number(demo, "accuracy", "low", **found) > 1 - number(demo, "accuracy", "always_first", **found)


def test_the_report_makes_tiny_reader_flip_far_less(demo: Path):
    with_report, without = (
        number(demo, "flips", "flip_rate", model="tiny-reader", comparison=name, group="all")
        for name in ("swap-with-report", "swap-without-report")
    )
    assert with_report < without / 3
    assert number(demo, "effects", "low", model="tiny-reader", effect="report-effect") > 0


@pytest.mark.parametrize("comparison", ["image-swap", "swap-with-report", "swap-without-report"])
def test_tiny_blind_never_flips(demo: Path, comparison: str):
    assert number(demo, "flips", "flip_rate", model="tiny-blind", comparison=comparison, group="all") == 0


@pytest.mark.parametrize("model", ["tiny-blind", "calibrated-first-option"])
def test_a_reader_of_positions_scores_what_always_first_says_and_falls_when_shuffled(demo: Path, model: str):
    written, shuffled = (
        {"dataset": "phantom-mri", "model": model, "setting": setting} for setting in ("single-slice", "reshuffled")
    )
    for setting in (written, shuffled):
        assert number(demo, "accuracy", "accuracy", **setting) == number(demo, "accuracy", "always_first", **setting)
    assert number(demo, "effects", "low", model=model, effect="order-cost") > 0


def test_the_calibrated_reader_flips_at_the_rate_it_was_set_to(demo: Path):
    """Without a report it follows the image in 70 % of the questions: so many flip where the answer changes."""
    found = {"dataset": "phantom-xray", "model": "calibrated-70"}
    without = {**found, "comparison": "swap-without-report", "group": "label-changed"}
    assert number(demo, "flips", "low", **without) <= 0.7 <= number(demo, "flips", "high", **without)
    for comparison in ("swap-without-report", "swap-with-report"):
        same = {**found, "comparison": comparison, "group": "label-unchanged"}
        assert number(demo, "flips", "flip_rate", **same) == 0


def flip_rate(demo: Path, comparison: str) -> float:
    return number(demo, "flips", "flip_rate", model="tiny-reader", comparison=comparison, group="all")


def test_hiding_the_report_from_every_layer_lets_tiny_reader_follow_the_image(demo: Path):
    """Hidden from layer 0 the swap moves far more answers than with the report in view."""
    assert flip_rate(demo, "hiding-from-0") > 3 * flip_rate(demo, "swap-with-report")
    assert number(demo, "effects", "low", model="tiny-reader", effect="hiding-effect") > 0


def test_hiding_the_report_from_the_last_layer_changes_next_to_nothing_and_from_no_layer_nothing(demo: Path):
    """Tiny-reader has four layers, counted from 0."""
    in_view = flip_rate(demo, "swap-with-report")
    assert flip_rate(demo, "hiding-from-4") == in_view
    assert abs(flip_rate(demo, "hiding-from-3") - in_view) < 0.01


def test_the_layers_are_a_curve(demo: Path):
    curve = rows(demo, "layers", model="tiny-reader", mode="from")
    assert [row["layer"] for row in curve] == ["0", "1", "2", "3", "4"]
    rates = [float(row["flip_rate"]) for row in curve]
    assert rates == sorted(rates, reverse=True)
    assert {(row["in_view"], row["no_report"]) for row in curve} == {("swap-with-report", "swap-without-report")}


def test_identical_reruns_do_not_flip(demo: Path):
    assert {row["flip_rate"] for row in rows(demo, "noise", model="tiny-reader")} == {"0.000000"}


def test_the_image_dependence_of_tiny_reader_stands_after_adjustment_and_tiny_blinds_does_not(demo: Path):
    found = {"dataset": "phantom-xray", "comparison": "swap-without-report"}
    following = {**found, "group": "all"}
    assert number(demo, "following", "p_holm", model="tiny-reader", **following) < 0.01
    assert number(demo, "following", "p_holm", model="tiny-blind", **following) == 1
    assert number(demo, "significance", "p_holm", model="tiny-reader", **found) < 0.01


def test_every_swap_without_a_report_has_a_floor_and_without_one_there_is_no_p_of_reacting(demo: Path):
    """The placebo is run without the report; with it, only tiny-reader is asked twice."""
    tested = {
        (row["model"], row["comparison"], row["floor_basis"], row["p"] != "") for row in rows(demo, "significance")
    }
    assert all((basis == "measured") == has_p for *_, basis, has_p in tested)
    measured = {(model, comparison) for model, comparison, basis, _ in tested if basis == "measured"}
    asked = {(model, comparison) for model, comparison, *_ in tested}
    beside = {one for one in asked if one[1] == "swap-with-report"}
    assert measured & beside == {("tiny-reader", "swap-with-report")} < beside
    assert {one for one in asked if one[1] in ("image-swap", "swap-without-report")} <= measured


def test_the_verdicts_are_what_the_readers_were_made_to_be(demo: Path):
    """On the radiographs, where the patients are enough."""
    verdicts = {
        row["model"]: (row["verdict"], row["subclass"]) for row in rows(demo, "verdicts", dataset="phantom-xray")
    }
    assert verdicts == {
        "calibrated-70": ("uses", "reads"), "tiny-reader": ("uses", "reads"), "tiny-blind": ("does not use", "blind")
    }  # fmt: skip


def test_report_alone_image_alone_and_both(demo: Path):
    (image,) = rows(demo, "modality", dataset="phantom-xray", model="tiny-reader", shown="image added to the question")
    assert float(image["low"]) > 0.2
    (beside,) = rows(demo, "modality", dataset="phantom-xray", model="tiny-reader", shown="image added to the report")
    assert float(beside["balanced_accuracy"]) < float(image["balanced_accuracy"])
