"""The command `overread`: a group of sub-commands for each stage, `plan` and `check` for a config.

A group's module is imported when one of its commands is called, so that each job loads what it needs. Packages beside
the instrument add commands of their own through the entry points `overread.commands`: the viewer its `serve` and
`readers`.

An error that a person can act on is shown as its lines, without a traceback; anything else is a defect and shows one.
"""

from __future__ import annotations

import errno
import sys
from collections.abc import Iterator
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from overread import __version__
from overread.core.errors import OverreadError, unknown
from overread.core.frozen import check_frozen_code
from overread.core.outputs import keep_inputs

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

STAGES = {
    "studies": "overread.sources.commands",
    "questions": "overread.curation.commands",
    "images": "overread.images.commands",
    "trials": "overread.trials.commands",
    "responses": "overread.responses.commands",
    "tables": "overread.reporting.commands",
}
"""The module of each stage's commands."""
CALIBRATION = {"power": "power_app", "gallery": "gallery_app"}
"""What of `gallery.commands` each command is."""


REFUSALS = frozenset({errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.EISDIR, errno.ENOTDIR})
"""What a file system refuses."""


def registered(group: typer.Typer) -> Iterator[Any]:
    """All commands of a group, those of the groups that are merged into it too."""
    yield from group.registered_commands
    for each in group.registered_groups:
        if each.typer_instance is not None:
            yield from registered(each.typer_instance)


class Commands(TyperGroup):
    """The commands of this module, the stages', and those that other packages add."""

    @cached_property
    def added(self) -> dict[str, EntryPoint]:
        """By name. Looks through all that is installed: asked only for a name that is none of the instrument's own."""
        from importlib.metadata import entry_points

        return {point.name: point for point in entry_points(group="overread.commands")}

    def list_commands(self, ctx: Any) -> list[str]:
        return [*STAGES, *self.commands, *CALIBRATION, *sorted(self.added)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name in STAGES:
            found = import_module(STAGES[cmd_name]).app
        elif cmd_name in CALIBRATION:
            found = getattr(import_module("overread.gallery.commands"), CALIBRATION[cmd_name])
        elif cmd_name in self.commands:
            return self.commands[cmd_name]
        elif cmd_name in self.added:
            found = self.added[cmd_name].load()
        else:
            return None
        for each in registered(found):
            each.callback = keep_inputs(each.callback)
        command = get_command(found)
        command.name = cmd_name
        return command

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name = args[0]
        if not (name in self.list_commands(ctx) or name.startswith("-")):
            # Typer looks for what was meant among the commands that are loaded.
            ctx.fail(unknown("command", name, self.list_commands(ctx)))
        return super().resolve_command(ctx, args)


app = typer.Typer(
    cls=Commands,
    help="Measure whether a medical vision-language model reads the image or only the text beside it.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)

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
    """Show what would run, how many requests it would send, and what cannot run and why."""
    from overread.plan.view import show_plan

    show_plan(config, json=as_json)


@app.command("check")
def check_command(config: ConfigFile = Path("config/demo.yaml")) -> None:
    """Check a config and its data before the first job; exits with status 1 if anything needs fixing."""
    from overread.plan.view import show_check

    raise typer.Exit(show_check(config))


def main() -> None:
    """`python -m overread` and the console command."""
    try:
        check_frozen_code()
        app()
    except OverreadError as error:
        print(f"overread: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except OSError as error:
        # No defect of ours where the file system says no: read-only, full, not allowed.
        if error.errno not in REFUSALS or error.filename is None:
            raise
        print(f"overread: {error.filename}: {error.strerror}", file=sys.stderr)
        sys.exit(1)
    except ValueError as error:
        from pydantic import ValidationError

        if not isinstance(error, ValidationError):
            raise
        # A part of the config that was given as JSON on the command line.
        for problem in error.errors(include_url=False):
            place = ".".join(str(part) for part in problem["loc"])
            print(f"overread: {error.title}: {place}: {problem['msg']}", file=sys.stderr)
        sys.exit(2)
