"""Every source of the config has a reader, a place in the plan, and a command that writes what it read."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from data.configs import config_of
from data.open_i_release import OpenIRelease
from overread.config.kinds import SOURCES
from overread.core.errors import BadInput
from overread.core.records import read_studies
from overread.plan import judging
from overread.sources.commands import app
from overread.sources.shared.remarks import Remarks


def test_real_data_are_restricted_unless_they_are_public() -> None:
    """PhysioNet's and Stanford's terms forbid passing data on; a table may hold anything."""
    public = {source for source, kind in SOURCES.sections.items() if not kind.model_fields["restricted"].default}
    assert public == {"phantom", "open-i"}


def obstacles(tmp_path: Path, section: dict[str, Any], **setting: Any) -> list[str]:
    evaluation = {"dataset": "theirs", "models": ["reader"], "settings": ["asked"]}
    config = config_of(
        tmp_path,
        datasets={"theirs": section},
        settings={"asked": {"images": "frontal", "readout": "yes-no", **setting}},
        evaluations=[evaluation],
        comparisons={},
    )
    (cell,) = judging.cells(config)
    return [each.why for each in judging.obstacles(config, cell) if "theirs" in each.why]


@pytest.mark.parametrize(
    ("section", "key"),
    [
        ({"source": "open-i", "root": ".", "projections": "p.csv"}, "projections"),
        ({"source": "open-i", "root": ".", "projections": "study.yaml", "mesh": "m.yaml"}, "mesh"),
        ({"source": "open-i", "root": ".", "projections": "study.yaml", "labels": "l.csv"}, "labels"),
        ({"source": "chexpert-plus", "root": ".", "labels": "l.json"}, "labels"),
        ({"source": "chexpert-plus", "root": ".", "images": "png"}, "images"),
        ({"source": "mimic-cxr", "root": ".", "reports": "txt"}, "reports"),
        ({"source": "table", "path": "own.csv", "modality": "xray", "images": {"frontal": "f"}}, "path"),
        (
            {"source": "table", "path": "study.yaml", "root": "i", "modality": "xray", "images": {"frontal": "f"}},
            "root",
        ),
    ],
)
def test_what_a_section_names_and_is_not_there_is_in_the_plan(
    tmp_path: Path, section: dict[str, Any], key: str
) -> None:
    questions = {"origin": "file", "path": "study.yaml"}
    found = obstacles(tmp_path, {**section, "questions": questions})
    assert [why for why in found if f"(datasets.theirs.{key})" in why] == found and len(found) == 1


def test_a_table_without_reports_has_none_to_show(tmp_path: Path) -> None:
    section: dict[str, Any] = {
        "source": "table", "path": "study.yaml", "modality": "xray", "images": {"frontal": "f"},
        "questions": {"origin": "file", "path": "study.yaml"},
    }  # fmt: skip
    assert obstacles(tmp_path, section, report="full") == ["datasets.theirs names no 'columns.report' to show"]
    assert obstacles(tmp_path, {**section, "columns": {"findings": "f"}}, report="full") == []


def test_the_command_writes_studies_remarks_and_counts(tmp_path: Path) -> None:
    release = OpenIRelease(tmp_path / "open-i")
    release.study(1)
    release.study(2).unlink()
    release.report(3).write_text("<x/>")
    section = {"source": "open-i", "root": "not-looked-at", "projections": str(release.write_projections())}
    arguments = ["read", str(release.root), "--dataset", "d", "--section", json.dumps(section)]
    for option, name in (("--out", "s.parquet"), ("--remarks", "r.csv"), ("--counts", "c.csv")):
        arguments += [option, str(tmp_path / "out" / name)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert "d: 2 studies, 1 of them can't be used; 1 remarks" in result.output
    assert [study.study for study in read_studies(tmp_path / "out" / "s.parquet")] == ["CXR1"]
    with (tmp_path / "out" / "r.csv").open() as file:
        (row,) = csv.DictReader(file)
    assert row["key"] == "3" and row["file"].endswith("3.xml") and "which is not a valid id: left out" in row["remark"]
    with (tmp_path / "out" / "c.csv").open() as file:
        counts = {row["what"]: int(row["count"]) for row in csv.DictReader(file)}
    assert counts["studies"] == 2 and counts["studies that can be used"] == 1 and counts["images listed"] == 4


def test_where_nothing_can_be_used_the_remarks_are_still_written(tmp_path: Path) -> None:
    release = OpenIRelease(tmp_path / "open-i")
    release.study(2).unlink()
    section = {"source": "open-i", "root": "x", "projections": str(release.write_projections())}
    arguments = ["read", str(release.root), "--dataset", "d", "--section", json.dumps(section)]
    arguments += ["--out", str(tmp_path / "s.parquet"), "--counts", str(tmp_path / "c.csv")]
    result = CliRunner().invoke(app, arguments)
    assert isinstance(result.exception, BadInput)
    assert "none of 1 studies can be used; the first: CXR2: the image 2_IM-0002-2001: missing" in str(result.exception)
    assert "studies that can be used,0" in (tmp_path / "c.csv").read_text()
    assert not (tmp_path / "s.parquet").exists()


def test_remarks_are_sorted_and_counts_are_not(tmp_path: Path) -> None:
    remarks = Remarks()
    for key in ("b", "a"):
        remarks.add(Path("f.csv"), key, 'with a comma, and "quotes"')
        remarks.count(f"what {key}", 2)
    remarks.count("what b")
    remarks.write(tmp_path / "r.csv", tmp_path / "c.csv")
    with (tmp_path / "r.csv").open() as file:
        assert [row["key"] for row in csv.DictReader(file)] == ["a", "b"]
    assert (tmp_path / "c.csv").read_text() == "what,count\nwhat b,3\nwhat a,2\n"
