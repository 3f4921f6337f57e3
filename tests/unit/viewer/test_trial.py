"""The page of a trial: the exact input, the answer, and the twin beside it."""

from __future__ import annotations

import gzip
import html
import io
import json
import math
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image as Pixels

from overread.config import Setting
from overread.core.records import read_responses, read_trials, write_responses, write_trials
from overread.settings.image import Image
from overread_viewer.catalogue import Catalogue
from overread_viewer.trial import _options
from overread_viewer.twins import differing, twins


@pytest.fixture(scope="module")
def catalogue(results: Path) -> Catalogue:
    return Catalogue(results)


def trials_of(results: Path, dataset: str, setting: str, run: int = 1) -> list[Any]:
    return read_trials(results / dataset / "trials" / setting / f"run-{run}.parquet")


def answer_of(results: Path, trial: Any, model: str) -> Any:
    path = results / trial.dataset / "responses" / model / trial.setting / f"run-{trial.run}.parquet"
    return next(one for one in read_responses(path) if one.question == trial.question)


def page_of(client: Any, trial: Any, **query: str) -> str:
    return str(client.get(f"/trial/{trial.dataset}/{trial.setting}/{trial.run}/{trial.question}", params=query).text)


def columns(page: str) -> list[str]:
    """The two halves of the page, as HTML."""
    return page.split('<section class="trial"')[1:]


# -- twins -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("xray-report", "xray-report-swapped"),
        ("xray-report-swapped", "xray-report"),
        ("xray", "xray-swapped"),
        ("xray-swapped", "xray"),
        ("xray-black", "xray"),
        ("report-only", "xray-report"),
        ("hidden-from-8", "hidden-from-8-swapped"),
    ],
)
def test_the_first_twin_differs_in_the_image_alone(
    catalogue: Catalogue, results: Path, setting: str, expected: str
) -> None:
    trial = trials_of(results, "xray", setting)[0]
    found = twins(catalogue, "xray", setting, 1, trial.question)
    assert (found[0].setting, found[0].aspects) == (expected, ("image",))
    assert {one.setting for one in found} == set(catalogue.settings("xray")) - {setting}


def test_a_twin_without_the_report_differs_in_the_report_alone(catalogue: Catalogue, results: Path) -> None:
    trial = trials_of(results, "xray", "xray-report")[0]
    by_name = {one.setting: one for one in twins(catalogue, "xray", "xray-report", 1, trial.question)}
    assert by_name["xray"].aspects == ("report",)
    assert by_name["xray"].changes == "no report"
    assert by_name["xray-swapped"].aspects == ("image", "report")
    assert by_name["hidden-from-0"].aspects == ("attention",)
    assert "layer 0 on" in by_name["hidden-from-0"].changes


def test_whose_substitute_is_no_difference_where_none_is_shown() -> None:
    own = Setting(images="frontal", readout="yes-no")
    assert differing(own, own.model_copy(update={"substitute": 2})) == ()
    one, two = (own.model_copy(update={"source": "substitute", "substitute": number}) for number in (1, 2))
    assert differing(one, two) == (Image,)


# -- the input -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dataset", "setting"), [("xray", "xray-report-swapped"), ("mri", "reshuffled"), ("mri", "black")]
)
def test_the_input_is_shown_in_full_and_in_order(client: Any, results: Path, dataset: str, setting: str) -> None:
    trial = trials_of(results, dataset, setting)[3]
    first = html.unescape(columns(page_of(client, trial, beside="none"))[0])
    first = first[first.index("The input, in order") :]
    places = []
    for block in trial.blocks:
        wanted = f"/files/picture/{dataset}/{block.image}" if block.image else block.text
        places.append(first.index(wanted))
    assert places == sorted(places) and len(set(places)) == len(places)
    for url in re.findall(r'src="(/files/[^"]+)"', first):
        assert client.get(url).headers["content-type"] == "image/png"


def test_a_volume_that_a_model_saw_is_shown_by_the_viewer(
    results: Path, tmp_path: Path, client_of: Callable[..., Any]
) -> None:
    import nibabel
    import numpy as np

    run = Path(shutil.copytree(results, tmp_path / "results" / results.name))
    first, *others = trials_of(run, "mri", "single-slice")
    picture = f"images/{first.study}/pictures/volume-0.nii.gz"
    values = np.arange(60, dtype=np.int16).reshape(3, 4, 5)
    nibabel.save(nibabel.Nifti1Image(values, np.diag([1.0, 2.0, 3.0, 1.0])), run / "mri" / picture)
    blocks = [{**one.model_dump(), **({"image": picture} if one.image else {})} for one in first.blocks]
    changed = type(first).model_validate({**first.model_dump(), "blocks": blocks})
    write_trials([changed, *others], run / "mri" / "trials" / "single-slice" / "run-1.parquet")
    client = client_of(run)
    column = columns(page_of(client, changed))[0]
    [shown] = re.findall(r'data-viewer="([^"]*)"', column)
    [series] = json.loads(html.unescape(shown))["series"]
    assert client.get(series["facts"]).json()["shape"] == [3, 4, 5]
    answer = client.get(series["url"])
    sent = nibabel.Nifti1Image.from_bytes(gzip.decompress(answer.content))
    assert np.array_equal(np.asarray(sent.dataobj), values)
    assert "/static/viewer.js" in page_of(client, changed)


def test_options_stand_as_shown_with_their_places_as_written(client: Any, results: Path) -> None:
    for trial in trials_of(results, "mri", "reshuffled")[:6]:
        response = answer_of(results, trial, "reader")
        options = _options(trial, response)
        assert [one.text for one in options] == list(trial.options)
        written = Catalogue(results).question("mri", trial.question)
        assert [written.options[one.written - 1] for one in options] == list(trial.options)
        assert [one.text for one in options if one.right] == [written.answer]
        if response.choice is not None:
            assert [one.text for one in options if one.chosen] == [written.options[response.choice]]


def test_log_probabilities_are_those_of_the_places_shown_and_shares_are_among_the_options(results: Path) -> None:
    trial = trials_of(results, "mri", "reshuffled")[0]
    response = answer_of(results, trial, "reader")
    options = _options(trial, response)
    assert [one.logprob for one in options] == list(response.logprobs)
    total = sum(math.exp(one) for one in response.logprobs)
    for option, logprob in zip(options, response.logprobs, strict=True):
        assert option.share == pytest.approx(math.exp(logprob) / total)
    assert [one.logprob for one in _options(trial, answer_of(results, trial, "first-option"))] == [None] * 4


def test_impossible_options_have_a_share_of_0_and_no_share_is_made_of_nothing(results: Path) -> None:
    trial = trials_of(results, "xray", "xray")[0]
    response = answer_of(results, trial, "reader").model_copy(update={"logprobs": (0.0, -math.inf)})
    assert [one.share for one in _options(trial, response)] == [1.0, 0.0]
    response = response.model_copy(update={"logprobs": (-math.inf, -math.inf)})
    assert [one.share for one in _options(trial, response)] == [0.5, 0.5]


# -- side by side ----------------------------------------------------------------------------------------------------


def test_beside_a_trial_stands_its_swapped_twin_and_whether_the_answer_changed(client: Any, results: Path) -> None:
    seen = set()
    swapped = {one.question: one for one in trials_of(results, "xray", "xray-swapped")}
    for trial in trials_of(results, "xray", "xray"):
        other = swapped[trial.question]
        choices = [answer_of(results, one, "reader").choice for one in (trial, other)]
        page = page_of(client, trial, model="reader")
        text = " ".join(html.unescape(re.sub("<[^>]+>", "", page)).split())
        expected = "can't be told" if None in choices else "stays the same" if choices[0] == choices[1] else "changes"
        assert {"can't be told": "can't be told", "stays the same": "The answer stays the same.",
                "changes": "The answer changes."}[expected] in text  # fmt: skip
        assert f"the image of {other.image_study}" in text
        if trial.image_label != other.image_label:
            assert f"A is “{trial.image_label}” and B is “{other.image_label}”" in text
        else:
            assert "Both images show the same" in text
        assert len(columns(page)) == 2
        seen.add(expected)
    assert {"stays the same", "changes"} <= seen


def test_only_what_differs_is_marked_as_different(client: Any, results: Path) -> None:
    trial = trials_of(results, "xray", "xray-report")[0]
    for column in columns(page_of(client, trial, beside="xray-report-swapped")):
        parts = re.findall(r'<li class="part ([a-z ]+)">', column)
        assert [part for part in parts if "differs" in part] == ["image differs"]
        assert {"report", "question"} <= set(parts)
    one, two = columns(page_of(client, trial, beside="xray"))
    assert "report differs" in one and "report" not in re.findall(r'<li class="part ([a-z ]+)">', two)


def test_every_models_answer_to_both_trials_is_listed(client: Any, results: Path) -> None:
    trial = trials_of(results, "xray", "xray")[0]
    [other] = [one for one in trials_of(results, "xray", "xray-swapped") if one.question == trial.question]
    page = page_of(client, trial, beside="xray-swapped")
    table = page[page.index('id="all-models"') :]
    rows = re.findall(r"<tr.*?</tr>", table, re.S)[1:]
    for row, model in zip(rows, ("blind-reader", "first-option", "reader"), strict=True):
        text = " ".join(html.unescape(re.sub("<[^>]+>", " ", row)).split())
        for one in (trial, other):
            response = answer_of(results, one, model)
            state = response.status
            if response.choice is not None:
                state = f"{'correct' if response.answer == one.answer else 'wrong'} {one.options[response.answer]}"
            assert state in text
        assert f"model={model}" in row


def test_a_status_other_than_answered_is_shown_with_its_reason_and_raw_text(
    results: Path, tmp_path: Path, client_of: Callable[..., Any]
) -> None:
    run = Path(shutil.copytree(results, tmp_path / "results" / results.name))
    path = run / "xray" / "responses" / "reader" / "xray" / "run-1.parquet"
    first, *others = read_responses(path)
    update = {"status": "failed", "answer": None, "choice": None, "text": "<i>half an ans", "error": "too <b>long</b>"}
    write_responses([first.model_copy(update=update), *others], path)
    [trial] = [one for one in trials_of(run, "xray", "xray") if one.question == first.question]
    page = columns(page_of(client_of(run), trial, model="reader"))[0]
    assert "&lt;i&gt;half an ans" in page and "too &lt;b&gt;long&lt;/b&gt;" in page
    assert '<span class="chip failed">failed</span>' in page


def test_script_in_a_prompt_stays_text(results: Path, tmp_path: Path, client_of: Callable[..., Any]) -> None:
    run = Path(shutil.copytree(results, tmp_path / "results" / results.name))
    path = run / "xray" / "trials" / "xray-report" / "run-1.parquet"
    first, *others = read_trials(path)
    evil = "</pre><script>alert(1)</script>"
    blocks = tuple(one.model_copy(update={"text": evil}) if one.text else one for one in first.blocks)
    trial = {**first.model_dump(), "blocks": [b.model_dump() for b in blocks], "trial": ""}
    write_trials([type(first).model_validate(trial), *others], path)
    page = page_of(client_of(run), first)
    assert "<script>alert" not in page and html.escape(evil) in page


@pytest.mark.parametrize(
    "address",
    [
        "/trial/xray/none/1/{question}",
        "/trial/xray/xray/2/{question}",
        "/trial/xray/xray/0/{question}",
        "/trial/xray/xray/1/none",
        "/trial/none/xray/1/{question}",
        "/trial/xray/xray/1/{question}?model=none",
        "/trial/xray/xray/1/{question}?beside=single-slice",
        "/trial/xray/..%2F..%2Fx/1/{question}",
    ],
)
def test_what_is_not_there_is_said(client: Any, results: Path, address: str) -> None:
    question = trials_of(results, "xray", "xray")[0].question
    assert client.get(address.format(question=question)).status_code == 404


def test_a_run_that_is_no_number_is_a_bad_request(client: Any) -> None:
    assert client.get("/trial/xray/xray/one/q").status_code == 400


def test_the_page_of_a_model_that_was_not_asked_says_so(client: Any, results: Path) -> None:
    trial = trials_of(results, "mri", "text-only")[0]
    page = page_of(client, trial, model="first-option")
    assert "First option was not asked this." in page


def test_a_trial_leads_to_the_form_that_asks_its_question_in_other_words(client: Any, results: Path) -> None:
    trial = trials_of(results, "xray", "xray")[0]
    page = page_of(client, trial, model="reader")
    (link,) = re.findall(r'href="(/ask/[^"]+)"', page)
    form = client.get(html.unescape(link))
    assert form.status_code == 200
    stem = re.search(r"<textarea[^>]*>\s*([^<]+)</textarea>", form.text)
    asked = next(one for one in Catalogue(results).questions("xray").values() if one.question == trial.question)
    assert stem and html.unescape(stem[1]).strip() == asked.stem
    for name, value in (("model", "reader"), ("setting", "xray")):
        assert re.search(rf'<option value="{value}"[^>]* selected', form.text), name


def test_a_question_about_marks_has_its_page_and_its_row_in_the_matrix(client: Any, catalogue: Any) -> None:
    question = next(iter(catalogue.controls("mri").values()))
    page = client.get(f"/trial/mri/marks/1/{question.question}")
    assert page.status_code == 200 and question.stem in html.unescape(page.text)
    study = client.get(f"/study/mri/{question.study}?open=all")
    assert study.status_code == 200 and question.stem in html.unescape(study.text)
    assert f"/trial/mri/marks/1/{question.question}" in study.text


def test_an_edited_picture_stands_beside_the_one_before(client: Any, catalogue: Any) -> None:
    """And what differs is a picture of its own; one that is not edited has none."""
    study = next(iter(catalogue.studies("mri")))
    edited = [one for one in catalogue.pictures("mri", study) if one.edit is not None]
    plain = {one.path for one in catalogue.pictures("mri", study) if one.edit is None}
    assert len(edited) == 4 and {catalogue.unedited("mri", one).path for one in edited} == plain
    reply = client.get(f"/files/difference/mri/{study}/{edited[0].path}")
    assert reply.status_code == 200 and reply.headers["content-type"] == "image/png"
    assert Pixels.open(io.BytesIO(reply.content)).convert("L").getextrema() == (128, 128)  # the made ones are alike
    (path,) = plain
    assert client.get(f"/files/difference/mri/{study}/{path}").status_code == 404
    assert client.get(f"/files/difference/mri/{study}/../../x.png").status_code == 404
