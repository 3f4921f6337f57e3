from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from data.endpoint_calls import QUICK, calls, echo, send
from data.openai_server import OpenaiServer, Status
from overread.backends.transport.asking import answers
from overread.backends.transport.client import ChatClient, Failure
from overread.core.errors import BadInput
from overread.core.guard import Resolve, address, clear, is_loopback


def names(**known: Sequence[str]) -> Resolve:
    """A name service that knows these names (with _ for a dot) and addresses written as numbers."""

    def resolve(host: str, port: int) -> Sequence[str]:
        if host.replace(".", "_").replace("-", "_") in known:
            return known[host.replace(".", "_").replace("-", "_")]
        try:
            return [str(entry[4][0]) for entry in socket.getaddrinfo(host, port, flags=socket.AI_NUMERICHOST)]
        except OSError as error:
            raise OSError("no such name") from error

    return resolve


@pytest.mark.parametrize(
    ("endpoint", "loopback"),
    [
        ("http://127.0.0.1:8000/v1", True),
        ("http://127.45.6.7/v1", True),
        ("http://[::1]:8000/v1", True),
        ("http://[::ffff:127.0.0.1]:8000/v1", True),
        ("https://127.0.0.1/v1", True),
        ("http://localhost:8000/v1", True),
        ("http://LocalHost.:8000/v1", True),
        ("http://0.0.0.0:8000/v1", False),
        ("http://10.0.0.1:8000/v1", False),
        ("http://[2001:db8::1]:8000/v1", False),
        ("http://[::ffff:10.0.0.1]/v1", False),
        ("http://localhost.example.org/v1", False),
        ("http://127.0.0.1.example.org/v1", False),
        ("http://both.example.org/v1", False),
        ("http://nowhere.example.org/v1", False),
    ],
)
def test_loopback_is_what_every_address_of_the_host_is(endpoint: str, loopback: bool) -> None:
    resolve = names(
        localhost=["127.0.0.1", "::1"],
        localhost_example_org=["203.0.113.7"],
        both_example_org=["127.0.0.1", "203.0.113.7"],
    )
    assert is_loopback(endpoint, resolve) is loopback


def test_a_localhost_that_resolves_elsewhere_is_not_loopback() -> None:
    resolve = names(localhost=["203.0.113.7"])
    with pytest.raises(BadInput, match=r"UCSF is restricted and http://localhost:8000/v1 is not on this machine"):
        clear("http://localhost:8000/v1", restricted=True, what="UCSF", resolve=resolve)
    assert not clear("http://localhost:8000/v1", restricted=False, resolve=resolve).loopback


@pytest.mark.parametrize(
    ("attested", "cleared"),
    [
        ("https://llm.hospital.example/v1", True),
        ("https://LLM.hospital.example:443/v1/", True),
        ("https://llm.hospital.example/v2", False),
        ("https://llm.hospital.example:8443/v1", False),
        ("http://llm.hospital.example/v1", False),
        ("https://hospital.example/v1", False),
    ],
)
def test_an_attestation_is_for_one_endpoint_however_it_is_written(attested: str, cleared: bool) -> None:
    resolve = names(llm_hospital_example=["203.0.113.7"])
    endpoint = "https://llm.hospital.example/v1"
    if cleared:
        assert not clear(endpoint, restricted=True, attested=[attested], resolve=resolve).loopback
    else:
        with pytest.raises(BadInput, match="nothing was sent"):
            clear(endpoint, restricted=True, attested=[attested], resolve=resolve)


@pytest.mark.parametrize(
    "endpoint",
    [
        "http://user:hunter2@127.0.0.1/v1",
        "http://127.0.0.1@evil.example/v1",
        "http://evil.example\\@127.0.0.1/v1",
        "ftp://127.0.0.1/v1",
        "127.0.0.1:8000/v1",
        "http:///v1",
        "http://127.0.0.1:99999/v1",
        "http://[::1/v1",
        "http://127.0.0.1/v1?to=evil.example",
        "http://ev il.example/v1",
    ],
)
def test_what_is_no_plain_address_is_refused(endpoint: str) -> None:
    with pytest.raises(BadInput) as caught:
        address(endpoint)
    assert "hunter2" not in str(caught.value)


def test_a_name_that_comes_to_mean_another_machine_gets_nothing() -> None:
    """Cleared while it was loopback, looked up again for the request."""
    found = iter([["127.0.0.1"], ["203.0.113.7"]])

    def resolve(host: str, port: int) -> Sequence[str]:
        return next(found)

    with OpenaiServer(echo) as server:
        with pytest.raises(BadInput, match="nothing was sent"):
            send(server, calls(1), endpoint=f"http://reader.test:{server.port}/v1", resolve=resolve)
        assert not server.asked


def test_a_loopback_name_is_reached_at_the_address_that_was_checked() -> None:
    resolve = names(reader_test=["127.0.0.1"])
    with OpenaiServer(echo) as server:
        outcomes, _ = send(server, calls(1), endpoint=f"http://reader.test:{server.port}/v1", resolve=resolve)
        assert server.asked[0].headers["host"] == f"reader.test:{server.port}"
    assert outcomes["key-0"].text == "SAY 0."


def test_redirects_are_not_followed() -> None:
    with OpenaiServer(echo) as other:
        to = {"location": f"{other.endpoint}/chat/completions"}
        with OpenaiServer(lambda asked: Status(307, headers=to)) as server:
            outcomes, _ = send(server, calls(1))
        assert isinstance(outcomes["key-0"], Failure)
        assert "redirects are not followed" in outcomes["key-0"].reason
        assert not other.asked


@contextmanager
def listener() -> Iterator[tuple[int, list[bytes]]]:
    """A port, and the first bytes of each connection to it; each is closed at once."""
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def listen() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                with connection:
                    connection.settimeout(5)
                    heard.append(connection.recv(1000))

        thread = threading.Thread(target=listen, daemon=True)
        thread.start()
        yield listening.getsockname()[1], heard
        listening.shutdown(socket.SHUT_RDWR)
    thread.join(5)


def proxied(monkeypatch: pytest.MonkeyPatch, port: int) -> None:
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{port}")


def test_proxies_from_the_environment_are_not_used_for_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    with listener() as (port, heard), OpenaiServer(echo) as server:
        proxied(monkeypatch, port)
        outcomes, _ = send(server, calls(3))
    assert len(outcomes) == 3
    assert all(not isinstance(one, Failure) for one in outcomes.values())
    assert heard == []


@pytest.mark.parametrize(("restricted", "through_the_proxy"), [(False, True), (True, False)])
def test_a_proxy_never_reads_restricted_data(
    restricted: bool, through_the_proxy: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Plain http to an attested endpoint: the proxy would see every word. (The name resolves nowhere.)"""
    monkeypatch.setenv("OPENAI_API_KEY", "a-key")
    endpoint = "http://llm.hospital.invalid/v1"
    with listener() as (port, heard):
        proxied(monkeypatch, port)
        to = clear(endpoint, restricted=restricted, attested=[endpoint], resolve=names())
        client = ChatClient(to, "model", {}, patience=QUICK)
        outcomes = [outcome for _, outcome in answers(client, calls(1))]
    assert isinstance(outcomes[0], Failure)
    assert bool(heard) is through_the_proxy
