"""PNG files with JSON reports: what is a study, what is told, and what must not be read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from pydantic import ValidationError

from overread.core.errors import BadInput
from overread.core.records import Study
from overread.sources.png_json import PngJson
from overread.sources.shared.remarks import Remarks

REPORT = {"patient": "p1", "findings": "Clear\n lungs.", "impression": "Normal.", "labels": {"Edema": 0}, "view": "AP"}


def picture(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.arange(4096, dtype=np.uint32).reshape(64, 64).astype(np.uint8)).save(path)


def study(root: Path, name: str, content: Any = REPORT) -> None:
    picture(root / f"{name}.png")
    (root / f"{name}.json").write_text(content if isinstance(content, str) else json.dumps(content))


def sample(root: Path, spoil: bool, shuffle: bool) -> PngJson:
    """For the tests that every source must pass."""
    for name in ("e3", "e2", "e1") if shuffle else ("e1", "e2", "e3"):
        study(root, name)
    if spoil:
        study(root, "bad", "{")
    return section(root)


def section(root: Path, **more: Any) -> PngJson:
    questions = {"origin": "file", "path": "q.jsonl"}
    return PngJson.model_validate({"source": "png-json", "root": str(root), "questions": questions, **more})


def read(root: Path, **more: Any) -> tuple[list[Study], Remarks]:
    remarks = Remarks()
    return section(root, **more).read("d", root, remarks), remarks


def test_a_picture_and_its_report_are_a_study(tmp_path: Path) -> None:
    study(tmp_path, "e1")
    (one,), remarks = read(tmp_path, labels=True)
    assert (one.study, one.patient, one.dataset, one.modality, one.restricted) == ("e1", "p1", "d", "xray", True)
    assert one.images == {"frontal": str(tmp_path / "e1.png")}
    assert one.report == {"findings": "Clear lungs.", "impression": "Normal."}
    assert one.labels == {"Edema": "negative"} and one.attributes == {"view": "AP"} and one.problem is None
    assert remarks.rows == []
    (unlabelled,), _ = read(tmp_path)
    assert unlabelled.labels == {}


def test_a_whole_report_is_cut_into_its_sections(tmp_path: Path) -> None:
    study(tmp_path, "e1", {"patient": 7, "report": "FINDINGS: Clear lungs.\nIMPRESSION: Normal."})
    (one,), _ = read(tmp_path)
    assert one.report == {"findings": "Clear lungs.", "impression": "Normal."} and one.patient == "7"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ({"findings": "x"}, "no patient"),
        ({"patient": "p", "labels": {"Edema": "maybe"}}, "labels other than 1, 0, -1 and blank: Edema maybe"),
        ({"patient": "p", "labels": ["Edema"]}, "labels other than 1, 0, -1 and blank"),
    ],
)
def test_what_is_wrong_with_a_study_keeps_it_with_the_reason(tmp_path: Path, content: Any, problem: str) -> None:
    study(tmp_path, "e1", content)
    (one,), _ = read(tmp_path, labels=True)
    assert problem in (one.problem or "")


def test_a_picture_that_is_cut_short_or_missing_is_the_problem_of_its_study_alone(tmp_path: Path) -> None:
    for name in ("e1", "e2", "e3"):
        study(tmp_path, name)
    (tmp_path / "e1.png").write_bytes((tmp_path / "e1.png").read_bytes()[:60])
    (tmp_path / "e2.png").unlink()
    studies, remarks = read(tmp_path)
    assert [one.problem is None for one in studies] == [False, False, True]
    assert "truncated" in str(studies[0].problem) and "missing" in str(studies[1].problem)
    assert remarks.counts["studies without an image that can be used"] == 2


@pytest.mark.parametrize("content", ["{", "[]", '"e1"', "", "\x00", "[" * 100_000, " " * 1_000_001], ids=range(7))
def test_a_file_that_is_no_report_is_left_out_and_told(tmp_path: Path, content: str) -> None:
    study(tmp_path, "good")
    study(tmp_path, "bad", content)
    studies, remarks = read(tmp_path)
    assert [one.study for one in studies] == ["good"]
    told = [row for row in remarks.rows if row.key == "bad"]
    assert told and all("left out" in row.remark for row in told)


def test_a_picture_without_a_report_is_left_out_and_told(tmp_path: Path) -> None:
    study(tmp_path, "e1")
    picture(tmp_path / "inner" / "lone.png")
    studies, remarks = read(tmp_path)
    assert [one.study for one in studies] == ["e1"]
    assert [(row.key, row.remark) for row in remarks.rows] == [
        ("lone", "a picture without a report beside it: left out")
    ]


def test_two_reports_of_one_name_are_no_choice(tmp_path: Path) -> None:
    study(tmp_path / "a", "e1")
    study(tmp_path / "b", "e1", {**REPORT, "patient": "p2"})
    (one,), _ = read(tmp_path)
    assert one.problem == "2 reports of this name; keep one"


def test_a_link_out_of_the_folder_is_not_followed_unless_the_config_says_so(tmp_path: Path) -> None:
    study(tmp_path / "elsewhere", "e1")
    root = tmp_path / "root"
    root.mkdir()
    for ending in ("png", "json"):
        (root / f"e1.{ending}").symlink_to(tmp_path / "elsewhere" / f"e1.{ending}")
    with pytest.raises(BadInput, match="no report"):
        read(root)
    (one,), _ = read(root, follow_links=True)
    assert one.problem is None


def test_an_empty_folder_is_an_error_that_says_what_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"looked for <study>\.json here and one level down"):
        read(tmp_path)


def test_findings_are_asked_only_where_the_files_have_labels(tmp_path: Path) -> None:
    asked = {"origin": "findings", "not_mentioned": "leave-out"}
    with pytest.raises(ValidationError, match="labels: true"):
        section(tmp_path, questions=asked)
    section(tmp_path, questions=asked, labels=True)
    with pytest.raises(ValidationError, match="not_mentioned"):
        section(tmp_path, questions={"origin": "findings"}, labels=True)
