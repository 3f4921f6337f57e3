"""Snakemake stays with its jobs while SLURM's controller does not answer."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from overread import slurm


class Plugin:
    """The plugin's executor, as far as it matters: it yields the jobs that go on, and reports those that have ended."""

    def __init__(self, answers: bool) -> None:
        self.answers, self.wait, self.run_uuid = answers, True, "run"
        self.next_seconds_between_status_checks = 0
        self.workflow = SimpleNamespace(remote_execution_settings=SimpleNamespace(seconds_between_status_checks=60))
        self.logger = logging.getLogger("plugin")
        self.reported: list[tuple[str, str]] = []
        self.submitted: list[str] = []

    async def check_active_jobs(self, active_jobs: Sequence[str]) -> AsyncIterator[str]:
        self.next_seconds_between_status_checks += 25
        if self.answers:
            for job in active_jobs:
                if job.startswith("done"):
                    self.report_job_success(job)
                elif job.startswith("failed"):
                    self.report_job_error(job, msg="failed")
                else:
                    yield job

    def report_job_success(self, job_info: str) -> None:
        self.reported.append((job_info, "success"))

    def report_job_error(self, job_info: str, msg: str | None = None) -> None:
        self.reported.append((job_info, "error"))

    def run_job(self, job: Any) -> None:
        self.submitted.append(job.jobid)


@pytest.fixture
def plugin() -> type[Plugin]:
    """A class of its own for each test, since it is changed."""
    changed: Any = type("Changed", (Plugin,), dict(vars(Plugin)))
    slurm.keep_waiting(changed)
    return changed


@pytest.fixture(autouse=True)
def no_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is known of why jobs wait: test_slurm_waiting.py is about that."""
    monkeypatch.setattr(slurm, "ask", lambda *command: None)


def still_active(executor: Plugin, jobs: Sequence[str]) -> list[str]:
    async def ask() -> list[str]:
        return [job async for job in executor.check_active_jobs(jobs)]

    return asyncio.run(ask())


JOBS = ("running-1", "done-1", "failed-1", "running-2")


def test_without_it_all_jobs_are_forgotten_when_nothing_is_known():
    assert still_active(Plugin(answers=False), JOBS) == []


def test_all_jobs_are_kept_when_nothing_is_known(plugin: type[Plugin]):
    executor = plugin(answers=False)
    assert still_active(executor, JOBS) == list(JOBS)
    assert executor.reported == []


def test_a_job_that_has_ended_is_reported_once_and_not_asked_for_again(plugin: type[Plugin]):
    executor = plugin(answers=True)
    assert still_active(executor, JOBS) == ["running-1", "running-2"]
    assert executor.reported == [("done-1", "success"), ("failed-1", "error")]


def test_what_ended_in_an_earlier_round_is_not_left_out_of_a_later_one(plugin: type[Plugin]):
    """A new job may lie where an old one lay in memory."""
    executor = plugin(answers=True)
    still_active(executor, JOBS)
    executor.answers = False
    assert still_active(executor, ("done-1",)) == ["done-1"]


def test_the_state_is_asked_at_least_as_often_as_the_profile_says(plugin: type[Plugin]):
    """The plugin waits longer at every check: 25 s more here."""
    executor, waits = plugin(answers=True), []
    for _ in range(4):
        still_active(executor, JOBS)
        waits.append(executor.next_seconds_between_status_checks)
    assert waits == [25, 50, 60, 60]


class Named:
    jobid = "7"


def test_a_job_is_submitted_when_the_controller_answers_again(plugin: type[Plugin], monkeypatch: pytest.MonkeyPatch):
    answers = iter([False, False, True])
    slept: list[float] = []
    monkeypatch.setattr(slurm, "answers", lambda: next(answers))
    monkeypatch.setattr(slurm.time, "sleep", slept.append)
    executor = plugin(answers=True)
    executor.run_job(Named())
    assert executor.submitted == ["7"]
    assert slept == [slurm.PAUSE] * 2


def test_nothing_waits_for_the_controller_once_snakemake_ends(plugin: type[Plugin], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(slurm, "answers", lambda: False)
    executor = plugin(answers=True)
    executor.wait = False
    executor.run_job(Named())
    assert executor.submitted == ["7"]


def test_a_class_is_changed_once(plugin: type[Plugin]):
    before = plugin.check_active_jobs
    slurm.keep_waiting(plugin)
    assert plugin.check_active_jobs is before


def test_the_plugin_that_is_installed_has_what_is_changed():
    from snakemake_executor_plugin_slurm import Executor

    for name in ("check_active_jobs", "run_job", "report_job_success", "report_job_error"):
        assert callable(getattr(Executor, name))
