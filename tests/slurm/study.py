"""A small study whose models stand behind a server that says when they answer, run on the cluster."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from threading import Event
from typing import Any

import yaml

from data.openai_server import Asked, Completion, Flood, Happening, Held, OpenaiServer
from workflow.runner import ROOT, SMALL, Workflow

FIRST = 3
"""So many requests of each model are answered at once, the others when its gate opens."""

GPU_MODELS = (
    "cancelled",
    "node-crashed",
    "timed-out",
    "out-of-memory",
    "controller-restarted",
    "controller-away",
    "node-crashed-and-controller-restarted",
)
MODELS = ("snakemake-killed", "warned", *GPU_MODELS)
"""One for each fault."""

CONFIG: dict[str, Any] = {
    "name": "faults",
    "datasets": {"xray": {**SMALL["datasets"]["xray"], "patients": 3}},
    "views": {"frontal": {"kind": "frontal", "size": 128}},
    "settings": {"xray": {"images": "frontal", "readout": "yes-no"}},
    "evaluations": [{"dataset": "xray", "models": list(MODELS), "settings": ["xray"]}],
    "statistics": {"draws": 200},
}


class Models:
    """What the server answers. The model's name is in the request."""

    def __init__(self, held: bool) -> None:
        self.held = held
        self.gates = {model: Event() for model in MODELS}
        self.started: Counter[str] = Counter()
        self.flooded: set[str] = set()
        if not held:
            self.open(*MODELS)

    def open(self, *models: str) -> None:
        for model in models:
            self.gates[model].set()

    def close(self, model: str) -> None:
        """As at the beginning."""
        self.gates[model].clear()
        del self.started[model]
        self.flooded.discard(model)

    def __call__(self, asked: Asked) -> Happening:
        model = asked.body["model"]
        self.started[model] += 1
        # Yes or no by content, so that every run of the study has the same answers.
        answer = Completion("Yes" if int(asked.content, 16) % 2 else "No")
        if self.started[model] <= FIRST:
            return answer
        if self.held and model == "out-of-memory" and model not in self.flooded:
            self.flooded.add(model)
            return Flood(2000)
        return Held(self.gates[model], answer)


def make_study(folder: Path, server: OpenaiServer) -> Workflow:
    study = Workflow(folder, CONFIG, [])
    for model in MODELS:
        resources = {"gpu": int(model in GPU_MODELS), "mem_mb": 900, "runtime": 30}
        study.add_model(
            model,
            {
                "label": model,
                "backend": "openai",
                "model": model,
                "endpoint": server.endpoint,
                "takes": {"images": 1, "logprobs": False},
                "batch": 1,
                "resources": resources,
            },
        )
    return study


def make_profile(folder: Path) -> Path:
    """The project's profile with what a test can't wait for made shorter, and some models' jobs on the second node."""
    profile = yaml.safe_load((ROOT / "profiles/slurm/config.yaml").read_text())
    profile["slurm-init-seconds-before-status-checks"] = profile["seconds-between-status-checks"] = 2
    profile["slurm-status-attempts"] = 1
    profile["latency-wait"] = 10
    # By wildcards, as partitions.yaml shows; '' leaves the choice to it.
    profile["set-resources"] = {
        "ask_model": {
            # The warning of `--signal` is the one that comes at the time limit and at preemption, only earlier.
            "slurm_extra": "'-N1 -w n2' if wildcards.model.startswith('node-') else '-N1 --signal=TERM@600' if "
            "wildcards.model == 'warned' else '-N1'",
            "slurm_partition": "'gpu' if wildcards.model in ('node-crashed', 'cancelled') else ''",
        }
    }
    folder.mkdir()
    (folder / "config.yaml").write_text(yaml.safe_dump(profile))
    (folder / "partitions.yaml").write_text((ROOT / "profiles/slurm/partitions.yaml").read_text())
    return folder


class OnCluster:
    """Snakemake on a login node, with a file for what it says."""

    def __init__(self, study: Workflow, profile: Path, log: Path) -> None:
        self.study, self.profile, self.log = study, profile, log

    def start(self, *arguments: str) -> None:
        command = [
            sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "Snakefile"),
            "--directory", str(self.study.folder), "--configfile", str(self.study.config_file),
            "--profile", str(self.profile), *arguments,
        ]  # fmt: skip
        with self.log.open("a") as log:
            self.process = subprocess.Popen(
                command,
                cwd=self.study.folder,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env={**os.environ, "OMP_NUM_THREADS": "1"},
            )

    @property
    def said(self) -> str:
        return self.log.read_text()

    def end(self) -> None:
        """Kill it with its children, if it is still there; its jobs on the cluster know nothing of that."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def kept(self, model: str) -> int:
        """Answers in a model's work file."""
        file = self.study.results / f"work/xray/{model}/xray/run-1.jsonl"
        return file.read_bytes().count(b"\n") if file.exists() else 0

    def log_of(self, model: str) -> str:
        file = self.study.folder / f"logs/faults/ask_model/xray/{model}/xray/run-1.log"
        return file.read_text() if file.exists() else ""
