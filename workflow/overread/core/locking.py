"""One job at a time writes a work file, on whatever node it runs.

The kernel's lock is let go when its holder dies, however it dies. On NFS it holds for all nodes, but a file system may
be mounted so that it holds on one node only, without saying so: Lustre with `localflock`, NFS with `local_lock`, BeeGFS
as it comes. So the holder also leaves a record beside the work file, and makes it anew while it lives. It says who to
look for; and the record of a holder on another node counts until that holder's SLURM job has ended, or nobody has
renewed the record for a while.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import socket
import subprocess
import threading
import time
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from overread.core.errors import BadInput
from overread.core.progress import say
from overread.core.stopping import warned, who


@dataclass(frozen=True)
class Holder:
    """Who writes a work file: a process, since when, and the SLURM job that it runs in.

    boot   of the machine since it was last started; the same for all containers on it
    token  of this holding
    beat   how often the record has been renewed
    """

    host: str
    boot: str
    pid: int
    since: str
    slurm_job: str | None = None
    token: str = ""
    beat: int = 0

    @classmethod
    def here(cls) -> Holder:
        return cls(
            host=socket.gethostname(),
            boot=boot(),
            pid=os.getpid(),
            since=datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC"),
            slurm_job=os.environ.get("SLURM_JOB_ID"),
            token=secrets.token_hex(8),
        )

    def __str__(self) -> str:
        job = f", SLURM job {self.slurm_job}" if self.slurm_job else ""
        return f"process {self.pid} on {self.host}{job}, since {self.since}"


class Lock:
    """Holds a work file for this process, from `take` to `release`."""

    beat = 15.0
    """Seconds between two renewals of the record."""
    stale = 180.0
    """Seconds after which a record that nobody renews is a dead holder's."""
    patience = 60.0
    """Seconds that a living holder is waited for: it may be the last attempt of the same job, on its way out."""
    look = 2.0
    """Seconds between two looks at a holder."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.record = path.with_suffix(".lock")
        self._ended = threading.Event()
        self._beating: threading.Thread | None = None

    def take(self, file: IO[bytes]) -> None:
        """Lock the open work file. BadInput if another job holds it, or if its file system has no locks."""
        self.me = Holder.here()
        began, told = time.monotonic(), False
        seen: tuple[Holder | None, float] = (None, began)
        while True:
            locked = self._locked(file)
            other = self._read()
            if other != seen[0]:
                seen = (other, time.monotonic())
            if locked and (other is None or self._is_gone(other, time.monotonic() - seen[1])):
                if self._write_first(other):
                    break
                continue
            if locked:
                fcntl.flock(file, fcntl.LOCK_UN)
            # Where the kernel's lock is free, whether the holder lives is known only after a while.
            limit = self.patience + (self.stale if locked else 0.0)
            if warned() or time.monotonic() - began > limit:
                raise BadInput(self._taken(other))
            if not told:
                say(f"{self.path}: {other or 'another job'} writes this work file; waiting for its end")
                told = True
            time.sleep(self.look)
        self._beating = threading.Thread(target=self._renew, name="work file", daemon=True)
        self._beating.start()

    def release(self) -> None:
        """Remove the record, if the lock was taken. The kernel's lock ends with the file's closing."""
        if self._beating is None:
            return
        self._ended.set()
        self._beating.join()
        if self._is_mine(self._read()):
            self.record.unlink(missing_ok=True)

    def _locked(self, file: IO[bytes]) -> bool:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError as error:
            raise BadInput(
                f"{self.path}: can't be locked ({error.strerror}); results must lie on a file system with file locks: "
                "NFS with its lock service, Lustre mounted with -o flock. Run from a folder on another file system, "
                "or ask those who run the cluster"
            ) from None
        return True

    def _is_gone(self, other: Holder, silent: float) -> bool:
        """Whether the holder that left a record, and whose lock of the kernel is free, has ended.

        silent  seconds for which the record has been seen unchanged
        """
        if other.boot == self.me.boot or other.host == self.me.host:
            return True  # here the kernel knows
        if other.slurm_job is not None:
            # A job that was requeued has its number again.
            ended = other.slurm_job == self.me.slurm_job or slurm_has_ended(other.slurm_job)
            if ended is not None:
                return ended
        return silent > self.stale

    def _write_first(self, other: Holder | None) -> bool:
        """Leave the record; False if another job was faster."""
        if other is not None:
            with contextlib.suppress(FileNotFoundError):
                os.rename(self.record, self.record.with_suffix(f".{other.token or 'old'}.gone"))
        for old in self.record.parent.glob(f"{self.record.stem}.*.gone"):
            old.unlink(missing_ok=True)
        try:
            with self.record.open("x", encoding="utf-8") as file:
                file.write(json.dumps(asdict(self.me)))
        except FileExistsError:
            return False
        return True

    def _read(self) -> Holder | None:
        """The record; None where there is none, or none that can be read."""
        try:
            entry: Any = json.loads(self.record.read_text(encoding="utf-8"))
            known = {each.name for each in fields(Holder)}
            return Holder(**{name: value for name, value in entry.items() if name in known})
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, AttributeError):
            return Holder("an unknown node", "", 0, "an unknown time")

    def _is_mine(self, holder: Holder | None) -> bool:
        return holder is not None and holder.token == self.me.token

    def _renew(self) -> None:
        beat = 0
        while not self._ended.wait(self.beat):
            beat += 1
            new = self.record.with_suffix(f".{self.me.token}.new")
            with contextlib.suppress(OSError):  # a full disk is the answers' to report
                if self._is_mine(self._read()):
                    new.write_text(json.dumps({**asdict(self.me), "beat": beat}), encoding="utf-8")
                    os.replace(new, self.record)

    def _taken(self, other: Holder | None) -> str:
        whose = f"{other} is" if other is not None else "another job is"
        if warned():
            return f"{self.path}: {whose} writing this work file, and {who()} came first"
        todo = "wait for it, or end it"
        if other is not None and other.slurm_job is not None:
            todo = f"wait for it, or end it with `scancel {other.slurm_job}`"
        return f"{self.path}: {whose} writing this work file; {todo}"


def boot() -> str:
    """Names this machine since it was last started."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return socket.gethostname()


def slurm_has_ended(job: str) -> bool | None:
    """Whether a SLURM job holds no node any more; None where SLURM can't be asked."""
    try:
        asked = subprocess.run(
            ["squeue", "--noheader", "--jobs", job, "--format", "%T"],
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    if asked.returncode:
        return True if "Invalid job id" in asked.stderr else None
    states = set(asked.stdout.split())
    return states <= {"PENDING", "REQUEUED", "REQUEUE_HOLD", "SPECIAL_EXIT"}
