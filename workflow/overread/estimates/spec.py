"""What the tables are made of: a run's cells, and what to compare. It comes from the config as JSON."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from overread.config import Comparison, Effect, Section, Setting, Statistics
from overread.core.errors import unknown


class Cell(Section):
    """One model's answers to one setting of one dataset, in runs 1 to `runs`."""

    dataset: str
    model: str
    setting: str
    runs: int = Field(ge=1)


class TablesSpec(Section):
    """The spec of `overread tables make`. A comparison or an effect that lacks a cell is left out of the tables."""

    cells: tuple[Cell, ...] = Field(min_length=1)
    settings: dict[str, Setting]
    comparisons: dict[str, Comparison]
    effects: dict[str, Effect]
    statistics: Statistics
    decoding: dict[str, Literal["greedy", "sampled", "unknown"]] = Field(
        default_factory=dict, description="how each model draws its answers; unknown for one that is not named"
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        seen: set[tuple[str, str, str]] = set()
        for cell in self.cells:
            key = (cell.dataset, cell.model, cell.setting)
            if key in seen:
                raise ValueError(f"the cell {' / '.join(key)} occurs twice")
            seen.add(key)
            if cell.setting not in self.settings:
                raise ValueError(f"cells: {unknown('setting', cell.setting, self.settings)}")
        for name in self.statistics.primary:
            if name not in self.comparisons:
                raise ValueError(f"statistics.primary: {unknown('comparison', name, self.comparisons)}")
        for name, effect in self.effects.items():
            for one in effect.minus:
                if one not in self.comparisons and one not in self.effects:
                    raise ValueError(f"effects.{name}.minus: {unknown('comparison', one, self.comparisons)}")
            effect.terms(self.comparisons, self.effects, (name,))
            if name in self.comparisons and self.comparisons[name].accuracy is not None:
                raise ValueError(
                    f"effects.{name}: a comparison of accuracy has this name too, and both go into effects.csv"
                )
        return self
