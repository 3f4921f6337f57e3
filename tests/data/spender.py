"""A process that spends from a ledger: in a module of its own, which a process started anew can import by name."""

from __future__ import annotations

from pathlib import Path

from overread.backends.transport.spending import Prices, Purse, Spent


def spend(folder: Path, count: int) -> None:
    """`count` times one token, as long as 120 in all allow it."""
    one = Purse(Prices(2.0, 8.0), folder / "ledger.jsonl", f"job-{count}", tokens=120)
    for _ in range(count):
        name = one.reserve(Spent(1))
        if name is not None:
            one.settle(name, Spent(1))
