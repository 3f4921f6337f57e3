"""Trials joined with their responses: one row a trial, a model and a run, with what the tables count.

Columns of the frame, beside those of `records.Trial` that are in `DRESS` and dataset, model, setting and run:

    trial      the trial's id: two that are equal put the same request
    status     answered, unparsed, refused, truncated or failed
    n_options  how many options
    gold       place shown of the right option, from 0
    answer     place shown of the option given, from 0; -1 where none was given
    choice     the same option's place as written; -1 where none was given
    right      whether the option given is the right one; never where none was given
    right_for_image  whether the option given is what is true of the study whose picture is shown
    image_known      whether that is known, and among the options
    image_choice     the place as written of what is true of that study; -1 where it is not known or no option
    yes_choice       the place as written of yes; -1 where the options are others
    yes_no     whether the options are yes and no
    gold_yes   whether the right option is yes
    said_yes   whether the option given is yes
    margin     log p(yes) - log p(no) where the options are yes and no; else log p(right option) - the largest log p
               of the others; NaN without log-probabilities, or where the back end's cut-off makes it infinite
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from overread.core.errors import BadInput
from overread.core.records import Response, Trial, read_columns
from overread.estimates.bootstrap import FloatArray, IntArray
from overread.estimates.spec import Cell

DRESS = (
    "question", "topic", "study", "patient", "image_study", "image_patient", "label", "image_label", "readout",
)  # fmt: skip
"""Columns that go from the trials into the frame as they are."""
CellKey = tuple[str, str, str]
"""dataset, model, setting"""


def read_cells(results: Path, cells: Iterable[Cell]) -> pd.DataFrame:
    """The frame of all cells, sorted by dataset, model, setting and run; within a run in the order of the trials' file.

    raises    BadInput for a file that is missing or damaged, or whose rows are not those of its trials
    """
    shown: dict[Path, _Shown] = {}
    frames = []
    for cell in sorted(cells, key=lambda one: (one.dataset, one.model, one.setting)):
        for run in range(1, cell.runs + 1):
            trials = results / cell.dataset / "trials" / cell.setting / f"run-{run}.parquet"
            if trials not in shown:
                shown[trials] = _Shown(trials)
            given = results / cell.dataset / "responses" / cell.model / cell.setting / f"run-{run}.parquet"
            frame = shown[trials].scored(given)
            frames.append(frame.assign(dataset=cell.dataset, model=cell.model, setting=cell.setting, run=run))
    return pd.concat(frames, ignore_index=True)


def by_cell(frame: pd.DataFrame) -> dict[CellKey, pd.DataFrame]:
    """The rows of each cell, cells sorted by name."""
    groups = frame.groupby(["dataset", "model", "setting"], sort=True)
    return {(str(key[0]), str(key[1]), str(key[2])): rows for key, rows in groups}


def paired(a: pd.DataFrame, b: pd.DataFrame) -> pd.DataFrame:
    """Two cells of one model side by side (suffixes _a and _b): the trials that ask the same question in the same run.

    What belongs to the question (question, run, topic, study, patient, n_options, yes_no) stands once. A question that
    only one of the two asks, or a run that only one of them has, is no pair.
    """
    shared = ["question", "run", "topic", "study", "patient", "n_options", "yes_no"]
    arms = [
        "status", "right", "choice", "said_yes", "margin", "image_study", "image_patient", "image_label",
        "right_for_image", "image_known", "trial",
    ]  # fmt: skip
    return a[shared + arms].merge(
        b[["question", "run", *arms]], on=["question", "run"], suffixes=("_a", "_b"), validate="one_to_one"
    )


def code_patients(*patients: pd.Series[str]) -> list[IntArray]:
    """The patients of one or more columns coded from 0 in the order of their names, alike in all columns.

    The codes do not depend on the order of rows.
    """
    names = pd.concat(patients, ignore_index=True) if len(patients) > 1 else patients[0]
    codes, _ = pd.factorize(names, sort=True)
    ends = np.cumsum([len(each) for each in patients])[:-1]
    return [each.astype(np.int64) for each in np.split(codes, ends)]


class _Shown:
    """What a trials file shows, and where its right options stand; read once for all models."""

    def __init__(self, path: Path) -> None:
        table = read_columns(path, Trial, ["trial", *DRESS, "options", "permutation", "answer"])
        self.path = path
        self.trials, self.questions = table["trial"], table["question"]
        if pc.count_distinct(self.questions).as_py() != len(table):
            raise BadInput(f"{path}: a question occurs twice; build the trials again")
        self.dress: pd.DataFrame = table.select(DRESS).to_pandas()
        self.gold = table["answer"].to_numpy().astype(np.int64)
        options = _Lists(table["options"])
        self.n_options = options.lengths
        self.permutation = _Lists(table["permutation"])
        self.image_gold = _places(options, self.dress["image_label"])
        self.yes = _place_of_yes(options)
        self.yes_no = self.yes >= 0
        self.image_choice, self.yes_choice = (self._as_written(places) for places in (self.image_gold, self.yes))

    def _as_written(self, places: IntArray) -> IntArray:
        """The places as written of places shown; -1 stays."""
        found = np.full(len(places), -1)
        known = np.flatnonzero(places >= 0)
        found[known] = self.permutation.at(known, places[known])
        return found

    def scored(self, path: Path) -> pd.DataFrame:
        """The frame of one response file, less dataset, model, setting and run."""
        table = read_columns(path, Response, ["trial", "question", "status", "answer", "choice", "logprobs"])
        if not (table["trial"].equals(self.trials) and table["question"].equals(self.questions)):
            raise BadInput(
                f"{path}: its {len(table)} rows are not those of the {len(self.trials)} trials in {self.path}; "
                "delete it and run its answer job again, which asks only what is new"
            )
        answered = pc.equal(table["status"], "answered").to_numpy()
        answer, choice = (pc.fill_null(table[name], -1).to_numpy().astype(np.int64) for name in ("answer", "choice"))
        self._check(answered, answer, choice, path)
        frame = self.dress.copy()
        frame["trial"] = self.trials.to_pandas()
        frame["status"] = table["status"].to_pandas()
        frame["n_options"] = self.n_options
        frame["gold"] = self.gold
        frame["answer"] = answer
        frame["choice"] = choice
        frame["right"] = answered & (answer == self.gold)
        frame["image_known"] = self.image_gold >= 0
        frame["right_for_image"] = answered & (answer == self.image_gold)
        frame["image_choice"] = self.image_choice
        frame["yes_choice"] = self.yes_choice
        frame["yes_no"] = self.yes_no
        frame["gold_yes"] = self.yes_no & (self.gold == self.yes)
        frame["said_yes"] = self.yes_no & answered & (answer == self.yes)
        frame["margin"] = self._margins(_Lists(table["logprobs"]), path)
        return frame

    def _check(self, answered: npt.NDArray[np.bool_], answer: IntArray, choice: IntArray, path: Path) -> None:
        """BadInput unless the answered trials, and only these, have an option of their own, as shown and as written."""
        wrong = np.where(answered, (answer < 0) | (answer >= self.n_options), (answer != -1) | (choice != -1))
        inside = np.flatnonzero(answered & ~wrong)
        wrong[inside] = self.permutation.at(inside, answer[inside]) != choice[inside]
        if wrong.any():
            question = self.questions[int(np.argmax(wrong))].as_py()
            raise BadInput(
                f"{path}: the answer to question {question} fits neither its status nor its options; "
                "delete it and run its answer job again"
            )

    def _margins(self, logprobs: _Lists, path: Path) -> FloatArray:
        margins = np.full(len(self.gold), np.nan)
        given = np.flatnonzero(logprobs.lengths > 0)
        if (logprobs.lengths[given] != self.n_options[given]).any():
            raise BadInput(f"{path}: not one log-probability an option; delete it and run its answer job again")
        reference = np.where(self.yes_no, self.yes, self.gold)
        for size in np.unique(self.n_options[given]):
            rows = given[self.n_options[given] == size]
            others = logprobs.matrix(rows, int(size)).astype(np.float64)
            own = logprobs.at(rows, reference[rows])
            others[np.arange(len(rows)), reference[rows]] = -np.inf
            with np.errstate(invalid="ignore"):
                margins[rows] = own - others.max(axis=1)
        margins[~np.isfinite(margins)] = np.nan
        return margins


def _place_of_yes(options: _Lists) -> IntArray:
    """The place shown of yes where the options are yes and no, else -1."""
    places = np.full(len(options.lengths), -1)
    pairs = np.flatnonzero(options.lengths == 2)
    texts = np.char.lower(options.matrix(pairs, 2).astype(str))
    places[pairs[(texts == ["yes", "no"]).all(axis=1)]] = 0
    places[pairs[(texts == ["no", "yes"]).all(axis=1)]] = 1
    return places


def _places(options: _Lists, texts: pd.Series[str]) -> IntArray:
    """The place shown of each row's text among its options; -1 where it is not known or not among them."""
    places = np.full(len(options.lengths), -1)
    known = np.flatnonzero(texts.notna().to_numpy())
    for size in np.unique(options.lengths[known]):
        rows = known[options.lengths[known] == size]
        same = options.matrix(rows, int(size)) == texts.to_numpy(dtype=object)[rows, None]
        places[rows] = np.where(same.any(axis=1), same.argmax(axis=1), -1)
    return places


class _Lists:
    """A list column as flat values with the place where each row's list starts. A null is a list of length 0."""

    def __init__(self, column: pa.ChunkedArray) -> None:
        self.lengths: IntArray = pc.fill_null(pc.list_value_length(column), 0).to_numpy().astype(np.int64)
        self.starts: IntArray = np.cumsum(self.lengths) - self.lengths
        self.flat: npt.NDArray[Any] = pc.list_flatten(column).to_numpy()

    def matrix(self, rows: IntArray, length: int) -> npt.NDArray[Any]:
        """The lists of `rows`, all of `length`, as (rows, length)."""
        values: npt.NDArray[Any] = self.flat[self.starts[rows, None] + np.arange(length)]
        return values

    def at(self, rows: IntArray, places: IntArray) -> npt.NDArray[Any]:
        """The value at one place of each of `rows`."""
        values: npt.NDArray[Any] = self.flat[self.starts[rows] + places]
        return values
