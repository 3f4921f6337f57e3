"""A reader study's pages: what they show to whom and when, and what becomes of a run that changes."""

from __future__ import annotations

import shutil
from typing import Any

import pytest
import yaml

from overread.core.errors import BadInput
from overread.core.records import Question, read_pictures, read_questions, write_pictures, write_questions
from unit.viewer.reading_server import FIRST, SECOND, STUDY, Served

# -- blinded ---------------------------------------------------------------------------------------------------------


def test_nothing_but_the_study_is_served(served):
    others = (
        "/", "/studies", "/studies?dataset=mri", "/study/mri/x", "/compare", "/report", "/tables/flips.csv", "/review",
        "/files/picture/mri/x.png", "/ask/mri/x", "/read", "/read/", "/docs", "/openapi.json",
    )  # fmt: skip
    for path in others:
        answer = served.client.get(path)
        assert answer.status_code == 404, path
        assert "small" not in answer.text and "mri" not in answer.text, path
    assert served.client.get("/static/reading.js").status_code == 200


def test_before_the_own_answer_no_byte_depends_on_the_given_answer(serve, results, tmp_path):
    """Two runs whose questions differ in nothing but the given answer send the same first pages."""
    pages = []
    for turn in range(2):
        folder = tmp_path / f"run-{turn}" / "small"
        shutil.copytree(results, folder)
        questions = read_questions(folder / "mri" / "questions.jsonl")
        changed = [
            Question.model_validate(
                one.model_dump(exclude={"question"}) | {"answer": one.options[(one.answer_index + turn) % 4]}
            )
            for one in questions
        ]
        write_questions(changed, folder / "mri" / "questions.jsonl")
        ids = {(one.study, one.topic): one.question for one in changed}
        listed = tmp_path / "ids.txt"
        wanted = sorted(ids)[:3]
        listed.write_text("\n".join(ids[key] for key in wanted), encoding="utf-8")
        served = serve(
            folder, questions={"ids": str(listed)}, order="as-listed", database=str(tmp_path / f"base-{turn}.sqlite")
        )
        link = served.links["ann"]
        sent = []
        for path in (link, f"{link}/question/1", f"{link}/question/1/picture/1"):
            answer = served.get(path)
            assert answer.status_code == 200
            headers = [(k, v) for k, v in answer.headers.items() if k not in ("date", "last-modified", "etag")]
            sent.append((answer.content.replace(link.encode(), b"LINK"), headers))
        pages.append(sent)
        page = served.get(f"{link}/question/1").text
        assert not any(one.question in page or one.study in page for one in changed)
        assert "given" not in page
        served.read("ann", 1)
        assert "given answer" in served.get(f"{link}/question/1").text
    assert pages[0] == pages[1]


def test_the_given_answer_is_shown_once_the_own_is_stored(served):
    asked = served.base.item("ann", False, 1).asked
    answer = served.read("ann", 1)
    assert answer.status_code == 303 and answer.headers["location"] == f"{served.links['ann']}/question/1"
    page = served.get(answer.headers["location"]).text
    assert f"The given answer is “{asked.options[asked.answer]}”" in page
    assert f'{asked.options[1]} <span class="tag">your answer' in page


def test_one_raters_answers_show_nothing_to_another(served):
    before = served.get(f"{served.links['bob']}/question/1").text
    for place in range(1, 5):
        served.read("ann", place)
        served.judge("ann", place, comment="Ann was here")
    assert served.get(f"{served.links['bob']}/question/1").text == before
    start = served.get(served.links["bob"]).text
    assert "Ann" not in start and "0 of 4" in start


def test_pages_and_pictures_are_never_kept_by_a_browser(served):
    link = served.links["ann"]
    for path in (link, f"{link}/question/1", f"{link}/question/1/picture/1", "/read/wrong"):
        answer = served.get(path)
        assert answer.headers["cache-control"] == "no-store", path
        assert answer.headers["referrer-policy"] == "same-origin", path


# -- order -----------------------------------------------------------------------------------------------------------


def test_the_second_part_before_the_first_is_refused(served):
    served.get(f"{served.links['ann']}/question/1")
    answer = served.judge("ann", 1)
    assert answer.status_code == 409 and "Your own answer comes first" in answer.text
    assert "given" not in answer.text and served.ratings() == []


def test_a_question_before_its_turn_is_neither_shown_nor_stored(served):
    link = served.links["ann"]
    answer = served.get(f"{link}/question/3")
    assert answer.status_code == 303 and answer.headers["location"] == f"{link}/question/1"
    assert served.get(f"{link}/question/3/picture/1").status_code == 303
    for part, form in (("reading", FIRST), ("judgement", SECOND)):
        answer = served.post(f"{link}/question/3/{part}", form)
        assert answer.status_code == 409 and "Nothing was stored" in answer.text
    assert served.base.progress()[0].read == 0


def test_an_answer_to_a_page_that_was_never_opened_is_not_stored(served):
    answer = served.post(f"{served.links['ann']}/question/1/reading", FIRST)
    assert answer.status_code == 303 and served.base.item("ann", False, 1).reading is None


def test_a_stored_answer_can_not_be_changed(served):
    served.read("ann", 1)
    answer = served.post(f"{served.links['ann']}/question/1/reading", FIRST | {"option": "3"})
    assert answer.status_code == 409 and "can’t be changed" in answer.text
    served.judge("ann", 1)
    assert served.post(f"{served.links['ann']}/question/1/reading", FIRST | {"option": "4"}).status_code == 409
    assert served.judge("ann", 1, agrees="no").status_code == 409
    (row,) = served.ratings()
    assert (row["chosen"], row["agrees"]) == (served.base.item("ann", False, 1).asked.options[1], "yes")


def test_what_is_sent_twice_is_one_rating_and_both_times_well_received(served):
    link = served.links["ann"]
    served.get(f"{link}/question/1")
    first = [served.post(f"{link}/question/1/reading", FIRST | {"in_view": str(k)}) for k in (1, 2)]
    second = [served.judge("ann", 1) for _ in range(2)]
    assert [one.status_code for one in first + second] == [303] * 4
    assert {one.headers["location"] for one in first} == {f"{link}/question/1"}
    assert {one.headers["location"] for one in second} == {f"{link}/question/2"}
    assert len(served.ratings()) == 1


def test_looking_back_shows_and_changes_nothing(served):
    served.read("ann", 1)
    served.judge("ann", 1, comment="seen")
    page = served.get(f"{served.links['ann']}/question/1").text
    assert "seen" in page and "nothing can be changed here" in page and '<form method="post"' not in page


def test_a_session_goes_on_where_it_was_left_also_after_a_restart(serve):
    first = serve()
    first.read("ann", 1)
    first.judge("ann", 1)
    first.read("ann", 2)
    again = serve()
    assert again.links == first.links and again.organiser == first.organiser
    assert f"{again.links['ann']}/question/2" in again.get(again.links["ann"]).text
    assert "The given answer is" in again.get(f"{again.links['ann']}/question/2").text
    assert [again.base.item("ann", False, k).asked for k in range(1, 5)] == [
        first.base.item("ann", False, k).asked for k in range(1, 5)
    ]


def test_practice_comes_first_and_is_no_rating(serve):
    served = serve(practice=1)
    link = served.links["ann"]
    assert served.get(f"{link}/question/1").headers["location"] == f"{link}/practice/1"
    assert "not counted" in served.get(f"{link}/practice/1").text
    served.post(f"{link}/practice/1/reading", FIRST)
    assert served.post(f"{link}/practice/1/judgement", SECOND).headers["location"] == link
    assert "That was the practice" in served.get(link).text and served.ratings() == []


def test_a_break_is_proposed_after_so_many_questions(serve):
    served = serve(break_after=2)
    places = []
    for place in range(1, 5):
        served.read("ann", place)
        places.append(served.judge("ann", place).headers["location"].removeprefix(served.links["ann"]))
    assert places == ["/question/2", "?pause", "/question/4", ""]
    assert "All 4 questions are read" in served.get(served.links["ann"]).text


# -- what a run may do to a study ------------------------------------------------------------------------------------


def test_a_run_whose_questions_changed_is_told_and_the_study_goes_on(serve, results, tmp_path):
    folder = tmp_path / "run" / "small"
    shutil.copytree(results, folder)
    first = serve(folder)
    gone = first.base.item("ann", False, 1).asked
    path = folder / "mri" / "questions.jsonl"
    write_questions([one for one in read_questions(path) if one.question != gone.question], path)
    again = serve(folder)
    assert [one for one in again.study.remarks if f"1 of 4 questions (the first: {gone.question})" in one]
    assert again.base.item("ann", False, 1).asked == gone
    assert gone.stem in again.get(f"{again.links['ann']}/question/1").text
    assert "no longer in the run" in again.get(again.organiser).text


def test_changed_settings_are_told_and_the_stored_ones_hold(serve):
    first = serve()
    again = serve(seed=9, questions={"sample": 2}, raters={"ann": "Ann", "bob": "Bob", "eve": "Eve"})
    assert sorted(one.split(": ")[1].split(" ")[0] for one in again.study.remarks) == ["questions", "seed"]
    assert len(again.base.questions()) == 4 and again.base.item("eve", False, 4) is not None
    assert again.links["ann"] == first.links["ann"]


def test_a_database_of_another_study_is_refused(serve, tmp_path):
    serve(database=str(tmp_path / "one.sqlite"))
    with pytest.raises(BadInput, match="holds study fellows of dataset mri, not others of mri; name another"):
        serve(name="others", database=str(tmp_path / "one.sqlite"))


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"dataset": "ct"}, "no dataset 'ct'; there are: mri, xray"),
        ({"view": "flair"}, "view: no view 'flair'; there are: flair-axial"),
        ({"view": None, "series": ["T9"]}, "series: no series 'T9'"),
        ({"questions": {"sample": 1000}}, "questions.sample: 1000 questions"),
    ],
)
def test_a_file_that_does_not_fit_the_run_is_refused_in_one_line(serve, tmp_path, changes, problem):
    with pytest.raises(Exception, match=problem) as caught:
        serve(**changes)
    assert str(caught.value).count("\n") == 0 and "readers.yaml: " in str(caught.value)
    with pytest.raises(Exception, match=problem):
        serve(**changes)  # nothing was begun by it


def test_lost_images_hold_a_question_up_and_store_nothing(serve, results, tmp_path):
    folder = tmp_path / "run" / "small"
    shutil.copytree(results, folder)
    first = serve(folder)
    asked = first.base.item("ann", False, 1).asked
    path = folder / "mri" / "images.parquet"
    write_pictures([one for one in read_pictures(path) if one.study != asked.study], path)
    again = serve(folder)
    assert any("have no images in the run any more" in one for one in again.study.remarks)
    page = again.get(f"{again.links['ann']}/question/1").text
    assert "can’t be found" in page and 'name="option"' not in page
    again.post(f"{again.links['ann']}/question/1/reading", FIRST)
    assert again.base.item("ann", False, 1).reading is None


def test_pictures_that_changed_since_the_study_began_are_told(serve, results, tmp_path):
    folder = tmp_path / "run" / "small"
    shutil.copytree(results, folder)
    asked = serve(folder).base.item("ann", False, 1).asked
    path = folder / "mri" / "images.parquet"
    write_pictures(
        [
            one.model_copy(update={"pixels": "0" * 64}) if one.study == asked.study else one
            for one in read_pictures(path)
        ],
        path,
    )
    (remark,) = serve(folder).study.remarks
    assert "have other pictures than when the study began" in remark


def test_a_radiograph_is_served_with_its_values_under_the_raters_link_alone(serve):
    served = serve(dataset="xray", view=None, series="all", name="films")
    link = served.links["ann"]
    page = served.get(f"{link}/question/1").text
    assert "data-radiograph" in page and f"{link}/question/1/series/1" in page
    facts = served.get(f"{link}/question/1/facts/1").json()
    pixels = served.get(f"{link}/question/1/series/1").content
    assert len(pixels) == facts["width"] * facts["height"] * facts["bits"] // 8
    assert served.get(f"{link}/question/1/series/2").status_code == 404
    assert served.get(f"{link}/question/2/series/1").status_code == 303


def test_a_series_is_served_without_masks(serve):
    served = serve(view=None, series="all", name="whole")
    names = served.study.series(served.base.item("ann", False, 1).asked.study)
    assert names and not any("segmentation" in name for name in names)
    page = served.get(f"{served.links['ann']}/question/1").text
    assert "data-viewer" in page and "segmentation" not in page and "What the models saw" not in page
    assert served.get(f"{served.links['ann']}/question/1/series/1").content[:2] == b"\x1f\x8b"


def test_restricted_images_have_a_banner(client_of, restricted_results, tmp_path):
    file = tmp_path / "readers.yaml"
    file.write_text(yaml.safe_dump(STUDY | {"dataset": "xray", "view": "frontal"}), encoding="utf-8")
    served = Served(client_of(restricted_results, readers=file))
    assert "Restricted data" in served.get(f"{served.links['ann']}/question/1").text


def test_a_server_with_a_password_asks_raters_for_it_too(client_of, results, tmp_path):
    file = tmp_path / "readers.yaml"
    file.write_text(yaml.safe_dump(STUDY), encoding="utf-8")
    served = Served(client_of(results, readers=file, host="0.0.0.0", password="a long password"))
    assert served.get(served.links["ann"]).headers["location"].startswith("/login?next=")
    assert served.post(f"{served.links['ann']}/question/1/reading", FIRST).status_code == 401


def test_a_database_that_can_not_be_written_is_said_and_not_taken_for_stored(served, monkeypatch):
    import sqlite3

    def full(*_: Any) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    served.get(f"{served.links['ann']}/question/1")
    monkeypatch.setattr(served.base, "store_reading", full)
    answer = served.post(f"{served.links['ann']}/question/1/reading", FIRST)
    assert answer.status_code == 503 and "Not stored" in answer.text


def test_a_database_that_was_overwritten_is_a_page_that_names_it(served):
    path = served.base.path
    with path.open("r+b") as file:
        file.write(b"overwritten by something else " * 4000)
    for beside in path.parent.glob(f"{path.name}-*"):
        beside.write_bytes(b"")
    answer = served.get(served.links["ann"])
    assert answer.status_code == 500 and path.name in answer.text and "overwritten" in answer.text


def test_a_locked_database_answers_within_a_few_seconds(served):
    import sqlite3
    import time

    served.get(f"{served.links['ann']}/question/1")
    holder = sqlite3.connect(served.base.path, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    started = time.monotonic()
    answer = served.post(f"{served.links['ann']}/question/1/reading", FIRST)
    assert answer.status_code == 503 and served.base.path.name in answer.text
    assert time.monotonic() - started < 20, "the wait is three seconds; the machine may be slow"
    holder.execute("ROLLBACK")
    holder.close()
