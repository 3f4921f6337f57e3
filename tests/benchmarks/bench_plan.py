"""Planning the papers' study, grown: against what Snakemake needs for an empty workflow, and when it doubles."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from benchmarks.conftest import Bench
from data.big_study import BigStudy


def processor_seconds(command: list[str], folder: Path) -> float:
    with (folder / "out.txt").open("w") as out:
        process = subprocess.Popen(command, cwd=folder, stdout=out, stderr=subprocess.STDOUT)
        _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, (folder / "out.txt").read_text()[-2000:]
    return used.ru_utime + used.ru_stime


def bench_planning(bench: Bench, tmp_path: Path) -> None:
    studies = bench.size(500, 60)
    planned = []
    for size in (studies // 2, studies):
        study = BigStudy(tmp_path / str(size), studies=size, models=bench.size(12, 3), settings=8, runs=3)
        study.read_studies()
        planned.append(study.plan())
    (tmp_path / "Snakefile").write_text("rule all:\n    output: 'x'\n    shell: 'touch x'\n")
    empty = processor_seconds([sys.executable, "-m", "snakemake", "-n", "--cores", "1"], tmp_path)
    jobs = [sum(one.jobs.values()) for one in planned]
    bench.measured(
        f"planning {jobs[1]} jobs, per job", planned[1].seconds / jobs[1], f"planning {jobs[0]} jobs, per job",
        planned[0].seconds / jobs[0], expected=1.0, limit=None,
    )  # fmt: skip
    bench.measured(
        f"planning {jobs[1]} jobs", planned[1].seconds, "an empty Snakefile", empty,
        expected=empty / planned[1].seconds,
    )  # fmt: skip
