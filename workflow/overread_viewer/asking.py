"""Questions of one's own, one after the other: a queue, and the process that answers them.

Nothing is written: what was asked and answered is held in memory until the server ends. One process at a time holds a
model (`asking_worker`), so a second model never shares a GPU's memory with the first.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import selectors
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Literal

from overread.core.errors import OverreadError
from overread.core.records import Response, Trial

State = Literal["waiting", "answering", "answered", "failed", "cancelled"]

PACKAGE_PARENT = Path(__file__).resolve().parents[1]
MOST_WAITING = 10
MOST_KEPT = 100
TIME_LIMIT = 900.0
"""Seconds that one answer may take, loading the model included."""
IDLE_LIMIT = 600.0
"""Seconds after which a model that nobody asks gives its memory back."""
GRACE = 3.0
"""Seconds that a process has to end before it is killed."""
_LOOK = 0.2
"""Seconds between two looks at whether a request was cancelled."""


class TooMany(OverreadError):
    """The queue is full."""


@dataclass(frozen=True)
class Call:
    """What is to be answered, and by what.

    python   the interpreter that the model's back end needs
    loading  seconds that loading the model may take beyond the time of an answer
    model    the model's section, as JSON
    folder   the dataset's, which the pictures' paths are relative to
    """

    trial: Trial
    model_id: str
    model: Mapping[str, Any]
    folder: Path
    ledger: Path
    study_ledger: Path
    attested: tuple[str, ...] = ()
    python: str = sys.executable
    threads: int = 1
    loading: float = 0.0

    def request(self) -> str:
        content = {
            "trial": self.trial.model_dump(mode="json"),
            "model_id": self.model_id,
            "model": dict(self.model),
            "folder": str(self.folder.resolve()),
            "ledger": str(self.ledger),
            "study_ledger": str(self.study_ledger.resolve()),
            "attested": list(self.attested),
        }
        return json.dumps(content) + "\n"

    @property
    def held(self) -> str:
        """Names the process that can answer it: a process serves calls for which this is equal."""
        return json.dumps([self.python, self.threads, self.model_id, dict(self.model)], sort_keys=True)


@dataclass
class Asked:
    """A call and what became of it.

    about    what the page wants to remember of it
    seconds  from the beginning of the answering to its end, loading the model included
    """

    name: str
    call: Call
    about: Mapping[str, Any]
    state: State = "waiting"
    response: Response | None = None
    error: str | None = None
    began: float | None = None
    ended: float | None = None
    loads: bool = False
    """Whether the model has to be loaded first."""
    cancelled: threading.Event = field(default_factory=threading.Event)

    @property
    def over(self) -> bool:
        return self.state in ("answered", "failed", "cancelled")

    @property
    def seconds(self) -> float | None:
        return None if self.began is None else (self.ended or time.monotonic()) - self.began


class Asking:
    """The queue. One thread takes the calls in turn.

    limit   seconds that one answer may take, loading aside where a call says how long that takes
    idle    seconds after which a model that nobody asks is let go
    """

    def __init__(self, *, limit: float = TIME_LIMIT, idle: float = IDLE_LIMIT) -> None:
        self.limit, self.idle = limit, idle
        self._asked: OrderedDict[str, Asked] = OrderedDict()
        self._change = threading.Condition()
        self._worker: Worker | None = None
        self._closed = False
        self._thread: threading.Thread | None = None

    def put(self, call: Call, about: Mapping[str, Any]) -> Asked:
        """A call at the end of the queue. TooMany if too many wait already."""
        with self._change:
            if len(self._waiting()) >= MOST_WAITING:
                raise TooMany(f"{MOST_WAITING} questions are waiting for an answer; wait for one of them, or cancel it")
            asked = Asked(secrets.token_hex(8), call, about)
            self._asked[asked.name] = asked
            over = [name for name, one in self._asked.items() if one.over]
            for name in over[: max(0, len(self._asked) - MOST_KEPT)]:
                del self._asked[name]
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="asking", daemon=True)
                self._thread.start()
            self._change.notify_all()
        return asked

    def get(self, name: str) -> Asked | None:
        with self._change:
            return self._asked.get(name)

    def all(self) -> list[Asked]:
        """Everything that is remembered, the newest first."""
        with self._change:
            return list(self._asked.values())[::-1]

    def before(self, asked: Asked) -> int:
        """How many calls come first."""
        with self._change:
            active = [one for one in self._asked.values() if not one.over]
            return active.index(asked) if asked in active else 0

    def cancel(self, name: str) -> None:
        """End a call that is not over."""
        with self._change:
            asked = self._asked.get(name)
            if asked is not None and not asked.over:
                asked.cancelled.set()
                if asked.state == "waiting":
                    self._end(asked, "cancelled")

    def close(self) -> None:
        """End the process that answers, and the thread."""
        with self._change:
            self._closed = True
            for asked in self._asked.values():
                asked.cancelled.set()
            self._change.notify_all()
            thread = self._thread
        if thread is not None:
            thread.join(GRACE + 5)
        self._let_go()

    def holds(self) -> str | None:
        """The model that is in memory."""
        worker = self._worker
        return worker.model_id if worker is not None and worker.alive else None

    # -- the thread --------------------------------------------------------------------------------------------------

    def _waiting(self) -> list[Asked]:
        return [one for one in self._asked.values() if one.state == "waiting"]

    def _end(self, asked: Asked, state: State, error: str | None = None) -> None:
        asked.ended = time.monotonic()
        asked.error = error
        asked.state = state

    def _run(self) -> None:
        while True:
            with self._change:
                if not self._waiting() and not self._closed and not self._change.wait(self.idle):
                    self._let_go()
                if self._closed:
                    return
                asked = next(iter(self._waiting()), None)
                if asked is None:
                    continue
                asked.began = time.monotonic()
                asked.loads = self._worker is None or not self._worker.can(asked.call)
                asked.state = "answering"
            try:
                self._answer(asked)
            except Exception as error:  # whatever happens to one question, the next is answered
                self._let_go()
                self._end(asked, "failed", f"{type(error).__name__}: {error}")

    def _answer(self, asked: Asked) -> None:
        if asked.loads:
            self._let_go()
            self._worker = Worker(asked.call)
        worker = self._worker
        assert worker is not None and asked.began is not None
        limit = self.limit + (asked.call.loading if asked.loads else 0)
        worker.send(asked.call.request())
        while True:
            there = worker.alive  # asked first: what it wrote before it ended is still to be read
            line = worker.line(_LOOK)
            if line is not None:
                break
            if asked.cancelled.is_set():
                self._let_go()
                return self._end(asked, "cancelled")
            if time.monotonic() - asked.began > limit:
                self._let_go()
                return self._end(asked, "failed", f"no answer within {limit:g} seconds: given up")
            if not there:
                why = worker.ending()
                self._let_go()
                return self._end(asked, "failed", why)
        reply = json.loads(line)
        if "error" in reply:
            return self._end(asked, "failed", str(reply["error"]))
        asked.response = Response.model_validate(reply["response"])
        if asked.response.error is not None:
            return self._end(asked, "failed", asked.response.error)
        return self._end(asked, "answered")

    def _let_go(self) -> None:
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.end()


class Worker:
    """The process that holds a model, in a session of its own: what its libraries start ends with it."""

    def __init__(self, call: Call) -> None:
        self.held, self.model_id = call.held, call.model_id
        self._said: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  # lives as long as the process
        environment = {**os.environ, "PYTHONPATH": str(PACKAGE_PARENT), "OMP_NUM_THREADS": str(call.threads)}
        self._process = subprocess.Popen(
            [call.python, "-m", "overread_viewer.asking_worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            env=environment,
            start_new_session=True,
        )
        assert self._process.stdout is not None
        os.set_blocking(self._process.stdout.fileno(), False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._process.stdout, selectors.EVENT_READ)
        self._read = b""

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def can(self, call: Call) -> bool:
        """Whether it holds the call's model and is there."""
        return self.alive and self.held == call.held

    def send(self, request: str) -> None:
        """A request; if the process has ended, `ending` says so later."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(request.encode())
            self._process.stdin.flush()

    def line(self, wait: float) -> str | None:
        """The next whole line, if it comes within so many seconds."""
        assert self._process.stdout is not None
        if b"\n" not in self._read and self._selector.select(wait):
            more = self._process.stdout.read()
            if more:
                self._read += more
            else:
                time.sleep(wait)  # ended: there is nothing to wait for, and no reason to look all the time
        if b"\n" not in self._read:
            return None
        line, self._read = self._read.split(b"\n", 1)
        return line.decode()

    def ending(self) -> str:
        """How it ended, and the last that it said."""
        code = self._process.wait()
        self._said.seek(0, os.SEEK_END)
        self._said.seek(max(0, self._said.tell() - 4096))
        lines = [line.strip() for line in self._said.read().decode(errors="replace").splitlines() if line.strip()]
        how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
        if code == -signal.SIGKILL:
            how += ", as happens where the memory does not hold the model"
        return f"the process that holds {self.model_id} {how}" + (f": {lines[-1]}" if lines else "")

    def end(self) -> None:
        """End it and all that it started."""
        self._signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(GRACE)
        self._signal(signal.SIGKILL)  # also what it started, and what did not end
        self._process.wait()
        self._selector.close()
        for pipe in (self._process.stdin, self._process.stdout, self._said):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)
