"""A run as data frames."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import overread
from data.made import make_results, tables_spec
from overread.core.errors import BadInput
from overread.core.records import read_responses, write_responses
from overread.estimates.make import make_tables
from overread.estimates.spec import TablesSpec
from overread.library.results import Results

CELL = ["dataset", "model", "setting"]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    folder = tmp_path_factory.mktemp("results") / "small"
    spec = tables_spec(make_results(folder))
    (folder / "asked.json").write_text(json.dumps(spec))
    make_tables(folder, TablesSpec.model_validate(spec), folder / "tables")
    return overread.open(folder)


def test_there_is_one_row_per_answer(results: Results):
    """Trial ids repeat over runs and settings, so that a join by them alone gives many times as many rows."""
    answers = results.answers
    assert len(answers) == sum(
        len(pd.read_parquet(path))
        for cell in results.cells
        for path in (results.folder / cell["dataset"] / "responses" / cell["model"] / cell["setting"]).glob("*.parquet")
    )
    assert not answers.duplicated([*CELL, "run", "question"]).any()
    assert len(answers.merge(results.trials[["trial", "topic"]], on="trial")) > len(answers)


def test_answers_recompute_the_accuracy_of_every_cell(results: Results):
    table = results.tables["accuracy"].set_index(CELL)
    own = results.answers.groupby(CELL)["correct"].mean().astype(float)
    assert len(own) == len(table)
    assert (own - table["accuracy"]).abs().max() < 1e-6
    for status in ("answered", "unparsed", "refused", "truncated", "failed"):
        counts = (results.answers["status"] == status).groupby([results.answers[name] for name in CELL]).sum()
        assert counts.to_dict() == table[status].to_dict()


def test_what_was_given_is_text_beside_what_is_correct(results: Results):
    answers = results.answers
    given = answers[answers["status"] == "answered"]
    assert (given["given"] == given["correct_answer"]).tolist() == given["correct"].tolist()
    assert answers.loc[answers["status"] == "unparsed", "given"].isna().all()
    assert not answers.loc[answers["status"] == "unparsed", "correct"].any()
    questions = results.questions.set_index(["dataset", "question"])["correct_answer"]
    written = answers.set_index(["dataset", "question"])["correct_answer"]
    assert (written == questions.loc[written.index]).all()


def test_a_failed_request_is_missing_and_not_wrong(results: Results, tmp_path: Path):
    import shutil

    copy = tmp_path / "copy"
    shutil.copytree(results.folder, copy)
    path = copy / "mri/responses/reader/single-slice/run-1.parquet"
    first, *rest = read_responses(path)
    nothing = {"status": "failed", "answer": None, "choice": None}
    write_responses([first.model_copy(update=nothing), *rest], path)
    (row,) = overread.open(copy).answers.query("status == 'failed'").to_dict("records")
    assert row["question"] == first.question
    assert pd.isna(row["correct"])
    assert pd.isna(row["given"])


def test_responses_to_other_trials_are_refused(results: Results, tmp_path: Path):
    import shutil

    copy = tmp_path / "copy"
    shutil.copytree(results.folder, copy)
    path = copy / "mri/responses/reader/single-slice/run-1.parquet"
    first, *rest = read_responses(path)
    write_responses([first.model_copy(update={"trial": "0" * 16}), *rest], path)
    with pytest.raises(BadInput, match="1 responses answer other trials"):
        _ = overread.open(copy).answers


def test_every_frame_is_there(results: Results):
    assert results.datasets == ["mri", "xray"]
    assert set(results.studies["dataset"]) == set(results.questions["dataset"]) == {"mri", "xray"}
    assert results.studies["problem"].notna().sum() == 2, "studies that cannot be used are among them"
    assert isinstance(results.studies["report"].iloc[0], dict)
    assert len(results.pictures[results.pictures["edit"].isna()]) == len(results.studies) - 2
    assert "accuracy" in results.tables and "human" not in results.tables
    assert len(results.tables) == len(list(results.tables)) > 10
    assert results.tables["flips"]["pairs"].dtype == "Int64"
    assert results.tables["flips"]["floor"].isna().any()
    assert results.tables["accuracy_wide"]["own image"].dtype == "float64"


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path):
    with pytest.raises(BadInput, match="not the folder of a run"):
        overread.open(tmp_path)


def test_import_overread_imports_nothing_heavy():
    heavy = {"numpy", "pandas", "pyarrow", "pydantic", "snakemake", "torch"}
    program = f"import sys, overread; print([name for name in sys.modules if name in {heavy}])"
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert said.strip() == "[]"
