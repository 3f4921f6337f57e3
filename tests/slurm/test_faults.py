"""What goes wrong on a cluster, on a real SLURM: every fault ends in the answers and tables of an undisturbed run.

One scenario per fault, one after the other: a Snakemake of its own asks one model, whose server answers three requests
and then holds back. So the fault meets a job in the middle: three answers are kept, one request is on its way. The
cluster is whole again, and empty, before the next scenario begins.

    pytest -n 0 tests/slurm/test_faults.py --times 20    each scenario so often in a row, with a count at the end
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from data.openai_server import OpenaiServer
from slurm.jobs import ENDED, Job, as_root, cluster, jobs, node_is_up, nothing_to_tell, until
from slurm.study import FIRST, GPU_MODELS, MODELS, Models, OnCluster, make_profile, make_study
from workflow.runner import Workflow

pytestmark = [pytest.mark.slurm, pytest.mark.workflow]

IN_VAIN = "SLURM does not say what became of"
"""What Snakemake says when it has asked a controller that does not answer."""


@dataclass
class Study:
    """The study with its trials, and what a run of it without a cluster ends in."""

    workflow: Workflow
    profile: Path
    models: Models
    server: OpenaiServer
    undisturbed: Workflow

    @staticmethod
    def responses(workflow: Workflow, model: str) -> Path:
        return workflow.results / f"xray/responses/{model}/xray/run-1.parquet"

    def answers(self, workflow: Workflow, model: str) -> pa.Table:
        """All that is kept of a model's answers but how long each took, and the hash that its server's port is in."""
        return pq.read_table(self.responses(workflow, model)).drop_columns(["seconds", "request"])

    @property
    def snakemake(self) -> OnCluster:
        return OnCluster(self.workflow, self.profile, self.workflow.folder / "snakemake.txt")


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Study]:
    """What needs no cluster."""
    folder = tmp_path_factory.mktemp("faults")
    models = Models(held=True)
    with OpenaiServer(models) as server, OpenaiServer(Models(held=False)) as quiet:
        workflow = make_study(folder / "study", server)
        workflow.run("trials")
        undisturbed = make_study(folder / "undisturbed", quiet)
        shutil.copytree(workflow.results, undisturbed.results, symlinks=True)
        undisturbed.run("--rerun-triggers", "mtime")
        yield Study(workflow, make_profile(folder / "profile"), models, server, undisturbed)


class Fault:
    """One model's scenario, from the start of Snakemake to its end."""

    def __init__(self, study: Study, model: str) -> None:
        self.study, self.model = study, model
        self.earlier = {job.id for job in jobs()}
        self.asked_earlier, self.answered_earlier = len(study.server.asked), len(study.server.completed)
        self.snakemake = study.snakemake

    def begin(self) -> None:
        """Ask the model on the cluster, until its job stands in the middle."""
        # A scenario may be repeated.
        shutil.rmtree(self.study.workflow.results / f"xray/responses/{self.model}", ignore_errors=True)
        shutil.rmtree(self.study.workflow.results / f"work/xray/{self.model}", ignore_errors=True)
        self.study.models.close(self.model)
        self.start()
        until(lambda: self.holds() or self.snakemake.process.poll() is not None, "the first answers")
        assert self.holds(), self.snakemake.said + self.study.workflow.logs()
        assert [job.state for job in self.jobs] == ["RUNNING"]

    def start(self) -> None:
        self.snakemake.start(str(self.study.responses(self.study.workflow, self.model).relative_to(self.folder)))

    @property
    def folder(self) -> Path:
        return self.study.workflow.folder

    def holds(self) -> bool:
        """Whether three answers are kept and one request is on its way, or one that never ends."""
        return self.snakemake.kept(self.model) == FIRST and self.asked.total() > FIRST

    @property
    def jobs(self) -> list[Job]:
        """The model's jobs of this scenario, in their order."""
        return [job for job in jobs() if job.id not in self.earlier]

    @property
    def asked(self) -> Counter[str]:
        """How often each content was asked in this scenario."""
        found = self.study.server.asked[self.asked_earlier :]
        return Counter(one.content for one in found if one.body["model"] == self.model)

    @property
    def answered(self) -> Counter[str]:
        found = self.study.server.completed[self.answered_earlier :]
        return Counter(one.content for one in found if one.body["model"] == self.model)

    def until_ended(self) -> None:
        """Until the first job has, with nothing kept that was not kept before."""
        until(lambda: self.jobs[0].state in ENDED, "the end of the first job")
        assert self.snakemake.kept(self.model) == FIRST

    def end_well(self, cut_short: int) -> list[Job]:
        """The model's jobs, after all has gone on to the end: nothing answered is asked again, no answer has changed.

        cut_short   attempts that were ended with a request on its way, which is sent once more
        """
        self.study.models.open(self.model)
        assert self.snakemake.process.wait(timeout=1500) == 0, self.snakemake.said + self.study.workflow.logs()
        trials = len(self.asked)
        assert trials > FIRST + 1
        assert self.answered == dict.fromkeys(self.asked, 1)
        assert self.asked.total() == trials + cut_short
        assert self.study.answers(self.study.workflow, self.model) == (
            self.study.answers(self.study.undisturbed, self.model)
        )
        found = self.jobs
        assert {job.nodes for job in found} <= {"n1", "n2"}, "every job stays on one node"
        assert {(job.partition, job.gpus) for job in found} == {("gpu", 1) if self.model in GPU_MODELS else ("cpu", 0)}
        return found


@pytest.fixture
def fault(request: pytest.FixtureRequest, study: Study, slurm: None, repetition: int) -> Iterator[Fault]:
    """A model's job in the middle; whatever comes of it, the cluster is whole after it."""
    model = request.param
    assert [job for job in jobs() if job.state not in ENDED] == [], "no scenario begins before the last one has ended"
    scenario = Fault(study, model)
    try:
        scenario.begin()
        yield scenario
    finally:
        study.models.open(model)
        if scenario.snakemake.process.poll() is None:
            scenario.snakemake.end()
            study.workflow.run("--unlock")
        cluster("start")  # afresh: whatever a fault has left behind meets no other scenario


def meets(model: str) -> pytest.MarkDecorator:
    """The test goes through this model's scenario."""
    return pytest.mark.parametrize("fault", [model], indirect=True, ids=[""])


@meets("cancelled")
def test_a_cancelled_job_is_tried_again(fault: Fault):
    as_root("scancel", fault.jobs[0].id)
    fault.until_ended()
    assert [job.state for job in fault.end_well(cut_short=1)] == ["CANCELLED", "COMPLETED"]


@meets("timed-out")
def test_a_job_that_ran_out_of_time_gets_twice_the_time(fault: Fault):
    """Its limit is moved to where it stands, since SLURM counts in minutes."""
    (job,) = fault.jobs
    assert job.limit == "00:30:00"
    as_root("scontrol", "update", f"jobid={job.id}", "endtime=now+1seconds")
    fault.until_ended()
    first, second = fault.end_well(cut_short=1)
    assert (first.state, second.state, second.limit) == ("TIMEOUT", "COMPLETED", "01:00:00")


@meets("warned")
def test_a_job_that_slurm_warns_waits_for_what_is_on_its_way_says_where_it_stands_and_is_gone_on_with(fault: Fault):
    """As at the time limit and at preemption. It ends early, as failed, and the next attempt asks the rest."""
    (job,) = fault.jobs
    # Half a minute after the moment of the warning, which so comes at once, with nine and a half to go.
    as_root("scontrol", "update", f"jobid={job.id}", "endtime=now+570seconds")
    until(lambda: "nothing new is asked" in fault.snakemake.log_of("warned"), "the warning")
    assert fault.snakemake.kept("warned") == FIRST
    fault.study.models.open("warned")
    until(lambda: "stopped by" in fault.snakemake.log_of("warned"), "the end of the first attempt")
    said, kept = fault.snakemake.log_of("warned"), fault.snakemake.kept("warned")
    first, second = fault.end_well(cut_short=0)
    assert (first.state, second.state, second.limit) == ("FAILED", "COMPLETED", "01:00:00")
    assert kept == FIRST + 1
    last = [line for line in said.splitlines() if line.startswith("overread:")][-1]
    assert f"stopped by SLURM's warning: {FIRST + 1} of {len(fault.asked)} answered" in last


@meets("out-of-memory")
def test_a_job_that_ran_out_of_memory_gets_twice_the_memory(fault: Fault):
    """Without cgroups, as here, SLURM kills the step that took too much memory, and its job has failed."""
    fault.until_ended()
    first, second = fault.end_well(cut_short=1)
    assert [(job.state, job.memory) for job in (first, second)] == [("FAILED", "900M"), ("COMPLETED", "1800M")]
    assert "xceeded" in first.out.read_text() and "memory limit" in first.out.read_text()


def crash_node(fault: Fault) -> None:
    """All that runs on n2 ends at once; SLURM is told at once, where it would find out in 5 minutes."""
    cluster("crash-node", "n2")
    as_root("scontrol", "update", "nodename=n2", "state=down", "reason=test")
    until(lambda: fault.jobs[0].state in {"PENDING", *ENDED}, "the job's being queued again")
    assert fault.jobs[0].state == "PENDING"
    assert fault.snakemake.kept(fault.model) == FIRST


def bring_node_back(fault: Fault) -> None:
    cluster("start-node", "n2")
    until(lambda: node_is_up("n2"), "the node's coming back")
    # SLURM lets a job that it has queued again wait for what may be left of it on the node: no process here, but the
    # controller may still have to tell the node to end it, and what it says would end the new one.
    until(nothing_to_tell, "the controller's having told the nodes everything")
    with suppress(subprocess.CalledProcessError):  # it may have begun by itself in between, and has no start to move
        as_root("scontrol", "update", f"jobid={fault.jobs[0].id}", "starttime=now")


@meets("node-crashed")
def test_a_job_whose_node_fails_is_started_again_by_slurm_and_awaited_by_snakemake(fault: Fault):
    crash_node(fault)
    bring_node_back(fault)
    (job,) = fault.end_well(cut_short=1)
    assert (job.state, job.restarts, job.nodes) == ("COMPLETED", 1, "n2")


@meets("node-crashed-and-controller-restarted")
def test_a_job_whose_node_fails_while_the_controller_is_restarted_is_started_again_too(fault: Fault):
    """Two faults at once: what the controller has saved is enough to start the job once more, and only once."""
    crash_node(fault)
    cluster("stop-controller")
    cluster("start-controller")
    bring_node_back(fault)
    (job,) = fault.end_well(cut_short=1)
    assert (job.state, job.restarts, job.nodes) == ("COMPLETED", 1, "n2")


@meets("controller-restarted")
def test_a_job_outlives_the_controllers_restart(fault: Fault):
    cluster("stop-controller")
    cluster("start-controller")
    assert [job.state for job in fault.jobs] == ["RUNNING"]
    assert [(job.state, job.restarts) for job in fault.end_well(cut_short=0)] == [("COMPLETED", 0)]


@meets("controller-away")
def test_a_job_and_snakemake_outlive_a_controller_that_is_away(fault: Fault):
    """Until Snakemake has asked in vain: SLURM itself tries for 10 seconds, as at every site."""
    before = fault.snakemake.said.count(IN_VAIN)
    cluster("stop-controller")
    until(lambda: fault.snakemake.said.count(IN_VAIN) > before, "Snakemake's asking in vain")
    assert fault.snakemake.kept(fault.model) == FIRST
    cluster("start-controller")
    assert [(job.state, job.restarts) for job in fault.end_well(cut_short=0)] == [("COMPLETED", 0)]


@meets("snakemake-killed")
def test_a_job_whose_snakemake_was_killed_runs_on_and_the_next_one_takes_over_its_answers(fault: Fault):
    """SIGKILL while the job runs, and a second Snakemake that does not know of it."""
    os.killpg(fault.snakemake.process.pid, signal.SIGKILL)
    fault.snakemake.process.wait()
    fault.study.workflow.run("--unlock")
    fault.start()
    until(
        lambda: "waiting for its end" in fault.snakemake.log_of(fault.model), "the second job's waiting for the first"
    )
    assert [job.state for job in fault.jobs] == ["RUNNING", "RUNNING"]
    assert fault.snakemake.kept(fault.model) == FIRST
    found = fault.end_well(cut_short=0)
    assert [(job.state, job.restarts) for job in found] == [("COMPLETED", 0)] * 2
    assert fault.study.workflow.asked(fault.model, "xray") == (0, len(fault.asked))


def test_all_end_in_the_tables_of_an_undisturbed_run(study: Study, slurm: None):
    """What the faults have left is gone on with to the end, and no answer that is there is asked for again."""
    study.models.open(*MODELS)
    there = {model for model in MODELS if study.responses(study.workflow, model).exists()}
    before = len(study.server.asked)
    earlier = {job.id for job in jobs()}
    snakemake = study.snakemake
    snakemake.start()
    try:
        assert snakemake.process.wait(timeout=1500) == 0, snakemake.said + study.workflow.logs()
    finally:
        snakemake.end()
    assert {one.body["model"] for one in study.server.asked[before:]} == set(MODELS) - there
    tables = study.undisturbed.tables()
    assert len(tables) > 10
    assert study.workflow.tables() == tables
    found = [job for job in jobs() if job.id not in earlier]
    assert {job.state for job in found} == {"COMPLETED"}
    found = [job for job in found if "ask_model" not in job.what]
    assert {job.what for job in found} >= {"rule_make_tables", "rule_draw_figures", "rule_write_report"}
    assert {(job.partition, job.gpus) for job in found} == {("cpu", 0)}
