"""What the jobs of a study are told and depend on: the typed home of what the rules ask.

A job is told what it depends on through its params, as JSON with sorted keys: a change of the config runs again the
jobs whose part of it changed, and no others. Here is nothing of Snakemake's; `asking` has the jobs that put trials to
models, `telling` what the tables and the report are told.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from overread.config import Config, GeneratedQuestions
from overread.config.kinds import SOURCES, VIEWS
from overread.core import resources
from overread.core.provenance import code_of
from overread.core.records import read_studies
from overread.edits import EDITS
from overread.plan.asked import Cell
from overread.questions import ORIGINS
from overread.settings.edit import Edits
from overread.settings.image import Image
from overread.settings.report import UNEDITED, Report
from overread.trials import template_files


def as_json(part: Any) -> str:
    """A part of the config as JSON whose text changes only if its meaning does."""
    return json.dumps(part.model_dump(mode="json") if isinstance(part, BaseModel) else part, sort_keys=True)


class Jobs:
    """The jobs of a study.

    config   the checked config
    root     the folder of the Snakefile
    cells    what can run
    results  the folder of the results, from the working directory
    """

    def __init__(self, config: Config, root: Path, cells: Sequence[Cell]) -> None:
        self.config, self.root, self.cells = config, root, tuple(cells)
        self.results = f"results/{config.name}"

    # -- what there is of each data set --------------------------------------------------------------------------------

    @cached_property
    def datasets(self) -> list[str]:
        return sorted({cell.dataset for cell in self.cells})

    def cells_of(self, dataset: str) -> list[Cell]:
        return [cell for cell in self.cells if cell.dataset == dataset]

    def runs_of(self, dataset: str) -> list[tuple[str, int]]:
        """(setting, run) of a data set, each once, for however many models."""
        cells = self.cells_of(dataset)
        return sorted({(cell.setting, run) for cell in cells for run in range(1, cell.runs + 1)})

    @property
    def restricted(self) -> bool:
        """Whether any data set is."""
        return any(self.config.datasets[dataset].restricted for dataset in self.datasets)

    # -- studies -------------------------------------------------------------------------------------------------------

    def source(self, dataset: str) -> str:
        """The folder or file that a data set is read from."""
        place = self.config.datasets[dataset].place
        return f"{self.results}/{dataset}/source" if place is None else place

    def tables_of_source(self, dataset: str) -> list[str]:
        """The files that a data set's section names besides: labels, metadata, a CSV of reports. No folders."""
        named = self.config.datasets[dataset].all_read.values()
        return sorted(path for path in named if path is not None and os.path.isfile(path))

    def source_section(self, dataset: str) -> dict[str, Any]:
        """A data set's section without its questions and substitutes: what is asked does not change what is read."""
        return {
            **self.config.datasets[dataset].model_dump(mode="json", exclude={"substitutes"}),
            "questions": {"origin": "grammar"},
            **self._segmentation_read(dataset),
        }

    def _segmentation_read(self, dataset: str) -> dict[str, Any]:
        """What readers want to know of a segmentation: whether a study needs a mask of its own."""
        section = self.segmentation(dataset)
        if section is None:
            return {}
        return {"segmentation": section.model_dump(mode="json", include={"method", "checkpoint"}, exclude_none=True)}

    def source_code(self, command: str, dataset: str) -> str:
        """Of `studies make` and `studies read`."""
        return code_of(command, SOURCES.places[self.config.datasets[dataset].source])

    def edits_code(self, *settings: str) -> list[str]:
        """Where the edits of settings lie, of all settings that are asked if none is named."""
        named = settings or tuple({cell.setting for dataset in self.datasets for cell in self.cells_of(dataset)})
        kinds = {one.kind for name in named for one in self.config.settings[name][Edits].edit}
        return [EDITS.places[kind] for kind in sorted(kinds)]

    def trials_code(self, setting: str) -> str:
        return code_of("trials build", *self.edits_code(setting))

    # -- images --------------------------------------------------------------------------------------------------------

    def views(self, dataset: str) -> dict[str, dict[str, Any]]:
        """The views that some setting of the data set shows. Only these are rendered."""
        config = self.config
        used = [config.settings[cell.setting] for cell in self.cells_of(dataset)]
        shown = {
            one.view(view): one.view_section(config.views[view].model_dump(mode="json"))
            for one in used
            if (view := one[Image].images) != "none"
        }
        return dict(sorted(shown.items()))

    def view_code(self, dataset: str) -> str:
        views = self.views(dataset).values()
        edits = (EDITS.places[one["kind"]] for view in views for one in view.get("edit", ()))
        return code_of("images render", *(VIEWS.places[view["kind"]] for view in views), *edits)

    def segmentation(self, dataset: str) -> Any:
        """The section that says whose masks choose the slices; None for a data set that has none to choose by."""
        return getattr(self.config.datasets[dataset], "segmentation", None)

    def segmentation_section(self, dataset: str) -> dict[str, Any]:
        """What masks depend on, and where they are made; what the job asks of the cluster changes none."""
        section: dict[str, Any] = self.segmentation(dataset).model_dump(mode="json", exclude={"resources"})
        return section

    def makes_masks(self, dataset: str) -> bool:
        """Whether masks are made, and not the data set's own taken."""
        section = self.segmentation(dataset)
        return section is not None and section.makes_masks

    def checkpoint(self, dataset: str) -> tuple[str | None, bool]:
        """The network's weights, and whether they are told apart by their hash in the config and not by their time."""
        section = self.segmentation(dataset)
        path = getattr(section, "checkpoint", None)
        return path, path is not None and section.checkpoint_sha256 is not None

    def study_files(self, images: Mapping[str, str]) -> list[str]:
        """The files of a study that are there; a missing one is the renderer's to report, and stops no other study."""
        return [file for path in sorted(images.values()) for file in files_at(path)]

    def files_to_segment(self, dataset: str, images: Mapping[str, str]) -> list[str]:
        """What of a study its segmentation reads; as with its views, a missing file is the job's to report."""
        wanted = [images[name] for name in self.segmentation(dataset).reads if name in images]
        return sorted(file for file in wanted if os.path.exists(file))

    # -- questions -----------------------------------------------------------------------------------------------------

    @cached_property
    def generated(self) -> list[str]:
        """The data sets whose questions models write."""
        return sorted(name for name, one in self.config.datasets.items() if one.questions.origin == "generated")

    def question_files(self, dataset: str) -> str | list[str]:
        """Where questions come from besides the studies: the phantom's folder, or the user's file."""
        section = self.config.datasets[dataset].questions
        if section.origin == "grammar":
            return self.source(dataset)
        return section.path if section.origin == "file" else []

    def question_code(self, dataset: str) -> str:
        return code_of("questions build", ORIGINS[self.config.datasets[dataset].questions.origin])

    def generation(self, dataset: str) -> GeneratedQuestions:
        section = self.config.datasets[dataset].questions
        assert isinstance(section, GeneratedQuestions)
        return section

    def generation_section(self, dataset: str) -> dict[str, Any]:
        """What author and validator depend on: rules, review and release come after them."""
        return self.generation(dataset).model_dump(mode="json", exclude={"rules", "review", "release"})

    def filter_rules(self, dataset: str) -> str:
        """The file with the rules that generated questions must pass."""
        return self.generation(dataset).rules or str(resources.FILTER)

    # -- trials --------------------------------------------------------------------------------------------------------

    def substitutes_section(self, dataset: str) -> str:
        """What substitutes must be like."""
        return as_json(self.config.datasets[dataset].substitutes)

    def substitutes_questions(self, dataset: str) -> str:
        """What is true of each question, where each has substitutes of its own; else nothing.

        Quoted for the shell: an empty value that Snakemake quotes vanishes from the command.
        """
        section = self.config.datasets[dataset]
        return shlex.quote(as_json(section.questions) if section.substitutes.by_topic else "")

    def paper(self, dataset: str) -> str:
        """Whose counts stand beside a cohort's: ModaLens took the test split of MIMIC-CXR."""
        paper = self.config.datasets[dataset].paper
        return "" if paper is None else f"--paper {paper}"

    def templates(self, setting: str) -> list[str]:
        """The templates of a setting's trials. The user's own folder goes before Overread's."""
        own = [resources.PROMPTS]
        folders = own if self.config.prompts is None else [Path(self.config.prompts), *own]
        return [str(file) for file in template_files(self.config.settings[setting][Report].report, *folders)]

    def finding_words(self, setting: str) -> str | list[str]:
        """The file with the words that mention a finding, for a report that is edited."""
        if self.config.settings[setting][Report].report in UNEDITED:
            return []
        return self.config.reports.findings or str(resources.FINDINGS)

    def report_options(self, setting: str, findings: str | Sequence[str]) -> str:
        """How `trials build` is told of the user's own templates, words and tokenizer."""
        given = {"--prompts": self.config.prompts, "--findings": findings or None}
        if self.config.settings[setting][Report].report not in UNEDITED:
            given["--tokenizer"] = self.config.reports.tokenizer
        return " ".join(f"{option} {shlex.quote(str(value))}" for option, value in given.items() if value is not None)

    def trials(self, dataset: str, runs: Mapping[str, int]) -> list[str]:
        """The files of trials of so many runs of each setting."""
        return [f"{self.results}/{dataset}/trials/{setting}/run-{run}.parquet" for setting, run in each(runs)]


def each(runs: Mapping[str, int]) -> Iterable[tuple[str, int]]:
    """(setting, run) of so many runs of each setting."""
    return ((setting, run) for setting, count in runs.items() for run in range(1, count + 1))


def files_at(path: str) -> list[str]:
    """An image's file; of a DICOM series the files of its folder; nothing where there is nothing."""
    if os.path.isdir(path):
        return sorted(entry.path for entry in os.scandir(path) if entry.is_file())
    return [path] if os.path.exists(path) else []


def images_of(file: Path) -> dict[str, dict[str, str]]:
    """The images of each usable study in `studies.parquet`, by its name."""
    written = file.stat()
    return _images_of(file, written.st_mtime_ns, written.st_size)


@cache
def _images_of(file: Path, *written: int) -> dict[str, dict[str, str]]:
    """Every study asks for its own: the file is read once as it was written."""
    return {row.study: dict(row.images) for row in read_studies(file)}
