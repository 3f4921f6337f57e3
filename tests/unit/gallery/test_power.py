"""`overread power`: what it promises holds, what a pilot cannot say is refused or widened, and numbers are checked."""

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
from overread.estimates.inference.decide import Rules, verdict_of
from overread.estimates.inference.swap import Swap
from overread.gallery import power as power_module
from overread.gallery.bounds import interval
from overread.gallery.cohorts import Design
from overread.gallery.pilot import design_of, intraclass, pilot_of
from overread.gallery.power import Plan, patients_needed, power_of
from overread.gallery.power_view import Given, plan_of
from overread.gallery.readers import GALLERY, reading
from overread.gallery.simulate import Arm, Study

PREVALENCES = (0.1, 0.2, 0.3, 0.5)
PLAN = Plan(Design(studies=1, prevalences=PREVALENCES, correlation=0.2), reliance=0.2, floor=0.02)
NOTHING = Given(None, None, 0.8, None, False, None, (), None, None, None, None, None)


def made_otherwise(patients: int, rng: np.random.Generator) -> Swap:
    """The study of `PLAN` by another hand, without anything of the gallery: of two trials of a patient a fifth are one
    draw; the picture shown instead is any other patient's."""

    def below(mean: np.ndarray | float) -> np.ndarray:
        shared = np.broadcast_to(rng.random((patients, 1)), shape)
        return np.where(rng.random(shape) ** 2 < 0.2, shared, rng.random(shape)) < mean

    shape = (patients, len(PREVALENCES))
    truth = np.where(rng.random(shape) < np.array(PREVALENCES), 0, 1)
    follows = below(0.2)
    guess = np.where(below(np.array(PREVALENCES)), 0, 1)
    patient = np.repeat(np.arange(patients), len(PREVALENCES))
    who = (np.arange(patients) + rng.integers(1, patients, patients)) % patients
    other = truth[who]

    def asked(shown: np.ndarray) -> np.ndarray:
        answer = np.where(follows, shown, guess)
        turned = rng.random(shape) < (1 - (1 - 0.04) ** 0.5) / 2
        return np.where(turned, 1 - answer, answer).ravel()

    return Swap(
        patient=patient, partner=who[patient], topic=np.tile(np.arange(len(PREVALENCES)), patients),
        own=np.column_stack([asked(truth), asked(truth)]), shown=asked(other)[:, None], truth_own=truth.ravel(),
        truth_shown=other.ravel(), yes=np.zeros(truth.size, dtype=np.int64), placebo=asked(truth)[:, None],
    )  # fmt: skip


def test_what_is_promised_holds_within_three_points():
    """The promise is counted in 1,000 studies, and held to 1,000 made otherwise: each count strays by 1.1 points."""
    promised = power_of(PLAN, 40, workers=1)
    assert 0.5 < promised.power < 0.95
    verdicts = [
        verdict_of({"swap": made_otherwise(40, np.random.default_rng([9, number]))}, decoding="sampled").verdict
        for number in range(1000)
    ]
    assert verdicts.count("uses") / 1000 == pytest.approx(promised.power, abs=0.03)


def test_the_number_found_has_the_power_and_fewer_have_not(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(power_module, "SEARCHED", 60)
    plan = replace(PLAN, reliance=0.5)
    found = patients_needed(plan, 0.8, studies=200, workers=1)
    assert found is not None and found.power >= 0.8
    assert found.studies == 200
    fewer = power_of(plan, round(0.6 * found.patients), studies=200, workers=1)
    assert fewer.power < found.power - 0.05


def test_what_no_study_can_find_is_not_promised(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(power_module, "MOST_PATIENTS", 12)
    monkeypatch.setattr(power_module, "SEARCHED", 20)
    assert patients_needed(replace(PLAN, reliance=0.01), 0.9, workers=1) is None


def test_power_grows_with_reliance_and_shrinks_with_the_floor():
    plan = replace(PLAN, reliance=0.3)
    usual, noisy, less = (
        power_of(each, 30, studies=100, workers=1).power
        for each in (plan, replace(plan, floor=0.3), replace(plan, reliance=0.1))
    )
    assert usual > noisy + 0.05 and usual > less + 0.2


def test_its_reader_changes_its_answers_as_often_as_the_floor_says():
    """2 s (1 - s) = 0.1, and of what it follows 1 - 2 s is left."""
    study = Study(Design(patients=800).draw(np.random.default_rng(3)), [Arm("own", "own", runs=2)])
    first, second = study.answers(reading(0.5, floor=0.1), 4)["own"]
    assert (first.choice != second.choice).mean() == pytest.approx(0.1, abs=0.005)
    assert reading(0.5, floor=0.1).following == pytest.approx(0.5 * 0.8**0.5)


# -- pilots ------------------------------------------------------------------------------------------------------------


def pilot_swap(reader: str, design: Design, seed: int = 0, *, placebo: bool = True) -> tuple[Swap, np.ndarray]:
    arms = [Arm("own", "own", runs=2 if placebo else 1), Arm("swapped", "substitute")]
    arms += [Arm("placebo", "placebo")] if placebo else []
    study = Study(design.draw(np.random.default_rng(seed)), arms)
    return study.swap(study.answers(GALLERY[reader], seed)), study.cohort.study


def test_a_pilot_gives_back_its_design():
    design = Design(patients=1500, studies=2.0, prevalences=PREVALENCES, four_option=2, correlation=0.3)
    pilot = design_of(*pilot_swap("reads-30-sampled", design), Rules())
    found = pilot.design
    assert (found.patients, found.studies, found.unequal, found.four_option) == (1500, 2.0, False, 2)
    assert found.prevalences == pytest.approx(PREVALENCES, abs=0.03)
    assert found.correlation == pytest.approx(0.3, abs=0.04)
    assert found.substitutes == "another" and pilot.warnings == ()
    assert pilot.reliance == pytest.approx(0.3, abs=0.03)
    # Of the 70 % that are guesses 2 p (1 - p) change, or three in four of those with four options.
    guesses = np.mean([2 * p * (1 - p) for p in PREVALENCES] + [0.75] * 2)
    assert pilot.floor == pytest.approx(0.7 * guesses, abs=0.02)
    uneven = design_of(*pilot_swap("reads-30", replace(design, unequal=True, substitutes="same-if-possible")), Rules())
    assert uneven.design.unequal and uneven.floor == 0


def test_fewer_than_ten_patients_are_refused():
    """Six patients of which every trial flips once gave "correlation 0.0000" and 1,569 patients."""
    with pytest.raises(BadInput, match="the pilot has 6 patients; fewer than 10 cannot say how patients differ"):
        design_of(*pilot_swap("reads-100", Design(patients=6)), Rules())


def test_a_pilot_without_a_flip_needs_a_reliance():
    pilot = design_of(*pilot_swap("majority", Design(patients=40)), Rules())
    assert pilot.reliance is None and "no answer moved in the pilot" in " ".join(pilot.warnings)
    with pytest.raises(BadInput, match="give --reliance"):
        plan_of(NOTHING, pilot)
    assert plan_of(replace(NOTHING, reliance=30.0), pilot).reliance == 0.3


def test_a_pilot_whose_every_answer_moves_is_widened():
    pilot = design_of(*pilot_swap("reads-100", Design(patients=40, correlation=0.0)), Rules())
    assert "every answer moved" in " ".join(pilot.warnings) and pilot.design.correlation >= 0.2


def test_a_small_pilot_and_one_of_as_many_patients_as_trials_are_widened():
    small = design_of(*pilot_swap("reads-30", Design(patients=12, correlation=0.0)), Rules())
    assert "12 patients hardly say how alike" in " ".join(small.warnings) and small.design.correlation == 0.2
    single = Design(patients=400, studies=1, prevalences=(0.5,))
    pilot = design_of(*pilot_swap("reads-30", single), Rules())
    assert "one trial per patient" in pilot.warnings[0] and pilot.design.correlation == 0.2


def test_a_pilot_without_a_floor_says_so():
    pilot = design_of(*pilot_swap("reads-30", Design(patients=40), placebo=False), Rules())
    assert pilot.floor is None and "measured no floor" in pilot.warnings[-1]


def test_the_intraclass_correlation_by_hand():
    """Clusters (1, 1), (0, 0), (1, 0) about 1/2: products 1/4, 1/4, -1/4, each twice, over 6 and over 1/4: 1/3."""
    values, clusters = np.array([1.0, 1, 0, 0, 1, 0]), np.array([0, 0, 1, 1, 2, 2])
    assert intraclass(values, clusters, np.zeros(6, dtype=np.int64)) == pytest.approx(1 / 3)
    assert intraclass(values, np.arange(6), np.zeros(6, dtype=np.int64)) == 0.0
    assert intraclass(np.ones(6), clusters, np.zeros(6, dtype=np.int64)) == 0.0


# -- the command -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"reliance": 1000.0}, "--reliance 1000: must lie from 0 to 100"),
        ({"reliance": float("nan")}, "--reliance nan"),
        ({"correlation": float("inf")}, "--correlation inf"),
        ({"floor": 60.0}, "--floor 60"),
        ({"prevalence": (10.0, 0.0)}, "--prevalence 0"),
        ({"prevalence": (10.0,), "findings": 3}, "either --findings or --prevalence"),
        ({"studies": 1e300}, r"--studies 1e\+300"),
    ],
)
def test_numbers_that_cannot_be_are_one_line(options: dict[str, object], message: str):
    with pytest.raises(BadInput, match=message) as error:
        replace(NOTHING, **options).check()  # type: ignore[arg-type]
    assert "\n" not in str(error.value)


def test_options_make_the_design():
    plan = plan_of(replace(NOTHING, reliance=30.0, studies=2.0, prevalence=(10.0, 40.0), floor=1.0), None)
    assert plan.design.prevalences == (0.1, 0.4) and plan.design.studies == 2 and plan.floor == 0.01
    four = plan_of(replace(NOTHING, reliance=30.0, four_option=5), None)
    assert four.design.prevalences == () and four.trials_per_patient == 5
    assert len(plan_of(replace(NOTHING, reliance=30.0, findings=7), None).design.prevalences) == 7


def power(*options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "overread", "power", *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


def test_the_command_says_the_power_with_its_error(tmp_path: Path):
    done = power("--reliance", "30", "--patients", "30", "--studies", "1", "--findings", "3")
    assert done.returncode == 0, done.stderr
    assert "3 yes-no findings of 3 to 60 % per study, 1.0 studies per patient (even), correlation 0.20" in done.stdout
    assert "with 30 patients, in 1000 simulated studies" in done.stdout
    assert "a reader that follows the picture in 30 % is said to use it" in done.stdout
    for options, message in (
        (("--patients", "30"), "overread: give --reliance"), (("--reliance", "1e999"), "overread: --reliance inf"),
        (("--reliance", "30", "--pilot", str(tmp_path)), "asked.json: no such file"),
    ):  # fmt: skip
        done = power(*options)
        assert done.returncode == 1 and message in done.stderr and len(done.stderr.splitlines()) == 1
    done = power("--discordance", "1000")
    assert done.returncode == 2 and "No such option" in done.stderr


def test_simulation_error_is_binomial():
    low, high = interval(800, 1000)
    assert 0.77 < low < 0.78 and 0.82 < high < 0.83


def test_a_pilot_of_several_readouts_is_of_the_plainest_whatever_the_names(tmp_path: Path):
    """First-token probabilities follow the picture here, chosen options do not."""
    truth = ["yes" if number % 2 else "no" for number in range(12)]

    def arm(step: int, *, follows: bool) -> list[Asked]:
        shown = [(number + step) % 12 for number in range(12)]
        return [
            Asked(f"q{n}", f"p{n}", truth[n], truth[m if follows else n], image=(f"study of q{m}", f"p{m}", truth[m]))
            for n, m in enumerate(shown)
        ]

    cells, settings = [], {}
    for name, readout, follows in (("a", "first-token", True), ("z", "yes-no", False)):
        settings[name] = {"images": "v", "readout": readout}
        settings[f"{name}-swapped"] = {**settings[name], "source": "substitute"}
        cells += [
            write_cell(tmp_path, name, arm(0, follows=follows)),
            write_cell(tmp_path, f"{name}-swapped", arm(1, follows=follows)),
        ]
    spec = {
        "cells": cells, "settings": settings, "effects": {}, "statistics": {},
        "comparisons": {f"swap-{name}": {"flips": [name, f"{name}-swapped"]} for name in ("a", "z")},
    }  # fmt: skip
    (tmp_path / "asked.json").write_text(json.dumps(spec), encoding="utf-8")
    pilot = pilot_of(tmp_path, None, None, None)
    assert pilot.name.startswith("swap-z of ") and pilot.reliance is None
    assert pilot_of(tmp_path, None, None, "swap-a").reliance == 1.0


def test_a_pilot_is_read_from_a_runs_answers(tmp_path: Path):
    """Of twelve patients every other one is yes; each is shown the next one's picture, and all answers follow it."""
    truth = ["yes" if number % 2 else "no" for number in range(12)]

    def arm(step: int) -> list[Asked]:
        shown = [(number + step) % 12 for number in range(12)]
        return [
            Asked(f"q{n}", f"p{n}", truth[n], truth[other], image=(f"study of q{other}", f"p{other}", truth[other]))
            for n, other in enumerate(shown)
        ]

    cells = [write_cell(tmp_path, "own", arm(0), arm(0)), write_cell(tmp_path, "swapped", arm(1))]
    spec = {
        "cells": cells, "settings": {"own": {"images": "v"}, "swapped": {"images": "v", "source": "substitute"}},
        "comparisons": {"swap": {"flips": ["own", "swapped"]}}, "effects": {}, "statistics": {},
    }  # fmt: skip
    (tmp_path / "asked.json").write_text(json.dumps(spec), encoding="utf-8")
    pilot = pilot_of(tmp_path, None, None, None)
    assert (pilot.patients, pilot.reliance, pilot.floor) == (12, 1.0, 0.0)
    assert pilot.design.prevalences == (0.5,) and pilot.design.studies == 1
    assert "one trial per patient" in pilot.warnings[0] and "every answer moved" in pilot.warnings[1]
    with pytest.raises(BadInput, match="no image swap 'swop'"):
        pilot_of(tmp_path, None, None, "swop")
    with pytest.raises(BadInput, match="nothing has an image swap"):
        pilot_of(tmp_path, None, "another", None)
