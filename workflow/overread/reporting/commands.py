"""`overread tables`: estimates with intervals, figures and the report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from overread.core.errors import BadInput
from overread.core.inputs import regular
from overread.core.outputs import OutputFolder

app = typer.Typer(
    help="Tables: accuracy, flips and effects with intervals, figures and the report.", no_args_is_help=True
)

Results = Annotated[Path, typer.Argument(help="the run's folder, results/<name>")]
Spec = Annotated[Path, typer.Option(help="JSON file: the part of the config that this takes")]


@app.command("make")
def make_command(
    results: Results, spec: Spec, out: Annotated[Path, typer.Option(help="the folder for the CSV files")]
) -> None:
    """Make every CSV table from the trials and responses."""
    from overread.estimates.make import make_tables
    from overread.estimates.spec import TablesSpec

    with OutputFolder(out, "tables make").guarding():
        written = make_tables(results, TablesSpec.model_validate_json(_text(spec)), out)
    for path in written:
        typer.echo(f"wrote {path}")


@app.command("human")
def human_command(
    results: Results,
    spec: Spec,
    subsets: Annotated[str, typer.Option(help="the section `human` of the config, as JSON")],
    out: Annotated[Path, typer.Option(help="the folder for the CSV files")],
) -> None:
    """Set people's ratings beside the models, on the same questions."""
    from overread.config import HumanSubset
    from overread.estimates.make import make_tables
    from overread.estimates.spec import TablesSpec

    sections = {name: HumanSubset.model_validate(one) for name, one in _mapping("--subsets", subsets).items()}
    with OutputFolder(out, "tables human").guarding():
        written = make_tables(results, TablesSpec.model_validate_json(_text(spec)), out, sections)
    for path in written:
        typer.echo(f"wrote {path}")


@app.command("figures")
def figures_command(
    tables: Annotated[Path, typer.Argument(help="the folder of the CSV files")],
    labels: Annotated[str, typer.Option(help="JSON: how each model is called")],
    out: Annotated[Path, typer.Option(help="the folder for the figures")],
) -> None:
    """Draw the figures from the CSV tables."""
    from overread.reporting import plots

    with OutputFolder(out, "tables figures").guarding():
        plots.draw(tables, _mapping("--labels", labels), out)


@app.command("report")
def report_command(
    results: Results,
    spec: Spec,
    out: Annotated[Path, typer.Option(help="the HTML file")],
    human: Annotated[bool, typer.Option("--human", help="show the tables of readers")] = False,
) -> None:
    """Write the report, one HTML file that opens offline."""
    from overread.reporting import report

    report.write(results, _mapping(str(spec), _text(spec)), out, human=human)


def _text(path: Path) -> str:
    try:
        return regular(path).read_text(encoding="utf-8")
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}") from None


def _mapping(option: str, text: str) -> dict[str, Any]:
    try:
        content = json.loads(text)
    except json.JSONDecodeError as error:
        raise BadInput(f"{option}: not JSON: {error}") from None
    if not isinstance(content, dict):
        raise BadInput(f"{option}: must be a JSON object")
    return content
