"""config/config.yaml grown to any size, on stub files: something to plan, and nothing to run."""

from __future__ import annotations

import copy
import os
import re
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from overread.config import read_yaml
from overread.core.records import Study, write_studies

ROOT = Path(__file__).resolve().parents[2]
SERIES = ("T1", "T1_gad", "T2", "FLAIR")
MODEL = {
    "label": "A model", "backend": "transformers", "weights": "some/weights", "dtype": "bfloat16",
    "takes": {"images": 85, "logprobs": True}, "resources": {"gpu": 1, "mem_mb": 48000, "runtime": 240},
}  # fmt: skip
ENVIRONMENT = {**os.environ, "OPENAI_API_KEY": "none"}
FOLDERS = ("segmentation", "black", "figures")
"""Last parts of the outputs that are folders."""


@dataclass(frozen=True)
class Planned:
    """What a dry run says, and what it takes: seconds on a CPU of its own, and most memory."""

    jobs: Counter[str]
    models: Counter[str]
    seconds: float
    peak_bytes: int


class BigStudy:
    """A folder with the config, its model files and stub data. `studies` studies a data set.

    models, settings, runs   of an evaluation that is added to those of both papers
    """

    def __init__(self, folder: Path, *, studies: int, models: int, settings: int, runs: int) -> None:
        self.folder, self.studies = folder, studies
        self.config_file = folder / "config" / "config.yaml"
        (folder / "config" / "models").mkdir(parents=True)
        config = read_yaml(ROOT / "config" / "config.yaml")
        for file in sorted((ROOT / "config" / "models").glob("*.yaml")):
            section = read_yaml(file)
            if str(section.get("weights", "")).startswith("."):
                continue  # the demo's own
            if section["backend"] in ("med3dvlm", "contrastive"):
                section |= {"revision": "0" * 40, "trust_remote_code": True}
            (folder / "config" / "models" / file.name).write_text(yaml.safe_dump(section))
        self.names = [f"model-{number}" for number in range(1, models + 1)]
        for name in self.names:
            self._model_file(name)
        shown = {
            f"shown-{number}": {"extends": "single-slice", "options": f"rotated-{number}"} for number in range(1, 4)
        }
        for number in range(4, settings + 1):
            shown[f"shown-{number}"] = {"extends": "single-slice", "substitute": number - 3, "source": "substitute"}
        config["settings"] |= dict(list(shown.items())[:settings])
        config["datasets"]["ucsf-pdgm"]["substitutes"] = {"count": max(settings, 1)}
        self.evaluation = {"dataset": "ucsf-pdgm", "settings": sorted(shown)[:settings], "runs": runs}
        self.config = config
        self.config["attested_endpoints"] = ["https://api.openai.com/v1"]
        self._write()
        self._stubs()

    def add_model(self) -> str:
        self.names.append(f"model-{len(self.names) + 1}")
        self._model_file(self.names[-1])
        self._write()
        return self.names[-1]

    def _model_file(self, name: str) -> None:
        (self.folder / "config" / "models" / f"{name}.yaml").write_text(yaml.safe_dump(MODEL))

    def _write(self) -> None:
        config = copy.deepcopy(self.config)
        config["evaluations"].append({**self.evaluation, "models": self.names})
        self.config_file.write_text(yaml.safe_dump(config, sort_keys=False))

    def _stubs(self) -> None:
        data = self.folder / "data"
        for name in (
            "UCSF-PDGM-v5/UCSF-PDGM-0000_nifti/flair.nii.gz", "UCSF-PDGM-reports/0000.txt",
            "swin-unetr-brats21/model.pt", "MIMIC-CXR-JPG/files/p10/p10000000/s50000000/one.jpg", "MIMIC-CXR/one.txt",
        ):  # fmt: skip
            touch(data / name)
        touch(data / "series.nii.gz")
        brains, chests = [], []
        for number in range(self.studies):
            common: dict[str, Any] = {"labels": {}, "report": {}, "restricted": True, "patient": f"p{number:04}"}
            images = {name: str(data / "series.nii.gz") for name in SERIES}
            brains.append(Study(study=f"b{number:04}", dataset="ucsf-pdgm", modality="mri", images=images, **common))
            images = {"frontal": str(data / "series.nii.gz")}
            chests.append(Study(study=f"c{number:04}", dataset="mimic-cxr", modality="xray", images=images, **common))
        self.read = {"ucsf-pdgm": brains, "mimic-cxr": chests}

    def command(self, *arguments: str) -> list[str]:
        return [
            sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "Snakefile"), "--directory",
            str(self.folder), "--configfile", str(self.config_file), "--cores", "1", *arguments,
        ]  # fmt: skip

    def run(self, *arguments: str) -> str:
        done = subprocess.run(
            self.command(*arguments), capture_output=True, text=True, cwd=self.folder, env=ENVIRONMENT, check=False
        )
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        return done.stdout

    def read_studies(self) -> None:
        """The data sets are read: what the checkpoints make is there."""
        for dataset, studies in self.read.items():
            folder = self.folder / "results" / "papers" / dataset
            write_studies(studies, folder / "studies.parquet")
            touch(folder / "studies_remarks.csv")
            touch(folder / "studies_counts.csv")
        self.run("--touch", "studies")

    def finish(self) -> None:
        """Everything is made, as stubs, and Snakemake has it recorded."""
        table = self.run("--summary")
        for line in table.splitlines()[1:]:
            output = self.folder / line.split("\t")[0]
            if output.name in FOLDERS:
                output.mkdir(parents=True, exist_ok=True)
            elif not output.exists():
                touch(output)
        self.run("--touch")

    def plan(self) -> Planned:
        """A dry run, in a process of its own whose time and memory are taken when it has ended."""
        out = self.folder / "plan.txt"
        with out.open("w") as file:
            process = subprocess.Popen(
                self.command("--dry-run"), stdout=file, stderr=subprocess.STDOUT, cwd=self.folder, env=ENVIRONMENT
            )
            _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        text = out.read_text()
        assert process.returncode == 0, text[-3000:]
        jobs = Counter(
            {rule: int(count) for rule, count in re.findall(r"^(\w+) +(\d+)$", text, re.MULTILINE) if rule != "total"}
        )
        models = Counter(re.findall(r"^Job \d+: Asking (\S+) about", text, re.MULTILINE))
        return Planned(jobs, models, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024)


def touch(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
