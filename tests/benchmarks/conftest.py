"""Speed, as ratios: each piece of work against the alternative, in turns within one run, and one table at the end.

    make bench            everything, at the sizes that are quoted
    make bench QUICK=1    smaller, one round: whether each bench still runs

Machines are shared and noisy, so no number of seconds is asserted. At full size a ratio is held to half of what was
measured when its bench was written; one round of a small piece of work proves no ratio.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest
from rich.console import Console
from rich.table import Table

QUICK = bool(os.environ.get("QUICK"))
FOLDER = Path(__file__).parent
Clock = Literal["processor", "wall"]


@dataclass(frozen=True)
class Row:
    """One line of the table.

    ours, peer   seconds, median of the rounds
    limit        how much faster than the peer it can be at best, where that is known
    """

    work: str
    clock: Clock
    ours: float
    peer_name: str
    peer: float
    limit: float | None

    @property
    def ratio(self) -> float:
        """How many times as fast as the peer."""
        return self.peer / self.ours


ROWS: list[Row] = []


class Bench:
    """Times pieces of work, each against its alternative."""

    quick = QUICK

    def size(self, full: int, quick: int) -> int:
        return quick if QUICK else full

    def against(
        self,
        work: str,
        ours: Callable[[], object],
        peer_name: str,
        peer: Callable[[], object],
        *,
        expected: float,
        limit: float | None = None,
        clock: Clock = "processor",
        rounds: int = 3,
        warm_up: bool = True,
    ) -> Row:
        """Both in turns, who begins changing from round to round; one round before them is not counted.

        expected  the ratio measured when the bench was written: it fails below half of it
        """
        seconds: dict[str, list[float]] = {"ours": [], "peer": []}
        now = time.perf_counter if clock == "wall" else time.process_time
        turns = (1 if QUICK else rounds) + warm_up
        for turn in range(turns):
            for name, do in sorted({"ours": ours, "peer": peer}.items(), reverse=bool(turn % 2)):
                began = now()
                do()
                if turn or not warm_up:
                    seconds[name].append(now() - began)
        return self.measured(
            work, statistics.median(seconds["ours"]), peer_name, statistics.median(seconds["peer"]),
            expected=expected, limit=limit, clock=clock,
        )  # fmt: skip

    def measured(
        self,
        work: str,
        ours: float,
        peer_name: str,
        peer: float,
        *,
        expected: float,
        limit: float | None = None,
        clock: Clock = "processor",
    ) -> Row:
        """Seconds that were taken elsewhere: of processes of their own, or beside what can be worked out."""
        row = Row(work, clock, ours, peer_name, peer, limit)
        ROWS.append(row)
        assert QUICK or row.ratio >= expected / 2, f"{work}: {row.ratio:.2f} times {peer_name}; it was {expected:.2f}"
        return row


@pytest.fixture
def bench() -> Bench:
    return Bench()


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Iterator[None] | None:
    """The table, whatever has failed."""
    if not ROWS:
        return None
    table = Table(title="Speed: how many times as fast as the alternative", title_justify="left")
    for name in ("work", "alternative"):
        table.add_column(name)
    for name in ("ours, s", "alternative, s", "ratio", "limit"):
        table.add_column(name, justify="right")
    table.add_column("clock")
    for row in ROWS:
        limit = "" if row.limit is None else f"{row.limit:.2f}"
        table.add_row(
            row.work, row.peer_name, f"{row.ours:.3g}", f"{row.peer:.3g}", f"{row.ratio:.2f}", limit, row.clock
        )
    terminalreporter.ensure_newline()
    Console(width=150).print(table)
    return None
