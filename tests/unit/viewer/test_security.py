"""Attacks on the viewer, tried: each is refused, and what is asked for is not in the answer."""

from __future__ import annotations

import ipaddress
import re
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.datastructures import Headers

from overread_viewer.security import LARGEST_BODY, Hosts, same_origin
from web.wire import serving

SECRET = "the-content-of-a-file-outside"
BARS = (
    "../",
    "..%2f",
    "%2e%2e/",
    "%2e%2e%2f",
    "..%252f",
    "%252e%252e%252f",
    "....//",
    "..\\",
    "..%5c",
    "%c0%ae%c0%ae/",
)


@pytest.fixture(scope="module")
def open_run(tmp_path_factory, results):
    """A copy of the run with a secret beside it, and links in it that lead there."""
    folder = tmp_path_factory.mktemp("attacked")
    run = folder / "results" / "small"
    shutil.copytree(results, run)
    (folder / "results" / "secret.png").write_text(SECRET)
    (folder / "secret.csv").write_text(SECRET)
    (run / "tables" / "leak.csv").symlink_to(folder / "secret.csv")
    picture = next((run / "mri" / "images").glob("mri-*/pictures/*.png"))
    picture.unlink()
    picture.symlink_to(folder / "results" / "secret.png")
    return run


@pytest.fixture(scope="module")
def wire(open_run):
    with serving(open_run) as served:
        yield served


# -- paths -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bars", BARS)
def test_no_path_climbs_out_of_the_results(wire, bars):
    """In each part of each address that names something; once more than the folder is deep."""
    up = bars * 6
    for path in (
        f"/files/picture/mri/{up}secret.csv",
        f"/files/picture/{up}secret.csv",
        f"/files/series/mri/{up}secret.csv/FLAIR.nii.gz",
        f"/files/series/mri/mri-01-1/{up}secret.csv.nii.gz",
        f"/files/image/xray/{up}/frontal",
        f"/files/image/xray/xray-01-1/{up}secret.csv",
        f"/static/{up}secret.csv",
        f"/tables/{up}secret.csv",
        f"/study/mri/{up}secret.csv",
        f"/study/{up}/mri-01-1",
        f"/trial/mri/{up}/1/x",
        f"/trial/mri/swapped/1/{up}secret.csv",
        f"/{up}etc/passwd",
    ):
        status, text = wire.ask(f"GET {path}")
        assert status in (307, 400, 404, 422), (path, text[:300])
        assert SECRET not in text and "root:" not in text, path


def test_a_link_in_the_run_that_leads_out_of_it_is_not_followed(wire, open_run):
    name = next(path for path in (open_run / "mri" / "images").glob("mri-*/pictures/*.png") if path.is_symlink())
    for path in (f"/files/picture/mri/{name.relative_to(open_run / 'mri')}", "/tables/leak.csv"):
        status, text = wire.ask(f"GET {path}")
        assert status == 404 and SECRET not in text, path


def test_a_file_of_the_run_that_no_record_names_is_not_sent(wire):
    for path in ("studies.parquet", "questions.jsonl", "../study.json", "images/../questions.jsonl"):
        status, text = wire.ask(f"GET /files/picture/mri/{path}")
        assert status == 404 and '"stem"' not in text, path


# -- names, methods, sizes, headers -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "localhost.evil.example", "10.0.0.1",
             "127.0.0.1@evil.example", "evil.example/127.0.0.1", "", "127.0.0.1:port"],
)  # fmt: skip
def test_another_name_than_loopbacks_is_refused(wire, host):
    """A name of the attacker's that resolves to 127.0.0.1 would make their page ours."""
    status, text = wire.ask("GET /", host=host)
    assert status == 400
    assert "<h1>" not in text


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:9999", "127.0.0.1", "[::1]:1", "127.3.2.1"])
def test_loopbacks_own_names_are_known_whatever_the_port(host):
    """A tunnel's end may be another port."""
    assert Hosts("127.0.0.1").allowed(host)


def test_a_server_for_others_knows_its_addresses_but_no_strange_name():
    hosts = Hosts("0.0.0.0")
    assert hosts.allowed("10.1.2.3:8008") and hosts.allowed("localhost")
    assert not hosts.allowed("evil.example")
    assert Hosts("node7.cluster").allowed("node7.cluster:8008")


def test_two_host_headers_are_refused(wire):
    status, _ = wire.ask("GET /", "Host: evil.example")
    assert status == 400


@pytest.mark.parametrize("method", ["TRACE", "PUT", "DELETE", "PATCH", "OPTIONS", "CONNECT", "PROPFIND", "get"])
def test_other_methods_are_refused(wire, method):
    status, text = wire.ask(f"{method} /")
    assert status in (400, 405), text[:200]
    assert "Max-Forwards" not in text


def test_the_head_of_a_page_has_no_body(wire):
    status, text = wire.ask("HEAD /")
    assert status in (200, 405) and text.endswith("\r\n\r\n")


def test_trace_does_not_send_the_request_back(wire):
    status, text = wire.ask("TRACE /", "X-Secret: abc123")
    assert status == 405 and "abc123" not in text


def test_a_body_that_says_it_is_too_large_is_refused_before_it_is_sent(wire):
    status, _ = wire.send(
        f"POST / HTTP/1.1\r\nHost: 127.0.0.1:{wire.port}\r\nSec-Fetch-Site: same-origin\r\n"
        f"Content-Length: {LARGEST_BODY + 1}\r\nConnection: close\r\n\r\n".encode()
    )
    assert status == 413


def test_a_body_in_pieces_that_grows_too_large_is_refused(wire):
    """Without a length that could be looked at beforehand."""
    top = (
        f"POST /login HTTP/1.1\r\nHost: 127.0.0.1:{wire.port}\r\nSec-Fetch-Site: same-origin\r\n"
        "Content-Type: application/x-www-form-urlencoded\r\nTransfer-Encoding: chunked\r\n\r\n"
    ).encode()
    piece = b"2000\r\n" + b"a" * 0x2000 + b"\r\n"
    status, _ = wire.send(top, *([piece] * (LARGEST_BODY // 0x2000 + 1)))
    assert status == 413


def test_a_body_of_the_largest_size_is_taken(client):
    answer = client.post("/login", content=b"a" * LARGEST_BODY, follow_redirects=False)
    assert answer.status_code == 303  # no password is asked on loopback


def test_a_length_that_is_no_number_is_refused(wire):
    for length in ("-1", "1e3", "٣"):
        status, _ = wire.ask("POST /login", f"Content-Length: {length}", "Sec-Fetch-Site: same-origin")
        assert status == 400, length


def test_no_header_can_be_put_into_an_answer(wire):
    """By a line break in an address that a redirect repeats, or in a page's own parameters."""
    for path in ("/login?next=/%0d%0aX-Evil:%201", "/studies?text=%0d%0aX-Evil:%201", "/studies%0d%0aX-Evil:%201"):
        _, text = wire.ask(f"GET {path}")
        assert "x-evil" not in text.partition("\r\n\r\n")[0].lower(), path


@given(st.text(alphabet="localhst127.0[]:@/evi", max_size=24))
def test_only_a_name_that_is_loopbacks_own_is_known_on_loopback(text):
    """By another parser of addresses than the guard's own."""
    if Hosts("127.0.0.1").allowed(text):
        name = re.fullmatch(r"(\[[0-9a-f:.]+\]|[^:@/\[\]]+)(:\d*)?", text)
        assert name is not None
        bare = name[1].strip("[]").rstrip(".")
        assert bare == "localhost" or ipaddress.ip_address(bare).is_loopback


# -- other sites ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "allowed"),
    [
        ({"sec-fetch-site": "same-origin"}, True),
        (
            {"sec-fetch-site": "same-origin", "origin": "http://evil.example"},
            True,
        ),  # what a script can't forge goes first
        ({"sec-fetch-site": "cross-site"}, False),
        ({"sec-fetch-site": "same-site"}, False),  # another port of localhost
        ({"sec-fetch-site": "none"}, False),
        ({"sec-fetch-site": "cross-site", "origin": "http://127.0.0.1:8008"}, False),
        ({"origin": "http://127.0.0.1:8008"}, True),
        ({"origin": "http://127.0.0.1:8009"}, False),
        ({"origin": "http://evil.example"}, False),
        ({"origin": "null"}, False),
        ({"origin": "http://127.0.0.1:8008.evil.example"}, False),
        ({}, False),
    ],
)
def test_a_form_is_taken_from_the_servers_own_pages_alone(headers, allowed):
    assert same_origin(Headers({"host": "127.0.0.1:8008", **headers})) is allowed


def test_a_form_of_another_site_changes_nothing(client):
    answer = client.post("/logout", headers={"sec-fetch-site": "cross-site", "origin": "http://evil.example"})
    assert answer.status_code == 403
    assert "set-cookie" not in answer.headers


# -- what a browser may do with an answer ------------------------------------------------------------------------------


def test_every_answer_forbids_scripts_of_others_framing_and_guessing(client, wire):
    for path in ("/", "/studies", "/nothing", "/static/site.css", "/report"):
        headers = client.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy and "base-uri 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "same-origin"
    _, text = wire.ask("GET /", host="evil.example")
    assert "content-security-policy" in text.lower()  # a refusal too
    assert "\r\nserver:" not in text.lower()


def test_the_report_may_use_its_own_style_and_no_script(client):
    policy = client.get("/report").headers["content-security-policy"]
    assert "style-src 'sha256-" in policy
    assert "'unsafe-inline'" not in policy


def test_pages_of_a_restricted_run_say_so_and_are_not_kept(client_of, restricted_results):
    client = client_of(restricted_results)
    for path in ("/", "/studies", "/studies?dataset=mri", "/nothing"):
        answer = client.get(path)
        assert "Restricted data" in answer.text and "(xray)" in answer.text, path
        assert answer.headers["cache-control"] == "no-store", path
    for path in ("/report", "/tables/flips.csv"):
        assert client.get(path).headers["cache-control"] == "no-store", path


def test_pages_of_an_open_run_have_no_banner(client):
    answer = client.get("/")
    assert "Restricted data" not in answer.text
    assert answer.headers["cache-control"] == "private, no-cache"


def test_a_defect_shows_nothing_of_itself(restricted_results):
    """Neither the traceback nor a value of it; and the answer is guarded like every other."""
    from starlette.testclient import TestClient

    from overread_viewer.app import create_app
    from overread_viewer.options import Options

    app = create_app(Options(restricted_results))
    app.add_api_route("/defect", lambda: {}["the-patient's-name"])
    client = TestClient(app, base_url="http://127.0.0.1", raise_server_exceptions=False)
    answer = client.get("/defect")
    assert answer.status_code == 500
    assert "patient" not in answer.text and "Traceback" not in answer.text
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert answer.headers["cache-control"] == "no-store"


# -- text of others ---------------------------------------------------------------------------------------------------

EVIL = "<script>window.hit=1</script><img src=x onerror=window.hit=1>\"'><svg onload=window.hit=1>"


def test_script_in_names_reports_and_questions_is_text(client_of, tmp_path, results):
    """In everything that a source or a model writes: it is shown as it is written, and is no element."""
    run = tmp_path / "small"
    shutil.copytree(results, run)
    _poison(run)
    client = client_of(run)
    pages = [
        "/",
        "/studies",
        f"/studies?text={EVIL}",
        "/studies?state=rejected",
        "/study/xray/evil%3Cscript%3E",
        f"/{EVIL}",
    ]
    shown = 0
    for path in pages:
        text = client.get(path).text
        assert "<script>window" not in text and "<img src=x" not in text and "<svg onload" not in text, path
        shown += "&lt;script&gt;" in text
    assert shown >= 3


def _poison(run: Path) -> None:
    """A study, its report, a question and a reason for rejection that hold markup."""
    from overread.core.records import Question, read_questions, read_studies, write_questions, write_studies

    studies = read_studies(run / "xray" / "studies.parquet", with_problems=True)
    good = studies[0]
    evil = good.model_copy(
        update={"study": "evil<script>", "patient": EVIL, "report": {"findings": EVIL}, "labels": {EVIL: "positive"}}
    )
    broken = good.model_copy(update={"study": f"x{EVIL.replace('/', '')}", "problem": EVIL})
    write_studies([*studies, evil, broken], run / "xray" / "studies.parquet")
    asked = Question(
        study=evil.study,
        patient=EVIL,
        stem=EVIL,
        options=(EVIL, "no"),
        answer=EVIL,
        topic=EVIL,
        evidence=EVIL,
        origin=EVIL,
    )
    write_questions([*read_questions(run / "xray" / "questions.jsonl"), asked], run / "xray" / "questions.jsonl")


def test_filters_are_values_and_no_language(client):
    """Quotes, wildcards and operators of query languages find nothing, and break nothing."""
    for value in (
        "' OR '1'='1",
        "x'; DROP TABLE studies; --",
        '" or ""="',
        "%",
        "*",
        ".*",
        "1 UNION SELECT *",
        "{{7*7}}",
        "\x00",
    ):
        for name in ("text", "patient", "label"):
            answer = client.get("/studies", params={name: value})
            assert answer.status_code == 200
            if name != "text" or value not in ("%", "*", ".*"):
                assert "No study passes" in answer.text, (name, value)
    for name in ("dataset", "model"):
        assert client.get("/studies", params={name: "' OR '1'='1"}).status_code == 404
    for name in ("state", "outcome", "order", "page"):
        assert client.get("/studies", params={name: "' OR '1'='1"}).status_code == 400
