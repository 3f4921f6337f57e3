"""Trials joined with responses."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from data.handmade import Asked, read, write_cell
from overread.core.errors import BadInput
from overread.core.records import read_responses, read_trials, write_responses, write_trials
from overread.estimates.scored import code_patients, paired, read_cells
from overread.estimates.spec import Cell

FOUR = ("a", "b", "c", "d")
CELL = ("data", "reader", "setting")


def one(tmp_path: Path, *asked: Asked) -> pd.DataFrame:
    return read(tmp_path, write_cell(tmp_path, "setting", asked))[CELL].set_index("question")


def test_right_is_the_option_given_whatever_the_order_shown(tmp_path: Path):
    """As written a b c d; shown c a d b; the right one is b, at place 3."""
    shown = ("c", "a", "d", "b")
    rows = one(
        tmp_path,
        Asked("q1", "p1", right="b", given="b", options=FOUR, shown=shown),
        Asked("q2", "p1", right="b", given="c", options=FOUR, shown=shown),
    )
    assert rows["gold"].tolist() == [3, 3]
    assert rows["answer"].tolist() == [3, 0]
    assert rows["choice"].tolist() == [1, 2]
    assert rows["right"].tolist() == [True, False]
    assert rows["n_options"].tolist() == [4, 4]


@pytest.mark.parametrize("status", ["unparsed", "refused", "truncated", "failed"])
def test_what_is_not_answered_is_never_right_and_gives_no_option(tmp_path: Path, status: str):
    rows = one(tmp_path, Asked("q1", "p1", right="yes", given=None, status=status))
    row = rows.loc["q1"]
    assert (row["status"], row["right"], row["answer"], row["choice"]) == (status, False, -1, -1)
    assert not row["said_yes"]
    assert row["gold_yes"]


def test_yes_is_known_by_its_text_and_not_by_its_place(tmp_path: Path):
    rows = one(
        tmp_path,
        Asked("q1", "p1", right="yes", given="no"),
        Asked("q2", "p1", right="no", given="yes", shown=("no", "yes")),
        Asked("q3", "p1", right="No", given="Yes", options=("No", "Yes")),
        Asked("q4", "p1", right="a", given="b", options=("a", "b")),
    )
    assert rows["yes_no"].tolist() == [True, True, True, False]
    assert rows["said_yes"].tolist() == [False, True, True, False]
    assert rows["gold_yes"].tolist() == [True, False, False, False]


def test_the_margin_of_yes_and_no_is_log_p_yes_less_log_p_no(tmp_path: Path):
    """p(yes) = 0.8, p(no) = 0.2: log 4, whether yes stands first or second, whatever is right."""
    yes, no = math.log(0.8), math.log(0.2)
    rows = one(
        tmp_path,
        Asked("q1", "p1", right="yes", given="yes", logprobs=(yes, no)),
        Asked("q2", "p1", right="no", given="yes", logprobs=(yes, no)),
        Asked("q3", "p1", right="no", given="yes", shown=("no", "yes"), logprobs=(no, yes)),
    )
    assert rows["margin"].to_numpy() == pytest.approx(math.log(4))


def test_the_margin_of_other_options_is_the_right_one_less_the_best_other(tmp_path: Path):
    rows = one(
        tmp_path,
        Asked("q1", "p1", right="b", given="b", options=FOUR, logprobs=(-2.0, -0.5, -3.0, -4.0)),
        Asked("q2", "p1", right="b", given="c", options=FOUR, shown=("c", "a", "d", "b"), logprobs=(-0.25, -2, -3, -4)),
        Asked("q3", "p1", right="x", given="x", options=("x", "y", "z"), logprobs=(-1.0, -1.5, -2.5)),
        Asked("q4", "p1", right="low", given="high", options=("high", "low"), logprobs=(-0.5, -2.0)),
    )
    assert rows["margin"].tolist() == pytest.approx([1.5, -3.75, 0.5, -1.5])


def test_there_is_no_margin_without_log_probabilities(tmp_path: Path):
    rows = one(
        tmp_path,
        Asked("q1", "p1", right="yes", given="yes"),
        Asked("q2", "p1", right="yes", given="yes", logprobs=(-0.1, -math.inf)),
        Asked("q3", "p1", right="b", given="b", options=FOUR, logprobs=(-1.0, -0.5, -math.inf, -math.inf)),
    )
    assert np.isnan(rows["margin"].tolist()).tolist() == [True, True, False]
    assert rows.loc["q3", "margin"] == pytest.approx(0.5)


def test_runs_and_cells_come_in_one_frame_in_the_order_of_names(tmp_path: Path):
    asked = [Asked("q2", "p1", "yes", "no"), Asked("q1", "p1", "yes", "yes")]
    cells = [
        write_cell(tmp_path, "black", asked, asked, model="small"),
        write_cell(tmp_path, "black", asked, asked, model="large"),
    ]
    frames = [
        read_cells(tmp_path, [Cell.model_validate(cell) for cell in order]) for order in (cells, list(reversed(cells)))
    ]
    pd.testing.assert_frame_equal(*frames)
    assert frames[0][["model", "run", "question"]].to_numpy().tolist() == [
        [model, run, question] for model in ("large", "small") for run in (1, 2) for question in ("q1", "q2")
    ]


def test_responses_to_other_trials_are_refused_with_what_to_do(tmp_path: Path):
    cell = write_cell(tmp_path, "setting", [Asked("q1", "p1", "yes", "no"), Asked("q2", "p1", "yes", "yes")])
    trials = tmp_path / "data" / "trials" / "setting" / "run-1.parquet"
    first, second = read_trials(trials)
    other = second.model_copy(update={"trial": "0" * 16, "question": "q3"})
    for rows in ([first], [second, first], [first, second, other], [first, other]):
        in_order = [trial.model_copy(update={"study": f"s{place}"}) for place, trial in enumerate(rows)]
        write_trials(in_order, trials)
        with pytest.raises(BadInput, match=r"reader/setting/run-1.parquet.*not those of.*run its answer job again"):
            read(tmp_path, cell)


def test_a_missing_response_file_is_named(tmp_path: Path):
    cell = write_cell(tmp_path, "setting", [Asked("q1", "p1", "yes", "no")])
    (tmp_path / "data" / "responses" / "reader" / "setting" / "run-1.parquet").unlink()
    with pytest.raises(BadInput, match=r"reader/setting/run-1.parquet: no such file"):
        read(tmp_path, cell)


@pytest.mark.parametrize("change", [{"choice": 0}, {"answer": 4}, {"answer": 3}])
def test_an_answer_that_does_not_fit_its_options_is_refused(tmp_path: Path, change: dict[str, int]):
    asked = Asked("q1", "p1", right="b", given="c", options=FOUR, shown=("c", "a", "d", "b"))
    cell = write_cell(tmp_path, "setting", [asked])
    path = tmp_path / "data" / "responses" / "reader" / "setting" / "run-1.parquet"
    write_responses([response.model_copy(update=change) for response in read_responses(path)], path)
    with pytest.raises(BadInput, match="question q1 fits neither"):
        read(tmp_path, cell)


def test_log_probabilities_of_another_number_of_options_are_refused(tmp_path: Path):
    cell = write_cell(tmp_path, "setting", [Asked("q1", "p1", "b", "b", options=FOUR, logprobs=(-0.1, -0.2))])
    with pytest.raises(BadInput, match="not one log-probability an option"):
        read(tmp_path, cell)


def test_a_question_asked_twice_in_a_run_is_refused(tmp_path: Path):
    twice = Asked("q1", "p1", "yes", "no")
    cell = write_cell(tmp_path, "setting", [twice, replace(twice, given="yes")])
    with pytest.raises(BadInput, match="a question occurs twice"):
        read(tmp_path, cell)


def test_pairs_are_one_question_in_one_run(tmp_path: Path):
    """Setting a asks q1 and q2 in two runs, b asks q2 and q3 in one: the only pair is q2 in run 1."""
    q1, q2, q3 = (Asked(name, "p1", "yes", "no") for name in ("q1", "q2", "q3"))
    cells = read(
        tmp_path,
        write_cell(tmp_path, "a", [q1, q2], [q1, q2]),
        write_cell(tmp_path, "b", [q3, replace(q2, given="yes")]),
    )
    pairs = paired(cells["data", "reader", "a"], cells["data", "reader", "b"])
    assert pairs[["question", "run", "choice_a", "choice_b"]].to_numpy().tolist() == [["q2", 1, 1, 0]]


def test_patients_of_two_columns_share_their_codes():
    first, second = code_patients(pd.Series(["p3", "p1"]), pd.Series(["p2", "p3", "p1"]))
    assert first.tolist() == [2, 0]
    assert second.tolist() == [1, 2, 0]
