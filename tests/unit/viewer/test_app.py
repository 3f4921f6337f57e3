"""The app and the command that serves it: what opens, what ends, and what it says where it can't."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import textwrap

import pytest

from overread_viewer.options import is_loopback
from web.wire import serving


def serve(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "overread", "serve", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_an_unknown_address_gets_a_page_that_says_so(client):
    answer = client.get("/nothing-here")
    assert answer.status_code == 404
    assert "no such page" in answer.text
    assert 'href="/"' in answer.text


def test_what_the_run_has_not_is_named(client):
    answer = client.get("/studies?dataset=ct")
    assert answer.status_code == 404
    assert "no dataset &#39;ct&#39;; there are: mri, xray" in answer.text


def test_a_parameter_that_is_no_number_is_named(client):
    answer = client.get("/studies?page=x")
    assert answer.status_code == 400
    assert "page: " in answer.text and "integer" in answer.text


def test_a_damaged_file_is_named_and_other_pages_go_on(client_of, results, tmp_path):
    import shutil

    shutil.copytree(results, tmp_path / "small")
    client = client_of(tmp_path / "small")
    (tmp_path / "small" / "mri" / "questions.jsonl").write_text("{}\n")
    answer = client.get("/studies?dataset=mri")
    assert answer.status_code == 500
    assert "questions.jsonl:1: " in answer.text and "Traceback" not in answer.text
    assert client.get("/studies?dataset=xray").status_code == 200


def test_every_page_that_is_served_is_in_one_list(client):
    """Nothing of the framework's own: no schema, no interactive documentation."""
    for path in ("/openapi.json", "/docs", "/redoc"):
        assert client.get(path).status_code == 404
    assert [one for one in client.app.state.navigation if client.get(one[0]).status_code != 200] == []


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST.", "127.0.0.1", "127.9.9.9", "::1"])
def test_loopback_is_known_by_its_form(host):
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "10.0.0.1", "localhost.example", "127.0.0.1.example", "::2"])
def test_nothing_else_is_loopback(host):
    assert not is_loopback(host)


# -- the command ------------------------------------------------------------------------------------------------------


def test_it_prints_its_address_answers_and_ends_on_ctrl_c(results):
    with serving(results) as wire:
        status, text = wire.ask("GET /")
        assert status == 200 and "A small made study" in text
        wire.process.send_signal(signal.SIGINT)
        said, _ = wire.process.communicate(timeout=100)
        assert wire.process.returncode == 0
        assert said == "ended\n"


def test_a_port_that_is_taken_is_named(results):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = serve(str(results), "--port", port)
    assert done.returncode == 1
    assert f"127.0.0.1:{port}: can't listen there" in done.stderr and "--port" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("host", ["192.0.2.1", "no-such-host.invalid"])
def test_a_host_that_is_not_this_machine_is_named(results, tmp_path, host):
    """An address of the documentation's range, and a name that can't exist."""
    file = tmp_path / "password"
    file.write_text("correct horse battery")
    file.chmod(0o600)
    done = serve(str(results), "--host", host, "--port", "0", "--password-file", str(file))
    assert done.returncode == 1
    assert host in done.stderr and "Traceback" not in done.stderr


def test_a_folder_that_is_no_run_is_one_line(tmp_path):
    done = serve(str(tmp_path))
    assert done.returncode == 1
    assert done.stderr == f"overread: {tmp_path}: not the folder of a run: it has no study.json; give results/<name>\n"


def test_without_the_viewers_packages_it_says_how_to_install_them(results):
    """In an interpreter where fastapi can't be imported."""
    code = f"""
        import sys
        sys.modules["fastapi"] = None
        sys.argv = ["overread", "serve", {str(results)!r}]
        from overread.cli import main
        main()
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert "pip install -e .[web]" in done.stderr and "fastapi" in done.stderr
    assert "Traceback" not in done.stderr
