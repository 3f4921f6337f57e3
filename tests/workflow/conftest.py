"""A small finished study, and copies of it to be changed."""

from __future__ import annotations

import fcntl
import os
import shutil
from pathlib import Path

import pytest

from workflow.runner import SMALL, Workflow


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Workflow:
    """The small study, run to its end, once for all workers. Copy it before changing it."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "small-study"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "done").exists():
            shutil.rmtree(folder / "study", ignore_errors=True)
            Workflow(folder / "study", SMALL, ["calibrated-70", "calibrated-first-option"]).run()
            (folder / "done").touch()
    return Workflow.of(folder / "study")


@pytest.fixture
def study(finished: Workflow, tmp_path: Path) -> Workflow:
    """A copy of the finished small study, with its times and Snakemake's records, to be changed."""
    return finished.copy(tmp_path / "study")
