"""Tables: every cell where it belongs, or a reason."""

from __future__ import annotations

import math
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from overread.core.errors import BadInput
from overread.sources.shared.rows import Row, read_head, read_rows


def csv(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "t.csv"
    path.write_text(text, encoding="utf-8")
    return path


def rows(path: Path, *needed: str, others: tuple[str, ...] | None = ()) -> list[Row]:
    return list(read_rows(path, needed, others))


def test_cells_are_taken_by_column_without_blanks_and_with_their_line_breaks(tmp_path: Path) -> None:
    path = csv(tmp_path, '\ufeffa , b,c\n1,"two\nlines, and ""quotes""  ",3\n\n 4 ,,6\n')
    assert rows(path, "c", "b") == [
        Row(1, {"b": 'two\nlines, and "quotes"', "c": "3"}),
        Row(2, {"b": "", "c": "6"}),
    ]
    assert rows(path, others=None)[1].cells == {"a": "4", "b": "", "c": "6"}
    assert rows(path, "a", others=("c", "absent"))[0].cells == {"a": "1", "c": "3"}
    assert read_head(path) == ["a", "b", "c"]


def test_a_row_with_other_than_the_heads_cells_says_so(tmp_path: Path) -> None:
    found = rows(csv(tmp_path, "a,b\n1\n1,2,3\n1,2\n"), "a", "b")
    assert [row.problem for row in found] == ["1 cells where the head has 2", "3 cells where the head has 2", None]
    assert found[0].place == "row 1"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a,b\n1,2\n", r"no column 'd'; there are: a, b"),
        ("a;d\n1;2\n", r"it looks separated by ';'; commas are expected"),
        ("a\td\n1\t2\n", r"it looks separated by '\\t'; commas are expected"),
        ("d,d\n1,2\n", "two columns are called 'd'; rename one"),
        ("", "no column 'd'; there are: none"),
        ('d\n1\n"never closed\n2\n3\n', r"not readable as CSV \(after row 1: unexpected end of data\)"),
        ('d\n1\n"a"b\n', r"not readable as CSV \(after row 1"),
    ],
)
def test_a_table_that_can_not_be_read_is_one_line(tmp_path: Path, text: str, reason: str) -> None:
    with pytest.raises(BadInput, match=reason) as caught:
        rows(csv(tmp_path, text), "d")
    assert str(tmp_path / "t.csv") in str(caught.value) and "\n" not in str(caught.value)


def test_what_is_missing_or_no_text_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"none\.csv: no such file"):
        rows(tmp_path / "none.csv", "a")
    with pytest.raises(BadInput, match="not readable as CSV"):
        rows(tmp_path, "a")
    path = tmp_path / "latin.csv"
    path.write_bytes("a\nhätte\n".encode("latin-1"))
    with pytest.raises(BadInput, match="not readable as CSV"):
        rows(path, "a")


def test_a_long_cell_is_read(tmp_path: Path) -> None:
    text = "long " * 100_000
    assert rows(csv(tmp_path, f'a\n"{text}"\n'), "a")[0].cells["a"] == text.strip()


def test_parquet_reads_as_a_csv_of_the_same_cells_would(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    columns = {"s": ["x ", None], "i": [3, None], "f": [1.0, math.nan], "g": [0.5, -1.0], "b": [True, None]}
    pq.write_table(pa.table(columns), path)
    assert [row.cells for row in rows(path, others=None)] == [
        {"s": "x", "i": "3", "f": "1", "g": "0.5", "b": "True"},
        {"s": "", "i": "", "f": "", "g": "-1", "b": ""},
    ]
    with pytest.raises(BadInput, match="no column 't'"):
        rows(path, "t")


def test_parquet_that_is_none_or_holds_lists_is_told(tmp_path: Path) -> None:
    (tmp_path / "t.parquet").write_text("a,b\n")
    with pytest.raises(BadInput, match="not readable as Parquet") as caught:
        rows(tmp_path / "t.parquet", "a")
    assert "\n" not in str(caught.value)
    with pytest.raises(BadInput, match="no such file"):
        rows(tmp_path / "u.parquet", "a")
    pq.write_table(pa.table({"a": [[1, 2]]}), tmp_path / "l.parquet")
    assert rows(tmp_path / "l.parquet", "a")[0].problem == "column 'a' holds no plain values"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    st.lists(
        st.lists(
            st.text(st.characters(codec="utf-8", exclude_characters="\r\x00"), max_size=12), min_size=2, max_size=2
        ),
        min_size=1,
        max_size=5,
    )
)
def test_csv_gives_back_what_was_written(tmp_path: Path, cells: list[list[str]]) -> None:
    import csv as library

    path = tmp_path / "h.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        library.writer(file).writerows([["a", "b"], *cells])
    found = [list(row.cells.values()) for row in read_rows(path, ["a", "b"])]
    assert found == [[cell.strip() for cell in row] for row in cells]
