"""Progress that a person can follow: a bar on a terminal, plain lines in a log."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

PLAIN_LINE_SECONDS = 15.0
"""In a log file a line of progress is written this often."""


class Advance(Protocol):
    def __call__(self) -> None: ...


@contextmanager
def progress(what: str, total: int, of: str = "requests") -> Iterator[Advance]:
    """A bar on a terminal; in a log file a plain line every now and then. Call what it yields after each item."""
    if sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with Progress(*columns, console=Console(stderr=True)) as bar:
            task = bar.add_task(what, total=total)
            yield lambda: bar.advance(task)
        return

    done, started = 0, time.monotonic()
    said = started

    def advance() -> None:
        nonlocal done, said
        done += 1
        now = time.monotonic()
        if now - said >= PLAIN_LINE_SECONDS or done == total:
            said = now
            say(f"{what}: {done} of {total} in {now - started:.0f} s")

    say(f"{what}: {total} {of}")
    yield advance


def say(line: str) -> None:
    """A line for the person who watches: standard error, at once."""
    print(line, file=sys.stderr, flush=True)
