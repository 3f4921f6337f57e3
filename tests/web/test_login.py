"""The password, asked of a browser that comes from another machine; without TLS it says less of a form's origin."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from web.conftest import ARGUMENTS, CHROMIUM

pytestmark = pytest.mark.browser


def test_who_comes_by_the_machines_name_signs_in_and_then_sees_the_study(run: Path, serving, tmp_path: Path):
    password = tmp_path / "password"
    password.write_text("a long password\n")
    password.chmod(0o600)
    name = socket.gethostname().lower()
    from playwright.sync_api import sync_playwright

    with serving(run, "--host", "0.0.0.0", "--password-file", str(password)) as address, sync_playwright() as play:
        port = address.rsplit(":", 1)[1]
        # Not a loopback address to the browser, which trusts those as it trusts TLS.
        arguments = [*ARGUMENTS, f"--host-resolver-rules=MAP {name} 127.0.0.1"]
        browser = play.chromium.launch(executable_path=CHROMIUM, args=arguments)
        page = browser.new_page()
        page.goto(f"http://{name}:{port}/studies?dataset=mri")
        page.get_by_label("Password").fill("wrong")
        page.keyboard.press("Enter")
        page.get_by_text("not the password").wait_for()
        page.get_by_label("Password").fill("a long password")
        page.keyboard.press("Enter")
        page.get_by_role("heading", name="Studies").wait_for()
        assert page.url == f"http://{name}:{port}/studies?dataset=mri"
        browser.close()
