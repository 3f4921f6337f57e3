"""Wrong links, counted by the address that they come from.

A link is 128 random bits: guessing finds none. The limit keeps a guesser from trying all the same, and ends soon after.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable

MOST_GUESSES = 20
WINDOW_S = 60.0
MOST_ADDRESSES = 10_000


class Guesses:
    """Who may try a link. An address that tried `MOST_GUESSES` wrong ones within `WINDOW_S` has to wait before the next
    wrong one is looked at. A link that is known opens at once: it holds 128 bits, which nobody guesses, and the raters
    behind one proxy have one address.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._wrong: dict[str, deque[float]] = {}
        self._lock = threading.Lock()

    def wait(self, address: str, who: str | None) -> int:
        """Seconds that `address` has to wait; 0 if it may go on. `who` is whose link it is, none for a wrong one."""
        now = self._clock()
        with self._lock:
            wrong = self._wrong.get(address, deque())
            while wrong and wrong[0] <= now - WINDOW_S:
                wrong.popleft()
            if who is not None:
                return 0
            if len(wrong) >= MOST_GUESSES:
                return max(1, round(wrong[0] + WINDOW_S - now))
            if len(self._wrong) >= MOST_ADDRESSES:
                recent = {one: times for one, times in self._wrong.items() if times and times[-1] > now - WINDOW_S}
                self._wrong = recent
            self._wrong.setdefault(address, wrong).append(now)
            return 0
