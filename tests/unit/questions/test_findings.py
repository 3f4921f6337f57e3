"""Yes/no questions: what a label counts as, what the composite is, and that nothing unknown is asked."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overread.config import FINDINGS, FindingQuestions
from overread.core.errors import BadInput
from overread.core.records import Study
from overread.questions import build, truth
from overread.questions.findings import COMPOSITE, STEMS, stem, topics

LABEL = st.sampled_from(["positive", "negative", "uncertain", None])


def section(**more: object) -> FindingQuestions:
    return FindingQuestions.model_validate({"origin": "findings", **more})


def study(name: str = "s1", problem: str | None = None, **labels: str) -> Study:
    return Study(
        study=name,
        patient="p" + name[1:],
        dataset="cxr",
        modality="xray",
        images={},
        report={},
        labels={finding.replace("_", " "): label for finding, label in labels.items()},
        restricted=True,
        problem=problem,
    )


@pytest.mark.parametrize(
    ("label", "uncertain", "not_mentioned", "expected"),
    [
        ("positive", "negative", "negative", "yes"),
        ("positive", "leave-out", "leave-out", "yes"),
        ("negative", "positive", "negative", "no"),
        ("uncertain", "positive", "negative", "yes"),
        ("uncertain", "negative", "negative", "no"),
        ("uncertain", "leave-out", "negative", None),
        (None, "positive", "negative", "no"),
        (None, "positive", "leave-out", None),
    ],
)
def test_what_a_label_counts_as(label: str | None, uncertain: str, not_mentioned: str, expected: str | None) -> None:
    labels = {} if label is None else {"Edema": label}
    asked = section(uncertain=uncertain, not_mentioned=not_mentioned)
    assert truth(asked, study(**labels), "Edema") == expected


def test_a_label_that_is_none_of_the_three_is_an_error_and_no_answer() -> None:
    with pytest.raises(BadInput, match="'maybe'"):
        truth(section(), study(Edema="maybe"), "Edema")


@pytest.mark.parametrize(
    ("edema", "effusion", "expected"),
    [
        ("positive", "negative", "yes"),
        ("positive", None, "yes"),
        ("negative", "negative", "no"),
        ("negative", None, None),
        (None, None, None),
        ("uncertain", "negative", None),
        ("uncertain", "positive", "yes"),
    ],
)
def test_the_composite_is_yes_with_any_and_unknown_rather_than_guessed(
    edema: str | None, effusion: str | None, expected: str | None
) -> None:
    asked = section(composite=("Edema", "Pleural Effusion"), uncertain="leave-out", not_mentioned="leave-out")
    labels = {name: label for name, label in (("Edema", edema), ("Pleural_Effusion", effusion)) if label is not None}
    assert truth(asked, study(Cardiomegaly="positive", **labels), COMPOSITE) == expected


@given(st.dictionaries(st.sampled_from(FINDINGS), LABEL.filter(lambda label: label is not None)))
def test_with_everything_counted_the_composite_is_the_or_of_its_findings(labels: dict[str, str]) -> None:
    asked = section()
    one = study(**labels)
    expected = any(labels.get(finding) == "positive" for finding in asked.composite)
    assert truth(asked, one, COMPOSITE) == ("yes" if expected else "no")


def test_fourteen_questions_a_study_with_the_default_section() -> None:
    questions, left_out = build(section(), [study(Edema="positive")])
    assert len(questions) == 14
    assert left_out == {}
    assert {question.topic for question in questions} == {*FINDINGS, COMPOSITE}
    answers = {question.topic: question.answer for question in questions}
    assert {topic for topic, answer in answers.items() if answer == "yes"} == {"Edema", COMPOSITE}
    assert all(question.options == ("yes", "no") and question.origin == "findings" for question in questions)


def test_only_what_the_section_names_is_asked() -> None:
    asked = section(findings=("Edema", "Pneumothorax"), composite=())
    questions, _ = build(asked, [study()])
    assert [question.topic for question in questions] == ["Edema", "Pneumothorax"]
    assert topics(asked) == ["Edema", "Pneumothorax"]


def test_what_is_left_out_is_not_asked_and_is_counted() -> None:
    asked = section(findings=("Edema", "Pneumonia"), composite=(), uncertain="leave-out", not_mentioned="leave-out")
    questions, left_out = build(asked, [study(Edema="uncertain", Pneumonia="negative"), study("s2", Edema="positive")])
    assert [(question.study, question.topic, question.answer) for question in questions] == [
        ("s1", "Pneumonia", "no"),
        ("s2", "Edema", "yes"),
    ]
    assert left_out == {"Edema: uncertain or not mentioned": 1, "Pneumonia: uncertain or not mentioned": 1}


def test_nothing_is_asked_about_a_study_that_cannot_be_used() -> None:
    questions, left_out = build(section(), [study(problem="no image"), study("s2")])
    assert {question.study for question in questions} == {"s2"}
    assert left_out == {"the study can't be used": 14}


def test_every_finding_has_a_stem_of_its_own_that_is_a_question() -> None:
    assert set(STEMS) == set(FINDINGS)
    assert len(set(STEMS.values())) == len(FINDINGS)
    assert all(text.endswith("?") and "chest X-ray" in text for text in STEMS.values())


def test_the_composite_names_what_it_counts() -> None:
    assert stem(section(composite=("Edema",)), COMPOSITE).endswith("that is pulmonary edema?")
    text = stem(section(composite=("Pneumothorax", "Edema", "Consolidation")), COMPOSITE)
    assert text.endswith("that is consolidation, pulmonary edema or a pneumothorax?")


@given(st.randoms(use_true_random=False))
def test_ids_do_not_depend_on_the_order_of_studies_or_of_the_section(shuffle: random.Random) -> None:
    studies = [study(f"s{number}", Edema="positive") for number in range(4)]
    findings = list(FINDINGS)
    expected = {question.question for question in build(section(), studies)[0]}
    shuffle.shuffle(studies)
    shuffle.shuffle(findings)
    composite = list(section().composite)
    shuffle.shuffle(composite)
    assert {
        question.question for question in build(section(findings=findings, composite=composite), studies)[0]
    } == expected
