"""The one guard in front of every file that is read.

A pipe never ends while somebody holds its other end, a device may have no end at all, and opening a pipe that nobody
writes to waits for ever. A data set that was copied with such a thing in it must not hang a run.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from overread.core.errors import BadInput

_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


class NotAFile(BadInput, OSError):
    """What lies there is no file. An `OSError` too: who reads file after file tells it of this one and goes on."""

    def __str__(self) -> str:
        return f"{self.filename}: {self.strerror}"


def regular(path: Path) -> Path:
    """The path, if a file lies there, also behind links.

    raises  NotAFile for a folder, pipe, socket or device; FileNotFoundError and other OSErrors as opening it would
    """
    kind = stat.S_IFMT(os.stat(path).st_mode)
    if kind != stat.S_IFREG:
        raise NotAFile(errno.EINVAL, f"is {_KINDS.get(kind, 'something else')}, not a file", str(path))
    return path
