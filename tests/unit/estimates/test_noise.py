"""The noise floor: identical reruns, and what is not one."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from data.handmade import Asked, read, write_cell
from overread.config import Comparison, Statistics
from overread.estimates.tables.flips import flips_table, reruns_of
from overread.estimates.tables.noise import TABLE, noise_table

FEW = Statistics(draws=200)
OPTIONS = ("a", "b", "c")


def asked(*given: str | None, shown: tuple[str, ...] | None = None) -> list[Asked]:
    """Questions q1, q2, ... of patients p1, p2, ..., whose right answer is a."""
    return [
        Asked(f"q{place}", f"p{place}", "a", one, options=OPTIONS, shown=shown, topic="odd" if place % 2 else "even")
        for place, one in enumerate(given, start=1)
    ]


def test_each_run_is_set_against_the_next_one(tmp_path: Path):
    """q1 a a b, q2 a c c, q3 a a a, q4 a none a: runs 1 and 2 flip q2, runs 2 and 3 flip q1; q4 pairs in neither."""
    runs = asked("a", "a", "a", "a"), asked("a", "c", "a", None), asked("b", "c", "a", "a")
    table = noise_table(read(tmp_path, write_cell(tmp_path, "own", *runs)), FEW)
    assert tuple(table.columns) == TABLE.names
    (row,) = table.to_dict("records")
    assert (row["runs"], row["pairs"], row["patients"], row["unpaired"]) == (3, 6, 3, 2)
    assert row["flip_rate"] == pytest.approx(2 / 6)
    # By patient: 1 of 2, 1 of 2, 0 of 2.
    assert 0 < row["low"] < 2 / 6 < row["high"] < 1


def test_one_run_has_no_noise_floor(tmp_path: Path):
    cells = read(tmp_path, write_cell(tmp_path, "own", asked("a", "b")))
    assert len(noise_table(cells, FEW)) == 0
    flips = flips_table(cells, {"swap": Comparison(flips=("own", "own"))}, FEW)
    assert len(flips) == 0


def test_runs_that_shuffle_the_options_anew_are_no_reruns(tmp_path: Path):
    """Of two questions only the one whose options stand as before was asked the same thing twice."""
    first = [*asked("a"), Asked("q9", "p9", "a", "a", options=OPTIONS, shown=("a", "b", "c"))]
    second = [*asked("b"), Asked("q9", "p9", "a", "b", options=OPTIONS, shown=("c", "b", "a"))]
    cells = read(tmp_path, write_cell(tmp_path, "shuffled", first, second))
    pairs = reruns_of(cells["data", "reader", "shuffled"])
    assert pairs is not None and pairs["question"].tolist() == ["q1"]
    assert noise_table(cells, FEW)["pairs"].tolist() == [1]


def flips_of(tmp_path: Path, comparisons: dict[str, Comparison]) -> pd.DataFrame:
    own = asked("a", "a", "a", "a"), asked("b", "a", "a", "a")
    other = asked("b", "b", "a", "a"), asked("b", "b", "b", "a")
    cells = read(tmp_path, write_cell(tmp_path, "own", *own), write_cell(tmp_path, "other", *other))
    return flips_table(cells, comparisons, FEW).set_index(["comparison", "group"])


def test_a_comparison_of_a_setting_with_itself_is_its_noise(tmp_path: Path):
    table = flips_of(tmp_path, {"noise": Comparison(flips=("own", "own"))})
    assert table.loc[("noise", "all"), ["pairs", "flip_rate", "floor"]].tolist() == [4, 0.25, 0.25]
    assert {group for _, group in table.index} == {"all", "even", "odd"}


def test_each_flip_rate_has_the_floor_of_its_own_questions(tmp_path: Path):
    """Only q1 changes by itself: of all four questions 1 in 4, of the odd ones 1 in 2, of the even ones none."""
    table = flips_of(tmp_path, {"swap": Comparison(flips=("own", "other"))}).loc["swap"]
    assert table["floor"].to_dict() == {"all": 0.25, "even": 0.0, "odd": 0.5}
    # Runs 1: q1 and q2 of four; runs 2: q2 and q3, since q1 is b in both.
    assert table.loc["all", ["pairs", "flip_rate"]].tolist() == [8, 0.5]
