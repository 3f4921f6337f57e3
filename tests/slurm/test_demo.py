"""The demo study on a real SLURM, by the literal command that the README gives."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from math import ceil
from pathlib import Path

import pytest

from slurm.jobs import Job, jobs
from workflow.demo import local_demo
from workflow.runner import ROOT, tables_of

pytestmark = [pytest.mark.slurm, pytest.mark.workflow]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's results on this machine without a cluster."""
    return local_demo(tmp_path_factory)


@pytest.fixture(scope="module")
def repository(undisturbed: Path, slurm: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project's files in which the study was run. The local run comes first: it needs no cluster."""
    root = tmp_path_factory.mktemp("repository")
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    named = subprocess.run(listed, cwd=ROOT, capture_output=True, check=True).stdout.decode().split("\0")
    for name in filter(None, named):
        source, target = ROOT / name, root / name
        if source.is_symlink() or source.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target, follow_symlinks=False)
    done = subprocess.run(
        ["snakemake", "--profile", "slurm"],
        cwd=root, capture_output=True, text=True, timeout=1500, check=False,
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return root


@pytest.fixture(scope="module")
def found(repository: Path) -> list[Job]:
    return jobs()


def test_the_tables_are_those_of_the_local_run_byte_for_byte(repository: Path, undisturbed: Path):
    tables = tables_of(repository / "results" / "demo")
    assert len(tables) > 10
    assert tables == tables_of(undisturbed)


def test_every_job_ended_well_and_one_without_a_gpu_ran_where_there_are_none(found: list[Job]):
    assert {job.state for job in found} == {"COMPLETED"}
    assert {(job.partition, job.gpus) for job in found} == {("cpu", 0)}


def test_studies_and_trial_files_share_few_jobs(found: list[Job], repository: Path):
    """50 studies are rendered by a job, 30 trial files built."""
    results = repository / "results" / "demo"
    studies = len(list(results.glob("*/images/*/views.json")))
    assert studies > 100 and len(list(results.glob("*/trials/*/*.parquet"))) == 30
    assert len(rendering(found)) == ceil(studies / 50)
    assert sum("build_trials" in job.what for job in found) == 1
    assert len(found) < 25


def test_a_job_that_serves_many_asks_for_what_runs_at_once_and_for_the_time_of_all(found: list[Job]):
    """Two renderings of 2,000 MB and 5 minutes at once, 50 in all."""
    largest = max(rendering(found), key=lambda job: minutes(job.limit))
    assert (largest.memory, minutes(largest.limit)) == ("4000M", 125)


def test_no_study_is_rendered_by_two_jobs(found: list[Job], repository: Path):
    """Snakemake would put studies that are being rendered into a new job too, when another data set has been read."""
    studies = len(list((repository / "results" / "demo").glob("*/images/*/views.json")))
    jobs_of_rendering = rendering(found)
    assert sum(minutes(job.limit) for job in jobs_of_rendering) <= 5 * (studies + len(jobs_of_rendering)) / 2


def rendering(found: list[Job]) -> list[Job]:
    return [job for job in found if "render_views" in job.what]


def test_slurm_writes_to_a_folder_that_does_not_depend_on_where_it_is_asked(found: list[Job], repository: Path):
    assert {job.out.is_relative_to(repository / "logs" / "slurm") for job in found} == {True}


def minutes(limit: str) -> int:
    """Of SLURM's HH:MM:SS."""
    hours, minutes, _ = (int(part) for part in limit.split(":"))
    return 60 * hours + minutes
