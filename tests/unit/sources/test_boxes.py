"""Boxes around findings, in the two published layouts, and what an edit makes of them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from pydantic import TypeAdapter, ValidationError

from overread.config import View
from overread.config.datasets import Boxes
from overread.core.errors import BadInput
from overread.core.records import Box, Study, read_studies, write_studies
from overread.edits import Edit
from overread.images import render_study
from overread.images.edited import NO_BOX, boxed
from overread.sources.png_json import PngJson
from overread.sources.shared.boxes import with_boxes
from overread.sources.shared.remarks import Remarks

QUESTIONS = {"origin": "findings", "not_mentioned": "leave-out"}
HEAD = "image_id,rad_id,class_name,class_id,x_min,y_min,x_max,y_max\n"


def radiograph(folder: Path, name: str = "a1") -> Study:
    """200 x 160 pixels: a smooth ground, and a bright square in the left half of the picture."""
    rows, columns = np.mgrid[:160, :200]
    grey = (60 + 0.3 * rows + 20 * np.cos(columns / 30)).astype(np.uint8)
    grey[60:90, 40:80] = 220
    path = folder / f"{name}.png"
    Image.fromarray(grey).save(path)
    return Study(
        study=name, patient="p", dataset="d", modality="xray", images={"frontal": str(path)}, report={}, labels={},
        restricted=False,
    )  # fmt: skip


def vindr(folder: Path, *rows: str) -> Boxes:
    path = folder / "annotations.csv"
    path.write_text(HEAD + "".join(f"{row}\n" for row in rows))
    return Boxes(path=str(path), layout="vindr-cxr")


def padchest(folder: Path, content: object) -> Boxes:
    path = folder / "grounded.json"
    path.write_text(json.dumps(content))
    return Boxes(path=str(path), layout="padchest-gr")


def test_vindr_has_a_row_per_box_and_a_row_without_one_for_nothing(tmp_path: Path) -> None:
    section = vindr(
        tmp_path,
        "a1,R9,Nodule/Mass,8,40,60,80,90",
        "a1,R8,No finding,14,,,,",
        "a1,R8,Cardiomegaly,3,10.5,20,100.25,140",
        "other,R9,Nodule/Mass,8,1,1,2,2",
        "a1,R9,Nodule/Mass,8,40,60,40,90",
        "a1,R9,Nodule/Mass,8,forty,60,80,90",
    )
    remarks = Remarks()
    (study,) = with_boxes([radiograph(tmp_path)], section, remarks)
    assert study.boxes == (
        Box(topic="Cardiomegaly", left=10.5, top=20, right=100.25, bottom=140, unit="pixels"),
        Box(topic="Nodule/Mass", left=40, top=60, right=80, bottom=90, unit="pixels"),
    )
    assert remarks.counts == {
        "boxes left out": 2, "boxes": 2, "studies with a box": 1, "images with boxes that are not of this data set": 1,
    }  # fmt: skip
    told = [row.remark for row in remarks.rows]
    assert "a box of 'Nodule/Mass' on a1: it has no area (40, 60, 40, 90): left out" in told
    assert "a box of 'Nodule/Mass' on a1: its corners are not four numbers: left out" in told
    write_studies([study], tmp_path / "studies.parquet")
    assert read_studies(tmp_path / "studies.parquet") == [study]


def test_padchest_has_shares_of_two_readers_under_each_label(tmp_path: Path) -> None:
    finding = {
        "labels": ["nodule", "mass"],
        "boxes": [[0.2, 0.375, 0.4, 0.5625]],
        "extra_boxes": [[0.1, 0.1, 1.2, 0.3]],
    }
    section = padchest(
        tmp_path,
        [
            {"StudyID": "1", "ImageID": "a1.png", "findings": [finding, {"sentence_en": "No effusion."}]},
            {"StudyID": "2", "ImageID": "b.png"},
        ],
    )
    remarks = Remarks()
    (study,) = with_boxes([radiograph(tmp_path)], section, remarks)
    assert [(box.topic, box.unit) for box in study.boxes] == [("mass", "shares"), ("nodule", "shares")]
    assert remarks.counts["boxes left out"] == 2 and "outside of the picture" in remarks.rows[0].remark
    inside = boxed(study.boxes, (160, 200), "nodule")
    assert inside[60:90, 40:80].all() and inside.sum() == 30 * 40


@pytest.mark.parametrize(
    ("content", "told"),
    [({"a": 1}, "not of PadChest-GR's layout"), ([{"StudyID": "1"}], "not of PadChest-GR's layout")],
)
def test_another_layout_is_named(tmp_path: Path, content: object, told: str) -> None:
    with pytest.raises(BadInput, match=told):
        with_boxes([radiograph(tmp_path)], padchest(tmp_path, content), Remarks())


def test_a_file_of_other_images_is_no_file_of_boxes(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"such as zz.* are none of this data set's .such as a1\.png"):
        with_boxes([radiograph(tmp_path)], vindr(tmp_path, "zz,R9,Nodule/Mass,8,1,1,2,2"), Remarks())
    path = tmp_path / "annotations.csv"
    path.write_text("image_id,class_name,x_min,y_min,x_max\n")
    with pytest.raises(BadInput, match="y_max"):
        with_boxes([radiograph(tmp_path)], Boxes(path=str(path), layout="vindr-cxr"), Remarks())


def test_boxes_are_of_radiographs(tmp_path: Path) -> None:
    written = {"source": "png-json", "root": str(tmp_path), "labels": True, "questions": QUESTIONS}
    boxes = {"path": str(tmp_path / "boxes.csv"), "layout": "vindr-cxr"}
    section = PngJson.model_validate({**written, "boxes": boxes})
    assert section.places["boxes"] == section.all_read["boxes"] == boxes["path"]
    with pytest.raises(ValidationError, match="layout"):
        PngJson.model_validate({**written, "boxes": {"path": "x.csv"}})


def pictures(study: Study, folder: Path, *edits: dict[str, object]) -> tuple[np.ndarray | None, str]:
    """The radiograph as it is shown, or why it is not."""
    views = TypeAdapter(dict[str, View]).validate_python({"v": {"kind": "frontal", "size": 200}})
    made = TypeAdapter(tuple[Edit, ...]).validate_python(edits)
    left_out: list[dict[str, str]] = []
    shown = render_study(study, views, folder / "images" / study.study, edits={"v": made}, left_out=left_out)
    if not shown:
        return None, left_out[0]["reason"]
    return np.asarray(Image.open(folder / shown[0].path)).astype(int), ""


def test_a_finding_is_erased_where_its_box_is_and_nowhere_else(tmp_path: Path) -> None:
    box = Box(topic="Nodule/Mass", left=38, top=58, right=82, bottom=92, unit="pixels")
    study = radiograph(tmp_path).model_copy(update={"boxes": (box,)})
    plain, _ = pictures(study, tmp_path)
    erased, _ = pictures(study, tmp_path, {"kind": "erase", "by": "around"})
    control, _ = pictures(study, tmp_path, {"kind": "erase-control", "by": "around"})
    assert plain is not None and erased is not None and control is not None
    assert np.abs(plain[60:90, 40:80] - erased[60:90, 40:80]).min() > 60
    away = np.ones(plain.shape, dtype=bool)
    away[50:100, 30:90] = False
    assert (plain == erased)[away].all()
    assert (plain == control)[60:90, 40:80].all() and (plain != control).any()


@pytest.mark.parametrize(
    ("boxes", "edit", "why"),
    [
        ((), {"kind": "erase"}, NO_BOX),
        (((0, 0, 10, 10),), {"kind": "erase", "label": "Nodule"}, "no box of 'Nodule'; its boxes are of Mass"),
        (((40, 60, 400, 90),), {"kind": "erase", "by": "around"}, "was it drawn on a file of another size"),
    ],
)
def test_what_can_not_be_erased_is_told_with_its_reason(
    tmp_path: Path, boxes: tuple[tuple[float, ...], ...], edit: dict[str, object], why: str
) -> None:
    drawn = tuple(
        Box(topic="Mass", left=left, top=top, right=right, bottom=bottom, unit="pixels")
        for left, top, right, bottom in boxes
    )
    shown, told = pictures(radiograph(tmp_path).model_copy(update={"boxes": drawn}), tmp_path, edit)
    assert shown is None and why in told


def test_a_covered_box_says_how_much_of_the_finding_it_hides(tmp_path: Path) -> None:
    box = Box(topic="Mass", left=40, top=60, right=80, bottom=90, unit="pixels")
    study = radiograph(tmp_path).model_copy(update={"boxes": (box,)})
    views = TypeAdapter(dict[str, View]).validate_python({"v": {"kind": "frontal"}})
    for covered, hides in (([0, 0, 0.3, 1], 0.5), ([0, 0, 1, 0.3], 0.0), ([0.2, 0.3, 0.5, 0.6], 1.0)):
        made = TypeAdapter(tuple[Edit, ...]).validate_python([{"kind": "occlude", "box": covered}])
        (picture,) = render_study(study, views, tmp_path / "images" / "a1", edits={"v": made})
        assert picture.hides == pytest.approx(hides)
