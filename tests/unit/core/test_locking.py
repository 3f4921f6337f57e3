"""One job at a time writes a work file, and a dead one keeps nobody out."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from overread.backends.base import Answer
from overread.core import locking
from overread.core.errors import BadInput
from overread.core.locking import Lock
from overread.responses.work import WorkFile

HOLDS = (
    "import sys, time; from pathlib import Path; from overread.responses.work import WorkFile\n"
    "with WorkFile(Path(sys.argv[1])): print('held', flush=True); time.sleep(float(sys.argv[2]))"
)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in {"patience": 0.3, "stale": 0.6, "look": 0.02, "beat": 0.1}.items():
        monkeypatch.setattr(Lock, name, seconds)
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run-1.jsonl"


@pytest.fixture
def holder(path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the file."""
    command = [sys.executable, "-c", HOLDS, str(path), "60"]
    environment = {**os.environ, "SLURM_JOB_ID": "4711"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def left_record(path: Path, **changes: Any) -> Path:
    """The record of a holder on another node, whose lock of the kernel this node does not see."""
    record = path.with_suffix(".lock")
    fields = {
        "host": "n7",
        "boot": "another",
        "pid": 12,
        "since": "yesterday",
        "slurm_job": None,
        "token": "t",
        "beat": 0,
    }
    new = record.with_suffix(".made")
    new.write_text(json.dumps({**fields, **changes}))
    os.replace(new, record)
    return record


def keeps(path: Path) -> None:
    with WorkFile(path) as work:
        work.append("a", Answer(text="Yes"))
    assert not path.with_suffix(".lock").exists()


def squeue(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """A `squeue` that says what the script says."""
    command = folder / "bin" / "squeue"
    command.parent.mkdir()
    command.write_text(f"#!/bin/sh\n{script}\n")
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{command.parent}:{os.environ['PATH']}")


def test_a_second_job_is_refused_and_told_who_writes(path: Path, holder: subprocess.Popen[str]) -> None:
    with pytest.raises(BadInput) as told, WorkFile(path):
        pass
    for part in (str(path), f"process {holder.pid}", socket.gethostname(), "SLURM job 4711", "`scancel 4711`"):
        assert part in str(told.value)


def test_a_job_in_the_same_process_is_refused_too(path: Path) -> None:
    with WorkFile(path), pytest.raises(BadInput, match="is writing this work file"), WorkFile(path):
        pass
    keeps(path)


def test_the_file_of_a_killed_job_is_free_at_once(path: Path, holder: subprocess.Popen[str]) -> None:
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    assert path.with_suffix(".lock").exists()  # what it left behind
    keeps(path)


def test_the_last_attempt_is_waited_for_while_it_ends(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a retry the job before it may still be keeping its last answers."""
    monkeypatch.setattr(Lock, "patience", 20.0)
    command = [sys.executable, "-c", HOLDS, str(path), "0.5"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        keeps(path)


def test_a_holder_on_another_node_keeps_others_out_while_it_renews_its_record(path: Path) -> None:
    ended = threading.Event()

    def renew() -> None:
        beat = 0
        while not ended.wait(0.05):
            beat += 1
            left_record(path, beat=beat)

    left_record(path)
    renewing = threading.Thread(target=renew)
    renewing.start()
    try:
        with pytest.raises(BadInput, match="process 12 on n7, since yesterday is writing"), WorkFile(path):
            pass
    finally:
        ended.set()
        renewing.join()


def test_a_holder_renews_its_record(path: Path) -> None:
    with WorkFile(path):
        before = json.loads(path.with_suffix(".lock").read_text())
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            now = json.loads(path.with_suffix(".lock").read_text())
            if now["beat"] > before["beat"]:
                break
            time.sleep(0.02)
    assert now["beat"] > before["beat"] and now["token"] == before["token"]


def test_a_crashed_holder_on_another_node_blocks_for_a_while_only(path: Path) -> None:
    left_record(path)
    began = time.monotonic()
    keeps(path)
    assert time.monotonic() - began > Lock.stale


@pytest.mark.parametrize(
    "changes",
    [{"boot": locking.boot()}, {"host": socket.gethostname()}],
    ids=["died on this machine", "this machine was restarted"],
)
def test_what_a_dead_process_of_this_machine_left_blocks_nobody(path: Path, changes: dict[str, str]) -> None:
    left_record(path, **changes)
    began = time.monotonic()
    keeps(path)
    assert time.monotonic() - began < Lock.stale


@pytest.mark.parametrize(
    ("script", "gone"),
    [
        ("echo slurm_load_jobs error: Invalid job id specified >&2; exit 1", True),
        ("exit 0", True),
        ("echo PENDING", True),
        ("echo RUNNING", False),
        ("echo COMPLETING", False),
        ("echo SUSPENDED", False),
        ("echo Unable to contact slurm controller >&2; exit 1", None),
    ],
)
def test_slurm_knows_whether_a_job_still_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, gone: bool | None
) -> None:
    squeue(tmp_path, monkeypatch, f'[ "$3" = 99 ] || exit 9\n{script}')
    assert locking.slurm_has_ended("99") is gone


def test_without_slurm_a_job_is_judged_by_its_record(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert locking.slurm_has_ended("99") is None


def test_a_holder_whose_slurm_job_has_ended_blocks_nobody(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Lock, "stale", 60.0)
    squeue(tmp_path, monkeypatch, "echo slurm_load_jobs error: Invalid job id specified >&2; exit 1")
    left_record(path, slurm_job="99")
    keeps(path)


def test_a_holder_whose_slurm_job_runs_keeps_others_out_though_its_record_is_old(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job that SLURM has suspended renews nothing."""
    squeue(tmp_path, monkeypatch, "echo SUSPENDED")
    left_record(path, slurm_job="99")
    with pytest.raises(BadInput, match="SLURM job 99"), WorkFile(path):
        pass


def test_a_job_that_slurm_queued_again_goes_on_from_its_own_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has its number again, on another node."""
    monkeypatch.setattr(Lock, "stale", 60.0)
    monkeypatch.setenv("SLURM_JOB_ID", "99")
    left_record(path, slurm_job="99")
    keeps(path)


def test_of_two_that_find_a_dead_holder_at_the_same_time_one_writes(path: Path) -> None:
    """On a file system whose locks hold on one node only both have the kernel's."""
    one, two = Lock(path), Lock(path)
    one.me, two.me = locking.Holder.here(), locking.Holder.here()
    left_record(path)
    dead = one._read()
    assert one._write_first(dead)
    assert not two._write_first(None)
    assert one._is_mine(one._read())


@pytest.mark.parametrize("content", ["", "[]", "{", '{"host": 1}'])
def test_a_damaged_record_blocks_for_a_while_only(path: Path, content: str) -> None:
    path.with_suffix(".lock").write_text(content)
    keeps(path)


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP])
def test_a_file_system_without_locks_is_a_clear_error(path: Path, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    def none(*arguments: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(fcntl, "flock", none)
    with pytest.raises(BadInput, match=r"can't be locked .*another file system"), WorkFile(path):
        pass
