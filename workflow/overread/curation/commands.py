"""`overread questions`: what is asked about each study."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from overread.curation import curation_commands, generation_commands

app = typer.Typer(help="Make the questions about the studies.", no_args_is_help=True)


@app.command("build")
def build_command(
    studies: Annotated[Path, typer.Argument(help="studies.parquet")],
    section: Annotated[str, typer.Option(help="the dataset's questions section, as JSON")],
    out: Annotated[Path, typer.Option(help="questions.jsonl to write")],
    source: Annotated[Path | None, typer.Option(help="the phantom's folder, for questions of origin grammar")] = None,
) -> None:
    """Build the questions of a dataset."""
    from pydantic import TypeAdapter, ValidationError

    from overread.config import Questions
    from overread.core.errors import BadInput
    from overread.core.records import one_line, read_studies, write_questions
    from overread.questions import build

    try:
        asked = TypeAdapter[Questions](Questions).validate_json(section)
    except ValidationError as error:
        raise BadInput(f"--section: {one_line(error)}") from None
    questions, left_out = build(asked, read_studies(studies, with_problems=True), source)
    reasons = "; ".join(f"{count} left out ({reason})" for reason, count in sorted(left_out.items()))
    if not questions:
        raise BadInput(f"{studies}: there is nothing to ask about: {reasons or 'it holds no studies'}")
    write_questions(questions, out)
    about = len({question.study for question in questions})
    typer.echo(f"{len(questions)} questions about {about} studies" + (f"; {reasons}" if reasons else ""))


app.add_typer(generation_commands.app)
app.add_typer(curation_commands.app)
