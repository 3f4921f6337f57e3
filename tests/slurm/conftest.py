"""A real SLURM for the tests, started and stopped by cluster.py; one test file at a time has it."""

from __future__ import annotations

import fcntl
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from slurm.jobs import cluster


@pytest.fixture(scope="module")
def slurm() -> Iterator[None]:
    """The cluster, up."""
    with Path(tempfile.gettempdir(), "overread-slurm.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        cluster("start")
        try:
            yield
        finally:
            cluster("stop")


@pytest.fixture
def repetition() -> int:
    """Which time it is that a scenario is gone through; `--times` repeats it."""
    return 1


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    times = metafunc.config.getoption("--times")
    if "repetition" in metafunc.fixturenames and times > 1:
        metafunc.parametrize("repetition", range(1, times + 1))
