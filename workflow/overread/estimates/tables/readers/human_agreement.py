"""How far raters agree beyond chance: in their answers, and in their views of the questions."""

from __future__ import annotations

from typing import Any

import pandas as pd

from overread.config import Statistics
from overread.core.columns import HIGH, LOW, SUBSET, text
from overread.estimates.agreement import COLUMNS, agreement
from overread.estimates.alpha import alpha_interval
from overread.estimates.consensus import SHARES
from overread.estimates.ratings import Ratings
from overread.estimates.tables import Table

TABLE = Table(
    __name__,
    __doc__,
    (
        SUBSET, text("of", "what they agree in", values=("answer", *SHARES)), *COLUMNS[:-1],
        *(column.but(blank="not a nominal alpha") for column in (LOW, HIGH)), COLUMNS[-1],
    ),
    lambda run: agreement_table(run.ratings, run.spec.statistics),
)  # fmt: skip


def agreement_table(ratings: Ratings, statistics: Statistics) -> pd.DataFrame:
    """How far the raters of a subset agree beyond chance, in their answers and in their views of the questions.

    Options differ from question to question, and only those of one question can be confused: an answer counts by its
    option's place in a random order that follows from the question.
    """
    rows: list[dict[str, object]] = []
    for subset, (_, frame) in sorted(ratings.items()):
        if frame["rater"].nunique() < 2:
            continue
        for name in ("answer", *SHARES):
            column = "label" if name == "answer" else SHARES[name]
            given = frame[["rater", "question", "patient"]].assign(value=_texts(frame[column]))
            values = {
                str(rater): dict(zip(own["question"], own["value"], strict=True))
                for rater, own in given.groupby("rater", sort=True)
            }
            ordinal = name == "confidence"
            scale = [str(step) for step in range(1, 6)] if ordinal else None
            for one in agreement(values, values=scale, level="ordinal" if ordinal else "nominal"):
                row = {"subset": subset, "of": name, **vars(one)}
                if one.statistic == "Krippendorff's alpha (nominal)" and one.value is not None:
                    found = alpha_interval(given, "value", statistics)
                    row |= {"low": found.low, "high": found.high}
                rows.append(row)
    return TABLE.frame_of(rows)


def _texts(values: pd.Series[Any]) -> pd.Series[str]:
    return values.map({True: "yes", False: "no"}) if values.dtype == bool else values.astype(str)
