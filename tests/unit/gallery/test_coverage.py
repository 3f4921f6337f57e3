"""Intervals cover what they should, over a part of the grid that `make gallery` goes through whole."""

from __future__ import annotations

import numpy as np
import pytest

from overread.gallery.coverage import Cell, Covered, cover, draw, grid

SOME = [
    Cell("proportion", rate, 0.0, correlation, patients, sizes)
    for rate, correlation, patients, sizes in (
        (0.005, 0.4, 300, "unequal"), (0.01, 0.0, 60, "equal"), (0.05, 0.1, 60, "unequal"), (0.05, 0.4, 20, "equal"),
        (0.2, 0.4, 60, "unequal"), (0.5, 0.0, 10, "equal"),
    )
] + [
    Cell("difference", rate, lean, correlation, patients, "unequal")
    for rate, lean, correlation, patients in ((0.01, 0.0, 0.1, 60), (0.2, 0.6, 0.4, 20), (0.5, 0.0, 0.0, 60))
]  # fmt: skip


def test_intervals_cover():
    found = cover(SOME, 150, seed=1, workers=1)
    assert [(one.cell, one.covered) for one in found if one.broken] == []
    # Where many patients have an event they are hardly wider than the percentile interval; one cell alone is noisy.
    widths = [one.width for one in found if one.events >= 10]
    assert len(widths) >= 3 and np.mean(widths) < 1.15 and not any(one.too_wide for one in found)


def test_an_interval_that_covers_too_rarely_or_too_often_is_caught():
    """One that covers 83 %, as percentiles do with few patients, and one that is never wrong."""
    cell = Cell("proportion", 0.2, 0.0, 0.4, 60, "equal")
    assert Covered(cell, 150, 125, 30.0, 1.0).broken
    assert not Covered(cell, 150, 143, 30.0, 1.0).broken
    assert Covered(cell, 1000, 1000, 30.0, 1.0).broken and not Covered(cell, 1000, 1000, 3.0, 1.0).broken
    assert Covered(cell, 150, 143, 30.0, 1.2).too_wide


@pytest.mark.parametrize("correlation", [0.0, 0.4])
def test_what_is_drawn_has_the_rate_and_the_correlation_of_its_cell(correlation: float):
    cell = Cell("proportion", 0.2, 0.0, correlation, 20_000, "equal")
    values, patients = draw(cell, np.random.default_rng(1))
    assert values.mean() == pytest.approx(0.2, abs=0.01)
    sums = np.bincount(patients, values - 0.2)
    assert ((sums**2).mean() / 6 / 0.16 - 1) / 5 == pytest.approx(correlation, abs=0.03)
    moves, _ = draw(Cell("difference", 0.2, 0.6, correlation, 20_000, "equal"), np.random.default_rng(2))
    assert moves.mean() == pytest.approx(0.12, abs=0.01) and set(moves) == {-1.0, 0.0, 1.0}


def test_the_grid_has_what_cohorts_have():
    cells = grid()
    assert {cell.rate for cell in cells} >= {0.005, 0.5}
    assert {cell.correlation for cell in cells} == {0.0, 0.1, 0.4}
    assert {cell.patients for cell in cells} >= {
        10,
        20,
        300,
    }
    assert {cell.sizes for cell in cells} == {"equal", "unequal"} and {cell.kind for cell in cells} == {
        "proportion", "difference",
    }  # fmt: skip
