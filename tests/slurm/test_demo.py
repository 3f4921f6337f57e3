"""The demo study, made small, on a real SLURM, by the literal command that the README gives."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from math import ceil
from pathlib import Path
from typing import Any

import pytest
import yaml

from slurm.jobs import Job, jobs
from workflow.demo import run_locally
from workflow.runner import ROOT, tables_of

pytestmark = [pytest.mark.slurm, pytest.mark.workflow]

TOGETHER = 4
"""Studies that a job renders: the shipped 50 would be more than there are here."""


TRIAL_FILES = 3 + 4 + 2 * 2
"""One a setting and run."""


def small_demo() -> dict[str, Any]:
    """The demo's config with fewer patients, settings and models: both data sets, pictures and reports, two runs, masks
    hidden from a model's layers, every kind of table. Each member of a group costs the start of a Snakemake."""
    config: dict[str, Any] = yaml.safe_load((ROOT / "config/demo.yaml").read_text())
    config["datasets"]["phantom-mri"]["studies"] = 4
    config["datasets"]["phantom-xray"]["patients"] = 4
    config["evaluations"] = [
        {
            "dataset": "phantom-mri",
            "models": ["tiny-reader", "tiny-blind", "calibrated-first-option"],
            "settings": ["single-slice", "swapped", "reshuffled"],
        },
        {
            "dataset": "phantom-xray",
            "models": ["tiny-reader", "calibrated-70"],
            "settings": ["xray-report", "xray-report-swapped", "xray", "xray-swapped"],
        },
        {"dataset": "phantom-xray", "models": ["tiny-reader"], "settings": ["report-only", "hidden-from-0"], "runs": 2},
    ]
    kept = ("image-swap", "order-cost", "swap-with-report", "swap-without-report", "image-gain-with-report")
    config["comparisons"] = {name: config["comparisons"][name] for name in kept}
    config["effects"] = {"report-effect": config["effects"]["report-effect"]}
    return config


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its results on this machine without a cluster."""
    folder = tmp_path_factory.mktemp("local")
    shutil.copytree(ROOT / "config", folder / "config")
    (folder / "demo").symlink_to(ROOT / "demo")  # the models' weights, where the model files look for them
    (folder / "config" / "demo.yaml").write_text(yaml.safe_dump(small_demo(), sort_keys=False))
    return run_locally(folder, folder / "config" / "demo.yaml")


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
    (root / "config/demo.yaml").write_text(yaml.safe_dump(small_demo(), sort_keys=False))
    profile = root / "profiles/slurm/config.yaml"
    edited = yaml.safe_load(profile.read_text())
    edited["group-components"] = [
        f"rendering={TOGETHER}" if one.startswith("rendering=") else one for one in edited["group-components"]
    ]
    edited["slurm-init-seconds-before-status-checks"] = edited["seconds-between-status-checks"] = 2
    profile.write_text(yaml.safe_dump(edited))
    done = subprocess.run(
        ["snakemake", "--profile", "slurm"],
        cwd=root, capture_output=True, text=True, timeout=3600, check=False,
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
    results = repository / "results" / "demo"
    studies = len(list(results.glob("*/images/*/views.json")))
    assert studies > 2 * TOGETHER and len(list(results.glob("*/trials/*/*.parquet"))) == TRIAL_FILES
    assert len(rendering(found)) == ceil(studies / TOGETHER)
    assert sum("build_trials" in job.what for job in found) == 1
    assert len(found) < 25


def test_a_job_that_serves_many_asks_for_what_runs_at_once_and_for_the_time_of_all(found: list[Job]):
    """Two renderings of 2,000 MB and 5 minutes at once, four in all."""
    largest = max(rendering(found), key=lambda job: minutes(job.limit))
    assert (largest.memory, minutes(largest.limit)) == ("4000M", 5 * TOGETHER / 2)


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
