"""What the numbers of a tumour mask mean: by the config's scheme, and a remark where that is doubtful."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from data.small_brain import study, tumour
from overread.config import Provided
from overread.core.records import Study
from overread.images import render_study
from overread.images.segmentation.result import with_masks
from overread.images.segmentation.study import segment
from overread.sources.table.section import Table
from overread.views.slice.section import SliceView

DECATHLON = {2: 1, 1: 2, 4: 3}
"""From our number to the Decathlon's."""


def reading(labels: Any) -> dict[str, str]:
    """As the section of a data set hands it on to its studies."""
    section = Table.model_validate({
        "source": "table", "path": "t.csv", "modality": "mri", "images": {"FLAIR": "f"},
        "segmentation": {"labels": labels}, "questions": {"origin": "file", "path": "q.jsonl"},
    })  # fmt: skip
    return section.reading


def renumbered(numbers: dict[int, int]) -> np.ndarray:
    mask = tumour()
    made = np.zeros_like(mask)
    for ours, theirs in numbers.items():
        made[mask == ours] = theirs
    return made


def read(tmp_path: Path, mask: np.ndarray, labels: Any) -> Study:
    return study(tmp_path, volumes={"tumor_segmentation": mask}, reading=reading(labels))


def shown(one: Study, folder: Path, **view: Any) -> list[Any]:
    return render_study(one, {"v": SliceView.model_validate({"kind": "slice", **view})}, folder / "d" / "images" / "A")


@pytest.mark.parametrize(
    ("labels", "numbers"),
    [
        ("brats-2021", {1: 1, 2: 2, 4: 4}),
        ("brats-2023", {1: 1, 2: 2, 4: 3}),
        ("decathlon", DECATHLON),
        ({1: "oedema", 2: "core", 3: "enhancing"}, DECATHLON),
        ({10: "enhancing", 200: "core", 7: "oedema"}, {4: 10, 1: 200, 2: 7}),
    ],
)
def test_a_mask_of_any_scheme_is_the_same_tumour(tmp_path: Path, labels: Any, numbers: dict[int, int]) -> None:
    """Volumes, the slice of a label, and the mask's picture are those of the mask in our own numbers."""
    own = read(tmp_path / "own", tumour(), "brats-2021")
    other = read(tmp_path / "other", renumbered(numbers), labels)
    volumes = [
        segment(one, Provided(), tmp_path / name / "m.nii.gz").volumes_ml
        for name, one in zip("ab", (own, other), strict=True)
    ]
    assert volumes[0] == volumes[1] and min((volumes[0] or {"": 0}).values()) > 0
    for label in (1, 2, 4):
        wanted = {"series": ["FLAIR", "tumor_segmentation"], "slice": f"largest-label-{label}"}
        pictures = [shown(one, tmp_path / name, **wanted) for name, one in zip("ab", (own, other), strict=True)]
        assert [one.pixels for one in pictures[0]] == [one.pixels for one in pictures[1]]


def test_a_number_that_is_other_is_no_tumour_and_one_that_is_not_named_is_refused(tmp_path: Path) -> None:
    mask = np.where(tumour() == 4, 9, tumour())
    named = segment(read(tmp_path, mask, {1: "core", 2: "oedema", 9: "other"}), Provided(), tmp_path / "m.nii.gz")
    assert named.volumes_ml is not None and named.volumes_ml["4"] == 0 and named.volumes_ml["2"] > 0
    why = segment(read(tmp_path, mask, {1: "core", 2: "oedema"}), Provided(), tmp_path / "n.nii.gz").problem
    assert why is not None and why.endswith("values that are no labels (9); 0, 1 and 2 are")


def test_a_mask_with_a_3_and_no_scheme_says_what_was_taken(tmp_path: Path) -> None:
    """The Decathlon's numbers look like those of BraTS 2023: where the config is silent the picture says so."""
    one = study(tmp_path, volumes={"tumor_segmentation": renumbered(DECATHLON)})
    (picture,) = shown(one, tmp_path, series="FLAIR", slice="largest-label-1")
    assert "3 of the tumour mask was read as enhancing, 1 as necrotic core and 2 as oedema" in picture.doubt
    (silent,) = shown(read(tmp_path, renumbered(DECATHLON), "decathlon"), tmp_path, series="FLAIR")
    assert silent.doubt is None and silent.chosen_by.endswith("by the config")


def test_volumes_that_no_glioma_has_are_a_remark(tmp_path: Path) -> None:
    """25 ml of core within 5 ml of oedema by the scheme that is named; turned around there is nothing to say."""
    mask = np.zeros_like(tumour())
    flat = mask.reshape(-1)
    flat[:25_000], flat[25_000:30_000] = 1, 2
    (picture,) = shown(read(tmp_path, mask, "brats-2021"), tmp_path, series="FLAIR")
    assert picture.doubt.startswith("25 ml of necrotic core and 5 ml of oedema by the tumour mask")
    (silent,) = shown(read(tmp_path, mask, "decathlon"), tmp_path, series="FLAIR")
    assert silent.doubt is None
    (middle,) = shown(read(tmp_path, mask, "brats-2021"), tmp_path, series="FLAIR", slice="middle")
    assert middle.doubt is None


def test_a_mask_that_was_written_here_is_not_turned_around_again(tmp_path: Path) -> None:
    one = read(tmp_path, renumbered(DECATHLON), "decathlon")
    segment(one, Provided(), tmp_path / "mask.nii.gz")
    assert json.loads((tmp_path / "mask.json").read_text())["relabelled"] == {"1": 2, "2": 1, "3": 4}
    again, _ = with_masks(one, tmp_path / "mask.json")
    assert again.reading == {}


@pytest.mark.parametrize("labels", ["brats-2019", {1: "necrosis"}, {0: "core"}, {1: "other"}, {}])
def test_labels_that_mean_nothing_are_refused(labels: Any) -> None:
    with pytest.raises(ValidationError, match="labels"):
        Provided.model_validate({"labels": labels})
