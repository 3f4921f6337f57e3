"""The list of studies: each filter keeps what the records say it should, and the counts are those of the responses."""

from __future__ import annotations

import re
from html import unescape

import pytest

from overread.core.records import read_questions, read_responses, read_studies, read_trials
from overread_viewer.catalogue import Catalogue
from overread_viewer.errors import BadRequest
from overread_viewer.listing import Filters, found


@pytest.fixture(scope="module")
def catalogue(results) -> Catalogue:
    return Catalogue(results)


@pytest.fixture(scope="module")
def studies(results):
    return [
        study
        for name in ("mri", "xray")
        for study in read_studies(results / name / "studies.parquet", with_problems=True)
    ]


def names(catalogue: Catalogue, **filters: str) -> list[str]:
    return [line.study.study for line in found(catalogue, Filters(**filters))]


def test_without_filters_every_study_is_there_once_in_order(catalogue, studies):
    assert names(catalogue) == [one.study for one in sorted(studies, key=lambda one: (one.dataset, one.study))]


@pytest.mark.parametrize(
    ("filters", "keeps"),
    [
        ({"dataset": "xray"}, lambda one: one.dataset == "xray"),
        ({"modality": "mri"}, lambda one: one.modality == "mri"),
        ({"patient": "p02"}, lambda one: one.patient == "p02"),
        ({"patient": "p0"}, lambda one: False),  # a value, not a part of one
        ({"label": "Cardiomegaly: positive"}, lambda one: one.labels.get("Cardiomegaly") == "positive"),
        ({"label": "Cardiomegaly"}, lambda one: False),
        ({"state": "rejected"}, lambda one: one.problem is not None),
        ({"state": "usable"}, lambda one: one.problem is None),
        ({"text": "PLEURAL effusion: POSITIVE"}, lambda one: "Pleural Effusion: positive" in str(one.report)),
        ({"text": "xray-03"}, lambda one: "xray-03" in one.study),
        ({"text": "how large is the mass"}, lambda one: one.dataset == "mri" and one.problem is None),  # in a question
        ({"text": "no such words"}, lambda one: False),
        ({"dataset": "xray", "label": "Pneumonia: negative", "state": "usable"},
         lambda one: one.dataset == "xray" and one.labels.get("Pneumonia") == "negative"),
    ],
)  # fmt: skip
def test_a_filter_keeps_what_it_says(catalogue, studies, filters, keeps):
    assert sorted(names(catalogue, **filters)) == sorted(one.study for one in studies if keeps(one))


def by_study(results, dataset, model, own, swapped):
    """(asked, wrong, unreadable, pairs, flips) by study, from the records alone."""
    right = {one.question: one.answer for one in read_questions(results / dataset / "questions.jsonl")}
    said = {}
    for setting in (own, swapped):
        trials = read_trials(results / dataset / "trials" / setting / "run-1.parquet")
        responses = read_responses(results / dataset / "responses" / model / setting / "run-1.parquet")
        said[setting] = {
            trial.question: (trial.study, None if one.answer is None else trial.options[one.answer])
            for trial, one in zip(trials, responses, strict=True)
        }
    counted: dict[str, list[int]] = {}
    for question, (study, text) in said[own].items():
        row = counted.setdefault(study, [0] * 5)
        other = said[swapped][question][1]
        both = text is not None and other is not None
        for place, yes in enumerate(
            [True, text is not None and text != right[question], text is None, both, both and text != other]
        ):
            row[place] += yes
    return {study: tuple(row) for study, row in counted.items()}


@pytest.mark.parametrize(
    ("dataset", "model", "own", "swapped"),
    [("mri", "reader", "single-slice", "swapped"), ("xray", "blind-reader", "xray", "xray-swapped")],
)
def test_counts_are_those_of_the_responses(catalogue, results, dataset, model, own, swapped):
    truth = by_study(results, dataset, model, own, swapped)
    lines = {line.study.study: line for line in found(catalogue, Filters(dataset=dataset, model=model))}
    assert sum(sum(one) for one in truth.values()) > 0
    for study, expected in truth.items():
        assert tuple(vars(lines[study].counts).values()) == expected
    for outcome, passes in {
        "wrong": lambda one: one[1] > 0,
        "right": lambda one: one[1] == 0 and one[2] == 0,
        "unreadable": lambda one: one[2] > 0,
        "flips": lambda one: one[4] > 0,
        "stays": lambda one: one[3] > 0 and one[4] == 0,
    }.items():
        kept = names(catalogue, dataset=dataset, model=model, outcome=outcome)
        assert sorted(kept) == sorted(study for study, one in truth.items() if passes(one)), outcome


def test_without_a_model_the_answers_of_all_are_counted(catalogue, results):
    truths = [by_study(results, "mri", one, "single-slice", "swapped") for one in catalogue.models("mri")]
    for line in found(catalogue, Filters(dataset="mri", state="usable")):
        expected = tuple(sum(one[line.study.study][place] for one in truths) for place in range(5))
        assert tuple(vars(line.counts).values()) == expected


@pytest.mark.parametrize(
    ("order", "key"),
    [
        ("patient", lambda line: line.study.patient),
        ("questions", lambda line: -line.questions),
        ("wrong", lambda line: -line.counts.wrong),
        ("flips", lambda line: -line.counts.flips),
    ],
)
def test_orders(catalogue, order, key):
    keys = [key(line) for line in found(catalogue, Filters(order=order))]
    assert keys == sorted(keys) and len(set(keys)) > 1


def test_a_word_that_is_no_choice_is_refused():
    for wrong in ({"state": "x"}, {"outcome": "' OR 1=1"}, {"order": ""}, {"text": "x" * 201}):
        with pytest.raises(BadRequest):
            Filters(**wrong)


# -- the page ---------------------------------------------------------------------------------------------------------


def rows(page: str) -> list[str]:
    return [unescape(one) for one in re.findall(r'<th scope="row"><a href="/study/[^"]*">([^<]*)</a>', page)]


def test_pages_hold_every_study_once(client, catalogue, monkeypatch):
    monkeypatch.setattr("overread_viewer.studies.PER_PAGE", 5)
    whole, address = [], "/studies?state=usable"
    while True:
        page = client.get(address).text
        whole += rows(page)
        following = re.search(r'<a href="([^"]*)" rel="next">', page)
        if following is None:
            break
        address = unescape(following[1])
        assert "state=usable" in address
    assert whole == names(catalogue, state="usable")
    assert rows(client.get("/studies?state=usable&page=999").text) == rows(page)  # past the last is the last


def test_the_page_keeps_what_was_chosen_and_says_how_many(client, catalogue):
    page = client.get(
        "/studies", params={"dataset": "xray", "model": "reader", "outcome": "flips", "text": "eff&<"}
    ).text
    assert '<option value="xray" selected>' in page
    assert '<option value="reader" selected>' in page
    assert '<option value="flips" selected>' in page
    assert 'value="eff&amp;&lt;"' in page
    page = client.get("/studies", params={"dataset": "xray"}).text
    assert f"<strong>{len(names(catalogue, dataset='xray'))}</strong> of {len(names(catalogue))} studies" in page


def test_a_rejected_study_has_its_reason(client):
    page = client.get("/studies?state=rejected").text
    assert rows(page) == ["mri-broken", "xray-broken"]
    assert page.count("the file is cut short") == 2


def test_a_study_whose_name_needs_quoting_can_be_reached(client_of, results, tmp_path):
    import shutil

    from overread.core.records import write_studies

    shutil.copytree(results, tmp_path / "small")
    path = tmp_path / "small" / "mri" / "studies.parquet"
    studies = read_studies(path, with_problems=True)
    odd = "a b?c#d%e&ü'\"<"
    write_studies([*studies, studies[0].model_copy(update={"study": odd})], path)
    client = client_of(tmp_path / "small")
    page = client.get("/studies", params={"text": odd}).text
    assert rows(page) == [odd]
    link = unescape(re.search(r'href="(/study/[^"]*)"', page)[1])
    answer = client.get(link)
    assert answer.status_code == 200
    assert "a b?c#d%e&amp;ü" in answer.text
