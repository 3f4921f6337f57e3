"""Whether answers depend on the image beyond the noise floor: a test a model and image swap, adjusted for their number.

The null hypothesis is that swapping the image is to the answers what asking once more is. With two runs, a question
has three answers that count: that of run 1 with the own image, that of run 2 with the own image, and that of run 2 with
the other image. The second may differ from the first by noise, the third by noise and by the image; under the null the
last two are exchangeable, all of a patient's at once. So the sign of each patient's surplus, flips under the swap less
flips of the rerun, is a coin's, and flipping signs over patients gives an exact test, however a patient's answers hang
together (Fisher 1935; for clusters Winkler et al. 2015). Runs are taken in separate twos (1 and 2, 3 and
4), since pairs that share a run would not be exchangeable; only questions with all three answers count.

Where there is no rerun, the floor is taken as no flips at all, and the sign of each patient's flips is flipped all the
same: p is 2^-k where k patients flip. It is a test of a model that decodes greedily, and says nothing of one that draws
its answers by chance.

One-sided. All tests of a study are adjusted together by Holm (1979).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd

from overread.config import Comparison, Setting, Statistics
from overread.core.columns import COMPARISON, DATASET, FLIP_RATE, MODEL, PAIRS, PATIENTS, difference, share, text
from overread.estimates.bootstrap import FloatArray
from overread.estimates.scored import CellKey
from overread.estimates.tables import Table
from overread.estimates.tables.flips import pairs_of, runs_of
from overread.settings.image import Image
from overread.settings.report import Report

OTHERWISE = ("order", "options", "readout", "questions")
"""Fields that a tested pair may both have changed: how the question is put. Any other change is another question."""
FLOORS = ("measured", "not measured")
TABLE = Table(
    __name__,
    __doc__,
    (
        DATASET, MODEL, COMPARISON,
        text("report_shown", "the report that both settings show", values=("none", "full")),
        text("floor_basis", "whether reruns tell the noise floor; else it is taken as 0", values=FLOORS),
        PAIRS, PATIENTS, FLIP_RATE,
        share("floor_rate", "share of the same questions that flip in the rerun"),
        difference("surplus", "flip_rate less floor_rate"),
        share("p", "one-sided p of a surplus above 0"),
        share("p_holm", "the same, adjusted over all rows (Holm 1979)"),
    ),
    lambda run: significance_table(run.cells, run.spec.comparisons, run.spec.settings, run.spec.statistics),
)  # fmt: skip
DRAWS = 99_999
EXACT = 16
"""Up to so many patients with a surplus, all signs are gone through."""
BLOCK = 4096


class Surplus(NamedTuple):
    """Flips of each patient, (patients,), under the swap and in the rerun, and how many pairs there are of each."""

    swapped: FloatArray
    rerun: FloatArray
    pairs: int


def significance_table(
    cells: Mapping[CellKey, pd.DataFrame],
    comparisons: Mapping[str, Comparison],
    settings: Mapping[str, Setting],
    statistics: Statistics,
) -> pd.DataFrame:
    """A row a dataset, model and image swap beside the whole report or without any, sorted.

    `flip_rate`, `floor_rate` and `surplus`, their difference, are over the questions that the test uses, so that the
    first may differ from the one in flips.csv; `p` is one-sided, `p_holm` adjusted over all rows.
    """
    rows: list[list[object]] = []
    for dataset, model in sorted({key[:2] for key in cells}):
        of_model = {key[2]: frame for key, frame in cells.items() if key[:2] == (dataset, model)}
        for name in sorted(comparisons):
            a, b = (of_model.get(setting) for setting in comparisons[name].settings)
            if a is None or b is None or not is_tested(comparisons[name], settings):
                continue
            found, floor = _beyond_reruns(a, b), FLOORS[0]
            if found is None:
                found, floor = _beyond_nothing(a, b), FLOORS[1]
            if found is not None:
                rates = [float(each.sum()) / found.pairs for each in (found.swapped, found.rerun)]
                start = [dataset, model, name, settings[comparisons[name].settings[0]][Report].report, floor]
                counts = [found.pairs, len(found.swapped)]
                p = sign_flip_p(found.swapped - found.rerun, seed=statistics.seed)
                rows.append([*start, *counts, *rates, rates[0] - rates[1], p, None])
    table = TABLE.frame(rows)
    if len(table):
        from statsmodels.stats.multitest import multipletests  # type: ignore[import-untyped]

        table["p_holm"] = multipletests(table["p"].to_numpy(np.float64), method="holm")[1]
    return table


def is_tested(comparison: Comparison, settings: Mapping[str, Setting]) -> bool:
    """Whether a flip comparison changes the study's own image for another's and nothing else, beside the whole report
    or without one. Edited, hidden and doubted reports answer other questions, and would dilute the adjustment.
    """
    a, b = (settings.get(name) for name in comparison.settings)
    if comparison.flips is None or a is None or b is None or not a[Image].own or b[Image].source != "substitute":
        return False
    if a != b.model_copy(update={"source": "own"}) or a[Report].report not in ("none", "full"):
        return False
    return a.is_plain("images", "report", *OTHERWISE)


def _beyond_reruns(a: pd.DataFrame, b: pd.DataFrame) -> Surplus | None:
    """Of the questions asked alike in runs k and k + 1 with the own image, and in run k + 1 with the other one."""
    own, other = runs_of(a), runs_of(b)
    found = []
    for run in range(1, max(own, default=0), 2):
        if not (run in own and run + 1 in own and run + 1 in other):
            continue
        again = pairs_of(own[run], own[run + 1].assign(run=run))
        again = again[again["both"] & (again["trial_a"] == again["trial_b"])]
        swapped = pairs_of(own[run], other[run + 1].assign(run=run))
        swapped = swapped[swapped["both"]]
        keys = ["question", "run"]
        found.append(swapped[[*keys, "patient", "flipped"]].merge(again[[*keys, "flipped"]], on=keys))
    both = pd.concat(found, ignore_index=True) if found else pd.DataFrame()
    if not len(both):
        return None
    sums = both.groupby("patient", sort=True)[["flipped_x", "flipped_y"]].sum().to_numpy(np.float64)
    return Surplus(sums[:, 0], sums[:, 1], len(both))


def _beyond_nothing(a: pd.DataFrame, b: pd.DataFrame) -> Surplus | None:
    pairs = pairs_of(a, b)
    both = pairs[pairs["both"]]
    if not len(both):
        return None
    flips = both.groupby("patient", sort=True)["flipped"].sum().to_numpy(np.float64)
    return Surplus(flips, np.zeros_like(flips), len(both))


def sign_flip_p(surplus: FloatArray, *, seed: int, draws: int = DRAWS) -> float:
    """One-sided p that the sum of `surplus` is above 0, by flipping the sign of each patient's part.

    surplus   (patients,) any unit
    returns   exact, over all signs, for up to `EXACT` patients whose surplus is not 0; else from `draws` drawn signs,
              what was observed counting as one more (Phipson and Smyth 2010)
    """
    moved = np.asarray(surplus, dtype=np.float64)
    moved = moved[moved != 0]
    # Sums that differ by rounding only are equal.
    reached = moved.sum() - 1e-12 * np.abs(moved).sum()
    if len(moved) <= EXACT:
        signs = 1.0 - 2 * ((np.arange(2 ** len(moved))[:, None] >> np.arange(len(moved))) & 1)
        return float(np.mean(signs @ moved >= reached))
    generator = np.random.default_rng([seed, len(moved)])
    above = 0
    for start in range(0, draws, BLOCK):
        signs = 1.0 - 2 * generator.integers(0, 2, size=(min(BLOCK, draws - start), len(moved)), dtype=np.int8)
        above += int((signs @ moved >= reached).sum())
    return (1 + above) / (1 + draws)
