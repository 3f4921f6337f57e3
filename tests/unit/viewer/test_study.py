"""The page of a study: its report with the evidence, its questions, and the matrix of answers."""

from __future__ import annotations

import html
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from overread.core.records import (
    Picture,
    Question,
    read_questions,
    read_responses,
    read_studies,
    write_questions,
    write_studies,
)
from overread_viewer.catalogue import Catalogue
from overread_viewer.marking import mark
from overread_viewer.matrix import SIGNS, matrix
from overread_viewer.study import slices

REPORT = {
    "findings": "There is a mass in the left\n  temporal lobe. It measures 4.0 cm. No hydrocephalus.",
    "impression": "Mass in the left temporal lobe.",
}


def marked(evidence: str, report: dict[str, str] | None = None) -> list[str]:
    found = mark(report or REPORT, evidence)
    return [text for parts in found.sections.values() for text, is_evidence in parts if is_evidence]


# -- evidence --------------------------------------------------------------------------------------------------------


def test_evidence_is_marked_also_across_a_line_break() -> None:
    assert marked("There is a mass in the left temporal lobe.") == ["There is a mass in the left\n  temporal lobe."]


def test_a_marked_report_still_reads_word_for_word() -> None:
    found = mark(REPORT, "It measures 4.0 cm. Mass in the left temporal lobe.")
    assert {name: "".join(text for text, _ in parts) for name, parts in found.sections.items()} == REPORT


def test_sentences_from_several_places_are_marked_each_where_it_stands() -> None:
    assert marked("No hydrocephalus. Mass in the left temporal lobe.") == [
        "No hydrocephalus.",
        "Mass in the left temporal lobe.",
    ]


@pytest.mark.parametrize(
    "evidence",
    [
        "There is a mass in the right temporal lobe.",
        "hydrocephalus is present",
        "It measures 4.0",
        "it measures 40 cm",
        "",
    ],
)
def test_what_is_not_in_the_report_word_for_word_marks_nothing(evidence: str) -> None:
    report = {"findings": REPORT["findings"].replace("4.0 cm", "4.05 cm")}
    found = mark(report, evidence)
    assert not found.found
    assert found.missing == ((evidence,) if evidence else ())


def test_a_part_that_is_missing_is_told_beside_the_part_that_is_marked() -> None:
    found = mark(REPORT, "No hydrocephalus. The ventricles are wide.")
    assert found.found and found.missing == ("The ventricles are wide.",)


def test_signs_of_regular_expressions_in_evidence_are_only_text() -> None:
    report = {"findings": "Size (about 2.1 x 3 cm) [new]. Done."}
    assert marked("Size (about 2.1 x 3 cm) [new].", report) == ["Size (about 2.1 x 3 cm) [new]."]
    assert marked("Size .*", report) == []


# -- the matrix ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def catalogue(results: Path) -> Catalogue:
    return Catalogue(results)


def test_every_cell_says_what_the_files_say(catalogue: Catalogue, results: Path) -> None:
    study = "xray-01-1"
    questions = catalogue.questions_of("xray", study)
    table = matrix(catalogue, "xray", questions, opened=["all"])
    columns = [column for group in table.groups for column in group.columns]
    right = {question.question: question.answer_index for question in questions}
    seen = set()
    for row in table.rows:
        for column, cell in zip(columns, row.cells, strict=True):
            path = results / "xray" / "responses" / column.model / column.setting / "run-1.parquet"
            [response] = [one for one in read_responses(path) if one.question == row.question.question]
            expected = response.status
            if expected == "answered":
                expected = "right" if response.choice == right[row.question.question] else "wrong"  # type: ignore[assignment]
            assert (cell.state, cell.text) == (expected, SIGNS[expected])
            address = f"/trial/xray/{column.setting}/1/{row.question.question}?model={column.model}"
            assert cell.href == address
            seen.add(expected)
    assert {"right", "wrong"} <= seen
    assert len(columns) == len(table.rows[0].cells) == 30


def test_several_runs_are_counted_and_lead_to_one_that_was_not_right(catalogue: Catalogue, results: Path) -> None:
    counts = {"all": 0, "some": 0, "none": 0}
    for study in catalogue.studies("mri"):
        questions = catalogue.questions_of("mri", study)
        table = matrix(catalogue, "mri", questions, opened=["all"])
        columns = [column for group in table.groups for column in group.columns]
        for row in table.rows:
            for column, cell in zip(columns, row.cells, strict=True):
                folder = results / "mri" / "responses" / column.model / column.setting
                if column.setting == "marks":  # asks questions of its own
                    assert cell.href is None
                    continue
                gold = row.question.answer_index
                of_runs = [
                    next(one.choice == gold for one in read_once(folder / f"run-{run}.parquet", row.question.question))
                    for run in (1, 2)
                ]
                assert cell.text == f"{sum(of_runs)}/2"
                worst = 1 + next((place for place, one in enumerate(of_runs) if not one), 0)
                assert cell.href is not None and f"/{worst}/" in cell.href
                counts[{2: "all", 1: "some", 0: "none"}[sum(of_runs)]] += 1
                if sum(of_runs) == 1:
                    assert cell.state == "mixed"
    assert min(counts.values()) > 0


_READ: dict[Path, dict[str, Any]] = {}


def read_once(path: Path, question: str) -> list[Any]:
    if path not in _READ:
        _READ[path] = {one.question: one for one in read_responses(path)}
    return [_READ[path][question]]


def test_what_was_not_run_is_said_not_to_be_asked(catalogue: Catalogue) -> None:
    table = matrix(catalogue, "mri", catalogue.questions_of("mri", "mri-01-1"), by="setting", opened=["all"])
    [group] = [group for group in table.groups if group.name == "text-only"]
    assert [column.model for column in group.columns] == ["blind-reader", "reader"]


def test_closed_groups_take_one_column_and_count(catalogue: Catalogue) -> None:
    questions = catalogue.questions_of("xray", "xray-01-1")
    whole = matrix(catalogue, "xray", questions, opened=["all"])
    closed = matrix(catalogue, "xray", questions, opened=["none"])
    assert closed.width == 3 and [len(row.cells) for row in closed.rows] == [3] * len(questions)
    for row, summed in zip(whole.rows, closed.rows, strict=True):
        for place, cell in enumerate(summed.cells):
            of_group = row.cells[10 * place : 10 * place + 10]
            right = sum(one.state == "right" for one in of_group)
            assert cell.text == f"{right}/10"
            assert cell.state == ("right" if right == 10 else "mixed" if right else "wrong")
    one_open = matrix(catalogue, "xray", questions, opened=["reader"])
    assert [group.is_open for group in one_open.groups] == [False, False, True]


def test_a_small_matrix_is_open_and_a_large_one_opens_as_many_groups_as_fit(
    catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    questions = catalogue.questions_of("xray", "xray-01-1")
    assert all(group.is_open for group in matrix(catalogue, "xray", questions).groups)
    monkeypatch.setattr("overread_viewer.matrix.FEW", 20)
    assert [group.is_open for group in matrix(catalogue, "xray", questions).groups] == [True, True, False]


def test_a_highlighted_model_and_setting_mark_their_columns(catalogue: Catalogue) -> None:
    questions = catalogue.questions_of("xray", "xray-01-1")
    table = matrix(catalogue, "xray", questions, opened=["all"], model="reader", setting="xray")
    chosen = [(one.model, one.setting) for group in table.groups for one in group.columns if one.chosen]
    assert chosen == [("reader", "xray")]
    assert sum('chosen"' in cell for cell in str(table.rows[0].html).split("<td")) == 1
    table = matrix(catalogue, "xray", questions, opened=["all"], setting="xray")
    assert sum(one.chosen for group in table.groups for one in group.columns) == 3


# -- the page --------------------------------------------------------------------------------------------------------


def viewer_of(page: str, kind: str) -> dict[str, Any]:
    [found] = re.findall(rf'data-{kind}="([^"]*)"', page)
    return dict(json.loads(html.unescape(found)))


def test_the_page_shows_report_labels_questions_and_what_it_is(client: Any, results: Path) -> None:
    page = client.get("/study/mri/mri-01-1")
    assert page.status_code == 200
    study = next(one for one in read_studies(results / "mri" / "studies.parquet") if one.study == "mri-01-1")
    text = html.unescape(page.text)
    assert study.report["findings"] in text and "semi-synthetic" in text
    for question in [one for one in read_questions(results / "mri" / "questions.jsonl") if one.study == "mri-01-1"]:
        assert question.stem in text
        for option in question.options:
            assert option in text


def test_the_viewer_gets_every_series_of_a_study_and_the_slice_that_the_models_saw(client: Any) -> None:
    shown = viewer_of(client.get("/study/mri/mri-01-1").text, "viewer")
    assert [one["name"] for one in shown["series"]] == ["T1", "FLAIR"]
    assert shown["first"] == ["FLAIR", "T1"]
    assert [(one["plane"], one["mm"], one["series"]) for one in shown["slices"]] == [("axial", 6.0, "FLAIR")]
    for one in shown["series"]:
        assert client.get(one["url"]).status_code == 200
        assert client.get(one["facts"]).json()["shape"][:2] == [8, 8]


def test_a_slice_is_placed_in_the_viewers_axes() -> None:
    """Positions in records run to the left and to the back; the viewer's to the right and to the front."""
    shared: dict[str, Any] = {"study": "s", "path": "p.png", "pixels": "x", "width": 9, "height": 9, "series": "FLAIR"}
    planes = ("axial", "coronal", "sagittal")
    pictures = [
        Picture(view=plane, order=0, name=f"FLAIR, {plane}", plane=plane, position_mm=12.5,
                scaling="-3.5 to 1.2e+03: as configured", **shared)
        for plane in planes
    ]  # fmt: skip
    found = slices(pictures)
    assert [(one["plane"], one["mm"]) for one in found] == [("axial", 12.5), ("coronal", -12.5), ("sagittal", -12.5)]
    assert found[0]["window"] == [-3.5, 1200.0]


def test_evidence_is_marked_for_the_question_at_hand_and_its_absence_is_said(
    results: Path, tmp_path: Path, client_of: Callable[..., Any]
) -> None:
    run = Path(shutil.copytree(results, tmp_path / "results" / results.name))
    path = run / "mri" / "questions.jsonl"
    questions = read_questions(path)
    study = read_studies(run / "mri" / "studies.parquet")[0]
    one, two, three = [question for question in questions if question.study == study.study]
    told = {
        one.question: study.report["findings"].replace(" ", "  "),
        two.question: "The ventricles are <b>wide</b>.",
    }
    write_questions(
        [Question.model_validate({**q.model_dump(), "evidence": told.get(q.question, "")}) for q in questions], path
    )
    client = client_of(run)
    pages = {q: client.get(f"/study/mri/{study.study}?question={q}").text for q in (*told, three.question)}
    assert f"<mark>{html.escape(study.report['findings'])}</mark>" in pages[one.question]
    assert "<mark>" not in pages[two.question] and "nothing is marked" in pages[two.question]
    assert "<b>wide" not in pages[two.question]
    assert "<mark>" not in pages[three.question] and "names no sentence" in pages[three.question]


def test_script_in_a_report_or_a_name_stays_text(results: Path, tmp_path: Path, client_of: Callable[..., Any]) -> None:
    run = Path(shutil.copytree(results, tmp_path / "results" / results.name))
    path = run / "mri" / "studies.parquet"
    evil = "<script>alert(1)</script><img src=x onerror=alert(1)>"
    first, *others = read_studies(path, with_problems=True)
    update = {"report": {evil: evil}, "labels": {evil: evil}, "attributes": {evil: evil},
              "images": {**first.images, f'"\'{evil}': first.images["T1"]}}  # fmt: skip
    write_studies([first.model_copy(update=update), *others], path)
    page = client_of(run).get(f"/study/mri/{first.study}").text
    assert "<script>alert" not in page and "<img src=x" not in page
    assert html.escape(evil) in page
    names = [one["name"] for one in viewer_of(page, "viewer")["series"]]
    assert f"\"'{evil}" in names


@pytest.mark.parametrize(
    ("address", "status"),
    [
        ("/study/mri/none", 404),
        ("/study/none/mri-01-1", 404),
        ("/study/mri/..%2F..%2Fetc", 404),
        ("/study/mri/mri-01-1?question=none", 404),
        ("/study/mri/mri-01-1?by=patient", 400),
    ],
)
def test_what_is_not_there_is_said(client: Any, address: str, status: int) -> None:
    assert client.get(address).status_code == status


def test_a_question_of_another_study_is_refused(client: Any, results: Path) -> None:
    other = next(one for one in read_questions(results / "mri" / "questions.jsonl") if one.study != "mri-01-1")
    assert client.get(f"/study/mri/mri-01-1?question={other.question}").status_code == 400


def test_a_study_that_is_not_used_says_why(client: Any) -> None:
    page = client.get("/study/mri/mri-broken").text
    assert "the file is cut short" in page and "no images" in page


def test_a_restricted_study_is_not_kept_and_says_so(restricted_results: Path, client_of: Callable[..., Any]) -> None:
    answer = client_of(restricted_results).get("/study/xray/xray-01-1")
    assert answer.headers["cache-control"] == "no-store"
    assert ">restricted<" in answer.text
