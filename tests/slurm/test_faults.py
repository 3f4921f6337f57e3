"""What goes wrong on a cluster, on a real SLURM: every fault ends in the tables of an undisturbed run.

One study, one model a fault. Each model answers three requests and then holds back until its fault has happened, so
that every fault meets a job in the middle: three answers are kept, one request is on its way.
"""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from data.openai_server import OpenaiServer
from slurm.jobs import ENDED, Job, as_root, cluster, jobs, most_gpus_at_once, node_is_up, until
from slurm.study import FIRST, GPU_MODELS, MODELS, Models, OnCluster, asked_of, make_profile, make_study, times
from workflow.runner import Workflow

pytestmark = [pytest.mark.slurm, pytest.mark.workflow]

GPUS = 4
"""Of the cluster: two nodes with two each."""
IN_VAIN = "SLURM does not say what became of"
"""What Snakemake says when it has asked a controller that does not answer."""


@dataclass
class Story:
    """What happened, and what was there when it did.

    kept    answers in the work file at the fault
    states  of the job after its fault
    asked, answered  how often each content was, by model
    trials  of each model
    found   all jobs of the cluster at the end
    peak    the most GPUs seen in use at once
    """

    study: Workflow
    snakemake: OnCluster
    undisturbed: dict[str, bytes]
    kept: dict[str, int] = field(default_factory=dict)
    states: dict[str, str] = field(default_factory=dict)
    asked: dict[str, Counter[str]] = field(default_factory=dict)
    answered: dict[str, Counter[str]] = field(default_factory=dict)
    trials: int = 0
    found: list[Job] = field(default_factory=list)
    peak: int = 0

    def jobs_of(self, model: str) -> list[Job]:
        return jobs_of(model, self.found)


def jobs_of(model: str, found: list[Job]) -> list[Job]:
    return [job for job in found if "ask_model" in job.what and job.about(model)]


def first_job(model: str) -> Job:
    return jobs_of(model, jobs())[0]


def ended(model: str) -> Callable[[], bool]:
    return lambda: first_job(model).state in ENDED


def cancel(story: Story) -> None:
    as_root("scancel", first_job("cancelled").id)
    until(ended("cancelled"), "the end of the cancelled job")


def set_node_down(story: Story) -> None:
    as_root("scontrol", "update", "nodename=n2", "state=down", "reason=test")
    until(lambda: first_job("node-down").state not in ("RUNNING", "COMPLETING"), "the end of the job on the node")
    # The node comes back when its slurmd reports again, by itself or told so.
    until(lambda: node_is_up("n2"), "the node's coming back")


def restart_controller(story: Story) -> None:
    cluster("stop-controller")
    cluster("start-controller")


def cut_controller_off(story: Story) -> None:
    """Until Snakemake has asked in vain, by the shipped settings: SLURM tries for 10 seconds, as at every site."""
    before = story.snakemake.said.count(IN_VAIN)
    cluster("stop-controller")
    until(lambda: story.snakemake.said.count(IN_VAIN) > before, "Snakemake's asking in vain", seconds=240)
    cluster("start-controller")


FAULTS: dict[str, Callable[[Story], None]] = {
    "cancelled": cancel,
    "node-down": set_node_down,
    "controller-restarted": restart_controller,
    "controller-away": cut_controller_off,
}
"""What is done to a job. The others run into their limits by themselves."""


def kill_snakemake(story: Story) -> None:
    """SIGKILL while one job runs, and a second Snakemake that does not know of it."""
    model, snakemake = "snakemake-killed", story.snakemake
    snakemake.start(f"results/faults/xray/responses/{model}/xray/run-1.parquet")
    until(lambda: snakemake.kept(model) == FIRST, "the first answers")
    os.killpg(snakemake.process.pid, signal.SIGKILL)
    snakemake.process.wait()
    story.kept[model] = snakemake.kept(model)
    story.states[model] = first_job(model).state
    story.study.run("--unlock")
    snakemake.start()


def go_through(story: Story, models: Models) -> None:
    """Do every fault as soon as its model's job stands in the middle, and open the gate after it."""
    left = set(MODELS)
    deadline = time.monotonic() + 600
    while left:
        assert story.snakemake.process.poll() is None, story.snakemake.said
        assert time.monotonic() < deadline, f"still to come: {left}"
        found = jobs()
        story.peak = max(story.peak, sum(job.gpus for job in found if job.state == "RUNNING"))
        for model in sorted(left):
            if happens(model, story, found):
                story.kept.setdefault(model, story.snakemake.kept(model))
                if model in FAULTS:
                    FAULTS[model](story)
                story.states.setdefault(model, first_job(model).state)
                models.open(model)
                left.remove(model)
        time.sleep(0.5)


def happens(model: str, story: Story, found: list[Job]) -> bool:
    """Whether a model's job stands in the middle; of those that run into a limit, whether it has."""
    if model == "snakemake-killed":
        return "waiting for its end" in story.snakemake.log_of(model)
    if model not in FAULTS:
        return any(job.state in ENDED for job in jobs_of(model, found))
    return story.snakemake.kept(model) == FIRST


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Story, Models, OpenaiServer]]:
    """The study with its trials, and the tables that it must end in: what needs no cluster."""
    folder = tmp_path_factory.mktemp("faults")
    models = Models(held=True)
    with OpenaiServer(models) as server, OpenaiServer(Models(held=False)) as quiet:
        study = make_study(folder / "study", server)
        study.run("trials")
        snakemake = OnCluster(study, make_profile(folder / "profile"), folder / "snakemake.txt")
        story = Story(study, snakemake, undisturbed(folder, study, quiet))
        story.trials = len(times(quiet.completed, MODELS[0]))
        yield story, models, server


@pytest.fixture(scope="module")
def story(prepared: tuple[Story, Models, OpenaiServer], slurm: None) -> Story:
    story, models, server = prepared
    snakemake = story.snakemake
    try:
        kill_snakemake(story)
        go_through(story, models)
        snakemake.process.wait(timeout=300)
    finally:
        models.open(*MODELS)
        if snakemake.process.poll() is None:
            os.killpg(snakemake.process.pid, signal.SIGKILL)
    assert snakemake.process.returncode == 0, snakemake.said + story.study.logs()
    story.found = jobs()
    story.asked = {model: asked_of(server, model) for model in MODELS}
    story.answered = {model: times(server.completed, model) for model in MODELS}
    return story


def undisturbed(folder: Path, study: Workflow, server: OpenaiServer) -> dict[str, bytes]:
    """The tables of the same trials, put to models that answer at once, without a cluster."""
    other = make_study(folder / "undisturbed", server)
    shutil.copytree(study.results, other.results, symlinks=True)
    other.run("--rerun-triggers", "mtime")
    return other.tables()


STATES = {
    "cancelled": "CANCELLED",
    "node-down": "PENDING",
    "timed-out": "TIMEOUT",
    "out-of-memory": "FAILED",
    "controller-restarted": "RUNNING",
    "controller-away": "RUNNING",
    "snakemake-killed": "RUNNING",
}
"""A job whose node fails is queued again by SLURM, one whose controller goes runs on. Without cgroups, as here, SLURM
kills the step that took too much memory, and its job has failed."""


@pytest.mark.parametrize("model", MODELS)
def test_the_fault_met_the_job_in_the_middle(story: Story, model: str):
    """A request that was on its way may have come back after the warning."""
    assert story.states[model] == STATES[model]
    assert FIRST <= story.kept[model] <= FIRST + 1 < story.trials


@pytest.mark.parametrize("model", MODELS)
def test_no_request_that_was_answered_is_asked_again(story: Story, model: str):
    """At most the one request that was on its way when an attempt was ended is sent once more."""
    assert len(story.asked[model]) == story.trials
    assert story.answered[model] == dict.fromkeys(story.asked[model], 1)
    attempts = story.jobs_of(model)
    cut_short = sum(job.state != "COMPLETED" for job in attempts) + sum(job.restarts for job in attempts)
    assert (cut_short == 0) == (STATES[model] == "RUNNING")
    assert story.asked[model].total() - story.trials <= cut_short


def test_all_end_in_the_tables_of_an_undisturbed_run(story: Story):
    assert len(story.undisturbed) > 10
    assert story.study.tables() == story.undisturbed


def test_a_cancelled_job_is_tried_again(story: Story):
    assert [job.state for job in story.jobs_of("cancelled")] == ["CANCELLED", "COMPLETED"]


def test_a_job_whose_node_fails_is_started_again_by_slurm_and_awaited_by_snakemake(story: Story):
    (job,) = story.jobs_of("node-down")
    assert (job.state, job.restarts, job.nodes) == ("COMPLETED", 1, "n2")


def test_a_job_that_ran_out_of_time_gets_twice_the_time(story: Story):
    found = story.jobs_of("timed-out")
    assert [(job.state, job.limit) for job in found] == [("TIMEOUT", "00:01:00"), ("COMPLETED", "00:02:00")]


def test_a_job_that_ran_out_of_memory_gets_twice_the_memory(story: Story):
    found = story.jobs_of("out-of-memory")
    assert [(job.state, job.memory) for job in found] == [("FAILED", "900M"), ("COMPLETED", "1800M")]
    assert "xceeded" in found[0].out.read_text() and "memory limit" in found[0].out.read_text()


@pytest.mark.parametrize("model", ["controller-restarted", "controller-away"])
def test_a_job_outlives_the_controller(story: Story, model: str):
    assert [job.state for job in story.jobs_of(model)] == ["COMPLETED"]


def test_a_job_whose_snakemake_was_killed_runs_on_and_the_next_one_takes_over_its_answers(story: Story):
    assert [job.state for job in story.jobs_of("snakemake-killed")] == ["COMPLETED", "COMPLETED"]
    assert story.study.asked("snakemake-killed", "xray") == (0, story.trials)


def test_jobs_that_ask_for_a_gpu_have_one_in_the_partition_that_has_them(story: Story):
    for model in GPU_MODELS:
        assert {(job.partition, job.gpus) for job in story.jobs_of(model)} == {("gpu", 1)}
    others = [job for job in story.found if not any(job.about(model) for model in GPU_MODELS)]
    assert {(job.partition, job.gpus) for job in others} == {("cpu", 0)}
    assert len(others) > 4


def test_no_more_jobs_with_gpus_run_at_once_than_there_are_gpus(story: Story):
    """Six asked for one; all four were in use."""
    assert most_gpus_at_once(story.found) <= GPUS
    assert story.peak == GPUS


def test_every_job_stays_on_one_node(story: Story):
    assert {job.nodes for job in story.found} <= {"n1", "n2"}
