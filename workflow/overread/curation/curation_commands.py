"""`overread questions filter`, `sample`, `apply-review`, `agreement` and `release`: from candidates to a dataset."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from overread.curation.review import Rule
    from overread.estimates.agreement import Level

RulesFile = Annotated[Path | None, typer.Option("--rules", help="the rules; else Overread's own filter.yaml")]

app = typer.Typer()


@app.command("filter")
def filter_command(
    candidates: Annotated[Path, typer.Argument(help="validated candidates, JSONL")],
    studies: Annotated[Path, typer.Argument(help="studies.parquet, with the reports")],
    out: Annotated[Path, typer.Option(help="questions.jsonl to write; the other files go beside it")],
    rules: RulesFile = None,
) -> None:
    """Keep the candidates that pass every rule; write the others with the rule that dropped them.

    Beside the questions: rejected.jsonl, trail.csv (the way back to the report), funnel.csv and its figure.
    """
    from overread.core.errors import BadInput
    from overread.core.outputs import OutputFolder
    from overread.core.records import read_studies, write_questions
    from overread.curation.candidates import read_candidates
    from overread.curation.filter import filter_candidates, write_rejected, write_trail
    from overread.curation.funnel import draw_funnel, write_funnel
    from overread.curation.rules import read_rules

    found = filter_candidates(read_candidates(candidates), read_studies(studies, with_problems=True), read_rules(rules))
    with OutputFolder(out.parent, "questions filter").guarding():
        write_rejected(found.rejected, out.parent / "rejected.jsonl")
        write_trail(found.trail, out.parent / "trail.csv")
        write_funnel(found.funnel, out.parent / "funnel.csv")
        draw_funnel(found.funnel, out.parent)
    for count in found.funnel:
        if count.dropped:
            typer.echo(f"{count.dropped} dropped: {count.stage}, {count.rule}")
    if not found.questions:
        raise BadInput(f"{candidates}: no question is left; {out.parent / 'rejected.jsonl'} says why for each")
    write_questions(found.questions, out)
    typer.echo(f"{len(found.questions)} of {found.funnel[0].came} questions kept")


@app.command("sample")
def sample_command(
    questions: Annotated[Path, typer.Argument(help="questions.jsonl")],
    out: Annotated[Path, typer.Option(help="CSV sheet to write")],
    count: Annotated[int, typer.Option(min=1, help="how many questions")] = 200,
    seed: Annotated[int, typer.Option(help="another seed, another sample")] = 1,
    readers: Annotated[
        bool, typer.Option("--readers", help="for readers: shuffled options, neither answer nor evidence")
    ] = False,
    release: Annotated[Path | None, typer.Option(help="take the options' order from this release")] = None,
) -> None:
    """Draw a sample for people: to accept, edit or reject, or with --readers to answer."""
    from overread.core.records import read_questions
    from overread.curation.release import read_orders
    from overread.curation.review import sample, write_reader_sheet, write_review_sheet
    from overread.trials.options import balanced

    asked = read_questions(questions)
    drawn = sample(asked, count, seed, "readers" if readers else "review")
    if readers:
        write_reader_sheet(drawn, balanced(asked, seed, read_orders(release) if release is not None else None), out)
    else:
        write_review_sheet(drawn, out)
    typer.echo(f"{len(drawn)} of {len(asked)} questions: {out}")


@app.command("apply-review")
def apply_review_command(
    questions: Annotated[Path, typer.Argument(help="questions.jsonl")],
    out: Annotated[Path, typer.Option(help="questions.jsonl to write")],
    outcomes: Annotated[Path, typer.Option(help="CSV to write: what became of each reviewed question")],
    sheets: Annotated[list[Path] | None, typer.Argument(help="filled-in sheets; without any, all are kept")] = None,
    rule: Annotated[str, typer.Option(help="who must reject to drop a question: any, majority, all")] = "majority",
    rules: RulesFile = None,
) -> None:
    """Apply what people decided about the questions of a sample."""
    from overread.core.records import read_questions, write_questions
    from overread.curation.review import apply_decisions, read_decisions, write_outcomes
    from overread.curation.rules import read_rules

    asked = read_questions(questions)
    kept, became = apply_decisions(asked, read_decisions(sheets or []), _rule(rule), read_rules(rules))
    write_questions(kept, out)
    write_outcomes(became, outcomes)
    counts = {verdict: sum(one.verdict == verdict for one in became) for verdict in ("kept", "edited", "rejected")}
    typer.echo(", ".join(f"{count} {verdict}" for verdict, count in counts.items()) + f"; {len(kept)} questions")
    for one in became:
        if one.checks:
            typer.echo(f"  note: {one.became} was edited to something the rules would drop: {one.checks}", err=True)


@app.command("agreement")
def agreement_command(
    sheets: Annotated[list[Path], typer.Argument(help="filled-in sheets")],
    out: Annotated[Path, typer.Option(help="CSV to write")],
    of: Annotated[str, typer.Option(help="the column to compare")] = "decision",
    rater: Annotated[str, typer.Option(help="the column that says who: reviewer, reader")] = "reviewer",
    values: Annotated[
        str | None, typer.Option(help="all values there are, in their order, with commas; else those that occur")
    ] = None,
    level: Annotated[str, typer.Option(help="of Krippendorff's alpha: nominal, ordinal")] = "nominal",
) -> None:
    """Say how far the people who filled in the sheets agree beyond chance."""
    from overread.core.errors import BadInput
    from overread.curation.review import read_ratings
    from overread.estimates.agreement import agreement, write_agreement

    known = [value.strip() for value in values.split(",")] if values is not None else None
    try:
        rows = agreement(read_ratings(sheets, of, rater), values=known, level=_level(level, known is not None))
    except ValueError as error:
        raise BadInput(f"column {of!r}: {error}") from None
    write_agreement(rows, out)
    for row in rows:
        value = f"{row.value:.3f}" if row.value is not None else f"not defined: {row.note}"
        typer.echo(f"{row.statistic}, {row.rated_by}, {row.items} questions: {value}")


@app.command("release")
def release_command(
    questions: Annotated[Path, typer.Argument(help="questions.jsonl")],
    studies: Annotated[Path, typer.Argument(help="studies.parquet")],
    section: Annotated[str, typer.Option(help="the release section of the config, as JSON")],
    out: Annotated[Path, typer.Option(help="folder to write: a new one, or an older release to replace")],
    images: Annotated[Path | None, typer.Option(help="images.parquet; needed if the section names a view")] = None,
    earlier: Annotated[Path | None, typer.Option(help="the release before: its questions keep their order")] = None,
    funnel: Annotated[Path | None, typer.Option(help="funnel.csv of the filter, for the card")] = None,
) -> None:
    """Write a release: three formats, data card, Croissant, checksums and exports for other packages."""
    from overread.config.curation import Release
    from overread.core.records import read_pictures, read_questions, read_studies
    from overread.curation.funnel import read_funnel
    from overread.curation.release import release
    from overread.curation.released import positions

    released = release(
        Release.model_validate_json(section),
        read_questions(questions),
        read_studies(studies, with_problems=True),
        out,
        pictures=read_pictures(images) if images is not None else (),
        images=images.parent if images is not None else None,
        earlier=earlier,
        funnel=read_funnel(funnel) if funnel is not None else (),
    )
    typer.echo(f"{len(released)} questions released: {out}")
    for order in ("as-written", "shuffled"):
        shares = [f"{100 * share:.1f}" for name, _, _, share in positions(released) if name == order]
        typer.echo(f"  the right option's place, {order}: {' / '.join(shares)} %")


def _rule(name: str) -> Rule:
    from overread.core.errors import BadInput, unknown

    for rule in ("any", "majority", "all"):
        if name == rule:
            return rule
    raise BadInput(f"--rule: {unknown('rule', name, ('any', 'majority', 'all'))}")


def _level(name: str, ordered: bool) -> Level:
    from overread.core.errors import BadInput, unknown

    if name == "ordinal":
        if not ordered:
            raise BadInput("--level ordinal needs the order of the values: give them with --values")
        return "ordinal"
    if name != "nominal":
        raise BadInput(f"--level: {unknown('level', name, ('nominal', 'ordinal'))}")
    return "nominal"
