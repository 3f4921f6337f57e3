"""How many jobs of one rule become one job of the cluster, when a checkpoint has made them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from slurm.jobs import jobs
from workflow.runner import ROOT

pytestmark = [pytest.mark.slurm, pytest.mark.workflow]

SNAKEFILE = f"""
import sys
sys.path.insert(0, {str(ROOT / "workflow")!r})
from overread.slurm import group_afresh
if workflow.is_main_process:
    group_afresh(sys.modules["snakemake.dag"].DAG)

localrules: all, read, gather

rule all:
    input: "all.txt"

checkpoint read:
    output: "read/{{name}}.txt"
    shell: "touch {{output}}"

def parts(wildcards):
    for name in "ab":
        checkpoints.read.get(name=name)
    return expand("parts/{{number}}.txt", number=range(7))

rule gather:
    input: parts
    output: "all.txt"
    shell: "touch {{output}}"

rule part:
    output: "parts/{{number}}.txt"
    shell: "touch {{output}}"
"""


def test_seven_jobs_in_groups_of_three_are_three_jobs_of_the_cluster(slurm: None, tmp_path: Path):
    (tmp_path / "Snakefile").write_text(SNAKEFILE)
    done = subprocess.run(
        [
            sys.executable, "-m", "snakemake", "--executor", "slurm", "--jobs", "10", "--latency-wait", "20",
            "--groups", "part=parts", "--group-components", "parts=3", "--slurm-status-command", "squeue",
            "--slurm-init-seconds-before-status-checks", "2",
            "--default-resources", "mem_mb=600", "runtime=5", "slurm_partition=cpu",
        ],
        cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(list(tmp_path.glob("parts/*.txt"))) == 7
    assert [job.state for job in jobs()] == ["COMPLETED"] * 3
