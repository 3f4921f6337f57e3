"""The report in a browser: offline, at both widths, in print, in the dark, and read by axe."""

from __future__ import annotations

from pathlib import Path

import pytest

pytestmark = pytest.mark.browser
WIDTHS = (1280, 390)
SCREENSHOTS = Path(__file__).parent / "screenshots"


@pytest.fixture
def report(run: Path) -> Path:
    return run / "report.html"


def open_all(page) -> None:
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")


def test_it_opens_offline_asks_for_nothing_and_is_no_wider_than_the_window(browser, report: Path) -> None:
    for width in WIDTHS:
        context = browser.new_context(viewport={"width": width, "height": 900}, offline=True)
        page = context.new_page()
        problems: list[str] = []
        requests: list[str] = []
        page.on("console", lambda message, seen=problems: seen.append(message.text))
        page.on("pageerror", lambda error, seen=problems: seen.append(str(error)))
        page.on("requestfailed", lambda request, seen=problems: seen.append(request.url))
        page.on("request", lambda request, seen=requests: seen.append(request.url))
        page.goto(report.as_uri())
        open_all(page)
        assert problems == []
        assert {url.split(":", 1)[0] for url in requests} <= {"file", "data"}
        assert [url for url in requests if url.startswith("file:")] == [report.as_uri()]
        assert page.evaluate("document.documentElement.scrollWidth") == width
        assert page.evaluate("[...document.images].every(one => one.complete && one.naturalWidth > 0)")
        assert page.evaluate("getComputedStyle(document.querySelector('td.number')).textAlign") == "right"
        assert page.evaluate("getComputedStyle(document.querySelector('thead th')).position") == "sticky"
        context.close()


def test_axe_finds_nothing_serious_in_the_light_or_in_the_dark(page, report: Path, axe) -> None:
    page.goto(report.as_uri())
    open_all(page)
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        axe(page)
        SCREENSHOTS.mkdir(exist_ok=True)
        page.screenshot(path=SCREENSHOTS / f"report-{scheme}.png")  # of the window: the page is very long
    ink, paper = page.evaluate(
        "[getComputedStyle(document.body).color, getComputedStyle(document.body).backgroundColor]"
    )
    assert ink != paper


def test_the_verdict_on_the_model_that_uses_the_image_least_is_the_first_and_one_click_leads_to_it(
    page, report: Path
) -> None:
    page.goto(report.as_uri())
    models = page.locator("h3:has-text('xray') + .summary + .brief > li")
    said = [" ".join(one.inner_text().split()) for one in models.all()]
    assert [one.split(":")[0] for one in said] == [
        "Cannot tell First option", "Cannot tell Never looks", "Shown Looks at the image",
    ]  # fmt: skip
    models.nth(1).locator("a").click()
    card = page.locator(":target")
    assert card.locator("h4").inner_text() == "Never looks"
    assert card.locator("h4").is_visible()


def test_a_click_keeps_the_data_of_a_figure(page, report: Path, run: Path, tmp_path: Path) -> None:
    page.goto(report.as_uri())
    with page.expect_download() as started:
        page.get_by_role("link", name="figures/flips.csv").click()
    assert started.value.suggested_filename == "flips.csv"
    started.value.save_as(tmp_path / "flips.csv")
    assert (tmp_path / "flips.csv").read_bytes() == (run / "figures" / "flips.csv").read_bytes()


PAPERS = {"A4": (210, 297), "Letter": (215.9, 279.4)}


@pytest.mark.parametrize("paper", PAPERS)
def test_on_paper_nothing_is_cut_off(page, report: Path, tmp_path: Path, paper: str) -> None:
    """As it is laid out for print, at the width of a page less its margins: nothing reaches over the edge, no figure is
    higher than a page, and what stands for colour stands there in words."""
    width, height = ((mm - margin) / 25.4 * 96 for mm, margin in zip(PAPERS[paper], (26, 30), strict=True))
    page.goto(report.as_uri())
    page.emulate_media(media="print", color_scheme="dark")
    page.set_viewport_size({"width": int(width), "height": int(height)})
    open_all(page)
    over = page.evaluate(
        "[...document.querySelectorAll('main *, header *')].filter(one => one.getBoundingClientRect().right >"
        " document.documentElement.clientWidth + 1).map(one => one.outerHTML.slice(0, 120))"
    )
    assert over == []
    tallest = page.evaluate(
        "Math.max(...[...document.querySelectorAll('.plot:not(.tall) img')].map(one => one.height))"
    )
    assert 0 < tallest < height
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)", "no dark paper"
    assert page.evaluate("getComputedStyle(document.querySelector('thead')).display") == "table-header-group"
    assert {"avoid"} == set(
        page.evaluate("[...document.querySelectorAll('tr')].map(one => getComputedStyle(one).breakInside)")
    )
    content = page.pdf(path=tmp_path / "report.pdf", format=paper, prefer_css_page_size=True)
    assert content.startswith(b"%PDF") and content.count(b"/Type /Page\n") > 5
