"""The cohort's counts: on a handful of studies by hand, and on a cohort of the paper's size."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from typer.testing import CliRunner

from overread.cli import app
from overread.config import FindingQuestions
from overread.core.errors import BadInput
from overread.core.records import Picture, Study, write_questions, write_studies, write_substitutes
from overread.questions.findings import build
from overread.trials.cohort import cohort
from overread.trials.substitutes import choose_substitutes

ASKED = FindingQuestions(origin="findings")


def write(folder: Path, studies: list[Study], rejected: dict[str, str] | None = None) -> None:
    """What the stages before leave in a dataset's folder."""
    rejected = rejected or {}
    write_studies(studies, folder / "studies.parquet")
    (folder / "studies_counts.csv").write_text(f"what,count\nstudies,{len(studies)}\n")
    lines = [f"{study},p,images,{why}\n" for study, why in rejected.items()]
    (folder / "studies_rejected.csv").write_text("".join(["study,patient,stage,reason\n", *lines]))
    usable = [one for one in studies if one.problem is None]
    write_questions(build(ASKED, usable)[0], folder / "questions.jsonl")
    pictures = [
        Picture(study=one.study, view="f", order=0, name="f", path="f", pixels=one.study, width=1, height=1, series="f")
        for one in usable
        if one.study not in rejected
    ]
    write_substitutes(choose_substitutes(usable, pictures, 0), folder / "substitutes.csv")


def study(name: str, patient: str, problem: str | None = None) -> Study:
    return Study(
        study=name, patient=patient, dataset="d", modality="xray", images={}, report={}, labels={}, restricted=False,
        problem=problem,
    )  # fmt: skip


def test_each_step_is_counted_and_each_lost_study_told_with_its_reason(tmp_path: Path) -> None:
    studies = [study("a1", "a"), study("a2", "a"), study("b1", "b"), study("c1", "c", "no report"), study("d1", "d")]
    write(tmp_path, studies, {"d1": "no such file"})
    steps, left_out = cohort(tmp_path)
    assert {step.what: step.counted for step in steps} == {
        "studies": 5, "studies with pictures": 3, "questions": 42, "topics asked about": 14, "cases": 3,
        "patients of the cases": 2, "cases with a substitute of the same patient": 2,
        "cases with a substitute of another patient": 1, "paired trials": 42,
    }  # fmt: skip
    assert [(one.study, one.why) for one in left_out] == [("c1", "no report"), ("d1", "no such file")]
    assert all(step.paper is None for step in steps)


def test_a_study_for_which_there_is_no_substitute_is_no_case(tmp_path: Path) -> None:
    write(tmp_path, [study("a1", "a")])
    steps, left_out = cohort(tmp_path)
    assert {step.what: step.counted for step in steps}["cases"] == 0
    assert [one.why for one in left_out] == ["no substitute"]


def test_a_cohort_of_the_papers_size_has_the_papers_numbers(tmp_path: Path) -> None:
    """293 patients, 19 of them with one study and the others with 11 or 12: 3,199 cases and 44,786 paired trials."""
    counts = [1] * 19 + [12] * 166 + [11] * 108
    studies = [study(f"s{p}-{k}", f"p{p}") for p, count in enumerate(counts) for k in range(count)]
    write(tmp_path, studies)
    done = CliRunner().invoke(
        app,
        ["trials", "cohort", str(tmp_path), "--paper", "modalens", "--out", str(tmp_path / "cohort.csv"),
         "--left-out", str(tmp_path / "left_out.csv")],
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    with (tmp_path / "cohort.csv").open() as file:
        rows = {row["what"]: row for row in csv.DictReader(file)}
    for what in (
        "patients of the cases", "cases", "cases with a substitute of the same patient",
        "cases with a substitute of another patient", "topics asked about", "paired trials",
    ):  # fmt: skip
        assert rows[what]["counted"] == rows[what]["paper"], what
    assert rows["paired trials"]["counted"] == "44786"
    assert "cases: 3,199   modalens: 3,199" in done.output
    assert (tmp_path / "left_out.csv").read_text() == "study,patient,why\n"


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    write(tmp_path, [study("a1", "a")])
    (tmp_path / "studies_rejected.csv").unlink()
    with pytest.raises(BadInput, match=r"studies_rejected\.csv: no such file"):
        cohort(tmp_path)
