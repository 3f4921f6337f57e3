"""People beside models on the same questions (Table 5 of UCSF-PDGM-VQA), and how far people agree.

human.csv has a row a rater, one for their consensus, and one a model and setting on the questions of that subset
alone. "Can't tell" and no consensus are not right, and are counted in their own columns.

The consensus is over the questions that two raters or more have answered: the answer given most often, "can't tell"
being one of them; where two are given equally often there is no consensus. Its agreement, relevance, confidence and
answerable are the mean over these questions of the mean over their raters, so that a question counts once.

A model's row is over every question that some rater has answered, all runs pooled as in accuracy.csv. A rater who has
answered fewer is set against it in human_differences.csv: there both answer the same questions, a model with the share
of its runs that are right, and the interval is that of the difference.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from overread.config import Statistics
from overread.config.human import HumanSubset
from overread.core.records import read_questions
from overread.estimates.agreement import agreement
from overread.estimates.bootstrap import FloatArray, Interval, clustered_interval, paired_difference, patient_draws
from overread.estimates.ratings import ratings_frame
from overread.estimates.scored import CellKey, by_cell, code_patients, read_cells
from overread.estimates.spec import TablesSpec
from overread.estimates.tables.accuracy import STATUSES, accuracy_table
from overread.estimates.writing import write_csv

CONSENSUS = "consensus"
NO_CONSENSUS = -2
"""Stands where no answer was given most often."""
SHARES = {"agreement": "agrees", "relevance": "relevant", "confidence": "confidence", "answerable": "answerable"}
"""Columns of human.csv by what they are the mean of."""
COLUMNS = (
    "rater", "subset", "questions", "accuracy", "low", "high", "agreement", "relevance", "confidence", "answerable",
    "kind", "dataset", "model", "setting", "runs", "patients", "raters", "cant_tell", "no_consensus", *STATUSES,
    "chance", "always_first", *(f"{name}_{end}" for name in SHARES for end in ("low", "high")),
    "seconds_median", "seconds_in_view_median",
    "alpha", "alpha_low", "alpha_high",
)  # fmt: skip
DIFFERENCES = (
    "subset", "rater", "kind", "dataset", "model", "setting", "questions", "patients", "human", "model_accuracy",
    "difference", "low", "high",
)  # fmt: skip
AGREEMENT = ("subset", "of", "statistic", "raters", "items", "value", "low", "high", "note")

Ratings = Mapping[str, tuple[str, pd.DataFrame]]
"""By subset: its dataset, and its ratings as `ratings_frame` gives them."""


def make_human_tables(results: Path, spec: TablesSpec, subsets: Mapping[str, HumanSubset], out: Path) -> list[Path]:
    """Write human.csv, human_differences.csv and human_agreement.csv into `out`. A subset without a file has no row.

    returns   the files written
    raises    BadInput for a file that is missing or damaged, or does not fit the run's questions
    """
    ratings: dict[str, tuple[str, pd.DataFrame]] = {}
    for name, subset in sorted(subsets.items()):
        if subset.ratings:
            questions = read_questions(results / subset.dataset / "questions.jsonl")
            paths = [Path(path) for path in sorted(subset.ratings)]
            ratings[name] = (subset.dataset, ratings_frame(name, subset.dataset, paths, questions))
    wanted = {dataset for dataset, _ in ratings.values()}
    asked = [cell for cell in spec.cells if cell.dataset in wanted]
    cells = by_cell(read_cells(results, asked)) if asked else {}
    tables = {
        "human": human_table(ratings, cells, spec.statistics),
        "human_differences": differences_table(ratings, cells, spec.statistics),
        "human_agreement": agreement_table(ratings, spec.statistics),
    }
    for name, table in tables.items():
        write_csv(table, out / f"{name}.csv")
    return [out / f"{name}.csv" for name in tables]


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
                    "alpha_high": low_high.high,
                }
            )  # fmt: skip
        models = accuracy_table(_of_questions(cells, dataset, frame["question"]), statistics)
        for row in models.drop(columns="balanced_accuracy").to_dict("records"):
            rows.append({**about, "rater": "", "kind": "model", **{str(name): value for name, value in row.items()}})
    return _table(rows, COLUMNS)


def differences_table(ratings: Ratings, cells: Mapping[CellKey, pd.DataFrame], statistics: Statistics) -> pd.DataFrame:
    """Human less model, a row a rater or consensus, model and setting, over the questions that both were asked.

    A question that failed in all of a model's runs counts for neither.
    """
    rows: list[dict[str, object]] = []
    for subset, (dataset, frame) in sorted(ratings.items()):
        people = [(str(rater), "rater", own) for rater, own in frame.groupby("rater", sort=True)]
        people.append((CONSENSUS, CONSENSUS, consensus(frame)))
        models = _of_questions(cells, dataset, frame["question"])
        for rater, kind, own in people:
            for (_, model, setting), trials in sorted(models.items()):
                scored = trials[trials["status"] != "failed"]
                pairs = own[["question", "patient", "right"]].merge(
                    scored.groupby("question")["right"].mean().rename("of_model"), on="question", validate="one_to_one"
                )
                if not len(pairs):
                    continue
                (patients,) = code_patients(pairs["patient"])
                found = paired_difference(pairs["right"], pairs["of_model"], patients, **statistics.model_dump())
                rows.append(
                    {
                        "subset": subset, "rater": rater, "kind": kind, "dataset": dataset, "model": model,
                        "setting": setting, "questions": len(pairs), "patients": found.patients,
                        "human": float(pairs["right"].mean()), "model_accuracy": float(pairs["of_model"].mean()),
                        "difference": found.estimate, "low": found.low, "high": found.high,
                    }
                )  # fmt: skip
    return _table(rows, DIFFERENCES)


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
    return _table(rows, AGREEMENT)


def consensus(frame: pd.DataFrame) -> pd.DataFrame:
    """A row a question that two raters or more have answered, with the columns of a rater's own.

    tied      whether two answers were given equally often: then there is no consensus, and none is right
    choice    the answer given most often; -1 for can't tell, `NO_CONSENSUS` for none
    agrees, relevant, answerable, confidence   the raters' mean
    """
    raters = frame.groupby("question")["rater"].transform("nunique")
    shared = frame[raters > 1]
    votes = shared.groupby(["question", "choice"]).agg(votes=("right", "size"), right=("right", "first")).reset_index()
    most = votes[votes["votes"] == votes.groupby("question")["votes"].transform("max")]
    answer = most.groupby("question").agg(
        choice=("choice", "first"), right=("right", "first"), found=("choice", "size")
    )
    answer["tied"] = answer.pop("found") > 1
    answer.loc[answer["tied"], "choice"] = NO_CONSENSUS
    answer["right"] &= ~answer["tied"]
    about = shared.groupby("question")[["patient", "n_options"]].first()
    views = shared.groupby("question")[list(SHARES.values())].mean()
    return answer.join([about, views]).reset_index()


def alpha_interval(frame: pd.DataFrame, column: str, statistics: Statistics) -> Interval:
    """Krippendorff's alpha for nominal data, with the percentile interval of a bootstrap over patients.

    alpha = 1 - (n - 1) D / (n^2 - sum over values of n_v^2), where n_v is how often value v was given to questions that
    two raters or more rated, n their sum, and D the sum over questions of the ordered pairs of unequal values over
    (raters of the question - 1) (Krippendorff 2011, "Computing Krippendorff's alpha-reliability"). D and n_v are sums
    over questions, so a drawn alpha needs only each patient's sums. A draw in which one value alone occurs has no
    alpha and is left out.

    frame     a row a rater and question: question, patient and `column`
    returns   NaN as the estimate where alpha is not defined
    """
    shared = frame[frame.groupby("question")["question"].transform("size") > 1]
    if not len(shared):
        return Interval(float("nan"), None, None, 0)
    (codes,) = code_patients(shared["patient"])
    counts = pd.crosstab(shared["question"], shared[column])
    patients = pd.Series(codes, index=shared["question"]).groupby(level=0).first().loc[counts.index].to_numpy()
    given = counts.to_numpy(np.float64)
    raters = given.sum(axis=1)
    unequal = (raters**2 - (given**2).sum(axis=1)) / (raters - 1)
    count = int(patients.max()) + 1
    sums = np.zeros((count, 1 + given.shape[1]))
    np.add.at(sums, patients, np.column_stack([unequal, given]))
    estimate = float(_alphas(sums.sum(axis=0, keepdims=True))[0])
    if count < 2:
        return Interval(estimate, None, None, count)
    drawn = _alphas(patient_draws(count, statistics.draws, statistics.seed).astype(np.float64) @ sums)
    drawn = drawn[np.isfinite(drawn)]
    if not len(drawn):
        return Interval(estimate, None, None, count)
    low, high = np.quantile(drawn, [(1 - statistics.level) / 2, (1 + statistics.level) / 2])
    return Interval(estimate, float(low), float(high), count)


def _alphas(sums: FloatArray) -> FloatArray:
    """Alpha by row of (rows, 1 + values): the sum of unequal pairs, and how often each value was given."""
    total = sums[:, 1:].sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        alphas: FloatArray = 1 - (total - 1) * sums[:, 0] / (total**2 - (sums[:, 1:] ** 2).sum(axis=1))
    return alphas


def _measures(own: pd.DataFrame, statistics: Statistics) -> dict[str, object]:
    """What is said of one rater's answers, or of the consensus."""
    (patients,) = code_patients(own["patient"])
    right = clustered_interval(own["right"], patients, **statistics.model_dump())
    measures: dict[str, object] = {
        "questions": len(own), "patients": right.patients, "accuracy": right.estimate, "low": right.low,
        "high": right.high, "cant_tell": int((own["choice"] == -1).sum()), "answered": int((own["choice"] >= 0).sum()),
        "chance": float((1 / own["n_options"]).mean()),
    }  # fmt: skip
    for name, column in SHARES.items():
        found = clustered_interval(own[column], patients, **statistics.model_dump())
        measures |= {name: found.estimate, f"{name}_low": found.low, f"{name}_high": found.high}
    return measures


def _times(frame: pd.DataFrame) -> dict[str, float]:
    return {f"{name}_median": float(frame[name].median()) for name in ("seconds", "seconds_in_view")}


def _of_questions(
    cells: Mapping[CellKey, pd.DataFrame], dataset: str, questions: pd.Series[str]
) -> dict[CellKey, pd.DataFrame]:
    """The trials of a dataset's cells that ask one of the questions; a cell that asks none is left out."""
    wanted = set(questions)
    found = {key: rows[rows["question"].isin(wanted)] for key, rows in cells.items() if key[0] == dataset}
    return {key: rows for key, rows in found.items() if len(rows)}


def _texts(values: pd.Series[Any]) -> pd.Series[str]:
    return values.map({True: "yes", False: "no"}) if values.dtype == bool else values.astype(str)


def _table(rows: list[dict[str, object]], columns: Sequence[str]) -> pd.DataFrame:
    """Rows with blanks where they lack a column; whole numbers stay whole beside blanks."""
    return pd.DataFrame([[row.get(name) for name in columns] for row in rows], columns=list(columns), dtype=object)
