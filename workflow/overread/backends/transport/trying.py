"""One step with a server, tried again where its fault can pass by itself."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import TypeVar

import tenacity

from overread.backends.transport.client import Patience
from overread.backends.transport.faults import Transient, fault_of
from overread.core.errors import Stopped
from overread.core.stopping import pause, warned, who

T = TypeVar("T")


async def tried(patience: Patience, key: str, attempt: Callable[[], Awaitable[T]], faults: Counter[str]) -> T:
    """What an attempt gives.

    key     names the step, for the back-off's jitter
    faults  counts the tries that came to nothing
    raises  RequestError where it can't pass by itself, or has not passed in all of the tries; Stopped after a warning
    """

    async def once() -> T:
        if warned():
            raise Stopped(f"stopped by {who()}")
        try:
            async with asyncio.timeout(patience.timeout):
                return await attempt()
        except Exception as error:
            fault = fault_of(error)
            faults[str(fault)] += 1
            raise fault from None

    def wait(state: tenacity.RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        pause = error.pause if isinstance(error, Transient) else None
        return max(patience.wait(key, state.attempt_number), pause or 0.0)

    return await tenacity.AsyncRetrying(
        stop=tenacity.stop_after_attempt(patience.tries),
        wait=wait,
        retry=tenacity.retry_if_exception_type(Transient),
        sleep=pause,
        reraise=True,
    )(once)
