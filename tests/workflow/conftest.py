"""A small finished study, and copies of it to be changed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from workflow.runner import SMALL, Workflow


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Workflow:
    """The small study, run to its end. Copy it before changing it."""
    workflow = Workflow(tmp_path_factory.mktemp("study"), SMALL, ["calibrated-70", "calibrated-first-option"])
    workflow.run()
    return workflow


@pytest.fixture
def study(finished: Workflow, tmp_path: Path) -> Workflow:
    """A copy of the finished small study, with its times and Snakemake's records, to be changed."""
    shutil.copytree(finished.folder, tmp_path / "study", symlinks=True)
    copy = object.__new__(Workflow)
    copy.folder = tmp_path / "study"
    copy.config_file = copy.folder / "config" / "study.yaml"
    return copy
