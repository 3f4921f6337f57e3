"""Volumes: the scan as it is, at its place, whatever its axes; and stacks of slices in the order of MedGemma."""

from __future__ import annotations

import gzip
import itertools
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from pydantic import ValidationError

from data.small_mri import ORIGIN, SHAPE, inside, mri_study, series_values
from overread.config import View
from overread.core.errors import BadInput
from overread.core.records import Picture, Study
from overread.images import render_study
from overread.images.volume import BadFile
from overread.images.volume_file import VolumePicture, digest, read_volume_picture, write_volume
from overread.views.volume.drawing import evenly, volume_hash
from overread.views.volume.section import VolumeView

FLAIR = ("FLAIR",)


def rendered(study: Study, folder: Path, **fields: object) -> list[Picture]:
    views: dict[str, View] = {"volume": VolumeView.model_validate({"kind": "volume", **fields})}
    return render_study(study, views, folder / "d" / "images" / study.study)


def whole(folder: Path, study: Study, **fields: object) -> tuple[Picture, Path]:
    [picture] = rendered(study, folder, **fields)
    return picture, folder / "d" / picture.path


# -- one volume ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("axes", ["RAS", "LPS", "LAS", "SPR", "AIL"])
def test_a_volume_is_the_scan_at_its_place_with_axes_ras(tmp_path: Path, axes: str) -> None:
    """Read back by nibabel: the values that were put in, in the patient space that they were made in."""
    study = mri_study(tmp_path / "data", series=FLAIR, axes=axes)
    picture, path = whole(tmp_path, study)
    image = nib.load(path)
    assert np.array_equal(image.get_fdata(), series_values("FLAIR", 66))
    assert nib.aff2axcodes(image.affine) == ("R", "A", "S")
    assert np.array_equal(image.affine[:3, 3], ORIGIN)
    assert (picture.width, picture.height, picture.depth) == SHAPE
    assert (picture.name, picture.series, picture.plane, picture.slice_index) == ("FLAIR, volume", "FLAIR", None, None)
    assert picture.path.endswith("/volume-0.nii.gz") and picture.affine is not None and len(picture.affine) == 12


def test_one_scan_along_other_axes_is_one_picture(tmp_path: Path) -> None:
    found = {
        whole(tmp_path / axes, mri_study(tmp_path / axes / "data", series=FLAIR, axes=axes))[0].pixels
        for axes in ("RAS", "LPS", "PIR")
    }
    assert len(found) == 1


def test_the_same_scan_gives_the_same_bytes_without_a_date(tmp_path: Path) -> None:
    study = mri_study(tmp_path / "data", series=FLAIR)
    one, two = (whole(tmp_path / str(n), study)[1].read_bytes() for n in range(2))
    assert one == two and one[4:8] == bytes(4)


def test_values_are_scaled_as_the_scan_says(tmp_path: Path) -> None:
    study = mri_study(tmp_path / "data", series=FLAIR)
    path = Path(study.images["FLAIR"])
    content = bytearray(gzip.decompress(path.read_bytes()))
    content[112:120] = np.array([0.25, -7.5], dtype="<f4").tobytes()
    path.write_bytes(gzip.compress(bytes(content)))
    _, out = whole(tmp_path, study)
    expected = series_values("FLAIR", 66) * 0.25 - 7.5
    assert np.array_equal(nib.load(out).get_fdata(), expected)
    assert np.array_equal(read_volume_picture(out).values, expected)
    assert np.asarray(nib.load(out).dataobj.get_unscaled()).dtype == np.dtype("<i2"), "kept as scanned"


@pytest.mark.parametrize("dtype", [">i2", np.uint8, np.float32, np.float64])
def test_other_types_of_voxels_stay_what_they_are(tmp_path: Path, dtype: str) -> None:
    study = mri_study(tmp_path / "data", series=FLAIR)
    image = nib.load(study.images["FLAIR"])
    values = (image.get_fdata() / 8).astype(dtype)
    nib.save(nib.Nifti1Image(values, image.affine), study.images["FLAIR"])
    picture, out = whole(tmp_path, study)
    assert nib.load(out).get_data_dtype() == np.dtype(dtype).newbyteorder("<")
    assert np.array_equal(nib.load(out).get_fdata(), values[::-1, ::-1])
    assert volume_hash(out) == picture.pixels


def test_a_series_of_several_volumes_gives_its_first(tmp_path: Path) -> None:
    study = mri_study(tmp_path / "data", series=("DTI_eddy_noreg",))
    picture, out = whole(tmp_path, study, series="DTI_eddy_noreg")
    assert np.array_equal(nib.load(out).get_fdata(), series_values("DTI_eddy_noreg", 66))
    assert picture.scaling == "as scanned, volume 1 of 2"


# -- the hash --------------------------------------------------------------------------------------------------------


def test_the_hash_is_that_of_the_content_however_it_is_compressed(tmp_path: Path) -> None:
    picture, path = whole(tmp_path, mri_study(tmp_path / "data", series=FLAIR))
    assert volume_hash(path) == picture.pixels
    path.write_bytes(gzip.compress(gzip.decompress(path.read_bytes()), 9))
    assert volume_hash(path) == picture.pixels


def base() -> VolumePicture:
    stored = np.arange(24, dtype="<i2").reshape(2, 3, 4)
    return VolumePicture(stored, np.diag([1.0, 1, 1, 1]), 0.5, 2.0)


def test_everything_that_makes_a_volume_is_in_its_hash(tmp_path: Path) -> None:
    one = base()
    voxel, moved = one.stored.copy(), one.affine.copy()
    voxel[1, 2, 3] += 1
    moved[0, 3] = 1e-3
    others = [
        VolumePicture(voxel, one.affine, 0.5, 2.0),
        VolumePicture(one.stored, moved, 0.5, 2.0),
        VolumePicture(one.stored, one.affine, 0.25, 2.0),
        VolumePicture(one.stored, one.affine, 0.5, 2.5),
        VolumePicture(one.stored.astype("<i4"), one.affine, 0.5, 2.0),
        VolumePicture(one.stored.reshape(3, 2, 4), one.affine, 0.5, 2.0),
        VolumePicture(one.stored[::-1], one.affine, 0.5, 2.0),
    ]
    hashes = {each.pixels for each in [one, *others]}
    assert len(hashes) == 8
    for number, each in enumerate([one, *others]):
        write_volume(each, tmp_path / f"{number}.nii.gz")
        assert volume_hash(tmp_path / f"{number}.nii.gz") == each.pixels


def test_the_hash_is_worked_out_as_it_is_written_down() -> None:
    import hashlib

    one = base()
    numbers = np.array([1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0.5, 2.0], dtype="<f4").tobytes()
    expected = hashlib.sha256(b"volume:<i2:2x3x4:" + numbers + one.stored.tobytes(order="F")).hexdigest()
    assert one.pixels == expected == digest("<i2", (2, 3, 4), one.affine_rows, 0.5, 2.0, one.stored.tobytes(order="F"))


def test_a_file_that_is_not_the_one_that_was_rendered_is_refused(tmp_path: Path) -> None:
    write_volume(base(), tmp_path / "a.nii.gz")
    assert read_volume_picture(tmp_path / "a.nii.gz", base().pixels).stored.shape == (2, 3, 4)
    with pytest.raises(BadInput, match=r"a\.nii\.gz: its content has changed"):
        read_volume_picture(tmp_path / "a.nii.gz", "0" * 64)
    with pytest.raises(BadInput, match=r"b\.nii\.gz: no such file"):
        read_volume_picture(tmp_path / "b.nii.gz")
    for name, content in {"c": b"page", "d": (tmp_path / "a.nii.gz").read_bytes()[:-30], "e": b""}.items():
        (tmp_path / f"{name}.nii.gz").write_bytes(content)
        with pytest.raises(BadInput, match=rf"{name}\.nii\.gz: not readable as a volume"):
            read_volume_picture(tmp_path / f"{name}.nii.gz")
    nib.save(nib.Nifti1Image(np.ones((2, 3, 4), np.int16), np.diag([-1.0, 1, 1, 1])), tmp_path / "f.nii.gz")
    with pytest.raises(BadInput, match=r"f\.nii\.gz: 3-D, LAS; a picture is 3-D with axes RAS"):
        read_volume_picture(tmp_path / "f.nii.gz")


# -- a stack of slices -----------------------------------------------------------------------------------------------


def stack(folder: Path, study: Study, **fields: object) -> tuple[list[Picture], np.ndarray]:
    """The pictures, and their pixels as (slice, row, column)."""
    pictures = rendered(study, folder, **fields)
    return pictures, np.stack([np.asarray(Image.open(folder / "d" / picture.path)) for picture in pictures])


@pytest.mark.parametrize("axes", ["RAS", "LPS", "SPR", "LAI"])
def test_a_stack_runs_from_the_feet_to_the_head_and_each_slice_is_named(tmp_path: Path, axes: str) -> None:
    """All 20 slices of the scan, of which the greys are worked out here."""
    study = mri_study(tmp_path / "data", series=FLAIR, axes=axes)
    pictures, pixels = stack(tmp_path, study, slices=85)
    assert [picture.name for picture in pictures] == [f"SLICE {n}" for n in range(1, 21)]
    assert [picture.position_mm for picture in pictures] == [ORIGIN[2] + n for n in range(20)]
    assert {picture.caption for picture in pictures} == {"after"}
    assert {picture.chosen_by for picture in pictures} == {"evenly spaced through the whole volume"}
    values = series_values("FLAIR", 66).astype(float)
    high = np.percentile(values[inside()], 99.5)
    expected = np.rint(np.clip(values / high, 0, 1) * 255)[::-1, ::-1].transpose(
        2, 1, 0
    )  # rows front to back, right first
    assert np.array_equal(pixels, expected)


def test_a_volume_of_155_slices_gives_85_and_the_last_is_among_them() -> None:
    """By the formula of MedGemma's example, worked out for the ends and two places between."""
    places = evenly(155, 85)
    assert len(places) == len(set(places)) == 85
    assert (places[0], places[1], places[41], places[-1]) == (2, 4, 76, 154)  # 1.81, 3.62, 76.09, 154
    assert set(np.diff(places)) == {1, 2}


def test_a_few_of_ten_slices_by_hand() -> None:
    assert evenly(10, 4) == [2, 4, 7, 9]  # 2.25, 4.5 (to even), 6.75, 9
    assert evenly(4, 4) == evenly(4, 9) == [0, 1, 2, 3]


@given(st.integers(1, 400), st.integers(2, 100))
def test_places_rise_and_are_never_more_than_asked_for(many: int, most: int) -> None:
    places = evenly(many, most)
    assert len(places) == min(many, most)
    assert all(two > one for one, two in itertools.pairwise(places))
    assert places[0] >= 0 and places[-1] == many - 1


def test_all_slices_of_a_stack_share_one_window(tmp_path: Path) -> None:
    """A voxel of 500 has one grey in every slice, however bright the slice is."""
    study = mri_study(tmp_path / "data", series=FLAIR)
    image = nib.load(study.images["FLAIR"])
    values = np.asarray(image.dataobj) * np.linspace(0.2, 2, 20).astype(np.float32)
    values[16, 15, 2:18] = 500
    nib.save(nib.Nifti1Image(values.astype(np.int16), image.affine), study.images["FLAIR"])
    pictures, pixels = stack(tmp_path, study, slices=20)
    assert len(set(pixels[2:18, 15, 16].tolist())) == 1
    assert len({picture.scaling for picture in pictures}) == 1
    assert pictures[0].scaling is not None and "percentile of the brain in all slices" in pictures[0].scaling


def test_a_stack_through_the_brain_begins_and_ends_with_it(tmp_path: Path) -> None:
    held = np.flatnonzero(inside().any(axis=(0, 1)))
    pictures, pixels = stack(tmp_path, mri_study(tmp_path / "data", series=FLAIR), slices=85, extent="brain")
    assert [picture.slice_index for picture in pictures] == list(range(held[0], held[-1] + 1))
    assert len(pictures) < 20 and pixels.any(axis=(1, 2)).all()
    assert {picture.chosen_by for picture in pictures} == {"evenly spaced through the brain"}
    some = rendered(mri_study(tmp_path / "more", series=FLAIR), tmp_path / "2", slices=4, extent="brain")
    assert [picture.slice_index for picture in some] == [held[place] for place in evenly(len(held), 4)]


def test_a_window_of_the_config_is_used_and_needs_slices(tmp_path: Path) -> None:
    study = mri_study(tmp_path / "data", series=FLAIR)
    _, pixels = stack(tmp_path, study, slices=20, window=(0, 510))
    values = series_values("FLAIR", 66)
    expected = np.rint(np.clip(values / 510, 0, 1) * 255)[::-1, ::-1].transpose(2, 1, 0)
    assert np.array_equal(pixels, expected)
    with pytest.raises(ValidationError, match="'window' needs 'slices'"):
        VolumeView(kind="volume", window=(0, 510))


def test_a_stack_without_a_brain_mask_takes_what_is_not_0(tmp_path: Path) -> None:
    study = mri_study(tmp_path / "data", series=FLAIR)
    bare = study.model_copy(update={"images": {"FLAIR": study.images["FLAIR"]}})
    one, two = (stack(tmp_path / str(n), each, slices=9, extent="brain")[1] for n, each in enumerate([study, bare]))
    assert np.array_equal(one, two)


def test_a_mask_of_another_grid_still_sets_the_window(tmp_path: Path) -> None:
    """The mask lies on slices 6 to 9 only, and twice as coarse: the window is that of those slices' brain."""
    study = mri_study(tmp_path / "data", series=FLAIR)
    image = nib.load(study.images["brain_segmentation"])
    coarse = np.asarray(image.dataobj)[::2, ::2, 6:10]
    affine = image.affine @ np.diag([2.0, 2, 1, 1])
    affine[:3, 3] += image.affine[:3, 2] * 6
    nib.save(nib.Nifti1Image(coarse, affine), study.images["brain_segmentation"])
    pictures, _ = stack(tmp_path, study, slices=20, extent="brain")
    assert [picture.slice_index for picture in pictures] == [6, 7, 8, 9]


def test_what_can_t_be_a_volume_is_refused_by_name(tmp_path: Path) -> None:
    study = mri_study(tmp_path / "data", series=FLAIR)
    with pytest.raises(BadFile, match=r"^T2: missing: the study has no such series"):
        rendered(study, tmp_path, series="T2")
    with pytest.raises(BadFile, match=r"^A_brain_segmentation\.nii\.gz: no contrast in 5 axial slices"):
        rendered(study, tmp_path, series="brain_segmentation", slices=5)
