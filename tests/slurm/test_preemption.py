"""SLURM's warning before a job's end, on a real SLURM: what is on its way is kept, and the next attempt goes on.

The warning of `--signal` is the one that comes at the time limit and at preemption, only earlier.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from threading import Event

import pytest
import yaml

from data.openai_server import Asked, Completion, Happening, Held, OpenaiServer
from slurm.jobs import Job, as_root, jobs, until
from slurm.study import CONFIG, FIRST, OnCluster, asked_of, make_profile
from workflow.runner import Workflow

pytestmark = [pytest.mark.slurm, pytest.mark.workflow]

MODEL = "warned"


@dataclass
class Warned:
    """A job that was warned while it held one request, and the one that went on.

    said   the log of the first job after its end
    kept   answers in the work file then
    asked  how often each request was sent
    """

    said: str
    kept: int
    asked: dict[str, int]
    found: list[Job]


@pytest.fixture(scope="module")
def warned(slurm: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Warned]:
    folder = tmp_path_factory.mktemp("warned")
    gate = Event()

    def script(asked: Asked) -> Happening:
        return Completion("Yes") if len(server.asked) <= FIRST else Held(gate, Completion("Yes"))

    server = OpenaiServer(script)
    with server:
        study = Workflow(
            folder / "study",
            {**CONFIG, "evaluations": [{"dataset": "xray", "models": [MODEL], "settings": ["xray"]}]},
            [],
        )
        study.add_model(
            MODEL,
            {
                "label": "W", "backend": "openai", "model": MODEL, "endpoint": server.endpoint, "batch": 1,
                "takes": {"images": 1, "logprobs": False}, "resources": {"mem_mb": 900, "runtime": 30},
            },
        )  # fmt: skip
        study.run("trials")
        snakemake = OnCluster(study, profile(folder / "profile"), folder / "snakemake.txt")
        snakemake.start("responses")
        try:
            until(lambda: len(server.asked) > FIRST and snakemake.kept(MODEL) == FIRST, "the first answers")
            (job,) = asking_jobs()
            # Half a minute after the moment of the warning, which so comes at once, with nine and a half to go.
            as_root("scontrol", "update", f"jobid={job.id}", "endtime=now+570seconds")
            until(lambda: "nothing new is asked" in snakemake.log_of(MODEL), "the warning")
            assert snakemake.kept(MODEL) == FIRST
            gate.set()
            until(lambda: "stopped by" in snakemake.log_of(MODEL), "the end of the first job")
            said, kept = snakemake.log_of(MODEL), snakemake.kept(MODEL)
            assert snakemake.process.wait(timeout=1500) == 0, snakemake.said
        finally:
            gate.set()
            snakemake.end()
        yield Warned(said, kept, dict(asked_of(server, MODEL)), asking_jobs())


def asking_jobs() -> list[Job]:
    return [job for job in jobs() if "ask_model" in job.what]


def profile(folder: Path) -> Path:
    """The project's, with a warning ten minutes before the end."""
    path = make_profile(folder) / "config.yaml"
    content = yaml.safe_load(path.read_text())
    content["set-resources"] = {"ask_model": {"slurm_extra": "'-N1 --signal=TERM@600'"}}
    path.write_text(yaml.safe_dump(content))
    return folder


def test_a_warned_job_waits_for_what_is_on_its_way_and_says_where_it_stands(warned: Warned) -> None:
    assert warned.kept == FIRST + 1
    last = [line for line in warned.said.splitlines() if line.startswith("overread:")][-1]
    total = len(warned.asked)
    assert f"stopped by SLURM's warning: {FIRST + 1} of {total} answered" in last


def test_the_next_attempt_goes_on_and_nothing_is_asked_twice(warned: Warned) -> None:
    assert set(warned.asked.values()) == {1}
    assert len(warned.asked) > FIRST + 1


def test_it_ends_before_its_time_as_failed_and_is_tried_again_with_twice_the_time(warned: Warned) -> None:
    first, second = warned.found
    assert (first.state, second.state, second.limit) == ("FAILED", "COMPLETED", "01:00:00")
