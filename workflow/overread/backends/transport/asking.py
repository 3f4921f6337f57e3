"""Requests with a work file: what is answered is kept at once, a killed job goes on where it stood."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from overread.backends.transport.client import Call, Failure
from overread.backends.transport.replies import Reply
from overread.core.progress import progress
from overread.core.stopping import quiet_when_warned, stopped, warned
from overread.core.work import KeptAnswers


class Client(Protocol):
    """What answers calls: a server, or a model in this process."""

    faults: Counter[str]
    """Tries that gave no reply that can be used, by reason."""

    @property
    def say(self) -> Callable[[str], None]:
        """Takes lines for a person."""
        ...

    def answers(self, calls: Iterable[Call]) -> AsyncIterator[tuple[Call, Reply | Failure]]:
        """Each call with its reply, as they come."""
        ...


class Asked(NamedTuple):
    """What came of a set of requests.

    replies   by the call's key; kept ones and new ones
    failures  by the call's key: why there is no reply
    asked     how many calls were sent now
    kept      how many had their reply already
    """

    replies: dict[str, Reply]
    failures: dict[str, str]
    asked: int
    kept: int


def ask(client: Client, calls: Sequence[Call], work: Path, what: str) -> Asked:
    """Send the calls whose reply the work file does not hold, and keep each reply the moment it comes.

    what    names the work to a person
    raises  BadInput if another job holds the work file; Stopped after a warning, if a reply is missing
    """
    with KeptAnswers(work, Reply) as kept:
        if kept.damaged:
            client.say(f"{work}: {kept.damaged} damaged lines are left out; their requests are sent again")
        # Two calls of one key are one request.
        missing = {call.key: call for call in calls if call.key not in kept.answers}
        keys = {call.key for call in calls}
        failures: dict[str, str] = {}
        if missing:
            with progress(what, len(missing)) as advance, quiet_when_warned():
                for call, outcome in answers(client, missing.values()):
                    if isinstance(outcome, Failure):
                        failures[call.key] = outcome.reason
                    else:
                        kept.append(call.key, outcome)
                    advance()
        replies = {key: kept.answers[key] for key in sorted(keys) if key in kept.answers}
        if warned() and len(replies) < len(keys):
            raise stopped(what, len(replies), len(keys))
    return Asked(replies, failures, asked=len(missing), kept=len(keys) - len(missing))


def answers(client: Client, calls: Iterable[Call]) -> Generator[tuple[Call, Reply | Failure], None, None]:
    """`client.answers` for code that is not asynchronous. Requests make progress only while the next one is awaited."""
    stream = client.answers(calls)

    async def following() -> tuple[Call, Reply | Failure] | None:
        return await anext(stream, None)

    async def close() -> None:
        await stream.aclose()  # type: ignore[attr-defined]

    with asyncio.Runner() as runner:
        try:
            while (outcome := runner.run(following())) is not None:
                yield outcome
        finally:
            runner.run(close())
