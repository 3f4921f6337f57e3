"""positions.csv, worked out by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from pandas import isna

from data.handmade import Asked, read, write_cell
from overread.estimates.tables.positions import TABLE, positions_table

FOUR = ("a", "b", "c", "d")


def test_shares_and_recall_of_a_worked_example(tmp_path: Path):
    """The right option stands at 1 (twice), 2 and 4; recalls 1/2, 1 and 0; a failed trial is not counted."""
    asked = [
        Asked("q1", "p1", "a", "a", options=FOUR),
        Asked("q2", "p1", "a", None, options=FOUR),
        Asked("q3", "p2", "b", "b", options=FOUR),
        Asked("q4", "p2", "a", "d", options=FOUR, shown=("d", "b", "c", "a")),
        Asked("q5", "p2", "c", None, options=FOUR, status="failed"),
    ]
    table = positions_table(read(tmp_path, write_cell(tmp_path, "setting", asked)))
    assert tuple(table.columns) == TABLE.names
    assert table["position"].tolist() == [1, 2, 3, 4]
    assert table["gold_share"].tolist() == [0.5, 0.25, 0, 0.25]
    # Answered: a at 1, b at 2, d at 1.
    assert table["chosen_share"].tolist() == pytest.approx([2 / 3, 1 / 3, 0, 0])
    assert table["recall"].tolist()[:2] == [0.5, 1]
    assert isna(table["recall"][2])
    assert table["recall"][3] == 0


def test_runs_are_pooled_and_yes_stands_first(tmp_path: Path):
    run = [Asked("q1", "p1", "yes", "yes"), Asked("q2", "p1", "no", "yes")]
    other = [Asked("q1", "p1", "yes", "no"), Asked("q2", "p1", "no", "no")]
    table = positions_table(read(tmp_path, write_cell(tmp_path, "setting", run, other)))
    assert table["gold_share"].tolist() == [0.5, 0.5]
    assert table["chosen_share"].tolist() == [0.5, 0.5]
    assert table["recall"].tolist() == [0.5, 0.5]


def test_with_no_answer_there_is_no_choice(tmp_path: Path):
    table = positions_table(read(tmp_path, write_cell(tmp_path, "setting", [Asked("q1", "p1", "yes", None)])))
    assert table["recall"].tolist()[0] == 0
    assert table["chosen_share"].isna().all()
