"""Compare in a browser: from the first page to the trials that flipped."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.browser


def moves(page) -> list[float]:
    return [float(text) for text in page.locator(".flip .move b").all_inner_texts()]


def test_from_the_first_page_to_the_flipped_trials_by_clicks_alone(page, site, run: Path, axe, shots):
    """Compare, then the flip rate of a model: the page has the table's numbers, and the largest moves first."""
    page.goto(site)
    page.get_by_role("link", name="Compare", exact=True).first.click()
    axe(page)
    shots(page, "compare-start")
    page.get_by_label("Dataset").get_by_role("link", name="xray").click()
    row = page.get_by_role("row", name=re.compile("^swap-without-report"))
    row.locator("a").nth(2).click()  # first, blind and looks, by id: blind, first, looks
    with (run / "tables" / "flips.csv").open(newline="") as file:
        wanted = next(
            one
            for one in csv.DictReader(file)
            if (one["dataset"], one["model"], one["comparison"], one["group"])
            == ("xray", "looks", "swap-without-report", "all")
        )
    facts = page.locator(".facts").inner_text()
    assert f"{100 * float(wanted['flip_rate']):.1f}" in facts
    assert f"[{100 * float(wanted['low']):.1f}, {100 * float(wanted['high']):.1f}]" in facts
    assert f"of {int(wanted['pairs']):,}" in facts
    found = moves(page)
    assert len(found) > 3 and found == sorted(found, reverse=True)
    axe(page)
    shots(page, "compare-flips")


def test_pictures_of_both_images_are_shown(page, site):
    page.goto(f"{site}/compare?dataset=xray&a=looks:xray&b=looks:xray-swapped")
    images = page.locator(".flip").first.locator("img")
    assert images.count() == 2
    for place in range(2):
        image = images.nth(place)
        image.scroll_into_view_if_needed()
        page.wait_for_function("one => one.complete && one.naturalWidth > 100", arg=image.element_handle())
    assert images.nth(0).get_attribute("src") != images.nth(1).get_attribute("src")


def test_a_filter_and_a_direction_narrow_the_list_to_what_they_say(page, site):
    page.goto(f"{site}/compare?dataset=xray&a=looks:xray&b=looks:xray-swapped")
    page.get_by_role("link", name=re.compile("Correct to wrong")).click()
    count = int(re.search(r"of ([\d,]+)", page.locator(".listed").inner_text())[1].replace(",", ""))
    assert str(count) in page.get_by_role("link", name=re.compile("Correct to wrong")).inner_text()
    for flip in page.locator(".flip").all():
        assert flip.locator("figcaption .chip").all_inner_texts() == ["correct", "wrong"]
    page.get_by_label("Finding").select_option("Edema")
    page.get_by_role("button", name="Apply").click()
    assert page.locator(".flip").count() <= count
    for flip in page.locator(".flip").all():
        assert "Edema" in flip.locator("header p").inner_text()
    assert "direction=right-wrong" in page.url and "topic=Edema" in page.url


def test_a_pair_leads_to_its_trial(page, site):
    page.goto(f"{site}/compare?dataset=xray&a=looks:xray&b=looks:xray-swapped")
    link = page.locator(".flip").first.get_by_role("link", name="trial", exact=True).nth(1)
    assert re.search(r"/trial/xray/xray-swapped/1/[0-9a-f]{16}\?model=looks$", link.get_attribute("href"))
    with page.expect_response(lambda one: "/trial/" in one.url) as reply:
        link.click()
    assert reply.value.status == 200


def test_two_models_under_one_setting_by_the_lists(page, site, axe):
    page.goto(f"{site}/compare?dataset=mri")
    page.get_by_label("A", exact=True).select_option("looks:single-slice")
    page.get_by_label("B", exact=True).select_option("blind:single-slice")
    page.get_by_role("button", name="Compare").click()
    assert "single-slice" in page.locator(".outcome h2").inner_text()
    assert page.locator(".flip").count() > 0
    assert page.get_by_text("on scales of their own").is_visible()
    axe(page)


def test_arms_that_differ_in_both_are_refused_beside_the_choice(page, site, console):
    page.goto(f"{site}/compare?dataset=mri&a=looks:single-slice&b=blind:swapped")
    assert "differ in model and in setting" in page.get_by_role("alert").inner_text()
    assert page.get_by_label("B", exact=True).input_value() == "blind:swapped"
    console.clear()  # the page is meant to be a 400


def test_the_list_downloads_as_csv(page, site):
    page.goto(f"{site}/compare?dataset=xray&a=looks:xray&b=looks:xray-swapped")
    first = moves(page)[0]
    with page.expect_download() as download:
        page.get_by_role("link", name="Download as CSV").click()
    with Path(download.value.path()).open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert f"{abs(float(rows[0]['margin_change'])):.2f}" == f"{first:.2f}"
