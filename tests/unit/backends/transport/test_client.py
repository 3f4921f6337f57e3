"""Faults of a real server on loopback: survived, with nothing lost, nothing sent twice after success, bounded tries."""

from __future__ import annotations

import itertools
import json
import logging
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from data.endpoint_calls import QUICK, calls, echo, send
from data.openai_server import (
    Asked,
    Completion,
    Drip,
    Faults,
    Happening,
    OpenaiServer,
    Raw,
    Reset,
    Stall,
    Status,
    content_of,
)
from overread.backends.transport.asking import answers
from overread.backends.transport.client import Call, ChatClient, Failure, Patience
from overread.backends.transport.faults import BadReply, retry_after
from overread.backends.transport.replies import Reply
from overread.core.errors import BadInput
from overread.core.guard import clear


def in_capitals(reply: Reply) -> None:
    if reply.text != reply.text.upper() or not reply.text or reply.finish_reason != "stop":
        raise BadReply("not in capitals")


FAULTS: dict[str, Happening] = {
    "429": Status(429, {"code": "rate_limit_exceeded"}),
    "429 with Retry-After": Status(429, headers={"retry-after": "0.1"}),
    "408": Status(408),
    "500": Status(500),
    "502 without JSON": Status(502),
    "503": Status(503, headers={"retry-after": "0"}),
    "reset before the answer": Reset(mid_body=False),
    "reset in the middle of the body": Reset(),
    "no answer in time": Stall(30.0),
    "an answer that never ends": Drip(30.0),
    "an error page with status 200": Raw(b"<html>busy</html>", "text/html"),
    "half of the body": Raw(b'{"choices": [{"message": {"content": "SA'),
    "a number that is none": Raw(b'{"choices": [], "usage": {"prompt_tokens": NaN}}'),
    "a bad reply": Completion("say it small"),
    "an empty reply": Completion("", finish_reason="length"),
    "no choice": Raw(b'{"choices": []}'),
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_fault_is_survived_and_nothing_is_sent_twice_after_success(fault: Happening) -> None:
    script = Faults(echo, {"say 3.": (fault, fault)})
    began = time.monotonic()
    with OpenaiServer(script) as server:
        outcomes, client = send(
            server, calls(12, in_capitals), timeout=1.0 if isinstance(fault, Stall | Drip) else 30.0
        )
        counts = {content_of(call.messages): call.key for call in calls(12)}
        asked = {counts[content]: times for content, times in server.counts.items()}
        in_full = dict(server.answered)
    assert {key: one.text for key, one in outcomes.items() if isinstance(one, Reply)} == {
        f"key-{n}": f"SAY {n}." for n in range(12)
    }
    assert asked == {f"key-{n}": 3 if n == 3 else 1 for n in range(12)}
    assert client.sent == 14
    assert time.monotonic() - began < 25.0, "waited longer than a try may take"
    assert sum(client.faults.values()) == 2
    if not isinstance(fault, Completion):
        assert set(in_full.values()) == {1}


def test_different_faults_one_after_the_other_are_survived() -> None:
    faults = [Status(500), Reset(), Completion("small"), Status(503)]
    with OpenaiServer(Faults(echo, {"say 0.": faults})) as server:
        outcomes, _ = send(server, calls(1, in_capitals))
        assert server.counts.total() == 5
    assert isinstance(outcomes["key-0"], Reply)


def test_tries_are_bounded_and_the_others_are_not_held_up() -> None:
    script = Faults(echo, {"say 1.": [Status(500, {"type": "server_error"})] * 100})
    with OpenaiServer(script) as server:
        outcomes, _ = send(server, calls(6), tries=4)
        assert server.counts[content_of(calls(6)[1].messages)] == 4
    assert outcomes.pop("key-1") == Failure("status 500, server_error (4 tries)")
    assert all(isinstance(one, Reply) for one in outcomes.values())


def test_replies_that_are_no_good_are_bounded_on_their_own() -> None:
    with OpenaiServer(lambda asked: Completion("small")) as server:
        outcomes, _ = send(server, calls(1, in_capitals), tries=9, bad_replies=2)
        assert server.counts.total() == 2
    assert outcomes["key-0"] == Failure("not in capitals (2 tries)")


def test_the_back_off_doubles_and_is_never_shorter_than_half_of_it() -> None:
    with OpenaiServer(lambda asked: Status(500)) as server:
        send(server, calls(1), tries=4, first_wait=0.1, longest_wait=10.0)
        waits = [after - before for before, after in itertools.pairwise(server.times)]
    assert len(waits) == 3
    for wait, whole in zip(waits, (0.1, 0.2, 0.4), strict=True):
        assert wait >= 0.5 * whole


def test_the_back_off_has_a_jitter_of_its_own_for_each_request_and_a_longest_wait() -> None:
    patience = Patience(first_wait=1.0, longest_wait=60.0)
    first = [patience.wait(f"key-{n}", 1) for n in range(200)]
    assert all(0.5 <= wait <= 1.0 for wait in first)
    assert len(set(first)) == 200
    assert all(30.0 <= patience.wait(f"key-{n}", 30) <= 60.0 for n in range(200))
    assert patience.wait("key", 3) == patience.wait("key", 3)


def test_retry_after_is_obeyed_by_every_request() -> None:
    """The server wants a second's rest: nothing at all arrives in it, though the back-off would be far shorter."""
    with OpenaiServer(Faults(echo, {"say 0.": [Status(429, headers={"retry-after": "1"})]})) as server:
        outcomes, _ = send(server, calls(30), in_flight=2)
        gap = max(after - before for before, after in itertools.pairwise(sorted(server.times)))
        assert server.counts.total() == 31
    assert gap >= 0.98
    assert all(isinstance(one, Reply) for one in outcomes.values())


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": " 0.5 "}, 0.5),
        ({"retry-after-ms": "1500", "retry-after": "2"}, 1.5),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:30 GMT"}, 20.0),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:05 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "nan"}, None),
    ],
)
def test_the_seconds_of_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, now=10.0) == seconds


def test_a_pause_of_hours_is_not_waited_for_and_not_cut_short() -> None:
    with OpenaiServer(lambda asked: Status(429, headers={"retry-after": "7200"})) as server:
        outcomes, _ = send(server, calls(1))
        assert server.counts.total() == 1
    assert isinstance(outcomes["key-0"], Failure)
    assert "7200 s" in outcomes["key-0"].reason


def test_a_server_that_dies_and_comes_back_is_waited_for() -> None:
    def slow(asked: Asked) -> Completion:
        return echo(asked)

    with OpenaiServer(slow, latency=0.02) as server:

        def accident() -> None:
            while len(server.asked) < 20:
                time.sleep(0.005)
            server.die()
            time.sleep(0.4)
            server.come_back()

        thread = threading.Thread(target=accident)
        thread.start()
        outcomes, client = send(server, calls(80), tries=12, first_wait=0.05, longest_wait=0.2)
        thread.join()
        in_full = dict(server.answered)
    assert all(isinstance(one, Reply) for one in outcomes.values())
    assert len(outcomes) == 80
    assert set(in_full.values()) == {1}
    assert sum(client.faults.values()) >= 8


@pytest.mark.parametrize(
    "happening",
    [
        Completion(None, refusal="I can't help with that."),
        Completion("half of", finish_reason="content_filter"),
        Status(400, {"code": "content_filter"}),
    ],
)
def test_a_refusal_is_kept_as_one_and_not_asked_again(happening: Happening) -> None:
    with OpenaiServer(Faults(echo, {"say 2.": [happening] * 9})) as server:
        outcomes, _ = send(server, calls(5, in_capitals))
        assert server.counts.total() == 5
    refused = outcomes["key-2"]
    assert isinstance(refused, Reply)
    assert refused.status == "refused"


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (Status(400, {"code": "context_length_exceeded"}), "longer than the model takes"),
        (Status(400, {"message": "This model's maximum context length is 9 tokens"}), "longer than the model takes"),
        (Status(413), "longer than the model takes"),
        (Status(400, {"code": "odd"}), "status 400, odd"),
    ],
)
def test_what_can_not_pass_by_itself_is_not_sent_again(status: Status, reason: str) -> None:
    with OpenaiServer(Faults(echo, {"say 2.": [status] * 9})) as server:
        outcomes, _ = send(server, calls(5))
        assert server.counts.total() == 5
    failure = outcomes.pop("key-2")
    assert isinstance(failure, Failure)
    assert reason in failure.reason
    assert all(isinstance(one, Reply) for one in outcomes.values())


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (Status(401, {"code": "invalid_api_key"}), "the key is not accepted"),
        (Status(404, {"code": "model_not_found"}), "no such address or model"),
        (Status(429, {"code": "insufficient_quota"}), "quota is used up"),
    ],
)
def test_a_key_or_a_model_that_is_not_known_ends_the_sending(status: Status, reason: str) -> None:
    with OpenaiServer(lambda asked: status) as server:
        outcomes, _ = send(server, calls(200), in_flight=4)
        assert server.counts.total() <= 4
    assert len(outcomes) == 200
    assert all(isinstance(one, Failure) and reason in one.reason for one in outcomes.values())


@pytest.mark.parametrize(
    ("refuses", "sent", "adjusted"),
    [
        ({"temperature": None}, {"max_tokens": 9}, "temperature left out"),
        ({"max_tokens": "max_completion_tokens"}, {"temperature": 0.15, "max_completion_tokens": 9},
         "max_tokens sent as max_completion_tokens"),
        ({"max_tokens": "max_completion_tokens", "temperature": None}, {"max_completion_tokens": 9},
         "max_tokens sent as max_completion_tokens; temperature left out"),
        ({"max_tokens": None, "max_completion_tokens": None}, {"temperature": 0.15}, "max_tokens left out"),
    ],
)  # fmt: skip
def test_a_parameter_that_the_model_does_not_take_is_done_without_and_that_is_said_once(
    refuses: dict[str, str | None], sent: dict[str, object], adjusted: str
) -> None:
    lines: list[str] = []
    with OpenaiServer(echo, refuses=refuses) as server:
        outcomes, client = send(
            server, calls(20), parameters={"temperature": 0.15, "max_tokens": 9}, in_flight=1, say=lines.append
        )
        assert server.counts.total() == 20 + len(refuses)
        last = {key: value for key, value in server.asked[-1].body.items() if key not in ("model", "messages")}
    assert last == sent
    assert {one.adjusted for one in outcomes.values() if isinstance(one, Reply)} == {adjusted}
    assert len(lines) == len(refuses)
    assert adjusted in lines[-1]
    assert client.faults.total() == 0


def test_many_requests_at_once_learn_the_same_thing_together() -> None:
    lines: list[str] = []
    with OpenaiServer(echo, refuses={"temperature": None}, latency=0.05) as server:
        outcomes, _ = send(server, calls(24), parameters={"temperature": 0.15}, in_flight=8, say=lines.append)
        assert server.counts.total() <= 24 + 8
    assert all(isinstance(one, Reply) for one in outcomes.values())
    assert len(lines) == 1


def test_a_refused_parameter_that_nobody_can_do_without_fails_the_request() -> None:
    with OpenaiServer(echo, refuses={"messages": None}) as server:
        outcomes, _ = send(server, calls(1), parameters={"temperature": 0.15})
        assert server.counts.total() == 1
    assert isinstance(outcomes["key-0"], Failure)


def test_no_more_than_the_limit_are_in_flight_and_the_limit_is_used() -> None:
    with OpenaiServer(echo, latency=0.03) as server:
        send(server, calls(60), in_flight=6)
        assert server.most_flying == 6


def test_congestion_narrows_the_flight() -> None:
    """The first round of 16 is turned away: the second comes with 8 at once at most."""
    jammed: list[int] = []
    later: list[int] = []

    def script(asked: Asked) -> Happening:
        if len(jammed) < 16:
            jammed.append(server.flying)
            return Status(503)
        later.append(server.flying)
        return echo(asked)

    with OpenaiServer(script, latency=0.05) as server:
        outcomes, _ = send(server, calls(40), in_flight=16)
    assert all(isinstance(one, Reply) for one in outcomes.values())
    assert max(jammed) == 16
    assert max(later[:8]) <= 8


def test_answers_come_while_others_are_on_their_way() -> None:
    slow = Faults(echo, {"say 0.": [Stall(0.3)]})
    with OpenaiServer(slow) as server:
        client = ChatClient(clear(server.endpoint, restricted=True), "model", {}, patience=QUICK)
        order = [call.key for call, _ in answers(client, calls(10))]
    assert order[-1] == "key-0"


def test_a_reader_that_goes_away_ends_the_sending() -> None:
    with OpenaiServer(echo, latency=0.01) as server:
        client = ChatClient(clear(server.endpoint, restricted=True), "model", {}, patience=QUICK)
        stream = answers(client, calls(1000))
        next(stream)
        stream.close()
        assert len(server.asked) < 100


def test_a_key_comes_from_the_environment_and_is_said_nowhere(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("HOSPITAL_KEY", "sk-very-secret")
    faults: Sequence[Happening] = [
        Status(500, {"message": "sk-very-secret say 1."}), Reset(), Status(400, {"message": "say 1. sk-very-secret"}),
    ]  # fmt: skip
    lines: list[str] = []
    with (
        caplog.at_level(logging.INFO),
        OpenaiServer(Faults(echo, {"say 1.": faults}), key="sk-very-secret", refuses={"temperature": None}) as server,
    ):
        to = clear(server.endpoint, restricted=True)
        client = ChatClient(to, "model", {"temperature": 0.15}, "HOSPITAL_KEY", QUICK, say=lines.append)
        outcomes = {call.key: outcome for call, outcome in answers(client, calls(4))}
    assert isinstance(outcomes["key-0"], Reply)
    assert isinstance(outcomes["key-1"], Failure)
    printed = capfd.readouterr()
    said = "\n".join([*lines, printed.out, printed.err, caplog.text, *client.faults, outcomes["key-1"].reason])
    assert "sk-very-secret" not in said
    assert "say 1" not in said.lower()
    assert "sk-very-secret" not in repr(client)


def test_a_server_elsewhere_needs_a_key_before_anything_is_sent() -> None:
    to = clear("https://llm.hospital.invalid/v1", restricted=False, resolve=lambda host, port: ["203.0.113.7"])
    with pytest.raises(BadInput, match="environment variable HOSPITAL_KEY"):
        ChatClient(to, "model", {}, "HOSPITAL_KEY")


def test_what_is_asked_is_what_the_call_says(tmp_path: Path) -> None:
    said = [{"role": "system", "content": "rules"}, {"role": "user", "content": "report"}]
    with OpenaiServer(lambda asked: Completion(json.dumps(asked.body["messages"]))) as server:
        outcomes, _ = send(server, [Call("key", "study", said)], parameters={"seed": 3})
        body = server.asked[0].body
    assert body == {"model": "model", "messages": said, "seed": 3}
    assert isinstance(outcomes["key"], Reply)
    assert outcomes["key"].served_by == "model-served"
    assert (outcomes["key"].prompt_tokens, outcomes["key"].completion_tokens) == (100, 10)
