"""The readout `similarity`: the texts that a contrastive model is given are in the trial, one block an option."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overread.config import Setting
from overread.core.errors import BadInput
from overread.core.records import Picture, Question, Study
from overread.settings.base import Draft
from overread.settings.order import Order
from overread.settings.readout import Readout
from overread.trials.build import Materials
from overread.trials.prompt import OWN_PROMPTS, Prompts, image_blocks
from overread.trials.reports import Reports

PICTURE = Picture(
    study="a", view="frontal", order=0, name="Frontal", path="a.png", pixels="p", width=4, height=3, series="frontal"
)

STUDY = Study(study="a", patient="p", dataset="d", modality="xray", images={}, report={}, labels={}, restricted=False)


def asking(options: tuple[str, ...] = ("left", "right", "both")) -> Question:
    return Question(
        study="a", patient="p", stem="Where is it?", options=options, answer=options[0], topic="t", origin="test"
    )


def shown(question: Question, options: tuple[str, ...], prompts: Prompts | None = None, **fields: str) -> list[str]:
    """What a setting shows with the options in a given order."""
    prompts = prompts or Prompts()
    setting = Setting.model_validate({"images": "frontal", "readout": "similarity", **fields})
    materials = Materials({}, [PICTURE], "frontal", [], lambda *_: None, prompts, Reports(prompts), 0)
    draft = Draft(question, STUDY, materials, "frontal", options=options)
    for aspect in setting.aspects:
        aspect.show(draft)
    setting[Readout].tell(draft)
    images = image_blocks(draft.pictures, prompts)
    draft.blocks, draft.images = images + draft.blocks, len(images)
    setting[Order].arrange(draft)
    return [f"{block.role}: {block.text or block.image}" for block in draft.blocks]


def own_template(folder: Path, text: str) -> Prompts:
    folder.mkdir()
    (folder / "similarity.j2").write_text(text)
    return Prompts(folder)


def test_each_option_is_a_text_with_its_question_and_nothing_else_is_asked() -> None:
    assert shown(asking(), ("right", "left", "both")) == [
        "image: a.png",
        "options: Where is it? right",
        "options: Where is it? left",
        "options: Where is it? both",
    ]


def test_yes_and_no_are_texts_too() -> None:
    assert shown(asking(("yes", "no")), ("yes", "no"))[1:] == ["options: Where is it? yes", "options: Where is it? no"]


def test_the_template_is_the_users_to_change(tmp_path: Path) -> None:
    prompts = own_template(tmp_path / "prompts", "An MRI that shows: {{ option }} ({{ question.topic }})\n")
    assert shown(asking(), ("left", "right", "both"), prompts)[1] == "options: An MRI that shows: left (t)"


@pytest.mark.parametrize("template", ["{{ question.stem }}", "", "{% if option == 'left' %}left{% endif %}"])
def test_a_template_that_does_not_tell_the_options_apart_is_refused(tmp_path: Path, template: str) -> None:
    prompts = own_template(tmp_path / "prompts", template)
    with pytest.raises(BadInput, match=r"similarity\.j2: .* has to hold \{\{ option \}\}"):
        shown(asking(), ("left", "right", "both"), prompts)


def test_a_template_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"similarity\.j2: no such prompt template"):
        shown(asking(), ("left", "right"), Prompts(tmp_path))


@given(st.permutations(["left", "right", "both", "neither"]))
def test_texts_come_in_the_order_shown(order: list[str]) -> None:
    question = asking(("left", "right", "both", "neither"))
    assert [text.removeprefix("options: Where is it? ") for text in shown(question, tuple(order))[1:]] == order


def test_overreads_own_template_is_there() -> None:
    assert (OWN_PROMPTS / "similarity.j2").is_file()
