"""A study from end to end: what it leaves, what a kill costs, what a bad file costs."""

from __future__ import annotations

import csv
import json
import os
import signal
import time
from pathlib import Path

import pytest

from workflow.runner import ROOT, SMALL, Workflow

pytestmark = pytest.mark.workflow


def rows(file: Path) -> list[dict[str, str]]:
    with file.open(newline="") as lines:
        return list(csv.DictReader(lines))


def test_a_study_ends_in_tables_figures_and_a_report(finished: Workflow):
    for table in ("dataset", "accuracy", "accuracy_wide", "flips", "effects", "positions", "blind_hits"):
        assert (finished.results / f"tables/{table}.csv").stat().st_size > 0
    assert list((finished.results / "figures").glob("*.png"))
    report = (finished.results / "report.html").read_text()
    assert "semi-synthetic" in report.lower()


def test_running_everything_again_gives_the_same_tables(study: Workflow):
    before = study.tables()
    study.run("--forcerun", "make_tables", "ask_model")
    assert study.tables() == before


def test_two_runs_of_a_deterministic_reader_agree(finished: Workflow):
    one, two = (
        [row for row in rows(finished.results / "tables/accuracy.csv") if row["runs"] == runs] for runs in ("1", "2")
    )
    assert {row["dataset"] for row in one} == {"xray"}
    assert {row["dataset"] for row in two} == {"mri"}


def test_a_killed_response_job_asks_only_what_was_missing(tmp_path: Path):
    """SIGKILL of everything while the tiny reader answers; the rerun keeps what was written."""
    config = json.loads(json.dumps(SMALL))
    config["evaluations"] = [{"dataset": "xray", "models": ["tiny-reader"], "settings": ["xray", "xray-swapped"]}]
    workflow = Workflow(tmp_path / "study", config, ["tiny-reader"])
    file = workflow.model_file("tiny-reader")
    file.write_text(file.read_text().replace("batch: 64", "batch: 1"))  # slow enough to be caught in the middle
    workflow.run("trials")
    undisturbed = workflow.copy(tmp_path / "undisturbed")
    process = workflow.start()
    work = workflow.results / "work/xray/tiny-reader/xray/run-1.jsonl"
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None:
        if work.exists() and work.read_bytes().count(b"\n") >= 5:
            break
        time.sleep(0.02)
    assert process.poll() is None, "it was not caught in the middle"
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    kept = work.read_bytes().count(b"\n")
    trials = len(json.loads("[" + ",".join(work.read_text().splitlines()[:kept]) + "]"))
    assert not (workflow.results / "responses").exists()

    workflow.run("--unlock")
    workflow.run()
    asked, reused = workflow.asked("tiny-reader", "xray")
    assert reused >= min(kept, trials)
    assert asked > 0

    undisturbed.run()
    assert undisturbed.asked("tiny-reader", "xray") == (asked + reused, 0)
    assert undisturbed.tables() == workflow.tables()


def test_a_bad_file_costs_its_study_and_no_other(study: Workflow):
    source = study.results / "mri/source"
    broken = sorted(source.glob("**/*_FLAIR.nii.gz"))[1]
    broken.write_bytes(broken.read_bytes()[:2000])
    study.run()
    (row,) = rows(study.results / "mri/studies_rejected.csv")
    assert row["study"] in broken.name
    assert "FLAIR" in row["reason"]
    accuracy = rows(study.results / "tables/accuracy.csv")
    assert {row["patients"] for row in accuracy if row["dataset"] == "mri"} == {"3"}


def test_the_package_is_found_without_being_installed(study: Workflow, monkeypatch: pytest.MonkeyPatch):
    """A job's Python is told where the package lies: PYTHONPATH points at the repository."""
    monkeypatch.setenv("PYTHONPATH", "/nowhere")
    study.run("--forcerun", "choose_substitutes")


def test_the_small_study_of_the_catalogue_has_the_project_s_reader():
    own = ROOT / ".test" / "config" / "models" / "calibrated-70.yaml"
    assert own.read_bytes() == (ROOT / "config" / "models" / "calibrated-70.yaml").read_bytes()
