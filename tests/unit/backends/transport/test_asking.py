from __future__ import annotations

import json
from pathlib import Path

import pytest

from data.endpoint_calls import QUICK, calls, echo
from data.openai_server import Completion, Faults, OpenaiServer, Status
from overread.backends.transport.asking import Asked, ask
from overread.backends.transport.client import Call, ChatClient
from overread.backends.transport.replies import Reply
from overread.core.errors import BadInput
from overread.core.guard import clear
from overread.core.locking import Lock
from overread.core.work import KeptAnswers


def asked(server: OpenaiServer, what: list[Call], work: Path, said: list[str] | None = None) -> Asked:
    to = clear(server.endpoint, restricted=True)
    return ask(ChatClient(to, "model", {}, patience=QUICK, say=(said or []).append), what, work, "model")


def test_what_is_kept_is_not_sent_again(tmp_path: Path) -> None:
    work = tmp_path / "deep" / "work.jsonl"
    with OpenaiServer(echo) as server:
        first = asked(server, calls(5), work)
        second = asked(server, calls(7), work)
        assert server.counts.total() == 7
    assert (first.asked, first.kept, second.asked, second.kept) == (5, 0, 2, 5)
    assert {key: reply.text for key, reply in second.replies.items()} == {f"key-{n}": f"SAY {n}." for n in range(7)}
    assert {key: second.replies[key] for key in first.replies} == first.replies


def test_a_failure_is_not_kept_and_a_refusal_is(tmp_path: Path) -> None:
    work = tmp_path / "work.jsonl"
    sick = Faults(echo, {"say 0.": [Status(400)], "say 1.": [Completion(None, refusal="No.")]})
    with OpenaiServer(sick) as server:
        first = asked(server, calls(3), work)
        assert list(first.failures) == ["key-0"]
        assert first.replies["key-1"].status == "refused"
        second = asked(server, calls(3), work)
        assert server.counts.total() == 4
    assert (second.asked, second.failures) == (1, {})
    assert second.replies["key-1"] == first.replies["key-1"]


def test_only_the_calls_asked_for_are_returned(tmp_path: Path) -> None:
    work = tmp_path / "work.jsonl"
    with OpenaiServer(echo) as server:
        asked(server, calls(5), work)
        assert sorted(asked(server, calls(2), work).replies) == ["key-0", "key-1"]


def test_two_calls_of_one_key_are_one_request(tmp_path: Path) -> None:
    with OpenaiServer(echo) as server:
        done = asked(server, [*calls(2), *calls(2)], tmp_path / "work.jsonl")
        assert server.counts.total() == 2
    assert (done.asked, done.kept, len(done.replies)) == (2, 0, 2)


def test_a_torn_and_a_tampered_line_are_asked_again_and_said(tmp_path: Path) -> None:
    work = tmp_path / "work.jsonl"
    said: list[str] = []
    with OpenaiServer(echo) as server:
        asked(server, calls(4), work)
        lines = work.read_text().splitlines()
        entry = json.loads(lines[1])
        entry["answer"]["text"] = "another text"
        work.write_text("\n".join([lines[0], json.dumps(entry), lines[2], lines[3][:50]]))
        to = clear(server.endpoint, restricted=True)
        client = ChatClient(to, "model", {}, patience=QUICK, say=said.append)
        done = ask(client, calls(4), work, "model")
    assert (done.asked, done.kept) == (2, 2)
    assert {key: reply.text for key, reply in done.replies.items()} == {f"key-{n}": f"SAY {n}." for n in range(4)}
    assert "1 damaged lines" in said[0]


def test_a_work_file_belongs_to_one_job_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work = tmp_path / "work.jsonl"
    monkeypatch.setattr(Lock, "patience", 0.0)
    with (
        OpenaiServer(echo) as server,
        KeptAnswers(work, Reply),
        pytest.raises(BadInput, match="is writing this work file"),
    ):
        asked(server, calls(1), work)
    assert not server.asked


def test_a_reply_comes_back_from_the_file_as_it_was(tmp_path: Path) -> None:
    work = tmp_path / "work.jsonl"
    reply = Reply(
        "answered", 'a "text"\u2028\nof lines \N{GRINNING FACE}', "stop", "served", "seed left out", 1, None, 0.25
    )
    with KeptAnswers(work, Reply) as kept:
        kept.append("key", reply)
    with KeptAnswers(work, Reply) as kept:
        assert kept.answers == {"key": reply}
