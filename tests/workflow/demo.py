"""The demo study, run once by the local profile for all tests that look at its results."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from workflow.runner import ROOT


def local_demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's results. The first test that asks for them makes them; others, in other processes too, wait for it."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder = shared / "local-demo"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        # Where they are there already this ends at once; where the first attempt failed it says so again.
        return run_locally(folder, ROOT / "config/demo.yaml")


def run_locally(folder: Path, config: Path) -> Path:
    """The results of a study that the local profile has run in a folder."""
    done = subprocess.run(
        [
            sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "Snakefile"), "--directory", str(folder),
            "--profile", str(ROOT / "profiles/local"), "--configfile", str(config), "--rerun-triggers", "mtime",
        ],
        capture_output=True, text=True, timeout=3600, check=False, env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "results" / "demo"
