"""`overread trials`: whose image replaces whose, and the requests of a setting."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(help="Choose substitutes and build the trials of a setting.", no_args_is_help=True)

StudiesFile = Annotated[Path, typer.Option(help="studies.parquet")]
PicturesFile = Annotated[Path, typer.Option(help="images.parquet")]
Seed = Annotated[int, typer.Option(help="the config's seed")]
Out = Annotated[Path, typer.Option(help="file to write")]


@app.command("substitutes")
def substitutes_command(studies: StudiesFile, pictures: PicturesFile, out: Out, seed: Seed = 0) -> None:
    """Choose for each study whose image replaces its own."""
    from collections import Counter

    from overread.records import read_pictures, read_studies, write_substitutes
    from overread.trials.substitutes import choose_substitutes

    known = read_pictures(pictures)
    chosen = choose_substitutes(read_studies(studies), known, seed)
    write_substitutes(chosen, out)
    alone = len({picture.study for picture in known}) - len(chosen)
    for why, count in sorted(Counter(one.why for one in chosen).items()):
        typer.echo(f"{count} studies: {why}")
    if alone:
        typer.echo(f"{alone} studies: no substitute")


@app.command("build")
def build_command(
    questions: Annotated[Path, typer.Argument(help="questions.jsonl")],
    studies: StudiesFile,
    pictures: PicturesFile,
    substitutes: Annotated[Path, typer.Option(help="substitutes.csv")],
    setting: Annotated[str, typer.Option(help="the setting's fields, as JSON")],
    name: Annotated[str, typer.Option(help="the setting's name")],
    out: Out,
    run: Annotated[int, typer.Option(min=1, help="which repetition")] = 1,
    section: Annotated[str, typer.Option(help="the dataset's questions section, as JSON")] = '{"origin": "grammar"}',
    prompts: Annotated[Path | None, typer.Option(help="folder of prompt templates; else Overread's own")] = None,
    seed: Seed = 0,
) -> None:
    """Build the trials of one setting and run."""
    from pydantic import TypeAdapter

    from overread.config import Questions, Setting
    from overread.questions import truth
    from overread.records import read_pictures, read_questions, read_studies, read_substitutes, write_trials
    from overread.trials.build import build_trials
    from overread.trials.prompt import OWN_PROMPTS, Prompts

    fields = Setting.model_validate_json(setting)
    asked = TypeAdapter[Questions](Questions).validate_json(section)
    trials, left_out = build_trials(
        read_questions(questions),
        read_studies(studies),
        read_pictures(pictures),
        read_substitutes(substitutes),
        setting=fields,
        name=name,
        run=run,
        truth=lambda study, topic: truth(asked, study, topic),
        prompts=Prompts(prompts or OWN_PROMPTS),
        seed=seed,
    )
    write_trials(trials, out)
    typer.echo(f"{len(trials)} trials of {len({trial.study for trial in trials})} studies")
    for reason, count in sorted(left_out.items()):
        typer.echo(f"left out {count} questions: {reason}")
