"""A warning that this process is about to be ended: nothing new is begun, and what is under way may still come back.

SLURM warns every process of a job with SIGTERM before it kills them: at the time limit, at `scancel`, when the job is
preempted, and earlier where `--signal=TERM@<seconds>` asks for that. Snakemake waits for its job then. Another signal
would not do: Snakemake heeds no other, and dies of it.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TypeVar

from overread.core.errors import OverreadError, Stopped

T = TypeVar("T")

SLICE_SECONDS = 0.2
"""So often a pause looks whether there was a warning."""

_warnings = 0  # a signal is about the whole process, and so is this


@contextmanager
def heeding_warnings() -> Iterator[None]:
    """SIGTERM ends nothing in here, but `warned` is true from then on. In the main thread only."""
    global _warnings

    def heed(number: int, frame: FrameType | None) -> None:
        global _warnings
        _warnings += 1
        if _warnings == 1:
            # Not by `print`, which may be what the signal came in the middle of.
            os.write(2, f"{who()} came: nothing new is asked, and what is on its way is waited for\n".encode())

    _warnings = 0
    before = signal.signal(signal.SIGTERM, heed)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
        _warnings = 0


def warned() -> bool:
    """Whether the warning has come."""
    return _warnings > 0


def who() -> str:
    """Whose warning it is, for a person."""
    return "SLURM's warning" if "SLURM_JOB_ID" in os.environ else "the warning SIGTERM"


def until_warned(items: Iterable[T]) -> Iterator[T]:
    """The items, and no more of them once the warning has come."""
    source = iter(items)
    while not warned():
        try:
            item = next(source)
        except StopIteration:
            return
        if warned():
            return
        yield item


@contextmanager
def quiet_when_warned() -> Iterator[None]:
    """After a warning it is no fault if what answers ends too: processes of a back end's own are warned as well."""
    try:
        yield
    except OverreadError:
        if not warned():
            raise


def stopped(what: str, answered: int, asked: int) -> Stopped:
    """The error that a job ends with after a warning."""
    return Stopped(f"{what}: stopped by {who()}: {answered} of {asked} answered; the next attempt goes on from there")


async def pause(seconds: float) -> None:
    """Sleep, but no longer than until the warning."""
    import asyncio

    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    while not warned() and (left := end - loop.time()) > 0:
        await asyncio.sleep(min(left, SLICE_SECONDS))
