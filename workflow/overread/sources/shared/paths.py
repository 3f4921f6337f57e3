"""Files of a data set: none is read that lies outside the folders that the config names.

A path in a table may climb out with `..`, and a symbolic link may lead anywhere. What leaves is rejected with the
reason; links may be followed where the config says so, a table's `..` never.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path


class DataRoot:
    """A folder that holds the files of a data set."""

    def __init__(self, folder: Path, *, follow_links: bool = False) -> None:
        self.folder = Path(os.path.abspath(folder))
        self._real = Path(os.path.realpath(folder))
        self._follow = follow_links
        self._real_parent = cache(os.path.realpath)

    def locate(self, text: str) -> tuple[Path | None, str | None]:
        """The path that a table's cell names, from this folder on, and what is wrong with it, if something is."""
        if not text.isprintable() or not text.strip():
            return None, f"{text!r} is no path"
        path = Path(os.path.normpath(self.folder / text.strip()))
        return path, self.problem(path)

    def problem(self, path: Path) -> str | None:
        """Why `path` is not to be read: it lies outside the folder, or a link in it leads outside."""
        inside = Path(os.path.abspath(path))
        if not inside.is_relative_to(self.folder):
            return f"{path}: lies outside the data set's folder {self.folder}"
        if self._follow:
            return None
        # A folder of 100,000 images has few parents: each is resolved once.
        real = Path(self._real_parent(inside.parent), inside.name)
        real = Path(os.path.realpath(real)) if real.is_symlink() else real
        if real.is_relative_to(self._real):
            return None
        return (
            f"{path}: a symbolic link leads outside the data set's folder, to {real}; "
            "if that is meant, set follow_links: true"
        )
