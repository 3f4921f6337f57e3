"""Yes/no questions about the CheXpert labeller's findings, and one about any acute finding.

A label is positive, negative or uncertain, or the report does not mention the finding. The config says what an
uncertain and what a missing label count as; where they are left out, nothing is asked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from overread.config import FINDINGS, FindingQuestions
from overread.core.errors import BadInput
from overread.core.records import Question, Study

COMPOSITE = "Any acute finding"
YES_NO = ("yes", "no")

STEMS = {
    "Atelectasis": "Does this chest X-ray show atelectasis?",
    "Cardiomegaly": "Is the heart enlarged on this chest X-ray?",
    "Consolidation": "Does this chest X-ray show consolidation of the lung?",
    "Edema": "Does this chest X-ray show pulmonary edema?",
    "Enlarged Cardiomediastinum": "Is the cardiomediastinal silhouette enlarged on this chest X-ray?",
    "Fracture": "Does this chest X-ray show a bone fracture?",
    "Lung Lesion": "Does this chest X-ray show a nodule, mass or other focal lung lesion?",
    "Lung Opacity": "Does this chest X-ray show an opacity of any kind in the lungs?",
    "Pleural Effusion": "Does this chest X-ray show a pleural effusion?",
    "Pleural Other": "Does this chest X-ray show pleural thickening or another change of the pleura besides effusion "
    "and pneumothorax?",
    "Pneumonia": "Does this chest X-ray show pneumonia?",
    "Pneumothorax": "Does this chest X-ray show a pneumothorax?",
    "Support Devices": "Does this chest X-ray show a tube, line, implant or other medical device?",
}
"""The stem of each finding's question: one thing, named plainly, that is either seen or not."""

_IN_A_SENTENCE = {name: name.lower() for name in FINDINGS} | {
    "Edema": "pulmonary edema",
    "Enlarged Cardiomediastinum": "an enlarged cardiomediastinal silhouette",
    "Fracture": "a fracture",
    "Lung Lesion": "a lung lesion",
    "Lung Opacity": "a lung opacity",
    "Pleural Effusion": "a pleural effusion",
    "Pleural Other": "another pleural change",
    "Pneumothorax": "a pneumothorax",
    "Support Devices": "a medical device",
}


def stem(section: FindingQuestions, topic: str) -> str:
    """The question's text. The composite names what it counts as acute, since the config decides that."""
    if topic != COMPOSITE:
        return STEMS[topic]
    names = [_IN_A_SENTENCE[name] for name in sorted(section.composite)]
    listed = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"
    return f"Does this chest X-ray show any acute finding, that is {listed}?"


def topics(section: FindingQuestions) -> list[str]:
    """What is asked about: the findings in alphabetical order, then the composite."""
    return [*sorted(section.findings), *([COMPOSITE] if section.composite else [])]


def truth(section: FindingQuestions, study: Study, topic: str) -> str | None:
    """yes, no, or None where the section leaves the label out.

    The composite is yes with any finding that is yes, no if all are no, and None otherwise.
    """
    if topic == COMPOSITE:
        answers = [_of_label(section, study.labels.get(finding)) for finding in section.composite]
        if "yes" in answers:
            return "yes"
        return None if None in answers or not answers else "no"
    return _of_label(section, study.labels.get(topic))


def _of_label(section: FindingQuestions, label: str | None) -> str | None:
    if label in ("positive", "negative"):
        counts_as = label
    elif label == "uncertain":
        counts_as = section.uncertain
    elif label is None:
        counts_as = section.not_mentioned
    else:
        raise BadInput(f"label {label!r} of a finding: must be positive, negative or uncertain")
    return {"positive": "yes", "negative": "no"}.get(counts_as)


def build(
    section: FindingQuestions, studies: Sequence[Study], source: Path | None = None
) -> tuple[list[Question], dict[str, int]]:
    """A question for each topic and usable study whose truth is known."""
    del source
    questions: list[Question] = []
    left_out: Counter[str] = Counter()
    asked = topics(section)
    stems = {topic: stem(section, topic) for topic in asked}
    for study in studies:
        if study.problem is not None:
            left_out["the study can't be used"] += len(asked)
            continue
        for topic in asked:
            answer = truth(section, study, topic)
            if answer is None:
                left_out[f"{topic}: uncertain or not mentioned"] += 1
                continue
            questions.append(
                Question(
                    study=study.study,
                    patient=study.patient,
                    stem=stems[topic],
                    options=YES_NO,
                    answer=answer,
                    topic=topic,
                    origin="findings",
                )
            )
    return questions, dict(left_out)
