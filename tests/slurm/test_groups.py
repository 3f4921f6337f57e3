"""How many jobs of a rule become one job of the cluster when a checkpoint made them, and how many GPUs are used."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from slurm.jobs import Job, jobs, most_gpus_at_once
from workflow.runner import ROOT

pytestmark = [pytest.mark.slurm, pytest.mark.workflow]

GPUS = 4
"""Of the cluster: two nodes with two each."""

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


def run(folder: Path, snakefile: str, *arguments: str) -> list[Job]:
    """Run a workflow on the cluster to its end, and what jobs it took."""
    earlier = {job.id for job in jobs()}
    (folder / "Snakefile").write_text(snakefile)
    done = subprocess.run(
        [
            sys.executable, "-m", "snakemake", "--executor", "slurm", "--jobs", "10", "--latency-wait", "20",
            "--slurm-status-command", "squeue", "--slurm-init-seconds-before-status-checks", "2",
            "--default-resources", "mem_mb=600", "runtime=5", "gpu=0", *arguments,
        ],
        cwd=folder, capture_output=True, text=True, timeout=1500, check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return [job for job in jobs() if job.id not in earlier]


def test_seven_jobs_in_groups_of_three_are_three_jobs_of_the_cluster(slurm: None, tmp_path: Path):
    groups = ("--groups", "part=parts", "--group-components", "parts=3")
    found = run(tmp_path, SNAKEFILE, *groups, "--slurm-partition-config", str(ROOT / "profiles/slurm/partitions.yaml"))
    assert len(list(tmp_path.glob("parts/*.txt"))) == 7
    assert [job.state for job in found] == ["COMPLETED"] * 3


TOGETHER = f"""
localrules: all

rule all:
    input: expand("{{number}}.txt", number=range(6))

# Ends when four have begun: so four are in use at once, whatever the machine's pace.
rule compute:
    output: "{{number}}.txt"
    resources: gpu=1
    shell:
        "touch begun-{{wildcards.number}}; until [ $(ls begun-* | wc -l) -ge {GPUS} ]; do sleep 0.2; done;"
        " touch {{output}}"
"""


def test_no_more_jobs_with_gpus_run_at_once_than_there_are_gpus(slurm: None, tmp_path: Path):
    """Six ask for one; all four are in use."""
    found = run(tmp_path, TOGETHER, "--slurm-partition-config", str(ROOT / "profiles/slurm/partitions.yaml"))
    assert [(job.state, job.partition, job.gpus) for job in found] == [("COMPLETED", "gpu", 1)] * 6
    assert most_gpus_at_once(found) == GPUS
