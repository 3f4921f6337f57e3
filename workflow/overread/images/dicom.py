"""DICOM files, of which nothing is taken on trust.

pydicom reads them; GDCM (in SimpleITK) decodes the compressions that pydicom has no decoder for, such as lossless JPEG.
What the header promises is held against bounds before a pixel is decoded.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from overread.core.inputs import regular
from overread.images.header import MAX_VOXELS, BadFile
from overread.images.kinds import ENOUGH, file_problem, kind_of

DEFLATED = "1.2.840.10008.1.2.1.99"
"""The transfer syntax that packs the whole file: a small file can unpack to any size, before any header is seen."""

LOSSY_JPEG = ("1.2.840.10008.1.2.4.50", "1.2.840.10008.1.2.4.51")
"""JPEG baseline and extended: processes of 8 and of 12 bits."""

LARGEST_FILE = 2**31
MOST_FILES = 4096
"""In the folder of a series: a long dynamic series has a thousand slices, and each file costs a look at its header."""

MOST_BESIDE = 2**25
"""Bytes of a file beside its pixels: private elements, overlays, a picture of the report."""
MOST_PACKED = 2
"""Bytes of packed pixels for a byte of pixels. Run lengths (PS3.5 G.3.1) and JPEG at their worst add a few per cent."""
GREY = ("MONOCHROME1", "MONOCHROME2")

StoredArray = npt.NDArray[Any]


def is_dicom(path: Path) -> bool:
    """Whether a regular file has DICOM's mark. BadFile if it can't be opened."""
    with explained(path), regular(path).open("rb") as file:
        return kind_of(file.read(ENOUGH)) == "DICOM"


def files_in(folder: Path) -> list[Path]:
    """All that lies directly in the folder of a series, by name. BadFile, soon, for more than a series can have."""
    found = list(itertools.islice(folder.iterdir(), MOST_FILES + 1))
    if len(found) > MOST_FILES:
        raise BadFile(f"{folder}: more than {MOST_FILES} files in one folder are no series; give each series a folder")
    return sorted(found)


def dicom_files(folder: Path) -> list[Path]:
    """The DICOM files directly in a folder, by name; the directory file of a medium is none.

    raises  BadFile for more than `MOST_FILES`
    """
    paths = [path for path in files_in(folder) if path.is_file() and path.name.upper() != "DICOMDIR"]
    return [path for path in paths if path.stat().st_size >= ENOUGH and is_dicom(path)]


def read_dicom(path: Path, tags: Sequence[str] | None = None) -> Any:
    """The dataset of a file; only the elements `tags`, without pixels, if they are given.

    raises  BadFile: missing, empty, no DICOM, too large, packed as a whole, damaged
    """
    import pydicom

    problem = file_problem(path)
    if problem is not None:
        raise BadFile(problem)
    if path.stat().st_size > LARGEST_FILE:
        raise BadFile(f"{path}: {path.stat().st_size} bytes are too many for an image")
    if not is_dicom(path):
        raise BadFile(f"{path}: not DICOM, by its first bytes")
    with explained(path):
        syntax = str(pydicom.filereader.read_file_meta_info(path).get("TransferSyntaxUID", ""))
        if not syntax:
            raise BadFile(f"{path}: damaged or unreadable DICOM: it names no transfer syntax")
        if syntax == DEFLATED:
            raise BadFile(f"{path}: a deflated DICOM file (transfer syntax {DEFLATED}): unpack it first")
        return pydicom.dcmread(path, stop_before_pixels=tags is not None, specific_tags=list(tags) if tags else None)


def size_of(path: Path, dataset: Any) -> tuple[int, int, int]:
    """Frames, rows and columns, as the header says. BadFile if they are missing, or too large to be true."""
    if "Rows" not in dataset or "Columns" not in dataset:
        raise BadFile(f"{path}: no image in the DICOM file, or a truncated one")
    with explained(path):
        frames, rows, columns = int(dataset.get("NumberOfFrames") or 1), int(dataset.Rows), int(dataset.Columns)
    if min(frames, rows, columns) < 1 or frames * rows * columns > MAX_VOXELS:
        raise BadFile(f"{path}: {columns} x {rows} pixels in {frames} frames can't be an image")
    most = MOST_BESIDE + MOST_PACKED * frames * rows * columns * _bytes_each(dataset)
    if path.stat().st_size > most:
        raise BadFile(
            f"{path}: {path.stat().st_size} bytes, more than {columns} x {rows} pixels in {frames} frames need"
        )
    return frames, rows, columns


def stored_values(path: Path, dataset: Any) -> StoredArray:
    """Values as stored, (rows, columns) or (frames, rows, columns), before any rescale.

    raises  BadFile: not grey, truncated, damaged
    """
    frames, rows, columns = size_of(path, dataset)
    interpretation = dataset.get("PhotometricInterpretation")
    if interpretation not in GREY or int(dataset.get("SamplesPerPixel") or 1) != 1:
        raise BadFile(f"{path}: photometric interpretation {interpretation} is not grey")
    with explained(path):
        # What is packed decides how much is unpacked, whatever size the header declares.
        packed = len(dataset.PixelData) if "PixelData" in dataset else 0
        if packed > MOST_PACKED * frames * rows * columns * _bytes_each(dataset) + 65536 * frames:
            raise BadFile(f"{path}: {packed} bytes of pixels, more than {columns} x {rows} in {frames} frames need")
        if dataset.file_meta.TransferSyntaxUID.is_compressed and not _pydicom_decodes(dataset):
            return _by_gdcm(path, dataset)
        return np.asarray(dataset.pixel_array)


def _bytes_each(dataset: Any) -> int:
    """Bytes of a pixel, at least 1: a header that says none is refused elsewhere."""
    return max(1, int(dataset.get("BitsAllocated") or 8) // 8) * max(1, int(dataset.get("SamplesPerPixel") or 1))


def rescale_of(dataset: Any) -> tuple[float, float] | None:
    """Slope and intercept of the modality's rescale; None where the file has none, which stands for 1 and 0."""
    slope, intercept = dataset.get("RescaleSlope"), dataset.get("RescaleIntercept")
    if slope is None and intercept is None:
        return None
    return 1.0 if slope is None else float(slope), 0.0 if intercept is None else float(intercept)


def _pydicom_decodes(dataset: Any) -> bool:
    """Whether a decoder is there for the compression, and for so many bits: Pillow has JPEG of 8 bits alone."""
    from pydicom.pixels.decoders.base import get_decoder

    syntax = dataset.file_meta.TransferSyntaxUID
    decoder = get_decoder(syntax)
    only_pillow = set(decoder.available_plugins) <= {"pillow"}
    if str(syntax) in LOSSY_JPEG and only_pillow and int(dataset.get("BitsStored") or 8) > 8:
        return False
    return bool(decoder.is_available)


def _by_gdcm(path: Path, dataset: Any) -> StoredArray:
    """SimpleITK hands out rescaled values, and MONOCHROME1 turned around: both are undone."""
    import SimpleITK

    values = SimpleITK.GetArrayFromImage(SimpleITK.ReadImage(str(path)))
    if int(dataset.get("NumberOfFrames") or 1) == 1:
        values = values.reshape(values.shape[-2:])
    slope, intercept = rescale_of(dataset) or (1.0, 0.0)
    if dataset.PhotometricInterpretation == "MONOCHROME1":
        if (slope, intercept) != (1.0, 0.0) or dataset.PixelRepresentation != 0:
            raise BadFile(f"{path}: MONOCHROME1 with a rescale or a sign, in a compression that can't be undone")
        return np.asarray(2 ** int(dataset.BitsStored) - 1 - values.astype(np.int64))
    if slope == 0:
        raise BadFile(f"{path}: a rescale slope of 0")
    return np.asarray(np.rint((values.astype(np.float64) - intercept) / slope).astype(np.int64))


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """pydicom and its decoders raise many kinds of error for a broken file: each becomes a BadFile that names it.

    Elements are converted as they are first looked at, so that any look at a dataset can raise.
    """
    from pydicom.config import disable_value_validation

    try:
        with warnings.catch_warnings(), disable_value_validation():
            warnings.simplefilter("ignore")  # what they warn of is checked here, or harmless
            yield
    except BadFile:
        raise
    except PermissionError as error:
        raise BadFile(f"{path}: not readable: {error.strerror or error}") from None
    except Exception as error:
        raise BadFile(f"{path}: damaged or unreadable DICOM: {' '.join(str(error).split())[:300]}") from None
