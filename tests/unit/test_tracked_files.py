"""What `make lint` says of files that are named and not in git, and of sources that git ignores."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import tracked_files


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    for name in ("docs/a.md", "tests/unit/test_a.py", "README.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("See [a](docs/a.md), tests/unit, `config/models/<yours>.yaml`.\n")
    monkeypatch.setattr(tracked_files, "ROOT", tmp_path)
    subprocess.run(["git", "add", "."], cwd=tmp_path, check=True)
    return tmp_path


def test_all_that_is_named_and_tracked_is_no_problem(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert tracked_files.main() == 0
    assert capsys.readouterr().out == "every file that is named is in git\n"


def test_a_file_that_is_named_and_not_in_git_is_told(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (repository / "README.md").write_text("`python tests/benchmarks/bench_web.py` prints it")
    assert tracked_files.main() == 1
    assert capsys.readouterr().out == "README.md: tests/benchmarks/bench_web.py is named, but is not in git\n"


def test_a_source_that_git_ignores_is_told(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An unanchored `benchmarks/` once kept a folder of tests out of every clone."""
    (repository / ".gitignore").write_text("benchmarks/\n__pycache__/\n")
    for name in ("tests/benchmarks/bench_a.py", "tests/__pycache__/a.py"):
        (repository / name).parent.mkdir(parents=True)
        (repository / name).write_text("")
    assert tracked_files.main() == 1
    assert capsys.readouterr().out == (
        "tests/benchmarks/bench_a.py is left out by .gitignore: it would never reach a clone\n"
    )
