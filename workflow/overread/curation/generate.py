"""A model writes multiple-choice questions from each study's report (UCSF-PDGM-VQA, 3.2, appendices A and B)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pydantic import Field

from overread.backends.transport.client import Call, Patience
from overread.backends.transport.replies import Reply, structured
from overread.config import GeneratedQuestions, Model
from overread.core.records import Study
from overread.curation.candidates import Candidate, StudyReply
from overread.curation.dialogue import (
    Form,
    converse,
    messages,
    parameters,
    request_key,
    shown_sections,
    writer,
)
from overread.trials.prompt import OWN_PROMPTS

TEMPLATE = "generate"


class WrittenQuestion(Form):
    """A question as the author is to give it. The reasoning stands before the answer: a model writes in this order.

    That there are four options is asked for and not checked here: a question with three is a bad question, which the
    rules drop by name, and not a reply that can't be read.
    """

    question: str = Field(description="the stem, without its options")
    options: list[str] = Field(
        description="one right and three wrong", json_schema_extra={"minItems": 4, "maxItems": 4}
    )
    reasoning: str = Field(description="why the answer is right, with full sentences quoted from the report")
    evidence: list[str] = Field(description="the quoted sentences, word for word")
    answer: str = Field(description="the right option, word for word")


class WrittenQuestions(Form):
    """A whole reply of the author."""

    questions: list[WrittenQuestion]


def generate(
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
    """Candidates from the reports, at most `section.per_study` a study; and what became of each study's request.

    studies  those that can be used; one without Findings and Impression is not asked about, and that is recorded
    work     work file of the replies: what it holds is not asked again
    raises   BadInput if the reports may not go to the model's endpoint, NotAnswered if a study has no reply. A refusal
             is a reply: it is recorded, and the study has no candidates.
    """
    author = writer(model, model_id, "author")
    of_author = author.writer_identity(model_id)
    asked = parameters(author, section, WrittenQuestions, "written_questions", author.decoding.reasoning_effort)
    calls: dict[str, Call] = {}
    for study in studies:
        if shown_sections(study):
            said = messages(TEMPLATE, study, prompts, per_study=section.per_study)
            calls[study.study] = Call(
                request_key(of_author, study, said, asked), study.study, said, judge=read_questions
            )
    about = [study for study in studies if study.study in calls]
    kept = converse(author, model_id, asked, about, list(calls.values()), work, attested=attested, patience=patience)

    candidates: list[Candidate] = []
    replies: list[StudyReply] = []
    for study in studies:
        if study.study not in calls:
            reason = study.attributes.get("unusable report") or "the report has neither Findings nor Impression"
            replies.append(StudyReply(study=study.study, patient=study.patient, outcome="no-report", reason=reason))
            continue
        key = calls[study.study].key
        written = [] if kept[key].status == "refused" else read_questions(kept[key]).questions
        used = written[: section.per_study]
        candidates += [
            Candidate(
                study=study.study,
                patient=study.patient,
                index=index,
                stem=one.question,
                options=tuple(one.options),
                answer=one.answer,
                reasoning=one.reasoning,
                evidence=tuple(one.evidence),
                origin=model_id,
                request=key,
            )
            for index, one in enumerate(used)
        ]
        replies.append(study_reply(study, key, kept[key], "written", len(used), len(written) - len(used)))
    return candidates, replies


def read_questions(reply: Reply) -> WrittenQuestions:
    """BadReply for a reply that is no list of questions."""
    return structured(reply, WrittenQuestions)


def study_reply(study: Study, key: str, reply: Reply, done: str, questions: int, left_over: int = 0) -> StudyReply:
    """The row that keeps a raw reply."""
    return StudyReply.model_validate(
        {
            "study": study.study,
            "patient": study.patient,
            "outcome": "refused" if reply.status == "refused" else done,
            "questions": questions,
            "left_over": left_over,
            "request": key,
            "text": reply.text,
            "finish_reason": reply.finish_reason,
            "served_by": reply.served_by,
            "adjusted": reply.adjusted,
            "prompt_tokens": reply.prompt_tokens,
            "completion_tokens": reply.completion_tokens,
        }
    )
