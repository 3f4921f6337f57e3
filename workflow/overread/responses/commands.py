"""`overread responses`: put trials to a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(help="Put trials to a model and keep every answer.", no_args_is_help=True)


@app.callback()
def _stage() -> None:
    """Keeps `answer` a sub-command although it is the only one."""


@app.command()
def answer(
    trials: Annotated[Path, typer.Argument(help="Parquet file of trials, <dataset>/trials/<setting>/run-<k>.parquet")],
    model: Annotated[str, typer.Option(help="the model's section as JSON")],
    model_id: Annotated[str, typer.Option("--id", help="the model's id in the tables")],
    work: Annotated[Path, typer.Option(help="work file: every answer as it comes; a killed job goes on from it")],
    out: Annotated[Path, typer.Option(help="Parquet file of responses, written once every trial has its answer")],
    attested: Annotated[
        list[str] | None, typer.Option(help="endpoint that may receive restricted data; may be repeated")
    ] = None,
) -> None:
    """Ask a model what it has not answered yet, and write its responses."""
    from pydantic import TypeAdapter, ValidationError

    from overread.config import Model
    from overread.errors import BadInput
    from overread.records import one_line
    from overread.responses.answering import answer_trials

    try:
        section: Model = TypeAdapter(Model).validate_json(model)
    except ValidationError as error:
        raise BadInput(f"--model: {one_line(error)}") from None
    answer_trials(trials, section, model_id, work, out, attested=attested or ())
