"""A job that nobody will start is not waited for: it is logged at one check, and failed at the next."""

from __future__ import annotations

import asyncio
import logging
import tomllib
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from overread import slurm
from overread.slurm import Queued, obstacle


class Cluster:
    """A stand-in for SLURM's commands: its queue, its partitions' nodes, its accounting, and what was done to jobs."""

    def __init__(self) -> None:
        self.queue: dict[str, str] = {}
        self.nodes = "idle\nmixed"
        self.accounting: dict[str, str] = {}
        self.releasable, self.answers = True, True
        self.done: list[tuple[str, ...]] = []

    def ask(self, *command: str) -> str | None:
        if not self.answers:
            return None
        match command[0]:
            case "squeue":
                assert "--name=run" in command and "--states=all" in command
                return "".join(f"{job}|{said}\n" for job, said in self.queue.items())
            case "sinfo":
                assert "--partition=gpu" in command
                return self.nodes
            case "sacct":
                job = command[-1].removeprefix("--jobs=")
                return f"{job}|{self.accounting[job]}\n" if job in self.accounting else ""
        self.done.append(command)
        if command[1] == "release":
            return "" if self.releasable else None
        return ""


class Executor:
    """The plugin's, as far as it matters: it gives every job back that is not known to have ended."""

    def __init__(self) -> None:
        self.logger = logging.getLogger("executor")
        self.run_uuid = "run"
        self.next_seconds_between_status_checks = 10
        self.workflow = SimpleNamespace(remote_execution_settings=SimpleNamespace(seconds_between_status_checks=60))
        self.failed: list[tuple[str, str, list[str]]] = []

    async def check_active_jobs(self, active_jobs: Sequence[Any]) -> AsyncIterator[Any]:
        for job in active_jobs:
            yield job

    def report_job_success(self, job: Any) -> None: ...

    def report_job_error(self, job: Any, msg: str, aux_logs: list[str]) -> None:
        self.failed.append((job.external_jobid, msg, aux_logs))

    def run_job(self, job: Any) -> None: ...


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    stand_in = Cluster()
    monkeypatch.setattr(slurm, "ask", stand_in.ask)
    return stand_in


@pytest.fixture
def executor() -> Executor:
    changed: Any = type("Changed", (Executor,), dict(vars(Executor)))
    slurm.keep_waiting(changed)
    return changed()


def check(executor: Executor, *jobs: str) -> list[str]:
    """One check; the jobs that are still waited for."""

    async def ask() -> list[str]:
        waiting = [SimpleNamespace(external_jobid=job, aux={"slurm_logfile": Path(f"{job}.log")}) for job in jobs]
        return [job.external_jobid async for job in executor.check_active_jobs(waiting)]  # type: ignore[arg-type]

    return asyncio.run(ask())


HOPELESS = (
    "JobHeldAdmin", "JobHeldUser", "JobHoldMaxRequeue", "job requeued in held state", "BadConstraints", "PartitionDown",
    "PartitionInactive", "PartitionTimeLimit", "PartitionNodeLimit", "PartitionConfig", "InvalidAccount", "InvalidQOS",
    "QOSNotAllowed", "AccountNotAllowed", "DependencyNeverSatisfied", "ReservationDeleted", "AssocGrpCPUMinutesLimit",
    "AssocGrpGRESMinutes", "AssocGrpBillingMinutes", "QOSGrpCPUMinutesLimit", "AssocGrpWallLimit", "QOSGrpWallLimit",
    "AssocMaxCpuPerJobLimit", "AssocMaxGRESPerJob", "AssocMaxWallDurationPerJobLimit", "QOSMaxMemoryPerJob",
    "QOSMaxWallDurationPerJobLimit", "QOSMaxCpuMinutesPerJobLimit", "QOSMinGRES", "QOSMinCpuNotSatisfied",
)  # fmt: skip
PASSING = (
    "None", "Priority", "Resources", "Dependency", "BeginTime", "Licenses", "Reservation", "Prolog", "Cleaning",
    "JobArrayTaskLimit", "ReqNodeNotAvail, Reserved for maintenance", "ReqNodeNotAvail, UnavailableNodes:n2",
    "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions", "FrontEndDown",
)  # fmt: skip
LIMITED = (
    "AssocGrpCpuLimit", "AssocGrpGRES", "AssocGrpJobsLimit", "AssocGrpCPURunMinutesLimit", "AssocMaxJobsLimit",
    "QOSMaxJobsPerUserLimit", "QOSMaxGRESPerUser", "QOSGrpNodeLimit", "QOSGrpGRESRunMinutes", "QOSMaxCpuPerUserLimit",
)  # fmt: skip


@pytest.mark.parametrize("reason", HOPELESS)
def test_what_can_not_pass_by_itself_is_logged_at_the_first_check_and_failed_at_the_second(
    cluster: Cluster, executor: Executor, caplog: pytest.LogCaptureFixture, reason: str
):
    cluster.queue = {"7": f"PENDING|gpu|{reason}", "8": "RUNNING|gpu|None"}
    assert check(executor, "7", "8") == ["7", "8"]
    assert executor.failed == [] and cluster.done == []
    (line,) = caplog.messages
    assert line.startswith("SLURM job 7 does not start: ")
    assert f"({reason})" in line and "What to do: " in line and "{" not in line
    assert check(executor, "7", "8") == ["8"]
    assert cluster.done == [("scancel", "7")]
    ((job, said, logs),) = executor.failed
    assert (job, logs) == ("7", ["7.log"])
    assert f"({reason})" in said and "What to do: " in said
    assert len(caplog.messages) == 1


@pytest.mark.parametrize("reason", PASSING)
def test_what_passes_by_itself_is_waited_for_in_silence(
    cluster: Cluster, executor: Executor, caplog: pytest.LogCaptureFixture, reason: str
):
    cluster.queue = {"7": f"PENDING|gpu|{reason}"}
    for _ in range(5):
        assert check(executor, "7") == ["7"]
    assert (executor.failed, cluster.done, caplog.messages) == ([], [], [])


@pytest.mark.parametrize("reason", LIMITED)
def test_a_limit_on_what_runs_at_once_is_logged_once_and_waited_for(
    cluster: Cluster, executor: Executor, caplog: pytest.LogCaptureFixture, reason: str
):
    cluster.queue = dict.fromkeys("789", f"PENDING|gpu|{reason}")
    for _ in range(5):
        assert check(executor, "7", "8", "9") == ["7", "8", "9"]
    (line,) = caplog.messages
    assert "jobs 7, 8, 9" in line and reason in line
    assert (executor.failed, cluster.done) == ([], [])


@pytest.mark.parametrize("reason", PASSING[-3:-1])
def test_a_partition_without_a_usable_node_is_not_waited_for(cluster: Cluster, executor: Executor, reason: str):
    cluster.queue = {"7": f"PENDING|gpu|{reason}"}
    cluster.nodes = "drained\ndown*\ndraining"
    assert check(executor, "7") == ["7"]
    assert check(executor, "7") == []
    assert "down or drained" in executor.failed[0][1]


@pytest.mark.parametrize("states", ["down\nidle", "drained\nallocated", "maint", "idle~", "reserved", ""])
def test_one_node_that_may_serve_is_enough(cluster: Cluster, states: str):
    cluster.nodes = states
    assert obstacle(Queued("PENDING", "gpu", "ReqNodeNotAvail, UnavailableNodes:n[1-2]")) is None


LAUNCH = "PENDING|gpu|launch failed requeued held"


def test_a_job_that_could_not_be_launched_is_released_once_and_goes_on(
    cluster: Cluster, executor: Executor, caplog: pytest.LogCaptureFixture
):
    cluster.queue = {"7": LAUNCH}
    assert check(executor, "7") == ["7"]
    assert cluster.done == [("scontrol", "release", "7")]
    assert "released, once" in caplog.text
    cluster.queue = {"7": "RUNNING|gpu|None"}
    assert check(executor, "7") == ["7"]
    assert (len(cluster.done), executor.failed) == (1, [])


def test_held_again_it_is_cancelled_and_tried_again(cluster: Cluster, executor: Executor):
    """Even after having run in between."""
    cluster.queue = {"7": LAUNCH}
    check(executor, "7")
    cluster.queue = {"7": "RUNNING|gpu|None"}
    check(executor, "7")
    cluster.queue = {"7": LAUNCH}
    assert check(executor, "7") == ["7"]
    assert check(executor, "7") == []
    assert cluster.done == [("scontrol", "release", "7"), ("scancel", "7")]


def test_one_that_may_not_be_released_is_cancelled_at_the_next_check(
    cluster: Cluster, executor: Executor, caplog: pytest.LogCaptureFixture
):
    cluster.queue, cluster.releasable = {"7": LAUNCH}, False
    assert check(executor, "7") == ["7"]
    assert "can't be released" in caplog.text
    assert check(executor, "7") == []
    assert len(executor.failed) == 1


def test_a_hold_that_is_lifted_in_between_counts_from_the_beginning(cluster: Cluster, executor: Executor):
    for reason in ("JobHeldAdmin", "Priority", "JobHeldAdmin", "PartitionDown", "Resources"):
        cluster.queue = {"7": f"PENDING|gpu|{reason}"}
        assert check(executor, "7") == ["7"]
    assert (executor.failed, cluster.done) == ([], [])


def test_a_job_that_slurm_no_longer_knows_is_failed_at_the_second_check(
    cluster: Cluster, executor: Executor, caplog: pytest.LogCaptureFixture
):
    assert check(executor, "7") == ["7"]
    assert "no longer knows it" in caplog.text
    assert check(executor, "7") == []
    assert cluster.done == [], "what is not there is not cancelled"
    assert "no longer knows it" in executor.failed[0][1]


def test_a_job_that_the_accounting_knows_is_left_to_the_plugin(cluster: Cluster, executor: Executor):
    """With sacct the plugin waits for its state; squeue forgets jobs some minutes after their end."""
    cluster.accounting = {"7": "RUNNING"}
    for _ in range(3):
        assert check(executor, "7") == ["7"]
    assert executor.failed == []


def test_tasks_of_arrays_and_jobs_of_other_clusters_are_left_to_the_plugin(cluster: Cluster, executor: Executor):
    for _ in range(3):
        assert check(executor, "7_1") == ["7_1"]
    executor._submitted_job_clusters = {"other"}  # type: ignore[attr-defined]
    for _ in range(3):
        assert check(executor, "7") == ["7"]
    assert executor.failed == []


def test_a_queue_that_does_not_answer_says_nothing_about_jobs(cluster: Cluster, executor: Executor):
    cluster.answers = False
    for _ in range(3):
        assert check(executor, "7") == ["7"]
    assert executor.failed == []


def test_many_jobs_of_one_reason_are_one_line(cluster: Cluster, executor: Executor, caplog: pytest.LogCaptureFixture):
    cluster.queue = {str(job): "PENDING|gpu|PartitionDown" for job in range(50)}
    assert len(check(executor, *map(str, range(50)))) == 50
    assert len(caplog.messages) == 1
    assert check(executor, *map(str, range(50))) == []
    assert len(executor.failed) == 50


def test_a_command_that_fails_hangs_or_is_not_there_is_no_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def program(name: str, text: str) -> None:
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)

    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(slurm, "PATIENCE", 0.5)
    program("squeue", "echo '7|PENDING|gpu|ReqNodeNotAvail, UnavailableNodes:n[1-2] (a|b) '")
    assert slurm.queue("run") == {"7": Queued("PENDING", "gpu", "ReqNodeNotAvail, UnavailableNodes:n[1-2] (a|b)")}
    program("squeue", "echo '7|PENDING|gpu|None'; exit 1")
    assert slurm.queue("run") is None
    program("squeue", "exec sleep 30")
    assert slurm.queue("run") is None
    assert slurm.ask("no-such-command") is None


def test_the_versions_that_are_changed_are_those_that_are_pinned_and_installed(capsys: pytest.CaptureFixture[str]):
    project = tomllib.loads(Path(__file__).parents[2].joinpath("pyproject.toml").read_text())["project"]
    pins = dict(pin.split("==") for pin in project["optional-dependencies"]["workflow"])
    assert {name: pins[name] for name in slurm.PATCHED} == slurm.PATCHED
    slurm.warn_of_other_versions()
    assert capsys.readouterr().err == ""


def test_any_other_version_is_told_loudly(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setattr(slurm, "version", lambda package: "10.0.0")
    changed: Any = type("Changed", (Executor,), dict(vars(Executor)))
    slurm.keep_waiting(changed)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == len(slurm.PATCHED)
    for line, (package, wanted) in zip(lines, slurm.PATCHED.items(), strict=True):
        assert line.startswith(f"WARNING: {package} is 10.0.0") and f"`pip install {package}=={wanted}`" in line
