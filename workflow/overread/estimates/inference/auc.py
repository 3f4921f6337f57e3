"""Reading below the answer: whether the log-probabilities move towards what the shown picture says.

For yes-no questions, over the questions of `following`: the margin log p(yes) - log p(no) moves from the own to the
other picture, and within each finding a move where the other picture says yes is set against one where it says no. The
AUC is the share of such pairs of moves in the expected order, ties counting half; 0.5 for a reader that does not read,
with a report beside the picture as well as without one, since the report is the same on both sides. Findings are
weighed by their pairs of moves. The influence of a question is its placement among the moves of the opposite direction
(DeLong, DeLong and Clarke-Pearson 1988; for clusters Obuchowski 1997).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from overread.estimates.inference.clusters import BoolArray, FloatArray, IntArray
from overread.estimates.inference.limits import Combined, placed, proportion
from overread.estimates.inference.reacting import flips
from overread.estimates.inference.swap import Swap

ROUNDING = 1e-6
"""Moves, in log-probability, that differ by less are equal."""
MOVE = 0.5
"""A change of the margin that counts as a move, in log-probability (ModaLens)."""


@dataclass(frozen=True)
class Below:
    """What the margins say.

    auc      of the moves against what the shown picture says; None where no finding has both directions
    pairs    questions that the AUC is of
    moved    share of the pairs whose outcome stays and whose margin moves by over `MOVE`; None without such pairs
    again    the same between the runs of the own picture; 0 where it was asked once
    """

    auc: Combined | None
    pairs: int
    moved: Combined | None
    again: float

    def moves(self, level: float, least: float) -> bool:
        """Whether margins move in more than `least` of the pairs beyond what they do in reruns."""
        low = None if self.moved is None else self.moved.limits(level)[0]
        return low is not None and low > least + self.again


def below_of(swap: Swap) -> Below | None:
    """What lies below the answers; None without margins."""
    if swap.margin_own is None or swap.margin_shown is None:
        return None
    with np.errstate(invalid="ignore"):
        change = _mean(swap.margin_shown) - _mean(swap.margin_own)
    known = np.isfinite(change)
    if not known.any():
        return None
    still = np.flatnonzero(known & (flips(swap.own, swap.shown) == 0))
    moved = None
    if len(still):
        moved = proportion((np.abs(change[still]) > MOVE).astype(np.float64), swap.clusters.chosen(still))
    again = _again(swap.margin_own)
    rows = np.flatnonzero(known & swap.changed & swap.asked & (swap.yes >= 0))
    if not len(rows):
        return Below(None, 0, moved, again)
    to_yes = swap.truth_shown[rows] == swap.yes[rows]
    scores, weights = _placements(change[rows], to_yes, swap.topic[rows])
    kept = weights > 0
    if not kept.any():
        return Below(None, 0, moved, again)
    auc = placed(scores[kept], weights[kept], swap.clusters.chosen(rows[kept]))
    return Below(auc, int(kept.sum()), moved, again)


def _again(margins: FloatArray) -> float:
    """How often a margin moves by over `MOVE` from one run to the next."""
    changes = np.abs(np.diff(margins, axis=1))
    changes = changes[np.isfinite(changes)]
    return float((changes > MOVE).mean()) if len(changes) else 0.0


def _mean(margins: FloatArray) -> FloatArray:
    """(n,) over the runs that have one."""
    known = np.isfinite(margins)
    count = known.sum(axis=1)
    total = np.where(known, margins, 0.0).sum(axis=1)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _placements(change: FloatArray, up: BoolArray, topic: IntArray) -> tuple[FloatArray, FloatArray]:
    """(n,) the share of the opposite direction's moves that each is in the expected order with, and its weight: the
    moves of the opposite direction in its finding."""
    scores, weights = np.full(len(change), 0.5), np.zeros(len(change))
    order = np.argsort(topic, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(topic[order])) + 1):
        high, low = rows[up[rows]], rows[~up[rows]]
        if not len(high) or not len(low):
            continue
        for mine, others, sign in ((high, low, 1.0), (low, high, -1.0)):
            values = np.sort(sign * change[others])
            own = sign * change[mine]
            below = np.searchsorted(values, own - ROUNDING, side="right")
            not_above = np.searchsorted(values, own + ROUNDING, side="left")
            scores[mine] = (below + np.maximum(not_above, below)) / 2 / len(others)
            weights[mine] = len(others)
    return scores, weights
