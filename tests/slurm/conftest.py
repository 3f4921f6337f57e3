"""A real SLURM for the tests, started and stopped by cluster.py; one test file at a time has it."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from slurm.jobs import cluster


@pytest.fixture(scope="module")
def slurm() -> Iterator[None]:
    """The cluster, up. Tests that need it fail where it can't be."""
    lacking = [name for name in ("munged", "slurmctld", "slurmd", "sbatch") if program(name) is None]
    if lacking:
        pytest.fail(f"SLURM is not installed, {', '.join(lacking)} not found: `make slurm` installs it")
    if os.geteuid() and subprocess.run(["sudo", "-n", "true"], check=False).returncode:
        pytest.fail("the daemons of SLURM need root: run the tests as root, or where sudo asks for no password")
    with Path(tempfile.gettempdir(), "overread-slurm.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        cluster("start")
        try:
            yield
        finally:
            cluster("stop")


def program(name: str) -> str | None:
    """Daemons lie where the path of a user who is not root does not lead."""
    return shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
