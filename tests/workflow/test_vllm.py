"""A model of backend vllm is asked in an environment of its own, and the others are not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml

from workflow.runner import ROOT, SMALL, Workflow

pytestmark = pytest.mark.workflow

MODEL = {
    "label": "V",
    "backend": "vllm",
    "weights": "org/model",
    "revision": "a" * 40,
    "takes": {"images": 4},
}


def commands(study: Workflow) -> dict[str, str]:
    """The interpreter of each planned job of a model."""
    output = study.run("--dry-run", "--printshellcmds")
    lines = [line.strip() for line in output.splitlines() if "-m overread responses answer" in line]
    return {line.split(" --id ")[1].split()[0]: line.split(" -m overread")[0].split(" ")[-1] for line in lines}


@pytest.fixture
def study(tmp_path: Path) -> Workflow:
    """A study of which nothing has run, with a model of each kind."""
    return Workflow(tmp_path / "study", SMALL, ["calibrated-70"])


def with_model(study: Workflow, **python: str) -> Workflow:
    study.model_file("served").write_text(yaml.safe_dump({**MODEL, **python}))
    config = study.config
    config["evaluations"][0]["models"].append("served")
    study.config = config
    return study


def test_the_model_file_names_the_interpreter(study: Workflow) -> None:
    wanted = {"calibrated-70": "python", "served": "/opt/vllm/bin/python"}
    assert commands(with_model(study, python="/opt/vllm/bin/python")) == wanted


def test_a_relative_interpreter_lies_beside_the_model_file(study: Workflow) -> None:
    named = commands(with_model(study, python="../vllm/bin/python"))["served"]
    assert Path(named) == study.folder / "config" / "vllm" / "bin" / "python"


def test_without_one_it_is_what_make_vllm_made_if_that_is_there(study: Workflow) -> None:
    made = ROOT / ".venv-vllm" / "bin" / "python"
    named = commands(with_model(study))["served"]
    assert Path(os.path.abspath(study.folder / named)) == made if made.exists() else named == "python"


CONDA = """#!/bin/sh
case "$*" in
  *info*) echo '{"conda_prefix": "/opt/conda", "conda_version": "24.11.0", "platform": "linux-64"}' ;;
  *priority*) echo '{"get": {"channel_priority": "strict"}}' ;;
  *) echo 'conda 24.11.0' ;;
esac
"""
"""Enough of the program for a dry run."""


def test_with_conda_it_has_an_environment_of_its_own(
    study: Workflow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bin" / "conda"
    program.parent.mkdir()
    program.write_text(CONDA)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    output = with_model(study, python="/opt/vllm/bin/python").run(
        "--dry-run", "--printshellcmds", "--software-deployment-method", "conda"
    )
    made = {line.split("/envs/")[1].split()[0] for line in output.splitlines() if line.startswith("Conda environment")}
    assert {"models.yaml", "vllm.yaml"} <= made
    # The activated environment's interpreter, whatever the model file names.
    assert "/opt/vllm/bin/python -m overread" not in output
