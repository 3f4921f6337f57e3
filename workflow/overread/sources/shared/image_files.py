"""What can be told of an image's file without decoding it, from its length and its first and last bytes.

Decoding all images of a data set takes hours. A picture is decoded, and checked in full, when it is rendered.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from overread.core.inputs import regular
from overread.images.kinds import ENOUGH, file_problem, kind_of

RADIOGRAPHS = ("JPEG", "PNG", "DICOM")


def radiograph_problem(path: Path, kinds: Collection[str] = RADIOGRAPHS) -> str | None:
    """What is wrong with an image: missing, no file, empty, of another kind, truncated. None if nothing is."""
    problem = file_problem(path)
    if problem is not None:
        return f"the image {problem}"
    try:
        with regular(path).open("rb") as file:
            start = file.read(ENOUGH)
            file.seek(max(0, path.stat().st_size - 1024))
            end = file.read()
    except OSError as error:
        return f"the image {path}: not readable: {error.strerror or error}"
    kind = kind_of(start)
    if kind not in kinds:
        wanted = f"{', '.join(sorted(kinds)[:-1])} or {sorted(kinds)[-1]}" if len(kinds) > 1 else next(iter(kinds))
        return f"the image {path}: not a {wanted}, by its first bytes"
    if (kind == "JPEG" and not end.rstrip(b"\x00\r\n").endswith(b"\xff\xd9")) or (
        kind == "PNG" and b"IEND\xaeB`\x82" not in end
    ):
        return f"the image {path}: truncated"
    return None
