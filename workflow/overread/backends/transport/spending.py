"""What requests cost, and a budget that is not overdrawn.

Every job of a model writes what it spends into one ledger: a line before a request is sent, with the most that it can
cost, and a line when it is known what it did cost. What is spent is the sum of the second lines, and of those first
ones that have no second yet: requests of other jobs that are on their way, and requests whose answer was lost, which
the server may have charged. The ledger is locked while it is read and written, so jobs that run at once share one
budget.
"""

from __future__ import annotations

import fcntl
import json
import secrets
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from overread.core.errors import BadInput

if TYPE_CHECKING:
    from overread.config import ServerModel

MILLION = 1_000_000
TEMPLATE_TOKENS = 50
"""Around a message."""
IMAGE_TOKENS = 2_500
"""More than the servers of today count for an image in full detail."""


@dataclass(frozen=True)
class Prices:
    """Dollars for a million tokens; cached_input: for those of a prompt that the server had read before."""

    input: float = 0.0
    output: float = 0.0
    cached_input: float | None = None

    def of(self, prompt: int, completion: int, cached: int = 0) -> float:
        """Dollars for so many tokens; `cached` are those of `prompt` that were."""
        cached_input = self.input if self.cached_input is None else self.cached_input
        return ((prompt - cached) * self.input + cached * cached_input + completion * self.output) / MILLION


@dataclass(frozen=True)
class Spent:
    tokens: int = 0
    dollars: float = 0.0

    def __add__(self, other: Spent) -> Spent:
        return Spent(self.tokens + other.tokens, self.dollars + other.dollars)


class Purse:
    """What a job may spend.

    prices   of the model
    ledger   the file that all jobs of the model write to
    job      names this one in it
    dollars  the most that all of them may spend; none: no limit
    tokens   the same in tokens, of prompts and answers together
    raises   BadInput if the ledger can't be opened
    """

    def __init__(
        self, prices: Prices, ledger: Path, job: str, *, dollars: float | None = None, tokens: int | None = None
    ) -> None:
        self.prices, self.path, self.job = prices, ledger, job
        self.dollars, self.tokens = dollars, tokens
        self.spent = Spent()
        """By all jobs, as far as the ledger was read."""
        self.held: set[str] = set()
        """Reservations of this job whose requests are on their way."""
        self._open: dict[str, tuple[str, Spent]] = {}
        self._tokens_of: dict[str, int] = defaultdict(int)
        self._read_to = 0
        self._share: float | None = None

    @classmethod
    def of(cls, model: ServerModel, ledger: Path, job: str) -> Purse | None:
        """As a model file says; None for one without prices and limit."""
        if model.prices is None and model.budget_tokens is None:
            return None
        prices = Prices(**model.prices.model_dump()) if model.prices else Prices()
        return cls(prices, ledger, job, dollars=model.budget_dollars, tokens=model.budget_tokens)

    @property
    def limited(self) -> bool:
        return self.dollars is not None or self.tokens is not None

    def size(self, text_bytes: int, images: int, image_tokens: int | None = None) -> int:
        """The most tokens that a prompt can be: no token is less than a byte."""
        return text_bytes + images * (image_tokens or IMAGE_TOKENS) + TEMPLATE_TOKENS

    def prompt_tokens(self, size: int) -> int:
        """An estimate: at first the size, then what replies counted for others of their size, and a tenth."""
        return size if self._share is None else min(size, int(size * self._share) + 1)

    def learn(self, size: int, counted: int) -> None:
        """What the server counted for a prompt of that size."""
        self._share = max(self._share or 0.0, 1.1 * counted / size)

    def most(self, prompt: int, completion: int) -> Spent:
        """The most that a request can cost: an estimate of its prompt, and the tokens that it may answer with."""
        return Spent(prompt + completion, self.prices.of(prompt, completion))

    def reserve(self, cost: Spent) -> str | None:
        """Set the cost aside. Its name, or None if the budget does not hold it."""
        with self._ledger() as file:
            after = self.spent + cost
            if self.dollars is not None and after.dollars > self.dollars + 1e-9:
                return None
            if self.tokens is not None and after.tokens > self.tokens:
                return None
            name = secrets.token_hex(6)
            self._write(file, reserve=name, cost=cost)
        self.held.add(name)
        return name

    def settle(self, name: str | None, cost: Spent) -> None:
        """What came of a reservation; with no name, of a request that needed none."""
        with self._ledger() as file:
            self._write(file, settle=name, cost=cost)
        self.held.discard(name or "")

    def lose(self, name: str) -> None:
        """A request was sent and its answer lost: it stays reserved, and nobody waits for it any more."""
        self.held.discard(name)

    def left(self) -> Spent:
        """What the budget holds now; without a limit more than anybody could spend."""
        with self._ledger():
            spent = self.spent
        return Spent(
            2**62 if self.tokens is None else self.tokens - spent.tokens,
            float("inf") if self.dollars is None else self.dollars - spent.dollars,
        )

    def recall(self, kept: Iterable[tuple[int, int]]) -> None:
        """Make sure that this job's kept answers are in the ledger, which may have been deleted or begun later.

        kept  tokens of prompt and answer, of each
        """
        tokens = dollars = 0.0
        for prompt, completion in kept:
            tokens += prompt + completion
            dollars += self.prices.of(prompt, completion)
        with self._ledger() as file:
            missing = int(tokens) - self._tokens_of[self.job]
            if missing > 0:
                self._write(file, settle=None, cost=Spent(missing, dollars * missing / tokens))

    def exhausted(self) -> str:
        """Why nothing more is sent, in words."""
        limits = []
        if self.dollars is not None:
            limits.append(f"{self.dollars:g} dollars, of which {self.spent.dollars:.4f} are spent or set aside")
        if self.tokens is not None:
            limits.append(f"{self.tokens} tokens, of which {self.spent.tokens} are spent or set aside")
        keys = [name for name, limit in (("budget_dollars", self.dollars), ("budget_tokens", self.tokens)) if limit]
        return f"the budget does not hold another request ({'; '.join(limits)}); raise {' or '.join(keys)}"

    @contextmanager
    def _ledger(self) -> Iterator[IO[bytes]]:
        """The ledger, locked and read to its end."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a+b") as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                self._read(file)
                yield file
        except OSError as error:
            raise BadInput(f"{self.path}: can't be used as the model's ledger ({error.strerror})") from None

    def _write(self, file: IO[bytes], *, cost: Spent, **what: str | None) -> None:
        entry = {**what, "job": self.job, "tokens": cost.tokens, "dollars": cost.dollars}
        file.seek(0, 2)
        torn = file.tell() > self._read_to  # a write that was cut short: its line is no line
        file.write(b"\n" * torn + json.dumps(entry).encode() + b"\n")
        file.flush()
        file.seek(self._read_to)
        self._read(file)

    def _read(self, file: IO[bytes]) -> None:
        file.seek(self._read_to)
        content = file.read()
        whole = content.rfind(b"\n") + 1
        self._read_to += whole
        for line in content[:whole].split(b"\n"):
            try:
                entry: Any = json.loads(line)
                cost, job = Spent(int(entry["tokens"]), float(entry["dollars"])), str(entry["job"])
            except (ValueError, KeyError, TypeError):
                continue
            if "reserve" in entry:
                self._open[entry["reserve"]] = job, cost
                self._add(job, cost)
                continue
            reserved_by, reserved = self._open.pop(entry.get("settle"), (job, Spent()))
            self._add(reserved_by, Spent(cost.tokens - reserved.tokens, cost.dollars - reserved.dollars))

    def _add(self, job: str, cost: Spent) -> None:
        self.spent += cost
        self._tokens_of[job] += cost.tokens
