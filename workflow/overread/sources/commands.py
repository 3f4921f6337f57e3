"""`overread studies`: make the semi-synthetic data, and read a data set's studies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from overread.config import Dataset

app = typer.Typer(help="Make semi-synthetic studies and read the studies of a data set.", no_args_is_help=True)

SectionText = Annotated[str, typer.Option(help="the dataset's section of the config, as JSON")]


@app.command("make")
def make_command(
    section: SectionText,
    out: Annotated[Path, typer.Option(help="folder to write, new or empty")],
    workers: Annotated[int, typer.Option(min=1, help="processes at once")] = 1,
) -> None:
    """Make the studies of a source that makes its own, such as the semi-synthetic ones, in the layout of a release."""
    made = _parsed(section)
    made.make(out, workers)
    typer.echo(f"{out}: {made.title}, modality {made.modality}")


@app.command("read")
def read_command(
    folder: Annotated[Path, typer.Argument(help="the data set's folder")],
    dataset: Annotated[str, typer.Option(help="its name in the config")],
    section: SectionText,
    out: Annotated[Path, typer.Option(help="studies.parquet to write")],
    remarks: Annotated[
        Path | None, typer.Option(help="CSV to write: rows and files that are not as they should be")
    ] = None,
    counts: Annotated[Path | None, typer.Option(help="CSV to write: how many images, studies and patients")] = None,
) -> None:
    """Read one row a study, also those that can't be used, with the reason."""
    from overread.core.errors import BadInput
    from overread.core.records import write_studies
    from overread.sources.shared.boxes import with_boxes
    from overread.sources.shared.remarks import Remarks

    parsed = _parsed(section)
    told = Remarks()
    studies = parsed.read(dataset, folder, told)
    if parsed.boxes is not None:
        studies = with_boxes(studies, parsed.boxes, told)
    told.count_studies(studies)
    told.write(remarks, counts)
    for what, number in told.counts.items():
        typer.echo(f"{what}: {number}")
    unusable = [study for study in studies if study.problem is not None]
    if len(unusable) == len(studies):
        first = f"; the first: {unusable[0].study}: {unusable[0].problem}" if unusable else ""
        raise BadInput(f"{folder}: none of {len(studies)} studies can be used{first}")
    write_studies(studies, out)
    typer.echo(f"{dataset}: {len(studies)} studies, {len(unusable)} of them can't be used; {len(told.rows)} remarks")


def _parsed(text: str) -> Dataset:
    """The section. What is asked does not change what is read, so `questions` may be absent, and is not looked at."""
    from pydantic import TypeAdapter, ValidationError

    from overread.config import Dataset
    from overread.core.errors import BadInput
    from overread.core.records import one_line

    try:
        content = json.loads(text)
        if not isinstance(content, dict):
            raise ValueError("must be a JSON object")
        content["questions"] = {"origin": "file", "path": "not-read"}
        return TypeAdapter[Dataset](Dataset).validate_python(content)
    except ValidationError as error:
        raise BadInput(f"--section: {one_line(error)}") from None
    except ValueError as error:
        raise BadInput(f"--section: {error}") from None
