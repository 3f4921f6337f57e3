"""The work file: every answer the moment it is given, so that a killed job goes on where it stood.

One line an answer: `{"request": key, "answer": {...}, "check": hash of both}`. A line is believed only if its hash
fits. A last line without its end is the trace of a killed write and is cut off; any other line that does not fit is
counted and left alone. Both mean only that a request is asked again.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from dataclasses import asdict, fields
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from overread.core.errors import BadInput
from overread.core.locking import Lock
from overread.core.records import content_hash

A = TypeVar("A")

_SYNC_SECONDS = 1.0


class KeptAnswers(Generic[A]):
    """The answers kept so far, and a place to append. Use as a context: one job at a time holds the file.

    kind      the dataclass of an answer: text, numbers and tuples of them
    answers   answer by request key
    damaged   lines that could not be believed
    raises    BadInput if another job holds the file, or it can't be opened
    """

    def __init__(self, path: Path, kind: type[A]) -> None:
        self.path = path
        self.kind = kind
        self.answers: dict[str, A] = {}
        self.damaged = 0
        self.lock = Lock(path)

    def __enter__(self) -> Self:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self.path.open("a+b")
        except OSError as error:
            raise BadInput(f"{self.path}: can't be opened as a work file ({error.strerror})") from None
        try:
            self.lock.take(self._file)
            self._read()
        except BaseException:
            self.lock.release()
            self._file.close()
            raise
        self._synced = time.monotonic()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # On a full disk the error that is on its way says more than one of the closing.
        with contextlib.suppress(OSError) if error is not None else contextlib.nullcontext():
            try:
                os.fsync(self._file.fileno())
            finally:
                self.lock.release()
                self._file.close()

    def append(self, request: str, answer: A) -> None:
        """Keep an answer. It survives the death of this process at once, and that of the machine after a second.

        raises  BadInput if it can't be written: the disk or the quota is full
        """
        body = asdict(answer)  # type: ignore[call-overload]
        line = json.dumps({"request": request, "answer": body, "check": content_hash([request, body])})
        try:
            self._file.write(line.encode() + b"\n")
            self._file.flush()
            self.answers[request] = answer
            if time.monotonic() - self._synced > _SYNC_SECONDS:
                os.fsync(self._file.fileno())
                self._synced = time.monotonic()
        except OSError as error:
            raise BadInput(
                f"{self.path}: can't be written ({error.strerror}): make room and start again; what there is is kept"
            ) from None

    def _read(self) -> None:
        self._file.seek(0)
        content = self._file.read()
        if content and not _looks_own(content):
            raise BadInput(f"{self.path}: exists and is no work file; name another, so that this one stays as it is")
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            self._file.truncate(whole)
        for line in content[:whole].split(b"\n")[:-1]:
            kept = _believed(line, self.kind)
            if kept is None:
                self.damaged += 1
            else:
                # The first answer stays: a request is answered once.
                self.answers.setdefault(*kept)


def _believed(line: bytes, kind: type[A]) -> tuple[str, A] | None:
    """Request and answer of a line, or None if its hash does not fit."""
    try:
        entry: Any = json.loads(line)
        request, body = entry["request"], entry["answer"]
        known = {each.name for each in fields(kind)}  # type: ignore[arg-type]
        if entry["check"] != content_hash([request, body]) or set(body) - known:
            return None
        # JSON knows lists only.
        return request, kind(**{name: tuple(each) if isinstance(each, list) else each for name, each in body.items()})
    except (ValueError, KeyError, TypeError):
        return None


_BEGIN = b'{"request": '


def _looks_own(content: bytes) -> bool:
    """Whether a line begins as `append` writes one, also if the first was cut off."""
    return content.startswith(_BEGIN) or b"\n" + _BEGIN in content or _BEGIN.startswith(content)
