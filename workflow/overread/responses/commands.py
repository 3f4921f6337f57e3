"""`overread responses`: put trials to a model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from overread.config import Model

ModelJson = Annotated[str, typer.Option("--model", help="the model's section as JSON")]
ModelId = Annotated[str, typer.Option("--id", help="the model's id in the tables")]
Attested = Annotated[list[str] | None, typer.Option(help="endpoint that may receive restricted data; may be repeated")]
Ledger = Annotated[
    Path | None, typer.Option(help="what all jobs of the model spend, for its budget; none: beside the work file")
]

app = typer.Typer(help="Put trials to a model and keep every answer.", no_args_is_help=True)


@app.command()
def answer(
    trials: Annotated[Path, typer.Argument(help="Parquet file of trials, <dataset>/trials/<setting>/run-<k>.parquet")],
    model: ModelJson,
    model_id: ModelId,
    work: Annotated[Path, typer.Option(help="work file: every answer as it comes; a killed job goes on from it")],
    out: Annotated[Path, typer.Option(help="Parquet file of responses, written once every trial has its answer")],
    attested: Attested = None,
    ledger: Ledger = None,
) -> None:
    """Ask a model what it has not answered yet, and write its responses."""
    from overread.core.stopping import heeding_warnings
    from overread.responses.answering import answer_trials

    with heeding_warnings():
        answer_trials(trials, _model(model), model_id, work, out, attested=attested or (), ledger=ledger)


@app.command("answer-all")
def answer_all_command(
    dataset: Annotated[Path, typer.Argument(help="the dataset's folder, with its trials")],
    runs: Annotated[str, typer.Option(help="how many runs each setting has, as JSON: {setting: runs}")],
    model: ModelJson,
    model_id: ModelId,
    work: Annotated[Path, typer.Option(help="folder of the work files of this dataset and model")],
    attested: Attested = None,
    ledger: Ledger = None,
) -> None:
    """Ask a model all of several settings and runs, loading it once."""
    from pydantic import TypeAdapter, ValidationError

    from overread.core.errors import BadInput
    from overread.core.records import one_line
    from overread.core.stopping import heeding_warnings
    from overread.responses.answering import answer_all

    try:
        asked = TypeAdapter(dict[str, int]).validate_json(runs)
    except ValidationError as error:
        raise BadInput(f"--runs: {one_line(error)}") from None
    with heeding_warnings():
        answer_all(dataset, _model(model), model_id, asked, work, attested=attested or (), ledger=ledger)


def _model(text: str) -> Model:
    from pydantic import TypeAdapter, ValidationError

    from overread.config import Model
    from overread.core.errors import BadInput
    from overread.core.records import one_line

    try:
        section: Model = TypeAdapter(Model).validate_json(text)
    except ValidationError as error:
        raise BadInput(f"--model: {one_line(error)}") from None
    return section
