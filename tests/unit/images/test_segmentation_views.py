"""The commands as the workflow calls them: a study is segmented, and its views take the masks that were made."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from data.small_brain import brain, save, study, tumour, without
from data.stand_in_network import Section, mask_of, put_in
from overread.core.errors import BadInput
from overread.core.records import Picture, Study, write_studies
from overread.images.commands import app
from overread.images.index import read_views
from overread.images.segmentation import brain as brain_module
from overread.images.segmentation.result import Segmentation, with_masks, write_result

VIEWS = json.dumps({"flair": {"kind": "slice", "series": "FLAIR"}})


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Section]:
    return partial(put_in, monkeypatch, tmp_path)


def run(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


def segmented(root: Path, studies: list[Study], section: Section | dict[str, Any]) -> dict[str, str]:
    """What the command says of each study; masks and JSON under `root`/d/images/<study>/segmentation."""
    write_studies(studies, root / "d" / "studies.parquet")
    text = json.dumps(section) if isinstance(section, dict) else section.model_dump_json()
    said = {}
    for one in studies:
        out = root / "d" / "images" / one.study / "segmentation" / "mask.nii.gz"
        said[one.study] = run(
            "segment", root / "d" / "studies.parquet", "--study", one.study, "--section", text,
            "--work", root / "work" / one.study, "--out", out,
        )  # fmt: skip
    return said


def rendered(root: Path, one: Study, *more: object) -> tuple[str | None, list[Picture]]:
    out = root / "d" / "images" / one.study / "views.json"
    run("render", root / "d" / "studies.parquet", "--study", one.study, "--views", VIEWS, *more, "--out", out)
    return read_views(out)[:2]


def test_views_take_the_mask_of_the_network_and_the_index_says_so(
    tmp_path: Path, stand_in: Callable[..., Section]
) -> None:
    one = study(tmp_path)
    folder = tmp_path / "d" / "images" / "A"
    assert segmented(tmp_path, [one], stand_in()) == {"A": "A: segmented by swin-unetr\n"}
    problem, [picture] = rendered(tmp_path, one, "--segmentation", folder / "segmentation" / "mask.json")
    by_network = (mask_of(folder / "segmentation" / "mask.nii.gz") > 0).sum(axis=(0, 1))
    by_hand = (tumour() > 0).sum(axis=(0, 1))
    assert problem is None
    assert by_network[picture.slice_index] == by_network.max()
    assert by_hand[picture.slice_index] < by_hand.max()
    assert picture.chosen_by == "most tumour voxels (tumour mask: swin-unetr)"
    assert (folder / "segmentation" / "mask.nii.gz").exists()


def test_without_a_segmentation_nothing_is_other_than_before(tmp_path: Path, stand_in: Callable[..., Section]) -> None:
    one = study(tmp_path)
    write_studies([one], tmp_path / "d" / "studies.parquet")
    before = rendered(tmp_path, one)
    files = {
        path: path.read_bytes()
        for path in (tmp_path / "d" / "images").rglob("*")
        if path.suffix != ".jsonl" and path.is_file()
    }
    segmented(tmp_path, [one], stand_in())
    assert rendered(tmp_path, one) == before
    assert before[1][0].chosen_by == "most tumour voxels"
    assert all(path.read_bytes() == content for path, content in files.items())


def test_a_brain_mask_that_was_made_is_taken_too(
    tmp_path: Path, stand_in: Callable[..., Section], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It chooses the slice of a brain in which the network finds no tumour."""
    low = brain().copy()
    low[:, :, 9:] = False
    monkeypatch.setattr(brain_module, "extract_brain", lambda t1, grid, gpu: low)
    monkeypatch.setattr("overread.images.segmentation.study.PROBABLE", 2.0)
    one = without(study(tmp_path), "brain_segmentation", "tumor_segmentation")
    segmented(tmp_path, [one], stand_in())
    folder = tmp_path / "d" / "images" / "A" / "segmentation"
    about = json.loads((folder / "mask.json").read_text())
    assert (about["brain"], about["brain_ml"], about["volumes_ml"]["2"]) == ("deepbet", round(low.sum() / 1000, 1), 0)
    _, [picture] = rendered(tmp_path, one, "--segmentation", folder / "mask.json")
    assert picture.slice_index == int(np.argmax(low.sum(axis=(0, 1))))
    assert picture.chosen_by == "no tumour: most brain voxels (tumour mask: swin-unetr; brain mask: deepbet)"


def test_a_study_that_can_not_be_segmented_stops_no_other_and_is_rejected_with_the_reason(
    tmp_path: Path, stand_in: Callable[..., Section]
) -> None:
    good, bad = study(tmp_path, "A"), study(tmp_path, "B")
    save(Path(bad.images["T1"]), np.zeros((5, 5, 5), np.int16))
    why = "B_T1.nii.gz: all voxels are zero"
    assert segmented(tmp_path, [bad, good], stand_in()) == {"A": "A: segmented by swin-unetr\n", "B": f"B: {why}\n"}
    folder = tmp_path / "d" / "images"
    problem, pictures = rendered(tmp_path, bad, "--segmentation", folder / "B" / "segmentation" / "mask.json")
    assert (problem, pictures) == (f"swin-unetr: {why}", [])
    assert rendered(tmp_path, good, "--segmentation", folder / "A" / "segmentation" / "mask.json")[0] is None


def test_masks_of_another_study_are_refused(tmp_path: Path) -> None:
    write_result(Segmentation(study="B", method="provided"), tmp_path / "mask.nii.gz")
    with pytest.raises(BadInput, match=r"mask\.json: is of study B, not A"):
        with_masks(study(tmp_path), tmp_path / "mask.json")
    with pytest.raises(BadInput, match=r"other\.json: no such file; segment the study first"):
        with_masks(study(tmp_path), tmp_path / "other.json")
    (tmp_path / "mask.json").write_text('{"study": "A"}')
    with pytest.raises(BadInput, match=r"mask\.json: not the JSON of a segmentation \(method: "):
        with_masks(study(tmp_path), tmp_path / "mask.json")


@pytest.mark.parametrize(
    ("section", "why"),
    [
        ({"method": "swin"}, "--section: .*'provided', 'swin-unetr', 'segresnet'"),
        ({"method": "swin-unetr"}, "--section: swin-unetr.checkpoint: Field required"),
        ({"method": "provided", "overlap": 0.5}, "--section: provided: no key 'overlap'"),
    ],
)
def test_a_wrong_section_is_one_line(tmp_path: Path, section: dict[str, Any], why: str) -> None:
    with pytest.raises(BadInput, match=why):
        segmented(tmp_path, [study(tmp_path)], section)


def test_an_unknown_study_and_a_mask_of_another_kind_are_one_line(tmp_path: Path) -> None:
    write_studies([study(tmp_path)], tmp_path / "studies.parquet")
    asked = ("segment", tmp_path / "studies.parquet", "--section", '"provided"', "--study")
    with pytest.raises(BadInput, match="no study 'B'; there are: A"):
        run(*asked, "B", "--out", tmp_path / "mask.nii.gz")
    with pytest.raises(BadInput, match=r"mask\.nii: a mask is written as <name>\.nii\.gz"):
        run(*asked, "A", "--out", tmp_path / "mask.nii")
