"""The provider's batch API: sent once, found again, fetched whole, whatever happens between."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from data.batch_provider import BatchProvider
from data.openai_job import Place, choice, openai_model, picture, with_logprobs
from data.openai_server import Asked, Completion, OpenaiServer, Raw, Status
from overread.backends.transport import batches
from overread.backends.transport.batches import Journal
from overread.config import Decoding
from overread.core.errors import BadInput, NotAnswered
from overread.responses.answering import Counts


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def by_brain(asked: Asked) -> Completion:
    """Brain n has answer n mod 4 + 1."""
    return Completion(json.dumps({"answer": str(brain(asked) % 4 + 1)}), tokens=(90, 10, 0))


def brain(asked: Asked) -> int:
    return int(asked.user.split("brain ")[1].split("?")[0])


def nobody(asked: Asked) -> Completion:
    raise AssertionError("a request came on its own")


def trials(count: int, **changes: Any) -> list[Any]:
    return [choice(number, **changes) for number in range(count)]


def ask(place: Place, server: OpenaiServer, **changes: Any) -> Counts:
    return place.ask(openai_model(server.endpoint, batch_api=True, **changes))


def right(place: Place, count: int) -> bool:
    return [one.answer for one in place.responses] == [n % 4 for n in range(count)]


def test_a_batch_goes_up_comes_back_and_is_deleted(tmp_path: Path) -> None:
    provider = BatchProvider(by_brain)
    shown = picture(tmp_path, "one")
    with OpenaiServer(nobody, also=provider) as server:
        place = Place(tmp_path, [choice(n, (0, 1, 2, 3), shown) for n in range(7)])
        assert ask(place, server) == (7, 0)
        (lines,) = provider.uploaded
        assert [line["url"] for line in lines] == ["/v1/chat/completions"] * 7
        assert {line["method"] for line in lines} == {"POST"}
        assert lines[0]["body"]["model"] == "m-1"
        assert lines[0]["body"]["response_format"]["type"] == "json_schema"
        url = lines[3]["body"]["messages"][0]["content"][0]["image_url"]["url"]
        assert base64.b64decode(url.partition(",")[2]) == (tmp_path / "d/images/one.png").read_bytes()
        assert set(provider.counts.values()) == {1}
        assert not provider.files
        assert Journal(place.batches).on_their_way() == {}
        assert ask(place, server) == (0, 7)
    assert right(place, 7)


def test_log_probabilities_come_through_a_batch(tmp_path: Path) -> None:
    first = {"2": -0.1, "1": -3.0, "3": -4.0, "4": -5.0}
    with OpenaiServer(nobody, also=BatchProvider(lambda asked: Completion("2", "length", first=first))) as server:
        place = Place(tmp_path, [choice(1, (3, 2, 1, 0))])
        ask(place, server, **with_logprobs())
    assert place.responses[0].logprobs == (-3.0, -0.1, -4.0, -5.0)
    assert (place.responses[0].answer, place.responses[0].choice) == (1, 2)


def test_what_does_not_fit_into_one_batch_goes_into_several(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    provider = BatchProvider(by_brain)
    monkeypatch.setattr(batches, "MOST_REQUESTS", 4)
    with OpenaiServer(nobody, also=provider) as server:
        place = Place(tmp_path, trials(10))
        ask(place, server)
        assert [len(lines) for lines in provider.uploaded] == [4, 4, 2]
        monkeypatch.setattr(batches, "MOST_BYTES", 2_000)
        second = Place(tmp_path, trials(6, run=2), "run-2")
        ask(second, server)
    assert right(place, 10)
    assert right(second, 6)
    assert max(len(lines) for lines in provider.uploaded[3:]) < 4


def kill_when(place: Place, model: Any, seen: Callable[[], bool]) -> None:
    """Start the command and SIGKILL it as soon as something is seen."""
    job = subprocess.Popen(
        [sys.executable, "-m", "overread", *place.command(model)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 60
    while not seen():
        assert time.monotonic() < deadline, "it did not come so far"
        assert job.poll() is None, "it ended by itself"
        time.sleep(0.01)
    os.kill(job.pid, signal.SIGKILL)
    job.wait()


def test_a_killed_job_finds_its_batch_and_sends_nothing_twice(tmp_path: Path) -> None:
    ready: list[bool] = []
    provider = BatchProvider(by_brain, ready=lambda: bool(ready))
    with OpenaiServer(nobody, also=provider) as server:
        place = Place(tmp_path, trials(9))
        model = openai_model(server.endpoint, batch_api=True)
        kill_when(place, model, lambda: place.batches.exists() and b'"batch"' in place.batches.read_bytes())
        ready.append(True)
        assert place.ask(model) == (9, 0)
        assert len(provider.batches) == 1
        assert set(provider.counts.values()) == {1}
    assert right(place, 9)


def test_a_job_killed_before_it_wrote_down_the_batchs_id_finds_it_by_its_mark(tmp_path: Path) -> None:
    provider = BatchProvider(by_brain)
    with OpenaiServer(nobody, also=provider) as server:
        place = Place(tmp_path, trials(5))
        for number in range(5):  # others' batches, over several pages of the list
            provider._create({"input_file_id": provider._keep(b""), "endpoint": "x", "completion_window": "24h",
                              "metadata": {"overread": f"another {number}"}})  # fmt: skip
        ended: list[bool] = []
        provider.ready = lambda: bool(ended)
        kill_when(
            place,
            openai_model(server.endpoint, batch_api=True),
            lambda: place.batches.exists() and b'"batch"' in place.batches.read_bytes(),
        )
        steps = place.batches.read_bytes().splitlines(keepends=True)
        place.batches.write_bytes(b"".join(step for step in steps if b'"batch"' not in step) + b'{"mark": "to')
        ended.append(True)
        assert ask(place, server) == (5, 0)
        assert len(provider.batches) == 6
    assert right(place, 5)


def test_a_batch_that_never_reached_the_provider_is_sent_anew(tmp_path: Path) -> None:
    def broken(method: str, path: str) -> Status | None:
        return Status(400, {"code": "broken"}) if (method, path) == ("POST", "/batches") else None

    provider = BatchProvider(by_brain, before=broken)
    with OpenaiServer(nobody, also=provider) as server:
        place = Place(tmp_path, trials(3))
        with pytest.raises(NotAnswered, match="status 400, broken"):
            ask(place, server)
        provider.before = lambda method, path: None
        assert ask(place, server) == (3, 0)
        assert len(provider.batches) == 1
        assert not provider.files
    assert right(place, 3)


def test_a_batch_whose_confirmation_was_lost_is_not_created_twice(tmp_path: Path) -> None:
    """The provider made it and then broke: the next try looks for it first."""
    lost: list[bool] = []
    provider = BatchProvider(by_brain)

    def also(method: str, path: str, raw: bytes) -> tuple[int, bytes] | None:
        told = provider(method, path, raw)
        if (method, path) == ("POST", "/v1/batches") and not lost:
            lost.append(True)
            return 503, b"{}"
        return told

    with OpenaiServer(nobody, also=also) as server:
        place = Place(tmp_path, trials(3))
        assert ask(place, server) == (3, 0)
        assert len(provider.batches) == 1
    assert right(place, 3)


def test_a_job_killed_while_it_took_the_answers_keeps_what_it_had(tmp_path: Path) -> None:
    provider = BatchProvider(by_brain)
    with OpenaiServer(nobody, also=provider) as server:
        place = Place(tmp_path, trials(400))
        kill_when(place, openai_model(server.endpoint, batch_api=True), lambda: len(place.kept) >= 5)
        kept = len(place.work.read_bytes().rsplit(b"\n", 1)[0].splitlines())
        if kept < 400:
            assert ask(place, server) == (400 - kept, kept)
        assert set(provider.counts.values()) == {1}


def test_a_batch_that_expired_keeps_its_answers_and_the_rest_is_sent_by_the_next_job(tmp_path: Path) -> None:
    provider = BatchProvider(by_brain, most=4, ends=lambda number: "expired" if number == 0 else "completed")
    with OpenaiServer(nobody, also=provider) as server:
        place = Place(tmp_path, trials(9))
        with pytest.raises(NotAnswered, match=r"5 of 9 requests to m failed, the first with: no answer in the batch"):
            ask(place, server)
        assert len(place.kept) == 4
        provider.most = 10**9
        assert ask(place, server) == (5, 4)
        assert sorted(provider.counts.values()) == [1] * 4 + [2] * 5
    assert right(place, 9)


def test_a_batch_that_is_turned_down_is_said_with_its_code_and_no_word_of_the_server(tmp_path: Path) -> None:
    provider = BatchProvider(by_brain, ends=lambda number: "failed" if number == 0 else "completed")
    with OpenaiServer(nobody, also=provider) as server:
        place = Place(tmp_path, trials(3))
        with pytest.raises(NotAnswered, match=r"the batch was turned down \(token_limit_exceeded\)") as caught:
            ask(place, server)
        assert "secret" not in str(caught.value)
        assert ask(place, server) == (3, 0)
    assert right(place, 3)


def test_each_line_is_judged_on_its_own(tmp_path: Path) -> None:
    """A busy line goes into the next batch, a refusal is kept as one, one that is too long is kept as failed."""

    def script(asked: Asked) -> Any:
        if brain(asked) == 1 and len(provider.batches) == 1:
            return Status(500)
        if brain(asked) == 2:
            return Status(400, {"code": "content_filter"})
        if brain(asked) == 3:
            return Status(400, {"code": "context_length_exceeded"})
        if brain(asked) == 4 and len(provider.batches) == 1:
            return Raw(b'{"choices": "none"}')
        return by_brain(asked)

    provider = BatchProvider(script)
    with OpenaiServer(nobody, also=provider) as server:
        place = Place(tmp_path, trials(6))
        ask(place, server)
        assert [len(lines) for lines in provider.uploaded] == [6, 2]
    assert [one.status for one in place.responses] == [
        "answered",
        "answered",
        "refused",
        "failed",
        "answered",
        "answered",
    ]


def test_a_parameter_that_is_refused_in_a_batch_is_left_out_of_the_next(tmp_path: Path) -> None:
    provider = BatchProvider(by_brain, refuses=("temperature",))
    with OpenaiServer(nobody, also=provider) as server:
        place = Place(tmp_path, trials(3))
        ask(place, server)
        assert [len(lines) for lines in provider.uploaded] == [3, 3]
        assert "temperature" not in provider.uploaded[1][0]["body"]
    assert right(place, 3)
    assert {one["adjusted"] for one in place.kept} == {"temperature left out"}


def test_damaged_and_foreign_lines_of_a_result_are_no_answers(tmp_path: Path) -> None:
    def broken(entry: dict[str, Any]) -> bytes | None:
        said = entry["response"]["body"]["choices"][0]["message"]["content"]
        if len(provider.batches) > 1:
            return None
        if said == '{"answer": "1"}':
            return json.dumps(entry).encode()[:-30]
        if said == '{"answer": "2"}':
            return json.dumps({**entry, "custom_id": "another"}).encode()
        return json.dumps(entry).encode() + b"\n" + json.dumps(entry).encode().replace(b"3", b"4")

    provider = BatchProvider(by_brain, broken=broken)
    with OpenaiServer(nobody, also=provider) as server:
        place = Place(tmp_path, trials(3))
        with pytest.raises(NotAnswered, match=r"2 of 3 .*the batch ended without an answer to this request"):
            ask(place, server)
        ask(place, server)
    assert right(place, 3)


def test_a_key_that_is_revoked_while_a_batch_is_waited_for_loses_nothing(tmp_path: Path) -> None:
    looked: list[str] = []

    def revoked(method: str, path: str) -> Status | None:
        looked.append(path)
        return Status(401, {"code": "invalid_api_key"}) if len(looked) > 2 else None

    provider = BatchProvider(by_brain, ready=lambda: len(looked) > 9, before=revoked)
    with OpenaiServer(nobody, also=provider) as server:
        place = Place(tmp_path, trials(4))
        with pytest.raises(NotAnswered, match=r"4 of 4 .*the key is not accepted"):
            ask(place, server)
        provider.before, provider.ready = (lambda method, path: None), (lambda: True)
        assert ask(place, server) == (4, 0)
        assert len(provider.batches) == 1
    assert right(place, 4)


def test_a_server_that_is_busy_is_asked_again(tmp_path: Path) -> None:
    met: set[tuple[str, str]] = set()

    def busy(method: str, path: str) -> Status | None:
        """Each thing is refused the first time."""
        first = (method, path) not in met
        met.add((method, path))
        return Status(503) if first else None

    with OpenaiServer(nobody, also=BatchProvider(by_brain, before=busy)) as server:
        place = Place(tmp_path, trials(4))
        assert ask(place, server) == (4, 0)
    assert right(place, 4)


def test_batches_hold_to_the_budget_and_a_larger_one_goes_on(tmp_path: Path) -> None:
    provider = BatchProvider(by_brain)
    with OpenaiServer(nobody, also=provider) as server:
        place = Place(tmp_path, trials(30))
        changes: dict[str, Any] = {"decoding": Decoding(temperature=0, max_tokens=10), "budget_tokens": 1_500}
        with pytest.raises(NotAnswered, match="raise budget_tokens"):
            ask(place, server, **changes)
        first = len(place.kept)
        # By their bytes four or five prompts fit; what came back leaves room for more, until no other fits.
        assert first * 100 <= 1_500
        assert first >= 12
        changes["budget_tokens"] = 100_000
        assert ask(place, server, **changes) == (30 - first, first)
        assert set(provider.counts.values()) == {1}
    assert right(place, 30)


def test_a_job_that_was_killed_with_a_batch_on_its_way_settles_it_when_it_comes_back(tmp_path: Path) -> None:
    ready: list[bool] = []
    provider = BatchProvider(by_brain, ready=lambda: bool(ready))
    with OpenaiServer(nobody, also=provider) as server:
        place = Place(tmp_path, trials(6))
        model = openai_model(server.endpoint, batch_api=True, budget_tokens=100_000)
        kill_when(place, model, lambda: place.batches.exists() and b'"batch"' in place.batches.read_bytes())
        ready.append(True)
        place.ask(model)
    entries = [json.loads(line) for line in place.ledger.read_text().splitlines()]
    assert sum(entry["tokens"] for entry in entries if "settle" in entry) == 600
    assert {entry["reserve"] for entry in entries if "reserve" in entry} == {
        entry.get("settle") for entry in entries
    } - {None}


def test_a_damaged_journal_stops_the_job_before_anything_is_sent(tmp_path: Path) -> None:
    provider = BatchProvider(by_brain)
    with OpenaiServer(nobody, also=provider) as server:
        place = Place(tmp_path, trials(3))
        place.batches.parent.mkdir(parents=True)
        place.batches.write_text('{"mark": "m", "batch": "b"}\n')
        with pytest.raises(BadInput, match="damaged journal of batches"):
            ask(place, server)
        assert not server.others


def test_restricted_trials_go_up_to_no_provider(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    with pytest.raises(BadInput, match="nothing was sent"):
        Place(tmp_path, [choice(0, restricted=True)]).ask(openai_model("https://192.0.2.7/v1", batch_api=True))


def test_azure_batches_have_addresses_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "azure-secret")
    provider = BatchProvider(by_brain, root="/openai")
    with OpenaiServer(nobody, also=provider) as server:
        place = Place(tmp_path, trials(3))
        endpoint = server.endpoint.replace("/v1", "/openai")
        place.ask(openai_model(endpoint, batch_api=True, server="azure", api_version="2024-10-21"))
        assert {line["url"] for line in provider.uploaded[0]} == {"/chat/completions"}
        assert provider.batches[0]["endpoint"] == "/chat/completions"
        assert all("api-version=2024-10-21" in path for _, path in server.others)
    assert right(place, 3)
