"""What reviewers decide, kept as it comes: an append-only file of JSON lines, one a dataset, in results/<name>/review/.

No rule of the workflow writes or deletes there. An entry is on the disk before its answer leaves; a line that a killed
server left unfinished was never acknowledged, and is cut off before the next is written. Nothing is changed afterwards:
another decision about the same question stands over the first, and taking a decision back is an entry of its own.
"""

from __future__ import annotations

import fcntl
import os
import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from pydantic import Field, ValidationError, model_validator

from overread.core.errors import BadInput
from overread.core.records import Record, one_line
from overread.curation.review import Decision


class Entry(Record):
    """A decision, or the number of the entry that is taken back."""

    number: int = Field(ge=1, description="place in the file")
    at: str = Field(description="UTC, ISO 8601")
    reviewer: str = Field(min_length=1)
    decision: Decision | None = None
    undoes: int | None = Field(default=None, ge=1)

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if (self.decision is None) == (self.undoes is None):
            raise ValueError("an entry is a decision or takes one back")
        if self.decision is not None and self.decision.reviewer != self.reviewer:
            raise ValueError("a decision is its reviewer's own")
        return self


class Decided:
    """The decisions about a dataset's questions. Safe in threads and among programs.

    raises  BadInput with file and line for a damaged file, whenever it is read
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.RLock()
        self._forget()

    def by_reviewer(self) -> dict[str, dict[str, Decision]]:
        """reviewer -> question -> the decision that stands, the last ones last."""
        with self._lock:
            self._refresh()
            return {
                reviewer: {entry.decision.question: entry.decision for entry in stack if entry.decision is not None}
                for reviewer, stack in self._standing.items()
                if stack
            }

    def last(self, reviewer: str) -> Entry | None:
        """A reviewer's last decision that was not taken back."""
        with self._lock:
            self._refresh()
            stack = self._standing.get(reviewer)
            return stack[-1] if stack else None

    def reviewers(self) -> list[str]:
        """Everybody who has ever decided, sorted."""
        with self._lock:
            self._refresh()
            return sorted(self._standing)

    def add(self, decision: Decision) -> Entry:
        """Keep a decision. The one that stands already is not kept twice: a form that is sent again changes nothing.

        raises  OSError if it can't be written; then nothing was
        """
        with self._appending():
            same = [one for one in self._standing.get(decision.reviewer, ()) if _about(one) == decision.question]
            if same and same[-1].decision == decision:
                return same[-1]
            return self._append(reviewer=decision.reviewer, decision=decision)

    def undo(self, reviewer: str, number: int) -> Entry | None:
        """Take back a reviewer's last decision, if it is entry `number`. None, and nothing is done, if it is not."""
        with self._appending():
            stack = self._standing.get(reviewer)
            if not stack or stack[-1].number != number:
                return None
            self._append(reviewer=reviewer, undoes=number)
            return self._entries[number]

    # -- the file ----------------------------------------------------------------------------------------------------

    def _forget(self) -> None:
        self._read_bytes = 0
        self._inode = -1
        self._entries: dict[int, Entry] = {}
        self._standing: dict[str, list[Entry]] = defaultdict(list)

    def _refresh(self) -> None:
        """Read what came since: whole lines only."""
        try:
            with self.path.open("rb") as file:
                state = os.fstat(file.fileno())
                if state.st_ino != self._inode or state.st_size < self._read_bytes:
                    self._forget()
                    self._inode = state.st_ino
                file.seek(self._read_bytes)
                new = file.read()
        except FileNotFoundError:
            self._forget()
            return
        end = new.rfind(b"\n") + 1
        for line in new[:end].split(b"\n")[:-1]:
            self._take(line)
        self._read_bytes += end

    def _take(self, line: bytes) -> None:
        number = len(self._entries) + 1
        try:
            entry = Entry.model_validate_json(line)
            if entry.number != number:
                raise ValueError(f"number {entry.number}, but it is entry {number}")
            if entry.undoes is not None:
                stack = self._standing[entry.reviewer]
                if not stack or stack[-1].number != entry.undoes:
                    raise ValueError(f"takes back {entry.undoes}, which is not the last of {entry.reviewer}")
                stack.pop()
            else:
                self._standing[entry.reviewer].append(entry)
        except ValueError as error:
            what = one_line(error) if isinstance(error, ValidationError) else str(error)
            raise BadInput(f"{self.path}:{number}: no entry of a review: {what}; mend or remove the line") from None
        self._entries[number] = entry

    @contextmanager
    def _appending(self) -> Iterator[None]:
        """The file is this thread's alone, read to its end, and ends with a whole line."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self._lock:
            handle = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX)
                self._refresh()
                if os.fstat(handle).st_size > self._read_bytes:
                    os.ftruncate(handle, self._read_bytes)
                self._handle = handle
                yield
            finally:
                os.close(handle)

    def _append(self, **what: object) -> Entry:
        entry = Entry.model_validate({"number": len(self._entries) + 1, "at": _now(), **what})
        line = (entry.model_dump_json(exclude_none=True) + "\n").encode()
        try:
            _write_all(self._handle, line)
            os.fsync(self._handle)
        except OSError:
            os.ftruncate(self._handle, self._read_bytes)
            raise
        if entry.number == 1:
            _sync_folder(self.path.parent)
        self._refresh()
        return entry


def disagreements(decisions: Mapping[str, Mapping[str, Decision]]) -> dict[str, list[str]]:
    """Questions that were edited in different ways, with who did: `apply-review` wants one edit of a question."""
    edits: dict[str, dict[str, str]] = defaultdict(dict)
    for reviewer, own in decisions.items():
        for question, decision in own.items():
            if decision.decision == "edit":
                edits[question][reviewer] = repr((decision.stem, decision.options, decision.answer))
    return {question: sorted(of) for question, of in edits.items() if len(set(of.values())) > 1}


def _about(entry: Entry) -> str:
    return entry.decision.question if entry.decision is not None else ""


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _write_all(handle: int, data: bytes) -> None:
    while data:
        data = data[os.write(handle, data) :]


def _sync_folder(folder: Path) -> None:
    """The file's name must survive a power cut too."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
