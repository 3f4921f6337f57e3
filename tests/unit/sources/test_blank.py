"""What software writes where a value is missing is a blank cell: no patient, no label, no path."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from overread.sources.shared.blank import WORDS, WRITTEN_BY_SOFTWARE, filled, says_nothing
from overread.sources.shared.labels import in_words
from overread.sources.shared.remarks import Remarks
from overread.sources.table.reader import read
from overread.sources.table.section import Table


@pytest.mark.parametrize("word", sorted(WORDS))
def test_a_word_for_nothing_is_nothing_in_any_case(word: str) -> None:
    for written in (word, word.upper(), f" {word} "):
        assert filled(written) == "" and says_nothing(written)
        assert filled(written, free_text=True) == ("" if word in WRITTEN_BY_SOFTWARE else written.strip())
    assert in_words({"Edema": word}) == ({}, None)


@pytest.mark.parametrize("word", ["P-12", "0", "Nana", "Nullmeyer", "nan nan", "-", "unknown"])
def test_all_else_is_what_it_is(word: str) -> None:
    assert filled(f" {word}") == word and not says_nothing(word)


@pytest.mark.parametrize("nothing", ["nan", "NaN", "NA", "NULL", "<NA>", "", "None"])
def test_studies_of_nobody_are_not_one_patients(tmp_path: Path, nothing: str) -> None:
    rows = ["scan,who,report,file,edema"]
    for number in range(5):
        Image.fromarray(np.arange(4096, dtype=np.uint8).reshape(64, 64)).save(tmp_path / f"{number}.png")
        who, edema = (nothing, nothing) if number < 3 else (f"p{number}", "1")
        rows.append(f"s{number},{who},FINDINGS: None.,{number}.png,{edema}")
    table = tmp_path / "t.csv"
    table.write_text("\n".join(rows))
    section = Table.model_validate(
        {
            "source": "table", "path": str(table), "modality": "xray", "images": {"frontal": "file"},
            "columns": {"study": "scan", "patient": "who", "report": "report"}, "labels": {"Edema": "edema"},
            "questions": {
                "origin": "findings", "findings": ["Edema"], "composite": [], "not_mentioned": "leave-out",
            },
        }
    )  # fmt: skip
    remarks = Remarks()
    studies = read("d", section, table, remarks)
    assert [study.problem for study in studies] == ["no patient"] * 3 + [None] * 2
    assert len({study.patient for study in studies}) == 5
    assert [study.labels for study in studies] == [{}] * 3 + [{"Edema": "positive"}] * 2
    assert remarks.counts["studies without a patient"] == 3
    assert remarks.counts.get("patients given as nan, NA, null or the like", 0) == (3 if nothing else 0)
    assert studies[4].report == {"findings": "None."}  # in running text it is a word
