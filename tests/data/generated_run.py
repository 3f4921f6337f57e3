"""Turns a dataset of a made run into one whose questions a model wrote, for tests of their review.

The grammar's questions about a report stand for an author's, worded so that they name the mass's place, as the rules
want it; one a study is spoiled and dropped, one a study was reworded by the validator. The files are the real filter's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from data.written_questions import reported
from overread.config import GeneratedQuestions
from overread.core.records import Question, Study, read_questions, read_studies, write_questions, write_studies
from overread.curation.candidates import Candidate, Wording, write_candidates
from overread.curation.filter import filter_candidates, write_rejected, write_trail
from overread.curation.rules import read_rules

TOPICS = ("location", "size", "enhancement")
"""Of the grammar's questions, those that a study gets."""


def make_generated(results: Path, dataset: str = "mri", **review: Any) -> list[Question]:
    """Change a run in place; returns the questions that passed the rules, by study and id.

    review  the section `review` of the config
    """
    folder = results / dataset
    studies = read_studies(folder / "studies.parquet", with_problems=True)
    source = folder / "source/questions.jsonl"
    asked = read_questions(source) if source.is_file() else []
    studies, asked = _with_reports(studies, asked)
    write_studies(studies, folder / "studies.parquet")
    candidates = [one for study in studies if study.problem is None for one in _candidates(study, asked)]
    write_candidates(candidates, folder / "questions/validated.jsonl")
    found = filter_candidates(candidates, studies, read_rules())
    write_questions(found.questions, folder / "questions/kept.jsonl")
    write_rejected(found.rejected, folder / "questions/rejected.jsonl")
    write_trail(found.trail, folder / "questions/trail.csv")
    section = GeneratedQuestions.model_validate(
        {"origin": "generated", "author": "author", "validator": "validator", "review": review}
    )
    _change(results / "study.json", dataset, section.model_dump(mode="json"))
    return read_questions(folder / "questions/kept.jsonl")


def _change(path: Path, dataset: str, section: Mapping[str, Any]) -> None:
    spec = json.loads(path.read_text(encoding="utf-8"))
    spec["datasets"][dataset]["questions"] = dict(section)
    path.write_text(json.dumps(spec), encoding="utf-8")


def _with_reports(studies: Sequence[Study], asked: Sequence[Question]) -> tuple[list[Study], list[Question]]:
    """The studies with a report of the grammar's, where they have none, and the questions about it."""
    if asked:
        return list(studies), list(asked)
    usable = [study for study in studies if study.problem is None]
    found, lent = [study for study in studies if study.problem is not None], []
    for study, one in zip(usable, reported(len(usable)), strict=True):
        found.append(study.model_copy(update={"report": one.study.report}))
        lent += [
            Question.model_validate(
                {**each.model_dump(exclude={"question"}), "study": study.study, "patient": study.patient}
            )
            for each in one.questions
        ]
    return found, lent


def _candidates(study: Study, asked: Sequence[Question]) -> list[Candidate]:
    own = sorted((one for one in asked if one.study == study.study and one.topic in TOPICS), key=lambda one: one.topic)
    place = next(one.answer for one in own if one.topic == "location").lower()
    made = [_candidate(study, place, index, one) for index, one in enumerate(own)]
    spoiled = made[0].model_copy(update={"index": len(made), "options": (*made[0].options[:3], "None of the above")})
    return [*made, spoiled]


def _candidate(study: Study, place: str, index: int, one: Question) -> Candidate:
    stem = one.stem if one.topic == "location" else one.stem.replace("the mass", f"the mass in the {place}")
    before = Wording(stem=one.stem, options=one.options, answer=one.answer) if stem != one.stem else None
    return Candidate(
        study=study.study, patient=study.patient, index=index, stem=stem, options=one.options, answer=one.answer,
        reasoning=f'The report says: "{one.evidence}"', evidence=(one.evidence,), origin="author", request="r0",
        tag="YES", tag_reason="Answerable from the images; the mass is located.", rewritten=before is not None,
        before=before, validator="validator",
    )  # fmt: skip
