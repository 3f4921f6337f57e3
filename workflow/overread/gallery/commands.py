"""`overread gallery` and `overread power`: what the verdicts are worth, and what a study could find."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from overread.core.errors import BadInput, unknown

DRAWN = 400
"""Simulated studies per cell, unless set otherwise."""
WIDTH = 170
"""Columns of the tables in a log."""


def gallery_command(
    studies: Annotated[int, typer.Option(help="simulated studies per reader and cohort", min=10, max=100_000)] = DRAWN,
    readers: Annotated[list[str] | None, typer.Option("--reader", help="only this one; may be repeated")] = None,
    designs: Annotated[list[str] | None, typer.Option("--cohort", help="only this one; may be repeated")] = None,
    out: Annotated[Path | None, typer.Option(help="folder for gallery.md and the CSV files")] = None,
    page: Annotated[Path | None, typer.Option(help="another place for a copy of gallery.md")] = None,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    listed: Annotated[bool, typer.Option("--list", help="list readers and cohorts, and end")] = False,
) -> None:
    """Put readers of known behaviour through the verdicts; ends with 1 if a bound is broken."""
    from rich.console import Console

    from overread.core.outputs import replacing
    from overread.core.progress import progress
    from overread.gallery import coverage, errors, verdicts
    from overread.gallery.page import Results, markdown, show, write
    from overread.gallery.readers import GALLERY

    console = Console()
    if not console.is_terminal:
        console = Console(width=WIDTH)
    if listed:
        for name, one in GALLERY.items():
            console.print(f"{name:22} {one.truth:24} {one.description}", highlight=False)
        console.print(*(f"cohort: {name}" for name in verdicts.DESIGNS), sep="\n", highlight=False)
        return
    for kind, given, known in (("reader", readers, GALLERY), ("cohort", designs, verdicts.DESIGNS)):
        for name in given or ():
            if name not in known:
                raise BadInput(unknown(kind, name, known))
    chosen = {name: verdicts.DESIGNS[name] for name in designs or verdicts.DESIGNS}
    whole = readers is None and designs is None
    started = time.monotonic()
    with progress(
        "Readers of the gallery", len(verdicts.jobs(chosen, studies)), f"lots of {verdicts.CHUNK} simulated studies"
    ) as advance:
        tried = verdicts.try_readers(chosen, readers or list(GALLERY), studies, seed=seed, done=advance)
    covered = []
    if whole:
        cells = coverage.grid()
        with progress("Coverage of intervals", len(cells), "cohorts") as advance:
            covered = coverage.cover(cells, studies, seed=seed, done=advance)
    results = Results(
        studies, time.monotonic() - started, tried, verdicts.tallies(tried), errors.errors(tried),
        errors.recovered(tried), covered,
    )  # fmt: skip
    show(results, console)
    if out is not None:
        for path in write(results, out):
            typer.echo(f"wrote {path}")
    if page is not None:
        with replacing(page) as temporary:
            temporary.write_text(markdown(results), encoding="utf-8")
        typer.echo(f"wrote {page}")
    raise typer.Exit(1 if results.broken else 0)


def power_command(
    reliance: Annotated[
        float | None,
        typer.Option(help="per cent of questions in which it follows the picture; else the pilot's"),
    ] = None,
    patients: Annotated[
        int | None, typer.Option(help="of the study; without it, as many as --power needs", min=10, max=5000)
    ] = None,
    power: Annotated[float, typer.Option(help="chance of the verdict 'uses', where patients are looked for")] = 0.8,
    studies: Annotated[
        float | None, typer.Option(help="studies per patient, on average; else the pilot's, or 1")
    ] = None,
    uneven: Annotated[bool, typer.Option(help="most patients have one study and a few have many")] = False,
    findings: Annotated[int | None, typer.Option(help="yes-no findings, of 3 to 60 per cent", min=1, max=200)] = None,
    prevalence: Annotated[
        list[float] | None, typer.Option(help="per cent of one finding; repeat it for each, instead of --findings")
    ] = None,
    four_option: Annotated[
        int | None, typer.Option(help="questions with four options per study", min=0, max=200)
    ] = None,
    correlation: Annotated[
        float | None, typer.Option(help="of a patient's trials, 0 to below 1; else the pilot's, or 0.2")
    ] = None,
    floor: Annotated[
        float | None, typer.Option(help="per cent of answers that change when asked again; else the pilot's, or 0")
    ] = None,
    smallest_effect: Annotated[
        float | None, typer.Option(help="on following, in points; else the pilot's config's, or 10")
    ] = None,
    level: Annotated[float | None, typer.Option(help="of the intervals; else the pilot's config's, or 0.95")] = None,
    pilot: Annotated[Path | None, typer.Option(help="a run's folder, results/<name>, that says the rest")] = None,
    dataset: Annotated[str | None, typer.Option(help="of the pilot, where it has several")] = None,
    model: Annotated[str | None, typer.Option(help="of the pilot, where it has several")] = None,
    comparison: Annotated[str | None, typer.Option(help="of the pilot: an image swap; else a primary one")] = None,
    seed: Annotated[int, typer.Option(min=0)] = 0,
) -> None:
    """Simulate a study, and say how often the verdict finds a reader that reads and one that does not."""
    from overread.gallery.power_view import Given, show_power

    given = Given(
        reliance, patients, power, studies, uneven, findings, tuple(prevalence or ()), four_option, correlation, floor,
        smallest_effect, level,
    )  # fmt: skip
    show_power(given, pilot, (dataset, model, comparison), seed=seed)


gallery_app, power_app = typer.Typer(), typer.Typer()
gallery_app.command("gallery")(gallery_command)
power_app.command("power")(power_command)
