"""The review of generated questions over HTTP, and what the workflow makes of it."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from data.generated_run import make_generated
from overread.core.errors import BadInput
from overread.core.records import Question, read_questions
from overread.curation.review import Decision, read_decisions
from overread_viewer.decided import Decided, disagreements
from overread_viewer.review_form import LONGEST
from overread_viewer.reviewing import Filters, Standing, neighbours

SAMPLE = 12


@pytest.fixture(scope="module")
def generated(results: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small run, whose MRI questions a model wrote. Read only: copy it to change it."""
    folder = tmp_path_factory.mktemp("generated") / "small"
    shutil.copytree(results, folder)
    make_generated(folder, look_through=SAMPLE)
    return folder


@pytest.fixture
def run(generated: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(generated, tmp_path / "small"))


@pytest.fixture
def asked(run: Path) -> list[Question]:
    return read_questions(run / "mri/questions/kept.jsonl")


@pytest.fixture
def opened(client_of: Callable[..., Any], run: Path) -> Callable[..., Any]:
    """A browser of a reviewer who has said their name."""

    def of(name: str = "Ada", **options: Any) -> Any:
        client = client_of(run, **options)
        assert client.post("/review/mri/name", data={"name": name}, follow_redirects=False).status_code == 303
        return client

    return of


def decide(client: Any, question: Question | str, decision: str, **fields: str) -> Any:
    key = question if isinstance(question, str) else question.question
    return client.post(f"/review/mri/question/{key}", data={"decision": decision, **fields}, follow_redirects=False)


def edited(question: Question, **changes: str) -> dict[str, str]:
    """The fields of the form as they are, but for what is changed."""
    options = {f"option_{place}": text for place, text in enumerate(question.options, start=1)}
    return {"stem": question.stem, **options, "answer": str(question.answer_index + 1), **changes}


def decided(run: Path) -> dict[str, dict[str, Decision]]:
    return Decided(run / "review/mri.jsonl").by_reviewer()


# -- what there is to review ------------------------------------------------------------------------------------------


def test_the_data_have_questions_that_passed_and_some_that_did_not(asked, run):
    studies = {one.study for one in asked}
    assert len(asked) == 3 * len(studies) >= SAMPLE
    rejected = (run / "mri/questions/rejected.jsonl").read_text().splitlines()
    assert len(rejected) == len(studies)


def test_a_dataset_that_no_model_wrote_says_that_there_is_nothing_to_review_and_why(opened):
    client = opened()
    page = client.get("/review/xray")
    assert page.status_code == 200
    assert "Nothing to review in xray" in page.text
    assert "one fixed wording for each finding" in page.text
    overview = client.get("/review").text
    assert "Nothing to review: its questions are one fixed wording" in overview
    assert 'href="/review/mri"' in overview
    assert client.get("/review/nowhere").status_code == 404
    assert client.post("/review/xray/sheet").status_code == 404


def test_questions_of_the_grammar_are_none_to_review(client):
    assert "Its questions were written by the grammar that wrote its reports" in client.get("/review/mri").text


def test_a_page_shows_stem_options_answer_evidence_history_and_pictures(opened, asked):
    one = next(each for each in asked if each.topic == "size")
    page = opened().get(f"/review/mri/question/{one.question}").text
    for text in (one.stem, *one.options, "answer</span>", "tagged it YES: Answerable from the images"):
        assert text in page
    assert f"<mark>{one.evidence}</mark>" in page
    assert "The author wrote: “To the nearest centimetre" in page
    assert "with a score of 100.0 of 100" in page
    assert re.search(rf'<img class="picture" src="/files/picture/mri/images/{one.study}/', page)


def test_the_sample_is_the_one_of_the_sheet_and_all_can_be_seen_too(opened, asked):
    client = opened()
    assert f"{SAMPLE} questions." in client.get("/review/mri").text
    assert f"{len(asked)} questions." in client.get("/review/mri?show=all").text
    sizes = sum(one.topic == "size" for one in asked)
    assert f"{sizes} questions." in client.get("/review/mri?show=all&topic=size").text
    found = sum("enhance" in one.stem for one in asked)
    assert 0 < found < len(asked)
    assert f"{found} questions." in client.get("/review/mri?show=all&text=ENHANCE&topic=enhancement").text
    reworded = sum(one.topic != "location" for one in asked)
    assert f"{reworded} questions." in client.get("/review/mri?show=all&state=reworded").text
    for query in ("show=some", "state=else", f"text={'x' * 300}"):
        assert client.get(f"/review/mri?{query}").status_code == 400


# -- deciding ---------------------------------------------------------------------------------------------------------


def test_who_has_said_no_name_is_asked_for_it_before_any_question(client_of, run, asked):
    client = client_of(run)
    answer = client.get(f"/review/mri/question/{asked[0].question}", follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/review/mri")
    assert "Your name" in client.get("/review/mri").text
    refused = decide(client, asked[0], "reject", reason="I had typed this")
    assert refused.status_code == 401
    assert 'value="I had typed this"' in refused.text
    assert decided(run) == {}


def test_a_name_is_kept_in_a_signed_cookie_also_over_a_restart(client_of, opened, run):
    client = opened("  Ada   Müller ")
    assert "You review as <strong>Ada Müller</strong>" in client.get("/review/mri").text
    (cookie,) = client.cookies.jar
    other = client_of(run)
    other.cookies.set(cookie.name, cookie.value)
    assert "Ada Müller" in other.get("/review/mri").text
    other.cookies.clear()
    other.cookies.set(cookie.name, "x" + cookie.value)
    assert "Ada Müller" not in other.get("/review/mri").text
    assert (run / "review/.key").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("name", ["", "   ", "x" * (LONGEST["name"] + 1), "a\x00b", "a\u202eb\x07"])
def test_a_name_that_can_not_be_used_is_told_beside_its_field_with_the_text_kept(client_of, run, name):
    answer = client_of(run).post("/review/mri/name", data={"name": name}, follow_redirects=False)
    assert answer.status_code == 422
    assert 'id="name-wrong"' in answer.text
    assert "set-cookie" not in answer.headers


def test_the_same_name_in_another_case_is_the_same_person(opened, run, asked):
    decide(opened("Ada"), asked[0], "accept")
    decide(opened("ADA"), asked[1], "accept")
    assert list(decided(run)) == ["Ada"]


def test_a_decision_leads_to_the_next_open_question_until_all_are_decided(opened, run):
    client = opened()
    met = []
    answer = client.post("/review/mri/name", data={"name": "Ada"}, follow_redirects=False)
    while "/question/" in (place := answer.headers["location"]):
        met.append(place.rsplit("/", 1)[1])
        answer = decide(client, met[-1], "accept")
    assert len(met) == len(set(met)) == SAMPLE
    assert place == "/review/mri"
    assert "All decided" in client.get("/review/mri").text
    assert set(decided(run)["Ada"]) == set(met)


def test_after_the_last_question_comes_an_open_one_before_it(run, asked):
    from overread_viewer.catalogue import Catalogue
    from overread_viewer.reviewing import Reviewing

    material = Reviewing(Catalogue(run)).material("mri")
    everything = Filters(show="all")
    nobody = Standing("Ada", {}, {})
    before, after = neighbours(material, nobody, everything, asked[-1].question)
    assert (before.question, after.question) == (asked[-2].question, asked[0].question)
    mine = {one.question: Decision(question=one.question, reviewer="Ada", decision="accept") for one in asked[1:]}
    almost = Standing("Ada", {"Ada": mine}, {})
    assert neighbours(material, almost, everything, asked[4].question)[1] == asked[0]
    assert neighbours(material, almost, everything, asked[0].question) == (None, None)


def test_a_rejection_without_a_reason_is_refused_beside_its_field(opened, run, asked):
    answer = decide(opened(), asked[0], "reject", reason="   ")
    assert answer.status_code == 422
    assert "A rejection needs a reason." in answer.text
    assert '<details id="reject" open>' in answer.text
    assert decided(run) == {}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"stem": " "}, "Is empty."),
        ({"option_2": ""}, "An option is empty."),
        ({"stem": "x" * (LONGEST["stem"] + 1)}, "characters long"),
        ({"option_1": "left\x00"}, "character that can&#39;t be shown"),
        ({"answer": "9"}, "Say which option is correct."),
        ({"answer": "yes"}, "Say which option is correct."),
        ({}, "Nothing is changed."),
    ],
)
def test_an_edit_that_can_not_be_is_told_beside_its_field_with_the_text_kept(opened, run, asked, changes, said):
    answer = decide(
        opened(),
        asked[0],
        "edit",
        **edited(asked[0], option_4="My other option" if changes else asked[0].options[3], **changes),
    )
    assert answer.status_code == 422
    assert said in answer.text
    if changes:
        assert "My other option" in answer.text
    assert decided(run) == {}


def test_two_equal_options_are_refused(opened, asked):
    answer = decide(opened(), asked[0], "edit", **edited(asked[0], option_2=asked[0].options[0]))
    assert answer.status_code == 422
    assert "Is the same as option 1." in answer.text


def test_an_edit_that_the_rules_would_drop_is_kept_only_if_it_is_meant(opened, run, asked):
    client, one = opened(), asked[0]
    fields = edited(one, option_4="None of the above")
    refused = decide(client, one, "edit", **fields)
    assert refused.status_code == 422
    assert "forbidden: &#39;none of the above&#39;" in refused.text
    assert decided(run) == {}
    assert decide(client, one, "edit", **fields, despite="yes").status_code == 303
    assert decided(run)["Ada"][one.question].options == (None, None, None, "None of the above")


def test_the_check_while_typing_says_what_sending_would_say(opened, run, asked):
    client, one = opened(), asked[0]
    url = f"/review/mri/question/{one.question}/check"
    assert (
        client.post(url, data=edited(one, option_4="None of the above")).json()["objections"][0].startswith("forbidden")
    )
    assert client.post(url, data=edited(one, option_4="")).json() == {
        "errors": {"option_4": "An option is empty."}, "objections": [],
    }  # fmt: skip
    assert client.post(url, data=edited(one)).json()["errors"] == {
        "edit": "Nothing is changed. Change something, or accept the question."
    }
    assert client.post(url, data=edited(one, option_4="The pons")).json() == {"errors": {}, "objections": []}
    assert decided(run) == {}


def test_line_breaks_and_spaces_that_a_form_adds_are_no_edit(opened, asked):
    answer = decide(opened(), asked[0], "edit", **edited(asked[0], stem=asked[0].stem.replace(" ", "\r\n", 1) + "  "))
    assert "Nothing is changed." in answer.text


def test_script_in_what_people_type_is_shown_as_text(opened, run, asked):
    client = opened("<script>alert(1)</script>")
    decide(client, asked[0], "reject", reason="<img src=x onerror=alert(2)>")
    for page in ("/review/mri?state=any", f"/review/mri/question/{asked[0].question}"):
        text = client.get(page).text
        assert "<script>alert" not in text
        assert "<img src=x" not in text
    assert "&lt;img src=x onerror=alert(2)&gt;" in text


def test_a_decision_from_another_site_or_too_large_is_refused(opened, run, asked):
    client = opened()
    url = f"/review/mri/question/{asked[0].question}"
    fields = {"decision": "accept"}
    assert client.post(url, data=fields, headers={"sec-fetch-site": "cross-site"}).status_code == 403
    assert client.post(url, data={**fields, "reason": "x" * 70_000}).status_code == 413
    assert decided(run) == {}


@pytest.mark.parametrize("question", ["..%2f..%2fstudy.json", "%2e%2e%2fstudies", "0" * 16, "' OR 1=1 --", "a" * 5000])
def test_a_question_that_is_not_there_is_not_found_and_no_path(opened, run, question):
    client = opened()
    assert client.get(f"/review/mri/question/{question}", follow_redirects=False).status_code == 404
    assert decide(client, question, "accept").status_code in (404, 405)
    assert decided(run) == {}


# -- undo, a change of mind, several people ---------------------------------------------------------------------------


def last(page: str) -> str:
    return re.findall(r'name="number" value="(\d+)"', page)[0]


def test_undo_takes_back_the_last_decision_once(opened, run, asked):
    client = opened()
    decide(client, asked[0], "accept")
    decide(client, asked[1], "reject", reason="vague")
    number = last(client.get("/review/mri").text)
    back = client.post("/review/mri/undo", data={"number": number}, follow_redirects=False)
    assert back.headers["location"].endswith(asked[1].question)
    assert list(decided(run)["Ada"]) == [asked[0].question]
    # The same form once more takes back nothing else.
    client.post("/review/mri/undo", data={"number": number})
    assert list(decided(run)["Ada"]) == [asked[0].question]
    assert client.post("/review/mri/undo", data={"number": "x"}).status_code == 400


def test_a_change_of_mind_stands_over_the_first_and_undo_brings_that_back(opened, run, asked):
    client, one = opened(), asked[0]
    decide(client, one, "accept")
    decide(client, one, "accept")  # a form sent twice
    decide(client, one, "reject", reason="vague")
    assert decided(run)["Ada"][one.question].decision == "reject"
    assert len((run / "review/mri.jsonl").read_text().splitlines()) == 2
    client.post("/review/mri/undo", data={"number": last(client.get("/review/mri").text)})
    assert decided(run)["Ada"][one.question].decision == "accept"


def test_an_edit_comes_back_into_the_form(opened, asked):
    client, one = opened(), asked[0]
    decide(client, one, "edit", **edited(one, option_4="The pons", reason="clearer"))
    page = client.get(f"/review/mri/question/{one.question}").text
    assert 'value="The pons"' in page
    assert 'value="clearer"' in page


def test_what_others_decided_is_shown_after_the_own_decision_only(opened, asked):
    ada, bo = opened("Ada"), opened("Bo")
    decide(ada, asked[0], "reject", reason="It has two right options")
    url = f"/review/mri/question/{asked[0].question}"
    assert "two right options" not in bo.get(url).text
    decide(bo, asked[0], "accept")
    assert "Ada rejected it: It has two right options" in bo.get(url).text


def test_edits_in_different_ways_are_said_before_the_sheet_is_applied(opened, run, asked):
    ada, bo = opened("Ada"), opened("Bo")
    decide(ada, asked[0], "edit", **edited(asked[0], option_4="The pons"))
    decide(bo, asked[0], "edit", **edited(asked[0], option_4="The midbrain"))
    assert disagreements(decided(run)) == {asked[0].question: ["Ada", "Bo"]}
    assert "was edited in different ways" in ada.get("/review/mri").text
    assert "1 question." in ada.get("/review/mri?show=all&state=disputed").text
    decide(bo, asked[0], "edit", **edited(asked[0], option_4="The pons"))
    assert disagreements(decided(run)) == {}


def test_many_reviewers_at_once_lose_nothing(opened, run, asked):
    def work(client: Any) -> list[int]:
        return [decide(client, one, "accept").status_code for one in asked]

    clients = [opened(f"Reviewer {number}") for number in range(4)]
    with ThreadPoolExecutor(4) as pool:
        answers = [code for codes in pool.map(work, clients) for code in codes]
    assert answers == [303] * (4 * len(asked))
    assert {name: len(own) for name, own in decided(run).items()} == {
        f"Reviewer {number}": len(asked) for number in range(4)
    }
    numbers = [json.loads(line)["number"] for line in (run / "review/mri.jsonl").read_text().splitlines()]
    assert numbers == list(range(1, 4 * len(asked) + 1))


# -- the sheet, and the workflow --------------------------------------------------------------------------------------


def overread(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "overread", *map(str, arguments)], capture_output=True, text=True, check=True
    )


def test_decisions_over_http_become_questions_by_apply_review(opened, run, asked, tmp_path):
    """Ada and Bo: one question accepted, one edited in stem and right option, one rejected by both, one by Bo alone."""
    ada, bo = opened("Ada"), opened("Bo, M.D.")
    kept, changed, dropped, disputed = asked[:4]
    other = changed.options[(changed.answer_index + 1) % 4]
    changes = edited(
        changed, stem=f'Where is the "left" mass, in {changed.study}?', answer=str(changed.options.index(other) + 1)
    )
    for client in (ada, bo):
        assert decide(client, kept, "accept").status_code == 303
        assert decide(client, dropped, "reject", reason='It says "left, right"').status_code == 303
    assert decide(ada, changed, "edit", **changes).status_code == 303
    assert decide(bo, disputed, "reject", reason="vague").status_code == 303
    assert decide(ada, disputed, "accept").status_code == 303

    assert ada.post("/review/mri/sheet", follow_redirects=False).status_code == 303
    sheet = run / "review/mri.csv"
    assert ada.get("/review/mri/decisions.csv").text == sheet.read_text()
    with sheet.open(newline="") as file:
        assert len(list(csv.DictReader(file))) == 7
    folder = run / "mri/questions"
    overread(
        "questions", "apply-review", folder / "kept.jsonl", sheet, "--rule", "all", "--outcomes", tmp_path / "o.csv",
        "--out", tmp_path / "questions.jsonl",
    )  # fmt: skip
    after = read_questions(tmp_path / "questions.jsonl")
    gone = {changed.question, dropped.question}
    assert {one.question for one in asked} - {one.question for one in after} == gone
    (new,) = [one for one in after if one.question not in {each.question for each in asked}]
    assert (new.stem, new.answer, new.options) == (changes["stem"], other, changed.options)
    assert (new.study, new.topic, new.evidence) == (changed.study, changed.topic, changed.evidence)
    with (tmp_path / "o.csv").open(newline="") as file:
        outcomes = {row["question"]: row for row in csv.DictReader(file)}
    assert [outcomes[one.question]["verdict"] for one in (kept, changed, dropped, disputed)] == [
        "kept", "edited", "rejected", "kept",
    ]  # fmt: skip
    assert outcomes[dropped.question]["reasons"] == 'Ada: It says "left, right"; Bo, M.D.: It says "left, right"'


def test_the_sheet_gives_back_every_decision(opened, run, asked):
    client = opened()
    decide(client, asked[0], "accept")
    decide(client, asked[1], "reject", reason="=1+1, 'quoted' and “so”; ümlaut")
    decide(client, asked[2], "edit", **edited(asked[2], option_1="One more place", reason="it was wrong"))
    client.post("/review/mri/sheet")
    found = {one.question: one for one in read_decisions([run / "review/mri.csv"])}
    kept = decided(run)["Ada"]
    assert found.keys() == kept.keys()
    for one in asked[:3]:
        assert found[one.question].edited(one) == kept[one.question].edited(one)
        assert found[one.question].decision == kept[one.question].decision
        assert found[one.question].reason == kept[one.question].reason


def test_the_page_says_what_to_write_into_the_config(opened, run, asked, tmp_path):
    config = tmp_path / "config" / "study.yaml"
    client = opened(config=config)
    decide(client, asked[0], "accept")
    client.post("/review/mri/sheet")
    page = client.get("/review/mri").text
    assert "review: {decisions: [../small/review/mri.csv]}" in page
    assert os.path.relpath(run / "review/mri.csv", config.parent) == "../small/review/mri.csv"
    spec = json.loads((run / "study.json").read_text())
    spec["datasets"]["mri"]["questions"]["review"]["decisions"] = [str(run / "review/mri.csv")]
    (run / "study.json").write_text(json.dumps(spec))
    assert "The config names it" in opened().get("/review/mri").text


def test_a_decision_about_a_question_that_has_gone_since_is_kept_and_left_out_of_the_sheet(opened, run, asked):
    client = opened()
    decide(client, asked[0], "accept")
    decide(client, asked[1], "accept")
    path = run / "mri/questions/kept.jsonl"
    path.write_text("\n".join(path.read_text().splitlines()[1:]) + "\n")
    page = client.get("/review/mri").text
    assert "1 decided question is no longer among those" in page
    sheet = client.get("/review/mri/decisions.csv").text
    assert [row["question"] for row in csv.DictReader(sheet.splitlines())] == [asked[1].question]
    assert client.get(f"/review/mri/question/{asked[0].question}").status_code == 404
    assert len(decided(run)["Ada"]) == 2


# -- before the models have answered --------------------------------------------------------------------------------


@pytest.fixture
def unfinished(run: Path) -> Path:
    """The run as `snakemake sheets` leaves it."""
    for path in ("mri/trials", "mri/responses", "xray/trials", "xray/responses", "tables"):
        shutil.rmtree(run / path)
    for path in ("mri/questions.jsonl", "report.html", "mri/images.parquet", "xray/studies.parquet"):
        (run / path).unlink()
    return run


def test_questions_are_reviewed_before_the_models_have_answered(client_of, unfinished, asked):
    client = client_of(unfinished)
    first = client.get("/", follow_redirects=False)
    assert (first.status_code, first.headers["location"]) == (303, "/review")
    page = client.get("/review").text
    assert "not finished: it lacks" in page
    assert "Review mri" in page
    assert re.findall(r'href="/review/([^"]+)"', page) == ["mri", "mri"]
    client.post("/review/mri/name", data={"name": "Ada"})
    text = client.get(f"/review/mri/question/{asked[0].question}").text
    assert "No picture of this study was rendered" in text
    assert "/study/" not in text
    assert decide(client, asked[0], "accept").status_code == 303
    assert client.post("/review/mri/sheet", follow_redirects=False).status_code == 303
    assert [one.question for one in read_decisions([unfinished / "review/mri.csv"])] == [asked[0].question]
    for path in ("/studies", "/compare", f"/study/mri/{asked[0].study}", "/review/xray"):
        assert client.get(path).status_code == 404


def test_pictures_that_are_rendered_already_are_shown(client_of, run, unfinished, generated, asked):
    shutil.copy(generated / "mri/images.parquet", unfinished / "mri/images.parquet")
    client = client_of(unfinished)
    client.post("/review/mri/name", data={"name": "Ada"})
    text = client.get(f"/review/mri/question/{asked[0].question}").text
    (source,) = re.findall(r'<img class="picture" src="([^"]+)"', text)
    assert client.get(source).headers["content-type"] == "image/png"


def test_an_unfinished_run_without_generated_questions_is_refused_as_before(results, tmp_path):
    from overread_viewer.app import create_app
    from overread_viewer.options import Options

    folder = Path(shutil.copytree(results, tmp_path / "small"))
    (folder / "report.html").unlink()
    with pytest.raises(BadInput, match=r"not finished: it lacks report\.html; run snakemake to its end"):
        create_app(Options(folder))
