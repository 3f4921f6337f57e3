"""The one CSV writer."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overread.core.columns import Column, count, share, text
from overread.core.csv_files import CsvFile, csv_text

WHERE = "test/made-here.csv"
FILE = CsvFile(
    WHERE, "Made for this test.", [text("name", "a name"), share("part", "a share"), count("many", "a count")]
)


def test_rows_are_written_as_lists_or_by_column_with_fixed_decimals(tmp_path: Path):
    FILE.write(tmp_path / "t.csv", [["a", 1 / 3, 2], {"many": 3, "name": 'b,"c"\nd'}, ["e", float("nan"), None]])
    assert (tmp_path / "t.csv").read_bytes() == b'name,part,many\na,0.333333,2\n"b,""c""\nd",,3\ne,,\n'


def test_a_row_of_another_length_is_a_defect(tmp_path: Path):
    with pytest.raises(ValueError, match="a row of 2 cells for the 3 columns"):
        FILE.write(tmp_path / "t.csv", [["a", 0.5]])
    assert not list(tmp_path.iterdir())


def test_text_can_be_guarded_on_its_way_and_numbers_are_not(tmp_path: Path):
    assert (
        csv_text(FILE.names, [["=1+1", -0.5, 2]], guard=lambda cell: f"'{cell}")
        == "name,part,many\n'=1+1,-0.500000,2\n"
    )


@given(st.lists(st.tuples(st.text(), st.floats(0, 1), st.integers(0, 10**9))))
def test_what_is_written_is_read_back(tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, float, int]]):
    path = tmp_path_factory.mktemp("read") / "t.csv"
    kept = [row for row in rows if not re.search("[\r\x00\ud800-\udfff]", row[0])]
    FILE.write(path, kept)
    back = FILE.read(path)
    assert [row["name"] for row in back] == [name for name, _, _ in kept]
    assert [float(row["part"]) for row in back] == pytest.approx([part for _, part, _ in kept], abs=1e-6)
    with path.open(newline="", encoding="utf-8") as file:
        assert next(csv.reader(file)) == list(FILE.names)


@pytest.mark.parametrize(
    ("column", "cell", "problem"),
    [
        (share("x", "a share"), "0.5", ""),
        (share("x", "a share"), "-0.1", "not 0 to 1"),
        (Column("x", "a number", "number", range=(None, 1.0)), "2", "not 1 or less"),
        (count("x", "a count"), "-1", "not 0 or more"),
        (count("x", "a count"), "1.0", "not a whole number"),
        (text("x", "a kind", values=("from", "only")), "to", "not one of from, only"),
        (text("x", "a name"), "anything", ""),
    ],
)
def test_a_column_says_what_is_wrong_with_a_cell(column: Column, cell: str, problem: str):
    assert column.problem(cell) == problem
