"""`overread images`: render the views of a study, and list the pictures of a data set."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(help="Render the views of studies and list the pictures.", no_args_is_help=True)

StudiesFile = Annotated[Path, typer.Argument(help="studies.parquet")]


@app.command("render")
def render_command(
    studies: StudiesFile,
    study: Annotated[str, typer.Option(help="the study's id")],
    views: Annotated[str, typer.Option(help="views by name, as JSON")],
    out: Annotated[Path, typer.Option(help="views.json to write; the pictures go beside it into pictures/")],
) -> None:
    """Render the views of one study. A study that can't be rendered is listed with the reason, which is no error."""
    from pydantic import TypeAdapter, ValidationError

    from overread.config import View
    from overread.errors import BadInput, unknown
    from overread.images.index import write_views
    from overread.records import one_line, read_studies

    try:
        wanted = TypeAdapter(dict[str, View]).validate_json(views)
    except ValidationError as error:
        raise BadInput(f"--views: {one_line(error)}") from None
    rows = {row.study: row for row in read_studies(studies, with_problems=True)}
    if study not in rows:
        raise BadInput(f"{studies}: {unknown('study', study, rows)}")
    problem = write_views(rows[study], wanted, out)
    typer.echo(f"{study}: {problem or 'rendered'}")


@app.command("index")
def index_command(
    studies: StudiesFile,
    images: Annotated[Path, typer.Option(help="the dataset's folder `images`")],
    out: Annotated[Path, typer.Option(help="images.parquet to write")],
    rejected: Annotated[Path, typer.Option(help="studies_rejected.csv to write")],
) -> None:
    """List all pictures, and the studies that could not be used with the reason; write the black pictures."""
    from overread.images.index import index_images
    from overread.records import read_studies

    used, refused = index_images(read_studies(studies, with_problems=True), images, out, rejected)
    typer.echo(f"{used} studies have pictures, {refused} could not be used")
