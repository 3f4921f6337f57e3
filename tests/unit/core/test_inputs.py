"""No pipe, device or socket hangs a run, whichever reader meets it."""

from __future__ import annotations

import os
import re
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from overread.core.errors import BadInput
from overread.core.inputs import NotAFile, regular
from overread.core.records import read_pictures, read_questions, read_responses, read_studies, read_substitutes
from overread.images.header import BadFile
from overread.images.index import read_views
from overread.images.volume import read_header, read_volume
from overread.images.volume_file import read_volume_picture
from overread.sources.shared.rows import read_rows
from overread.sources.table import reader as table
from overread.sources.table.section import Table

CODE = Path(__file__).resolve().parents[3] / "workflow"


@pytest.fixture(autouse=True)
def _not_for_ever() -> Iterator[None]:
    """A read of a pipe that nobody writes to waits for ever, also for a signal that is only noted."""

    def ended(*_: Any) -> None:
        raise TimeoutError("waits for ever")

    before = signal.signal(signal.SIGALRM, ended)
    signal.alarm(20)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def pipe(path: Path) -> Path:
    os.mkfifo(path)
    return path


def test_what_is_no_file_is_named_with_what_it_is(tmp_path: Path) -> None:
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(tmp_path / "socket"))
    for path, what in {
        pipe(tmp_path / "pipe"): "a pipe",
        tmp_path / "socket": "a socket",
        tmp_path: "a folder",
        Path("/dev/zero"): "a device",
    }.items():
        with pytest.raises(NotAFile) as caught:
            regular(path)
        assert str(caught.value) == f"{path}: is {what}, not a file"
    (tmp_path / "file").write_text("x")
    (tmp_path / "link").symlink_to("file")
    assert regular(tmp_path / "link") == tmp_path / "link"
    with pytest.raises(FileNotFoundError):
        regular(tmp_path / "none")


@pytest.mark.parametrize(
    "read",
    [
        read_studies, read_pictures, read_questions, read_responses, read_substitutes, read_views, read_volume,
        read_header, read_volume_picture, lambda path: list(read_rows(path, [])),
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", ["x", "x.nii.gz", "x.parquet", "x.csv"])
def test_a_reader_of_a_pipe_says_so(tmp_path: Path, read: Callable[[Path], Any], name: str) -> None:
    with pytest.raises(BadInput, match=r"x.*a pipe, not a file"):
        read(pipe(tmp_path / name))


def test_a_pipe_among_the_files_of_a_table_is_the_problem_of_its_study(tmp_path: Path) -> None:
    """With a name that `studies read` opens by, and without one."""
    pipe(tmp_path / "a.nii.gz")
    pipe(tmp_path / "b")
    (tmp_path / "folder").mkdir()
    pipe(tmp_path / "folder" / "1.dcm")
    (tmp_path / "table.csv").write_text("study,patient,flair\nA,a,a.nii.gz\nB,b,b\nC,c,folder\n")
    section = Table.model_validate(
        {
            "source": "table", "modality": "mri", "path": str(tmp_path / "table.csv"), "images": {"FLAIR": "flair"},
            "columns": {"study": "study", "patient": "patient"}, "questions": {"origin": "file", "path": "q.jsonl"},
            "restricted": False,
        }
    )  # fmt: skip
    studies = table.read("t", section, tmp_path / "table.csv")
    assert [one.study for one in studies if one.problem] == ["A", "B", "C"]
    assert "a pipe, not a file" in (studies[0].problem or "")


def test_every_reader_goes_through_the_guard() -> None:
    """Whoever opens a file for reading asks first what it is; else a pipe hangs the run there."""
    opens = re.compile(
        r"\.(?:read_text|read_bytes)\(|(?<![\w.])(?:path|file|shard|raw|self\.\w+)\.open\((?!\"x\"|\"w|\"a)"
        r"|Image\.open\(|nib\.load\(|ParquetFile\(|safe_open\("
    )
    guarded = re.compile(r"regular\(|BytesIO|def |/proc|import |memory\.|\"w\"|_member")
    allowed = {
        "core/outputs.py", "core/locking.py", "core/provenance.py", "core/frozen.py",  # what Overread itself wrote
        "backends/llava_med/checkpoint.py",  # a shard that `check_folder` has opened
        "core/registry.py", "estimates/tables/__init__.py",  # the package itself
        "overread_viewer/decided.py",  # a journal of the viewer's own
        "images/volume.py",
    }  # fmt: skip
    bare = [
        f"{path.relative_to(CODE)}:{number}: {line.strip()}"
        for path in sorted([*(CODE / "overread").rglob("*.py"), *(CODE / "overread_viewer").rglob("*.py")])
        if not str(path).endswith(tuple(allowed))
        for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), start=1)
        if opens.search(line) and not guarded.search(line)
    ]
    assert not bare


def test_a_volume_that_is_a_device_is_a_bad_file() -> None:
    with pytest.raises(BadFile, match=r"zero: not readable \(is a device, not a file\)"):
        read_volume(Path("/dev/zero"))
