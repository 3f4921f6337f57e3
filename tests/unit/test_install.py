"""An ordinary install: the wheel in an environment of its own, away from the repository."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
import urllib.request
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from web.small import make_run

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("overread", "overread_viewer", "overread_phantom")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy, so that nothing is left in the repository."""
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    for package in PACKAGES:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / "workflow" / package, source / "workflow" / package, ignore=ignored)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir"]
    subprocess.run([*command, str(out), str(source)], check=True)
    (path,) = out.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def command(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`overread` of an environment that has the wheel, and these tests' libraries without the repository."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False)
    python = folder / "bin" / "python"
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*install, str(wheel)], check=True)
    (site,) = folder.glob("lib/python*/site-packages")
    # The lines of a .pth of these folders are not followed, so that an editable install is not found through them.
    libraries = [path for path in sys.path if path.endswith("site-packages")]
    (site / "libraries.pth").write_text("\n".join(libraries) + "\n")
    return folder / "bin" / "overread"


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a config, its models and the finished run."""
    folder = tmp_path_factory.mktemp("study")
    make_run(folder)
    return folder


ENVIRONMENT = {name: text for name, text in os.environ.items() if not name.startswith(("PYTHON", "OVERREAD"))}


def run(command: Path, study: Path, *arguments: str) -> str:
    done = subprocess.run(
        [command, *arguments], cwd=study, env=ENVIRONMENT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_every_file_of_the_packages_is_in_the_wheel(wheel: Path):
    """Templates, styles, scripts, pictures, words, what is vendored, and the code: all that git tracks."""
    listed = subprocess.run(
        ["git", "ls-files", *(f"workflow/{package}" for package in PACKAGES)],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.split("\n")  # fmt: skip
    tracked = {name.removeprefix("workflow/") for name in listed if name and (ROOT / name).exists()}
    with zipfile.ZipFile(wheel) as archive:
        shipped = set(archive.namelist())
    assert len(tracked) > 300
    assert tracked <= shipped, sorted(tracked - shipped)
    assert not [name for name in shipped if name.startswith(("tests/", "config/", "demo/"))]


def test_the_package_is_the_installed_one(command: Path, study: Path):
    where = "import overread, overread_viewer; print(overread.__file__, overread_viewer.__file__)"
    program = [command.with_name("python"), "-c", where]
    found = subprocess.run(program, cwd=study, env=ENVIRONMENT, capture_output=True, text=True, check=True).stdout
    assert all(Path(path).is_relative_to(command.parents[1]) for path in found.split()), found


def test_plan_and_check_run_away_from_the_repository(command: Path, study: Path):
    assert json.loads(run(command, study, "plan", "--config", "config/study.yaml", "--json"))["name"] == "small"
    run(command, study, "check", "--config", "config/study.yaml")


def test_trials_are_built_with_the_templates_that_are_installed(command: Path, study: Path):
    program = """
from overread.curation.rules import OWN_RULES, read_rules
from overread.sources.open_i.mesh import read_mesh
from overread.sources.open_i.section import OWN_MESH
from overread.trials.mentions import OWN_FINDINGS, read_lexicon
from overread.trials.prompt import OWN_PROMPTS, Prompts
read_lexicon(OWN_FINDINGS), read_rules(OWN_RULES), read_mesh(OWN_MESH)
print(len(list(OWN_PROMPTS.glob("*.j2"))), Prompts().text("instruction", "warning")[0].text)
"""
    done = subprocess.run(
        [command.with_name("python"), "-c", program], cwd=study, env=ENVIRONMENT, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    count = len(list((ROOT / "workflow/overread/resources/prompts").glob("*.j2")))
    assert done.stdout.startswith(f"{count} ")


def test_tables_and_report_are_made_away_from_the_repository(command: Path, study: Path, tmp_path: Path):
    results, spec = "results/small", "results/small/study.json"
    asked = tmp_path / "asked.json"
    whole = json.loads((study / spec).read_text())
    parts = ("cells", "settings", "comparisons", "effects", "statistics")
    asked.write_text(json.dumps({key: whole[key] for key in parts}))
    run(command, study, "tables", "make", results, "--spec", str(asked), "--out", str(tmp_path / "tables"))
    for name in ("accuracy", "flips"):
        made = (tmp_path / "tables" / f"{name}.csv").read_bytes()
        assert made == (study / results / "tables" / f"{name}.csv").read_bytes()
    run(command, study, "tables", "report", results, "--spec", spec, "--out", str(tmp_path / "report.html"))
    assert (tmp_path / "report.html").stat().st_size > 10_000


@pytest.fixture
def address(command: Path, study: Path, tmp_path: Path) -> Iterator[str]:
    log = (tmp_path / "log").open("w+")
    server = subprocess.Popen(
        [command, "serve", "results/small", "--port", "0"], cwd=study, env=ENVIRONMENT, stdout=log, stderr=log
    )
    try:
        deadline = time.monotonic() + 300
        while True:
            words = (tmp_path / "log").read_text().split()
            found = [word.rstrip(".,") for word in words if word.startswith("http://")]
            if found:
                yield found[0]
                return
            assert server.poll() is None and time.monotonic() < deadline, " ".join(words)
            time.sleep(0.2)
    finally:
        server.terminate()
        server.wait()
        log.close()


def test_the_viewer_serves_its_pages_styles_and_scripts(address: str):
    def get(path: str) -> bytes:
        with urllib.request.urlopen(f"{address.rstrip('/')}{path}", timeout=60) as answer:
            return bytes(answer.read())

    assert b"<html" in get("/")
    assert b"{" in get("/static/site.css")
    assert len(get("/static/vendor/niivue-0.69.0.umd.js")) > 100_000
