"""What the jobs are told that put trials to models, and what they depend on."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from overread.config.kinds import BACKENDS
from overread.core.provenance import code_of
from overread.plan.jobs import Jobs, each


@dataclass(frozen=True)
class Together:
    """A job that answers several runs, so that a model is loaded once.

    runs  how many of each setting
    """

    dataset: str
    model: str
    name: str
    runs: Mapping[str, int]


class Asking:
    """The jobs of a study that put trials to models.

    with_conda  whether each job has an environment of its own
    """

    def __init__(self, jobs: Jobs, *, with_conda: bool) -> None:
        self.jobs, self.models, self.with_conda = jobs, jobs.config.models, with_conda

    def section(self, model: str) -> dict[str, Any]:
        """What of a model's file its jobs depend on: all but its label, its note and its resources."""
        section = self.models[model].model_dump(mode="json", exclude={"label", "note", "resources"})
        return {**section, "label": model}

    def code(self, command: str, model: str) -> str:
        """Of a command that asks a model: with the section of its back end and the class that the section names."""
        section = self.models[model]
        return code_of(command, BACKENDS.places[section.backend], section.implementation)

    def attested(self) -> str:
        """Endpoints that may receive restricted data, as options."""
        return " ".join(f"--attested {shlex.quote(one)}" for one in sorted(self.jobs.config.attested_endpoints))

    def server(self, model: str) -> str:
        """Where restricted data may go, and where the jobs of a model write down what they spend; nothing for one that
        is here."""
        if self.models[model].stays_here:
            return ""
        return f"{self.attested()} --ledger {shlex.quote(f'{self.jobs.results}/work/spent/{model}.jsonl')}"

    def weights(self, model: str) -> list[str]:
        """The files of a model that lies in folders: new weights ask anew."""
        folders = [Path(folder).expanduser() for folder in self.models[model].folders]
        return sorted(str(file) for folder in folders for file in folder.rglob("*") if file.is_file())

    def environment(self, model: str) -> str:
        """Some back ends want other versions than the rest."""
        named = self.models[model].environment
        return named if os.path.isabs(named) else f"../../envs/{named}.yaml"

    def python(self, model: str) -> str:
        """The interpreter that asks a model."""
        root = self.jobs.root
        named = None if self.with_conda else self.models[model].interpreter(root)
        if named is None:
            return "python"
        return os.path.relpath(named) if Path(named).is_relative_to(root) else str(named)

    def together(self, group: Literal["setting", "model"]) -> list[Together]:
        """The jobs that answer all runs of a setting, or all of a model."""
        found: dict[tuple[str, str, str], dict[str, int]] = {}
        for cell in self.jobs.cells:
            name = f"{cell.dataset}_{cell.model}" + (f"_{cell.setting}" if group == "setting" else "")
            found.setdefault((cell.dataset, cell.model, name), {})[cell.setting] = cell.runs
        return [Together(*key, dict(sorted(runs.items()))) for key, runs in sorted(found.items())]

    def minutes(self, model: str, runs: Mapping[str, int]) -> int:
        """What a job that answers these runs may take: as long as if each had a job of its own."""
        return self.models[model].resources.runtime * sum(runs.values())

    def responses(self, dataset: str, model: str, runs: Mapping[str, int], ending: str = "parquet") -> list[str]:
        """The files of a model's responses, or of what they cost."""
        folder = f"{self.jobs.results}/{dataset}/responses/{model}"
        return [f"{folder}/{setting}/run-{run}.{ending}" for setting, run in each(runs)]

    def all_responses(self) -> list[str]:
        cells = self.jobs.cells
        return [file for one in cells for file in self.responses(one.dataset, one.model, {one.setting: one.runs})]
