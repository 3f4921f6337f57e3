"""A run's jobs look whether the code is still the one that the run was started with."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from data.configs import config_of
from overread.core import frozen
from overread.core.errors import BadInput

NOW = {"Snakefile": "1", "workflow/overread/cli.py": "2", "workflow/rules/common.smk": "3"}


def recorded(folder: Path, started: str = "2026-11-30T10:00:00+00:00", **changes: Any) -> Path:
    return frozen.write_record({"started": started, "code": NOW, "frozen_code": "refuse", **changes}, folder)


def test_the_same_code_is_no_news(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recorded(tmp_path)
    frozen.check_frozen_code(tmp_path, NOW)
    assert capsys.readouterr() == ("", "")


def test_every_way_of_changing_is_named(tmp_path: Path) -> None:
    recorded(tmp_path)
    now = {"workflow/overread/cli.py": "other", "workflow/rules/common.smk": "3", "workflow/overread/more.py": "4"}
    with pytest.raises(BadInput) as told:
        frozen.check_frozen_code(tmp_path, now)
    assert (
        "began (2026-11-30T10:00:00+00:00): Snakefile (gone), workflow/overread/cli.py, workflow/overread/more.py (new)"
        in str(told.value)
    )
    assert "start it again" in str(told.value)


def test_a_line_names_a_few_files_and_counts_the_others(tmp_path: Path) -> None:
    recorded(tmp_path)
    with pytest.raises(BadInput, match=r"workflow/overread/e3\.py \(new\) and 6 more"):
        frozen.check_frozen_code(
            tmp_path, {**NOW, **{f"workflow/overread/e{n}.py": "" for n in range(10)}, "Snakefile": "9"}
        )


def test_a_config_can_ask_for_a_warning_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recorded(tmp_path, frozen_code="warn")
    frozen.check_frozen_code(tmp_path, {**NOW, "Snakefile": "9"})
    assert capsys.readouterr().err.startswith("warning: Overread's code has changed")


def test_the_newest_record_counts(tmp_path: Path) -> None:
    """After an edit the run is started again, with a record of its own: what an older run had is past."""
    recorded(tmp_path, "2026-11-30T12:00:00+00:00")
    recorded(tmp_path, "2026-11-30T10:00:00+00:00", code={"Snakefile": "old"})
    recorded(tmp_path, "2026-11-29T23:00:00+00:00", code={"Snakefile": "older"})
    frozen.check_frozen_code(tmp_path, NOW)


def test_outside_of_a_run_nothing_is_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded(tmp_path)
    monkeypatch.delenv(frozen.FOLDER_VARIABLE, raising=False)
    frozen.check_frozen_code(now={})
    monkeypatch.setenv(frozen.FOLDER_VARIABLE, str(tmp_path / "empty"))
    frozen.check_frozen_code(now={})
    monkeypatch.setenv(frozen.FOLDER_VARIABLE, str(tmp_path))
    with pytest.raises(BadInput, match="has changed"):
        frozen.check_frozen_code(now={})


@pytest.mark.parametrize("content", ["", "[]", "{}"])
def test_a_damaged_record_is_an_error(tmp_path: Path, content: str) -> None:
    (tmp_path / "2026-11-30T10-00-00Z-abcdef.json").write_text(content)
    with pytest.raises(BadInput, match="not the record of a run's start"):
        frozen.check_frozen_code(tmp_path, NOW)


def test_the_command_ends_before_it_does_anything(tmp_path: Path) -> None:
    recorded(tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "overread", "--version"],
        env={**os.environ, frozen.FOLDER_VARIABLE: str(tmp_path)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("overread: Overread's code has changed since this run began")


def code_in(folder: Path) -> None:
    for name in (
        "Snakefile",
        "workflow/rules/a.smk",
        "workflow/overread/a.py",
        "workflow/overread/deep/b.j2",
        "README.md",
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)


def test_only_code_is_frozen(tmp_path: Path) -> None:
    """Caches, editors' files, results, tests, pages of the viewer and the config may change."""
    code_in(tmp_path)
    before = frozen.code(tmp_path)
    assert sorted(before) == [
        "Snakefile",
        "workflow/overread/a.py",
        "workflow/overread/deep/b.j2",
        "workflow/rules/a.smk",
    ]
    for name in (
        "workflow/overread/__pycache__/a.cpython-311.pyc", "workflow/overread/__pycache__/a.py", "tests/a.py",
        "workflow/overread/.a.py.swp", "workflow/overread/.#a.py", "workflow/overread/#a.py#",
        "workflow/overread/a.py~", "workflow/overread_viewer/app.py", "results/x/a.csv",
        "workflow/overread/resources/prompts/a.j2", "workflow/rules/.snakemake/a.smk",
    ):  # fmt: skip
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("changed")
    assert frozen.code(tmp_path) == before


def test_a_changed_byte_changes_the_file_s_hash_only(tmp_path: Path) -> None:
    code_in(tmp_path)
    before = frozen.code(tmp_path)
    (tmp_path / "workflow/overread/a.py").write_text("workflow/overread/a.pz")
    assert frozen.changed(before, frozen.code(tmp_path)) == ["workflow/overread/a.py"]


def test_a_record_says_what_was_run(tmp_path: Path) -> None:
    config = config_of(tmp_path / "config")
    record = frozen.start_record(
        config, tmp_path / "config" / "study.yaml", NOW, executor="slurm", command=["snakemake", "--profile", "slurm"]
    )
    path = frozen.write_record(record, tmp_path / "provenance")
    read = json.loads(path.read_text())
    assert read["command"] == ["snakemake", "--profile", "slurm"] and read["executor"] == "slurm"
    assert read["config_hash"] == config.identity() and read["config"]["name"] == "small"
    assert read["packages"]["pydantic"] and read["python"] == sys.version.split()[0]
    assert read["code"] == NOW
    assert path.name.startswith(read["started"][:13])


def test_the_commit_and_what_is_not_as_it_has_it(tmp_path: Path) -> None:
    def git(*arguments: str) -> str:
        who = ["-c", "user.name=n", "-c", "user.email=e@e", "-c", "commit.gpgsign=false"]
        return subprocess.run(
            ["git", "-C", str(tmp_path), *who, *arguments], check=True, capture_output=True, text=True
        ).stdout

    assert frozen.git(tmp_path) is None
    code_in(tmp_path)
    git("init", "--quiet")
    git("add", ".")
    git("commit", "--quiet", "-m", "one")
    assert frozen.git(tmp_path) == {"commit": git("rev-parse", "HEAD").strip(), "changed": []}
    (tmp_path / "README.md").write_text("other")
    (tmp_path / "new.py").write_text("")
    found = frozen.git(tmp_path)
    assert found is not None and found["changed"] == ["README.md", "new.py"]
    assert frozen.git(tmp_path / "workflow") is None


def test_how_frozen_the_code_is_is_no_part_of_the_study(tmp_path: Path) -> None:
    one, two = config_of(tmp_path / "a"), config_of(tmp_path / "b", frozen_code="warn")
    assert (one.frozen_code, two.frozen_code) == ("refuse", "warn")
    assert one.identity() == two.identity()
