"""What Snakemake and its SLURM plugin lack: patience with a controller that is away, an end to waiting for jobs that
nobody will start, and groups that stay small.

The plugin forgets all jobs that it waits for when five questions in a row about their state fail. Where there is no
accounting database, one question at the wrong moment is enough, and Snakemake then waits for ever. And a job that can't
be submitted counts as failed. A controller that is restarted or cut off for a while is no reason for either.

It waits for ever, too, on a job that is held, that can never start, or that SLURM no longer knows. Such a job is logged
with its reason when it is first seen, and failed at the next check, so that Snakemake's retries submit it anew.

The plugin's class is given to the functions, so that nothing of Snakemake is imported here.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import wraps
from importlib.metadata import PackageNotFoundError, version
from typing import Any

PAUSE = 10.0
"""Seconds before a controller that did not answer is asked again."""

PATIENCE = 60.0
"""Seconds that a command of SLURM may take."""

PATCHED = {"snakemake": "9.27.1", "snakemake-executor-plugin-slurm": "2.8.0"}
"""The versions whose inner workings are changed here; those that pyproject.toml pins."""


def keep_waiting(executor: type[Any]) -> None:
    """Change the plugin's executor class: jobs whose state can't be asked stay jobs, and are submitted later.

    Jobs that can't start are not waited for.
    """
    if getattr(executor, "keeps_waiting", False):
        return
    warn_of_other_versions()
    executor.keeps_waiting = True
    executor.check_active_jobs = _still_active(executor.check_active_jobs)
    executor.run_job = _when_it_answers(executor.run_job)
    for report in ("report_job_success", "report_job_error"):
        setattr(executor, report, _noted(getattr(executor, report)))


def group_afresh(dag: type[Any]) -> None:
    """Change Snakemake's class of the DAG: what was put into groups before is forgotten when groups are formed.

    Snakemake 9.27.1 keeps the groups that it has merged, and goes on with them each time that it forms groups, as it
    does after every checkpoint. Those of `group-components` are merged once more: in the end all studies were one job.
    To the others, a job that joins later is never assigned: Snakemake ends in a KeyError when that job is due. Groups
    at work stay as they are, but none of the first kind may be at work then: `view_indices` sees to it.
    """
    if getattr(dag, "groups_afresh", False):
        return
    dag.groups_afresh = True
    form = dag.update_groups

    @wraps(form)
    def update_groups(self: Any) -> None:
        settings = self.workflow.group_settings
        made = self.group_job_factory.cache
        for key, group in list(made.items()):
            parent = self.workflow.parent_groupids.get(key[0], key[0])
            if settings.group_components.get(parent, 1) > 1 or group not in self._running:
                del made[key]
        form(self)

    dag.update_groups = update_groups


def warn_of_other_versions() -> None:
    """Write to stderr which of the changed packages is installed in another version than the one that was changed."""
    for package, wanted in PATCHED.items():
        try:
            found = version(package)
        except PackageNotFoundError:
            found = "none"
        if found != wanted:
            print(
                f"WARNING: {package} is {found}, but Overread changes how {wanted} waits for SLURM jobs, and groups. "
                "With another version Snakemake may wait for ever, or submit wrong groups: "
                f"`pip install {package}=={wanted}`",
                file=sys.stderr,
            )


# --- what the queue says of a job ---


@dataclass(frozen=True)
class Queued:
    """A job as the queue lists it. The reason is why it is pending."""

    state: str
    partition: str
    reason: str


@dataclass(frozen=True)
class Obstacle:
    """Why a job does not start.

    what     in words
    todo     what the user can do
    release  whether releasing the job may help
    final    whether it can't pass by itself
    """

    what: str
    todo: str
    release: bool = False
    final: bool = True


LIMITS = "see `sacctmgr show assoc user=$USER` and `sacctmgr show qos`"

OBSTACLES: tuple[tuple[str, Obstacle], ...] = (
    (
        r".*requeued held",
        Obstacle(
            "SLURM could not launch it on its node, has queued it again and holds it",
            "look at the node with `sinfo -R`, then `scontrol release {job}`",
            release=True,
        ),
    ),
    (r"JobHeldAdmin", Obstacle("an administrator holds it", "ask them why, and for `scontrol release {job}`")),
    (r"JobHeldUser", Obstacle("its owner holds it", "`scontrol release {job}`")),
    (
        r"JobHoldMaxRequeue|.*\bheld\b.*",
        Obstacle("SLURM holds it", "`scontrol show job {job}` says more; `scontrol release {job}`"),
    ),
    (
        r"Partition(Down|Inactive)",
        Obstacle(
            "its partition starts no jobs",
            "ask when it will, and start again then; or name another partition in partitions.yaml",
        ),
    ),
    (
        r"Partition(TimeLimit|NodeLimit|Config)",
        Obstacle(
            "it asks for more than a job of its partition gets",
            "lower the model's `resources`, or correct partitions.yaml",
        ),
    ),
    (
        r"BadConstraints",
        Obstacle(
            "no node has what it asks for",
            "compare `scontrol show job {job}` with `sinfo -o '%P %l %c %m %G %f'`; lower the model's `resources`, or "
            "correct partitions.yaml",
        ),
    ),
    (
        r"Invalid(Account|QOS)|(QOS|Account|Association)NotAllowed|ReservationDeleted|DependencyNeverSatisfied",
        Obstacle("its account, QOS or reservation may not run it", f"correct `slurm_account` in the profile; {LIMITS}"),
    ),
    (
        r"(Assoc|QOS)?Max\w*PerJob(Limit)?|QOSMin\w+",
        Obstacle(
            "a limit of its account or QOS for a single job is below what it asks for",
            f"lower the model's `resources`; {LIMITS}",
        ),
    ),
    (
        r"(Assoc|QOS)Grp(\w*(?<!Run)Minutes(Limit)?|Wall\w*)",
        Obstacle("its account or QOS has used up its time", f"ask for more, or use another account; {LIMITS}"),
    ),
    (
        r"(Assoc|QOS)\w+",
        Obstacle(
            "its account or QOS uses all that it may have at once",
            "nothing: it starts when others have ended. If none runs, it asks for more than that limit: lower the "
            f"model's `resources`; {LIMITS}",
            final=False,
        ),
    ),
)
"""Reasons that SLURM gives for a pending job (squeue's manual, "Job reason codes"); the first that fits counts. What is
not here passes by itself: Resources, Priority, Dependency, BeginTime, Licenses, a reservation for maintenance."""

NODES_AWAY = re.compile(r"ReqNodeNotAvail|Nodes required for job are DOWN")
NO_NODE = Obstacle(
    "all nodes of its partition are down or drained",
    "`sinfo -R` says why; start again when they are back, or name another partition in partitions.yaml",
)
UNKNOWN = Obstacle(
    "SLURM no longer knows it, nor what became of it", "look into its log, and whether slurmctld was set up anew"
)
OUT_OF_USE = {"down", "drained", "draining", "fail", "failing", "error", "unknown"}


def obstacle(job: Queued) -> Obstacle | None:
    """Why a pending job does not start; None if it only waits its turn. May ask for its partition's nodes."""
    if job.state != "PENDING":
        return None
    for pattern, found in OBSTACLES:
        if re.fullmatch(pattern, job.reason):
            return found
    if NODES_AWAY.match(job.reason):
        states = ask("sinfo", "--noheader", f"--partition={job.partition}", "--format=%T")
        if states and {state.rstrip("*~#!%$@^-+") for state in states.split()} <= OUT_OF_USE:
            return NO_NODE
    return None


def queue(name: str) -> dict[str, Queued] | None:
    """All jobs of a name that the controller still knows, by number; None if it does not answer."""
    said = ask("squeue", "--noheader", "--states=all", f"--name={name}", "--format=%i|%T|%P|%r")
    if said is None:
        return None
    rows = (line.split("|", 3) for line in said.splitlines() if line.count("|") >= 3)
    return {job.strip(): Queued(state, partition, reason.strip()) for job, state, partition, reason in rows}


def ask(*command: str) -> str | None:
    """What a command of SLURM writes; None if it fails, is not there or takes too long."""
    if shutil.which(command[0]) is None:
        return None
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        return None
    return done.stdout if done.returncode == 0 else None


# --- what is done about it ---


@dataclass
class Watch:
    """What was seen at the last check, so that nothing is done at first sight.

    seen      reason by job
    released  jobs that were released; once is enough
    said      reasons that were logged for good
    """

    seen: dict[str, str] = field(default_factory=dict)
    released: set[str] = field(default_factory=set)
    said: set[str] = field(default_factory=set)


def _without_hopeless(self: Any, jobs: Sequence[Any]) -> Iterator[Any]:
    """The jobs that are worth waiting for. The others are logged at first, and failed if nothing has changed since."""
    if not hasattr(self, "watch"):
        self.watch = Watch()
    watch: Watch = self.watch
    known = queue(self.run_uuid)
    if known is None:
        yield from jobs
        return
    seen, logged = {}, defaultdict(list)
    for job in jobs:
        number = job.external_jobid
        reason, found = _looked_up(self, number, known)
        if found is None:
            yield job
        elif not found.final:
            if reason not in watch.said:
                logged[reason, found].append(number)
            yield job
        elif found.release and number not in watch.released:
            watch.released.add(number)
            freed = ask("scontrol", "release", number) is not None
            self.logger.warning(
                f"SLURM job {number} does not start: {found.what} ({reason}). "
                + ("It was released, once." if freed else "It can't be released.")
                + f" If it is held again: {found.todo.format(job=number)}."
            )
            seen[number] = "" if freed else reason
            yield job
        elif watch.seen.get(number) == reason:
            if found is not UNKNOWN:
                ask("scancel", number)
            log = job.aux.get("slurm_logfile")
            self.report_job_error(
                job,
                msg=f"SLURM job {number} would never have started: {found.what} ({reason}). It was cancelled. "
                f"What to do: {found.todo.format(job=number)}. "
                if found is not UNKNOWN
                else f"SLURM job {number}: {found.what}. It counts as failed. ",
                aux_logs=[] if log is None else [str(log)],
            )
        else:
            seen[number] = reason
            logged[reason, found].append(number)
            yield job
    watch.seen = seen
    for (reason, found), numbers in logged.items():
        if not found.final:
            watch.said.add(reason)
        then = " If nothing has changed at the next check, it is cancelled and tried again." if found.final else ""
        which = f"job {numbers[0]} does" if len(numbers) == 1 else f"jobs {', '.join(numbers)} do"
        why = found.what + ("" if found is UNKNOWN else f" ({reason})")
        self.logger.warning(f"SLURM {which} not start: {why}. What to do: {found.todo.format(job=numbers[0])}.{then}")


def _looked_up(self: Any, number: str, known: Mapping[str, Queued]) -> tuple[str, Obstacle | None]:
    """SLURM's reason, and what it means."""
    if number in known:
        return known[number].reason, obstacle(known[number])
    # Tasks of arrays and jobs of other clusters are listed otherwise.
    if not number.isdigit() or getattr(self, "_submitted_job_clusters", None):
        return "", None
    accounted = ask(
        "sacct", "--allocations", "--noheader", "--parsable2", "--format=JobIDRaw,State", f"--jobs={number}"
    )
    return ("", None) if accounted and accounted.startswith(f"{number}|") else ("unknown", UNKNOWN)


def _still_active(check: Any) -> Any:
    """Jobs that are neither reported nor given back are given back; those that can't start are not."""

    @wraps(check)
    async def check_active_jobs(self: Any, active_jobs: Sequence[Any]) -> AsyncIterator[Any]:
        self.ended = set()
        waited_for = [job async for job in check(self, active_jobs)]
        given_back = {id(job) for job in waited_for}
        left = [job for job in active_jobs if id(job) not in given_back | self.ended]
        if left:
            self.logger.warning(f"SLURM does not say what became of {len(left)} jobs: they are asked for again later.")
        if waited_for:
            for job in _without_hopeless(self, waited_for):
                yield job
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
    said = ask("scontrol", "ping")
    return said is not None and " UP" in said
