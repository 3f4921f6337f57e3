"""Ask: a question of one's own becomes a trial of the run's kind, is answered in a process apart, leaves no trace."""

from __future__ import annotations

import html
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from data.asked_run import STUDY, ask, contents
from overread.core.records import read_responses, read_trials
from overread_viewer import ask as ask_page


@pytest.fixture
def here(client_of, asked_run: Path) -> Any:
    return client_of(asked_run)


def test_a_question_of_the_study_is_put_and_answered_as_in_the_run_and_nothing_is_written(here, asked_run: Path):
    """Every question of a study, under settings with own, substitute's and black picture: the run's own request ids,
    the run's own answers; and the results folder is byte for byte what it was.
    """
    before = contents(asked_run)
    for setting in ("xray", "xray-swapped", "xray-black", "xray-report"):
        trials = [one for one in read_trials(asked_run / f"xray/trials/{setting}/run-1.parquet") if one.study == STUDY]
        responses = {
            one.question: one for one in read_responses(asked_run / f"xray/responses/reader/{setting}/run-1.parquet")
        }
        questions = {one.question: one for one in here.app.state.catalogue.questions_of("xray", STUDY)}
        assert len(trials) == len(questions) > 2
        for trial in trials:
            one = questions[trial.question]
            name, page = ask(here, stem=one.stem, topic=one.topic, setting=setting)
            asked = here.app.state.desk.asking.get(name)
            given = responses[trial.question]
            assert asked.call.trial.trial == trial.trial
            assert (asked.response.text, asked.response.status, asked.response.answer, asked.response.logprobs) == (
                given.text, given.status, given.answer, given.logprobs,
            )  # fmt: skip
            assert "put as the run put it" in page
            if given.answer is not None:
                assert f'class="chip {"right" if given.answer == trial.answer else "wrong"}"' in page
    assert contents(asked_run) == before


def test_the_answer_stands_with_log_probabilities_raw_text_and_the_exact_prompt(here):
    _, page = ask(here, setting="xray-report")
    page = html.unescape(page)
    assert "not part of the study" in page
    assert re.search(r"<td class=\"number\">−\d\.\d{3}</td>", page)
    assert "Raw text" in page and re.search(r"<pre[^>]*>(yes|no)</pre>", page)
    for text in ("Question: Is there a fracture?", "Reply with one word, Yes or No.", "Report:", "Cardiomegaly:"):
        assert text in page
    assert f"/files/picture/xray/images/{STUDY}/pictures/frontal-0.png" in page


@pytest.mark.parametrize(("answer", "judged"), [("", False), ("1", True)])
def test_a_question_of_ones_own_is_judged_only_by_an_answer_that_was_given(here, answer: str, judged: bool):
    name, page = ask(here, answer=answer)
    given = here.app.state.desk.asking.get(name).response.answer
    chips = re.findall(r'class="chip (right|wrong)"', page)
    assert chips == ([["right", "wrong"][given]] if judged else [])
    assert ("you marked it as correct" in page) == judged


def test_an_edited_question_does_not_keep_the_study_s_answer(here):
    """Filled in from the study, then edited: nobody has said what is right now."""
    one = here.app.state.catalogue.questions_of("xray", STUDY)[0]
    filled = here.get(f"/ask/xray/{STUDY}?question={one.question}").text
    assert html.escape(one.stem) in filled
    assert re.search(r'id="right0" checked', filled)
    _, page = ask(here, stem=one.stem + " Really?", topic=one.topic, source=one.question)
    assert not re.findall(r'class="chip (right|wrong)"', page)


def test_shuffled_options_are_shown_as_the_trial_shows_them_and_read_by_their_text(here, asked_run: Path):
    study = "mri-01-1"
    one = here.app.state.catalogue.questions_of("mri", study)[0]
    options = {f"option{place}": text for place, text in enumerate(one.options, start=1)}
    name, page = ask(here, f"/ask/mri/{study}", stem=one.stem, topic=one.topic, setting="reshuffled", **options)
    trial = next(
        each for each in read_trials(asked_run / "mri/trials/reshuffled/run-1.parquet") if each.question == one.question
    )
    assert trial.options != one.options
    shown = [html.unescape(text).strip() for text in re.findall(r'<th scope="row">\d\. (.*?)\n', page)]
    assert tuple(shown) == trial.options
    asked = here.app.state.desk.asking.get(name)
    if asked.response.answer is not None:
        right = trial.options[asked.response.answer] == one.answer
        assert f'class="chip {"right" if right else "wrong"}"' in page


def test_options_in_rows_with_gaps_keep_their_right_one(here):
    """Rows 2 and 4 are filled in, and row 4 is marked."""
    name, _ = ask(here, option1="", option2="no", option3="", option4="yes", answer="4")
    built = here.app.state.desk.asking.get(name).about["built"]
    assert (built.trial.options, built.right) == (("no", "yes"), "yes")


def test_the_web_process_loads_no_model_library(asked_run: Path):
    """In a process of its own: the app, a question and its answer, and no torch."""
    script = """
import sys, time
from pathlib import Path
from starlette.testclient import TestClient
from overread_viewer.app import create_app
from overread_viewer.options import Options
with TestClient(create_app(Options(Path(sys.argv[1]))), base_url="http://127.0.0.1:8008",
                headers={"sec-fetch-site": "same-origin"}) as client:
    form = {"stem": "Is there a fracture?", "option1": "yes", "option2": "no", "model": "reader", "setting": "xray"}
    page = client.post(f"/ask/xray/{sys.argv[2]}", data=form)
    name = str(page.url).split("asked=")[1].split("#")[0]
    while 'data-over="no"' in client.get(f"/ask/xray/{sys.argv[2]}/asked/{name}").text:
        time.sleep(0.1)
    assert client.app.state.desk.asking.get(name).state == "answered"
heavy = {"torch", "transformers", "vllm", "openai"} & set(sys.modules)
assert not heavy, heavy
"""
    done = subprocess.run(
        [sys.executable, "-c", script, str(asked_run), STUDY], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr


def test_an_answer_that_comes_while_its_page_is_made_is_on_the_next_page(here, monkeypatch: pytest.MonkeyPatch):
    """The page is of one moment: never half before the answer and half after it."""
    name, _ = ask(here)
    asked = here.app.state.desk.asking.get(name)
    response, words = asked.response, ask_page._words

    def comes_now(*arguments: Any) -> str:
        asked.response, asked.state = response, "answered"
        return words(*arguments)

    asked.response, asked.state = None, "answering"
    monkeypatch.setattr(ask_page, "_words", comes_now)
    address = f"/ask/xray/{STUDY}/asked/{name}"
    assert 'data-state="answering"' in here.get(address).text
    assert 'data-state="answered"' in here.get(address).text
