"""How many patients a difference needs: by hand, against simulation, and from a pilot."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from data.handmade import Asked, write_cell
from overread.core.errors import BadInput
from overread.estimates.bootstrap import clustered_interval
from overread.estimates.power import Design, design_of, patients_needed, pilot_of

ALONE = Design(discordance=0.25, correlation=0.0, trials_per_patient=1)


def test_independent_trials_need_what_connor_says():
    """d 0.1, psi 0.25: (1.95996 x 0.5 + 0.84162 x sqrt(0.24))^2 / 0.01 = (0.97998 + 0.41231)^2 x 100 = 193.8."""
    assert patients_needed(0.1, ALONE) == 194
    assert patients_needed(-0.1, ALONE) == 194


def test_a_patients_trials_count_as_one_if_they_are_all_alike_and_as_many_if_they_are_not():
    assert patients_needed(0.1, replace(ALONE, trials_per_patient=10)) == 20
    assert patients_needed(0.1, replace(ALONE, trials_per_patient=10, correlation=1.0)) == 194


def test_the_design_effect_by_hand():
    """m 10, cv 0.5, rho 0.1: 1 + (1.25 x 10 - 1) x 0.1 = 2.15; 193.8 x 2.15 / 10 = 41.7."""
    design = Design(0.25, 0.1, 10, 0.5)
    assert design.design_effect == pytest.approx(2.15)
    assert patients_needed(0.1, design) == 42


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"discordance": 0.05}, "needs a discordance of at least as much"), ({"discordance": 0.0}, "discordance 0"),
        ({"correlation": 1.2}, "correlation 1.2"), ({"trials_per_patient": 0.5}, "at least 1 trial"),
    ],
)  # fmt: skip
def test_numbers_that_cannot_be_are_refused(change: dict[str, float], message: str):
    with pytest.raises(BadInput, match=message):
        patients_needed(0.1, replace(ALONE, **change))


def test_no_difference_at_all_is_refused():
    with pytest.raises(BadInput, match="0 points"):
        patients_needed(0.0, ALONE)


def test_the_correlation_of_a_pilot_by_analysis_of_variance():
    """Two patients: 1 1 1 0 and 0 0 -1 0. Means 3/4 and -1/4, whole 1/4; squares about it in all 3.5, between 2.

    Among 2 / 1, within 1.5 / 6 = 0.25, size 4: (2 - 0.25) / (2 + 3 x 0.25) = 7 / 11.
    """
    pilot = design_of(np.array([1.0, 1, 1, 0, 0, 0, -1, 0]), np.repeat([0, 1], 4))
    assert (pilot.patients, pilot.trials, pilot.difference) == (2, 8, 0.25)
    assert pilot.design == Design(discordance=0.5, correlation=pytest.approx(7 / 11), trials_per_patient=4, variation=0)


def drawn(patients: int, seed: int, *, rho: float = 0.1, mean: float = 0.12) -> tuple[np.ndarray, np.ndarray]:
    """Differences of patients with 4 to 16 trials: a patient's trials are alike in `rho`, -1, 0 or 1.

    A trial differs with the patient's share, drawn from a beta whose correlation is `rho`, and is +1 then; 5 % are -1.
    """
    draw = np.random.default_rng([51, seed])
    sizes = draw.integers(4, 17, patients)
    codes = np.repeat(np.arange(patients), sizes)
    share = draw.beta(mean * (1 - rho) / rho, (1 - mean) * (1 - rho) / rho, patients)[codes]
    up = draw.random(len(codes)) < share
    down = ~up & (draw.random(len(codes)) < 0.05)
    return up.astype(float) - down, codes


def test_the_number_said_finds_the_difference_as_often_as_said():
    """A pilot of 3,000 patients says how many a study needs; of 300 such studies about 80 % have an interval above 0.

    300 studies stray by 2.3 points.
    """
    pilot = design_of(*drawn(3000, 0))
    needed = patients_needed(pilot.difference, pilot.design, power=0.8)
    assert 30 <= needed <= 80
    lows = [clustered_interval(*drawn(needed, seed), draws=600).low for seed in range(1, 301)]
    assert 0.73 <= np.mean([low is not None and low > 0 for low in lows]) <= 0.89


def test_a_pilots_correlation_is_near_the_one_drawn_from():
    """Trials without a -1, so that the correlation is that of the beta."""
    draw = np.random.default_rng(5)
    codes = np.repeat(np.arange(4000), 10)
    share = draw.beta(0.2 * 9, 0.8 * 9, 4000)[codes]
    design = design_of((draw.random(40_000) < share).astype(float), codes).design
    assert design.correlation == pytest.approx(0.1, abs=0.015)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Differences of the worked example above: flips without the report less flips with it."""
    patterns = {"p1": ("1110", "0000"), "p2": ("0000", "0010")}

    def asked(flips: bool, arm: int) -> list[Asked]:
        return [
            Asked(f"{patient}-{place}", patient, "yes", "no" if flips and mark != "0" else "yes")
            for patient, arms in patterns.items()
            for place, mark in enumerate(arms[arm])
        ]

    names = {"a": (False, 0), "b": (True, 0), "c": (False, 1), "d": (True, 1)}
    cells = [write_cell(tmp_path, name, asked(*how)) for name, how in names.items()]
    spec = {
        "cells": cells, "settings": {name: {} for name in names}, "statistics": {},
        "comparisons": {"without": {"flips": ["a", "b"]}, "with": {"flips": ["c", "d"]}},
        "effects": {"report-effect": {"minus": ["without", "with"]}},
    }  # fmt: skip
    (tmp_path / "asked.json").write_text(json.dumps(spec), encoding="utf-8")
    return tmp_path


def test_a_pilot_is_read_from_a_runs_answers(run: Path):
    pilot = pilot_of(run, "report-effect", None, None)
    assert (pilot.difference, pilot.trials, pilot.patients) == (0.25, 8, 2)
    assert pilot.design.correlation == pytest.approx(7 / 11)
    with pytest.raises(BadInput, match="Did you mean report-effect"):
        pilot_of(run, "report-efect", None, None)
    with pytest.raises(BadInput, match="nothing has the effect"):
        pilot_of(run, "report-effect", None, "another")
    with pytest.raises(BadInput, match=r"asked\.json: no such file"):
        pilot_of(run / "nothing", "report-effect", None, None)


def power(*options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "overread", "power", *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def test_the_command_says_how_many_and_on_what_that_rests(run: Path):
    done = power(
        "--difference", "10", "--discordance", "25", "--correlation", "0.1", "--trials", "10", "--variation", "0.5"
    )
    assert done.returncode == 0, done.stderr
    assert "design effect 2.15" in done.stdout
    assert "42 patients find a difference of 10 points with power 0.8 at level 0.95" in done.stdout
    done = power("--difference", "25", "--pilot", str(run))
    assert done.returncode == 0, done.stderr
    assert "pilot: 2 patients, 8 trials, a difference of +25.0 points" in done.stdout
    done = power("--difference", "10", "--discordance", "25")
    assert done.returncode == 1
    assert done.stderr == "overread: give --correlation, --trials, or a --pilot\n"
