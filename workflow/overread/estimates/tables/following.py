"""Following: how far answers move towards what the picture shown says, where that differs between the two pictures.

`inference.following` says how it is made: 0 for any reader that does not read, the share of answers that it takes from
the picture for one that does. By image swap, and by finding.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pandas as pd

from overread.config import Statistics
from overread.core.columns import (
    BOUND_HIGH,
    BOUND_LOW,
    COMPARISON,
    DATASET,
    EFFECTIVE,
    GROUP,
    HIGH,
    LOW,
    MODEL,
    P_EQUIVALENT,
    P_HOLM,
    PATIENTS,
    PATIENTS_MOVED,
    QUESTIONS,
    P,
    difference,
    number,
    share,
    text,
)  # fmt: skip
from overread.estimates.family import rules_of
from overread.estimates.found import Found
from overread.estimates.inference.decide import Rules
from overread.estimates.inference.following import Following, following_of
from overread.estimates.inference.swap import Swap
from overread.estimates.tables import Table

FOLLOWING = difference("following", "moves towards what the shown picture says less moves away from it")
SMALLEST = share("smallest_effect", "what is too small to matter, set beforehand")
ONE_FINDING = "of one finding, or generalised already"
TABLE = Table(
    __name__,
    __doc__,
    (
        DATASET, MODEL, COMPARISON, GROUP,
        text("primary", "whether the verdict rests on it", values=("yes", "no")), QUESTIONS, PATIENTS, PATIENTS_MOVED,
        EFFECTIVE, share("towards", "weighted share of moves towards what the shown picture says"),
        share("away", "weighted share of moves away from it"), FOLLOWING, LOW, HIGH, P,
        P_HOLM.but(blank="not of the primary family"), P_EQUIVALENT, SMALLEST,
        share("lost_weight", "weighted share of the questions that an arm did not answer"),
        BOUND_LOW, BOUND_HIGH,
        number("low_questions", "lower end of the interval if findings are a sample too", blank=ONE_FINDING),
        number("high_questions", "upper end of the interval if findings are a sample too", blank=ONE_FINDING),
    ),
    lambda run: following_table(run.found, run.spec.statistics),
)  # fmt: skip


def following_table(found: Iterable[Found], statistics: Statistics) -> pd.DataFrame:
    """A row a dataset, model, image swap and group (all, then each topic), sorted. A swap of which no label changes is
    left out.
    """
    rules = rules_of(statistics)
    return TABLE.frame([row for one in found for row in _following_rows(one, rules)])


def _following_rows(one: Found, rules: Rules) -> list[list[object]]:
    rows: list[list[object]] = []
    for name, swap in sorted(one.swaps.items()):
        whole = one.tested[name].following
        if whole is None:
            continue
        primary = name in one.family
        adjusted = one.verdict.p.get(name) if primary else None
        start: list[object] = [one.dataset, one.model, name]
        rows.append([*start, "all", "yes" if primary else "no", *_following(whole, adjusted, rules)])
        for code, topic in enumerate(one.topics[name]):
            of_topic = following_of(only(swap, swap.topic == code), level=rules.level, smallest=rules.following)
            if of_topic is not None:
                rows.append([*start, topic, "no", *_following(of_topic, None, rules)])
    return rows


def _following(found: Following, adjusted: float | None, rules: Rules) -> list[object]:
    whole = found.combined
    return [
        found.pairs, whole.patients, whole.shown, whole.effective, found.towards, found.away, found.estimate,
        *found.interval, found.p, adjusted, found.p_equivalent, rules.following, found.lost, *found.bounds,
        *found.wider,
    ]  # fmt: skip


def only(swap: Swap, rows: npt.NDArray[np.bool_]) -> Swap:
    """Some questions of a swap."""
    parts = {name: value[rows] for name, value in vars(swap).items() if value is not None}
    return replace(swap, **parts)
