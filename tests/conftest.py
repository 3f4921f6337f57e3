"""What all tests share."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = ["lacking", "pytester"]

# How long an example takes says how busy the machine is, and nothing about the code.
settings.register_profile("any pace", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any pace")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--times", type=int, default=1, help="go through each scenario of tests/slurm so often in a row")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """How often each scenario came out as it must, where it was repeated."""
    if config.getoption("--times") == 1:
        return
    went: dict[str, Counter[str]] = {}
    for outcome in ("passed", "failed", "error"):
        for report in terminalreporter.stats.get(outcome, []):
            went.setdefault(report.nodeid.split("[")[0], Counter())[outcome] += 1
    for test, counts in went.items():
        terminalreporter.write_line(f"{counts['passed']} of {counts.total()} times: {test}")
