"""A DICOM series as a volume: a folder with a file a slice, or one multi-frame file.

Where a slice lies is taken from its own header and from nothing else: not from the file's name, its number or the next
slice. A series is a volume only if its slices are parallel, equally far apart and one above the other (PS3.3
C.7.6.2.1.1); what is not is refused with the reason. GDCM, in SimpleITK, decodes the slices of a folder, each with its
own rescale; most MRI has none, which stands for slope 1 and intercept 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from overread.images.dicom import dicom_files, explained, is_dicom, read_dicom, rescale_of, size_of, stored_values
from overread.images.header import MAX_VOXELS, BadFile, FloatArray
from overread.images.volume import Volume

MOST_UNEVEN = 0.01
"""Of the spacing: what positions written with few decimals can do, and no missing slice."""

MOST_TILT = 0.02
"""Sideways shift of the slices as a share of their distance: 1.1 degrees."""

SAME_DIRECTION = 1e-3

LPS_TO_RAS = np.diag([-1.0, -1.0, 1.0, 1.0])

TAGS = (
    "SOPInstanceUID", "SeriesInstanceUID", "SeriesDescription", "NumberOfFrames", "Rows", "Columns", "SamplesPerPixel",
    "PhotometricInterpretation", "BitsAllocated", "BitsStored", "PixelRepresentation", "RescaleSlope",
    "RescaleIntercept", "ImagePositionPatient", "ImageOrientationPatient", "PixelSpacing",
    "SharedFunctionalGroupsSequence", "PerFrameFunctionalGroupsSequence",
)  # fmt: skip


@dataclass(frozen=True)
class Plane:
    """One slice: where it lies, in LPS and mm, and how its stored values become values."""

    path: Path
    frame: int
    position: FloatArray  # (3,) of the centre of its first pixel
    along_row: FloatArray  # (3,) unit vector, the direction in which the column index grows
    along_column: FloatArray  # (3,)
    spacing: tuple[float, float]  # between rows, between columns
    size: tuple[int, int]  # rows, columns
    stored: tuple[int, int, int]  # bits allocated, bits stored, signed
    rescale: tuple[float, float] | None

    @property
    def name(self) -> str:
        return self.path.name if self.frame == 0 else f"{self.path.name}, frame {self.frame}"


@dataclass(frozen=True)
class Series:
    """The slices of a volume in their order in space, and its affine from voxel (column, row, slice) to RAS+ world."""

    planes: tuple[Plane, ...]
    affine: FloatArray

    @property
    def shape(self) -> tuple[int, int, int]:
        rows, columns = self.planes[0].size
        return columns, rows, len(self.planes)

    @property
    def has_rescale(self) -> bool:
        return any(plane.rescale is not None for plane in self.planes)


def is_series(path: Path) -> bool:
    """Whether a series' path is one of DICOM: a folder, or a file with DICOM's mark. A name of NIfTI is believed."""
    if path.is_dir():
        return True
    return not path.name.lower().endswith((".nii", ".nii.gz")) and path.is_file() and is_dicom(path)


def read_series(path: Path, *, may_be_empty: bool = False) -> Volume:
    """The volume of a folder of DICOM slices, or of a multi-frame DICOM file; values are those of the modality.

    may_be_empty  whether all voxels may be 0, as in the tumour mask of a brain without a tumour
    raises        BadFile: see `series_of`; or truncated, damaged, NaN or infinite, all equal
    """
    series = series_of(path)
    first = series.planes[0]
    values = _frames(first.path, series) if len({plane.path for plane in series.planes}) == 1 else _slices(path, series)
    low, high = float(values.min()), float(values.max())
    if not (np.isfinite(low) and np.isfinite(high)):
        raise BadFile(f"{path.name}: voxels that are not finite numbers")
    if low == high and not (may_be_empty and low == 0):
        raise BadFile(f"{path.name}: all voxels are {'zero' if low == 0 else f'equal to {low:g}'}")
    return Volume(path, values.transpose(2, 1, 0), series.affine, 1.0, 0.0)


def series_of(path: Path) -> Series:
    """The slices of a series, by their headers.

    raises  BadFile: no DICOM files, several series, slices of different sizes, without a position, not parallel, not
            one above the other, twice at one place, or with one missing between them
    """
    files = dicom_files(path) if path.is_dir() else [path]
    if not files:
        raise BadFile(f"{path.name}: no DICOM file in the folder")
    with explained(path):
        datasets = [(file, read_dicom(file, TAGS)) for file in files]
        images = [(file, dataset) for file, dataset in datasets if "Rows" in dataset]  # the others are no images
        if not images:
            raise BadFile(f"{path.name}: no image in the DICOM files")
        _one_series(path, [dataset for _, dataset in images])
        several = [file for file, dataset in images if int(dataset.get("NumberOfFrames") or 1) > 1]
        if several and len(images) > 1:
            raise BadFile(f"{path.name}: {several[0].name} has several frames, and there are other files")
        planes = [plane for file, dataset in images for plane in _planes(file, dataset)]
    return _in_space(path, planes)


def _one_series(path: Path, datasets: Sequence[Any]) -> None:
    found = Counter((str(one.get("SeriesInstanceUID")), str(one.get("SeriesDescription", ""))) for one in datasets)
    if len({uid for uid, _ in found}) > 1:
        names = ", ".join(f"{name or uid} ({count} files)" for (uid, name), count in sorted(found.items()))
        raise BadFile(f"{path.name}: {len(found)} series in one folder: {names}; give each a folder")
    twice = [uid for uid, count in Counter(str(one.get("SOPInstanceUID")) for one in datasets).items() if count > 1]
    if twice:
        raise BadFile(f"{path.name}: the same image twice (SOP Instance UID {twice[0]})")


# -- headers ---------------------------------------------------------------------------------------------------------


def _planes(path: Path, dataset: Any) -> list[Plane]:
    frames, rows, columns = size_of(path, dataset)
    shown = dataset.get("PhotometricInterpretation")
    if shown != "MONOCHROME2" or int(dataset.get("SamplesPerPixel") or 1) != 1:
        raise BadFile(f"{path.name}: photometric interpretation {shown}; a series of slices is MONOCHROME2")
    groups = dataset.get("PerFrameFunctionalGroupsSequence")
    if groups is None and frames > 1:
        raise BadFile(f"{path.name}: {frames} frames, and nothing says where each of them lies")
    if groups is not None and len(groups) != frames:
        raise BadFile(f"{path.name}: {frames} frames, and places for {len(groups)}")
    shared = (dataset.get("SharedFunctionalGroupsSequence") or [None])[0]
    found = []
    for number in range(frames):
        place = [dataset] if groups is None else [one for one in (groups[number], shared) if one is not None]
        found.append(_plane(path, number + 1 if frames > 1 else 0, place, (rows, columns), dataset))
    return found


def _plane(path: Path, frame: int, place: Sequence[Any], size: tuple[int, int], dataset: Any) -> Plane:
    position = _numbers(path, place, "PlanePositionSequence", "ImagePositionPatient", 3)
    orientation = _numbers(path, place, "PlaneOrientationSequence", "ImageOrientationPatient", 6)
    spacing = _numbers(path, place, "PixelMeasuresSequence", "PixelSpacing", 2)
    along_row, along_column = orientation[:3], orientation[3:]
    lengths = np.linalg.norm(along_row), np.linalg.norm(along_column)
    if not np.allclose(lengths, 1, atol=SAME_DIRECTION) or abs(along_row @ along_column) > SAME_DIRECTION:
        raise BadFile(f"{path.name}: an orientation that is none: {orientation.tolist()}")
    if not (spacing > 0).all():
        raise BadFile(f"{path.name}: a pixel spacing of {spacing[0]:g} x {spacing[1]:g} mm")
    rescaled = [one for one in (_item(each, "PixelValueTransformationSequence") for each in place) if one is not None]
    return Plane(
        path, frame, position, along_row, along_column, (float(spacing[0]), float(spacing[1])), size,
        (int(dataset.BitsAllocated), int(dataset.BitsStored), int(dataset.PixelRepresentation)),
        next((one for one in map(rescale_of, rescaled) if one is not None), None),
    )  # fmt: skip


def _item(group: Any, sequence: str) -> Any:
    """The item of a functional group; of a file with one slice the file itself, which has no groups."""
    if "Rows" in group:
        return group
    items = group.get(sequence)
    return items[0] if items else None


def _numbers(path: Path, place: Sequence[Any], sequence: str, name: str, count: int) -> FloatArray:
    for group in place:
        item = _item(group, sequence)
        values = item.get(name) if item is not None else None
        if values is not None and len(values) == count:
            numbers = np.asarray([float(value) for value in values])
            if np.isfinite(numbers).all():
                return numbers
    raise BadFile(f"{path.name}: no {name}: nothing says where the slice lies")


# -- geometry --------------------------------------------------------------------------------------------------------


def _in_space(path: Path, planes: Sequence[Plane]) -> Series:
    first = planes[0]
    if len(planes) < 2:
        raise BadFile(f"{path.name}: a single slice is no volume")
    rows, columns = first.size
    if len(planes) * rows * columns > MAX_VOXELS:
        raise BadFile(f"{path.name}: {columns}x{rows}x{len(planes)} voxels, more than {MAX_VOXELS}")
    for plane in planes:
        _same(path, first, plane)
    normal = np.cross(first.along_row, first.along_column)
    order = sorted(planes, key=lambda plane: float(plane.position @ normal))
    heights = np.asarray([float(plane.position @ normal) for plane in order])
    steps = np.diff(heights)
    apart = np.sort(steps[steps > 1e-3])
    usual = float(apart[(len(apart) - 1) // 2]) if len(apart) else 0.0  # the median, or the smaller of the middle two
    close = int(np.count_nonzero(steps < max(1e-3, MOST_UNEVEN * usual)))
    if close:
        at = int(np.argmin(steps))
        places = len(order) - close
        if usual and len(order) % places == 0 and len(order) // places > 1 and close > 1:
            each = len(order) // places
            raise BadFile(f"{path.name}: {each} slices at each of {places} places: expected a 3-D series, found 4-D")
        raise BadFile(f"{path.name}: two slices at one place: {order[at].name} and {order[at + 1].name}")
    uneven = np.abs(steps - usual) > MOST_UNEVEN * usual
    if uneven.any():
        at = int(np.argmax(np.abs(steps - usual)))
        raise BadFile(
            f"{path.name}: a gap of {steps[at]:.4g} mm between {order[at].name} and {order[at + 1].name}, and "
            f"{usual:.4g} mm elsewhere: slices are missing, or not equally far apart"
        )
    step = (order[-1].position - order[0].position) / (len(order) - 1)
    straight = np.asarray([order[0].position + number * step for number in range(len(order))])
    aside = float(np.abs(straight - [plane.position for plane in order]).max())
    if np.linalg.norm(step - (step @ normal) * normal) > MOST_TILT * usual or aside > MOST_UNEVEN * usual:
        raise BadFile(f"{path.name}: the slices are shifted sideways against each other (a tilted gantry?)")
    affine = np.eye(4)
    affine[:3, 0], affine[:3, 1] = first.along_row * first.spacing[1], first.along_column * first.spacing[0]
    affine[:3, 2], affine[:3, 3] = step, order[0].position
    return Series(tuple(order), LPS_TO_RAS @ affine)


def _same(path: Path, first: Plane, plane: Plane) -> None:
    """That two slices are parallel and have one grid."""
    directions = [(first.along_row, plane.along_row), (first.along_column, plane.along_column)]
    if any(np.abs(one - two).max() > SAME_DIRECTION for one, two in directions):
        raise BadFile(f"{path.name}: mixed orientations: {first.name} and {plane.name} are not parallel")
    if plane.size != first.size:
        sizes = [f"{columns}x{rows}" for rows, columns in (first.size, plane.size)]
        raise BadFile(f"{path.name}: slices of different sizes: {first.name} {sizes[0]}, {plane.name} {sizes[1]}")
    if not np.allclose(plane.spacing, first.spacing, rtol=SAME_DIRECTION):
        raise BadFile(f"{path.name}: slices of different pixel spacing: {first.name} and {plane.name}")
    if plane.stored != first.stored:
        raise BadFile(f"{path.name}: slices stored in different ways: {first.name} and {plane.name}")


# -- voxels, (slices, rows, columns) ---------------------------------------------------------------------------------


def _slices(path: Path, series: Series) -> npt.NDArray[Any]:
    import SimpleITK

    # Left to itself the reader takes the type of the first slice, and cuts the fractions of the others off.
    wide = SimpleITK.sitkFloat64 if series.planes[0].stored[0] > 16 else SimpleITK.sitkFloat32
    kind = wide if series.has_rescale else SimpleITK.sitkUnknown
    try:
        values = SimpleITK.GetArrayFromImage(SimpleITK.ReadImage([str(plane.path) for plane in series.planes], kind))
    except RuntimeError as error:
        raise BadFile(f"{path.name}: damaged or unreadable DICOM: {_reason(error)}") from None
    if values.shape != series.shape[::-1]:
        raise BadFile(f"{path.name}: damaged DICOM: the slices hold other than the headers say")
    return np.asarray(values)


def _frames(path: Path, series: Series) -> npt.NDArray[Any]:
    stored = stored_values(path, read_dicom(path)).reshape(-1, *series.shape[1::-1])
    ordered = stored[[max(plane.frame - 1, 0) for plane in series.planes]]
    if not series.has_rescale:
        return ordered
    rescale = np.asarray([plane.rescale or (1.0, 0.0) for plane in series.planes])[:, :, None, None]
    return np.asarray(ordered * rescale[:, 0] + rescale[:, 1])


def _reason(error: RuntimeError) -> str:
    """The last line of ITK's message, without the place in its source."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1][:300] if lines else "no reason given"
