"""Responses put into jobs: a job a run, or one that loads a model once for all its settings. The answers are equal."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter

import pytest

from workflow.runner import Workflow

pytestmark = pytest.mark.workflow


def asking_jobs(study: Workflow) -> Counter[str]:
    output = study.run("responses", "--dry-run", "--quiet", "rules")
    found = re.findall(r"^(ask_\S+) +(\d+)$", output, flags=re.MULTILINE)
    return Counter({rule: int(count) for rule, count in found})


def test_one_job_a_model_gives_the_same_tables_and_asks_nothing_again(study: Workflow) -> None:
    before = study.tables()
    study.config = {**study.config, "responses": {"group": "model"}}
    jobs = asking_jobs(study)
    assert jobs == {"ask_mri_calibrated-70": 1, "ask_xray_calibrated-70": 1}
    study.run()
    assert study.tables() == before
    logs = [log.read_text() for log in study.folder.glob("logs/*/ask_model/*.log")]
    counts = [re.findall(r"asked (\d+), kept (\d+)", log) for log in logs]
    assert len(logs) == len(jobs)
    assert sorted(map(len, counts)) == [2, 6], "files that each job wrote"
    assert {asked for each in counts for asked, _ in each} == {"0"}

    # All of one dataset anew: one job writes every file, and what it cost is counted again.
    for place in [study.results / "mri/responses", study.results / "work/mri"]:
        shutil.rmtree(place)
    assert asking_jobs(study) == {"ask_mri_calibrated-70": 1}
    study.run("responses")
    study.run()
    assert study.tables() == before
    costs = [json.loads(path.read_text()) for path in study.results.glob("mri/responses/*/*/*.cost.json")]
    assert len(costs) == 6 and all(cost["requests"] > 0 and cost["jobs"] == 1 for cost in costs)


def test_a_setting_more_in_a_shared_job_asks_only_its_own_requests(study: Workflow) -> None:
    study.config = {**study.config, "responses": {"group": "model"}}
    study.run()
    config = study.config
    [xray] = [each for each in config["evaluations"] if each["dataset"] == "xray"]
    config["settings"]["one-more"] = {"extends": xray["settings"][0], "options": "rotated-1"}
    xray["settings"] = [*xray["settings"], "one-more"]
    study.config = config
    study.run()
    [log] = [log.read_text() for log in study.folder.glob(f"logs/*/ask_model/xray_{xray['models'][0]}.log")]
    counts = [(int(asked), int(kept)) for asked, kept in re.findall(r"asked (\d+), kept (\d+)", log)]
    new = [each for each in counts if each[0]]
    assert len(new) == 1 and new[0][1] == 0 and len(counts) == len(xray["settings"])
