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
def substitutes_command(
    studies: StudiesFile,
    pictures: PicturesFile,
    out: Out,
    seed: Seed = 0,
    section: Annotated[str, typer.Option(help="the dataset's substitutes section, as JSON")] = "{}",
    questions: Annotated[str, typer.Option(help="its questions section, as JSON, where each topic has its own")] = "",
) -> None:
    """Choose for each study whose image replaces its own."""
    from collections import Counter

    from pydantic import TypeAdapter

    from overread.config import Questions, Substitutes
    from overread.core.records import read_pictures, read_studies, write_substitutes
    from overread.trials.substitutes import choose_substitutes

    known = read_pictures(pictures)
    wanted = Substitutes.model_validate_json(section)
    asked = TypeAdapter[Questions](Questions).validate_json(questions) if questions else None
    chosen = choose_substitutes(read_studies(studies), known, seed, wanted, asked)
    write_substitutes(chosen, out)
    alone = {picture.study for picture in known} - {one.study for one in chosen}
    what = "questions' studies" if wanted.by_topic else "studies"
    for why, count in sorted(Counter(one.why for one in chosen).items()):
        typer.echo(f"{count} {what}: {why}")
    if alone:
        typer.echo(f"{len(alone)} studies: no substitute")


@app.command("cohort")
def cohort_command(
    folder: Annotated[Path, typer.Argument(help="a dataset's folder of results")],
    paper: Annotated[str | None, typer.Option(help="whose counts to print beside: modalens")] = None,
    out: Annotated[Path | None, typer.Option(help="CSV to write: the counts")] = None,
    left_out: Annotated[Path | None, typer.Option(help="CSV to write: the studies that are no case, and why")] = None,
) -> None:
    """Count patients, studies, images, cases, questions and trials at each step."""
    from collections import Counter

    from overread.core.errors import BadInput, unknown
    from overread.trials.cohort import COHORT, LEFT_OUT, PAPERS, cohort

    if paper is not None and paper not in PAPERS:
        raise BadInput(f"--paper: {unknown('paper', paper, PAPERS)}")
    steps, lost = cohort(folder, paper)
    for step in steps:
        beside = "" if step.paper is None else f"   {paper}: {step.paper:,}"
        typer.echo(f"{step.what}: {step.counted:,}{beside}")
    for why, count in sorted(Counter(one.why for one in lost).items()):
        typer.echo(f"no case: {count:,} studies: {why}")
    if out is not None:
        COHORT.write(out, steps)
    if left_out is not None:
        LEFT_OUT.write(left_out, lost)


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
    not_shown: Annotated[Path | None, typer.Option(help="pictures_left_out.csv: why a study has no picture")] = None,
    section: Annotated[str, typer.Option(help="the dataset's questions section, as JSON")] = '{"origin": "grammar"}',
    prompts: Annotated[
        Path | None, typer.Option(help="folder of your own templates, which go before Overread's of the same name")
    ] = None,
    findings: Annotated[
        Path | None, typer.Option(help="YAML with the words that mention a finding; else Overread's own")
    ] = None,
    tokenizer: Annotated[
        Path | None, typer.Option(help="folder with a tokenizer.json in whose tokens lengths are matched; else words")
    ] = None,
    seed: Seed = 0,
) -> None:
    """Build the trials of one setting and run."""
    from pydantic import TypeAdapter

    from overread.config import FindingQuestions, Questions, Setting
    from overread.core.records import read_pictures, read_questions, read_studies, read_substitutes, write_trials
    from overread.images.index import reasons
    from overread.questions import truth
    from overread.questions.findings import COMPOSITE
    from overread.trials.build import build_trials
    from overread.trials.lengths import in_tokens, in_words
    from overread.trials.mentions import OWN_FINDINGS, read_lexicon
    from overread.trials.prompt import OWN_PROMPTS, Prompts
    from overread.trials.reports import Reports

    fields = Setting.model_validate_json(setting)
    asked = TypeAdapter[Questions](Questions).validate_json(section)
    of_findings = asked if isinstance(asked, FindingQuestions) else FindingQuestions(origin="findings")
    templates = Prompts(OWN_PROMPTS) if prompts is None else Prompts(prompts, OWN_PROMPTS)
    trials, left_out = build_trials(
        read_questions(questions),
        read_studies(studies),
        read_pictures(pictures),
        read_substitutes(substitutes),
        setting=fields,
        name=name,
        run=run,
        truth=lambda study, topic: truth(asked, study, topic),
        prompts=templates,
        seed=seed,
        not_shown={} if not_shown is None else reasons(not_shown),
        reports=Reports(
            templates,
            read_lexicon(findings or OWN_FINDINGS),
            in_words if tokenizer is None else in_tokens(tokenizer),
            {COMPOSITE: of_findings.composite},
        ),
    )
    write_trials(trials, out)
    typer.echo(f"{len(trials)} trials of {len({trial.study for trial in trials})} studies")
    dropped = [len(trial.dropped) for trial in trials if trial.dropped]
    if dropped:
        typer.echo(f"{sum(dropped)} sentences left out of the reports of {len(dropped)} trials")
    for reason, count in sorted(left_out.items()):
        typer.echo(f"left out {count} questions: {reason}")
