"""Readers less models on the questions that both answered: one row per rater or consensus, model and setting.

A model counts with the share of its runs that are correct, and the interval is that of the difference.
"""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from overread.config import Statistics
from overread.core.columns import (
    DATASET,
    HIGH,
    LOW,
    MODEL,
    PATIENTS,
    QUESTIONS,
    RATER,
    SETTING,
    SUBSET,
    difference,
    share,
)  # fmt: skip
from overread.estimates.consensus import CONSENSUS, consensus, of_questions
from overread.estimates.intervals import difference_interval
from overread.estimates.ratings import Ratings
from overread.estimates.scored import CellKey, code_patients
from overread.estimates.tables import Table
from overread.estimates.tables.readers.human import KIND

TABLE = Table(
    __name__,
    __doc__,
    (
        SUBSET, RATER, KIND, DATASET, MODEL, SETTING, QUESTIONS, PATIENTS,
        share("human", "share that the rater or the consensus answered correctly"),
        share("model_accuracy", "share that the model answered correctly, on average over its runs"),
        difference("difference", "the first less the second"), LOW, HIGH,
    ),
    lambda run: differences_table(run.ratings, run.cells, run.spec.statistics),
)  # fmt: skip


def differences_table(ratings: Ratings, cells: Mapping[CellKey, pd.DataFrame], statistics: Statistics) -> pd.DataFrame:
    """Human less model, a row a rater or consensus, model and setting, over the questions that both were asked.

    A question that failed in all of a model's runs counts for neither.
    """
    rows: list[dict[str, object]] = []
    for subset, (dataset, frame) in sorted(ratings.items()):
        people = [(str(rater), "rater", own) for rater, own in frame.groupby("rater", sort=True)]
        people.append((CONSENSUS, CONSENSUS, consensus(frame)))
        models = of_questions(cells, dataset, frame["question"])
        for rater, kind, own in people:
            for (_, model, setting), trials in sorted(models.items()):
                scored = trials[trials["status"] != "failed"]
                pairs = own[["question", "patient", "right"]].merge(
                    scored.groupby("question")["right"].mean().rename("of_model"), on="question", validate="one_to_one"
                )
                if not len(pairs):
                    continue
                (patients,) = code_patients(pairs["patient"])
                found = difference_interval(pairs["right"], pairs["of_model"], patients, statistics)
                rows.append(
                    {
                        "subset": subset, "rater": rater, "kind": kind, "dataset": dataset, "model": model,
                        "setting": setting, "questions": len(pairs), "patients": found.patients,
                        "human": float(pairs["right"].mean()), "model_accuracy": float(pairs["of_model"].mean()),
                        "difference": found.estimate, "low": found.low, "high": found.high,
                    }
                )  # fmt: skip
    return TABLE.frame_of(rows)
