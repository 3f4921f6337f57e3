"""The catalogue: what it says of a run is what the records say, read again when they change."""

from __future__ import annotations

import json
import os
import shutil
import threading
from pathlib import Path

import numpy as np
import pytest

from overread.core.errors import BadInput
from overread.core.records import (
    read_pictures,
    read_questions,
    read_responses,
    read_studies,
    read_trials,
    write_questions,
    write_responses,
)
from overread_viewer.catalogue import Catalogue
from overread_viewer.errors import NotThere
from overread_viewer.kept import Kept


@pytest.fixture(scope="module")
def catalogue(results) -> Catalogue:
    return Catalogue(results)


@pytest.fixture
def copy(results, tmp_path) -> Path:
    shutil.copytree(results, tmp_path / "small")
    return tmp_path / "small"


# -- names -------------------------------------------------------------------------------------------------------------


def test_names_are_those_of_the_run(catalogue):
    assert catalogue.name == "small"
    assert catalogue.datasets == ("mri", "xray")
    assert catalogue.models("mri") == ("blind-reader", "first-option", "reader")
    edited = {"erased", "erased-elsewhere", "mirrored", "marks", "blurred-1", "blurred-2"}
    edited |= {f"covered-{cell}" for cell in range(4)}
    assert set(catalogue.settings("mri")) == {"single-slice", "black", "swapped", "reshuffled", "text-only", *edited}
    assert "text-only" not in catalogue.settings("mri", "first-option")
    assert catalogue.runs("mri", "reader", "black") == 2
    assert catalogue.runs("mri", "first-option", "text-only") == 0
    assert catalogue.label("reader") == "Reader, image 80 %"


def test_questions_of_a_settings_own_are_found_beside_those_of_the_data_set(catalogue):
    own = catalogue.questions("mri")
    study = next(iter(catalogue.studies("mri")))
    asked = catalogue.asked_of("mri", study)
    marks = [one for one in asked if one.question not in own]
    assert {one.topic for one in marks} >= {"mark: present"}
    assert [one for one in asked if one.question in own] == catalogue.questions_of("mri", study)
    for one in marks:
        trial = catalogue.trial("mri", "marks", 1, one.question)
        assert catalogue.question("mri", one.question) == one and trial.options == one.options
        assert catalogue.trial("mri", "single-slice", 1, one.question) is None
    assert not catalogue.controls("xray")


@pytest.mark.parametrize(
    "ask",
    [
        lambda c: c.studies("nope"),
        lambda c: c.studies("../mri"),
        lambda c: c.study("mri", "nope"),
        lambda c: c.question("mri", "nope"),
        lambda c: c.questions_of("mri", "nope"),
        lambda c: c.pictures("mri", "nope"),
        lambda c: c.answers("mri", "nope", "black", 1),
        lambda c: c.answers("mri", "reader", "nope", 1),
        lambda c: c.answers("mri", "reader", "../black", 1),
        lambda c: c.answers("mri", "reader", "black", 3),
        lambda c: c.answers("mri", "reader", "black", 0),
        lambda c: c.answers("mri", "first-option", "text-only", 1),
        lambda c: c.trial("mri", "xray", 1, "x"),
        lambda c: c.trial("mri", "black", 1, "nope"),
        lambda c: c.response("mri", "reader", "black", 1, "nope"),
        lambda c: c.table("nope"),
        lambda c: c.table("../study"),
        lambda c: c.file("../small/study.jsonx"),
        lambda c: c.file("tables"),
    ],
)
def test_a_name_that_the_run_has_not_is_not_there(catalogue, ask):
    with pytest.raises(NotThere):
        ask(catalogue)


# -- the nouns --------------------------------------------------------------------------------------------------------


def test_studies_are_all_there_with_the_reason_of_those_that_were_rejected(catalogue, results):
    written = read_studies(results / "mri" / "studies.parquet", with_problems=True)
    assert dict(catalogue.studies("mri")) == {one.study: one for one in written}
    assert catalogue.study("mri", "mri-broken").problem == "the file is cut short"


def test_a_study_that_the_images_stage_rejected_has_its_reason(copy):
    path = copy / "mri" / "studies_rejected.csv"
    path.write_text(path.read_text() + "mri-01-1,p01,images,FLAIR: empty\n")
    catalogue = Catalogue(copy)
    assert catalogue.study("mri", "mri-01-1").problem == "FLAIR: empty"
    assert catalogue.study("mri", "mri-broken").problem == "the file is cut short"


def test_questions_and_pictures_of_a_study_are_those_of_the_records(catalogue, results):
    questions = read_questions(results / "xray" / "questions.jsonl")
    pictures = read_pictures(results / "xray" / "images.parquet")
    for study in catalogue.studies("xray"):
        mine = [one for one in questions if one.study == study]
        assert sorted(catalogue.questions_of("xray", study), key=lambda one: one.question) == sorted(
            mine, key=lambda one: one.question
        )
        assert catalogue.pictures("xray", study) == [one for one in pictures if one.study == study]


def test_a_trial_and_its_response_are_the_records(catalogue, results):
    for setting, run in (("reshuffled", 2), ("text-only", 1)):
        trials = read_trials(results / "mri" / "trials" / setting / f"run-{run}.parquet")
        responses = read_responses(results / "mri" / "responses" / "reader" / setting / f"run-{run}.parquet")
        for trial, response in list(zip(trials, responses, strict=True))[::7]:
            assert catalogue.trial("mri", setting, run, trial.question) == trial
            assert catalogue.response("mri", "reader", setting, run, trial.question) == response


def test_answers_are_the_responses_judged_by_the_options_as_written(catalogue, results):
    """With the options shuffled: log-probabilities and choices are put back into the order as written."""
    trials = read_trials(results / "mri" / "trials" / "reshuffled" / "run-1.parquet")
    responses = read_responses(results / "mri" / "responses" / "reader" / "reshuffled" / "run-1.parquet")
    questions = {one.question: one for one in read_questions(results / "mri" / "questions.jsonl")}
    answers = catalogue.answers("mri", "reader", "reshuffled", 1)
    assert any(trial.permutation != tuple(sorted(trial.permutation)) for trial in trials)
    assert any(response.status != "answered" for response in responses)
    for row, (trial, response) in enumerate(zip(trials, responses, strict=True)):
        question = questions[trial.question]
        assert answers.rows[trial.question] == row
        assert (answers.question[row], answers.study[row], answers.patient[row]) == (
            trial.question, trial.study, trial.patient,
        )  # fmt: skip
        assert answers.status[row] == response.status
        assert answers.choice[row] == (-1 if response.choice is None else response.choice)
        chosen = None if response.answer is None else trial.options[response.answer]
        assert answers.correct[row] == (chosen == question.answer)
        by_text = dict(zip(trial.options, response.logprobs, strict=True))
        assert list(answers.logprobs[row]) == [by_text[option] for option in question.options]


def test_a_model_without_log_probabilities_has_none(catalogue):
    assert catalogue.answers("xray", "first-option", "xray", 1).logprobs is None


def test_answers_of_a_part_of_the_trials_keep_to_their_questions(copy):
    """Responses in another order, one of them missing: nothing slides to another question."""
    path = copy / "mri" / "responses" / "reader" / "reshuffled" / "run-1.parquet"
    responses = read_responses(path)
    kept = [responses[place] for place in (4, 1, 9, 3)]
    write_responses(kept, path)
    catalogue = Catalogue(copy)
    answers = catalogue.answers("mri", "reader", "reshuffled", 1)
    assert list(answers.question) == [one.question for one in kept]
    whole = Catalogue(copy)
    for row, response in enumerate(kept):
        trial = whole.trial("mri", "reshuffled", 1, response.question)
        assert answers.study[row] == trial.study
        assert answers.correct[row] == (response.answer == trial.answer)
        assert np.allclose(answers.logprobs[row][list(trial.permutation)], response.logprobs, rtol=0, atol=0)
        assert catalogue.response("mri", "reader", "reshuffled", 1, response.question) == response
    assert catalogue.response("mri", "reader", "reshuffled", 1, responses[0].question) is None


def test_an_answer_to_what_was_not_asked_is_an_error(copy):
    shutil.copy(
        copy / "mri" / "responses" / "reader" / "black" / "run-1.parquet",
        copy / "xray" / "responses" / "reader" / "xray" / "run-1.parquet",
    )
    with pytest.raises(BadInput, match="which its trials do not ask"):
        Catalogue(copy).answers("xray", "reader", "xray", 1)


def test_only_pictures_that_a_record_names_have_a_file(catalogue, results):
    named = {one.path for one in read_pictures(results / "mri" / "images.parquet")}
    for path in [*named, "images/black/64x64.png"]:  # the second is named by trials alone
        assert catalogue.picture_at("mri", path) == results / "mri" / path
    for path in ("studies.parquet", "../study.json", f"./{next(iter(named))}", "/etc/passwd", ""):
        assert catalogue.picture_at("mri", path) is None


def test_a_link_out_of_the_run_is_not_there(copy, tmp_path):
    (tmp_path / "secret").write_text("secret")
    (copy / "tables" / "leak.csv").symlink_to(tmp_path / "secret")
    (copy / "tables" / "inside.csv").symlink_to(copy / "tables" / "flips.csv")
    catalogue = Catalogue(copy)
    with pytest.raises(NotThere):
        catalogue.file("tables/leak.csv")
    assert catalogue.file("tables/inside.csv").read_text() == (copy / "tables" / "flips.csv").read_text()


def test_restricted_is_by_the_config_or_by_any_study(results, restricted_results, tmp_path):
    assert Catalogue(results).restricted_datasets == ()
    assert Catalogue(restricted_results).restricted_datasets == ("xray",)
    shutil.copytree(restricted_results, tmp_path / "said-open")
    spec = json.loads((tmp_path / "said-open" / "study.json").read_text())
    spec["datasets"]["xray"]["restricted"] = False
    (tmp_path / "said-open" / "study.json").write_text(json.dumps(spec))
    assert Catalogue(tmp_path / "said-open").restricted_datasets == ("xray",)
    del spec["datasets"]["mri"]["restricted"]
    (tmp_path / "said-open" / "study.json").write_text(json.dumps(spec))
    assert Catalogue(tmp_path / "said-open").restricted_datasets == ("mri", "xray")  # what isn't said is restricted


# -- kept, and read again ----------------------------------------------------------------------------------------------


def test_a_file_that_changed_is_read_again(copy):
    catalogue = Catalogue(copy)
    before = len(catalogue.questions("mri"))
    questions = read_questions(copy / "mri" / "questions.jsonl")
    write_questions(questions[:-1], copy / "mri" / "questions.jsonl")
    assert len(catalogue.questions("mri")) == before - 1
    assert sum(len(catalogue.questions_of("mri", study)) for study in catalogue.studies("mri")) == before - 1


def test_answers_are_judged_again_when_their_trials_change(copy):
    catalogue = Catalogue(copy)
    first = catalogue.answers("mri", "reader", "black", 1)
    assert catalogue.answers("mri", "reader", "black", 1) is first
    trials = copy / "mri" / "trials" / "black" / "run-1.parquet"
    os.utime(trials, ns=(1, 1))
    assert catalogue.answers("mri", "reader", "black", 1) is not first


def test_models_that_were_asked_the_same_share_its_columns(catalogue):
    one, other = (catalogue.answers("mri", model, "black", 1) for model in ("reader", "first-option"))
    assert one.question is other.question and one.rows is other.rows


def test_what_is_kept_is_made_once_by_threads_and_dropped_over_the_budget(tmp_path):
    files = [tmp_path / name for name in "abc"]
    for file in files:
        file.write_text("x")
    kept, made, started = Kept(budget=2), [], threading.Barrier(8)

    def get(file):
        return kept.get(file, lambda: made.append(file.name) or file.name, size=lambda _: 1)

    def together():
        started.wait()
        get(files[0])

    threads = [threading.Thread(target=together) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == ["a"]
    get(files[1])
    get(files[0])  # used again, so b is the oldest
    get(files[2])
    get(files[0])
    assert made == ["a", "b", "c"]
    get(files[1])
    assert made == ["a", "b", "c", "b"]


# -- no run, or not finished ------------------------------------------------------------------------------------------


def test_a_folder_that_is_no_run_is_named(tmp_path):
    with pytest.raises(BadInput, match=r"no such folder.*results/<name>"):
        Catalogue(tmp_path / "nothing")
    with pytest.raises(BadInput, match=r"it has no study\.json"):
        Catalogue(tmp_path)
    (tmp_path / "study.json").write_text("{")
    with pytest.raises(BadInput, match="can't be read"):
        Catalogue(tmp_path)
    (tmp_path / "study.json").write_text("{}")
    with pytest.raises(BadInput, match="lacks name, cells"):
        Catalogue(tmp_path)


@pytest.mark.parametrize("lost", ["tables/flips.csv", "report.html", "mri/studies.parquet", "xray/images.parquet"])
def test_a_run_that_is_not_finished_says_what_it_lacks(copy, lost):
    (copy / lost).unlink()
    with pytest.raises(BadInput, match=f"not finished: it lacks {lost}; run snakemake"):
        Catalogue(copy)
