"""What the author of questions and their validator have in common: how they are asked about a study's report.

A model is asked about one study at a time, in one request that holds that study's report and nothing of another's:
what a report says, even if it were written to mislead, reaches the questions of its own study alone. Of a report only
the Findings and the Impression are shown, between lines whose mark is made from the content and so can't stand in it.

Author and validator are models of the back end `openai`, which is any server that speaks its protocol, or of the back
end `transformers`, which writes in this process. A model that vLLM runs is served on this machine, by
`vllm serve <weights> --port 8000`, with `endpoint: http://127.0.0.1:8000/v1` in its model file. With either of these
two restricted reports never leave the machine.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import jinja2
from pydantic import BaseModel, ConfigDict

from overread.backends.transport.asking import ask
from overread.backends.transport.client import Call, Messages, Patience
from overread.backends.transport.replies import Reply, response_format
from overread.backends.writing import WriterModel
from overread.config import GeneratedQuestions, Model, ServerModel
from overread.core.errors import BadInput, NotAnswered
from overread.core.guard import Destination, clear
from overread.core.progress import say
from overread.core.records import Study, content_hash
from overread.trials.prompt import OWN_PROMPTS

SECTIONS = ("findings", "impression")
"""What of a report may be asked about, in the order shown."""

FORM = 1
"""Part of every request key. Raised when a reply that was good enough before no longer is."""


class Form(BaseModel):
    """The form of a reply: closed and without defaults, as strict structured output wants it."""

    model_config = ConfigDict(extra="forbid")


def shown_sections(study: Study) -> dict[str, str]:
    """The sections of the study's report that a model is shown: those that hold any text."""
    return {name: study.report[name].strip() for name in SECTIONS if study.report.get(name, "").strip()}


def messages(template: str, study: Study, folder: Path = OWN_PROMPTS, **values: Any) -> Messages:
    """The rules as the system message and the material as the user message, from the template's two blocks.

    raises  BadInput for a template that is missing or can't be rendered
    """
    sections = shown_sections(study)
    values = {**values, "sections": sections, "marker": content_hash([sections, values])[:12]}
    return [
        {"role": role, "content": _rendered(folder, template, block, values)}
        for role, block in (("system", "rules"), ("user", "report"))
    ]


@functools.cache
def _environment(folder: Path) -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,  # a prompt is plain text
    )


def _rendered(folder: Path, name: str, block: str, values: Mapping[str, Any]) -> str:
    path = folder / f"{name}.j2"
    try:
        template = _environment(folder).get_template(path.name)
        if block not in template.blocks:
            raise BadInput(f"{path}: has no block {block!r}; it needs the blocks rules and report")
        return "".join(template.blocks[block](template.new_context(dict(values)))).strip()
    except jinja2.TemplateNotFound:
        raise BadInput(f"{path}: no such prompt template") from None
    except jinja2.TemplateError as error:
        raise BadInput(f"{path}: {error}") from None


def parameters(
    model: WriterModel, section: GeneratedQuestions, form: type[Form], name: str, reasoning_effort: str | None
) -> dict[str, Any]:
    """Of a request: as the model file decodes, with the questions' own temperature where the model takes one."""
    decoding = model.decoding
    wanted = {
        "temperature": None if decoding.temperature is None else section.temperature,
        "top_p": decoding.top_p,
        "max_tokens": decoding.max_tokens,
        "seed": decoding.seed,
        "reasoning_effort": reasoning_effort,
        "response_format": response_format(name, form),
    }
    return {name: value for name, value in wanted.items() if value is not None}


def request_key(writer: Mapping[str, Any], study: Study, said: Messages, asked: Mapping[str, Any]) -> str:
    """What can change a reply. The study is in it: a sampled answer about one study is none about another.

    writer  the model's `writer_identity`
    """
    return content_hash([FORM, dict(writer), study.study, said, dict(asked)])


def writer(model: Model, model_id: str, role: str) -> WriterModel:
    """The model, its hub weights pinned. BadInput unless it can write questions."""
    if not isinstance(model, WriterModel):
        raise BadInput(
            f"model {model_id!r} can't be the {role}: its back end is {model.backend}. Take one of the back end "
            "transformers, or serve it on this machine (for instance with `vllm serve`) and give it a model file with "
            "backend openai and that server's endpoint"
        )
    from overread.backends.weights import pinned

    return pinned(model, model_id)


def converse(
    model: WriterModel,
    model_id: str,
    asked: Mapping[str, Any],
    studies: Sequence[Study],
    calls: Sequence[Call],
    work: Path,
    *,
    attested: Sequence[str] = (),
    patience: Patience | None = None,
) -> dict[str, Reply]:
    """The reply to each call, by its key.

    asked    the parameters of every request
    studies  those that the calls are about: whether any is restricted decides where they may go
    work     work file of the replies
    raises   BadInput, before anything is sent, if restricted reports would go where they must not;
             NotAnswered if a call has no reply: every reply is kept, and the same command sends only what is missing
    """
    patience = replace(patience or Patience(), in_flight=model.batch)
    client = model.client(model_id, asked, work, patience, _cleared(model, model_id, studies, attested))
    done = ask(client, calls, work, f"{model_id}, {len(calls)} studies")
    print(f"asked {done.asked}, kept {done.kept}", flush=True)
    for reason, times in client.faults.most_common():
        say(f"{model_id}: {times} tries without an answer: {reason}")
    if done.failures:
        names: dict[str, list[str]] = defaultdict(list)
        for call in calls:
            if call.key in done.failures:
                names[done.failures[call.key]].append(call.what)
        for reason, whose in names.items():
            say(f"{model_id}: no reply about {_listed(whose)}: {reason}")
        raise NotAnswered(
            f"{len(done.failures)} of {len(calls)} requests to {model_id} failed, the first with: "
            f"{next(iter(names))}. The other replies are kept; the same command again sends only these "
            f"{len(done.failures)}"
        )
    return done.replies


def _cleared(
    model: WriterModel, model_id: str, studies: Sequence[Study], attested: Sequence[str]
) -> Destination | None:
    """Where the reports may go; none if they stay here. BadInput if they must not go there, or nobody knows where."""
    restricted = next((study for study in studies if study.restricted), None)
    what = f"dataset {restricted.dataset}" if restricted else "the data set"
    if isinstance(model, ServerModel):
        return clear(model.endpoint, restricted=restricted is not None, attested=attested, what=what)
    if restricted is not None and not model.stays_here:
        raise BadInput(
            f"{what} is restricted, and the back end {model.backend} of {model_id!r} does not say where reports go: "
            "nothing was sent"
        )
    return None


def _listed(names: Sequence[str], most: int = 10) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
