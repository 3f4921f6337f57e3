"""From studies to pictures: what is rendered, what is refused, and what one bad study can't stop."""

from __future__ import annotations

import csv
import json
import sys
from collections import Counter
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from overread.config import View
from overread.core.errors import BadInput
from overread.core.records import Study, read_pictures, write_studies
from overread.images import render_study
from overread.images.commands import app
from overread.images.render import pixel_hash
from overread.images.volume import BadFile
from overread.views.frontal import FrontalView
from overread.views.montage.section import MontageView
from overread.views.slice.section import SliceView
from overread.views.volume.section import VolumeView

SHAPE = (32, 30, 20)
AFFINE = np.array([[-1.0, 0, 0, 0], [0, -1, 0, 29], [0, 0, 1, 0], [0, 0, 0, 1]])
FLAIR: dict[str, View] = {"flair-axial": SliceView(series="FLAIR")}


def save(path: Path, data: np.ndarray) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    nib.save(nib.Nifti1Image(data, AFFINE), path)
    return str(path)


def study(root: Path, name: str = "A", **more: object) -> Study:
    """A brain with a tumour whose middle is slice 12."""
    rng = np.random.default_rng(len(name) + ord(name[0]))
    brain = np.zeros(SHAPE, dtype=np.int16)
    brain[4:28, 4:26, 2:18] = 1
    tumour = np.zeros(SHAPE, dtype=np.int16)
    tumour[8:12, 8:12, 10:15] = 2
    tumour[7:13, 7:13, 12] = 4
    images = {"brain_segmentation": brain, "tumor_segmentation": tumour}
    for series in ("T1", "FLAIR", "ADC"):
        images[series] = (rng.normal(500, 90, SHAPE) * brain).astype(np.int16)
    paths = {series: save(root / name / f"{name}_{series}.nii.gz", data) for series, data in images.items()}
    row: dict[str, object] = {
        "study": name, "patient": f"p{name}", "dataset": "d", "modality": "mri", "images": paths, "report": {},
        "labels": {}, "restricted": False,
    }  # fmt: skip
    return Study.model_validate({**row, **more})


def without(one: Study, series: str) -> Study:
    return one.model_copy(update={"images": {name: path for name, path in one.images.items() if name != series}})


# -- what is rendered ------------------------------------------------------------------------------------------------


def test_a_picture_says_what_it_shows(tmp_path: Path) -> None:
    [picture] = render_study(study(tmp_path), FLAIR, tmp_path / "d" / "images" / "A")
    expected = {
        "study": "A", "view": "flair-axial", "order": 0, "name": "FLAIR, axial", "series": "FLAIR", "plane": "axial",
        "path": "images/A/pictures/flair-axial-0.png", "width": 32, "height": 30, "slice_index": 12,
        "position_mm": 12.0, "chosen_by": "most tumour voxels", "caption": "before",
        "orientation": "left to right: R to L; top to bottom: A to P",
    }  # fmt: skip
    said = picture.model_dump(exclude={"pixels", "scaling"}, exclude_none=True)
    assert said == expected
    image = Image.open(tmp_path / "d" / picture.path)
    assert pixel_hash(image) == picture.pixels
    values = nib.load(tmp_path / "A" / "A_FLAIR.nii.gz").get_fdata()[:, :, 12].T
    high = np.percentile(values[values > 0], 99.5)
    assert np.abs(np.asarray(image) - np.clip(values / high, 0, 1) * 255).max() <= 1
    assert picture.scaling == f"0 to {high:g}: 0 and 99.5th percentile of the brain in the slice"


def test_a_list_of_series_is_shown_in_its_order_at_one_level(tmp_path: Path) -> None:
    views: dict[str, View] = {"two": SliceView(series=("T1", "ADC"), plane="coronal", size=64)}
    pictures = render_study(study(tmp_path), views, tmp_path / "d" / "images" / "A")
    assert [(p.order, p.series, p.width, p.height) for p in pictures] == [(0, "T1", 64, 40), (1, "ADC", 64, 40)]
    assert len({p.slice_index for p in pictures}) == 1


def test_all_means_every_series_and_the_masks_last(tmp_path: Path) -> None:
    pictures = render_study(
        study(tmp_path), {"all": SliceView(series="all", slice="middle")}, tmp_path / "d" / "images" / "A"
    )
    assert [picture.series for picture in pictures] == [
        "T1", "FLAIR", "ADC", "brain_segmentation", "tumor_segmentation",
    ]  # fmt: skip
    assert {(picture.slice_index, picture.chosen_by) for picture in pictures} == {(9, "middle of the brain")}


def test_a_brain_without_tumour_is_shown_and_said(tmp_path: Path) -> None:
    one = study(tmp_path)
    save(Path(one.images["tumor_segmentation"]), np.zeros(SHAPE, dtype=np.int16))
    [picture] = render_study(one, FLAIR, tmp_path / "d" / "images" / "A")
    assert picture.chosen_by == "no tumour: most brain voxels"


def test_views_of_another_modality_are_passed_over(tmp_path: Path) -> None:
    views: dict[str, View] = {**FLAIR, "frontal": FrontalView(kind="frontal")}
    assert [p.view for p in render_study(study(tmp_path), views, tmp_path / "d" / "images" / "A")] == ["flair-axial"]


def test_pictures_do_not_depend_on_the_order_of_views_or_files(tmp_path: Path) -> None:
    one = study(tmp_path)
    views: dict[str, View] = {"b": SliceView(series="T1"), "a": SliceView(series="FLAIR", plane="sagittal")}
    turned = one.model_copy(update={"images": dict(reversed(one.images.items()))})
    first = render_study(one, views, tmp_path / "one" / "images" / "A")
    second = render_study(turned, dict(reversed(views.items())), tmp_path / "two" / "images" / "A")
    assert first == second
    for picture in first:
        assert (tmp_path / "one" / picture.path).read_bytes() == (tmp_path / "two" / picture.path).read_bytes()


opened: Counter[str] = Counter()
"""How often each NIfTI was opened, by its name."""


def _count(event: str, arguments: tuple[object, ...]) -> None:
    if event == "open" and str(arguments[0]).endswith(".nii.gz"):
        opened[Path(str(arguments[0])).name] += 1


sys.addaudithook(_count)


@pytest.mark.parametrize("slice_", ["largest-tumour", "middle", "largest-label-4", "largest-label-1"])
@pytest.mark.parametrize("tumour", [True, False])
def test_no_file_is_opened_twice_and_none_that_no_view_needs(tmp_path: Path, slice_: str, tumour: bool) -> None:
    """By Python's own record of opened files, whatever opens them; whole volumes and montages among the views."""
    one = study(tmp_path)
    if not tumour:
        save(Path(one.images["tumor_segmentation"]), np.zeros(SHAPE, dtype=np.int16))
    Path(one.images["T1"]).write_bytes(b"broken")
    views: dict[str, View] = {
        "a": SliceView(series="FLAIR", slice=slice_),
        "b": SliceView(series=("ADC", "FLAIR", "brain_segmentation"), plane="sagittal", slice=slice_),
        "c": SliceView(series=("tumor_segmentation", "FLAIR"), plane="coronal"),
        "d": MontageView(kind="montage", series=("FLAIR", "ADC"), planes=("axial", "coronal"), slice=slice_),
    }
    needed = {"FLAIR": 1, "ADC": 1, "tumor_segmentation": 1, "brain_segmentation": 1}
    for more in ({}, {"e": VolumeView(kind="volume", slices=4)}, {"0": VolumeView(kind="volume", series="ADC")}):
        opened.clear()
        render_study(one, {**views, **more}, tmp_path / "d" / "images" / "A")
        assert {name: count for name, count in opened.items() if name.startswith("A_")} == {
            f"A_{name}.nii.gz": count for name, count in needed.items()
        }


def test_pictures_of_an_earlier_run_are_removed(tmp_path: Path) -> None:
    folder = tmp_path / "d" / "images" / "A"
    render_study(study(tmp_path), {"old": SliceView(series="T1")}, folder)
    render_study(study(tmp_path), FLAIR, folder)
    assert [path.name for path in (folder / "pictures").glob("[!.]*")] == ["flair-axial-0.png"]


# -- what is refused -------------------------------------------------------------------------------------------------


def test_a_series_that_the_study_lacks_is_named_with_what_the_reader_found(tmp_path: Path) -> None:
    one = without(study(tmp_path), "FLAIR")
    with pytest.raises(BadFile, match=r"^FLAIR: missing: the study has no such series$"):
        render_study(one, FLAIR, tmp_path / "d" / "images" / "A")
    told = one.model_copy(update={"attributes": {"unusable FLAIR": "A_FLAIR.nii.gz: empty file"}})
    with pytest.raises(BadFile, match=r"^FLAIR: A_FLAIR\.nii\.gz: empty file$"):
        render_study(told, FLAIR, tmp_path / "d" / "images" / "A")


def test_no_picture_of_a_rejected_study_stays_behind(tmp_path: Path) -> None:
    one = study(tmp_path)
    Path(one.images["T1"]).write_bytes(b"")
    folder = tmp_path / "d" / "images" / "A"
    with pytest.raises(BadFile, match=r"^A_T1\.nii\.gz: empty file$"):
        render_study(one, {"a": SliceView(series="FLAIR"), "b": SliceView(series="T1")}, folder)
    assert not (folder / "pictures").exists()


def test_a_bad_radiograph_is_a_bad_file_of_its_study(tmp_path: Path) -> None:
    one = study(tmp_path, modality="xray", images={"frontal": str(tmp_path / "absent.jpg")})
    with pytest.raises(BadFile, match=r"absent\.jpg"):
        render_study(one, {"frontal": FrontalView(kind="frontal")}, tmp_path / "d" / "images" / "A")


def test_a_slice_without_contrast_is_refused(tmp_path: Path) -> None:
    one = study(tmp_path)
    data = np.zeros(SHAPE, dtype=np.int16)
    data[:, :, 0] = 5
    save(Path(one.images["FLAIR"]), data)
    with pytest.raises(BadFile, match=r"A_FLAIR\.nii\.gz: no contrast in the slice: axial slice 12"):
        render_study(one, FLAIR, tmp_path / "d" / "images" / "A")


def spoilt(root: Path) -> dict[str, tuple[Study, str]]:
    """A study for each kind of bad file, and the reason that must be given."""
    made: dict[str, tuple[Study, str]] = {}

    def flair(name: str) -> Path:
        made[name] = (study(root, name), "")
        return Path(made[name][0].images["FLAIR"])

    flair("missing").unlink()
    path = flair("truncated")
    path.write_bytes(path.read_bytes()[:3000])
    save(flair("zero"), np.zeros(SHAPE, dtype=np.int16))
    data = np.ones(SHAPE, dtype=np.float32)
    data[3, 3, 3] = np.nan
    save(flair("nan"), data)
    save(flair("wrong-shape"), np.ones((*SHAPE, 2), dtype=np.int16))
    save(flair("elsewhere"), np.random.default_rng(0).integers(1, 9, (32, 30, 6)).astype(np.int16))
    flair("page").write_bytes(b"<html>")
    reasons = {
        "missing": "missing", "truncated": "truncated", "zero": "all voxels are zero",
        "nan": "1 of 19200 voxels are NaN",
        "wrong-shape": "expected a 3-D volume, found 4-D (32x30x20x2)",
        "elsewhere": "does not reach the slice at 12 mm",
        "page": "not gzip",
    }  # fmt: skip
    return {name: (one, f"{name}_FLAIR.nii.gz: {reasons[name]}") for name, (one, _) in made.items()}


def run(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


def rendered(root: Path, studies: list[Study], views: dict[str, View]) -> Path:
    """The commands as a workflow calls them, on a dataset's folder."""
    dataset = root / "results" / "d"
    write_studies(studies, dataset / "studies.parquet")
    text = json.dumps({name: view.model_dump(mode="json") for name, view in views.items()})
    for one in studies:
        if one.problem is None:
            out = dataset / "images" / one.study / "views.json"
            run("render", dataset / "studies.parquet", "--study", one.study, "--views", text, "--out", out)
    return dataset


def index(dataset: Path) -> str:
    return run(
        "index", dataset / "studies.parquet", "--images", dataset / "images", "--out", dataset / "images.parquet",
        "--rejected", dataset / "studies_rejected.csv",
    )  # fmt: skip


def test_every_kind_of_bad_file_is_listed_with_its_reason_and_the_others_go_on(tmp_path: Path) -> None:
    bad = spoilt(tmp_path / "data")
    unread = study(tmp_path / "data", "unread", problem="FLAIR: missing")
    good = [study(tmp_path / "data", "A"), study(tmp_path / "data", "B")]
    views: dict[str, View] = {**FLAIR, "small": SliceView(series="FLAIR", size=16)}
    dataset = rendered(tmp_path, [*good, unread, *(one for one, _ in bad.values())], views)
    assert index(dataset) == f"2 studies have pictures, {len(bad) + 1} could not be used\n"
    with (dataset / "studies_rejected.csv").open(newline="", encoding="utf-8") as file:
        rows = {row["study"]: row for row in csv.DictReader(file)}
    assert rows.pop("unread") == {
        "study": "unread",
        "patient": "punread",
        "stage": "studies",
        "reason": "FLAIR: missing",
    }
    assert set(rows) == set(bad)
    for name, (one, reason) in bad.items():
        assert rows[name]["reason"].startswith(reason), name
        assert (rows[name]["stage"], rows[name]["patient"]) == ("images", one.patient)
        content = json.loads((dataset / "images" / name / "views.json").read_text())
        assert content == {"study": name, "problem": rows[name]["reason"], "left_out": [], "pictures": []}
    pictures = read_pictures(dataset / "images.parquet")
    assert [(p.study, p.view) for p in pictures] == [(s, v) for s in "AB" for v in ("flair-axial", "small")]


def test_a_black_picture_of_every_size_is_made(tmp_path: Path) -> None:
    views: dict[str, View] = {**FLAIR, "small": SliceView(series="FLAIR", size=16)}
    dataset = rendered(tmp_path, [study(tmp_path / "data")], views)
    index(dataset)
    black = {path.name: Image.open(path) for path in (dataset / "images" / "black").glob("*.png")}
    assert {name: (image.mode, image.size, image.getextrema()) for name, image in black.items()} == {
        "32x30.png": ("L", (32, 30), (0, 0)),
        "16x15.png": ("L", (16, 15), (0, 0)),
    }


def test_the_index_is_the_same_in_whatever_order_studies_come(tmp_path: Path) -> None:
    studies = [study(tmp_path / "data", name) for name in "ABC"]
    first, second = rendered(tmp_path / "1", studies, FLAIR), rendered(tmp_path / "2", studies[::-1], FLAIR)
    index(first)
    index(second)
    for name in ("images.parquet", "studies_rejected.csv"):
        assert (first / name).read_bytes() == (second / name).read_bytes()


def test_if_nothing_can_be_used_the_error_names_the_first_reason(tmp_path: Path) -> None:
    one, reason = spoilt(tmp_path / "data")["zero"]
    dataset = rendered(tmp_path, [one], FLAIR)
    with pytest.raises(BadInput, match=f"none of 1 studies can be used; the first: zero: {reason}"):
        index(dataset)
    assert "zero" in (dataset / "studies_rejected.csv").read_text()


def test_a_study_that_was_not_rendered_is_an_error(tmp_path: Path) -> None:
    write_studies([study(tmp_path / "data")], tmp_path / "results" / "d" / "studies.parquet")
    with pytest.raises(BadInput, match=r"views\.json: no such file; render the study's views first"):
        index(tmp_path / "results" / "d")


def test_an_unknown_study_or_view_is_one_line(tmp_path: Path) -> None:
    dataset = rendered(tmp_path, [study(tmp_path / "data")], FLAIR)
    out = dataset / "images" / "B" / "views.json"
    with pytest.raises(BadInput, match=r"no study 'AA'; there are: A\. Did you mean A\?"):
        run("render", dataset / "studies.parquet", "--study", "AA", "--views", "{}", "--out", out)
    with pytest.raises(BadInput, match="--views"):
        run("render", dataset / "studies.parquet", "--study", "A", "--views", '{"a": {"kind": "slcie"}}', "--out", out)
