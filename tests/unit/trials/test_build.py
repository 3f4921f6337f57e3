import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from overread.config import Setting
from overread.core.errors import BadInput
from overread.core.records import Picture, Question, Study, Substitute, read_trials, write_trials
from overread.images.render import pixel_hash
from overread.trials.build import build_trials
from overread.trials.prompt import Prompts

STUDIES = [
    Study(
        study=name,
        patient=patient,
        dataset="d",
        modality="xray",
        images={},
        report={"findings": f"Findings of {name}.", "impression": f"Impression of {name}."} if name != "c" else {},
        labels={"Edema": label},
        restricted=False,
    )
    for name, patient, label in [("a", "p", "yes"), ("b", "p", "no"), ("c", "q", "no")]
]
PICTURES = [
    Picture(
        study=name,
        view="frontal",
        order=0,
        name="Frontal",
        path=f"images/{name}/pictures/frontal-0.png",
        pixels=f"pixels of {name}",
        width=4,
        height=3,
        series="frontal",
    )
    for name in "abc"
]
SUBSTITUTES = [
    Substitute(study="a", patient="p", substitute="b", substitute_patient="p", why=""),
    Substitute(study="b", patient="p", substitute="a", substitute_patient="p", why=""),
]
QUESTIONS = [
    Question(
        study=name,
        patient=patient,
        stem=stem,
        options=("yes", "no"),
        answer=answer,
        topic="Edema",
        origin="test",
    )
    for name, patient, answer in [("a", "p", "yes"), ("b", "p", "no"), ("c", "q", "no")]
    for stem in ("Is there oedema?", "Do the lungs show oedema?")
]


def build(asked=QUESTIONS, **fields):
    setting = Setting(**{"images": "frontal", "readout": "yes-no", **fields})
    return build_trials(
        asked,
        STUDIES,
        PICTURES,
        SUBSTITUTES,
        setting=setting,
        name="s",
        run=1,
        truth=lambda study, topic: study.labels.get(topic),
        prompts=Prompts(),
        seed=0,
    )


def of(trials, study):
    return next(trial for trial in trials if trial.study == study)


def test_the_own_image_comes_with_its_own_truth():
    trial = of(build()[0], "a")
    assert [block.image for block in trial.images] == ["images/a/pictures/frontal-0.png"]
    assert (trial.image_study, trial.image_patient, trial.label, trial.image_label) == ("a", "p", "yes", "yes")


def test_a_swap_changes_the_image_and_nothing_else():
    own, swapped = of(build(report="full")[0], "a"), of(build(report="full", source="substitute")[0], "a")
    assert own.question == swapped.question
    assert [block for block in own.blocks if block.role != "image"] == [
        block for block in swapped.blocks if block.role != "image"
    ]
    assert swapped.images[0].image == "images/b/pictures/frontal-0.png"
    assert (swapped.image_study, swapped.label, swapped.image_label, swapped.answer) == ("b", "yes", "no", 0)


def test_a_study_without_a_substitute_is_left_out_and_counted():
    trials, left_out = build(source="substitute")
    assert {trial.study for trial in trials} == {"a", "b"}
    assert left_out == Counter({"no substitute for its study": 2})


def test_a_study_without_a_report_is_left_out_where_one_is_shown():
    trials, left_out = build(report="full")
    assert {trial.study for trial in trials} == {"a", "b"}
    assert left_out == Counter({"its study has no report": 2})


def test_black_has_the_size_and_the_hash_of_the_picture_that_is_written():
    trial = of(build(source="black")[0], "a")
    assert trial.images[0].image == "images/black/4x3.png"
    assert trial.images[0].pixels == pixel_hash(Image.new("L", (4, 3)))
    assert (trial.image_study, trial.image_label) == (None, None)


def test_no_image_is_no_block():
    trial = of(build(images="none")[0], "a")
    assert trial.images == ()
    assert trial.image_study is None


@pytest.mark.parametrize(
    ("order", "roles"),
    [
        ("image-first", ["image", "report", "question", "instruction"]),
        ("text-first", ["report", "question", "instruction", "image"]),
    ],
)
def test_the_order_of_blocks_is_the_settings(order, roles):
    assert [block.role for block in of(build(report="full", order=order)[0], "a").blocks] == roles


def test_the_first_token_readout_is_asked_without_instruction():
    assert [block.role for block in of(build(readout="first-token")[0], "a").blocks] == ["image", "question"]


def test_a_choice_lists_the_options_as_shown():
    trial = of(build(readout="choice", options="rotated-1")[0], "a")
    assert trial.options == ("no", "yes")
    assert trial.answer == 1
    listed = next(block.text for block in trial.blocks if block.role == "options")
    assert "1) no\n2) yes" in listed


def test_a_free_text_answer_is_asked_for_with_the_same_list():
    trial, choice = (of(build(readout=readout)[0], "a") for readout in ("free-text", "choice"))
    assert [block for block in trial.blocks if block.role == "options"] == [
        block for block in choice.blocks if block.role == "options"
    ]
    assert trial.blocks[-1].role == "instruction"
    assert trial.blocks[-1] != choice.blocks[-1]


def test_the_report_shows_its_sections_in_order():
    report = next(block.text for block in of(build(report="full")[0], "a").blocks if block.role == "report")
    assert report == "Report:\nFindings: Findings of a.\nImpression: Impression of a."


def test_one_question_a_study_takes_one_a_study_whatever_the_order():
    setting = {"questions": "one-per-study"}
    one = build(QUESTIONS, **setting)[0]
    assert Counter(trial.study for trial in one) == {"a": 1, "b": 1, "c": 1}
    assert build(QUESTIONS[::-1], **setting)[0] == one


def test_nothing_to_ask_is_an_error():
    with pytest.raises(BadInput, match="no trial"):
        build([])


@given(st.randoms())
def test_trials_are_the_same_in_any_order_of_the_questions(draw: random.Random):
    mixed = list(QUESTIONS)
    draw.shuffle(mixed)
    assert build(mixed)[0] == build()[0]


def test_trials_come_back_as_they_were_written(tmp_path):
    trials = build(report="full")[0]
    write_trials(trials, tmp_path / "run-1.parquet")
    assert sorted(read_trials(tmp_path / "run-1.parquet"), key=lambda t: t.question) == sorted(
        trials, key=lambda t: t.question
    )


def test_a_missing_template_is_named(tmp_path):
    with pytest.raises(BadInput, match=r"question\.j2: no such prompt template"):
        Prompts(tmp_path).text("question", "question")


def test_a_question_takes_its_topics_substitute_and_the_one_of_its_number():
    chosen = [
        Substitute(study="a", patient="p", substitute="b", substitute_patient="p", why="", topic="Edema"),
        Substitute(study="a", patient="p", substitute="c", substitute_patient="q", why="", topic="Edema", number=2),
        Substitute(study="a", patient="p", substitute="c", substitute_patient="q", why="", topic="Fracture"),
    ]

    def shown(number: int) -> str | None:
        setting = Setting(images="frontal", readout="yes-no", source="substitute", substitute=number)
        trials, _ = build_trials(
            QUESTIONS, STUDIES, PICTURES, chosen, setting=setting, name="s", run=1, truth=lambda *_: None,
            prompts=Prompts(), seed=0,
        )  # fmt: skip
        return of(trials, "a").image_study

    assert (shown(1), shown(2)) == ("b", "c")
