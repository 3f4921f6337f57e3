"""Estimates on arrays against the same by a loop over pairs in pandas."""

from __future__ import annotations

import numpy as np
import pandas as pd

from benchmarks.conftest import Bench
from overread.estimates.inference.decide import verdict_of
from overread.estimates.inference.following import moves, weights
from overread.estimates.inference.swap import Swap


def made(patients: int) -> Swap:
    """Two studies of thirteen findings per patient, answered by chance."""
    draw = np.random.default_rng(1)
    count = patients * 26
    patient = np.repeat(np.arange(patients), 26)
    answers = [draw.integers(0, 2, (count, 1)) for _ in range(2)]
    truths = [draw.integers(0, 2, count) for _ in range(2)]
    return Swap(
        patient, patient, np.tile(np.arange(13), 2 * patients), *answers, *truths, np.zeros(count, dtype=np.int64)
    )


def by_loop(frame: pd.DataFrame) -> float:
    """Following, pair by pair."""
    total = weight = 0.0
    for topic in frame["topic"].unique():
        rows = frame[frame["topic"] == topic]
        directions = {False: 0, True: 0}
        for _, row in rows.iterrows():
            if row["truth_own"] != row["truth_shown"]:
                directions[bool(row["truth_shown"] == 0)] += 1
        for _, row in rows.iterrows():
            if row["truth_own"] == row["truth_shown"] or not all(directions.values()):
                continue
            move = int(row["shown"] == row["truth_shown"]) - int(row["own"] == row["truth_shown"])
            share = directions[bool(row["truth_shown"] != 0)] / sum(directions.values())
            total, weight = total + share * move, weight + share
    return total / weight


def bench_following(bench: Bench) -> None:
    swap = made(bench.size(300, 60))
    columns = {name: getattr(swap, name) for name in ("topic", "truth_own", "truth_shown")}
    frame = pd.DataFrame(columns | {"own": swap.own[:, 0], "shown": swap.shown[:, 0]})

    def on_arrays() -> float:
        share = weights(swap)
        return float((share * moves(swap)).sum() / share.sum())

    assert np.isclose(on_arrays(), by_loop(frame))
    bench.against("following", on_arrays, "a loop in pandas", lambda: by_loop(frame), expected=100)


def bench_a_whole_verdict(bench: Bench) -> None:
    """With its intervals and all its tests, against the estimate of following alone by a loop."""
    swap = made(bench.size(300, 60))
    columns = {name: getattr(swap, name) for name in ("topic", "truth_own", "truth_shown")}
    frame = pd.DataFrame(columns | {"own": swap.own[:, 0], "shown": swap.shown[:, 0]})
    bench.against(
        "a verdict", lambda: verdict_of({"swap": swap}), "a loop for following", lambda: by_loop(frame), expected=20
    )
