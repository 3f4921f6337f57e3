"""What a file is, by its first bytes: names say little, and DICOM files often have none."""

from __future__ import annotations

import stat
from pathlib import Path

ENOUGH = 132
"""Bytes that tell all kinds apart: DICOM's mark stands behind a preamble of 128 bytes (PS3.10 section 7.1)."""


def kind_of(start: bytes) -> str | None:
    """JPEG, PNG, DICOM, NIfTI or gzip (a packed NIfTI), by a file's first `ENOUGH` bytes; None for any other."""
    if start.startswith(b"\xff\xd8\xff"):
        return "JPEG"
    if start.startswith(b"\x89PNG\r\n\x1a\n"):
        return "PNG"
    if start[128:132] == b"DICM":
        return "DICOM"
    if start.startswith(b"\x1f\x8b"):
        return "gzip"
    return "NIfTI" if {start[:4], start[3::-1]} & {b"\x5c\x01\x00\x00", b"\x1c\x02\x00\x00"} else None


def file_problem(path: Path) -> str | None:
    """Why `path` is no file to be opened: missing, empty, a pipe or a device (which would never end), not allowed."""
    try:
        about = path.stat()
    except FileNotFoundError:
        return f"{path}: missing: no such file"
    except (OSError, ValueError) as error:
        return f"{path}: not readable: {getattr(error, 'strerror', None) or error}"
    if not stat.S_ISREG(about.st_mode):
        return f"{path}: a folder, not a file" if stat.S_ISDIR(about.st_mode) else f"{path}: not a regular file"
    return f"{path}: an empty file" if about.st_size == 0 else None
