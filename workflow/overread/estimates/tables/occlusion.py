"""Occlusion maps: how often answers change when one cell of a grid over the picture is covered.

Settings are found by what they are: one whose picture is not edited, and those that differ from it in one `occlude`
with a cell of a grid. `lesion_share` is how much of the lesion in the picture the cell hides, on average over the
studies whose picture shows some; occlusion_lesion.csv sets changes in the lesion's cells against those elsewhere.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd

from overread.config import Setting, Statistics
from overread.core.columns import DATASET, HIGH, LOW, MODEL, PATIENTS, SETTING, count, difference, number, share
from overread.edits.occlude import Occlude
from overread.estimates.inference.clusters import Clusters
from overread.estimates.inference.limits import proportion
from overread.estimates.scored import CellKey, code_patients
from overread.estimates.tables import Table
from overread.estimates.tables.grounding import side_by_side
from overread.settings.edit import Edits
from overread.settings.image import Image

if TYPE_CHECKING:
    from overread.estimates.run import Run

Hidden = Mapping[tuple[str, str], float]
"""By study and rendered view: the share of the lesion that is hidden. Studies whose picture shows no lesion lack."""
GRID = count("grid", "cells per side of the grid")
TABLE = Table(
    __name__,
    __doc__,
    (
        DATASET, MODEL, SETTING, GRID, count("cell", "number of the covered cell, in reading order from 0"),
        count("pairs_compared", "answers to a question in one run, given with the cell covered and without"), PATIENTS,
        share("changed", "share of them that change when the cell is covered"), LOW, HIGH,
        difference("cell_cost", "accuracy of the plain picture less that with the cell covered"),
        number("lesion_share", "mean share of the lesion that the cell hides", blank="no picture shows a lesion"),
    ),
    lambda run: occlusion_table(run.cells, run.spec.settings, run.spec.statistics, hidden_in(run)),
)  # fmt: skip


def hidden_in(run: Run) -> Mapping[str, Hidden]:
    """By data set; nothing is read where no setting covers a cell."""
    return run.hidden if any(maps(run.spec.settings)) else {}


class Map(NamedTuple):
    """The settings that cover the cells of one grid, by cell."""

    own: str
    grid: int
    cells: dict[int, str]


def maps(settings: Mapping[str, Setting]) -> Iterator[Map]:
    """The maps that settings make, sorted."""
    for own, plain in sorted(settings.items()):
        if plain[Edits].effective_edits:
            continue
        by_grid: dict[int, dict[int, str]] = defaultdict(dict)
        for name, one in sorted(settings.items()):
            edits = one[Edits].effective_edits
            if len(edits) != 1 or plain.difference(one).keys() != {"edit"}:
                continue
            if isinstance(edits[0], Occlude) and edits[0].cell is not None:
                by_grid[edits[0].grid].setdefault(edits[0].cell, name)
        for grid, cells in sorted(by_grid.items()):
            yield Map(own, grid, dict(sorted(cells.items())))


def occlusion_table(
    cells: Mapping[CellKey, pd.DataFrame],
    settings: Mapping[str, Setting],
    statistics: Statistics,
    hidden: Mapping[str, Hidden],
) -> pd.DataFrame:
    """A row a dataset, model, map and cell.

    hidden  by dataset
    """
    rows: list[list[object]] = []
    for dataset, model, one, of_model in of_models(cells, settings):
        for cell, name in one.cells.items():
            pairs = compared(of_model, one.own, name, settings, hidden.get(dataset, {}))
            if not len(pairs):
                continue
            (patients,) = code_patients(pairs["patient"])
            found = proportion(pairs["changed"].to_numpy(), Clusters(patients))
            by_study = pairs.groupby("study")["hides"].first()
            shown = None if by_study.isna().all() else float(by_study.mean())
            rows.append(
                [
                    dataset, model, one.own, one.grid, cell, len(pairs), pairs["patient"].nunique(), found.estimate,
                    *found.limits(statistics.level), float((pairs["right_0"] - pairs["right_1"]).mean()), shown,
                ]
            )  # fmt: skip
    return TABLE.frame(rows)


def of_models(
    cells: Mapping[CellKey, pd.DataFrame], settings: Mapping[str, Setting]
) -> Iterator[tuple[str, str, Map, dict[str, pd.DataFrame]]]:
    """Dataset, model, map, and the model's rows by setting."""
    for dataset, model in sorted({key[:2] for key in cells}):
        of_model = {key[2]: frame for key, frame in cells.items() if key[:2] == (dataset, model)}
        for one in maps({name: settings[name] for name in of_model}):
            yield dataset, model, one, of_model


def compared(
    of_model: Mapping[str, pd.DataFrame], own: str, covered: str, settings: Mapping[str, Setting], hidden: Hidden
) -> pd.DataFrame:
    """Answers given both times: whether each changed, and how much of its lesion was hidden (NaN: none is seen)."""
    pairs = side_by_side([of_model[own], of_model[covered]])
    pairs = pairs[pairs["answered"]].merge(of_model[own][["question", "run", "study"]], on=["question", "run"])
    view = settings[covered].view(settings[covered][Image].images)
    return pairs.assign(
        changed=(pairs["choice_0"] != pairs["choice_1"]).astype(np.float64),
        right_0=pairs["right_0"].astype(np.float64),
        right_1=pairs["right_1"].astype(np.float64),
        hides=[hidden.get((study, view), np.nan) for study in pairs["study"]],
    )
