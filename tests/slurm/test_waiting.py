"""Jobs that nobody would start, on a real SLURM: each is logged with its reason, and released or tried again.

A workflow of one small job stands for all: only how Snakemake waits for it is at issue here. Where the job must not run
at once, its first attempt asks to begin in an hour.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from slurm.jobs import PATIENCE, Job, as_root, cluster, jobs, node_is_up, until
from workflow.runner import ROOT

pytestmark = [pytest.mark.slurm, pytest.mark.workflow]

SNAKEFILE = f"""
import sys
sys.path.insert(0, {str(ROOT / "workflow")!r})
from overread.slurm import keep_waiting
if workflow.is_main_process:
    keep_waiting(sys.modules["snakemake_executor_plugin_slurm"].Executor)

localrules: all

rule all:
    input: "made.txt"

rule make:
    output: "made.txt"
    resources:
        slurm_extra=lambda wildcards, attempt: FIRST if attempt == 1 else "",
        constraint=lambda wildcards, attempt: CONSTRAINT if attempt == 1 else ""
    shell: "touch {{output}}"
"""
LATER = "--begin=now+1hour"
ATTEMPTS = 100
"""More than can be used up while the test puts right what was wrong."""


class Waiting:
    """Snakemake, waiting for the one job."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.earlier = folder, {job.id for job in jobs()}
        self.log = folder / "said.txt"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, first: str = "", constraint: str = "") -> None:
        """With more options of the first attempt's job."""
        (self.folder / "Snakefile").write_text(f"FIRST = {first!r}\nCONSTRAINT = {constraint!r}\n{SNAKEFILE}")
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [
                    sys.executable, "-m", "snakemake", "--executor", "slurm", "--jobs", "10", "--latency-wait", "20",
                    "--retries", str(ATTEMPTS), "--slurm-status-command", "squeue",
                    "--slurm-init-seconds-before-status-checks", "2", "--seconds-between-status-checks", "2",
                    "--default-resources", "mem_mb=600", "runtime=5", "slurm_partition=gpu",
                ],
                cwd=self.folder, stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip

    @property
    def said(self) -> str:
        return self.log.read_text()

    @property
    def jobs(self) -> list[Job]:
        return [job for job in jobs() if job.id not in self.earlier]

    def until_pending(self) -> Job:
        until(lambda: self.jobs != [], "the job's submission")
        assert [job.state for job in self.jobs] == ["PENDING"]
        return self.jobs[0]

    def until_logged(self, words: str) -> None:
        until(lambda: words in self.said or self.ended, f"Snakemake's saying {words!r}")
        assert words in self.said, self.said

    @property
    def ended(self) -> bool:
        assert self.process is not None
        return self.process.poll() is not None

    def states(self) -> list[str]:
        """Of all its jobs, when Snakemake has ended well."""
        assert self.process is not None
        assert self.process.wait(timeout=PATIENCE) == 0, self.said
        return [job.state for job in self.jobs]


@pytest.fixture
def waiting(slurm: None, repetition: int, tmp_path: Path) -> Iterator[Waiting]:
    snakemake = Waiting(tmp_path)
    try:
        yield snakemake
    finally:
        if snakemake.process is not None and not snakemake.ended:
            os.killpg(snakemake.process.pid, signal.SIGKILL)
            snakemake.process.wait()
        cluster("repair")


def test_a_job_that_its_owner_holds_is_cancelled_and_tried_again(waiting: Waiting):
    waiting.start("--hold")
    assert waiting.states() == ["CANCELLED", "COMPLETED"]
    first, _ = waiting.jobs
    assert waiting.said.count(f"SLURM job {first.id} does not start: its owner holds it (JobHeldUser)") == 1
    assert waiting.said.count(f"SLURM job {first.id} would never have started") == 1
    assert f"`scontrol release {first.id}`" in waiting.said


def test_a_job_that_an_administrator_holds_is_cancelled_and_tried_again(waiting: Waiting):
    waiting.start(LATER)
    first = waiting.until_pending()
    as_root("scontrol", "hold", first.id)
    assert waiting.states() == ["CANCELLED", "COMPLETED"]
    assert f"SLURM job {first.id} does not start: an administrator holds it (JobHeldAdmin)" in waiting.said


def test_a_partition_that_is_down_is_told_and_tried_again_until_it_is_up(waiting: Waiting):
    as_root("scontrol", "update", "partitionname=gpu", "state=down")
    waiting.start()
    waiting.until_logged("its partition starts no jobs (PartitionDown)")
    waiting.until_logged("would never have started")
    as_root("scontrol", "update", "partitionname=gpu", "state=up")
    *before, last = waiting.states()
    assert before and set(before) == {"CANCELLED"} and last == "COMPLETED"


def test_a_partition_whose_nodes_are_all_drained_is_told_and_tried_again_until_one_is_back(waiting: Waiting):
    as_root("scontrol", "update", "nodename=n1,n2", "state=drain", "reason=test")
    waiting.start()
    waiting.until_logged("all nodes of its partition are down or drained")
    waiting.until_logged("would never have started")
    as_root("scontrol", "update", "nodename=n2", "state=resume")
    *before, last = waiting.states()
    assert before and set(before) == {"CANCELLED"} and last == "COMPLETED"
    assert waiting.jobs[-1].nodes == "n2"


def test_a_job_that_no_node_can_serve_is_told_and_tried_again(waiting: Waiting):
    """The nodes lose what it asks for while it waits: SLURM refuses a job that could not run when it is submitted."""
    as_root("scontrol", "update", "nodename=n1,n2", "availablefeatures=h100")
    as_root("scontrol", "update", "nodename=n1,n2", "activefeatures=h100")
    waiting.start(LATER, constraint="h100")
    first = waiting.until_pending()
    as_root("scontrol", "update", "nodename=n1,n2", "activefeatures=l40s", "availablefeatures=l40s")
    as_root("scontrol", "update", f"jobid={first.id}", "starttime=now")
    assert waiting.states() == ["CANCELLED", "COMPLETED"]
    assert f"SLURM job {first.id} does not start: no node has what it asks for (BadConstraints)" in waiting.said


def test_a_job_that_its_node_can_not_launch_is_released_once_and_runs(waiting: Waiting):
    waiting.start(f"{LATER} -w n1")
    first = waiting.until_pending()
    cluster("spoil-launch", "n1", first.id)
    as_root("scontrol", "update", f"jobid={first.id}", "starttime=now")
    waiting.until_logged("It was released, once.")
    cluster("mend-launch", "n1", first.id)
    assert waiting.states() == ["COMPLETED"]
    assert f"SLURM job {first.id} does not start: SLURM could not launch it" in waiting.said
    assert "launch failed requeued held" in waiting.said


def test_a_job_that_its_node_can_not_launch_twice_is_cancelled_and_tried_again(waiting: Waiting):
    waiting.start(f"{LATER} -w n1")
    first = waiting.until_pending()
    cluster("spoil-launch", "n1", first.id)
    as_root("scontrol", "update", f"jobid={first.id}", "starttime=now")
    waiting.until_logged("It was released, once.")
    until(lambda: node_is_up("n1"), "the node's taking jobs again")
    assert waiting.states() == ["CANCELLED", "COMPLETED"]
    assert waiting.said.count("It was released, once.") == 1


def test_a_job_that_slurm_no_longer_knows_is_tried_again(waiting: Waiting):
    """The controller comes back without its records, and counts jobs anew: the next attempt may have an old number."""
    waiting.start(LATER)
    first = waiting.until_pending()
    cluster("stop-controller")
    cluster("start-controller", "-c")
    waiting.earlier = set()
    until(lambda: "no longer knows it" in waiting.said, "Snakemake's finding that out")
    assert waiting.states()[-1:] == ["COMPLETED"]
    assert f"SLURM job {first.id} does not start: SLURM no longer knows it" in waiting.said
    assert f"SLURM job {first.id}: SLURM no longer knows it" in waiting.said
