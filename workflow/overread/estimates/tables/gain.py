"""Gain of the image: balanced accuracy with the study's own picture less that of an opponent that does not see it.

`inference.gain` says how it is made. Opponents of a setting are found by what they are: the same setting with no image,
with a black one, with neither image nor report, and the majority of the finding.
"""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from overread.core.columns import (
    DATASET,
    EFFECTIVE,
    HIGH,
    LOW,
    MODEL,
    P_EQUIVALENT,
    PATIENTS,
    PATIENTS_MOVED,
    QUESTIONS,
    REPORT_SHOWN,
    SETTING,
    P,
    count,
    difference,
    share,
    text,
)  # fmt: skip
from overread.estimates.found import OPPONENTS, Found
from overread.estimates.tables import Table

OPPONENT = text("opponent", "what does not see the image", values=OPPONENTS)
GAIN = difference("gain", "balanced accuracy with the own image less the opponent's")
TABLE = Table(
    __name__,
    __doc__,
    (
        DATASET, MODEL, SETTING, REPORT_SHOWN, OPPONENT,
        text("opponent_setting", "the setting that the opponent answered", blank="the majority, which is no setting"),
        QUESTIONS, PATIENTS, count("findings", "how many findings or kinds of question count"),
        share("balanced_within", "accuracy balanced over correct answers within each finding, averaged over findings"),
        share("opponent_balanced", "the opponent's"), GAIN, LOW, HIGH, P, P_EQUIVALENT,
        share("accuracy_answered", "share of these questions answered correctly, findings pooled"),
        share("opponent_accuracy", "the opponent's"),
        share("unanswered", "share of the questions asked of both that one of them did not answer"),
        PATIENTS_MOVED, EFFECTIVE,
    ),
    lambda run: gain_table(run.found),
)  # fmt: skip


def gain_table(found: Iterable[Found]) -> pd.DataFrame:
    """A row a dataset, model, setting with the own picture, and opponent, sorted; opponents in the order of
    `OPPONENTS`.
    """
    rows: list[list[object]] = []
    for one in found:
        for row in one.gains:
            gain, whole = row.gain, row.gain.combined
            start: list[object] = [one.dataset, one.model, row.setting, row.report, row.opponent, row.against or None]
            start += [gain.pairs, whole.patients, gain.findings, gain.balanced, gain.opponent]
            start += [gain.estimate, *gain.interval, gain.p, gain.p_equivalent]
            rows.append([*start, gain.accuracy, gain.opponent_accuracy, gain.lost, whole.shown, whole.effective])
    return TABLE.frame(rows)
