"""`overread images`: segment a study, render its views, list the pictures of a data set, and show them on sheets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

app = typer.Typer(help="Segment studies, render their views and list the pictures.", no_args_is_help=True)

StudiesFile = Annotated[Path, typer.Argument(help="studies.parquet")]


@app.command("render")
def render_command(
    studies: StudiesFile,
    study: Annotated[str, typer.Option(help="the study's id")],
    views: Annotated[str, typer.Option(help="views by name, as JSON")],
    out: Annotated[Path, typer.Option(help="views.json to write; the pictures go beside it into pictures/")],
    segmentation: Annotated[
        Path | None, typer.Option(help="JSON that `segment` wrote: its masks are taken; else the study's own")
    ] = None,
) -> None:
    """Render the views of one study. A study that can't be rendered is listed with the reason, which is no error."""
    from pydantic import TypeAdapter, ValidationError

    from overread.config import View
    from overread.core.errors import BadInput, unknown
    from overread.core.records import one_line, read_studies
    from overread.edits import Edit
    from overread.images.index import write_views

    try:
        sections = TypeAdapter(dict[str, dict[str, Any]]).validate_json(views)
        edited = {name: section.pop("edit", []) for name, section in sections.items()}
        wanted = TypeAdapter(dict[str, View]).validate_python(sections)
        edits = TypeAdapter(dict[str, tuple[Edit, ...]]).validate_python(edited)
    except ValidationError as error:
        raise BadInput(f"--views: {one_line(error)}") from None
    rows = {row.study: row for row in read_studies(studies, with_problems=True)}
    if study not in rows:
        raise BadInput(f"{studies}: {unknown('study', study, rows)}")
    row, masks = rows[study], ""
    if segmentation is not None:
        from overread.images.segmentation.result import with_masks

        row, masks = with_masks(row, segmentation)
    problem = write_views(row, wanted, out, masks, edits)
    typer.echo(f"{study}: {problem or 'rendered'}")


@app.command("segment")
def segment_command(
    studies: StudiesFile,
    study: Annotated[str, typer.Option(help="the study's id")],
    section: Annotated[str, typer.Option(help="a dataset's `segmentation` of the config, as JSON")],
    out: Annotated[Path, typer.Option(help="mask to write, <name>.nii.gz; <name>.json goes beside it")],
    work: Annotated[Path | None, typer.Option(help="folder of finished masks: what is there is not made again")] = None,
) -> None:
    """Segment the tumour of one study. One that can't be segmented has the reason in its JSON, which is no error."""
    from pydantic import TypeAdapter, ValidationError

    from overread.config import Segmentation
    from overread.core.errors import BadInput, unknown
    from overread.core.records import one_line, read_studies
    from overread.images.segmentation.study import segment

    try:
        wanted: Segmentation = TypeAdapter(Segmentation).validate_json(section)
    except ValidationError as error:
        raise BadInput(f"--section: {one_line(error)}") from None
    rows = {row.study: row for row in read_studies(studies, with_problems=True)}
    if study not in rows:
        raise BadInput(f"{studies}: {unknown('study', study, rows)}")
    result = segment(rows[study], wanted, out, work=work)
    typer.echo(f"{study}: {result.problem or f'segmented by {result.method}'}")


@app.command("index")
def index_command(
    studies: StudiesFile,
    images: Annotated[Path, typer.Option(help="the dataset's folder `images`")],
    out: Annotated[Path, typer.Option(help="images.parquet to write")],
    rejected: Annotated[Path, typer.Option(help="studies_rejected.csv to write")],
    left_out: Annotated[Path | None, typer.Option(help="pictures_left_out.csv to write")] = None,
) -> None:
    """List all pictures, and the studies that could not be used with the reason; write the black pictures."""
    from overread.core.records import read_studies
    from overread.images.index import index_images

    used, refused = index_images(read_studies(studies, with_problems=True), images, out, rejected, left_out)
    typer.echo(f"{used} studies have pictures, {refused} could not be used")


@app.command("sheet")
def sheet_command(
    folder: Annotated[Path, typer.Argument(help="the dataset's folder, results/<name>/<dataset>")],
    out: Annotated[Path, typer.Option(help="folder for the pages, a PNG a study")],
    study: Annotated[list[str] | None, typer.Option(help="a study's id; repeat it for more; else all")] = None,
) -> None:
    """Show all that a study's views show on one page, for a person to check."""
    from overread.core.outputs import OutputFolder
    from overread.images.sheet import write_sheets

    with OutputFolder(out, "images sheet").guarding():
        written = write_sheets(folder, out, study or ())
    typer.echo(f"{len(written)} {'page' if len(written) == 1 else 'pages'} in {out}")
