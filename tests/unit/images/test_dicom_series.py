"""A DICOM series as a volume: every voxel at its place in the patient, or a reason why not."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pydicom
import pytest
import SimpleITK
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydicom.data import get_testdata_file

from data.dicom_files import new_dataset, write_frames, write_radiograph, write_slices
from overread.core.records import Study
from overread.images.dicom_series import is_series, read_series, series_of
from overread.images.files import StudyFiles
from overread.images.header import BadFile

VOXELS = np.arange(6 * 5 * 4).reshape(6, 5, 4) + 1


def turned(degrees: float) -> np.ndarray:
    """Axes of a grid that is tilted about two of the patient's axes."""
    a, b = np.radians(degrees), np.radians(degrees / 2)
    about_x = np.array([[1, 0, 0], [0, np.cos(a), -np.sin(a)], [0, np.sin(a), np.cos(a)]])
    about_z = np.array([[np.cos(b), -np.sin(b), 0], [np.sin(b), np.cos(b), 0], [0, 0, 1]])
    return (about_x @ about_z).T


AXES = {
    "axial": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "coronal": ((1, 0, 0), (0, 0, -1), (0, 1, 0)),
    "sagittal": ((0, 1, 0), (0, 0, -1), (-1, 0, 0)),
    "oblique": tuple(map(tuple, turned(25))),
}


def world(axes: Any, origin: Any, spacing: Any, index: Any) -> np.ndarray:
    """RAS+ position of a voxel, by hand from the definition: LPS is turned around in its first two coordinates."""
    lps = np.asarray(origin, float)
    for axis, step, number in zip(axes, spacing, index, strict=True):
        lps = lps + np.asarray(axis, float) * step * number
    return lps * [-1, -1, 1]


@pytest.mark.parametrize("plane", sorted(AXES))
def test_every_voxel_lies_where_its_slice_says(tmp_path: Path, plane: str) -> None:
    """And SimpleITK, told the order of the files, places the volume the same."""
    axes, origin, spacing = AXES[plane], (10, -20, 30), (2, 3, 4)
    folder = write_slices(tmp_path / "s", VOXELS, axes=axes, origin=origin, spacing=spacing, order=[2, 0, 3, 1])
    volume = read_series(folder)
    assert (volume.slope, volume.intercept, volume.of, volume.path) == (1.0, 0.0, 1, folder)
    values = {}
    for index in np.ndindex(volume.shape):
        place = volume.affine @ [*index, 1]
        values[tuple(np.round(place[:3], 6))] = int(volume.stored[index])
    for index in np.ndindex(VOXELS.shape):
        assert values[tuple(np.round(world(axes, origin, spacing, index), 6))] == VOXELS[index]
    image = SimpleITK.ReadImage([str(one.path) for one in series_of(folder).planes])
    for index in ((0, 0, 0), (5, 4, 3), (1, 2, 3)):
        point = np.asarray(image.TransformContinuousIndexToPhysicalPoint([float(one) for one in index]))
        assert np.allclose(point * [-1, -1, 1], (volume.affine @ [*index, 1])[:3], atol=1e-5)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=20)
@given(st.permutations(range(5)), st.randoms(use_true_random=False))
def test_neither_names_nor_numbers_of_the_files_matter(tmp_path: Path, order: list[int], chance: Any) -> None:
    values = np.arange(4 * 4 * 5).reshape(4, 4, 5)
    folder = tmp_path / "-".join(map(str, order)) / str(chance.random())
    volume = read_series(write_slices(folder, values, order=order))
    assert np.array_equal(volume.stored, values)
    assert np.array_equal(volume.affine, np.diag([-1.0, -1, 1, 1]))


def test_each_slice_has_its_own_rescale(tmp_path: Path) -> None:
    """The first slope is whole: a reader that takes its type from there would cut the halves off."""
    rescales = [("1", "0"), ("1.5", "0"), ("0.25", "-3"), ("2", "10")]
    each = [{"RescaleSlope": slope, "RescaleIntercept": intercept} for slope, intercept in rescales]
    volume = read_series(write_slices(tmp_path / "s", VOXELS, each=each))
    for index, (slope, intercept) in enumerate(rescales):
        expected = VOXELS[:, :, index] * float(slope) + float(intercept)
        assert np.allclose(volume.part((slice(None), slice(None), index)), expected)


def test_a_missing_rescale_is_1_and_0_and_whole_numbers_stay_whole(tmp_path: Path) -> None:
    signed = VOXELS - 60
    volume = read_series(write_slices(tmp_path / "s", signed))
    assert volume.stored.dtype == np.int16 and np.array_equal(volume.stored, signed)
    assert not series_of(tmp_path / "s").has_rescale


def test_a_real_slice_keeps_its_values() -> None:
    """pydicom's MR_small as two slices, one compressed in a way that pydicom does not decode here."""
    plain = pydicom.dcmread(str(get_testdata_file("MR_small.dcm"))).pixel_array
    folder = Path(str(get_testdata_file("MR_small.dcm"))).parent
    packed = SimpleITK.GetArrayFromImage(SimpleITK.ReadImage(str(folder / "MR_small_jpeg_ls_lossless.dcm")))[0]
    assert np.array_equal(plain, packed)


# -- what is no volume -----------------------------------------------------------------------------------------------


def refused(path: Path, reason: str) -> None:
    with pytest.raises(BadFile, match=reason) as caught:
        read_series(path)
    assert "\n" not in str(caught.value) and path.name in str(caught.value)


def test_a_gap_is_a_missing_slice(tmp_path: Path) -> None:
    folder = write_slices(tmp_path / "s", VOXELS, spacing=(1, 1, 3))
    (folder / "0001.dcm").unlink()
    refused(folder, r"a gap of 6 mm between 0000\.dcm and 0002\.dcm, and 3 mm elsewhere")


def test_uneven_slices_are_refused_and_rounded_positions_are_not(tmp_path: Path) -> None:
    def places(*heights: float) -> list[dict[str, Any]]:
        return [{"ImagePositionPatient": [0, 0, height]} for height in heights]

    refused(write_slices(tmp_path / "uneven", VOXELS, each=places(0, 3, 6, 9.2)), "not equally far apart")
    rounded = read_series(write_slices(tmp_path / "rounded", VOXELS, each=places(0, 3.333, 6.667, 10)))
    assert rounded.affine[2, 2] == pytest.approx(10 / 3)


def test_two_slices_at_one_place_and_several_volumes_are_told_apart(tmp_path: Path) -> None:
    folder = write_slices(tmp_path / "twice", VOXELS)
    new = new_dataset(VOXELS[:, :, 1].T, "1.2.840.10008.5.1.4.1.1.4", 77)
    new.ImagePositionPatient, new.ImageOrientationPatient, new.PixelSpacing = [0, 0, 1], [1, 0, 0, 0, 1, 0], [1, 1]
    new.save_as(folder / "again.dcm", enforce_file_format=True)
    refused(folder, r"two slices at one place: 0001\.dcm and again\.dcm")
    heights = [{"ImagePositionPatient": [0, 0, number // 3]} for number in range(12)]
    four_d = write_slices(tmp_path / "four", np.arange(4 * 4 * 12).reshape(4, 4, 12), each=heights)
    refused(four_d, "3 slices at each of 4 places: expected a 3-D series, found 4-D")


def test_a_copy_of_a_file_is_told_as_one(tmp_path: Path) -> None:
    folder = write_slices(tmp_path / "s", VOXELS)
    (folder / "copy.dcm").write_bytes((folder / "0002.dcm").read_bytes())
    refused(folder, r"the same image twice \(SOP Instance UID ")


def test_mixed_orientations_are_refused(tmp_path: Path) -> None:
    """A localizer of three planes, and a series with one slice a little askew."""
    for name, orientation in (("local", [1, 0, 0, 0, 0, -1]), ("askew", [1, 0, 0, 0, np.cos(0.05), np.sin(0.05)])):
        each = [{}, {}, {"ImageOrientationPatient": [float(one) for one in orientation]}, {}]
        refused(write_slices(tmp_path / name, VOXELS, each=each), "mixed orientations: .* are not parallel")


def test_slices_that_are_shifted_sideways_are_refused(tmp_path: Path) -> None:
    tilted = [{"ImagePositionPatient": [0, 0.3 * number, number]} for number in range(4)]
    refused(write_slices(tmp_path / "tilted", VOXELS, each=tilted), "shifted sideways")
    one_off = [{"ImagePositionPatient": [0, 0.3 if number == 2 else 0, number]} for number in range(4)]
    refused(write_slices(tmp_path / "off", VOXELS, each=one_off), "shifted sideways")


def test_two_series_in_a_folder_are_named(tmp_path: Path) -> None:
    folder = write_slices(tmp_path / "s", VOXELS)
    for path in write_slices(tmp_path / "t", VOXELS[:, :, :2], series=2).iterdir():
        path.rename(folder / f"other-{path.name}")
    refused(folder, r"2 series in one folder: series 1 \(4 files\), series 2 \(2 files\); give each a folder")


@pytest.mark.parametrize(
    ("each", "reason"),
    [
        ({"PixelSpacing": [1.0, 2.0]}, "slices of different pixel spacing"),
        ({"PixelRepresentation": 1}, "slices stored in different ways"),
        ({"PixelSpacing": [0.0, 1.0]}, "a pixel spacing of 0 x 1 mm"),
        ({"ImageOrientationPatient": [1, 0, 0, 1, 0, 0]}, "an orientation that is none"),
        ({"ImageOrientationPatient": [2, 0, 0, 0, 1, 0]}, "an orientation that is none"),
        ({"ImageOrientationPatient": [0, 0, 0, 0, 0, 0]}, "an orientation that is none"),
        ({"ImagePositionPatient": None}, "no ImagePositionPatient: nothing says where the slice lies"),
        ({"ImageOrientationPatient": None}, "no ImageOrientationPatient"),
        ({"PixelSpacing": None}, "no PixelSpacing"),
        ({"PhotometricInterpretation": "MONOCHROME1"}, "a series of slices is MONOCHROME2"),
        ({"PhotometricInterpretation": "RGB"}, "a series of slices is MONOCHROME2"),
        ({"Rows": 60000, "Columns": 60000}, "60000 x 60000 pixels in 1 frames can't be an image"),
        ({"NumberOfFrames": "3"}, "and nothing says where each of them lies|has several frames"),
    ],
)
def test_a_slice_that_does_not_fit_is_named_with_the_reason(tmp_path: Path, each: dict[str, Any], reason: str) -> None:
    folder = write_slices(tmp_path / "s", VOXELS, each=[{}, {}, each, {}])
    with pytest.raises(BadFile, match=reason) as caught:
        read_series(folder)
    assert "\n" not in str(caught.value)


def test_slices_of_different_sizes_are_refused(tmp_path: Path) -> None:
    folder = write_slices(tmp_path / "s", VOXELS)
    other = write_slices(tmp_path / "t", VOXELS[:5], order=[10, 11, 12, 13])
    (other / "0012.dcm").rename(folder / "0002.dcm")
    refused(folder, r"slices of different sizes: 0000\.dcm 6x5, 0002\.dcm 5x5")


def test_files_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    refused(tmp_path / "empty", "no DICOM file in the folder")
    (tmp_path / "empty" / "DICOMDIR").write_bytes(bytes(128) + b"DICM" + bytes(100))
    (tmp_path / "empty" / "notes.txt").write_text("x" * 500)
    refused(tmp_path / "empty", "no DICOM file in the folder")
    report = tmp_path / "report"
    report.mkdir()
    (report / "a").write_bytes(Path(str(get_testdata_file("rtplan.dcm"))).read_bytes())
    refused(report, "no image in the DICOM files")
    single = write_slices(tmp_path / "single", VOXELS[:, :, :1])
    refused(single, "a single slice is no volume")
    refused(write_slices(tmp_path / "flat", np.full((6, 5, 4), 7)), "all voxels are equal to 7")
    zero = write_slices(tmp_path / "zero", np.zeros((6, 5, 4), dtype=int))
    refused(zero, "all voxels are zero")
    assert read_series(zero, may_be_empty=True).shape == (6, 5, 4)


def test_objects_without_an_image_beside_the_slices_are_passed_over(tmp_path: Path) -> None:
    folder = write_slices(tmp_path / "s", VOXELS)
    (folder / "plan").write_bytes(Path(str(get_testdata_file("rtplan.dcm"))).read_bytes())
    (folder / "DICOMDIR").write_bytes(b"x")
    assert np.array_equal(read_series(folder).stored, VOXELS)


@pytest.mark.parametrize("cut", [10, 50, 400])
def test_a_truncated_slice_is_refused(tmp_path: Path, cut: int) -> None:
    folder = write_slices(tmp_path / "s", np.arange(40 * 40 * 4).reshape(40, 40, 4))
    path = folder / "0002.dcm"
    path.write_bytes(path.read_bytes()[:-cut])
    refused(folder, "damaged or unreadable DICOM|an image, or a truncated one")


def test_a_file_with_any_byte_changed_gives_a_volume_or_a_reason(tmp_path: Path) -> None:
    folder = write_slices(tmp_path / "s", VOXELS)
    path = folder / "0001.dcm"
    whole = path.read_bytes()
    chance = np.random.default_rng(3)
    reasons = 0
    for _ in range(150):
        content = bytearray(whole)
        for place in chance.integers(0, len(content), size=4):
            content[place] = chance.integers(0, 256)
        path.write_bytes(bytes(content))
        try:
            assert read_series(folder).stored.ndim == 3
        except BadFile:
            reasons += 1
    assert 0 < reasons < 150


# -- multi-frame files -----------------------------------------------------------------------------------------------


def test_frames_are_placed_by_their_own_positions(tmp_path: Path) -> None:
    """Stored in the order 2, 0, 3, 1 mm. A reader that takes frames as they come would mix them up."""
    frames = np.arange(4 * 5 * 6).reshape(4, 5, 6)
    path = write_frames(tmp_path / "e.dcm", frames, [(5, 6, height) for height in (2, 0, 3, 1)])
    volume = read_series(path)
    assert np.array_equal(volume.stored.transpose(2, 1, 0), frames[[1, 3, 0, 2]])
    assert np.array_equal(volume.affine, [[-1, 0, 0, -5], [0, -1, 0, -6], [0, 0, 1, 0], [0, 0, 0, 1]])


def test_frames_have_the_rescale_of_the_shared_group(tmp_path: Path) -> None:
    frames = np.arange(2 * 5 * 6).reshape(2, 5, 6)
    path = write_frames(tmp_path / "e.dcm", frames, [(0, 0, 0), (0, 0, 1)])
    dataset = pydicom.dcmread(path)
    rescale = pydicom.Dataset()
    rescale.RescaleSlope, rescale.RescaleIntercept = "0.5", "-4"
    dataset.SharedFunctionalGroupsSequence[0].PixelValueTransformationSequence = [rescale]
    dataset.save_as(path)
    volume = read_series(path)
    assert np.allclose(volume.part((slice(None),) * 3).transpose(2, 1, 0), frames * 0.5 - 4)


def test_frames_without_places_or_too_few_are_refused(tmp_path: Path) -> None:
    frames = np.arange(3 * 5 * 6).reshape(3, 5, 6)
    path = write_frames(tmp_path / "few.dcm", frames, [(0, 0, 0), (0, 0, 1)])
    refused(path, "3 frames, and places for 2")
    path = write_frames(tmp_path / "gap.dcm", frames, [(0, 0, 0), (0, 0, 1), (0, 0, 3)])
    refused(path, r"a gap of|not equally far apart")
    new_dataset(frames, "1.2.840.10008.5.1.4.1.1.4").save_as(tmp_path / "none.dcm", enforce_file_format=True)
    refused(tmp_path / "none.dcm", "3 frames, and nothing says where each of them lies")


# -- where a series is read ------------------------------------------------------------------------------------------


def test_what_is_a_series_is_told_by_the_folder_or_the_first_bytes(tmp_path: Path) -> None:
    folder = write_slices(tmp_path / "s", VOXELS)
    assert is_series(folder) and is_series(folder / "0000.dcm")
    (folder / "0000.dcm").rename(tmp_path / "IM1")
    assert is_series(tmp_path / "IM1")
    (tmp_path / "a.nii").write_bytes(b"x")
    assert not is_series(tmp_path / "a.nii") and not is_series(tmp_path / "absent.dcm")
    assert not is_series(write_radiograph(tmp_path / "x.nii.gz", VOXELS[:, :, 0]))


def test_the_files_of_a_study_may_be_series_of_dicom(tmp_path: Path) -> None:
    folder = write_slices(tmp_path / "FLAIR", VOXELS)
    study = Study(
        study="a", patient="p", dataset="d", modality="mri", images={"FLAIR": str(folder), "T1": str(tmp_path / "T1")},
        report={}, labels={}, restricted=True,
    )  # fmt: skip
    files = StudyFiles(study)
    assert np.array_equal(files.volume("FLAIR").stored, VOXELS)
    assert files.volume("FLAIR") is files.volume("FLAIR")
    with pytest.raises(BadFile, match="missing"):
        files.volume("T1")


def test_numbers_of_slices_and_of_series_are_their_own(tmp_path: Path) -> None:
    """The maker of these files: two slices never share an instance UID, or the tests above would test nothing."""
    folder = write_slices(tmp_path / "s", VOXELS)
    uids = [str(pydicom.dcmread(path).SOPInstanceUID) for path in sorted(folder.iterdir())]
    assert all(one != two for one, two in itertools.pairwise(uids)) and len(set(uids)) == 4


def test_a_folder_of_more_files_than_a_series_has_is_refused_before_any_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from overread.images import dicom

    (tmp_path / "many").mkdir()
    for number in range(dicom.MOST_FILES + 50):
        (tmp_path / "many" / f"{number}.dcm").touch()
    monkeypatch.setattr(dicom, "is_dicom", lambda path: pytest.fail("opened"))
    with pytest.raises(BadFile, match=r"many: more than 4096 files in one folder are no series; give each series a"):
        series_of(tmp_path / "many")
