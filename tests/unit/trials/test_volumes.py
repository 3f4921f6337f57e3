"""Trials on volumes and stacks of slices: where captions stand, and what black and another study's volume are."""

from __future__ import annotations

from pathlib import Path

import pytest

from data.small_mri import mri_study
from overread.config import Setting, View
from overread.core.records import (
    Picture,
    Question,
    Study,
    Substitute,
    Trial,
    read_pictures,
    read_trials,
    write_trials,
)
from overread.images.index import index_images, write_views
from overread.trials.build import build_trials
from overread.trials.prompt import Prompts
from overread.views.montage.section import MontageView
from overread.views.slice.section import SliceView
from overread.views.volume.drawing import volume_hash
from overread.views.volume.section import VolumeView

VIEWS: dict[str, View] = {
    "volume": VolumeView(kind="volume"),
    "stack": VolumeView(kind="volume", slices=3),
    "stack-before": VolumeView(kind="volume", slices=3, caption="before"),
    "slices": SliceView(series=("T1", "FLAIR")),
    "slices-after": SliceView(series=("T1", "FLAIR"), caption="after"),
    "montages": MontageView(kind="montage", planes=("axial", "coronal")),
}
OPTIONS = ("left frontal", "right frontal", "left temporal", "right parietal")


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Study]]:
    root = tmp_path_factory.mktemp("volumes")
    studies = [mri_study(root / "data", name, series=("T1", "FLAIR")) for name in "AB"]
    folder = root / "results" / "d"
    for study in studies:
        write_views(study, VIEWS, folder / "images" / study.study / "views.json")
    index_images(studies, folder / "images", folder / "images.parquet", folder / "studies_rejected.csv")
    return folder, studies


def built(dataset: tuple[Path, list[Study]], images: str, **fields: object) -> dict[str, Trial]:
    """A trial a study."""
    folder, studies = dataset
    questions = [
        Question(
            study=study.study, patient=study.patient, stem="Where is the mass?", options=OPTIONS, answer=OPTIONS[0],
            topic="location", origin="test",
        )
        for study in studies
    ]  # fmt: skip
    swaps = [
        Substitute(study=one, patient=f"p{one}", substitute=two, substitute_patient=f"p{two}", why="")
        for one, two in ("AB", "BA")
    ]
    trials, left_out = build_trials(
        questions, studies, read_pictures(folder / "images.parquet"), swaps,
        setting=Setting.model_validate({"images": images, **fields}), name="s", run=1,
        truth=lambda study, topic: study.labels.get(topic), prompts=Prompts(), seed=0,
    )  # fmt: skip
    assert not left_out
    return {trial.study: trial for trial in trials}


def order(trial: Trial) -> list[str]:
    """What a model meets, in order: a caption's text, or the role of another block."""
    return [block.text or "" if block.role == "caption" else block.role for block in trial.blocks]


QUESTION = ["question", "options", "instruction"]


def test_each_slice_of_a_stack_is_followed_by_its_name_and_the_question_comes_last(
    dataset: tuple[Path, list[Study]],
) -> None:
    assert order(built(dataset, "stack")["A"]) == [
        "image",
        "SLICE 1",
        "image",
        "SLICE 2",
        "image",
        "SLICE 3",
        *QUESTION,
    ]


def test_a_view_says_where_names_stand(dataset: tuple[Path, list[Study]]) -> None:
    assert order(built(dataset, "stack-before")["A"])[:2] == ["SLICE 1:", "image"]
    assert order(built(dataset, "slices")["A"])[:4] == ["T1, axial:", "image", "FLAIR, axial:", "image"]
    assert order(built(dataset, "slices-after")["A"])[:4] == ["image", "T1, axial", "image", "FLAIR, axial"]
    assert order(built(dataset, "montages")["A"])[:4] == ["montage, axial:", "image", "montage, coronal:", "image"]


def test_the_text_may_come_first_with_the_slices_in_the_same_order(dataset: tuple[Path, list[Study]]) -> None:
    trial = built(dataset, "stack", order="text-first")["A"]
    assert order(trial) == [*QUESTION, "image", "SLICE 1", "image", "SLICE 2", "image", "SLICE 3"]


def test_a_volume_is_one_block_with_the_hash_of_its_file_and_no_caption(dataset: tuple[Path, list[Study]]) -> None:
    folder, _ = dataset
    trial = built(dataset, "volume")["A"]
    assert order(trial) == ["image", *QUESTION]
    [block] = trial.images
    assert block.image == "images/A/pictures/volume-0.nii.gz" and block.pixels == volume_hash(folder / block.image)


def test_a_black_volume_has_the_hash_of_the_file_that_the_images_stage_wrote(dataset: tuple[Path, list[Study]]) -> None:
    folder, _ = dataset
    trials = built(dataset, "volume", source="black")
    [block] = trials["A"].images
    assert block.image is not None and block.image.startswith("images/black/32x30x20-")
    assert block.pixels == volume_hash(folder / block.image)
    assert trials["A"].trial == trials["B"].trial, "nothing of a study is left in it"
    assert trials["A"].image_study is None


def test_a_substitutes_volume_is_the_other_studys(dataset: tuple[Path, list[Study]]) -> None:
    own, other = built(dataset, "volume"), built(dataset, "volume", source="substitute")
    assert other["A"].images == own["B"].images != own["A"].images
    assert (other["A"].image_study, other["A"].image_patient) == ("B", "pB")


def test_trials_on_volumes_survive_their_file(dataset: tuple[Path, list[Study]], tmp_path: Path) -> None:
    trials = [*built(dataset, "volume").values(), *built(dataset, "stack", source="black").values()]
    write_trials(trials, tmp_path / "run-1.parquet")
    assert sorted(read_trials(tmp_path / "run-1.parquet"), key=lambda one: one.model_dump_json()) == sorted(
        trials, key=lambda one: one.model_dump_json()
    )


def test_where_a_name_stands_is_part_of_the_trial(dataset: tuple[Path, list[Study]]) -> None:
    before, after = built(dataset, "stack-before")["A"], built(dataset, "stack")["A"]
    assert [one.pixels for one in before.images] == [one.pixels for one in after.images]
    assert before.trial != after.trial


def test_pictures_of_volumes_keep_their_shape_and_place_in_the_table(dataset: tuple[Path, list[Study]]) -> None:
    folder, _ = dataset
    volumes = [one for one in read_pictures(folder / "images.parquet") if one.view == "volume"]
    assert [(one.width, one.height, one.depth) for one in volumes] == [(32, 30, 20)] * 2
    assert volumes[0].affine == (1, 0, 0, -16, 0, 1, 0, 5, 0, 0, 1, -40)
    flat = [one for one in read_pictures(folder / "images.parquet") if one.view == "stack"]
    assert all(isinstance(one, Picture) and one.depth is None and one.affine is None for one in flat)
