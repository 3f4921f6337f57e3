"""The command `overread`: a group of sub-commands for each stage, `plan` and `check` for a config, `serve` for a run.

An error that a person can act on is shown as its lines, without a traceback; anything else is a defect and shows one.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError

from overread import __version__
from overread.core.errors import OverreadError
from overread.core.frozen import check_frozen_code
from overread_viewer import readers_commands

STAGES = {
    "studies": "overread.sources.commands",
    "questions": "overread.curation.commands",
    "images": "overread.images.commands",
    "trials": "overread.trials.commands",
    "responses": "overread.responses.commands",
    "tables": "overread.reporting.commands",
}
"""The module of each stage's commands."""

app = typer.Typer(
    help="Measure whether a medical vision-language model reads the image or only the text beside it.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
for stage, module in STAGES.items():
    app.add_typer(importlib.import_module(module).app, name=stage)
app.add_typer(readers_commands.app, name="readers")

ConfigFile = Annotated[Path, typer.Option("--config", help="the study's config file")]


@app.callback(invoke_without_command=True)
def _version(version: Annotated[bool, typer.Option("--version", help="print the version and end")] = False) -> None:
    if version:
        typer.echo(__version__)
        raise typer.Exit()


@app.command("plan")
def plan_command(
    config: ConfigFile = Path("config/demo.yaml"),
    as_json: Annotated[bool, typer.Option("--json", help="for programs")] = False,
) -> None:
    """Say what would run, how much it asks for, and what can't run yet or never, and why."""
    from overread.plan.view import show_plan

    show_plan(config, json=as_json)


@app.command("check")
def check_command(config: ConfigFile = Path("config/demo.yaml")) -> None:
    """Check a config and its data before the first job; ends with 1 if something must be mended."""
    from overread.plan.view import show_check

    raise typer.Exit(show_check(config))


@app.command("power")
def power_command(
    difference: Annotated[float, typer.Option(help="the difference to be found, in percentage points")],
    pilot: Annotated[
        Path | None, typer.Option(help="a run's folder, results/<name>, whose answers say the rest")
    ] = None,
    effect: Annotated[str, typer.Option(help="of the pilot: an effect of two flip comparisons")] = "report-effect",
    dataset: Annotated[str | None, typer.Option(help="of the pilot, where it has several")] = None,
    model: Annotated[str | None, typer.Option(help="of the pilot, where it has several")] = None,
    discordance: Annotated[
        float | None, typer.Option(help="without a pilot: per cent of trials that flip in one comparison only")
    ] = None,
    correlation: Annotated[float | None, typer.Option(help="without a pilot: of a patient's trials, 0 to 1")] = None,
    trials: Annotated[float | None, typer.Option(help="trials a patient, on average; else the pilot's")] = None,
    variation: Annotated[
        float | None, typer.Option(help="standard deviation of that number over its mean; else the pilot's, or 0")
    ] = None,
    power: Annotated[float, typer.Option(help="chance of finding it")] = 0.8,
    level: Annotated[float, typer.Option(help="of the interval that must leave out 0")] = 0.95,
) -> None:
    """Say how many patients a difference of so many points between two flip rates needs."""
    from overread.reporting.power_view import show_power

    given = {
        "discordance": None if discordance is None else discordance / 100, "correlation": correlation,
        "trials_per_patient": trials, "variation": variation,
    }  # fmt: skip
    show_power(difference / 100, pilot, (effect, dataset, model), given, power=power, level=level)


@app.command("serve")
def serve_command(
    results: Annotated[Path, typer.Argument(help="the run's folder, results/<name>")],
    config: Annotated[
        Path | None, typer.Option("--config", help="the study's config file: its models answer questions of one's own")
    ] = None,
    study: Annotated[Path | None, typer.Option("--study", help="the file of a reader study, readers.yaml")] = None,
    host: Annotated[str, typer.Option(help="the address to listen on; another than loopback needs a password")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(help="0 takes a free one", min=0, max=65535)] = 8008,
    password_file: Annotated[
        Path | None, typer.Option("--password-file", help="a file whose first line is the password to be asked")
    ] = None,
) -> None:
    """Open a run as web pages: studies, answers, comparisons, the reader study."""
    from overread_viewer.commands import read_password, serve
    from overread_viewer.options import Options

    password = read_password(password_file) if password_file is not None else None
    serve(Options(results, config, study, host, port, password))


def main() -> None:
    """`python -m overread` and the console command."""
    try:
        check_frozen_code()
        app()
    except OverreadError as error:
        print(f"overread: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except ValidationError as error:
        # A part of the config that was given as JSON on the command line.
        for problem in error.errors(include_url=False):
            place = ".".join(str(part) for part in problem["loc"])
            print(f"overread: {error.title}: {place}: {problem['msg']}", file=sys.stderr)
        sys.exit(2)
