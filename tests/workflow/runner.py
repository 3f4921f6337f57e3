"""A small study in a folder of its own, run by the real Snakemake from another working directory."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import yaml

from overread.config import read_yaml

ROOT = Path(__file__).resolve().parents[2]


class Workflow:
    """A copy of a config with its model files, and Snakemake on it. Results lie in the same folder.

    root  where the code lies that runs it
    """

    root = ROOT

    def __init__(self, folder: Path, config: dict[str, Any], models: list[str], root: Path = ROOT) -> None:
        self.folder, self.root = folder, root
        self.config_file = folder / "config" / "study.yaml"
        (folder / "config" / "models").mkdir(parents=True)
        # Whoever works on the code may do so while the tests run.
        self.config = {"frozen_code": "warn", **config}
        for model in models:
            self.add_model(model, read_yaml(ROOT / f"config/models/{model}.yaml"))

    @classmethod
    def of(cls, folder: Path) -> Workflow:
        """One that is there already."""
        there = object.__new__(cls)
        there.folder, there.config_file = folder, folder / "config" / "study.yaml"
        return there

    def copy(self, folder: Path) -> Workflow:
        """With its times and Snakemake's records, to be changed."""
        shutil.copytree(self.folder, folder, symlinks=True)
        return self.of(folder)

    @property
    def config(self) -> dict[str, Any]:
        return yaml.safe_load(self.config_file.read_text())

    @config.setter
    def config(self, config: dict[str, Any]) -> None:
        self.config_file.write_text(yaml.safe_dump(config, sort_keys=False))

    @property
    def results(self) -> Path:
        return self.folder / "results" / self.config["name"]

    def model_file(self, name: str) -> Path:
        return self.folder / "config" / "models" / f"{name}.yaml"

    def add_model(self, name: str, section: dict[str, Any]) -> None:
        if "weights" in section:  # relative to the project's own model files
            section["weights"] = str((ROOT / "config/models" / section["weights"]).resolve())
        self.model_file(name).write_text(yaml.safe_dump(section, sort_keys=False))

    def command(self, *arguments: str) -> list[str]:
        return [
            sys.executable, "-m", "snakemake", "--snakefile", str(self.root / "Snakefile"),
            "--directory", str(self.folder), "--configfile", str(self.config_file), "--cores", "2",
            "--rerun-incomplete", *arguments,
        ]  # fmt: skip

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Snakemake as the leader of a process group of its own, so that all of it can be killed."""
        return subprocess.Popen(
            self.command(*arguments),
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )

    def run(self, *arguments: str, fails: bool = False) -> str:
        process = self.start(*arguments)
        try:
            output, _ = process.communicate(timeout=600)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise
        assert (process.returncode != 0) == fails, output + self.logs()
        return output

    def logs(self) -> str:
        return "\n".join(f"--- {log}\n{log.read_text()[-1500:]}" for log in sorted(self.folder.glob("logs/**/*.log")))

    def planned(self) -> Counter[str]:
        """How many jobs of each rule a dry run lists; nothing when there is nothing to do."""
        return self.planned_with_cells()[0]

    def planned_with_cells(self) -> tuple[Counter[str], set[tuple[str, str]]]:
        """The same, and (model, setting) of the response jobs among them."""
        output = self.run("--dry-run", "--printshellcmds")
        cells = set(re.findall(r"--out results/\S+/responses/([^/]+)/([^/]+)/run-\d+\.parquet", output))
        # The table stands at the beginning and at the end.
        output = output.rpartition("\nJob stats:")[2]
        jobs = Counter({rule: int(count) for rule, count in re.findall(r"^(\w+) +(\d+)$", output, flags=re.MULTILINE)})
        assert jobs.pop("total", 0) == jobs.total()
        if not jobs:
            assert "Nothing to be done" in output, output
        return jobs, cells

    def planned_cells(self) -> set[tuple[str, str]]:
        """(model, setting) of the planned response jobs."""
        return self.planned_with_cells()[1]

    def asked(self, model: str, setting: str, run: int = 1) -> tuple[int, int]:
        """(asked, kept) of the last response job of a cell, from its log."""
        log = next(self.folder.glob(f"logs/*/ask_model/*/{model}/{setting}/run-{run}.log")).read_text()
        asked, kept = re.findall(r"asked (\d+), kept (\d+)", log)[-1]
        return int(asked), int(kept)

    def tables(self) -> dict[str, bytes]:
        return tables_of(self.results)


def tables_of(results: Path) -> dict[str, bytes]:
    """The tables that must be the same on every run: all but what the answers cost, which is measured."""
    files = sorted((results / "tables").glob("*.csv"))
    return {file.name: file.read_bytes() for file in files if file.name != "cost.csv"}


SMALL: dict[str, Any] = read_yaml(ROOT / ".test" / "config" / "study.yaml")
