"""One run, one code: what a run was started with is recorded, and its jobs look whether the code is still the same.

Jobs read the package from the disk when they start, hours after the run did. If someone edits it or pulls a new version
meanwhile, some results would come from one code and some from another, in one table, and nobody could tell which. So
Snakemake's main process leaves a record at each start, in `results/<name>/provenance/`; the newest is that of the run
that is going on, since Snakemake lets only one run at a time have the folder.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from overread.core.errors import BadInput
from overread.core.outputs import replacing
from overread.core.progress import say

ROOT = Path(__file__).resolve().parents[3]
CODE = ("Snakefile", "workflow/rules", "workflow/overread", "workflow/overread_phantom")
"""What is frozen. Model files are inputs of the jobs: Snakemake looks after those. No job runs the viewer."""
INPUTS = "workflow/overread/resources/"
"""Nor are prompts and words frozen, which are inputs of the jobs too."""
ENDINGS = (".py", ".smk", ".j2", ".css", ".csv", "")
FOLDER_VARIABLE = "OVERREAD_PROVENANCE"
"""Environment variable of a run's jobs: the folder of the records. Only Snakemake's shell prefix sets it."""
MOST_NAMED = 5


class Recorded(Protocol):
    """What is asked of a study's config."""

    @property
    def frozen_code(self) -> str: ...

    def identity(self) -> str: ...

    def model_dump(self, *, mode: str) -> dict[str, Any]: ...


def code(root: Path = ROOT) -> dict[str, str]:
    """SHA-256 of each file of the code, by its path from the root. No hidden, compiled or backed-up files."""
    found: dict[str, str] = {}
    for part in CODE:
        place = root / part
        for file in sorted(place.rglob("*")) if place.is_dir() else [place]:
            name = file.relative_to(root).as_posix()
            hidden = any(each.startswith((".", "#", "__pycache__")) for each in name.split("/"))
            if file.suffix in ENDINGS and not hidden and not name.startswith(INPUTS) and file.is_file():
                found[name] = hashlib.sha256(file.read_bytes()).hexdigest()
    return found


def start_record(
    config: Recorded, config_file: Path, now: Mapping[str, str], *, executor: str, command: Sequence[str]
) -> dict[str, Any]:
    """What a run was started with.

    now      the code as the main process read it
    command  the arguments of the process, the program first
    """
    import platform
    from importlib.metadata import distributions

    return {
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "host": platform.node(),
        "user": os.environ.get("USER") or os.environ.get("LOGNAME"),
        "command": list(command),
        "executor": executor,
        "git": git(ROOT),
        "config_file": str(config_file),
        "config_hash": config.identity(),
        "frozen_code": config.frozen_code,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": dict(sorted((each.name, each.version) for each in distributions() if each.name)),
        "code": dict(now),
        "config": config.model_dump(mode="json"),
    }


def write_record(record: Mapping[str, Any], folder: Path) -> Path:
    """A file of its own for each start. Their names sort by time."""
    path = folder / f"{record['started'].replace(':', '-').removesuffix('+00-00')}Z-{secrets.token_hex(3)}.json"
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return path


def newest_record(folder: Path) -> Path | None:
    """Of the run that is going on; None where none has left a record."""
    return max(folder.glob("*.json"), default=None, key=lambda path: path.name)


def check_frozen_code(folder: Path | None = None, now: Mapping[str, str] | None = None) -> None:
    """BadInput, or a warning where the config says so, if the code is not that with which the run was started.

    folder  of the run's records; none: that of the job in whose shell this process runs, and outside of one, nothing
    now     the code; none: as it lies on the disk
    """
    if folder is None:
        if not os.environ.get(FOLDER_VARIABLE):
            return
        folder = Path(os.environ[FOLDER_VARIABLE])
    path = newest_record(folder)
    if path is None:
        return
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        then, started, refuses = record["code"], record["started"], record["frozen_code"] != "warn"
    except (OSError, ValueError, KeyError, TypeError):
        raise BadInput(f"{path}: not the record of a run's start; start the run again") from None
    changes = changed(then, code() if now is None else now)
    if not changes:
        return
    shown = ", ".join(changes[:MOST_NAMED])
    more = f" and {len(changes) - MOST_NAMED} more" if len(changes) > MOST_NAMED else ""
    what = f"Overread's code has changed since this run began ({started}): {shown}{more}"
    if not refuses:
        say(f"warning: {what}")
        return
    raise BadInput(
        f"{what}. Results of two codes must not stand in one table: stop the run and start it again with the code that "
        "you want. It runs again what the change touches, keeps the rest, and asks nothing twice. `frozen_code: warn` "
        "in the config only warns"
    )


def changed(then: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Files that are other ones, new or gone, in the order of their names."""
    words = {
        name: "" if name in then and name in now else " (new)" if name in now else " (gone)" for name in {*then, *now}
    }
    return [f"{name}{words[name]}" for name in sorted(words) if then.get(name) != now.get(name)]


def git(root: Path) -> dict[str, Any] | None:
    """The commit, and the files that are not as it has them; None outside of a repository."""

    def said(*arguments: str) -> str | None:
        try:
            done = subprocess.run(
                ["git", "-C", str(root), *arguments], capture_output=True, text=True, timeout=60, check=False
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        return done.stdout if done.returncode == 0 else None

    top = said("rev-parse", "--show-toplevel")
    commit = said("rev-parse", "HEAD")
    if top is None or commit is None or Path(top.strip()).resolve() != root.resolve():
        return None  # a copy of the code inside of another repository is none of its commits
    status = said("status", "--porcelain") or ""
    return {"commit": commit.strip(), "changed": _paths(status.splitlines())}


def _paths(lines: Iterable[str]) -> list[str]:
    return sorted(line[3:] for line in lines)


def command_line() -> list[str]:
    """Of this process."""
    return [sys.executable, *sys.argv]
