"""A small finished run, a real server on it, and a real browser: what the tests of pages share.

run        its folder, results/small (read only: copy it to change it); its config is `run_config`
site       the address of a server on it, http://127.0.0.1:<port>
serving    a context manager that serves any folder: `with serving(results, "--study", file) as url:`
page       a Chromium page; the test fails if it logged an error. `console` is what it logged: clear what is meant
axe        axe(page): no serious or critical finding at 1280 and at 390 pixels
shot       shot(page, name): the whole page, as screenshots/name.png
shots      shots(page, name): the same at both widths, light and dark
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

SCREENSHOTS = Path(__file__).parent / "screenshots"
CHROMIUM = "/usr/bin/chromium"
WIDE, NARROW = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
ARGUMENTS = [
    "--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--no-first-run", "--force-color-profile=srgb",
]  # fmt: skip


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made once, also for several workers."""
    from web.small import shared_run

    base = tmp_path_factory.getbasetemp()
    return shared_run((base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "viewer")


@pytest.fixture(scope="session")
def run_config(run: Path) -> Path:
    return run.parents[1] / "config" / "study.yaml"


@contextmanager
def _serving(results: Path, *arguments: str) -> Iterator[str]:
    process = subprocess.Popen(
        [sys.executable, "-u", "-m", "overread", "serve", str(results), "--port", "0", *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert process.stdout is not None
    said = ""
    try:
        for line in process.stdout:
            said += line
            if found := re.search(r"is at (http://\S+)/ ", line):
                yield found[1]
                break
        else:
            pytest.fail(f"the server did not start:\n{said}")
    finally:
        process.terminate()
        try:
            said += process.communicate(timeout=10)[0]
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        assert "Traceback" not in said, said


@pytest.fixture(scope="session")
def serving() -> Callable[..., AbstractContextManager[str]]:
    return _serving


@pytest.fixture(scope="session")
def site(run: Path, run_config: Path) -> Iterator[str]:
    with _serving(run, "--config", str(run_config)) as address:
        yield address


@pytest.fixture(scope="module")
def browser() -> Iterator[object]:
    """Of one file: as long as Playwright runs, no other test of the process can have an event loop."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield chromium
        chromium.close()


@pytest.fixture
def console() -> list[str]:
    return []


@pytest.fixture
def page(browser, console: list[str]) -> Iterator[object]:
    context = browser.new_context(viewport=WIDE, reduced_motion="reduce")
    page = context.new_page()
    page.on("console", lambda one: console.append(f"{one.text} ({page.url})") if one.type == "error" else None)
    page.on("pageerror", lambda error: console.append(f"{error} ({page.url})"))
    yield page
    context.close()
    assert not console, console


@pytest.fixture(scope="session")
def axe() -> Callable[[object], None]:
    from axe_playwright_python.sync_playwright import Axe

    def check(page) -> None:
        """No serious or critical finding, at either width; the page is left at the first."""
        for size in (NARROW, WIDE):
            page.set_viewport_size(size)
            found = Axe().run(page).response["violations"]
            bad = [
                f"{one['id']}: {one['help']}: {[node['html'][:200] for node in one['nodes'][:3]]}"
                for one in found
                if one["impact"] in ("serious", "critical")
            ]
            assert not bad, f"{page.url} at {size['width']}: {bad}"
            assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), (
                f"{page.url} scrolls sideways at {size['width']}"
            )

    return check


@pytest.fixture(scope="session")
def shot() -> Callable[[object, str], Path]:
    def take(page, name: str) -> Path:
        SCREENSHOTS.mkdir(exist_ok=True)
        path = SCREENSHOTS / f"{name}.png"
        page.screenshot(path=path, full_page=True)
        return path

    return take


@pytest.fixture(scope="session")
def shots(shot) -> Callable[[object, str], None]:
    def take(page, name: str) -> None:
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            for size in (NARROW, WIDE):
                page.set_viewport_size(size)
                shot(page, f"{name}-{size['width']}-{scheme}")
        page.emulate_media(color_scheme="light")

    return take
