"""Occlusion in the lesion and elsewhere: how often answers change when cells that hide the lesion are covered, less how
often when cells without any of it are.

Of a question, cells of the lesion count by the share of it that they hide, cells without it all alike. A reader that
does not depend on the lesion has a difference of 0. Only whole grids are counted, over the questions that were answered
under all of their cells and whose study's picture shows a lesion.

`weight_in_lesion` is the mean share of the lesion that is hidden where an answer changes: of a reader that looks
anywhere it is `area`, 1 over the number of cells.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from overread.config import Setting, Statistics
from overread.core.columns import (
    DATASET,
    HIGH,
    LOW,
    MODEL,
    PATIENTS,
    PATIENTS_MOVED,
    SETTING,
    P,
    count,
    difference,
    share,
)
from overread.estimates.scored import CellKey
from overread.estimates.tables import Table
from overread.estimates.tables.grounding import mean_difference
from overread.estimates.tables.occlusion import GRID, Hidden, compared, hidden_in, of_models

TABLE = Table(
    __name__,
    __doc__,
    (
        DATASET, MODEL, SETTING, GRID, count("maps", "questions in a run, answered under every cell and without any"),
        PATIENTS, share("changed_lesion", "share of answers that change where the lesion is covered"),
        share("changed_elsewhere", "share of answers that change where a cell without lesion is covered"),
        difference("in_lesion", "the first less the second"), LOW, HIGH, P,
        share("weight_in_lesion", "mean share of the lesion hidden where an answer changes", blank="none changes"),
        share("area", "the same of a reader that looks anywhere"), PATIENTS_MOVED,
    ),
    lambda run: occlusion_lesion_table(run.cells, run.spec.settings, run.spec.statistics, hidden_in(run)),
)  # fmt: skip


def occlusion_lesion_table(
    cells: Mapping[CellKey, pd.DataFrame],
    settings: Mapping[str, Setting],
    statistics: Statistics,
    hidden: Mapping[str, Hidden],
) -> pd.DataFrame:
    """A row a dataset, model and whole map.

    hidden  by dataset
    """
    rows: list[list[object]] = []
    for dataset, model, one, of_model in of_models(cells, settings):
        if len(one.cells) < one.grid**2:
            continue
        of_cells = [
            compared(of_model, one.own, name, settings, hidden.get(dataset, {})).set_index(["question", "run"])
            for name in one.cells.values()
        ]
        changed = pd.concat([frame["changed"] for frame in of_cells], axis=1).to_numpy()
        hides = pd.concat([frame["hides"] for frame in of_cells], axis=1).to_numpy()
        names = pd.concat([frame["patient"] for frame in of_cells], axis=1).bfill(axis=1).iloc[:, 0]
        whole = ~np.isnan(changed).any(axis=1) & ~np.isnan(hides).any(axis=1)
        whole &= (np.nan_to_num(hides).sum(axis=1) > 0) & (np.nan_to_num(hides) == 0).any(axis=1)
        if not whole.any():
            continue
        changed, hides, patients = changed[whole], hides[whole], names[whole]
        inside = (changed * hides).sum(axis=1) / hides.sum(axis=1)
        away = hides == 0
        outside = (changed * away).sum(axis=1) / away.sum(axis=1)
        found = mean_difference(inside - outside, pd.DataFrame({"patient": patients.to_numpy()}))
        moved = changed.sum()
        rows.append(
            [
                dataset, model, one.own, one.grid, int(whole.sum()), found.patients, float(inside.mean()),
                float(outside.mean()), found.estimate, *found.limits(statistics.level), found.p_above(0.0),
                float((changed * hides).sum() / moved) if moved else None, 1 / one.grid**2, found.shown,
            ]
        )  # fmt: skip
    return TABLE.frame(rows)
