"""Questions: what is asked about each study, and what would be right for any study.

`ORIGINS` names the module of each origin of the config. All but `generated`, which takes several steps, have a `build`
with the signature below.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from overread.config import FindingQuestions, Questions
from overread.core.errors import BadInput, unknown
from overread.core.records import Question, Study

ORIGINS = {
    "findings": "overread.questions.findings",
    "file": "overread.questions.written",
    "grammar": "overread.questions.written",
    "generated": "overread.curation.generate",
}


def build(
    section: Questions, studies: Sequence[Study], source: Path | None = None
) -> tuple[list[Question], dict[str, int]]:
    """The questions of a dataset, and how many were left out by reason.

    section  the questions part of the dataset's section
    studies  all studies, unusable ones too: nothing is asked about those
    source   the phantom's folder, for grammar questions
    raises   BadInput for an origin that is not built yet and for questions that don't fit the studies
    """
    if section.origin not in ORIGINS:
        raise BadInput(f"questions: {unknown('origin', section.origin, ORIGINS)}")
    if section.origin == "generated":
        raise BadInput("generated questions are made by `overread questions generate`, `validate` and `filter`")
    questions, left_out = import_module(ORIGINS[section.origin]).build(section, studies, source)
    return questions, left_out


def truth(section: Questions, study: Study, topic: str) -> str | None:
    """The text of the option that would be right for `topic` in `study`, or None where that is not known."""
    if isinstance(section, FindingQuestions):
        from overread.questions.findings import truth as of_finding

        return of_finding(section, study, topic)
    from overread.questions.written import truth as of_label

    return of_label(study, topic)
