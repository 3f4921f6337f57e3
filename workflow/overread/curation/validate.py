"""A second model judges each candidate and rewords it where needed (UCSF-PDGM-VQA, section 3.2, appendices C and D).

What the validator says is recorded, not believed: the rules check its wording as they check the author's.
"""

from __future__ import annotations

import functools
import json
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field

from overread.backends.transport.client import Call, Patience
from overread.backends.transport.faults import BadReply
from overread.backends.transport.replies import Reply, structured
from overread.config import GeneratedQuestions, Model
from overread.core.errors import BadInput, unknown
from overread.core.records import Study
from overread.curation.candidates import Candidate, StudyReply, Wording
from overread.curation.dialogue import Form, converse, messages, parameters, request_key, writer
from overread.curation.generate import study_reply
from overread.trials.prompt import OWN_PROMPTS

TEMPLATE = "validate"


class Verdict(Form):
    """What the validator is to say about one question: reasons first, then what follows from them."""

    number: int = Field(description="the question's number")
    reasoning: str = Field(description="why the answer is right, with full sentences quoted from the report")
    evidence: list[str] = Field(description="the quoted sentences, word for word")
    question: str = Field(description="the stem, reworded or as it was")
    options: list[str] = Field(
        description="one right and three wrong", json_schema_extra={"minItems": 4, "maxItems": 4}
    )
    answer: str = Field(description="the right option, word for word")
    tag_reasoning: str = Field(description="why the question can or can't stand")
    tag: Literal["YES", "NO"]


class Verdicts(Form):
    """A whole reply of the validator."""

    verdicts: list[Verdict]


def validate(
    candidates: Sequence[Candidate],
    studies: Sequence[Study],
    section: GeneratedQuestions,
    model: Model,
    model_id: str,
    work: Path,
    *,
    attested: Sequence[str] = (),
    patience: Patience | None = None,
    prompts: Path = OWN_PROMPTS,
) -> tuple[list[Candidate], list[StudyReply]]:
    """Every candidate again, tagged, and in the validator's wording where that differs; and each study's raw reply.

    A reworded candidate keeps the author's wording in `before`. Evidence and reasoning become the validator's, which
    stand for the wording that counts now; the author's are in the file of generated candidates, under the same name.
    Where the validator quotes nothing, the author's evidence stays. Where it refuses, a study's candidates get the tag
    REFUSED.

    work    work file of the replies
    raises  as `generate.generate`, and BadInput for a candidate whose study is not among the studies
    """
    validator = writer(model, model_id, "validator")
    of_validator = validator.writer_identity(model_id)
    asked = parameters(validator, section, Verdicts, "verdicts", section.reasoning_effort)
    of_study: dict[str, list[Candidate]] = defaultdict(list)
    for candidate in sorted(candidates, key=lambda one: (one.study, one.index)):
        of_study[candidate.study].append(candidate)
    by_name = {study.study: study for study in studies}
    for name in of_study:
        if name not in by_name:
            raise BadInput(f"candidates: {unknown('study', name, by_name)}")

    calls: dict[str, Call] = {}
    for name, written in of_study.items():
        said = messages(
            TEMPLATE, by_name[name], prompts, candidates=[_shown(n, one) for n, one in enumerate(written, 1)]
        )
        judge = functools.partial(read_verdicts, count=len(written))
        calls[name] = Call(request_key(of_validator, by_name[name], said, asked), name, said, judge=judge)
    about = [by_name[name] for name in calls]
    kept = converse(validator, model_id, asked, about, list(calls.values()), work, attested=attested, patience=patience)

    validated: list[Candidate] = []
    replies = [
        StudyReply(study=study.study, patient=study.patient, outcome="no-questions", reason="no question was written")
        for study in studies
        if study.study not in calls
    ]
    for name, written in of_study.items():
        key = calls[name].key
        reply = kept[key]
        replies.append(study_reply(by_name[name], key, reply, "validated", len(written)))
        if reply.status == "refused":
            refused = {"tag": "REFUSED", "tag_reason": "the validator refused to judge", "validator": model_id}
            validated += [one.model_copy(update=refused) for one in written]
        else:
            verdicts = read_verdicts(reply, count=len(written))
            validated += [_judged(one, said, model_id) for one, said in zip(written, verdicts, strict=True)]
    return validated, replies


def read_verdicts(reply: Reply, count: int) -> list[Verdict]:
    """The verdicts in the order of the questions. BadReply unless there is one for each number from 1 to `count`."""
    verdicts = sorted(structured(reply, Verdicts).verdicts, key=lambda one: one.number)
    if [one.number for one in verdicts] != list(range(1, count + 1)):
        raise BadReply(f"another form than asked for: not one verdict for each of {count} questions")
    return verdicts


def _shown(number: int, candidate: Candidate) -> str:
    """A candidate as the validator sees it: one line of JSON, with a number of its own from 1."""
    content = {
        "number": number,
        "question": candidate.stem,
        "options": list(candidate.options),
        "reasoning": candidate.reasoning,
        "answer": candidate.answer,
    }
    return json.dumps(content, ensure_ascii=False)


def _judged(candidate: Candidate, verdict: Verdict, model_id: str) -> Candidate:
    wording = Wording(stem=verdict.question, options=tuple(verdict.options), answer=verdict.answer)
    rewritten = wording != candidate.wording
    return candidate.model_copy(
        update={
            **wording.model_dump(),
            "reasoning": verdict.reasoning,
            "evidence": tuple(verdict.evidence) or candidate.evidence,
            "tag": verdict.tag,
            "tag_reason": verdict.tag_reasoning,
            "rewritten": rewritten,
            "before": candidate.wording if rewritten else None,
            "validator": model_id,
        }
    )
