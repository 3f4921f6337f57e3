"""What raters answered together, and the answers of models to the questions that they rated."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from overread.estimates.scored import CellKey

CONSENSUS = "consensus"
NO_CONSENSUS = -2
"""Stands where no answer was given most often."""
SHARES = {"agreement": "agrees", "relevance": "relevant", "confidence": "confidence", "answerable": "answerable"}
"""Columns of human.csv by what they are the mean of."""


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


def of_questions(
    cells: Mapping[CellKey, pd.DataFrame], dataset: str, questions: pd.Series[str]
) -> dict[CellKey, pd.DataFrame]:
    """The trials of a dataset's cells that ask one of the questions; a cell that asks none is left out."""
    wanted = set(questions)
    found = {key: rows[rows["question"].isin(wanted)] for key, rows in cells.items() if key[0] == dataset}
    return {key: rows for key, rows in found.items() if len(rows)}
