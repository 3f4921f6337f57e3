"""What was read from files, kept until a file changes or the budget is spent."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

Stamp = tuple[tuple[int, int], ...]
T = TypeVar("T")


class Kept:
    """Values by file (and part), each with the size and time of the files that it came from. Safe in threads.

    budget  bytes that the values may take together, by the sizes that `get` is told; none for no limit
    """

    def __init__(self, budget: int | None = None) -> None:
        self._budget = budget
        self._lock = threading.Lock()
        self._making: dict[tuple[str, str], threading.Lock] = {}
        self._values: OrderedDict[tuple[str, str], tuple[Stamp, Any, int]] = OrderedDict()
        self._bytes = 0

    def get(
        self,
        path: Path,
        make: Callable[[], T],
        *,
        part: str = "",
        also: tuple[Path, ...] = (),
        size: Callable[[T], int] = lambda _: 0,
    ) -> T:
        """The value of `path`, made again if it or a file in `also` changed since.

        Two threads that want the same value make it once: the second waits. `make` may call `get` for other values.
        """
        key = (os.fspath(path), part)
        stamp = tuple(_stamp(one) for one in (path, *also))
        found = self._found(key, stamp)
        if found is not None:
            return cast(T, found[1])
        with self._lock:
            making = self._making.setdefault(key, threading.Lock())
        with making:
            found = self._found(key, stamp)
            if found is not None:
                return cast(T, found[1])
            value = make()
            self._put(key, (stamp, value, size(value)))
            return value

    def _found(self, key: tuple[str, str], stamp: Stamp) -> tuple[Stamp, Any, int] | None:
        with self._lock:
            found = self._values.get(key)
            if found is None or found[0] != stamp:
                return None
            self._values.move_to_end(key)
            return found

    def _put(self, key: tuple[str, str], entry: tuple[Stamp, Any, int]) -> None:
        with self._lock:
            old = self._values.pop(key, None)
            self._bytes += entry[2] - (old[2] if old else 0)
            self._values[key] = entry
            while self._budget is not None and self._bytes > self._budget and len(self._values) > 1:
                _, dropped = self._values.popitem(last=False)
                self._bytes -= dropped[2]


def _stamp(path: str | Path) -> tuple[int, int]:
    """When a file was written and how long it is; nothing of a file that is not there, which its reader will say."""
    try:
        state = os.stat(path)
    except OSError:
        return (0, -1)
    return (state.st_mtime_ns, state.st_size)
