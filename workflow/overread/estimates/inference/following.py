"""Following: whether answers move towards what the picture shown says.

Over questions whose correct option differs between the two pictures. Let s(x) be +1 where answer x is the option true
of the other picture, -1 where it is the one true of the own picture, and 0 for anything else, a refusal among it. A
question's move is m = (s(answer under the other picture) - s(answer under the own picture)) / 2, from -1 to 1, with
the mean over runs in each arm. A yes-no answer that turns to what the shown picture says is +1, one that turns away
from it -1, one that stays 0; a refusal on one side is half of a move, the middle of what it may hide.

A reader whose answers do not depend on what the picture says gives both arms the same answers on average, so its moves
are 0 on average, whatever is prevalent and however it draws. One thing is left: an arm that says yes more often for
another reason (asked later, by a service that drifts) moves towards the truth where the other picture says yes, and
away where it says no. So within each finding the two directions count alike: a pair weighs n_other/(n + n_other), n
being the pairs of its direction and n_other those of the opposite one, which is Mantel and Haenszel's weight of the
mean of the two. A finding with one direction alone has no weight. Questions with more options than yes and no, whose
options differ from one to the next, weigh 1/2 each, as a balanced pair does: for them drift between the arms is not
cancelled.

No floor is needed: sampling and rounding move answers both ways alike, and the mean of that is 0.

The variance is taken about the overall mean with the weights as they are, which is cautious where findings differ.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from overread.estimates.inference.clusters import Clusters, FloatArray
from overread.estimates.inference.limits import Combined, signed
from overread.estimates.inference.swap import Swap, share_of, unanswered


@dataclass(frozen=True)
class Following:
    """How far answers follow the picture. Shares; p is one-sided, that it is above 0.

    pairs, patients  those that weigh; `moved` patients have a move in either direction
    towards, away    weighted shares of moves
    findings         findings that weigh
    lost             weighted share of pairs with an arm that gave no answer
    bounds           what it may be at least and at most, whatever the lost arms hide (Manski)
    wider            the interval where findings are a sample as well; None for fewer than two
    """

    combined: Combined
    level: float
    smallest: float
    pairs: int
    towards: float
    away: float
    findings: int
    lost: float
    hidden: float
    wider: tuple[float | None, float | None]

    @property
    def estimate(self) -> float:
        return self.combined.estimate

    @property
    def interval(self) -> tuple[float | None, float | None]:
        return self.combined.limits(self.level)

    @property
    def p(self) -> float:
        return self.combined.p_above(0.0)

    @property
    def p_equivalent(self) -> float:
        """p that it is within the smallest effect, whatever the lost arms hide."""
        return self.combined.p_within(self.smallest - self.hidden) if self.hidden < self.smallest else 1.0

    @property
    def bounds(self) -> tuple[float, float]:
        return self.estimate - self.hidden, self.estimate + self.hidden


def moves(swap: Swap) -> FloatArray:
    """(n,) each question's move towards what the shown picture says, from -1 to 1."""
    ends = [share_of(arm, swap.truth_shown) - share_of(arm, swap.truth_own) for arm in (swap.shown, swap.own)]
    return (ends[0] - ends[1]) / 2


def weights(swap: Swap) -> FloatArray:
    """(n,) what each question weighs; 0 where nothing changes, or an arm was not asked."""
    usable = swap.changed & swap.asked
    found = np.where(usable, 0.5, 0.0)
    polar = np.flatnonzero(usable & (swap.yes >= 0))
    if len(polar):
        towards_yes = swap.truth_shown[polar] == swap.yes[polar]
        topics = swap.topic[polar]
        size = int(topics.max()) + 1
        to_yes = np.bincount(topics[towards_yes], minlength=size)
        to_no = np.bincount(topics[~towards_yes], minlength=size)
        opposite = np.where(towards_yes, to_no[topics], to_yes[topics])
        found[polar] = opposite / (to_yes + to_no)[topics]
    return found


def _no_narrower(one: Combined, other: Combined, level: float) -> tuple[float | None, float | None]:
    """The interval of `other`, at least as wide as that of `one`."""
    (low, high), (further_low, further_high) = one.limits(level), other.limits(level)
    if low is None or high is None or further_low is None or further_high is None:
        return None, None
    return min(low, further_low), max(high, further_high)


def following_of(swap: Swap, *, level: float = 0.95, smallest: float = 0.1, by_topic: bool = False) -> Following | None:
    """How far the answers follow the picture; None where no pair weighs.

    by_topic  whether findings are a sample as well, so that the interval holds for others like them
    """
    every = weights(swap)
    rows = np.flatnonzero(every > 0)
    if not len(rows):
        return None
    share = every[rows] / every[rows].sum()
    parts = moves(swap)[rows] * share
    one_way = swap.clusters.chosen(rows)
    two_way = Clusters(one_way.patient, one_way.partner, swap.topic[rows])
    findings = len(np.unique(swap.topic[rows]))
    several = findings > 1
    combined = signed(parts, share, two_way if by_topic and several else one_way)
    wider = _no_narrower(combined, signed(parts, share, two_way), level) if several and not by_topic else (None, None)
    missing = [unanswered(arm)[rows] for arm in (swap.own, swap.shown)]
    return Following(
        combined=combined, level=level, smallest=smallest, pairs=len(rows),
        towards=float(parts[parts > 0].sum()), away=float(-parts[parts < 0].sum()), findings=findings,
        lost=float((share * (1 - (1 - missing[0]) * (1 - missing[1]))).sum()),
        hidden=float((share * (missing[0] + missing[1])).sum()) / 2, wider=wider,
    )  # fmt: skip
