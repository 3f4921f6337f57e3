"""How often intervals cover the truth, over the cohorts that studies have.

Each patient has a share of its own from a beta distribution, whose intra-patient correlation is set, and a number of
trials that is the same for all or spread widely; the truth is the mean share. Differences are of two arms of the same
trials: what moves up and what moves down have shares of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product

import numpy as np

from overread.estimates.bootstrap import clustered_interval
from overread.estimates.inference.clusters import Clusters
from overread.estimates.inference.limits import proportion, signed
from overread.gallery.bounds import Bound
from overread.gallery.cohorts import FloatArray, IntArray
from overread.gallery.verdicts import in_parallel

RATES = (0.005, 0.01, 0.05, 0.2, 0.5)
CORRELATIONS = (0.0, 0.1, 0.4)
PATIENTS = (10, 20, 60, 300)
SIZES = ("equal", "unequal")
TRIALS = 6
"""Trials per patient, on average."""
SEEN = 10
"""From so many patients with an event on an interval must be neither too sure nor much wider than the usual one."""
WIDEST = 1.15
WIDTHS = 100
"""Of so many studies of a cell, each with that many patients, the width is compared with the percentile interval's."""
DRAWS = 1000


@dataclass(frozen=True)
class Cell:
    """A cohort and a truth.

    rate   of the event; of a difference the share of trials that moves either way
    lean   of a difference: of what moves, the share up less the share down
    """

    kind: str
    rate: float
    lean: float
    correlation: float
    patients: int
    sizes: str

    @property
    def truth(self) -> float:
        return self.rate if self.kind == "proportion" else self.rate * self.lean


@dataclass(frozen=True)
class Covered:
    """How often the interval of a cell covered, how many patients had an event, and how wide it was.

    events  mean number of patients with an event
    width   mean width over that of the percentile interval, of studies with `SEEN` such patients; NaN without any
    """

    cell: Cell
    studies: int
    covered: int
    events: float
    width: float

    @property
    def bound(self) -> Bound:
        least = 0.92 if self.cell.patients < 20 else 0.93
        return Bound(least, 0.98 if self.events >= SEEN else 1.0)

    @property
    def broken(self) -> bool:
        return self.bound.broken(self.covered, self.studies)

    @property
    def too_wide(self) -> bool:
        return self.events >= SEEN and self.cell.patients >= 20 and self.width > WIDEST


def grid(patients: Sequence[int] = PATIENTS) -> list[Cell]:
    """All cells."""
    around = list(product(CORRELATIONS, patients, SIZES))
    shares = [Cell("proportion", rate, 0.0, *rest) for rate in RATES for rest in around]
    moves = [
        Cell("difference", rate, lean, *rest)
        for rate in (0.01, 0.05, 0.2, 0.5)
        for lean in (0.0, 0.6)
        for rest in around
    ]
    return shares + moves


def cover(
    cells: Sequence[Cell],
    studies: int,
    *,
    seed: int = 0,
    workers: int | None = None,
    done: Callable[[], None] = lambda: None,
) -> list[Covered]:
    """Each cell, in `studies` simulated studies."""
    found = []
    for one in in_parallel(partial(_covered, studies=studies, seed=seed), list(cells), workers):
        found.append(one)
        done()
    return found


def _covered(cell: Cell, *, studies: int, seed: int) -> Covered:
    rng = np.random.default_rng([seed, *np.frombuffer(repr(cell).encode(), dtype=np.uint8)])
    covered, events = 0, 0
    widths: list[tuple[float, float]] = []
    for _ in range(studies):
        values, patients = draw(cell, rng)
        low, high = limits(cell, values, patients)
        covered += low <= cell.truth <= high
        shown = with_event(values, patients)
        events += shown
        if len(widths) < WIDTHS and shown >= SEEN:
            usual = clustered_interval(values, patients, draws=DRAWS)
            assert usual.low is not None and usual.high is not None
            widths.append((high - low, usual.high - usual.low))
    ratio = float(np.divide(*np.sum(widths, axis=0))) if widths and np.sum(widths, axis=0)[1] > 0 else float("nan")
    return Covered(cell, studies, covered, events / studies, ratio)


def with_event(values: FloatArray, patients: IntArray) -> int:
    """Patients with an event, or with a trial without one, whichever are fewer."""
    shown = (np.bincount(patients, each) > 0 for each in (np.abs(values), 1 - np.abs(values)))
    return min(int(each.sum()) for each in shown)


def limits(cell: Cell, values: FloatArray, patients: IntArray) -> tuple[float, float]:
    """The project's interval."""
    clusters = Clusters(patients)
    if cell.kind == "proportion":
        low, high = proportion(values, clusters).limits(0.95)
    else:
        each = np.full(len(values), 1 / len(values))
        low, high = signed(values * each, each, clusters).limits(0.95)
    assert low is not None and high is not None
    return low, high


def draw(cell: Cell, rng: np.random.Generator) -> tuple[FloatArray, IntArray]:
    """Values of one simulated study, 0 or 1 or of a difference -1 to 1, and each one's patient."""
    same = cell.sizes == "equal"
    sizes = np.full(cell.patients, TRIALS) if same else rng.geometric(1 / TRIALS, cell.patients)
    patients = np.repeat(np.arange(cell.patients), sizes)
    moved = rng.random(len(patients)) < _shares(cell.rate, cell.correlation, cell.patients, rng)[patients]
    if cell.kind == "proportion":
        return moved.astype(np.float64), patients
    up = rng.random(len(patients)) < _shares((1 + cell.lean) / 2, cell.correlation, cell.patients, rng)[patients]
    return np.where(moved, np.where(up, 1.0, -1.0), 0.0), patients


def _shares(mean: float, correlation: float, patients: int, rng: np.random.Generator) -> FloatArray:
    if correlation == 0:
        return np.full(patients, mean)
    spread = (1 - correlation) / correlation
    return rng.beta(mean * spread, (1 - mean) * spread, patients)
