"""The order in which trials are sent, for engines and servers that keep the beginnings of prompts; and back again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from overread.core.records import Trial

T = TypeVar("T")


def by_shared_beginning(trials: Sequence[Trial]) -> list[int]:
    """Places of the trials such that those that begin with the same blocks follow each other.

    Blocks are never reordered, only trials. Beginnings come in the order in which each is first met, so trials that are
    in order already stay as they are, and an answer never waits for longer than its group takes.
    """
    met: dict[tuple[str, ...], int] = {}
    ranks: list[list[int]] = []
    for trial in trials:
        blocks = [block.pixels or str(block.text) for block in trial.blocks]
        ranks.append([met.setdefault(tuple(blocks[:end]), len(met)) for end in range(1, len(blocks) + 1)])
    return sorted(range(len(trials)), key=ranks.__getitem__)


def in_turn(come: Iterable[tuple[int, T]]) -> Iterator[T]:
    """What comes with its place, in the order of the places, each as soon as all before it are there."""
    waiting: dict[int, T] = {}
    turn = 0
    for place, each in come:
        waiting[place] = each
        while turn in waiting:
            yield waiting.pop(turn)
            turn += 1
