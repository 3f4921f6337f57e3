"""Calls to a scripted server, without waiting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from data.openai_server import Asked, Completion, OpenaiServer
from overread.backends.transport.asking import answers
from overread.backends.transport.client import Call, ChatClient, Failure, Judge, Patience
from overread.backends.transport.replies import Reply
from overread.core.guard import Resolve, clear

QUICK = Patience(in_flight=8, tries=5, first_wait=0.01, longest_wait=0.05, timeout=5.0)


def echo(asked: Asked) -> Completion:
    """The good answer: what was said, in capitals."""
    return Completion(asked.user.upper())


def calls(count: int, judge: Judge | None = None) -> list[Call]:
    """`say 0.`, `say 1.`, ..."""
    return [
        Call(f"key-{n}", f"study-{n}", [{"role": "user", "content": f"say {n}."}], judge=judge) for n in range(count)
    ]


def send(
    server: OpenaiServer,
    what: Sequence[Call],
    *,
    endpoint: str | None = None,
    restricted: bool = True,
    resolve: Resolve | None = None,
    parameters: dict[str, Any] | None = None,
    say: Callable[[str], None] = lambda line: None,
    **patience: Any,
) -> tuple[dict[str, Reply | Failure], ChatClient]:
    """What became of the calls, by key, and the client that sent them."""
    to = clear(endpoint or server.endpoint, restricted=restricted, resolve=resolve)
    client = ChatClient(to, "model", parameters or {}, patience=replace(QUICK, **patience), say=say, resolve=resolve)
    return {call.key: outcome for call, outcome in answers(client, what)}, client
