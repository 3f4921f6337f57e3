"""What SLURM says about jobs, and what an administrator does to them."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

CLUSTER = Path(__file__).with_name("cluster.py")
PATIENCE = 900.0
"""Seconds for what comes about within ninety on two busy cores."""
ENDED = {"COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "OUT_OF_MEMORY", "NODE_FAIL"}


@dataclass(frozen=True)
class Job:
    """A job of the cluster.

    what      rule or group, with the wildcards' values
    gpus      how many it asked for and, while it runs, has
    restarts  how often SLURM started it again
    start, end  of its last run; None before
    """

    id: str
    what: str
    state: str
    partition: str
    nodes: str
    gpus: int
    memory: str
    limit: str
    restarts: int
    out: Path
    start: datetime | None
    end: datetime | None

    def about(self, word: str) -> bool:
        return word in self.what.split("_")


def jobs() -> list[Job]:
    """All jobs since the cluster's start, in their order."""
    said = subprocess.run(["scontrol", "--oneliner", "show", "job"], capture_output=True, text=True, check=True).stdout
    return [job_of(line) for line in said.splitlines() if line.startswith("JobId=")]


def job_of(line: str) -> Job:
    fields = dict(part.split("=", 1) for part in line.split() if "=" in part)
    asked = fields.get("TresPerJob", "")
    return Job(
        id=fields["JobId"],
        what=fields.get("Comment", ""),
        state=fields["JobState"],
        partition=fields["Partition"],
        nodes=fields["NodeList"],
        gpus=int(asked.rsplit(":", 1)[1]) if asked.startswith("gres:gpu") else 0,
        memory=fields["MinMemoryNode"],
        limit=fields["TimeLimit"],
        restarts=int(fields["Restarts"]),
        out=Path(fields["StdOut"]),
        start=time_of(fields["StartTime"]),
        end=time_of(fields["EndTime"]),
    )


def time_of(said: str) -> datetime | None:
    return None if said in ("Unknown", "N/A") else datetime.fromisoformat(said)


def most_gpus_at_once(found: list[Job]) -> int:
    """From when the jobs ran: the most GPUs that were asked for by jobs running in one moment."""
    ran = [job for job in found if job.gpus and job.start is not None and job.end is not None]
    moments = [job.start for job in ran]
    return max(sum(job.gpus for job in ran if job.start <= moment < job.end) for moment in moments)  # type: ignore[operator]


def node_states(name: str) -> set[str]:
    """As sinfo writes them, one a partition."""
    said = subprocess.run(["sinfo", "-h", "-N", "-n", name, "-o", "%T"], capture_output=True, text=True, check=True)
    return set(said.stdout.split())


def node_is_up(name: str) -> bool:
    """Whether a node takes jobs; one that is down is told to."""
    up = not {"down", "down*", "drained", "draining"} & node_states(name)
    if not up:
        with suppress(subprocess.CalledProcessError):  # it may have come back by itself in between
            as_root("scontrol", "update", f"nodename={name}", "state=resume")
    return up


def nothing_to_tell() -> bool:
    """Whether the controller has no message for a node on its way, nor one to be sent again."""
    said = subprocess.run(["sdiag"], capture_output=True, text=True, check=True).stdout
    counts = dict(line.split(":", 1) for line in said.splitlines() if line.startswith("Agent"))
    return {counts["Agent queue size"].strip(), counts["Agent count"].strip()} == {"0"}


def as_root(*command: str) -> None:
    subprocess.run([*(["sudo", "-n"] if os.geteuid() else []), *command], check=True, timeout=PATIENCE)


def cluster(*command: str) -> None:
    """A command of cluster.py."""
    as_root(sys.executable, str(CLUSTER), *command)


def until(what: Callable[[], bool], said: str, seconds: float = PATIENCE) -> None:
    """Wait for something to be true; an AssertionError if it does not come about."""
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, f"it did not come about in {seconds:.0f} s: {said}"
        time.sleep(0.2)
