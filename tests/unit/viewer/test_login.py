"""The password, and who may listen where: what is asked for, what is said first, and what is refused."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from urllib.parse import urljoin

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overread_viewer.login import ACCOUNT_FAILURES, FAILURES, Login, own_path

PASSWORD = "correct horse battery"


@pytest.fixture
def guarded(client_of, results, monkeypatch):
    monkeypatch.setattr("overread_viewer.login.DELAY_SECONDS", 0.05)
    return client_of(results, host="0.0.0.0", password=PASSWORD)


def test_nothing_is_shown_without_the_password(guarded):
    for path in ("/", "/studies", "/report", "/tables/flips.csv", "/files/picture/mri/x.png", "/nothing", "/read/x"):
        answer = guarded.get(path, follow_redirects=False)
        assert answer.status_code == 303, path
        assert answer.headers["location"].startswith("/login?next="), path
    assert guarded.post("/compare").status_code == 401
    assert "small" not in guarded.get("/login").text  # not even the run's name


def test_the_password_opens_the_page_that_was_asked_for(guarded):
    answer = guarded.post("/login", data={"password": PASSWORD, "next": "/studies?dataset=mri"}, follow_redirects=False)
    assert answer.status_code == 303 and answer.headers["location"] == "/studies?dataset=mri"
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie and "samesite=lax" in cookie
    page = guarded.get("/studies")
    assert page.status_code == 200 and page.headers["cache-control"] == "no-store"
    guarded.post("/logout")
    assert guarded.get("/", follow_redirects=False).status_code == 303


def test_a_forged_cookie_opens_nothing(guarded):
    for value in ("x", "", "a.b.c", Login(PASSWORD).cookie()):  # the last is signed by another server's key
        guarded.cookies.clear()
        guarded.cookies.set("overread", value)
        assert guarded.get("/", follow_redirects=False).status_code == 303, value


def test_logout_ends_the_session_on_the_server(guarded):
    """A copy of the cookie, as a shared machine or a proxy's log keeps it, opens nothing afterwards."""
    guarded.post("/login", data={"password": PASSWORD}, follow_redirects=False)
    copy = guarded.cookies["overread"]
    assert guarded.get("/studies").status_code == 200
    guarded.post("/logout")
    guarded.cookies.clear()
    guarded.cookies.set("overread", copy)
    assert guarded.get("/studies", follow_redirects=False).status_code == 303


@pytest.mark.parametrize(
    ("proxies", "headers", "secure"),
    [
        (("testclient",), {"x-forwarded-proto": "https"}, True),
        (("testclient",), {"x-forwarded-proto": "http"}, False),
        (("testclient",), {}, False),
        ((), {"x-forwarded-proto": "https"}, False),  # anybody can write that
        (("10.0.0.9",), {"x-forwarded-proto": "https"}, False),
    ],
)
def test_the_cookie_is_secure_where_the_page_came_by_tls(client_of, results, proxies, headers, secure):
    client = client_of(results, host="0.0.0.0", password=PASSWORD, proxies=proxies)
    answer = client.post("/login", data={"password": PASSWORD}, headers=headers, follow_redirects=False)
    assert answer.status_code == 303
    assert ("secure" in [each.strip().lower() for each in answer.headers["set-cookie"].split(";")]) == secure


def test_behind_a_proxy_of_ours_each_browser_has_its_own_address(client_of, results, monkeypatch):
    monkeypatch.setattr("overread_viewer.login.DELAY_SECONDS", 0.01)
    client = client_of(results, host="0.0.0.0", password=PASSWORD, proxies=("testclient",))

    def tried(address):
        return client.post("/login", data={"password": "wrong"}, headers={"x-forwarded-for": address}).status_code

    assert [tried("6.6.6.6, 10.1.1.1") for _ in range(FAILURES + 1)] == [403] * FAILURES + [429]
    assert tried("10.1.1.2") == 403
    assert tried("7.7.7.7, 10.1.1.1") == 429, "what a browser writes itself before the proxy's word counts nothing"


def test_all_addresses_together_are_limited_too():
    login = Login(PASSWORD)
    for number in range(ACCOUNT_FAILURES):
        assert login.may_try(f"10.0.0.{number}")
        login.failed(f"10.0.0.{number}")
    assert not login.may_try("10.0.1.1")


def test_wrong_passwords_are_slow_and_soon_wait_for_their_turn_and_the_correct_one_is_let_in(guarded):
    started = time.monotonic()
    for _ in range(FAILURES):
        assert guarded.post("/login", data={"password": "wrong password"}).status_code == 403
    assert time.monotonic() - started >= FAILURES * 0.05
    answer = guarded.post("/login", data={"password": "wrong password"})
    assert answer.status_code == 429 and int(answer.headers["retry-after"]) > 0
    assert guarded.get("/", follow_redirects=False).status_code == 303
    answer = guarded.post("/login", data={"password": PASSWORD}, follow_redirects=False)
    assert answer.status_code == 303 and answer.headers["location"] == "/"


@pytest.mark.parametrize(
    "text",
    ["https://evil.example", "//evil.example", "/\\evil.example", "javascript:alert(1)", "/\r\nX: 1", "evil", ""],
)
def test_a_link_to_the_login_can_not_lead_elsewhere(text):
    assert own_path(text) == "/"


@given(st.text(alphabet="/\\\t\r\n .:@?#%evil", max_size=20))
def test_no_text_leads_from_the_login_to_another_server(text):
    here = "http://127.0.0.1:8008"
    assert urljoin(here, own_path(text)).startswith(f"{here}/")
    assert not own_path(text).startswith(("//", "/\\"))


# -- who may listen where ---------------------------------------------------------------------------------------------


def _overread(*arguments: str):
    return subprocess.run(
        [sys.executable, "-m", "overread", "serve", *arguments], capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "node7"])
def test_another_host_than_loopback_needs_a_password(results, host):
    done = _overread(str(results), "--host", host, "--port", "0")
    assert done.returncode == 1
    assert "--password-file" in done.stderr and "tunnel" in done.stderr
    assert "Traceback" not in done.stderr and "http" not in done.stdout


def test_a_password_file_that_others_can_read_or_that_is_too_short_is_refused(results, tmp_path):
    file = tmp_path / "password"
    file.write_text(f"{PASSWORD}\n")
    os.chmod(file, 0o644)
    assert "chmod 600" in _overread(str(results), "--password-file", str(file)).stderr
    os.chmod(file, 0o600)
    file.write_text("short\n")
    assert "12 letters" in _overread(str(results), "--password-file", str(file)).stderr
    assert "can't be read" in _overread(str(results), "--password-file", str(tmp_path / "none")).stderr


def test_a_server_for_others_says_what_it_exposes_before_it_opens(restricted_results, tmp_path):
    file = tmp_path / "password"
    file.write_text(f"{PASSWORD}\n")
    os.chmod(file, 0o600)
    process = subprocess.Popen(
        [sys.executable, "-u", "-m", "overread", "serve", str(restricted_results), "--host", "0.0.0.0", "--port", "0",
         "--password-file", str(file)],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    try:
        said = []
        for line in process.stdout:
            said.append(line)
            if "http://" in line:
                break
    finally:
        process.terminate()
        process.communicate(timeout=10)
    before = "".join(said[:-1])
    assert "every network" in before and "without encryption" in before
    assert "xray (RESTRICTED data): images of" in before and "mri (not restricted): images of" in before
    assert "reports" in before and PASSWORD not in before


def test_a_reader_study_shows_nothing_without_the_password_and_nothing_else_with_it(client_of, results, tmp_path):
    file = tmp_path / "readers.yaml"
    file.write_text(
        "name: fellows\ndataset: mri\nquestions: {sample: 3}\nview: flair-axial\nraters: {fellow: Dr A. Fellow}\n"
    )
    client = client_of(results, host="0.0.0.0", password=PASSWORD, readers=file)
    link = next(link for _, link in client.app.state.reader_study.links(""))
    others = ("/", "/studies", "/report", "/tables/accuracy.csv", "/compare", "/study/mri/mri-01-1", "/review")
    for path in (link, *others):
        assert client.get(path, follow_redirects=False).status_code == 303, path
    assert client.post("/login", data={"password": PASSWORD}, follow_redirects=False).status_code == 303
    assert "Dr A. Fellow" in client.get(link).text
    for path in others:
        assert client.get(path).status_code == 404, path
