"""A review of generated questions in a browser, by keyboard."""

from __future__ import annotations

import csv
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from data.generated_run import make_generated
from overread.core.records import Question, read_questions
from overread.curation.review import apply_decisions, read_decisions
from overread.curation.rules import read_rules
from overread_viewer.decided import Decided

pytestmark = pytest.mark.browser


@pytest.fixture
def generated(run: Path, tmp_path: Path) -> Path:
    """A copy of the run whose MRI questions a model wrote: nine passed the rules."""
    folder = Path(shutil.copytree(run, tmp_path / "small", symlinks=True))
    assert len(make_generated(folder, look_through=6)) == 9
    return folder


@pytest.fixture
def address(generated: Path, serving: Callable[..., object]) -> Iterator[str]:
    with serving(generated) as address:
        yield address


def questions(folder: Path) -> dict[str, Question]:
    return {one.question: one for one in read_questions(folder / "mri/questions/kept.jsonl")}


def decided(folder: Path) -> list[tuple[str, str]]:
    return [
        (key, one.decision) for key, one in Decided(folder / "review/mri.jsonl").by_reviewer().get("Ada", {}).items()
    ]


def start(page, address: str, name: str = "Ada") -> None:
    page.goto(f"{address}/review/mri")
    page.get_by_label("Your name").fill(name)
    page.keyboard.press("Enter")
    page.wait_for_url("**/question/*")


def here(page) -> str:
    return page.url.split("/question/")[1].split("?")[0]


def test_a_review_by_keyboard_is_kept_over_a_reload_and_becomes_questions(address, page, generated, axe, shots):
    page.goto(f"{address}/review")
    axe(page)
    shots(page, "review")
    page.get_by_role("link", name="Review mri").click()
    axe(page)
    start(page, address)
    asked = questions(generated)

    # The picture is there, the evidence is marked.
    first = here(page)
    assert page.locator("mark").all_inner_texts() == [asked[first].evidence]
    picture = page.locator("img.picture").first
    picture.scroll_into_view_if_needed()
    page.wait_for_function("image => image.complete && image.naturalWidth > 0", arg=picture.element_handle())
    page.evaluate("window.scrollTo(0, 0)")
    axe(page)
    shots(page, "review-question")

    # Accept.
    page.keyboard.press("a")
    page.wait_for_url(lambda url: first not in url)
    assert decided(generated) == [(first, "accept")]

    # Edit: the rules object as one types, then do not.
    second = here(page)
    page.keyboard.press("e")
    assert page.evaluate("document.activeElement.id") == "new-stem"
    option = page.get_by_label("Option 4", exact=True)
    option.fill("None of the above")
    page.wait_for_selector("#objections li:has-text('none of the above')")
    axe(page)
    shots(page, "review-edit")
    option.fill("The pons")
    page.wait_for_selector("#no-objection:not([hidden])")
    option.press("Control+Enter")
    page.wait_for_url(lambda url: second not in url)

    # Reject: a reason is needed, and the keys type into it.
    third = here(page)
    page.keyboard.press("r")
    assert page.evaluate("document.activeElement.id") == "reason"
    page.keyboard.press("Enter")
    assert here(page) == third, "the browser asks for a reason"
    page.keyboard.type("a vague one")
    shots(page, "review-reject")
    page.keyboard.press("Enter")
    page.wait_for_url(lambda url: third not in url)
    assert decided(generated) == [(first, "accept"), (second, "edit"), (third, "reject")]

    # Undo, and once more by a usual reason.
    page.keyboard.press("u")
    page.wait_for_url(f"**/{third}")
    assert decided(generated) == [(first, "accept"), (second, "edit")]
    page.keyboard.press("r")
    page.get_by_role("button", name="Not clinically relevant").click()
    page.keyboard.press("Enter")
    page.wait_for_url(lambda url: third not in url)

    # A reload, and coming back, go on where it stood.
    fourth = here(page)
    page.reload()
    assert here(page) == fourth
    page.goto(f"{address}/review/mri")
    assert "3 of the 6 questions drawn for review are decided by you" in page.inner_text("main")
    page.locator("#start").click()
    page.wait_for_url(f"**/{fourth}")  # once loaded, so that its script hears the keys

    # Next and previous decide nothing.
    page.keyboard.press("n")
    page.wait_for_url(lambda url: fourth not in url)
    page.keyboard.press("p")
    page.wait_for_url(f"**/{fourth}")

    # The sheet is what the workflow reads.
    page.keyboard.press("l")
    page.wait_for_url("**/review/mri")
    page.get_by_role("button", name="Write the sheet").click()
    page.wait_for_url("**#sheet")
    axe(page)
    shots(page, "review-list")
    with page.expect_download() as download:
        page.get_by_role("link", name="Download it").click()
    text = Path(download.value.path()).read_text()
    assert text == (generated / "review/mri.csv").read_text()
    assert [row["decision"] for row in csv.DictReader(text.splitlines())].count("edit") == 1
    kept, _ = apply_decisions(
        list(asked.values()), read_decisions([generated / "review/mri.csv"]), "majority", read_rules()
    )
    assert len(kept) == 8
    assert third not in {one.question for one in kept}
    (new,) = [one for one in kept if one.question not in asked]
    assert new.options == (*asked[second].options[:3], "The pons")


def test_single_keys_can_be_switched_off_and_never_act_while_one_types(address, page, generated):
    start(page, address)
    page.locator("#keys summary").click()
    page.get_by_label("Single keys decide").uncheck()
    page.locator("h1").click()
    page.keyboard.press("a")
    page.keyboard.press("r")
    assert page.locator("#reject").get_attribute("open") is None
    page.reload()
    page.keyboard.press("a")
    assert decided(generated) == []

    page.locator("#keys summary").click()
    page.get_by_label("Single keys decide").check()
    page.locator("h1").click()
    page.keyboard.press("e")
    page.keyboard.type(" aurnp")
    assert page.locator("#new-stem").input_value().endswith(" aurnp")
    page.keyboard.press("Escape")
    page.keyboard.press("Control+a")
    assert decided(generated) == []


def test_a_form_works_without_script_and_keeps_what_was_typed(address, browser, generated):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    start(page, address)
    first = here(page)
    page.locator("#edit summary").click()
    page.get_by_label("Option 1", exact=True).fill("All of the above")
    page.get_by_role("button", name="Keep the edit").click()
    assert page.locator("#objections li").count() == 1
    assert page.get_by_label("Option 1", exact=True).input_value() == "All of the above"
    page.get_by_label("Keep my wording all the same").check()
    page.get_by_role("button", name="Keep the edit").click()
    assert here(page) != first
    assert decided(generated) == [(first, "edit")]
    context.close()


def test_two_people_review_at_once_and_see_each_other_s_decisions_after_their_own(address, page, browser, generated):
    start(page, address)
    first = here(page)
    other = browser.new_context()
    theirs = other.new_page()
    start(theirs, address, "Bo")
    assert here(theirs) == first
    theirs.keyboard.press("r")
    theirs.keyboard.type("Two options fit")
    theirs.keyboard.press("Enter")
    theirs.wait_for_url(lambda url: first not in url)
    page.reload()
    assert "Two options fit" not in page.inner_text("main")
    page.keyboard.press("a")
    page.wait_for_url(lambda url: first not in url)
    page.goto(f"{address}/review/mri/question/{first}")
    assert "Bo rejected it: Two options fit" in page.inner_text("main")
    assert set(Decided(generated / "review/mri.jsonl").by_reviewer()) == {"Ada", "Bo"}
    other.close()


def test_a_dataset_without_generated_questions_says_why_there_is_nothing(page, site, axe, shot):
    page.goto(f"{site}/review/mri")
    assert "Nothing to review in mri" in page.inner_text("h1")
    axe(page)
    shot(page, "review-nothing")
