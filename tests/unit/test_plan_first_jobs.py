"""`check` tells what the first jobs would die of: nothing of it waits for a cluster to find out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from data.configs import config_of
from overread import plan
from overread.plan.first_jobs import no_substitute, problems

QUESTION = {"study": "a", "stem": "Which?", "options": ["x", "y"], "answer": "x", "topic": "t"}


def made(folder: Path, table: str, lines: list[Any], **changes: Any) -> Any:
    (folder / "table.csv").write_text(table)
    (folder / "q.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    section = {
        "source": "table", "path": str(folder / "table.csv"), "modality": "mri", "images": {"FLAIR": "flair"},
        "labels": {"t": "label"}, "restricted": False,
        "questions": {"origin": "file", "path": str(folder / "q.jsonl")}, **changes,
    }  # fmt: skip
    settings = {"plain": {"images": "flair"}, "swap": {"extends": "plain", "source": "substitute"}}
    evaluations = [{"dataset": "mri", "models": ["reader"], "settings": ["plain", "swap"]}]
    return config_of(folder, datasets={"mri": section}, settings=settings, evaluations=evaluations, comparisons={})


HEAD = "study,patient,flair,label\n"
ROWS = HEAD + "a,p,a.nii.gz,x\nb,q,b.nii.gz,y\n"


def test_a_sound_table_and_questions_have_no_problem(tmp_path: Path) -> None:
    config = made(tmp_path, ROWS, [QUESTION])
    assert problems(config, "mri") == [] and no_substitute(config, "mri") is None


@pytest.mark.parametrize(
    ("table", "lines", "why"),
    [
        (HEAD, [QUESTION], "datasets.mri.path: .*table.csv has a head and no row"),
        (HEAD + "a,p,a.nii.gz,\nb,q,b.nii.gz, \n", [QUESTION], "datasets.mri.labels: all labels of .* are blank"),
        (ROWS, [{**QUESTION, "topic": ""}, QUESTION], r"q\.jsonl:1: no topic$"),
        (
            ROWS,
            [QUESTION, {**QUESTION, "topic": None}] * 3,
            r"q\.jsonl:2: no topic, and 2 lines",
        ),
        (ROWS, [QUESTION, [1]], r"q\.jsonl:2: no study"),
        (ROWS, [], r"q\.jsonl holds no question"),
        ("study,patient,flair\na,p,x\n", [QUESTION], "datasets.mri.path: .*label"),
    ],
)
def test_what_the_first_jobs_would_die_of_is_an_error_of_check(
    tmp_path: Path, table: str, lines: list[Any], why: str
) -> None:
    import re

    errors, _ = plan.check(made(tmp_path, table, lines))
    assert [each for each in errors if re.search(why, each)], errors


def test_one_study_keeps_its_swaps_from_running_and_nothing_else(tmp_path: Path) -> None:
    """The cells that show another's image are told and left out; the others run, and the report is written."""
    config = made(tmp_path, HEAD + "a,p,a.nii.gz,x\n", [QUESTION])
    judged = {cell: plan.obstacles(config, cell) for cell in plan.cells(config)}
    told = {cell.setting for cell, found in judged.items() if any("holds one study" in each.why for each in found)}
    assert told == {"swap"}
    assert {cell.setting for cell in judged} == {"plain", "swap"}
    one_patient = HEAD + "a,p,a.nii.gz,x\nb,p,b.nii.gz,y\n"
    assert no_substitute(made(tmp_path, one_patient, [QUESTION]), "mri") is None
    another = made(tmp_path, one_patient, [QUESTION], substitutes={"patient": "another"})
    assert no_substitute(another, "mri") == "mri holds one patient"
