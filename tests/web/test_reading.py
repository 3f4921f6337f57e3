"""A reader study in a browser: sessions by keyboard, reloads, two raters at once, and what never reaches a rater."""

from __future__ import annotations

import csv
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

pytestmark = pytest.mark.browser

STUDY = {
    "name": "fellows",
    "dataset": "mri",
    "questions": {"sample": 10},
    "raters": {"fellow": "Dr A. Fellow", "attending": "<script>alert(1)</script>"},
    "seed": 3,
    "view": "flair-axial",
}


def overread(*arguments: str) -> str:
    found = subprocess.run([sys.executable, "-m", "overread", *arguments], capture_output=True, text=True, check=True)
    return found.stdout


class Study:
    """A served reader study: its file, address and links by rater."""

    def __init__(self, file: Path, address: str) -> None:
        self.file = file
        self.address = address
        said = overread("readers", "links", str(file), "--address", address)
        self.links = {line.split(" ")[0].rstrip(":"): line.split(": ")[-1] for line in said.splitlines()}

    def ratings(self) -> list[dict[str, str]]:
        overread("readers", "export", str(self.file))
        with (self.file.parent / "fellows-ratings.csv").open(newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))


@pytest.fixture
def study(run: Path, serving: Callable, tmp_path: Path) -> Iterator[Study]:
    file = tmp_path / "readers.yaml"
    file.write_text(yaml.safe_dump(STUDY), encoding="utf-8")
    with serving(run, "--study", str(file)) as address:
        yield Study(file, address)


def answer(page, *, option: str = "1", confidence: str = "4", answerable: str = "y") -> None:
    """The first part by keyboard, to the given answer shown."""
    page.wait_for_selector("#panel[data-state=reading]")
    for key in (option, "Enter", confidence, "Enter", answerable, "Enter", "Enter"):
        page.keyboard.press(key)
    page.wait_for_selector("#panel[data-state=judgement]")


def judge(page, *, agrees: str = "y", relevant: str = "y", comment: str = "") -> None:
    for key in (agrees, "Enter", relevant, "Enter"):
        page.keyboard.press(key)
    if comment:
        page.keyboard.press("c")
        page.keyboard.type(comment)
        page.keyboard.press("Control+Enter")
    else:
        page.keyboard.press("Enter")


def test_ten_questions_by_keyboard_with_a_reload_in_the_middle(study, page, axe, shots):
    page.goto(study.links["fellow"])
    shots(page, "reading-start")
    axe(page)
    page.keyboard.press("Enter")
    chosen = []
    for number in range(1, 11):
        page.wait_for_selector(f".count:text-is('{number} of 10')")
        page.wait_for_selector("#panel[data-state=reading]")
        assert page.evaluate("document.activeElement.name") == "option"
        if number == 1:
            shots(page, "reading-question")
            axe(page)
        if number == 4:  # nothing stored of it yet
            page.keyboard.press("2")
            page.reload()
        option = str(number % 5)  # 0 is "can't tell"
        chosen.append(
            "" if option == "0" else page.locator(".own-options .pick span").nth(int(option) - 1).inner_text()
        )
        answer(page, option=option, confidence=str(number % 5 + 1), answerable="n" if number == 7 else "y")
        if number == 2:
            shots(page, "reading-given")
            axe(page)
        if number == 6:  # between the parts, from the link as on another computer
            page.goto(study.links["fellow"])
            page.keyboard.press("Enter")
            page.wait_for_selector("#panel[data-state=judgement]")
        judge(page, agrees="n" if number == 3 else "y", relevant="n" if number == 5 else "y",
              comment="<b>mild</b> is not defined" if number == 5 else "")  # fmt: skip
    page.wait_for_selector("h1:has-text('All 10 questions are read')")
    shots(page, "reading-end")
    axe(page)
    rows = study.ratings()
    assert [row["place"] for row in rows] == [str(k) for k in range(1, 11)]
    assert [row["chosen"] for row in rows] == chosen
    assert [row["confidence"] for row in rows] == [str(k % 5 + 1) for k in range(1, 11)]
    assert [k for k, row in enumerate(rows, 1) if row["answerable"] == "no"] == [7]
    assert [k for k, row in enumerate(rows, 1) if row["agrees"] == "no"] == [3]
    assert [k for k, row in enumerate(rows, 1) if row["relevant"] == "no"] == [5]
    assert rows[4]["comment"] == "<b>mild</b> is not defined"
    assert {row["rater"] for row in rows} == {"fellow"} and len({row["question"] for row in rows}) == 10
    assert all(0 <= float(row["seconds_in_view"]) <= float(row["seconds"]) + 0.11 for row in rows)
    page.goto(study.links["fellow"] + "/question/5")
    assert page.locator(".comment").inner_text() == "<b>mild</b> is not defined"
    assert page.locator("#panel input, #panel button").count() == 0
    shots(page, "reading-back")
    axe(page)
    page.goto(study.links["organiser"])
    shots(page, "reading-organiser")
    axe(page)
    assert "10 of 10" in page.locator("tbody").inner_text()


def test_two_raters_at_once_read_each_their_own(study, browser, page):
    other = browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True).new_page()
    pages = {"fellow": page, "attending": other}
    for rater, one in pages.items():
        one.goto(study.links[rater])
        one.locator("#on").click()
    assert page.locator(".stem").inner_text() != "" != other.locator(".stem").inner_text()
    for number in range(1, 4):  # in turns, one by keyboard, one by touch
        answer(page, option="1", confidence="2")
        other.wait_for_selector(f".count:text-is('{number} of 10')")
        other.locator(".own-options .pick").nth(1).tap()
        other.locator("[data-step]").nth(1).locator(".pick").nth(4).tap()
        other.locator("[data-step]").nth(2).locator(".pick").nth(0).tap()
        other.locator("[data-store]").tap()
        other.wait_for_selector("#panel[data-state=judgement]")
        judge(page, agrees="y")
        other.locator("[data-step]").nth(0).locator(".pick").nth(1).tap()
        other.locator("[data-step]").nth(1).locator(".pick").nth(0).tap()
        other.locator("[data-store]").tap()
    page.wait_for_selector(".count:text-is('4 of 10')")
    other.wait_for_selector(".count:text-is('4 of 10')")
    other.context.close()
    rows = study.ratings()
    assert [(row["rater"], row["place"]) for row in rows] == [
        (rater, str(place)) for rater in ("attending", "fellow") for place in (1, 2, 3)
    ]
    assert [(row["confidence"], row["agrees"]) for row in rows] == [("5", "no")] * 3 + [("2", "yes")] * 3
    status = overread("readers", "status", str(study.file))
    assert "fellow (Dr A. Fellow): 3 of 10 questions finished" in status


def test_an_answer_whose_reply_is_lost_is_kept_on_the_page_and_stored_once(study, page, console):
    page.goto(study.links["fellow"] + "/question/1")
    lost = []

    def lose(route) -> None:
        if lost:
            route.continue_()
        else:
            lost.append(route.fetch(max_redirects=0).status)  # the server has stored it
            route.abort()

    page.route("**/reading", lose)
    for key in ("2", "Enter", "3", "Enter", "y", "Enter", "Enter"):
        page.keyboard.press(key)
    page.wait_for_selector(".status:has-text('Not stored')")
    assert lost == [303] and page.locator("input:checked").count() == 3
    assert page.evaluate("document.activeElement.hasAttribute('data-store')")
    console.clear()  # the browser tells of the connection that was cut
    page.keyboard.press("Enter")
    page.wait_for_selector("#panel[data-state=judgement]")
    judge(page)
    page.wait_for_selector(".count:text-is('2 of 10')")
    assert [row["confidence"] for row in study.ratings()] == ["3"]


def test_an_unfinished_part_is_not_sent_and_enter_waits_for_a_choice(study, page):
    page.goto(study.links["fellow"] + "/question/1")
    page.keyboard.press("Enter")
    page.wait_for_selector(".status:has-text('Choose first')")
    for key in ("y", "n", "7", "x"):  # keys of another step, or of none
        page.keyboard.press(key)
    assert page.locator("input:checked").count() == 0
    page.keyboard.press("1")
    page.keyboard.press("3")  # before Enter the choice may still change
    assert page.locator("input:checked").evaluate("one => one.value") == "3"
    page.keyboard.press("Enter")
    page.keyboard.press("Shift+Enter")
    assert page.evaluate("document.activeElement.name") == "option"
    page.keyboard.press("Control+Enter")  # the browser holds an incomplete form back
    assert page.locator("#panel").get_attribute("data-state") == "reading"
    assert study.ratings() == []


def test_the_question_mark_shows_the_keys_and_gives_the_focus_back(study, page, axe):
    page.goto(study.links["fellow"] + "/question/1")
    page.keyboard.press("?")
    page.wait_for_selector("dialog[open]")
    page.keyboard.press("2")
    axe(page)
    page.keyboard.press("Escape")
    assert page.locator("dialog[open]").count() == 0 and page.locator("input:checked").count() == 0
    assert page.evaluate("document.activeElement.name") == "option"


def test_a_picture_grows_and_shows_the_patients_sides(study, page):
    page.goto(study.links["fellow"] + "/question/1")
    letters = page.locator(".edge").all_inner_texts()
    assert letters == ["R", "L", "A", "P"]
    for size in ({"width": 390, "height": 844}, {"width": 1280, "height": 600}, {"width": 1280, "height": 900}):
        page.set_viewport_size(size)
        frame, picture = page.locator(".frame").bounding_box(), page.locator(".frame img").bounding_box()
        assert picture == pytest.approx(frame)  # whole: nothing of it lies outside its frame
    width = page.locator(".frame img").evaluate("one => one.getBoundingClientRect().width")
    page.keyboard.press("z")
    assert page.locator(".frame img").evaluate("one => one.getBoundingClientRect().width") == pytest.approx(2 * width)
    page.keyboard.press("z")
    page.keyboard.press("z")
    assert page.locator(".frame img").evaluate("one => one.getBoundingClientRect().width") == pytest.approx(width)


def test_links_leave_no_trace_elsewhere_and_none_in_what_the_browser_keeps(study, page):
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(study.links["fellow"])
    page.keyboard.press("Enter")
    answer(page)
    own = study.links["fellow"].partition("/read/")[0] + "/"
    assert asked and all(url.startswith(own) for url in asked)
    assert page.request.get(study.links["fellow"]).headers["referrer-policy"] == "same-origin"
    kept = page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie, document.title])")
    assert study.links["fellow"].rpartition("/")[2] not in kept


@pytest.mark.parametrize("dataset", ["mri", "xray"])
def test_whole_series_are_looked_through_and_stay_while_the_answer_is_stored(
    dataset, run, serving, tmp_path, page, axe, shots
):
    file = tmp_path / "readers.yaml"
    content = STUDY | {"dataset": dataset, "view": None, "series": "all", "options": "as-written"}
    file.write_text(yaml.safe_dump({key: value for key, value in content.items() if value}), encoding="utf-8")
    viewer = "[data-viewer] .panel" if dataset == "mri" else "[data-radiograph]"
    with serving(run, "--study", str(file)) as address:
        study = Study(file, address)
        page.goto(study.links["fellow"] + "/question/1")
        page.wait_for_selector(f"{viewer}[data-state=ready]")
        assert page.evaluate("document.activeElement.name") == "option"
        axe(page)
        shots(page, f"reading-{dataset}-series")
        canvas = page.locator(".stage canvas")
        before = canvas.screenshot()
        canvas.focus()
        page.keyboard.press("ArrowUp" if dataset == "mri" else "i")
        page.wait_for_timeout(300)
        changed = canvas.screenshot()
        assert changed != before
        page.keyboard.press("y" if dataset == "xray" else "1")  # the answer's keys work from the image too
        assert page.evaluate("document.activeElement.name") == "option"
        for key in ("Enter", "4", "Enter", "y", "Enter", "Enter"):
            page.keyboard.press(key)
        page.wait_for_selector("#panel[data-state=judgement]")
        assert "saw" not in page.locator("main").inner_text()  # nothing of what a model was shown
        label = "Slice" if dataset == "mri" else "pixels"
        assert label in page.locator(".panel figcaption").first.inner_text()
        if dataset == "xray":
            assert page.locator(".inverted").is_checked()
        judge(page)
        page.wait_for_selector(".count:text-is('2 of 10')")
        assert len(study.ratings()) == 1
