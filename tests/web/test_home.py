"""The first pages in a browser: what a person who has never seen them finds, and how."""

from __future__ import annotations

import re

import pytest

pytestmark = pytest.mark.browser


def test_the_first_page_says_which_model_ignores_the_image_and_shows_one_example_in_one_click(page, site, axe, shots):
    page.goto(site)
    assert page.locator("h2").first.inner_text() == "Which model ignores the image most?"
    xray = page.locator(".ranking", has=page.get_by_role("heading", name=re.compile("^xray")))
    assert re.fullmatch(r"(First option and Never looks|Never looks and First option) ignore the image most\.",
                        xray.locator(".lead").inner_text())  # fmt: skip
    models = xray.locator(".models h4").all_inner_texts()
    assert models[-1] == "Looks at the image" and len(models) == 3
    axe(page)
    shots(page, "home")
    page.set_viewport_size({"width": 1280, "height": 900})
    blind = xray.locator("li", has=page.get_by_role("heading", name="Never looks"))
    said = blind.locator(".show strong").inner_text()
    blind.get_by_role("link", name=re.compile("An example")).click()
    assert re.search(r"/trial/xray/xray-swapped/1/[0-9a-f]{16}\?model=blind$", page.url)
    main = page.locator("main").inner_text()
    assert "Never looks" in main and said in main
    pictures = page.locator("main img")
    assert pictures.count() >= 2  # the image that was shown, and its twin
    assert len({pictures.nth(place).get_attribute("src") for place in range(pictures.count())}) >= 2


def test_the_whole_way_by_keyboard(page, site):
    """The first stop is the way past the navigation; every link shows that it has the focus."""
    page.goto(site)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.url.endswith("#main")
    page.keyboard.press("Tab")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"


def test_studies_are_filtered_sorted_and_paged_without_a_script(browser, site, axe, shots, console, page):
    context = browser.new_context(java_script_enabled=False)
    plain = context.new_page()
    plain.goto(f"{site}/studies")
    plain.get_by_label("Dataset").select_option("xray")
    plain.get_by_label("Model").select_option("looks")
    plain.get_by_label("Its answers").select_option("flips")
    plain.get_by_role("button", name="Show").click()
    assert "dataset=xray" in plain.url and "outcome=flips" in plain.url
    rows = plain.locator("tbody tr")
    assert rows.count() > 0
    for place in range(rows.count()):
        assert re.match(r"[1-9]\d* of \d+", rows.nth(place).locator("td").last.inner_text())
    context.close()
    page.goto(f"{site}/studies")
    axe(page)
    shots(page, "studies")
    page.set_viewport_size({"width": 1280, "height": 900})
    page.goto(f"{site}/studies?state=rejected")
    assert page.locator("tbody tr").count() == 2
    assert page.get_by_text("the file is cut short").count() == 2
    axe(page)
    page.locator("tbody a").first.click()
    assert "the file is cut short" in page.locator("main").inner_text()


def test_the_report_opens_with_its_style_and_nothing_is_blocked(page, site):
    """Its policy allows the style that stands in it; what is refused would be an error on the console."""
    page.goto(f"{site}/report")
    assert page.evaluate("getComputedStyle(document.querySelector('table')).fontSize") != "16px"
    assert page.locator("img").first.evaluate("one => one.complete && one.naturalWidth > 0")


def test_a_server_with_a_password_asks_once(browser, run, serving, tmp_path, axe, shot, page, console):
    file = tmp_path / "password"
    file.write_text("correct horse battery\n")
    file.chmod(0o600)
    with serving(run, "--password-file", str(file)) as site:
        page.goto(f"{site}/studies?dataset=xray")
        assert page.url.startswith(f"{site}/login")
        axe(page)
        shot(page, "login")
        page.get_by_label("Password").fill("wrong password")
        page.get_by_role("button", name="Sign in").click()
        assert page.get_by_role("alert").inner_text() == "That is not the password."
        assert all("403" in one for one in console) and len(console) == 1
        console.clear()
        page.get_by_label("Password").fill("correct horse battery")
        page.get_by_role("button", name="Sign in").click()
        assert page.url == f"{site}/studies?dataset=xray"
        page.get_by_role("button", name="Sign out").click()
        page.goto(site)
        assert page.url.startswith(f"{site}/login")
