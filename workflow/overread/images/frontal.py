"""The frontal chest X-ray as a grey picture: JPEG, PNG or DICOM, air dark and bone bright."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from overread.config import FrontalView
from overread.errors import BadInput
from overread.images.render import FloatArray
from overread.records import Study

if TYPE_CHECKING:
    from PIL import Image

SMALLEST_EDGE = 16
LARGEST_PICTURE = 100_000_000
"""Pixels. The largest detectors give about 18 million; what is far above is a decompression bomb, not a radiograph."""


def render_frontal(study: Study, view: FrontalView) -> Image.Image:
    """The study's frontal image, mode L. With `view.size` its longer edge has that many pixels.

    raises  BadInput with the file and the reason: missing, truncated, no image, too small, too large, nothing to see
    """
    from PIL import Image

    if "frontal" not in study.images:
        raise BadInput(f"study {study.study}: no frontal image")
    path = Path(study.images["frontal"])
    if not path.is_file():
        raise BadInput(f"{path}: no such file")
    picture = _dicom(path) if _is_dicom(path) else _picture(path)
    if min(picture.size) < SMALLEST_EDGE:
        raise BadInput(f"{path}: {picture.width} x {picture.height} pixels are too few for a radiograph")
    darkest, brightest = picture.getextrema()
    if darkest == brightest:
        raise BadInput(f"{path}: every pixel has the same value ({darkest}); there is nothing to see")
    if view.size is None or max(picture.size) == view.size:
        return picture
    factor = view.size / max(picture.size)
    wanted = (max(1, round(picture.width * factor)), max(1, round(picture.height * factor)))
    return picture.resize(wanted, Image.Resampling.LANCZOS)


def _picture(path: Path) -> Image.Image:
    """A JPEG, PNG or other picture file, turned as its EXIF data say; more than 8 bits are scaled to 8."""
    from PIL import Image, ImageOps, UnidentifiedImageError

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # the size is checked here, and is an error
            opened = Image.open(path)
        with opened:
            if opened.width * opened.height > LARGEST_PICTURE:
                raise BadInput(f"{path}: {opened.width} x {opened.height} pixels are too many for a radiograph")
            opened.load()
            picture = ImageOps.exif_transpose(opened)
    except UnidentifiedImageError:
        raise BadInput(f"{path}: not an image that can be read (JPEG, PNG or DICOM)") from None
    except Image.DecompressionBombError:
        raise BadInput(f"{path}: too many pixels for a radiograph") from None
    except (OSError, SyntaxError, ValueError) as error:  # Pillow reports a broken PNG as a SyntaxError
        raise BadInput(f"{path}: damaged or truncated image: {' '.join(str(error).split())}") from None
    if picture.mode in ("I", "F", "I;16", "I;16L", "I;16B", "I;16N"):
        values = np.asarray(picture, dtype=np.float64)
        if picture.mode == "F" and not np.isfinite(values).all():
            raise BadInput(f"{path}: pixels that are not finite numbers")
        return _scaled(values, path)
    return picture if picture.mode == "L" else picture.convert("RGB").convert("L")


def _scaled(values: FloatArray, path: Path) -> Image.Image:
    """All of the range of `values` as 0..255: few detectors use the whole of their 16 bits."""
    from PIL import Image

    low, high = float(values.min()), float(values.max())
    if low == high:
        raise BadInput(f"{path}: every pixel has the same value ({low:g}); there is nothing to see")
    return Image.fromarray(np.rint((values - low) / (high - low) * 255).astype(np.uint8))


# -- DICOM -----------------------------------------------------------------------------------------------------------


def _is_dicom(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(132)[128:] == b"DICM"


def _dicom(path: Path) -> Image.Image:
    """Rescale, then the window (PS3.3 C.11.2), then MONOCHROME1 inverted. Without a window the whole range is shown."""
    import pydicom
    from PIL import Image, ImageOps
    from pydicom.pixels.processing import apply_modality_lut, apply_voi

    try:
        dataset: Any = pydicom.dcmread(path)
        if dataset.get("PhotometricInterpretation") not in ("MONOCHROME1", "MONOCHROME2"):
            raise BadInput(f"{path}: photometric interpretation {dataset.get('PhotometricInterpretation')} is not grey")
        if int(dataset.get("NumberOfFrames") or 1) != 1:
            raise BadInput(f"{path}: {dataset.NumberOfFrames} frames; a radiograph has one")
        if int(dataset.Rows) * int(dataset.Columns) > LARGEST_PICTURE:
            raise BadInput(f"{path}: {dataset.Columns} x {dataset.Rows} pixels are too many for a radiograph")
        rescaled = apply_modality_lut(dataset.pixel_array, dataset)
        values = np.asarray(rescaled, dtype=np.float64)
        if "VOILUTSequence" in dataset:
            bits = int(dataset.VOILUTSequence[0].LUTDescriptor[2])
            share = np.asarray(apply_voi(rescaled, dataset), dtype=np.float64) / (2**bits - 1)
        elif dataset.get("WindowCenter") is not None and dataset.get("WindowWidth") is not None:
            share = _windowed(values, dataset)
        else:
            share = None
    except BadInput:
        raise
    except Exception as error:  # pydicom and its decoders raise many kinds for a broken file
        raise BadInput(f"{path}: damaged or unreadable DICOM: {' '.join(str(error).split())}") from None
    picture = (
        _scaled(values, path)
        if share is None
        else Image.fromarray(np.rint(np.clip(share, 0, 1) * 255).astype(np.uint8))
    )
    return picture if dataset.PhotometricInterpretation == "MONOCHROME2" else ImageOps.invert(picture)


def _windowed(values: FloatArray, dataset: Any) -> FloatArray:
    """0 (shown black) to 1 (white) by the first of the file's windows, with the formulas of PS3.3 C.11.2.1.2 and .3."""
    center, width = (_first(dataset[name].value) for name in ("WindowCenter", "WindowWidth"))
    function = str(dataset.get("VOILUTFunction") or "LINEAR")
    if function == "SIGMOID":
        return 1 / (1 + np.exp(-4 * (values - center) / width))
    if function == "LINEAR_EXACT":
        return (values - center) / width + 0.5
    if width <= 1:  # a step: everything above center - 0.5 is white
        return (values > center - 0.5).astype(np.float64)
    return (values - (center - 0.5)) / (width - 1) + 0.5


def _first(value: Any) -> float:
    """A window may have several values, one a view of the same picture."""
    return float(value[0] if hasattr(value, "__len__") and not isinstance(value, str) else value)
