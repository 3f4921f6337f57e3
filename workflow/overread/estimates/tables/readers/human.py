"""People beside models on the same questions (Table 5 of UCSF-PDGM-VQA): one row per rater, one for their consensus,
and one per model and setting on the questions of that subset alone.

"Can't tell" and no consensus are not correct, and are counted in their own columns.

The consensus is over the questions that two raters or more have answered: the answer given most often, "can't tell"
being one of them; where two are given equally often there is no consensus. Its agreement, relevance, confidence and
answerable are the mean over these questions of the mean over their raters, so that a question counts once.

A model's row is over every question that some rater has answered, all runs pooled as in accuracy.csv. A rater who has
answered fewer is set against it in human_differences.csv.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from overread.config import Statistics
from overread.core.columns import (
    DATASET,
    FROM_0,
    HIGH,
    LOW,
    MODEL,
    PATIENTS,
    QUESTIONS,
    RATER,
    RUNS,
    SETTING,
    SUBSET,
    count,
    number,
    share,
    text,
)  # fmt: skip
from overread.estimates.alpha import alpha_interval
from overread.estimates.consensus import CONSENSUS, SHARES, consensus, of_questions
from overread.estimates.inference.mrmc import accuracy_components, mean_of_readers
from overread.estimates.intervals import mean_interval
from overread.estimates.ratings import Ratings
from overread.estimates.scored import CellKey, code_patients
from overread.estimates.tables import Table
from overread.estimates.tables.accuracy import ACCURACY, ALWAYS_FIRST, CHANCE, STATUSES, accuracy_table

KIND = text("kind", "whose row it is", values=("rater", CONSENSUS, "model"))
BOUNDS = {"confidence": (1.0, 5.0)}
"""The least and the most that a column's values can be, where that is not 0 and 1."""
NOT_ALL = "not the consensus, or no two patients whose questions all raters answered"
INFERENCE = ("patients", "patients; readers_accuracy: readers and patients")
ALPHA_RANGE = (None, 1.0)
NOT_PEOPLE, NOT_A_MODEL, NOT_CONSENSUS = "not a row of people", "not a model's row", "not the consensus"
VIEWS = (
    share("agreement", "share of the questions whose reference answer the rater agreed with", blank=NOT_PEOPLE),
    share("relevance", "share of the questions that the rater found relevant", blank=NOT_PEOPLE),
    number(
        "confidence", "how sure the rater was, from 1 to 5: of a question, or the mean over questions", range=(1, 5),
        blank=NOT_PEOPLE,
    ),
    share("answerable", "whether the rater found it answerable from the images, or the share of questions",
          blank=NOT_PEOPLE),
)  # fmt: skip
TABLE = Table(
    __name__,
    __doc__,
    (
        RATER, SUBSET, QUESTIONS, ACCURACY, LOW, HIGH, *VIEWS, KIND, DATASET, MODEL.but(blank=NOT_A_MODEL),
        SETTING.but(blank=NOT_A_MODEL), RUNS.but(blank=NOT_A_MODEL), PATIENTS,
        count("raters", "how many raters", blank=NOT_PEOPLE),
        count("cant_tell", "questions answered by `can't tell`; not correct", blank=NOT_PEOPLE),
        count("no_consensus", "questions without a consensus; not correct", blank=NOT_CONSENSUS),
        *(status if status.name == "answered" else status.but(blank=NOT_A_MODEL) for status in STATUSES),
        CHANCE, ALWAYS_FIRST.but(blank=NOT_A_MODEL),
        *(
            number(f"{view.name}_{end}", f"{which} end of the interval of `{view.name}`", blank=NOT_PEOPLE)
            for view in VIEWS
            for end, which in (("low", "lower"), ("high", "upper"))
        ),
        number("seconds_median", "median time from opening a question to its answer", unit="s", range=FROM_0,
               blank=NOT_PEOPLE),
        number("seconds_in_view_median", "median time that the question's page was in front", unit="s", range=FROM_0,
               blank="not people, or not known"),
        number("alpha", "Krippendorff's alpha of the answers", range=ALPHA_RANGE, blank=NOT_CONSENSUS),
        number("alpha_low", "lower end of the interval of alpha", range=ALPHA_RANGE, blank=NOT_CONSENSUS),
        number("alpha_high", "upper end of the interval of alpha", range=ALPHA_RANGE, blank=NOT_CONSENSUS),
        share("readers_accuracy", "mean accuracy of the raters on the questions that all of them answered",
              blank=NOT_ALL),
        number("readers_low", "lower end of its interval, for other readers of other patients", blank=NOT_ALL),
        number("readers_high", "upper end of its interval, for other readers of other patients", blank=NOT_ALL),
        text("inference", "whether intervals hold for other patients, or `readers_*` for other readers too",
             values=INFERENCE),
    ),
    lambda run: human_table(run.ratings, run.cells, run.spec.statistics),
)  # fmt: skip


def human_table(ratings: Ratings, cells: Mapping[CellKey, pd.DataFrame], statistics: Statistics) -> pd.DataFrame:
    """Subsets by name; in each the raters by name, the consensus where there is one, the models and settings."""
    rows: list[dict[str, object]] = []
    for subset, (dataset, frame) in sorted(ratings.items()):
        about = {"subset": subset, "dataset": dataset}
        for rater, own in frame.groupby("rater", sort=True):
            rows.append(
                {**about, "rater": rater, "kind": "rater", "raters": 1, **_measures(own, statistics), **_times(own)}
            )
        both = consensus(frame)
        if len(both):
            shared = frame[frame["question"].isin(both["question"])]
            low_high = alpha_interval(shared, "label", statistics)
            rows.append(
                {
                    **about, "rater": CONSENSUS, "kind": CONSENSUS, "raters": shared["rater"].nunique(),
                    **_measures(both, statistics), "no_consensus": int(both["tied"].sum()),
                    **_times(shared), "alpha": low_high.estimate, "alpha_low": low_high.low,
                    "alpha_high": low_high.high, **_readers(frame, statistics),
                }
            )  # fmt: skip
        models = accuracy_table(of_questions(cells, dataset, frame["question"]), statistics)
        for row in models.drop(columns="balanced_accuracy").to_dict("records"):
            rows.append({**about, "rater": "", "kind": "model", **{str(name): value for name, value in row.items()}})
    return TABLE.frame_of([{"inference": INFERENCE[0], **row} for row in rows])


def _readers(frame: pd.DataFrame, statistics: Statistics) -> dict[str, object]:
    """The raters' mean accuracy, with raters and patients as samples: Obuchowski and Rockette's (`inference.mrmc`)."""
    correct = frame.pivot(index="question", columns="rater", values="right").dropna()
    (patients,) = code_patients(frame.groupby("question")["patient"].first().loc[correct.index])
    if len(correct.columns) < 2 or len(set(patients.tolist())) < 2:
        return {}
    found = mean_of_readers(accuracy_components(correct.to_numpy(np.float64), patients), statistics.level)
    if np.isnan(found.low):
        return {}
    ends = {"readers_low": found.low, "readers_high": found.high}
    return {"readers_accuracy": found.value, **ends, "inference": INFERENCE[1]}


def _measures(own: pd.DataFrame, statistics: Statistics) -> dict[str, object]:
    """What is said of one rater's answers, or of the consensus."""
    (patients,) = code_patients(own["patient"])
    right = mean_interval(own["right"], patients, statistics)
    measures: dict[str, object] = {
        "questions": len(own), "patients": right.patients, "accuracy": right.estimate, "low": right.low,
        "high": right.high, "cant_tell": int((own["choice"] == -1).sum()), "answered": int((own["choice"] >= 0).sum()),
        "chance": float((1 / own["n_options"]).mean()),
    }  # fmt: skip
    for name, column in SHARES.items():
        found = mean_interval(own[column], patients, statistics, bounds=BOUNDS.get(name, (0.0, 1.0)))
        measures |= {name: found.estimate, f"{name}_low": found.low, f"{name}_high": found.high}
    return measures


def _times(frame: pd.DataFrame) -> dict[str, float]:
    return {f"{name}_median": float(frame[name].median()) for name in ("seconds", "seconds_in_view")}
