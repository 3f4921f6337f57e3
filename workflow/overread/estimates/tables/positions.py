"""Answer positions: where the right option stands, which place is chosen, and whether being right depends on the
place.

Places are as shown, from 1. `gold_share` is over all trials that did not fail; `chosen_share` over those answered;
`recall` is the share answered right of the trials whose right option stands there (not read, refused or cut off is
not right). No standard deviation of the recalls is made of them: with few trials a place it is far from 0 for a model
that does not look at the place.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from overread.core.columns import DATASET, FROM_1, MODEL, SETTING, Column, share
from overread.estimates.scored import CellKey
from overread.estimates.tables import Table

TABLE = Table(
    __name__,
    __doc__,
    (
        DATASET, MODEL, SETTING, Column("position", "the place as shown, from 1", "whole", range=FROM_1),
        share("gold_share", "share of the trials whose correct option stands there"),
        share("chosen_share", "share of the answers that choose it", blank="nothing was answered"),
        share(
            "recall", "share answered correctly of the trials whose correct option stands there",
            blank="no correct option stands there",
        ),
    ),
    lambda run: positions_table(run.cells),
)  # fmt: skip


def positions_table(cells: Mapping[CellKey, pd.DataFrame]) -> pd.DataFrame:
    """A row a cell and place, sorted. Blank where nothing was answered, or no right option stands there."""
    rows: list[list[object]] = []
    for key in sorted(cells):
        scored = cells[key][cells[key]["status"] != "failed"]
        if not len(scored):
            continue
        places = int(scored["n_options"].max())
        gold = np.bincount(scored["gold"], minlength=places)
        hits = np.bincount(scored["gold"], weights=scored["right"], minlength=places)
        answers = scored.loc[scored["status"] == "answered", "answer"]
        chosen = np.bincount(answers, minlength=places)
        for place in range(places):
            share = chosen[place] / len(answers) if len(answers) else None
            recall = hits[place] / gold[place] if gold[place] else None
            rows.append([*key, place + 1, gold[place] / len(scored), share, recall])
    return TABLE.frame(rows)
