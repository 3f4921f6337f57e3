"""A reader study under attack: wrong links, forms that are none, script, SQL, and paths that lead elsewhere."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import escape

from overread.core.cells import as_it_was
from overread_viewer.readers.forms import KIND, BadForm, judgement_of, posted
from overread_viewer.readers.guesses import MOST_GUESSES, WINDOW_S, Guesses
from overread_viewer.readers.schema import LONGEST_COMMENT
from unit.viewer.reading_server import FIRST, SECOND

# -- links -----------------------------------------------------------------------------------------------------------


def test_a_wrong_link_opens_nothing(served):
    token = served.links["ann"].removeprefix("/read/")
    for wrong in ("x", token[:-1], token + "A", token.swapcase(), "é", "%00", token + "%20", "..%2F" + token):
        for rest in ("", "/question/1", "/question/1/picture/1", "/ratings.csv"):
            answer = served.get(f"/read/{wrong}{rest}", headers={"x-forwarded-for": "10.0.0.1"})
            assert answer.status_code in (404, 429) and "Ann" not in answer.text, wrong
    assert served.get(served.links["ann"]).status_code in (200, 429)


def test_a_raters_link_opens_no_page_of_the_organiser(served):
    for path in ("/ratings.csv",):
        assert served.get(served.links["ann"] + path).status_code == 404
    assert served.post(served.links["ann"] + "/export", {}).status_code == 404
    page = served.get(served.links["ann"]).text
    assert "Bob" not in page and served.links["bob"] not in page and served.organiser not in page


def test_the_organisers_link_answers_no_question(served):
    served.get(f"{served.organiser}/question/1")
    assert served.get(f"{served.organiser}/question/1").status_code == 404
    assert served.post(f"{served.organiser}/question/1/reading", FIRST).status_code == 404


def test_too_many_guesses_have_to_wait_and_a_rater_at_work_does_not(served):
    assert served.get(served.links["ann"]).status_code == 200
    answers = [served.get(f"/read/guess-{k}").status_code for k in range(MOST_GUESSES + 5)]
    assert answers == [404] * MOST_GUESSES + [429] * 5
    refused = served.get("/read/guess")
    assert 0 < int(refused.headers["retry-after"]) <= WINDOW_S
    assert served.get(served.links["bob"]).status_code == 200  # who comes through the same proxy has the same address
    assert served.get(served.links["ann"]).status_code == 200


def test_guesses_are_forgotten_after_the_window_and_counted_by_address():
    now = [0.0]
    guesses = Guesses(lambda: now[0])
    assert [guesses.wait("a", None) for _ in range(MOST_GUESSES)] == [0] * MOST_GUESSES
    assert guesses.wait("a", None) == WINDOW_S and guesses.wait("b", None) == 0
    now[0] = WINDOW_S + 1
    assert guesses.wait("a", "ann") == 0


def test_a_rater_who_is_taken_out_of_the_file_has_no_link_any_more(serve):
    first = serve()
    first.read("bob", 1)
    first.judge("bob", 1)
    again = serve(raters={"ann": "Ann", "eve": "Eve"})
    assert again.get(first.links["bob"]).status_code == 404
    assert any("rater bob is no longer named" in remark for remark in again.study.remarks)
    assert [row["rater"] for row in again.ratings()] == ["bob"]
    assert again.get(again.links["eve"]).status_code == 200


# -- attacks ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "form",
    [
        {},
        FIRST | {"option": "5"},
        FIRST | {"option": "0"},
        FIRST | {"option": "1; DROP TABLE reading"},
        FIRST | {"option": "٢"},
        FIRST | {"confidence": "6"},
        FIRST | {"confidence": "3.0"},
        FIRST | {"answerable": "maybe"},
        FIRST | {"rater": "bob"},
        {key: value for key, value in FIRST.items() if key != "answerable"},
        [("option", "1"), *FIRST.items()],
    ],
)
def test_a_form_that_is_not_the_pages_stores_nothing(served, form):
    link = served.links["ann"]
    served.get(f"{link}/question/1")
    body = urlencode(form)
    kind = {"content-type": "application/x-www-form-urlencoded"}
    answer = served.client.post(f"{link}/question/1/reading", content=body, headers=kind, follow_redirects=False)
    assert answer.status_code == 422 and "Not stored" in answer.text
    assert served.base.item("ann", False, 1).reading is None
    assert "given answer" not in answer.text


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b'{"option": 2}', "application/json"),
        (b"option=%FF&confidence=3&answerable=yes", "application/x-www-form-urlencoded"),
        (b"\xff\xfe", "application/x-www-form-urlencoded"),
        (b"&".join(b"option=1" for _ in range(500)), "application/x-www-form-urlencoded"),
        (b'--x\r\nContent-Disposition: form-data; name="option"\r\n\r\n1\r\n--x--', "multipart/form-data; boundary=x"),
    ],
)
def test_a_body_that_is_no_form_stores_nothing(served, body, kind):
    link = served.links["ann"]
    served.get(f"{link}/question/1")
    answer = served.client.post(
        f"{link}/question/1/reading", content=body, headers={"content-type": kind}, follow_redirects=False
    )
    assert answer.status_code == 422 and served.base.item("ann", False, 1).reading is None


def test_a_body_that_is_too_large_is_refused(served):
    served.read("ann", 1)
    answer = served.judge("ann", 1, comment="x" * 70_000)
    assert answer.status_code == 413 and served.ratings() == []
    answer = served.judge("ann", 1, comment="x" * 2001)
    assert answer.status_code == 422 and "2001 characters; 2000 can be stored" in answer.text


def test_a_post_from_another_site_is_refused(served):
    link = served.links["ann"]
    served.get(f"{link}/question/1")
    for headers in ({"sec-fetch-site": "cross-site"}, {"sec-fetch-site": "none"}, {"sec-fetch-site": "same-site"}):
        assert served.post(f"{link}/question/1/reading", FIRST, headers=headers).status_code == 403
        assert served.post(f"{served.organiser}/export", {}, headers=headers).status_code == 403
    assert served.base.item("ann", False, 1).reading is None


@pytest.mark.parametrize(
    "comment",
    [
        "<script>alert(1)</script>",
        "'); DROP TABLE judgement; --",
        '" onmouseover="x',
        "{{ 7 * 7 }}",
        "two\nlines",
        "=1+1",
    ],
)
def test_a_comment_is_text_and_comes_back_as_it_was(served, comment):
    served.read("ann", 1)
    served.judge("ann", 1, comment=comment)
    assert as_it_was(served.ratings()[0]["comment"]) == comment
    page = served.get(f"{served.links['ann']}/question/1").text
    assert f'<p class="note comment">{escape(comment)}</p>' in page
    assert len(served.base.progress()) == 2


@pytest.mark.parametrize("sign", ["\x00", "\x07", "\x1b[31m", "‮", "\ud800"])
def test_a_comment_with_a_sign_that_is_no_text_is_refused(served, sign):
    served.read("ann", 1)
    body = urlencode(SECOND | {"comment": f"a{sign}b"}, errors="surrogatepass")
    answer = served.client.post(
        f"{served.links['ann']}/question/1/judgement", content=body, follow_redirects=False,
        headers={"content-type": "application/x-www-form-urlencoded"},
    )  # fmt: skip
    assert answer.status_code == 422 and served.ratings() == []


def test_a_raters_name_is_text(serve):
    served = serve(raters={"ann": "<script>alert(1)</script>", "bob": "{{ 7 * 191041 }}"})
    for rater in ("ann", "bob"):
        for path in (served.links[rater], f"{served.links[rater]}/question/1", served.organiser):
            page = served.get(path).text
            assert "<script>alert" not in page and "1337287" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in served.get(served.links["ann"]).text


@pytest.mark.parametrize(
    "path",
    [
        "/question/5", "/question/0", "/question/-1", "/question/01x", "/question/1%27", "/question/999999999999",
        "/question/1;DROP", "/practice/1", "/other/1", "/question/٣", "/question/1/picture/0", "/question/1/picture/2",
        "/question/1/picture/..%2F..%2Fstudies.parquet", "/question/1/series/1", "/question/1/facts/1",
    ],
)  # fmt: skip
def test_what_is_not_the_raters_is_not_there(served, path):
    answer = served.get(served.links["ann"] + path)
    assert answer.status_code == 404, answer.text


def test_a_picture_is_that_of_the_question_and_of_no_other_study(served):
    item = served.base.item("ann", False, 1)
    (picture,) = served.study.pictures(item.asked.study)
    answer = served.get(f"{served.links['ann']}/question/1/picture/1")
    assert answer.headers["content-type"] == "image/png"
    assert answer.content == (served.study.run.folder("mri") / picture.path).read_bytes()


@given(st.binary(max_size=200) | st.text(alphabet="agreslvntcom=&%yes1", max_size=60).map(str.encode))
def test_any_body_is_a_form_or_a_bad_form(body):
    try:
        judgement = judgement_of(posted(body, KIND))
    except BadForm:
        return
    assert isinstance(judgement.agrees, bool) and len(judgement.comment) <= LONGEST_COMMENT
    assert all(sign.isprintable() or sign in "\n\t" for sign in judgement.comment)
