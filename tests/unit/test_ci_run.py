"""What CI runs: the tests and the short benchmarks, each of which can fail it; its last line is that of the tests."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

MAKE = """#!/bin/sh
echo "$@ CI=$CI" >> called
case $1 in
  test) echo "=== 3 passed, 1 failed in 2.50s ==="; echo "make: done"; exit $TESTS;;
  bench) echo "9 passed in 1.00s"; exit $BENCHMARKS;;
esac
"""


@pytest.mark.parametrize(("tests", "benchmarks", "status"), [(0, 0, 0), (2, 0, 2), (0, 2, 2), (1, 2, 1)])
def test_both_count_and_the_last_line_is_that_of_the_tests(tmp_path: Path, tests: int, benchmarks: int, status: int):
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "run", tmp_path / ".ci" / "run")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "make").write_text(MAKE)
    (tmp_path / "bin" / "make").chmod(0o755)
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "TESTS": str(tests), "BENCHMARKS": str(benchmarks)}
    done = subprocess.run(
        ["bash", tmp_path / ".ci" / "run"], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == status
    assert done.stdout.splitlines()[-1] == "=== 3 passed, 1 failed in 2.50s ==="
    assert ("The benchmarks have failed" in done.stdout) == bool(benchmarks)
    assert (tmp_path / "called").read_text().splitlines() == ["test CI=true", "bench QUICK=1 CI=true"]
