"""How many requests are on their way at once.

Additive increase, multiplicative decrease (Chiu and Jain 1989): a sign of congestion halves the number, each success
adds a little, so that a server finds its own pace and a good one is kept full.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from overread.core import stopping


class Flight:
    """At most `most` at once; fewer while the server shows congestion; none while it asks for a pause."""

    def __init__(self, most: int) -> None:
        if most < 1:
            raise ValueError(f"at least one request must be in flight, not {most}")
        self.most = most
        self.width = float(most)
        self.flying = 0
        self._not_before = 0.0
        self._last_decrease = float("-inf")
        self._changed = asyncio.Condition()

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[float]:
        """A place in the air for one try; yields the loop's time at which it took off."""
        loop = asyncio.get_running_loop()
        while True:
            async with self._changed:
                await self._changed.wait_for(lambda: self.flying < int(self.width))
                pause = self._not_before - loop.time()
                if pause <= 0 or stopping.warned():
                    self.flying += 1
                    break
            await stopping.pause(pause)
        try:
            yield loop.time()
        finally:
            async with self._changed:
                self.flying -= 1
                self._changed.notify_all()

    def landed(self) -> None:
        """A try came back with an answer: one more at once after a whole round of them."""
        self.width = min(float(self.most), self.width + 1.0 / self.width)

    def congested(self, took_off: float, pause: float | None = None) -> None:
        """A try met a busy or a broken server: half as many from now on.

        took_off  when it was sent: the whole round that met the same jam counts once
        pause     seconds for which the server wants to be left alone
        """
        now = asyncio.get_running_loop().time()
        if took_off > self._last_decrease:
            self.width = max(1.0, self.width / 2)
            self._last_decrease = now
        if pause is not None:
            self._not_before = max(self._not_before, now + pause)
