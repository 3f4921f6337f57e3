"""The page of a trial in a browser: from one answer to the exact input, and to the twin beside it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from overread.core.records import read_trials

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def trial(run: Path) -> Any:
    return read_trials(run / "xray" / "trials" / "xray-report" / "run-1.parquet")[0]


def address_of(site: str, trial: Any) -> str:
    return f"{site}/trial/{trial.dataset}/{trial.setting}/{trial.run}/{trial.question}"


def test_the_two_images_are_seen_side_by_side_at_their_true_size_and_larger(page: Page, site: str, trial: Any) -> None:
    page.goto(address_of(site, trial))
    pictures = page.locator("img.true-size")
    expect(pictures).to_have_count(2)
    boxes = [one.bounding_box() for one in pictures.all()]
    natural = [one.evaluate("(image) => [image.naturalWidth, image.naturalHeight]") for one in pictures.all()]
    assert all(min(one) > 0 for one in natural), "both were sent"
    assert [[box["width"], box["height"]] for box in boxes if box] == natural
    assert boxes[0] and boxes[1] and abs(boxes[0]["y"] - boxes[1]["y"]) < 40 and boxes[1]["x"] > boxes[0]["x"] + 300
    assert pictures.nth(0).get_attribute("src") != pictures.nth(1).get_attribute("src")
    page.get_by_role("button", name="2 x").click()
    assert [round(one.bounding_box()["width"]) for one in pictures.all()] == [2 * one[0] for one in natural]
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_the_chooser_puts_another_twin_beside_it(page: Page, site: str, trial: Any) -> None:
    page.goto(address_of(site, trial))
    expect(page.locator("#column-1")).to_contain_text("xray-report-swapped")
    page.locator("#beside").select_option("xray-black")
    page.get_by_role("button", name="Show").click()
    expect(page.locator("#column-1")).to_contain_text("xray-black")
    expect(page.locator(".verdict")).to_contain_text("a black image")
    page.get_by_role("link", name="Swap sides").click()
    expect(page.locator("#column-0")).to_contain_text("xray-black")
    expect(page.locator("#column-1")).to_contain_text("xray-report")


def test_another_model_is_a_click_away(page: Page, site: str, trial: Any) -> None:
    page.goto(address_of(site, trial))
    page.get_by_role("link", name="Never looks").click()
    expect(page.get_by_role("heading", name="Answer of Never looks").first).to_be_visible()


def test_the_page_is_accessible_and_fits_wide_and_narrow(
    page: Page, site: str, trial: Any, axe: Callable[..., None], shots: Callable[..., None]
) -> None:
    page.goto(address_of(site, trial))
    axe(page)
    shots(page, "trial")
