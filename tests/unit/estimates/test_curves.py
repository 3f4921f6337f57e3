"""Curves by dose, from settings that are found by what they are."""

from __future__ import annotations

from typing import Any

import pandas as pd

from overread.config import Comparison, Setting
from overread.estimates.tables.curves import TABLE, curves_table, mean_margins, points, points_of

SETTINGS = {
    name: Setting.model_validate({"images": "frontal", **one})
    for name, one in {
        "own": {}, "other": {"source": "substitute"}, "full": {"report": "full"},
        "turned-1": {"options": "rotated-1"}, "turned-3": {"options": "rotated-3"},
        "hidden-0": {"report": "full", "attention": "from-0"}, "hidden-12": {"report": "full", "attention": "from-12"},
        "hidden-0-other": {"report": "full", "attention": "from-0", "source": "substitute"},
        "hidden-12-other": {"report": "full", "attention": "from-12", "source": "substitute"},
        "hidden-in-3": {"report": "full", "attention": "only-3"},
    }.items()
}  # fmt: skip
COMPARISONS = {
    name: Comparison(flips=pair)
    for name, pair in {
        "hiding-0": ("hidden-0", "hidden-0-other"), "hiding-12": ("hidden-12", "hidden-12-other"),
        "against-0": ("full", "hidden-0"), "against-12": ("full", "hidden-12"), "swap": ("own", "other"),
        "mixed": ("hidden-0", "hidden-12"), "again": ("hidden-0", "hidden-0"),
    }.items()
}  # fmt: skip


MARGINS = {("d", "m", "turned-1"): 0.25}


def table(of: str, rows: dict[str, float], measure: str, n: str, **more: Any) -> pd.DataFrame:
    base = {"dataset": "d", "model": "m", "patients": 9, n: 20, "low": 0.1, "high": 0.9, **more}
    return pd.DataFrame([{**base, of: name, measure: value} for name, value in rows.items()])


def made(accuracies: dict[str, float], rates: dict[str, float]) -> list[tuple[object, ...]]:
    flips = table("comparison", rates, "flip_rate", "pairs", group="all")
    whole = curves_table(table("setting", accuracies, "accuracy", "questions"), flips, COMPARISONS, SETTINGS, MARGINS)
    assert tuple(whole.columns) == TABLE.names
    told = whole[["about", "mean_margin"]].dropna().itertuples(index=False)
    assert {tuple(row) for row in told} <= {("turned-1", 0.25)}
    kept = whole[["curve", "measure", "dose", "amount", "rate", "observations", "about"]]
    return [tuple(row) for row in kept.itertuples(index=False)]


def test_settings_that_differ_in_a_number_alone_are_a_curve() -> None:
    rows = made({"own": 0.9, "turned-3": 0.5, "turned-1": 0.7, "hidden-0": 0.6, "hidden-in-3": 0.8}, {"swap": 0.2})
    assert rows == [
        ("turned", "accuracy", "options-rotated", 1, 0.7, 20, "turned-1"),
        ("turned", "accuracy", "options-rotated", 3, 0.5, 20, "turned-3"),
    ], "one point of a dose is no curve, and hiding in a layer is another dose than hiding from it on"


def test_flips_are_a_curve_where_both_arms_have_the_dose_and_where_one_has() -> None:
    rows = made({"own": 0.9}, {"hiding-12": 0.1, "hiding-0": 0.3, "against-0": 0.4, "against-12": 0.2, "swap": 0.3})
    assert [(row[0], row[3], row[4]) for row in rows] == [
        ("against", 0, 0.4), ("against", 12, 0.2), ("hiding", 0, 0.3), ("hiding", 12, 0.1),
    ]  # fmt: skip


def test_arms_of_two_doses_and_reruns_are_no_point() -> None:
    assert points_of(COMPARISONS["mixed"], SETTINGS) == [] == points_of(COMPARISONS["again"], SETTINGS)
    assert points(SETTINGS["own"]) == []


def test_a_study_without_a_sweep_has_no_curve() -> None:
    assert made({"own": 0.9, "other": 0.8}, {"swap": 0.2}) == []


def test_the_mean_margin_is_that_of_the_answers_that_have_one() -> None:
    cells = {
        ("d", "m", "a"): pd.DataFrame({"margin": [1.0, float("nan"), 3.0]}),
        ("d", "m", "b"): pd.DataFrame({"margin": [float("nan")]}),
    }
    assert mean_margins(cells) == {("d", "m", "a"): 2.0}
