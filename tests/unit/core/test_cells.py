"""No cell that a spreadsheet would compute leaves Overread, and every cell comes back as it was."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overread.config.curation import Release
from overread.core.cells import as_it_was, harmless, row_as_it_was
from overread.core.records import Question, Study
from overread.curation.release import release
from overread.curation.review import Decision, decided_sheet, read_decisions

FORMULAS = ("=1+1", "+A1", "-A1", "@SUM(A1)", "\t=1", "\r=1", '=HYPERLINK("http://x")', "'=1", "''+x", "-", "＝1")
SAFE = ("yes", "", "-5", "+0.5", "-1e-5", "'tis", "'", "a=1", " plain")


@pytest.mark.parametrize("text", FORMULAS)
def test_a_formula_is_text(text: str) -> None:
    assert harmless(text) == f"'{text}"
    assert as_it_was(harmless(text)) == text


@pytest.mark.parametrize("text", SAFE)
def test_what_is_none_is_left_alone(text: str) -> None:
    assert harmless(text) == text == as_it_was(text)


@given(st.text(alphabet=st.sampled_from("'=+-@\t\r\n ax1.＝"), max_size=8) | st.text(max_size=20))
def test_every_cell_comes_back_and_none_begins_like_a_formula(text: str) -> None:
    cell = harmless(text)
    assert as_it_was(cell) == text
    assert cell[:1] not in set("=@\t\r＝") and (cell[:1] not in set("+-") or cell.lstrip("+-")[:1].isdigit())


def test_a_short_row_is_blank_where_it_ends() -> None:
    (row,) = csv.DictReader(io.StringIO("a,b\n'=1\n"))
    assert row_as_it_was(row) == {"a": "=1", "b": ""}


def asked(stem: str, options: tuple[str, ...]) -> Question:
    return Question(
        study="s", patient="p", topic="t", stem=stem, options=options, answer=options[0], evidence="=E", origin="author"
    )


def cells_of(path: Path, delimiter: str) -> list[str]:
    with path.open(newline="", encoding="utf-8") as file:
        return [cell for row in csv.reader(file, delimiter=delimiter) for cell in row]


def test_a_release_holds_no_formula(tmp_path: Path) -> None:
    study = Study(
        study="s", patient="p", dataset="d", modality="mri", images={}, labels={}, report={}, restricted=False
    )
    question = asked("=cmd()", ("+one", "-two", "@three", "four"))
    release(Release(title="T", name="t"), [question], [study], tmp_path / "r")
    for path in [*(tmp_path / "r").rglob("*.csv"), *(tmp_path / "r").rglob("*.tsv")]:
        cells = cells_of(path, "\t" if path.suffix == ".tsv" else ",")
        assert not [cell for cell in cells if cell and harmless(cell) != cell and not cell.startswith("'")], path
    back = [as_it_was(cell) for cell in cells_of(tmp_path / "r" / "questions.csv", ",")]
    assert {"=cmd()", "+one", "-two", "@three"} <= set(back)


def test_a_sheet_of_decisions_comes_back(tmp_path: Path) -> None:
    question = asked("=A?", ("+one", "two", "three", "four"))
    made = [
        Decision(question=question.question, reviewer="@ann", decision="reject", reason="=HYPERLINK(1)"),
        Decision(question=question.question, reviewer="bob", decision="edit", reason="-", stem="=B?"),
    ]
    text = decided_sheet([question], made)
    assert "'=HYPERLINK(1)" in text and "'@ann" in text
    (tmp_path / "sheet.csv").write_text(text, encoding="utf-8", newline="")
    back = read_decisions([tmp_path / "sheet.csv"])
    assert {(one.reviewer, one.reason, one.stem) for one in back} == {
        ("@ann", "=HYPERLINK(1)", None), ("bob", "-", "=B?"),
    }  # fmt: skip
