"""Reacting: whether answers change more under another study's picture than they do anyway.

What they do anyway is the floor, and it is measured: by asking the same again (`reruns`), by a change of the picture
that changes nothing of matter (`placebo`), or by another study of which the same is true (`label-matched`). Under the
null hypothesis swapping the image is to the answers what the floor's change is, so the two answers may trade places,
all of a patient's at once, and the sign of each patient's surplus is a coin's.

    reruns          The runs are put into two groups, A and B: those of the own picture that the swap lacks and the
                    others; else the first, third ... and the second, fourth ... With n(c) the number of runs of a group
                    that gave outcome c, a question's surplus is the sum over c of a(c) (n_B,own(c) - n_B,shown(c)),
                    where a is n_A,own(c), or n_A,own(c) - n_A,shown(c) where the swap was run in A too. Trading places
                    in B turns its sign, and all runs count.
    placebo,        The flips of own against shown less those of own against the floor's picture, over the pairs of
    label-matched   runs that the two arms have alike.

Without a floor there are flips and no test: what a model changes by itself is then not known, not even of one that
decodes greedily, since rounding moves near ties.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from overread.estimates.inference.clusters import FloatArray, IntArray
from overread.estimates.inference.limits import Combined, proportion, signed
from overread.estimates.inference.signflip import sign_flip_p
from overread.estimates.inference.swap import ABSENT, Swap

FLOORS = ("placebo", "reruns", "label-matched", "not measured")


@dataclass(frozen=True)
class Reacting:
    """Changes of answers under the swap against one floor.

    pairs      questions with all the answers that the test uses
    flip_rate  share of changed outcomes under the swap, `floor_rate` under the floor's change; surplus their difference
    p          exact and one-sided, that the swap changes more; 1 where the floor was not measured
    """

    floor: str
    pairs: int
    patients: int
    flip_rate: float
    floor_rate: float | None
    surplus: Combined
    p: float


def reacting_of(swap: Swap) -> list[Reacting]:
    """A result for each floor that was measured, in the order of `FLOORS`; else one without a floor.

    Empty where nothing was asked under both pictures.
    """
    rows = np.flatnonzero(swap.asked)
    if not len(rows):
        return []
    found = []
    for floor, arm in (("placebo", swap.placebo), ("reruns", None), ("label-matched", swap.matched)):
        if floor == "reruns":
            one = _against_reruns(swap, rows)
        else:
            one = None if arm is None else _against(swap, rows, arm, floor)
        if one is not None:
            found.append(one)
    return found or [_without(swap, rows)]


def strictest(found: Sequence[Reacting]) -> Reacting | None:
    """The floor that answers move least beyond; the label-matched one where there is no other."""
    own = [one for one in found if one.floor != "label-matched"] or list(found)
    return max(own, key=lambda one: one.p, default=None)


def flips(first: IntArray, second: IntArray) -> FloatArray:
    """(n,) the share of pairs of runs, one of each arm, whose outcomes differ. Runs pair by their place where both
    arms have as many, else each with each. NaN where an arm was not asked.
    """
    changed, pairs = _flips(first, second)
    with np.errstate(invalid="ignore"):
        return np.where(pairs > 0, changed / pairs, np.nan)


def _flips(first: IntArray, second: IntArray) -> tuple[IntArray, IntArray]:
    """(n,) pairs of runs whose outcomes differ, and pairs of runs."""
    changed = np.zeros(len(first), dtype=np.int64)
    pairs = np.zeros(len(first), dtype=np.int64)
    for one, other in _paired(first.shape[1], second.shape[1]):
        both = (first[:, one] != ABSENT) & (second[:, other] != ABSENT)
        changed += both & (first[:, one] != second[:, other])
        pairs += both
    return changed, pairs


def _paired(first: int, second: int) -> Iterator[tuple[int, int]]:
    if first == second:
        return ((run, run) for run in range(first))
    return ((one, other) for one in range(first) for other in range(second))


def _against(swap: Swap, rows: IntArray, arm: IntArray, floor: str) -> Reacting | None:
    own, shown, still = swap.own[rows], swap.shown[rows], arm[rows]
    runs = min(own.shape[1], shown.shape[1], still.shape[1])
    own, shown, still = own[:, :runs], shown[:, :runs], still[:, :runs]
    complete = (own != ABSENT) & (shown != ABSENT) & (still != ABSENT)
    return _tested(
        swap, rows, complete.sum(axis=1), ((own != shown) & complete).sum(axis=1),
        ((own != still) & complete).sum(axis=1), floor,
    )  # fmt: skip


def _against_reruns(swap: Swap, rows: IntArray) -> Reacting | None:
    own, shown = swap.own[rows], swap.shown[rows]
    if own.shape[1] < 2:
        return None
    if own.shape[1] > shown.shape[1]:
        apart = range(shown.shape[1], own.shape[1])
        first, second = [*apart], [*range(shown.shape[1])]
    else:
        first, second = [*range(0, own.shape[1], 2)], [*range(1, own.shape[1], 2)]
    changed = np.zeros(len(rows), dtype=np.int64)
    again, pairs = changed.copy(), changed.copy()
    for one in first:
        references = [own[:, one]] + ([shown[:, one]] if one < shown.shape[1] else [])
        for other in second:
            complete = (own[:, other] != ABSENT) & (shown[:, other] != ABSENT)
            for place, reference in enumerate(references):
                known = complete & (reference != ABSENT)
                # Against a run of the other picture, it is the own one that is the swap.
                swapped, still = (shown, own) if place == 0 else (own, shown)
                changed += known & (reference != swapped[:, other])
                again += known & (reference != still[:, other])
                pairs += known
    return _tested(swap, rows, pairs, changed, again, "reruns")


def _tested(
    swap: Swap, rows: IntArray, pairs: IntArray, changed: IntArray, again: IntArray, floor: str
) -> Reacting | None:
    kept = pairs > 0
    if not kept.any():
        return None
    rows, pairs, changed, again = rows[kept], pairs[kept], changed[kept], again[kept]
    share = pairs / pairs.sum()
    clusters = swap.clusters.chosen(rows)
    surplus = signed((changed - again) / pairs.sum(), share, clusters)
    p = sign_flip_p(np.bincount(swap.patient[rows], changed - again).astype(np.int64))
    total = float(pairs.sum())
    rates = float(changed.sum()) / total, float(again.sum()) / total
    return Reacting(floor, len(rows), clusters.count, *rates, surplus, p)


def _without(swap: Swap, rows: IntArray) -> Reacting:
    changed, pairs = _flips(swap.own[rows], swap.shown[rows])
    kept = pairs > 0
    rate = float(changed[kept].sum() / pairs[kept].sum()) if kept.any() else 0.0
    clusters = swap.clusters.chosen(rows[kept])
    found = proportion(changed[kept] / pairs[kept], clusters, pairs[kept].astype(np.float64))
    return Reacting("not measured", int(kept.sum()), clusters.count, rate, None, found, 1.0)
