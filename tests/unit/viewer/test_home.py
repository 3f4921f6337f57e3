"""The first page: the ranking is that of the tables, and the example shows what it says."""

from __future__ import annotations

import re
import shutil
from html import unescape

import pytest

from overread.core.records import read_questions, read_responses, read_trials
from overread.reporting.report import EVIDENCE
from overread.reporting.rows import read
from overread_viewer.catalogue import Catalogue
from overread_viewer.ignoring import ranking


@pytest.fixture(scope="module")
def catalogue(results) -> Catalogue:
    return Catalogue(results)


def test_models_are_ranked_by_the_flip_rates_of_the_tables(catalogue, results):
    """Where the right answer differs between the two images; the least first."""
    flips = read(results / "tables", "flips")
    for dataset, comparison in (("mri", "image-swap"), ("xray", "swap-without-report")):
        rows = [
            row for row in flips
            if (row["dataset"], row["comparison"], row["group"]) == (dataset, comparison, "label-changed")
        ]  # fmt: skip
        made = ranking(catalogue, dataset)
        assert made.comparison == comparison
        rates = {row["model"]: float(row["flip_rate"]) for row in rows}
        assert [rates[row.model] for row in made.rows] == sorted(rates.values())
        for row in made.rows:
            stands = next(one for one in rows if one["model"] == row.model)
            assert row.changed.evidence.estimate == float(stands["flip_rate"])
            assert row.changed.evidence.low == float(stands["low"])
            assert row.changed.pairs == int(stands["pairs"])
            assert row.changed.evidence.patients == int(stands["patients"])


def test_the_verdict_is_the_reports(catalogue, results):
    from overread.reporting.contrasts import Tables
    from overread.reporting.verdict import judge

    tables = Tables(*(read(results / "tables", name) for name in EVIDENCE))
    for dataset in catalogue.datasets:
        for row in ranking(catalogue, dataset).rows:
            assert row.judgement == judge(dataset, row.model, tables, catalogue.spec)


def test_an_example_is_an_answer_that_stayed_though_the_image_shows_something_else(catalogue, results):
    found = 0
    for dataset in catalogue.datasets:
        made = ranking(catalogue, dataset)
        own, swapped = made.pair
        questions = {one.question: one for one in read_questions(results / dataset / "questions.jsonl")}
        for row in made.rows:
            if row.example is None:
                continue
            found += 1
            said = []
            for setting in (own, swapped):
                trials = read_trials(results / dataset / "trials" / setting / "run-1.parquet")
                place = next(n for n, trial in enumerate(trials) if trial.question == row.example.question)
                response = read_responses(results / dataset / "responses" / row.model / setting / "run-1.parquet")[
                    place
                ]
                assert response.question == row.example.question
                said.append(trials[place].options[response.answer])
            assert said == [row.example.said] * 2
            trial = trials[place]
            assert (trial.label, trial.image_label) == (row.example.truth, row.example.image_truth)
            assert trial.label != trial.image_label
            assert trial.image_study == row.example.image_study != trial.study
            assert row.example.stem == questions[row.example.question].stem
    assert found >= 4


def test_the_lead_names_ties_and_those_that_can_not_be_told_apart(catalogue):
    from dataclasses import replace

    from overread.reporting.evidence import Evidence
    from overread_viewer.ignoring import Rate, _lead

    row = ranking(catalogue, "mri").rows[0]

    def with_rate(name: str, estimate: float, low: float, high: float, patients: int = 40):
        return replace(row, label=name, changed=Rate(Evidence(estimate, low, high, patients), 100))

    a, b, c = with_rate("A", 0.1, 0.0, 0.2), with_rate("B", 0.15, 0.1, 0.2), with_rate("C", 0.6, 0.5, 0.7)
    assert _lead([a, c], True) == "A ignores the image most."
    assert _lead([a, b, c], True) == "A ignores the image most; by the intervals, B may be no different."
    tied = with_rate("D", 0.1, 0.05, 0.15)
    assert _lead([a, tied, c], True) == "A and D ignore the image most."
    assert _lead([a, c], False) == "A gains least from the image."
    few = with_rate("A", 0.1, 0.0, 0.2, patients=9)
    assert "cannot be told" in _lead([few], True)
    assert _lead([], True) == ""


def test_without_a_swap_the_gain_ranks(results, tmp_path):
    """The comparisons that swap an image are taken out of the config; the gain of accuracy is left."""
    import json

    run = tmp_path / "small"
    shutil.copytree(results, run)
    spec = json.loads((run / "study.json").read_text())
    spec["comparisons"] = {"image-gain": spec["comparisons"]["image-gain"]}
    (run / "study.json").write_text(json.dumps(spec))
    catalogue = Catalogue(run)
    made = ranking(catalogue, "mri")
    effects = {
        row["model"]: float(row["estimate"]) for row in read(run / "tables", "effects") if row["effect"] == "image-gain"
    }
    assert made.comparison is None and made.pair is None
    assert [row.model for row in made.rows] == sorted(
        effects, key=lambda model: (effects[model], catalogue.label(model))
    )
    assert "gain" in made.lead or "cannot be told" in made.lead
    assert ranking(catalogue, "xray").gain is None and ranking(catalogue, "xray").lead == ""


def test_the_page_shows_every_model_with_its_number_and_leads_to_the_example(client, catalogue):
    page = client.get("/").text
    text = unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", page))).replace("\N{NO-BREAK SPACE}", " ")
    for dataset in catalogue.datasets:
        for row in ranking(catalogue, dataset).rows:
            assert row.label in text and row.judgement.headline in text
            assert row.changed.text.replace("\N{NO-BREAK SPACE}", " ") in text
            if row.example:
                assert (
                    f'href="/trial/{dataset}/{row.example.setting}/1/{row.example.question}?model={row.model}"' in page
                )
    assert "A small made study" in text


def test_what_the_first_page_links_to_is_there(client):
    page = client.get("/").text
    links = sorted({unescape(link) for link in re.findall(r'href="(/[^"]*)"', page)})
    assert len(links) > 10
    for link in links:
        assert client.get(link).status_code == 200, link


def test_tables_and_the_report_are_the_files(client, results):
    assert client.get("/tables/flips.csv").content == (results / "tables" / "flips.csv").read_bytes()
    assert client.get("/report").content == (results / "report.html").read_bytes()
    assert client.get("/tables/nope.csv").status_code == 404
