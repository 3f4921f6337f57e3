"""What Snakemake and its SLURM plugin lack: patience with a controller that is away, and groups that stay small.

Version 2.8.0 of the plugin forgets all jobs that it waits for when five questions in a row about their state fail.
Where there is no accounting database, one question at the wrong moment is enough, and Snakemake then waits for ever.
And a job that can't be submitted counts as failed. A controller that is restarted or cut off for a while is no reason
for either. The plugin's class is given to the functions, so that nothing of Snakemake is imported here.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import AsyncIterator, Sequence
from functools import wraps
from typing import Any

PAUSE = 10.0
"""Seconds before a controller that did not answer is asked again."""


def keep_waiting(executor: type[Any]) -> None:
    """Change the plugin's executor class: jobs whose state can't be asked stay jobs, and are submitted later."""
    if getattr(executor, "keeps_waiting", False):
        return
    executor.keeps_waiting = True
    executor.check_active_jobs = _still_active(executor.check_active_jobs)
    executor.run_job = _when_it_answers(executor.run_job)
    for report in ("report_job_success", "report_job_error"):
        setattr(executor, report, _noted(getattr(executor, report)))


def group_afresh(dag: type[Any]) -> None:
    """Change Snakemake's class of the DAG: what was put into groups before is forgotten when groups are formed.

    Snakemake 9.27.1 keeps the groups that it has merged by `group-components`, and merges them once more each time that
    it forms groups, as it does after every checkpoint: in the end all studies were one job. No group of such a kind may
    be at work when that happens: `view_indices` sees to it.
    """
    if getattr(dag, "groups_afresh", False):
        return
    dag.groups_afresh = True
    form = dag.update_groups

    @wraps(form)
    def update_groups(self: Any) -> None:
        settings = self.workflow.group_settings
        made = self.group_job_factory.cache
        for group, jobs in list(made):
            parent = self.workflow.parent_groupids.get(group, group)
            if settings.group_components.get(parent, 1) > 1:
                del made[group, jobs]
        form(self)

    dag.update_groups = update_groups


def _still_active(check: Any) -> Any:
    """Jobs that are neither reported nor given back are given back."""

    @wraps(check)
    async def check_active_jobs(self: Any, active_jobs: Sequence[Any]) -> AsyncIterator[Any]:
        self.ended = set()
        given_back = set()
        async for job in check(self, active_jobs):
            given_back.add(id(job))
            yield job
        left = [job for job in active_jobs if id(job) not in given_back | self.ended]
        if left:
            self.logger.warning(f"SLURM does not say what became of {len(left)} jobs: they are asked for again later.")
        for job in left:
            yield job
        # The plugin asks ever more rarely, up to every 3 minutes.
        most = self.workflow.remote_execution_settings.seconds_between_status_checks
        self.next_seconds_between_status_checks = min(self.next_seconds_between_status_checks, most)

    return check_active_jobs


def _noted(report: Any) -> Any:
    @wraps(report)
    def noted(self: Any, job_info: Any, *arguments: Any, **named: Any) -> Any:
        if hasattr(self, "ended"):
            self.ended.add(id(job_info))
        return report(self, job_info, *arguments, **named)

    return noted


def _when_it_answers(run: Any) -> Any:
    @wraps(run)
    def run_job(self: Any, job: Any) -> Any:
        while self.wait and not answers():
            self.logger.warning(f"SLURM does not answer: job {job.jobid} is submitted when it does.")
            time.sleep(PAUSE)
        return run(self, job)

    return run_job


def answers() -> bool:
    """Whether the controller answers. It has itself some seconds for that, by SLURM's MessageTimeout."""
    asked = subprocess.run(["scontrol", "ping"], capture_output=True, text=True, check=False)
    return asked.returncode == 0 and " UP" in asked.stdout
