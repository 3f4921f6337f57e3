"""DICOM files made on the spot: a radiograph, a series of slices, an enhanced multi-frame file.

Every value is written element by element, so that a test knows what the file says.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.uid import ExplicitVRLittleEndian

ROOT = "1.2.826.0.1.3680043.8.498"
"""Of pydicom's users."""

COMPUTED_RADIOGRAPHY = "1.2.840.10008.5.1.4.1.1.1"
MR = "1.2.840.10008.5.1.4.1.1.4"
ENHANCED_MR = "1.2.840.10008.5.1.4.1.1.4.1"


def new_dataset(values: np.ndarray, kind: str, number: int = 1, series: int = 1, **more: Any) -> Dataset:
    """A dataset with the pixels `values`, (rows, columns) or (frames, rows, columns), 16 bits, signed if they are."""
    meta = FileMetaDataset()
    meta.TransferSyntaxUID = ExplicitVRLittleEndian
    meta.MediaStorageSOPClassUID = kind
    meta.MediaStorageSOPInstanceUID = f"{ROOT}.{series}.{number}"
    dataset = Dataset()
    dataset.file_meta = meta
    dataset.SOPClassUID, dataset.SOPInstanceUID = kind, meta.MediaStorageSOPInstanceUID
    dataset.StudyInstanceUID, dataset.SeriesInstanceUID = f"{ROOT}.0", f"{ROOT}.{series}"
    dataset.SeriesDescription = f"series {series}"
    dataset.Modality = "MR"
    dataset.InstanceNumber = str(number)
    dataset.Rows, dataset.Columns = values.shape[-2:]
    if values.ndim == 3:
        dataset.NumberOfFrames = str(len(values))
    dataset.SamplesPerPixel = 1
    dataset.PhotometricInterpretation = "MONOCHROME2"
    dataset.BitsAllocated = dataset.BitsStored = 16
    dataset.HighBit = 15
    dataset.PixelRepresentation = int(values.min() < 0)
    dataset.PixelData = values.astype("<i2" if dataset.PixelRepresentation else "<u2").tobytes()
    for name, value in more.items():
        if value is None:
            dataset.pop(name, None)
        else:
            setattr(dataset, name, value)
    return dataset


def write_radiograph(path: Path, values: np.ndarray, **more: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    new_dataset(values, COMPUTED_RADIOGRAPHY, Modality="CR", **more).save_as(path, enforce_file_format=True)
    return path


def write_slices(
    folder: Path,
    values: np.ndarray,
    *,
    origin: Sequence[float] = (0, 0, 0),
    axes: Sequence[Sequence[float]] = ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    spacing: Sequence[float] = (1, 1, 1),
    order: Sequence[int] | None = None,
    each: Sequence[dict[str, Any]] | None = None,
    **more: Any,
) -> Path:
    """A series: a file a slice.

    values   (columns, rows, slices)
    origin   LPS, mm, of the first voxel
    axes     unit vectors in LPS along columns, rows and slices; the slices need not be perpendicular to the others
    spacing  mm along columns, rows and slices
    order    the number in the file's name and header by slice; as in space where none is given
    each     further elements, one dictionary a slice
    """
    folder.mkdir(parents=True, exist_ok=True)
    along = np.asarray(axes, dtype=float)
    for index in range(values.shape[2]):
        number = index if order is None else order[index]
        position = np.asarray(origin) + index * spacing[2] * along[2]
        elements = {
            "ImagePositionPatient": [float(one) for one in position],
            "ImageOrientationPatient": [float(one) for one in (*along[0], *along[1])],
            "PixelSpacing": [float(spacing[1]), float(spacing[0])],
            **more,
            **(each[index] if each is not None else {}),
        }
        dataset = new_dataset(values[:, :, index].T, MR, number + 1, **elements)
        dataset.save_as(folder / f"{number:04d}.dcm", enforce_file_format=True)
    return folder


def write_frames(path: Path, values: np.ndarray, places: Sequence[Sequence[float]], **more: Any) -> Path:
    """An enhanced MR file, axial, 1 mm pixels.

    values  (frames, rows, columns)
    places  position of each frame, LPS, mm
    """
    dataset = new_dataset(values, ENHANCED_MR, **more)
    shared = Dataset()
    orientation, measures = Dataset(), Dataset()
    orientation.ImageOrientationPatient = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0]
    measures.PixelSpacing = [1.0, 1.0]
    shared.PlaneOrientationSequence, shared.PixelMeasuresSequence = [orientation], [measures]
    dataset.SharedFunctionalGroupsSequence = [shared]
    groups = []
    for place in places:
        group, position = Dataset(), Dataset()
        position.ImagePositionPatient = [float(one) for one in place]
        group.PlanePositionSequence = [position]
        groups.append(group)
    dataset.PerFrameFunctionalGroupsSequence = groups
    path.parent.mkdir(parents=True, exist_ok=True)
    dataset.save_as(path, enforce_file_format=True)
    return path
