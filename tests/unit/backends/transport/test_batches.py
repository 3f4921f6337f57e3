"""Batches of calls that are judged, as those are that write questions."""

from __future__ import annotations

from pathlib import Path

from data.batch_provider import BatchProvider
from data.endpoint_calls import QUICK, calls, echo
from data.openai_server import Asked, Completion, OpenaiServer
from overread.backends.transport.asking import ask
from overread.backends.transport.batches import BatchClient
from overread.backends.transport.client import Call, ChatClient
from overread.backends.transport.faults import BadReply
from overread.backends.transport.replies import Reply
from overread.core.errors import BadInput
from overread.core.guard import clear


def in_capitals(reply: Reply) -> None:
    if reply.text != reply.text.upper():
        raise BadReply("not in capitals")


def client(server: OpenaiServer, folder: Path) -> BatchClient:
    chat = ChatClient(clear(server.endpoint, restricted=True), "model", {}, patience=QUICK)
    return BatchClient(chat, folder / "work.batches.jsonl", poll=0.01)


def test_a_reply_that_is_no_good_is_asked_for_again_in_the_next_batch_so_many_times(tmp_path: Path) -> None:
    def script(asked: Asked) -> Completion:
        if "say 1." in asked.user and len(provider.batches) < 3:
            return Completion("small")
        return Completion("never") if "say 2." in asked.user else echo(asked)

    provider = BatchProvider(script)
    with OpenaiServer(echo, also=provider) as server:
        done = ask(client(server, tmp_path), calls(4, in_capitals), tmp_path / "work.jsonl", "model")
    assert sorted(done.replies) == ["key-0", "key-1", "key-3"]
    assert done.failures == {"key-2": "no answer that can be used, in several batches"}
    assert [len(lines) for lines in provider.uploaded] == [4, 2, 2, 1]


def test_a_call_that_can_not_be_made_fails_alone(tmp_path: Path) -> None:
    def broken() -> list[dict[str, str]]:
        raise BadInput("no such picture")

    provider = BatchProvider(echo)
    with OpenaiServer(echo, also=provider) as server:
        asked = [*calls(2), Call("broken", "study", broken)]
        done = ask(client(server, tmp_path), asked, tmp_path / "work.jsonl", "model")
    assert done.failures == {"broken": "no such picture"}
    assert sorted(done.replies) == ["key-0", "key-1"]


def test_calls_of_which_none_can_be_made_send_nothing(tmp_path: Path) -> None:
    def broken() -> list[dict[str, str]]:
        raise BadInput("no such picture")

    with OpenaiServer(echo, also=BatchProvider(echo)) as server:
        done = ask(client(server, tmp_path), [Call("broken", "study", broken)], tmp_path / "work.jsonl", "model")
        assert not server.others
    assert done.failures == {"broken": "no such picture"}
