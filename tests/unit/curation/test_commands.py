"""`overread questions build` by hand: the file, what is printed, and an error in one line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from overread.core.errors import BadInput
from overread.core.records import Study, read_questions, write_studies
from overread.curation.commands import app


def written(folder: Path) -> Path:
    common = {"patient": "p", "dataset": "cxr", "modality": "xray", "images": {}, "report": {}, "restricted": False}
    write_studies(
        [
            Study.model_validate({"study": "s1", "labels": {"Edema": "positive"}, **common}),
            Study.model_validate({"study": "s2", "labels": {}, "problem": "no image", **common}),
        ],
        folder / "studies.parquet",
    )
    return folder / "studies.parquet"


def test_build_writes_the_questions_and_says_how_many(tmp_path: Path) -> None:
    out = tmp_path / "questions.jsonl"
    section = json.dumps({"origin": "findings", "findings": ["Edema", "Fracture"], "composite": []})
    result = CliRunner().invoke(app, ["build", str(written(tmp_path)), "--section", section, "--out", str(out)])
    assert result.exit_code == 0, result.output
    assert {(question.topic, question.answer) for question in read_questions(out)} == {
        ("Edema", "yes"),
        ("Fracture", "no"),
    }
    assert "2 questions about 1 studies; 2 left out (the study can't be used)" in result.output


@pytest.mark.parametrize(
    ("section", "reason"),
    [
        ('{"origin": "findings", "findings": ["Oedema"]}', "no finding 'Oedema'"),
        ('{"origin": "guesses"}', "guesses"),
        ("no json", "JSON"),
        (
            '{"origin": "findings", "findings": ["Fracture"], "composite": [], "not_mentioned": "leave-out"}',
            "nothing to ask",
        ),
    ],
)
def test_a_bad_section_or_an_empty_result_is_one_line_and_no_file(tmp_path: Path, section: str, reason: str) -> None:
    out = tmp_path / "questions.jsonl"
    result = CliRunner().invoke(app, ["build", str(written(tmp_path)), "--section", section, "--out", str(out)])
    assert isinstance(result.exception, BadInput)
    assert reason in str(result.exception)
    assert "\n" not in str(result.exception)
    assert not out.exists()
