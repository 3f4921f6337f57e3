"""What the tables and the report of a study are told."""

from __future__ import annotations

from typing import Any

from overread.config import HumanSubset
from overread.config.kinds import SOURCES, VIEWS
from overread.core.provenance import code_of
from overread.estimates import tables
from overread.plan.asking import Asking
from overread.plan.jobs import Jobs
from overread.plan.judging import not_run


def what_was_run(jobs: Jobs) -> dict[str, Any]:
    """Everything that the tables depend on, in an order that the config's order does not change."""
    config, used = jobs.config, sorted({cell.setting for cell in jobs.cells})
    return {
        "cells": [vars(cell) for cell in jobs.cells],
        "settings": {name: config.settings[name].model_dump(mode="json") for name in used},
        "comparisons": {name: one.model_dump(mode="json") for name, one in config.comparisons.items()},
        "effects": {name: one.model_dump(mode="json") for name, one in config.effects.items()},
        "statistics": config.statistics.model_dump(mode="json"),
        "decoding": {name: config.models[name].draws for name in sorted({cell.model for cell in jobs.cells})},
    }


def whole_study(jobs: Jobs) -> dict[str, Any]:
    """What the report tells besides."""
    config = jobs.config
    models = sorted({cell.model for cell in jobs.cells})
    return {
        **what_was_run(jobs),
        "name": config.name,
        "title": config.title,
        "models": {name: config.models[name].model_dump(mode="json") for name in models},
        "datasets": {name: config.datasets[name].model_dump(mode="json") for name in jobs.datasets},
        "views": {name: view for dataset in jobs.datasets for name, view in jobs.views(dataset).items()},
        # With these the viewer builds trials as the run did.
        "seed": config.seed,
        "prompts": config.prompts,
        "reports": config.reports.model_dump(mode="json"),
        "config_hash": config.identity(),
        "not_run": not_run(config),
    }


def labels(jobs: Jobs) -> dict[str, str]:
    """How each model is called in figures."""
    return {cell.model: jobs.config.models[cell.model].label for cell in jobs.cells}


def tables_code(command: str, jobs: Jobs, *, readers: bool) -> str:
    """Of a command that makes or reads tables: those of models, or with `readers` those of readers too.

    The report says in words what each source and view is.
    """
    made = {tables.module(name) for name in tables.names(readers=readers)} | set(jobs.edits_code())
    if command == "tables report":
        made |= {tables.module(name) for name in tables.names()}
        made |= {SOURCES.places[jobs.config.datasets[dataset].source] for dataset in jobs.datasets}
        made |= {VIEWS.places[view["kind"]] for dataset in jobs.datasets for view in jobs.views(dataset).values()}
    return code_of(command, *made)


class Rated:
    """The reader studies whose ratings are there."""

    def __init__(self, asking: Asking) -> None:
        self.asking, self.jobs = asking, asking.jobs
        human = self.jobs.config.human
        self.subsets: dict[str, HumanSubset] = {name: one for name, one in sorted(human.items()) if one.ratings}

    def __bool__(self) -> bool:
        return bool(self.subsets)

    def section(self) -> dict[str, Any]:
        """What the tables of readers depend on besides the ratings. The order of the files changes nothing."""
        return {name: {**vars(subset), "ratings": sorted(subset.ratings)} for name, subset in self.subsets.items()}

    def ratings(self) -> list[str]:
        return sorted({path for subset in self.subsets.values() for path in subset.ratings})

    def datasets(self) -> list[str]:
        return sorted({subset.dataset for subset in self.subsets.values()})

    def responses(self) -> list[str]:
        """The answers of every model to the data sets that people were asked about, with their trials."""
        files = []
        for dataset in self.datasets():
            trials = f"{self.jobs.results}/{dataset}/trials"
            files += [f"{trials}/{setting}/run-{run}.parquet" for setting, run in self.jobs.runs_of(dataset)]
            for cell in self.jobs.cells_of(dataset):
                files += self.asking.responses(dataset, cell.model, {cell.setting: cell.runs})
        return files
