"""Cells: a dataset, a model and a setting that some evaluation asks for, once, however often it is asked."""

from __future__ import annotations

from dataclasses import dataclass

from overread.config import Config, Evaluation


@dataclass(frozen=True, order=True)
class Cell:
    """One model under one setting on one dataset, in so many runs."""

    dataset: str
    model: str
    setting: str
    runs: int

    @property
    def name(self) -> tuple[str, str, str]:
        return self.dataset, self.model, self.setting


def cells(config: Config) -> list[Cell]:
    """All that the evaluations ask for, sorted by name. A cell in two evaluations has the larger number of runs."""
    runs: dict[tuple[str, str, str], int] = {}
    for evaluation in config.evaluations:
        for cell in cells_of(config, evaluation):
            runs[cell.name] = max(cell.runs, runs.get(cell.name, 0))
    return sorted(Cell(*name, runs=number) for name, number in runs.items())


def cells_of(config: Config, evaluation: Evaluation) -> list[Cell]:
    """What one evaluation asks for."""
    return [
        Cell(evaluation.dataset, model, setting, evaluation.runs)
        for model in config.models_of(evaluation)
        for setting in config.settings_of(evaluation)
    ]
