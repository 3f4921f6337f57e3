"""What `overread power` says."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import typer

from overread.core.errors import BadInput
from overread.core.progress import say
from overread.estimates.inference.decide import Rules
from overread.gallery.cohorts import FINDINGS, Design
from overread.gallery.pilot import Pilot, pilot_of
from overread.gallery.power import MOST_PATIENTS, MOST_TRIALS, Plan, Power, patients_needed, power_of


@dataclass(frozen=True)
class Given:
    """The command's options: per cent and points; None for what a pilot or a default says."""

    reliance: float | None
    patients: int | None
    power: float
    studies: float | None
    uneven: bool
    findings: int | None
    prevalence: tuple[float, ...]
    four_option: int | None
    correlation: float | None
    floor: float | None
    smallest_effect: float | None
    level: float | None

    def check(self) -> None:
        """BadInput, in one line, for a number that cannot be."""
        shares = [("--prevalence", each) for each in self.prevalence]
        for option, value, low, high in (
            ("--reliance", self.reliance, 0, 100), ("--studies", self.studies, 1, 100),
            ("--power", self.power, 0.5, 0.999),
            ("--correlation", self.correlation, 0, 0.99), ("--floor", self.floor, 0, 49),
            ("--smallest-effect", self.smallest_effect, 0.1, 100), ("--level", self.level, 0.51, 0.999),
            *((option, value, 0.1, 99.9) for option, value in shares),
        ):  # fmt: skip
            if value is not None and not (math.isfinite(value) and low <= value <= high):
                raise BadInput(f"{option} {value:g}: must lie from {low:g} to {high:g}")
        if self.prevalence and self.findings is not None:
            raise BadInput("give either --findings or --prevalence")


def show_power(
    given: Given, results: Path | None, which: tuple[str | None, str | None, str | None], *, seed: int = 0
) -> None:
    """Print the power, or the patients needed for it, and on what it rests.

    which   dataset, model and image swap of the pilot
    raises  BadInput where neither options nor pilot say how far the picture is followed, or for numbers that cannot be
    """
    given.check()
    pilot = None if results is None else pilot_of(results, *which)
    if pilot is not None:
        _show_pilot(pilot)
    plan = plan_of(given, pilot)
    if plan.trials_per_patient * (given.patients or 10) > MOST_TRIALS:
        raise BadInput(f"more than {MOST_TRIALS:,} questions: too many to simulate")
    _show_plan(plan)
    if given.patients is not None:
        _show(power_of(plan, given.patients, seed=seed), plan)
    else:

        def tried(one: Power) -> None:
            say(f"{one.patients} patients: power {100 * one.power:.0f} % in {one.studies} simulated studies")

        found = patients_needed(plan, given.power, seed=seed, tried=tried)
        if found is None:
            raise BadInput(
                f"no study of up to {MOST_PATIENTS:,} patients or {MOST_TRIALS:,} questions says 'uses' with power "
                f"{given.power:g}: the reader follows the picture too rarely"
            )
        typer.echo(f"{found.patients} patients are needed for power {given.power:g}")
        _show(found, plan)
    if pilot is not None and given.reliance is None and pilot.least is not None:
        _show_least(plan, pilot, given.patients or (found.patients if found else 0), seed)


def plan_of(given: Given, pilot: Pilot | None) -> Plan:
    """The study that options and pilot describe; what an option says goes before what the pilot says.

    raises  BadInput where neither says how far the picture is followed
    """
    if given.reliance is not None:
        reliance = given.reliance / 100
    elif pilot is not None and pilot.reliance is not None and pilot.reliance > 0:
        reliance = min(1.0, pilot.reliance)
    else:
        why = "the pilot shows no following" if pilot is not None else "no pilot says it"
        raise BadInput(f"give --reliance, the per cent of questions in which the picture is followed: {why}")
    design = pilot.design if pilot is not None else Design(studies=1.0)
    changes: dict[str, object] = {"unequal": given.uneven or design.unequal}
    if given.studies is not None:
        changes["studies"] = given.studies
    if given.findings is not None:
        first, last = FINDINGS[0], FINDINGS[-1]
        spread = np.linspace(first, last, given.findings) if given.findings > 1 else [(first + last) / 2]
        changes["prevalences"] = tuple(float(share) for share in spread)
    if given.prevalence:
        changes["prevalences"] = tuple(each / 100 for each in given.prevalence)
    if given.four_option is not None:
        changes["four_option"] = given.four_option
        if pilot is None and given.findings is None and not given.prevalence:
            changes["prevalences"] = ()
    if given.correlation is not None:
        changes["correlation"] = given.correlation
    rules = pilot.rules if pilot is not None else Rules()
    if given.smallest_effect is not None:
        rules = replace(rules, following=given.smallest_effect / 100)
    if given.level is not None:
        rules = replace(rules, level=given.level)
    floor = given.floor / 100 if given.floor is not None else (pilot.floor if pilot is not None else None) or 0.0
    plan = Plan(replace(design, **changes), reliance, min(floor, 0.49), rules)  # type: ignore[arg-type]
    if plan.trials_per_patient <= 0:
        raise BadInput("nothing is asked: give --findings, --prevalence or --four-option")
    return plan


def _show_pilot(pilot: Pilot) -> None:
    followed = "" if pilot.reliance is None else f", following {100 * pilot.reliance:+.1f} points"
    typer.echo(f"pilot: {pilot.name}, {pilot.patients} patients{followed}")
    for warning in pilot.warnings:
        typer.echo(f"warning: {warning}", err=True)


def _show_plan(plan: Plan) -> None:
    design = plan.design
    asked = []
    if design.prevalences:
        low, high = (100 * end for end in (min(design.prevalences), max(design.prevalences)))
        asked.append(f"{len(design.prevalences)} yes-no findings of {low:.0f} to {high:.0f} %")
    if design.four_option:
        asked.append(f"{design.four_option} four-option questions")
    sizes = "uneven" if design.unequal else "even"
    typer.echo(
        f"design: {' and '.join(asked)} per study, {design.studies:.1f} studies per patient ({sizes}), correlation "
        f"{design.correlation:.2f}; picture followed in {100 * plan.reliance:g} % of the questions, "
        f"{100 * plan.floor:g} % of answers change when asked again; smallest effect "
        f"{100 * plan.rules.following:g} points, level {plan.rules.level:g}"
    )


def _show(found: Power, plan: Plan) -> None:
    typer.echo(f"with {found.patients} patients, in {found.studies} simulated studies (simulation error in brackets):")
    for what, seen in (
        (f"a reader that follows the picture in {100 * plan.reliance:g} % is said to use it", found.uses),
        ("it is said not to use it (within the smallest effect)", found.wrong),
        ("a reader that does not read is said not to use it", found.does_not),
    ):
        low, high = found.error(seen)
        typer.echo(f"  {what}: {100 * seen / found.studies:.1f} % ({100 * low:.1f} to {100 * high:.1f})")


def _show_least(plan: Plan, pilot: Pilot, patients: int, seed: int) -> None:
    """What remains if the pilot was lucky: the power at the lower limit of what it found."""
    assert pilot.least is not None
    if pilot.least <= 0:
        typer.echo("warning: the pilot's interval of following includes 0: it may not read at all", err=True)
        return
    found = power_of(replace(plan, reliance=pilot.least), patients, seed=seed)
    typer.echo(
        f"if it follows the picture in {100 * pilot.least:.1f} % only, the lower limit of the pilot's interval, the "
        f"power is {100 * found.power:.1f} %"
    )
