"""What can be checked of `envs/` without a channel: they hold the pins of pyproject, and what their stages import."""

import ast
import re
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
CONDA_NAMES = {"isal": "python-isal", "torch": "pytorch", "matplotlib": "matplotlib-base"}
IMPORT_NAMES = {
    "pyyaml": "yaml", "zlib-ng": "zlib_ng", "pillow": "PIL", "simpleitk": "SimpleITK",
    "python-multipart": "python_multipart",
}  # fmt: skip
OWN = {"images/segmentation": "segmentation", "responses/backends/vllm": "vllm"}
"""Folders within a stage whose rules have an environment of their own."""
BROUGHT = {"vllm": {"torch", "transformers"}}
"""What a package of an environment brings in the version that it wants, which is another than the project's."""
RULES = {"studies": "images", "images": "images", "questions": "questions", "trials": "trials", "responses": "models"}


def pins(requirements: list[str]) -> dict[str, str]:
    return dict(requirement.split("==") for requirement in requirements)


BASE = pins(PROJECT["dependencies"])
ALL = BASE | {name: pin for extra in PROJECT["optional-dependencies"].values() for name, pin in pins(extra).items()}


def environment(name: str) -> dict[str, str]:
    content = yaml.safe_load((ROOT / "envs" / f"{name}.yaml").read_text())
    assert content["channels"] == ["conda-forge", "nodefaults"]
    found: dict[str, str] = {}
    for line in content["dependencies"]:
        for each in line["pip"] if isinstance(line, dict) else [line]:
            package, _, pin = each.partition(" ")
            found[package] = pin.lstrip("=")
    return found


ENVIRONMENTS = sorted(path.stem for path in (ROOT / "envs").glob("*.yaml"))


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_an_environment_has_the_pins_of_the_project(name):
    found = environment(name)
    wanted = {CONDA_NAMES.get(package, package): pin for package, pin in ALL.items()}
    for package, pin in found.items():
        if package not in ("python", "pip"):
            assert pin == wanted[package], package
    for package in BASE:
        assert package in found, f"{name} lacks {package}"


@pytest.mark.parametrize(("stage", "name"), [*sorted((RULES | OWN).items()), ("tables", "tables"), ("web", "web")])
def test_an_environment_covers_what_its_stage_imports(stage, name):
    ours = {IMPORT_NAMES.get(package, package): package for package in ALL}
    found = environment(name)
    sources = ROOT / "workflow" / "overread"
    apart = [sources / folder for folder in OWN if folder != stage]
    for file in (sources / stage).rglob("*.py"):
        if any(file.is_relative_to(folder) for folder in apart):
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.level == 0:
                modules = [node.module or ""]
            for module in modules:
                package = ours.get(module.partition(".")[0])
                if package is not None:
                    there = CONDA_NAMES.get(package, package) in found or package in BROUGHT.get(name, ())
                    assert there, f"{file.name} imports {package}"


def test_every_rule_runs_in_the_environment_of_its_stage():
    for stage, name in [*RULES.items(), ("tables", "tables")]:
        rules = (ROOT / "workflow" / "rules" / f"{stage}.smk").read_text()
        used = set(re.findall(r'"\.\./\.\./envs/(\w+)\.yaml"', rules))
        own = {environment for folder, environment in OWN.items() if folder.startswith(f"{stage}/")}
        # A model that writes questions runs in the environment of models.
        assert used <= {name, "trials"} | own | ({"models"} if stage == "questions" else set()), stage
        assert all(environment in ENVIRONMENTS for environment in used)
