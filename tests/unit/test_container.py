"""What can be checked of the container's definition without building it."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "containers" / "overread.def").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
SECTIONS = dict(re.findall(r"^%(\w+)\n(.*?)(?=^%\w+$|\Z)", TEXT, flags=re.MULTILINE | re.DOTALL))
SHELL = ("post", "environment", "runscript", "test")


def test_it_has_the_sections_that_it_needs_and_no_others() -> None:
    assert set(SECTIONS) == {"arguments", "files", "post", "environment", "runscript", "test", "labels", "help"}
    header = dict(re.findall(r"^(Bootstrap|From): (\S+)$", TEXT, flags=re.MULTILINE))
    version = re.fullmatch(r"python:(3\.\d+)-slim-\w+", header["From"])
    assert header["Bootstrap"] == "docker" and version is not None
    assert PROJECT["requires-python"] == f">={version[1]}"


@pytest.mark.parametrize("section", SHELL)
def test_its_scripts_are_shell(section: str) -> None:
    script = SECTIONS[section].replace("{{ vllm }}", "no")
    done = subprocess.run(["sh", "-n"], input=script, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert script.strip()


def test_every_version_comes_from_pyproject() -> None:
    """An extra that it names exists; all are there that a run needs; no version stands in the definition itself."""
    found = re.search(r"--editable '\.\[([\w,]+)\]'", SECTIONS["post"])
    assert found is not None
    assert set(found[1].split(",")) == set(PROJECT["optional-dependencies"]) - {"dev", "vllm", "demo"}
    assert "==" not in SECTIONS["post"]


def test_what_it_copies_is_there_and_is_all_that_a_run_reads() -> None:
    copied = dict(line.split() for line in SECTIONS["files"].strip().splitlines())
    for source, target in copied.items():
        assert (ROOT / source).exists(), source
        assert target == f"/opt/overread/{source}"
    assert {"Snakefile", "workflow", "config", "profiles", "envs", "pyproject.toml", "README.md", "LICENSE"} <= set(
        copied
    )


def test_what_it_asks_make_for_is_a_target_with_the_prerequisites_that_it_copies() -> None:
    makefile = (ROOT / "Makefile").read_text()
    target = re.search(r"^\$\(VLLM_VENV\)/\.done: (.*)$", makefile, flags=re.MULTILINE)
    assert target is not None and re.search(r"^vllm: \$\(VLLM_VENV\)/\.done$", makefile, flags=re.MULTILINE)
    copied = [line.split()[0] for line in SECTIONS["files"].strip().splitlines()]
    assert set(target[1].split()) <= set(copied)
    assert re.search(r"^VLLM := ", makefile, flags=re.MULTILINE) and "make vllm" in SECTIONS["post"]


def test_the_package_that_its_test_imports_are_pinned() -> None:
    imported = re.search(r"import ([\w, ]+)'", SECTIONS["test"])
    assert imported is not None
    pinned = {pin.split("==")[0] for extra in PROJECT["optional-dependencies"].values() for pin in extra}
    assert set(imported[1].split(", ")) <= pinned
