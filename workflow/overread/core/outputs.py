"""Where files are written and deleted: nothing that a command did not write is ever replaced or removed.

A file that a person names with `--out` takes the place of what had that name, whole or not at all; `keep_inputs` makes
sure that it is none of the files that the command reads. Everything else that a command writes goes into a folder that
may hold a person's own files: pictures beside `views.json`, tables, a release. There the command keeps a manifest, one
line per file with its SHA-256, and only what still is as the manifest says may be replaced or removed.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import ParamSpec, TypeVar

from overread.core.errors import BadInput

MANIFEST = ".overread-{}.jsonl"
"""Of one command. Hidden, so that no pattern for tables or pictures finds it."""
MOST_NAMED = 5


@dataclass(frozen=True)
class OutputFolder:
    """A folder as one command knows it: what the command wrote there, by its manifest.

    The manifest is written ahead of each file, so a run that was killed leaves nothing that the next one does not know.

    path     need not exist
    command  whose manifest it is; the files of another command in the same folder are none of its own
    """

    path: Path
    command: str

    @property
    def manifest(self) -> Path:
        return self.path / MANIFEST.format(self.command.replace(" ", "-"))

    def written(self) -> dict[str, set[str]]:
        """SHA-256 of what the command has written, by path relative to the folder. A temporary file has none.

        A line that can't be read, as that of a run that was killed, vouches for no file.
        """
        hashes: dict[str, set[str]] = {}
        try:
            lines = self.manifest.read_bytes().split(b"\n") if self.manifest.is_file() else []
        except OSError as error:
            raise BadInput(f"{self.manifest}: can't be read: {error.strerror}") from None
        for line in lines:
            with suppress(ValueError, KeyError, TypeError):
                entry = json.loads(line)
                hashes.setdefault(str(entry["file"]), set()).update([entry["sha256"]] if entry["sha256"] else [])
        return hashes

    def is_own(self, path: Path, written: dict[str, set[str]] | None = None) -> bool:
        """Whether what lies at `path` is a file that the command wrote, and nobody has changed it since."""
        known = self.written() if written is None else written
        hashes = known.get(path.relative_to(self.path).as_posix())
        if hashes is None or path.is_symlink() or not path.is_file():
            return False
        return not hashes or sha256(path) in hashes  # a temporary file may hold anything

    def check(self) -> list[Path]:
        """The files in the folder, all of them the command's own. BadInput, by name, if any other lies there."""
        if not os.path.lexists(self.path):
            return []
        if not self.path.is_dir():
            raise BadInput(f"{self.path}: exists and is no folder; name another")
        known = self.written()
        files = [path for path in _all_files(self.path) if path != self.manifest]
        others = [path.relative_to(self.path).as_posix() for path in files if not self.is_own(path, known)]
        if others:
            more = f" and {len(others) - MOST_NAMED} more" if len(others) > MOST_NAMED else ""
            raise BadInput(
                f"{self.path}: holds files that `overread {self.command}` did not write, or that were changed since: "
                f"{', '.join(others[:MOST_NAMED])}{more}; move them away, or name another folder"
            )
        return files

    def clear(self) -> None:
        """Remove what the command wrote, and the folders, now empty. BadInput, before anything is removed, if any
        other file lies in the folder."""
        for path in self.check():
            path.unlink()
        for place, _, _ in os.walk(self.path, topdown=False):
            if place != str(self.path) and not os.listdir(place):
                os.rmdir(place)
        self.manifest.unlink(missing_ok=True)
        if self.path.is_dir() and not self.path.is_symlink() and not any(self.path.iterdir()):
            self.path.rmdir()

    def remove(self, *names: str) -> None:
        """Remove files of the command, if they are there. BadInput for one that it did not write."""
        known = self.written()
        there = [self.path / name for name in names if os.path.lexists(self.path / name)]
        for path in there:
            self._check_own(path, known)
        for path in there:
            path.unlink()

    def adopt(self) -> None:
        """Enter every file of a folder that the command has just made anew. Sorted: the same files, the same bytes."""
        names = sorted(path.relative_to(self.path).as_posix() for path in _all_files(self.path))
        self._enter({name: sha256(self.path / name) for name in names})

    @contextmanager
    def writing(self, path: Path) -> Iterator[Path]:
        """As `replacing`, for a file in the folder. BadInput if `path` is not the command's own."""
        if os.path.lexists(path):
            self._check_own(path, self.written())
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = _temporary(path)
        self._enter({temporary.relative_to(self.path).as_posix(): ""})
        try:
            yield temporary
            self._enter({path.relative_to(self.path).as_posix(): sha256(temporary)})
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)

    @contextmanager
    def guarding(self) -> Iterator[None]:
        """Within it, `replacing` treats every path in the folder as `writing` does."""
        token = _guards.set((*_guards.get(), self))
        try:
            yield
        finally:
            _guards.reset(token)

    def _check_own(self, path: Path, known: dict[str, set[str]]) -> None:
        if not self.is_own(path, known):
            raise BadInput(
                f"{path}: exists, and `overread {self.command}` did not write it, or it was changed since; "
                "move it away, or name another folder"
            )

    def _enter(self, hashes: dict[str, str]) -> None:
        """In one write at the end of the file: several processes may write into one folder."""
        text = "".join(f"{json.dumps({'file': name, 'sha256': value})}\n" for name, value in hashes.items())
        self.path.mkdir(parents=True, exist_ok=True)
        file = os.open(self.manifest, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        try:
            os.write(file, text.encode())
        finally:
            os.close(file)


WRITES = frozenset({"out", "remarks", "counts", "rejected", "replies", "left_out", "outcomes", "work", "ledger"})
"""Parameters of commands that name what is written."""

P = ParamSpec("P")
R = TypeVar("R")


def keep_inputs(command: Callable[P, R]) -> Callable[P, R]:
    """A command that refuses, before it does anything, to write over a file that it reads or writes as another."""

    if getattr(command, "keeps_inputs", False):
        return command

    @functools.wraps(command)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
        named = [
            (name, one)
            for name, value in kwargs.items()
            for one in (value if isinstance(value, list) else [value])
            if isinstance(one, Path)
        ]
        for name, path in named:
            for other, reads in named if name in WRITES else ():
                if other != name and path.resolve() == reads.resolve() and not path.is_dir():
                    option = f"--{name.replace('_', '-')}"
                    raise BadInput(f"{option} {path}: is also {other!r} of this command; name another file")
        return command(*args, **kwargs)

    guarded.keeps_inputs = True  # type: ignore[attr-defined]
    return guarded


_guards: ContextVar[tuple[OutputFolder, ...]] = ContextVar("guards", default=())


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary path beside `path` that takes its place when the block ends without an error.

    raises  BadInput where `path` is a folder; within `OutputFolder.guarding`, where it is not the command's own
    """
    for guard in reversed(_guards.get()):
        if guard.path in path.parents:
            with guard.writing(path) as temporary:
                yield temporary
            return
    if path.is_dir():
        raise BadInput(f"{path}: is a folder; name a file")
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = _temporary(path)
    try:
        yield temporary
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def replacing_folder(out: OutputFolder) -> Iterator[Path]:
    """A new folder beside `out.path` that takes its place when the block ends without an error.

    raises  BadInput, before anything is done, if `out` holds a file that the command did not write
    """
    import shutil

    out.check()
    place = out.path
    token = f"{os.getpid()}-{secrets.token_hex(4)}"
    new, old = place.with_name(f".{place.name}.{token}.new"), place.with_name(f".{place.name}.{token}.old")
    new.mkdir(parents=True)
    try:
        yield new
        OutputFolder(new, out.command).adopt()
        if os.path.lexists(place):
            out.check()  # somebody may have put a file there meanwhile
            place.rename(old)
        try:
            new.rename(place)
        except OSError:
            if old.exists():
                old.rename(place)
            raise
    finally:
        shutil.rmtree(new, ignore_errors=True)  # this process made it, under a name that nobody else has
    if old.exists():
        OutputFolder(old, out.command).clear()


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _temporary(path: Path) -> Path:
    """A name that no other process takes, and no person gives a file."""
    return path.with_name(f".{path.name[:200]}.{os.getpid()}-{secrets.token_hex(4)}.tmp")


def _all_files(folder: Path) -> Iterable[Path]:
    """All that lies in the folder but folders: files, and also links, pipes and what else a person may keep there."""
    for place, folders, names in os.walk(folder, onerror=_raise):
        links = [name for name in folders if os.path.islink(os.path.join(place, name))]
        yield from (Path(place, name) for name in sorted([*names, *links]))


def _raise(error: OSError) -> None:
    raise error
