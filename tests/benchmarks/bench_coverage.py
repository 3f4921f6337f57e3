"""How often intervals hold the truth, and how wide they are: the simulation by which `inference.limits` was chosen.

Beta-binomial answers of 10 to 300 patients of equal and of uneven size. An interval is to cover at least 93 % (92 %
with 10 patients), but for one point in the worst cells. Where ten patients or more have an event it is mostly within
1.15 times the width of the percentile interval, which for so many is that of a normal distribution; never beyond 1.3
times from 60 patients on.
"""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.conftest import Bench
from overread.estimates.inference.clusters import Clusters
from overread.estimates.inference.limits import Combined, proportion, signed

RATES = (0.005, 0.02, 0.05, 0.2, 0.5)
MOVES = ((0.005, 0.0), (0.03, 0.01), (0.1, 0.1), (0.2, 0.02))


def sizes(draw: np.random.Generator, patients: int, kind: str) -> np.ndarray:
    if kind == "uneven":
        return 1 + np.floor(draw.lognormal(1.5, 0.9, patients)).astype(int)
    return np.full(patients, int(kind))


def simulated(
    patients: int, kind: str, chances: tuple[float, ...], correlation: float, seed: int
) -> tuple[Combined, float]:
    """An estimate of one study, and the half-width of the percentile interval's limit for many patients."""
    draw = np.random.default_rng([seed, patients])
    codes = np.repeat(np.arange(patients), sizes(draw, patients, kind))
    rest = [*chances, 1 - sum(chances)]
    total = 1 / correlation - 1 if correlation else 1e7
    shares = draw.dirichlet(np.maximum(np.array(rest) * total, 1e-9), patients)[codes]
    at = draw.random(len(codes))
    up = at < shares[:, 0]
    if len(chances) == 1:
        values = up.astype(float)
        found = proportion(values, Clusters(codes))
    else:
        values = up.astype(float) - (~up & (at < shares[:, 0] + shares[:, 1]))
        found = signed(values / len(values), np.full(len(values), 1 / len(values)), Clusters(codes))
    spread = np.bincount(codes, values - values.mean())
    return found, 1.96 * float(np.sqrt((spread**2).sum())) / len(codes)


@pytest.mark.parametrize("kind", ["2", "13", "uneven"])
@pytest.mark.parametrize("patients", [10, 20, 60, 300])
@pytest.mark.parametrize("correlation", [0.0, 0.1, 0.4])
def bench_coverage(bench: Bench, patients: int, kind: str, correlation: float) -> None:
    studies = bench.size(2000, 300)
    for chances in (*((rate,) for rate in RATES), *MOVES):
        truth = chances[0] - sum(chances[1:])
        held, widths, peers = [], [], []
        for seed in range(studies):
            found, reach = simulated(patients, kind, chances, correlation, seed)
            low, high = found.limits(0.95)
            assert low is not None and high is not None and high > low
            held.append(low - 1e-12 <= truth <= high + 1e-12)
            if found.shown >= 10:
                widths.append(high - low)
                peers.append(2 * reach)
        least = 0.93 if patients > 10 else 0.92
        noise = 2.5 * np.sqrt(least * (1 - least) / studies)
        assert np.mean(held) >= least - 0.01 - noise, (chances, np.mean(held))
        if patients > 20 and len(widths) > studies / 2:
            assert np.mean(widths) <= 1.3 * np.mean(peers), (chances, np.mean(widths) / np.mean(peers))
