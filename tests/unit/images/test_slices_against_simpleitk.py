"""Slice choice, orientation and resampling by an independent road: SimpleITK writes the files, chooses and resamples.

ITK thinks in LPS, its arrays in reversed order, and it knows nothing of nibabel or of this project's layouts. Its
picture of an axial slice of an image in LPS order is `array[k]`: rows run to the back, columns to the patient's left.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import SimpleITK as sitk  # noqa: N813

from overread.core.records import Study
from overread.images import render_study
from overread.images.files import StudyFiles
from overread.views.slice.section import SliceView

CENTRE = np.array([-4.0, 12.0, 30.0])
"""LPS, mm: the middle of every grid."""


def direction(codes: str, tilt: float) -> np.ndarray:
    """Columns: where the array axes point to in LPS, turned by `tilt` degrees about each of the patient's axes."""
    point = {"L": (1, 0, 0), "R": (-1, 0, 0), "P": (0, 1, 0), "A": (0, -1, 0), "S": (0, 0, 1), "I": (0, 0, -1)}
    matrix = np.array([point[code] for code in codes], dtype=float).T
    turned = sitk.Euler3DTransform((0, 0, 0), *np.deg2rad([tilt, tilt, tilt]))
    return np.array(turned.GetMatrix()).reshape(3, 3) @ matrix


def image(
    values: object, size: tuple[int, int, int], codes: str, spacing: tuple[float, float, float], tilt: float = 0.0
) -> sitk.Image:
    """An image whose voxels are `values(x, y, z)` of their place in LPS, mm from CENTRE."""
    one = sitk.Image(*size, sitk.sitkFloat32)
    axes = direction(codes, tilt)
    one.SetSpacing(spacing)
    one.SetDirection(axes.ravel().tolist())
    one.SetOrigin((CENTRE - axes @ (np.array(spacing) * (np.array(size) - 1) / 2)).tolist())
    places = sitk.PhysicalPointSource(sitk.sitkVectorFloat64, size, one.GetOrigin(), spacing, one.GetDirection())
    x, y, z = np.moveaxis(sitk.GetArrayFromImage(places) - CENTRE, -1, 0)
    filled = sitk.GetImageFromArray(np.asarray(values(x, y, z), dtype=np.float32))  # type: ignore[operator]
    filled.CopyInformation(one)
    return filled


def brightness(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Differs on every side: brighter to the left, the back and the top, with a ripple."""
    return 500 + 4 * x + 2 * y + 3 * z + 30 * np.sin(x / 5) * np.cos(y / 7) + 20 * np.sin(z / 4)


def brain(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
    return (x / 24) ** 2 + (y / 26) ** 2 + (z / 20) ** 2 < 1


def tumour(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Oedema, on one side a core and something that enhances: off the middle in every direction."""
    labels = np.where((x - 6) ** 2 + ((y + 5) / 1.2) ** 2 + ((z - 4) / 0.8) ** 2 < 81, 2.0, 0.0)
    labels[(x - 8) ** 2 + (y + 4) ** 2 + (z - 6) ** 2 < 20] = 4
    labels[(x - 8) ** 2 + (y + 4) ** 2 + (z - 6) ** 2 < 6] = 1
    return labels


GRIDS = [("LPS", 0.0), ("RAS", 0.0), ("PIR", 0.0), ("LPS", 9.0), ("RAS", -11.0), ("SLA", 7.0)]


def written(folder: Path, codes: str, tilt: float) -> Study:
    """The masks on one grid; FLAIR on it, T1 in RAS at another spacing, a 4-D series in LAS at a third, askew."""
    own = ((58, 64, 50), codes, (1.0, 1.0, 1.0), tilt)
    made = {
        "brain_segmentation": sitk.Cast(image(brain, *own), sitk.sitkUInt8),
        "tumor_segmentation": sitk.Cast(image(tumour, *own), sitk.sitkUInt8),
        "FLAIR": image(brightness, *own),
        "T1": image(brightness, (70, 72, 40), "RAS", (0.8, 0.9, 1.3), 0.0),
    }
    first = image(brightness, (66, 60, 22), "LAS", (0.94, 0.94, 3.0), 4.0)
    other = sitk.Cast(sitk.ShiftScale(first, -200.0, 0.3), sitk.sitkFloat32)
    made["DTI_eddy_noreg"] = sitk.JoinSeries([first, other, other])
    folder.mkdir(parents=True, exist_ok=True)
    paths = {name: str(folder / f"{name}.nii.gz") for name in made}
    for name, one in made.items():
        sitk.WriteImage(one, paths[name])
    return Study(
        study="A", patient="p", dataset="d", modality="mri", images=paths, report={}, labels={}, restricted=False
    )


def read(study: Study, series: str) -> sitk.Image:
    one = sitk.ReadImage(study.images[series])
    return one[:, :, :, 0] if one.GetDimension() == 4 else one


AXIS = {"axial": 0, "coronal": 1, "sagittal": 2}
"""Of an ITK array in LPS order: slices, rows, columns."""


def chosen(mask: sitk.Image, plane: str, label: int | None = None) -> int:
    """The slice with the most voxels; of several the middle one."""
    labels = sitk.GetArrayFromImage(mask)
    counts = (labels == label if label else labels > 0).sum(axis=tuple(a for a in range(3) if a != AXIS[plane]))
    best = np.flatnonzero(counts == counts.max())
    return int(best[(len(best) - 1) // 2])


def picture(volume: np.ndarray, plane: str, index: int) -> np.ndarray:
    """Of an array in LPS order: right of the patient on the left, front on top or on the left, head on top."""
    cut = np.take(volume, index, axis=AXIS[plane])
    return cut if plane == "axial" else cut[::-1]


@pytest.mark.parametrize("plane", ["axial", "coronal", "sagittal"])
@pytest.mark.parametrize(("codes", "tilt"), GRIDS)
def test_every_series_is_shown_as_itk_resamples_it_to_the_masks_grid(
    tmp_path: Path, codes: str, tilt: float, plane: str
) -> None:
    study = written(tmp_path, codes, tilt)
    files = StudyFiles(study)
    level = files.level(plane, "largest-tumour", "FLAIR")
    mask = sitk.DICOMOrient(read(study, "tumor_segmentation"), "LPS")
    index = chosen(mask, plane)
    centre = [(n - 1) / 2 for n in mask.GetSize()]
    centre[2 - AXIS[plane]] = index
    point = mask.TransformContinuousIndexToPhysicalPoint(centre)
    assert level.position_mm == pytest.approx(point[2 - AXIS[plane]], abs=2e-3)
    for series in ("FLAIR", "T1", "DTI_eddy_noreg"):
        there = sitk.Resample(read(study, series), mask, sitk.Transform(), sitk.sitkLinear, -1e6, sitk.sitkFloat64)
        expected = picture(sitk.GetArrayFromImage(there), plane, index)
        ours = files.cut(series, level)
        assert ours.shape == expected.shape
        both = np.isfinite(ours) & (expected > -1e5)
        assert both.sum() >= 0.98 * np.isfinite(ours).sum()  # at the very edge the two may differ
        assert both.sum() >= 0.98 * (expected > -1e5).sum()
        assert both.mean() > 0.5
        assert np.abs(ours - expected)[both].max() < 0.05
    labels = picture(sitk.GetArrayFromImage(mask), plane, index)
    assert np.array_equal(files.cut("tumor_segmentation", level), labels)


@pytest.mark.parametrize("plane", ["axial", "coronal", "sagittal"])
@pytest.mark.parametrize("label", [1, 2, 4])
def test_the_slice_with_the_most_of_a_label_is_the_one_that_itk_counts(tmp_path: Path, label: int, plane: str) -> None:
    study = written(tmp_path, "RAS", 8.0)
    level = StudyFiles(study).level(plane, f"largest-label-{label}", "FLAIR")
    mask = sitk.DICOMOrient(read(study, "tumor_segmentation"), "LPS")
    centre = [(n - 1) / 2 for n in mask.GetSize()]
    centre[2 - AXIS[plane]] = chosen(mask, plane, label)
    point = mask.TransformContinuousIndexToPhysicalPoint(centre)
    assert level.position_mm == pytest.approx(point[2 - AXIS[plane]], abs=2e-3)
    assert level.chosen_by == f"most voxels of label {label}"


def test_the_pictures_written_are_those_slices_in_grey(tmp_path: Path) -> None:
    """To the end of the road: the PNG of an oblique study, from ITK's resampling and its own percentiles."""
    study = written(tmp_path / "data", "RAS", -11.0)
    views = {plane: SliceView(series=("T1", "FLAIR"), plane=plane) for plane in AXIS}
    pictures = render_study(study, views, tmp_path / "d" / "images" / "A")
    mask = sitk.DICOMOrient(read(study, "tumor_segmentation"), "LPS")
    inside = sitk.GetArrayFromImage(sitk.DICOMOrient(read(study, "brain_segmentation"), "LPS")) > 0
    assert len(pictures) == 6
    for one in pictures:
        there = sitk.Resample(read(study, one.series), mask, sitk.Transform(), sitk.sitkLinear, 0.0, sitk.sitkFloat64)
        index = chosen(mask, one.plane)
        values = picture(sitk.GetArrayFromImage(there), one.plane, index)
        white = np.percentile(values[picture(inside, one.plane, index)], 99.5)
        png = sitk.GetArrayFromImage(sitk.ReadImage(str(tmp_path / "d" / one.path)))
        brain_pixels = picture(inside, one.plane, index)
        assert np.abs(png - np.clip(values / white, 0, 1) * 255)[brain_pixels].max() <= 1.01
        assert one.orientation.endswith("degrees oblique")
