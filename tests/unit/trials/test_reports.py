"""Edited reports, as trials show them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from overread.config import Setting
from overread.core.errors import BadInput
from overread.core.records import Picture, Question, Study, Substitute, Trial, read_trials, write_trials
from overread.questions.findings import COMPOSITE
from overread.settings.report import KINDS as NAMES
from overread.trials.build import build_trials
from overread.trials.mentions import Lexicon, read_lexicon
from overread.trials.prompt import OWN_PROMPTS, Prompts
from overread.trials.reports import Reports
from overread.trials.sentences import sentences

FINDINGS = (
    "The lungs are clear. There is no pleural\neffusion or pneumothorax. Heart size is normal.\n"
    "A PICC ends in the superior vena cava."
)
OTHER = "A large left effusion is present."


def one_study(name: str, patient: str, report: dict[str, str], **labels: str) -> Study:
    return Study(
        study=name, patient=patient, dataset="d", modality="xray", images={}, report=report, labels=labels,
        restricted=False,
    )  # fmt: skip


STUDIES = [
    one_study("a", "p", {"findings": FINDINGS, "impression": "No effusion."}, **{"Pleural Effusion": "no"}),
    one_study("b", "p", {"findings": OTHER}, **{"Pleural Effusion": "yes"}),
    one_study("c", "q", {}, **{"Pleural Effusion": "no"}),
]
SUBSTITUTES = [
    Substitute(study=one, patient="p", substitute=two, substitute_patient="p", why="")
    for one, two in [("a", "b"), ("b", "c")]
]


def question(study: str, answer: str, topic: str = "Pleural Effusion", **more: Any) -> Question:
    return Question(
        study=study, patient="p", stem="Is there an effusion?", options=("yes", "no"), answer=answer, topic=topic,
        origin="test", **more,
    )  # fmt: skip


ASKED = [question("a", "no"), question("b", "yes")]


def build(
    asked: list[Question] = ASKED, prompts: Prompts | None = None, lexicon: Lexicon | None = None, **fields: Any
) -> dict[str, Trial]:
    prompts = prompts or Prompts()
    pictures = [
        Picture(
            study=one, view="frontal", order=0, name="F", path=f"{one}.png", pixels=one, width=1, height=1, series="f"
        )
        for one in "abc"
    ]
    trials, build.left_out = build_trials(  # type: ignore[attr-defined]
        asked, STUDIES, pictures, SUBSTITUTES,
        setting=Setting(**{"images": "frontal", "readout": "yes-no", **fields}), name="s", run=1,
        truth=lambda study, topic: study.labels.get(topic), prompts=prompts, seed=0,
        reports=Reports(prompts, lexicon, composite={COMPOSITE: ["Pleural Effusion", "Pneumothorax"]}),
    )  # fmt: skip
    return {trial.study: trial for trial in trials}


def report(trial: Trial) -> str:
    (text,) = [block.text for block in trial.blocks if block.role == "report"]
    assert text is not None
    return text


def test_the_sentences_about_the_finding_are_dropped_and_kept_on_record(tmp_path: Path) -> None:
    trial = build(report="without-finding")["a"]
    assert report(trial) == (
        "Report:\nFindings: The lungs are clear. Heart size is normal. A PICC ends in the superior vena cava."
    )
    assert trial.dropped == ("There is no pleural effusion or pneumothorax.", "No effusion.")
    assert (trial.label, trial.report_label) == ("no", None)
    write_trials([trial], tmp_path / "t.parquet")
    assert read_trials(tmp_path / "t.parquet") == [trial]


def test_what_was_dropped_is_no_part_of_the_request() -> None:
    trial = build(report="without-finding")["a"]
    bare = {**trial.model_dump(), "dropped": ()}
    assert Trial.model_validate(bare).trial == trial.trial


def test_a_composite_question_drops_what_it_takes_in() -> None:
    asked = [question("a", "no", COMPOSITE)]
    assert build(asked, report="without-finding")["a"].dropped == (
        "There is no pleural effusion or pneumothorax.", "No effusion.",
    )  # fmt: skip


def test_an_mri_question_drops_the_sentences_of_its_evidence() -> None:
    asked = [question("a", "no", topic="access", evidence="A PICC ends in the superior  vena cava.")]
    assert build(asked, report="without-finding")["a"].dropped == ("A PICC ends in the superior vena cava.",)


def test_a_question_without_words_and_evidence_is_left_out_and_says_so() -> None:
    asked = [*ASKED, question("a", "no", topic="colour of the scanner")]
    assert set(build(asked, report="without-finding")) == {"a", "b"}
    assert build.left_out == {"no words for its topic 'colour of the scanner' in findings.yaml": 1}


def test_the_heading_stays_where_nothing_of_a_report_is_left() -> None:
    assert report(build(report="without-finding")["b"]) == "Report:"


def test_the_users_own_words_decide_what_is_dropped(tmp_path: Path) -> None:
    words = tmp_path / "words.yaml"
    words.write_text("topics: {Pleural Effusion: {terms: [picc]}}")
    trial = build(report="without-finding", lexicon=read_lexicon(words))["a"]
    assert trial.dropped == ("A PICC ends in the superior vena cava.",)


@pytest.mark.parametrize(
    ("study", "said"), [("a", "This image shows no pleural effusion."), ("b", "This image shows a pleural effusion.")]
)
def test_the_reference_answer_is_one_more_sentence(study: str, said: str) -> None:
    full, told = build(report="full")[study], build(report="with-answer")[study]
    assert report(told).startswith(report(full)) and report(told).removeprefix(report(full)).strip() == said
    assert told.report_label == told.label


def test_the_answer_to_a_question_with_four_options_is_stated_with_its_text() -> None:
    lobes = ("frontal", "temporal", "parietal", "occipital")
    asked = [
        Question(
            study="a", patient="p", stem="Which lobe?", options=lobes, answer="parietal", topic="location",
            origin="test",
        )
    ]  # fmt: skip
    told = report(build(asked, report="with-answer", readout="choice")["a"])
    assert told.endswith('To the question "Which lobe?" the right answer is: parietal.')


def test_the_substitutes_report_comes_with_its_own_truth() -> None:
    trial = build(report="substitute")["a"]
    assert report(trial) == f"Report:\nFindings: {OTHER}"
    assert (trial.image_study, trial.label, trial.report_label) == ("a", "no", "yes")
    assert build.left_out == {"its substitute has no report": 1}  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", [name for name in NAMES if name != "none"])
def test_an_edit_changes_the_report_alone_and_needs_no_image(name: str) -> None:
    with_image, without = build(report=name)["a"], build(report=name, images="none")["a"]
    assert [block for block in with_image.blocks if block.role != "image"] == list(without.blocks)
    plain = build(report="none")["a"]
    assert [block for block in with_image.blocks if block.role != "report"] == list(plain.blocks)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "none"])
def test_the_own_image_and_the_swapped_one_stand_beside_the_same_report(name: str) -> None:
    own, swapped = build(report=name)["a"], build(report=name, source="substitute")["a"]
    assert report(own) == report(swapped) and own.images != swapped.images


def test_prose_says_nothing_of_the_finding() -> None:
    lexicon = read_lexicon()
    for name in ("neutral", "boilerplate"):
        trial = build(report=name)["a"]
        assert trial.report_label is None
        for topic in ("Pleural Effusion", "Edema", "Pneumonia", "Support Devices", COMPOSITE):
            assert not lexicon.mentions(report(trial).partition(":")[2], [topic])


def test_a_users_template_goes_before_overreads_of_the_same_name(tmp_path: Path) -> None:
    (tmp_path / "report.j2").write_text("BEFUND\n{{ sections.findings }}")
    trial = build(prompts=Prompts(tmp_path, OWN_PROMPTS), report="full")["b"]
    assert report(trial) == f"BEFUND\n{OTHER}"


def test_a_users_template_gets_all_that_is_known(tmp_path: Path) -> None:
    (tmp_path / "report-short.j2").write_text(
        "{{ sentences(sections.findings)[:1] | join(' ') }} {{ question.topic }} {{ answer }} {{ study.study }}"
        " {{ labels['Pleural Effusion'] }} {{ attributes | length }} {{ substitute.get('findings') }}"
    )
    trial = build(prompts=Prompts(tmp_path, OWN_PROMPTS), report="short")["a"]
    assert report(trial) == f"The lungs are clear. Pleural Effusion no a no 0 {OTHER}"


def test_an_unknown_report_and_an_unknown_part_are_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"report-ful\.j2: no such prompt template"):
        build(report="ful")
    (tmp_path / "report-bad.j2").write_text("{% include 'nowhere.j2' %}")
    with pytest.raises(BadInput, match=r"report-bad\.j2: takes in 'nowhere\.j2'"):
        build(prompts=Prompts(tmp_path, OWN_PROMPTS), report="bad")


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("There is no pleural\neffusion. Clear.", ["There is no pleural effusion.", "Clear."]),
        ("1. No effusion\n2. No fracture", ["1. No effusion", "2. No fracture"]),
        ("- No effusion\n- No fracture", ["- No effusion", "- No fracture"]),
        ("One line\n\nAnother", ["One line", "Another"]),
        ("Heart size normal\nLungs clear. Nothing else is to be said about this examination of the chest",
         ["Heart size normal", "Lungs clear.", "Nothing else is to be said about this examination of the chest"]),
    ],
)  # fmt: skip
def test_wrapped_lines_are_joined_and_items_are_not(text: str, parts: list[str]) -> None:
    assert sentences(text) == parts
