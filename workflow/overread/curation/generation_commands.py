"""`overread questions generate` and `overread questions validate`: the two models that write and check questions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from overread.backends.transport.client import Patience
    from overread.config import GeneratedQuestions, Model

Studies = Annotated[Path, typer.Argument(help="studies.parquet")]
SectionJson = Annotated[str, typer.Option("--section", help="the dataset's questions section, as JSON")]
ModelJson = Annotated[str, typer.Option("--model", help="the model's section as JSON")]
ModelId = Annotated[str, typer.Option("--id", help="the model's id")]
Work = Annotated[Path, typer.Option("--work", help="work file: every reply as it comes; a killed job goes on from it")]
Replies = Annotated[Path, typer.Option("--replies", help="JSONL to write: each study's raw reply")]
Attested = Annotated[
    list[str] | None, typer.Option("--attested", help="endpoint that may receive restricted reports; may be repeated")
]
Tries = Annotated[int, typer.Option("--tries", min=1, help="how often a request is sent at most")]
Timeout = Annotated[float, typer.Option("--timeout", min=0.001, help="seconds that a try may take")]
FirstWait = Annotated[float, typer.Option("--wait", min=0, help="seconds before the second try; doubled after each")]

app = typer.Typer()


@app.command("generate")
def generate_command(
    studies: Studies,
    section: SectionJson,
    model: ModelJson,
    model_id: ModelId,
    work: Work,
    out: Annotated[Path, typer.Option(help="JSONL of candidates to write, once every study has its reply")],
    replies: Replies,
    attested: Attested = None,
    tries: Tries = 8,
    timeout: Timeout = 600.0,
    wait: FirstWait = 1.0,
) -> None:
    """Let a model write questions from the reports' Findings and Impression.

    The model stands behind an OpenAI-compatible server. A local one is served on this machine, for instance by
    `vllm serve`: restricted reports then never leave it. The key comes from the environment variable that the model
    file names. Sent again is only what has no reply yet.
    """
    from overread.core.records import read_studies
    from overread.core.stopping import heeding_warnings
    from overread.curation.candidates import write_candidates, write_replies
    from overread.curation.generate import generate

    asked, author = _section(section), _model(model)
    with heeding_warnings():
        candidates, kept = generate(
            read_studies(studies),
            asked,
            author,
            model_id,
            work,
            attested=attested or (),
            patience=_patience(tries, timeout, wait),
        )
    write_replies(kept, replies)
    write_candidates(candidates, out)
    _say_counts(f"{len(candidates)} questions written", [row.outcome for row in kept])


@app.command("validate")
def validate_command(
    studies: Studies,
    candidates: Annotated[Path, typer.Argument(help="JSONL of candidates, from `overread questions generate`")],
    section: SectionJson,
    model: ModelJson,
    model_id: ModelId,
    work: Work,
    out: Annotated[Path, typer.Option(help="JSONL of tagged candidates to write, once every study has its reply")],
    replies: Replies,
    attested: Attested = None,
    tries: Tries = 8,
    timeout: Timeout = 600.0,
    wait: FirstWait = 1.0,
) -> None:
    """Let a second model tag each question YES or NO with a reason, and reword it where size or place is not clear."""
    from overread.core.records import read_studies
    from overread.core.stopping import heeding_warnings
    from overread.curation.candidates import read_candidates, write_candidates, write_replies
    from overread.curation.validate import validate

    asked, validator = _section(section), _model(model)
    with heeding_warnings():
        tagged, kept = validate(
            read_candidates(candidates),
            read_studies(studies),
            asked,
            validator,
            model_id,
            work,
            attested=attested or (),
            patience=_patience(tries, timeout, wait),
        )
    write_replies(kept, replies)
    write_candidates(tagged, out)
    fit = sum(one.tag == "YES" for one in tagged)
    reworded = sum(one.rewritten for one in tagged)
    _say_counts(f"{fit} of {len(tagged)} questions tagged YES, {reworded} reworded", [row.outcome for row in kept])


def _section(text: str) -> GeneratedQuestions:
    from pydantic import ValidationError

    from overread.config import GeneratedQuestions
    from overread.core.errors import BadInput
    from overread.core.records import one_line

    try:
        return GeneratedQuestions.model_validate_json(text)
    except ValidationError as error:
        raise BadInput(f"--section: {one_line(error)}") from None


def _model(text: str) -> Model:
    from pydantic import TypeAdapter, ValidationError

    from overread.config import Model
    from overread.core.errors import BadInput
    from overread.core.records import one_line

    try:
        model: Model = TypeAdapter(Model).validate_json(text)
    except ValidationError as error:
        raise BadInput(f"--model: {one_line(error)}") from None
    return model


def _patience(tries: int, timeout: float, wait: float) -> Patience:
    from overread.backends.transport.client import Patience

    return Patience(tries=tries, timeout=timeout, first_wait=wait)


def _say_counts(what: str, outcomes: list[str]) -> None:
    """Studies that gave no questions are said aloud, and are in the replies by name."""
    without = {
        "refused": "refused by the model",
        "no-report": "without Findings and Impression",
    }
    said = [f"{count} studies {words}" for key, words in without.items() if (count := outcomes.count(key))]
    typer.echo("; ".join([what, f"{len(outcomes)} studies", *said]))
