"""What `overread power` says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import typer

from overread.core.errors import BadInput
from overread.estimates.power import FEW, Design, patients_needed, pilot_of

OPTIONS = {
    "discordance": "--discordance",
    "correlation": "--correlation",
    "trials_per_patient": "--trials",
    "variation": "--variation",
}


def show_power(
    difference: float,
    results: Path | None,
    which: tuple[str, str | None, str | None],
    given: Mapping[str, float | None],
    *,
    power: float,
    level: float,
) -> None:
    """Print the patients needed, and on what that rests.

    difference  a share
    which       effect, dataset and model of the pilot
    given       fields of `Design`; they go before what the pilot says, None for what it shall say
    raises      BadInput where neither says it
    """
    known: dict[str, float] = {"variation": 0.0}
    if results is not None:
        pilot = pilot_of(results, *which)
        known = asdict(pilot.design)
        found = f"a difference of {100 * pilot.difference:+.1f} points"
        typer.echo(f"pilot: {pilot.patients} patients, {pilot.trials} trials, {found}")
    known |= {name: value for name, value in given.items() if value is not None}
    missing = [option for name, option in OPTIONS.items() if name not in known]
    if missing:
        raise BadInput(f"give {', '.join(missing)}, or a --pilot")
    design = Design(**known)
    needed = patients_needed(difference, design, power=power, level=level)
    typer.echo(
        f"discordance {100 * design.discordance:.2f} %, correlation {design.correlation:.4f}, "
        f"{design.trials_per_patient:.1f} trials a patient (variation {design.variation:.2f}): "
        f"design effect {design.design_effect:.2f}"
    )
    size = f"{100 * abs(difference):g} points"
    typer.echo(f"{needed} patients find a difference of {size} with power {power:g} at level {level:g}")
    if needed < FEW:
        typer.echo(f"With fewer than {FEW} patients intervals are too narrow: take {FEW}.")
