"""What the machine lacks: the tests that need it are skipped and named in pytest's last lines; in CI a skip fails.

A pytest plugin. A test says what it needs by a marker: browser, slurm, vllm, release.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections import Counter, defaultdict
from collections.abc import Generator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
CHROMIUM = Path("/usr/bin/chromium")
WANTING = "lacking: "
"""How the reason of such a skip begins."""


def program(name: str) -> str | None:
    """Daemons lie where the path of a user who is not root does not lead."""
    return shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")


def interpreter(variable: str, folder: str) -> Path:
    """Of an environment beside Overread's own; the variable names another."""
    return Path(os.environ.get(variable) or ROOT / folder / "bin" / "python")


def browser() -> str | None:
    return None if CHROMIUM.exists() else "Chromium: `apt-get install chromium`"


def slurm() -> str | None:
    if any(program(name) is None for name in ("munged", "slurmctld", "slurmd", "sbatch")):
        return "SLURM: `apt-get install slurm-wlm munge`"
    if os.geteuid() and subprocess.run(["sudo", "-n", "true"], capture_output=True, check=False).returncode:
        return "root, for the daemons of SLURM: run as root, or where sudo asks for no password"
    return None


def environment(variable: str, folder: str) -> bool:
    """Whether an environment is there: the one that the variable names, or the one that make has made to its end."""
    return interpreter(variable, folder).exists() if os.environ.get(variable) else (ROOT / folder / ".done").exists()


def vllm() -> str | None:
    there = environment("OVERREAD_VLLM_PYTHON", ".venv-vllm")
    return None if there else "vLLM: `make vllm`, or name a Python that has it in OVERREAD_VLLM_PYTHON"


def release() -> str | None:
    there = environment("OVERREAD_EXPORTS_PYTHON", ".venv-exports")
    return None if there else "exports: `make exports`, or name a Python with them in OVERREAD_EXPORTS_PYTHON"


NEEDS = {"browser": cache(browser), "slurm": cache(slurm), "vllm": cache(vllm), "release": cache(release)}
"""By marker: what is lacking and how to get it, or None."""


def pytest_runtest_setup(item: pytest.Item) -> None:
    for marker in item.iter_markers():
        if marker.name in NEEDS and (lacking := NEEDS[marker.name]()):
            pytest.skip(WANTING + lacking)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Where everything should be there (CI=true), what was skipped for whatever reason has failed."""
    report = yield
    if report.skipped and not hasattr(report, "wasxfail") and os.environ.get("CI") == "true":
        report.outcome = "failed"
        report.longrepr = f"skipped, which is a failure in CI: {reason_of(report)}"
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Generator[None, None, None]:
    """After everything else, and above the closing line."""
    yield
    skipped: dict[str, Counter[str]] = defaultdict(Counter)
    for report in terminalreporter.stats.get("skipped", []):
        if (reason := reason_of(report)).startswith(WANTING):
            skipped[reason.removeprefix(WANTING)][report.nodeid.split("::")[0]] += 1
    for lacking, files in sorted(skipped.items()):
        terminalreporter.write_line(f"NOT RUN: {files.total()} tests need {lacking}", yellow=True)
        for file, count in sorted(files.items()):
            terminalreporter.write_line(f"    {file}: {count}")


def reason_of(report: pytest.TestReport) -> str:
    """Why a test was skipped: pytest keeps it as (file, line, 'Skipped: why'), xdist as a list."""
    said = report.longrepr
    return str(said[2] if isinstance(said, tuple | list) else said).removeprefix("Skipped: ")
