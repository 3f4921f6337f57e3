"""`overread readers links`, `status` and `export`: a reader study without its server, also while it runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from overread_viewer.readers.opening import ReaderStudy

app = typer.Typer(
    help="The raters of a reader study: their links, their progress, their ratings.", no_args_is_help=True
)

ReadersFile = Annotated[Path, typer.Argument(help="the file of the reader study, readers.yaml")]


@app.command("links")
def links_command(
    readers: ReadersFile,
    address: Annotated[str, typer.Option(help="where raters reach the server")] = "http://127.0.0.1:8008",
) -> None:
    """Print each rater's personal link. A link is a key: send it to its rater alone."""
    from overread_viewer.readers.opening import stored_study

    file, database = stored_study(readers)
    for rater in database.raters():
        if rater.open and rater.rater in file.raters:
            typer.echo(f"{rater.rater} ({rater.name}): {address.rstrip('/')}/read/{rater.token}")
    typer.echo(f"organiser: {address.rstrip('/')}/read/{database.organiser()}")


@app.command("status")
def status_command(readers: ReadersFile) -> None:
    """Say how far each rater is."""
    from overread_viewer.readers.opening import stored_study

    _, database = stored_study(readers)
    for one in database.progress():
        line = f"{one.rater.rater} ({one.rater.name}): {one.finished} of {one.questions} questions finished"
        if one.read > one.finished:
            line += f", {one.read - one.finished} with the own answer only"
        if one.practice:
            line += f", {one.practice_finished} of {one.practice} for practice"
        line += f"; last seen {one.last}" if one.last else "; not begun"
        typer.echo(line + ("" if one.rater.open else "; link closed"))


@app.command("export")
def export_command(
    readers: ReadersFile,
    out: Annotated[Path | None, typer.Option(help="CSV to write; else the file's `ratings`")] = None,
) -> None:
    """Write ratings.csv: a row for each finished question that counts."""
    from overread.core.errors import BadInput
    from overread_viewer.readers.opening import stored_study
    from overread_viewer.readers.ratings import export

    file, database = stored_study(readers)
    path = out if out is not None else Path(file.ratings)
    try:
        count = export(database, path)
    except OSError as error:
        raise BadInput(f"{path}: can't be written: {error.strerror}") from None
    typer.echo(f"{count} ratings: {path}")


def announced(study: ReaderStudy, address: str) -> list[str]:
    """What the organiser reads when the server of a study starts: what to know, and the links."""
    fixed = study.fixed
    counted = sum(not one.practice for one in study.database.questions())
    lines = [f"Note: {remark}" for remark in study.remarks]
    lines.append(
        f"Reader study {fixed.name}: {counted} questions of {fixed.dataset}; nothing else of the run is served."
    )
    lines += [f"  {rater.rater} ({rater.name}): {link}" for rater, link in study.links(address)]
    return [*lines, f"  organiser (progress, ratings.csv): {study.organiser_link(address)}"]
