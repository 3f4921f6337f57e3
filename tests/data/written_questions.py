"""Studies whose reports come from the demo's grammar, and an author and a validator that know the truth about them.

They answer `overread questions generate` and `validate` through `openai_server`. `BAD` spoils a good question in each
of the ways that the rules must notice.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from data.openai_server import Asked, Completion
from overread.core.records import Question, Study
from overread_phantom import grammar
from overread_phantom.anatomy import Stretch
from overread_phantom.tumour import LOCATIONS, MARGIN_MM, SIZES_CM, Facts, PlantedTumour

WrittenQuestion = dict[str, Any]


@dataclass(frozen=True)
class Reported:
    """A study with the grammar's questions about it."""

    study: Study
    questions: list[Question]

    def written(self) -> list[WrittenQuestion]:
        """As an author writes them."""
        return [
            {
                "question": one.stem,
                "options": list(one.options),
                "reasoning": f'The report says so: "{one.evidence}"',
                "evidence": [one.evidence],
                "answer": one.answer,
            }
            for one in self.questions
        ]


def reported(
    count: int, *, seed: int = 5, restricted: bool = False, extra: Mapping[int, str] | None = None
) -> list[Reported]:
    """So many studies with reports of their own.

    extra   a sentence to put at the end of a study's Findings, by the study's number
    """
    made: list[Reported] = []
    seen: set[str] = set()
    index = 0
    while len(made) < count:
        rng = np.random.default_rng([seed, index])
        side, lobe = LOCATIONS[rng.integers(len(LOCATIONS))]
        size = SIZES_CM[rng.integers(len(SIZES_CM))]
        oedema = list(MARGIN_MM)[rng.integers(len(MARGIN_MM))]
        facts = Facts(
            side=side,
            lobe=lobe,
            size_cm=size,
            diameters_mm=(
                10 * size - int(rng.integers(3)),
                10 * size - 3 - int(rng.integers(5)),
                10 * size - int(rng.integers(9)),
            ),
            oedema=oedema,
            margin_mm=MARGIN_MM[oedema],
            necrosis=list(grammar.NECROSIS_OPTIONS)[rng.integers(4)],
            enhancement=list(grammar.ENHANCEMENT_OPTIONS)[rng.integers(4)],
        )
        nothing = np.zeros((1, 1, 1), dtype=np.uint8)
        planted = PlantedTumour(
            seed, index, Stretch((1.0, 1.0, 1.0), (0.0, 0.0, 0.0)), facts, (0, 0, 0), nothing, nothing
        )
        index += 1
        report = grammar.report(planted)
        if report.text in seen:
            continue
        seen.add(report.text)
        sections = report.sections
        if extra and len(made) in extra:
            sections = {**sections, "findings": f"{sections['findings']} {extra[len(made)]}"}
        study = Study(
            study=planted.study,
            patient=f"patient-{planted.study}",
            dataset="phantom-mri",
            modality="mri",
            images={},
            report={"technique": "Techniquesecret sequences.", **sections, "history": "Historysecret."},
            labels=grammar.labels(facts),
            restricted=restricted,
            semi_synthetic=True,
        )
        made.append(Reported(study, grammar.questions(planted, report)))
    return made


@dataclass
class Writer:
    """An author that writes the grammar's questions about the study whose report it is shown.

    instead   other questions, by study
    """

    about: Sequence[Reported]
    instead: Mapping[str, Sequence[WrittenQuestion]] = field(default_factory=dict)

    def __call__(self, asked: Asked) -> Completion:
        one = study_of(asked, self.about)
        written = self.instead.get(one.study.study, one.written())
        return Completion(json.dumps({"questions": list(written)}))


@dataclass
class Checker:
    """A validator that tags every question YES as it is.

    changes   by stem: what is said otherwise (a tag and its reason, another wording)
    """

    changes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def __call__(self, asked: Asked) -> Completion:
        verdicts = []
        for one in questions_shown(asked):
            verdict = {
                "number": one["number"],
                "reasoning": one["reasoning"],
                "evidence": one["reasoning"].split('"')[1:2],
                "question": one["question"],
                "options": one["options"],
                "answer": one["answer"],
                "tag_reasoning": "It meets none of the criteria.",
                "tag": "YES",
            }
            verdicts.append({**verdict, **self.changes.get(one["question"], {})})
        return Completion(json.dumps({"verdicts": verdicts}))


def study_of(asked: Asked, about: Sequence[Reported]) -> Reported:
    """The one study whose report stands in the prompt."""
    found = [
        one
        for one in about
        if one.study.report["findings"] in asked.user and one.study.report["impression"] in asked.user
    ]
    assert len(found) == 1, f"{len(found)} reports in one prompt"
    return found[0]


def questions_shown(asked: Asked) -> list[dict[str, Any]]:
    """The numbered questions in a validator's prompt."""
    return [json.loads(line) for line in asked.user.splitlines() if line.startswith('{"number":')]


def _spoilt(**parts: Any) -> Callable[[WrittenQuestion], WrittenQuestion]:
    return lambda good: {**good, **parts}


def _answered(answer: str, options: int = 4) -> Callable[[WrittenQuestion], WrittenQuestion]:
    """`answer` takes the right option's place, among so many options."""
    return lambda good: {**good, "options": [answer, *_wrong(good)][:options], "answer": answer}


def _wrong(good: WrittenQuestion) -> list[str]:
    return [option for option in good["options"] if option != good["answer"]]


_INVENTED = "A calcified meningioma abuts the falx with hyperostosis."

BAD: dict[str, Callable[[WrittenQuestion], WrittenQuestion]] = {
    "three options": lambda good: {**good, "options": [good["answer"], *_wrong(good)[:2]]},
    "an option twice": lambda good: {**good, "options": [good["answer"], good["answer"], *_wrong(good)[:2]]},
    "answer is no option": _spoilt(answer="Somewhere else entirely"),
    "evidence not in the report": _spoilt(evidence=[_INVENTED], reasoning=f'It says: "{_INVENTED}"'),
    "no evidence": _spoilt(evidence=[], reasoning="It is clear."),
    "in the report": lambda good: {**good, "question": good["question"].replace("?", " in the report?")},
    "none of the above": _answered("None of the above"),
    "not discussed": _answered("Not discussed"),
    "inconclusive": _answered("Inconclusive"),
    "postsurgical": _spoilt(question="Which postsurgical change is seen?"),
    "residual": _spoilt(question="Where is the residual tumour?"),
    "spine": _spoilt(question="Which level of the spine is affected?"),
    "technique": _spoilt(question="Which imaging technique was used here?"),
    "size without dimensions": _spoilt(
        question="What is the size of the mass?",
        options=["3.1 x 2.9 cm", "5.1 x 4.9 cm", "7.1 x 6.9 cm", "1.1 x 0.9 cm"],
        answer="3.1 x 2.9 cm",
    ),
    "sizes too close": _spoilt(
        question="What is the greatest diameter of the mass? DIMENSION: (x)",
        options=["3.0 cm", "3.4 cm", "5.0 cm", "7.0 cm"],
        answer="3.0 cm",
    ),
}
"""A good question spoilt, by what is wrong with it then."""
