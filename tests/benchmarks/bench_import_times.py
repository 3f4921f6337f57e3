"""What a job costs before it begins: the command line, which loads what is called, against all groups of commands and
all sections of the config at once."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from pathlib import Path

from benchmarks.conftest import Bench

ROOT = Path(__file__).resolve().parents[2]
ALL = """
import sys
from importlib import import_module
from importlib.metadata import entry_points
from overread import cli, config
for module in cli.STAGES.values():
    import_module(module)
for point in entry_points(group="overread.commands"):
    point.load()
for name in config.__all__:
    getattr(config, name)
cli.main()
"""
ROUNDS = 7


def processor_seconds(*command: str) -> float:
    process = subprocess.Popen(
        [sys.executable, *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(ROOT / "workflow")},
    )  # fmt: skip
    _, _, used = os.wait4(process.pid, 0)
    return used.ru_utime + used.ru_stime


def bench_import_times(bench: Bench) -> None:
    commands = {
        "overread --version": ["--version"],
        "overread studies read --help": ["studies", "read", "--help"],
        "overread images render --help": ["images", "render", "--help"],
    }
    for name, arguments in commands.items():
        ours, peer = [], []
        for _ in range(bench.size(ROUNDS, 3)):
            ours.append(processor_seconds("-m", "overread", *arguments))
            peer.append(processor_seconds("-c", ALL, *arguments))
        bench.measured(
            name, statistics.median(ours), "with all groups and sections", statistics.median(peer), expected=EXPECTED
        )


EXPECTED = 2.0
