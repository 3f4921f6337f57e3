"""A radiograph's file as grey values: JPEG, PNG or DICOM, air dark and bone bright.

What has 8 bits is shown as it is. What has more is kept until the picture is made, and only then rounded to the 256
grey levels of a screen. Colour is turned into grey by the luma of ITU-R BT.601; what is transparent lies on black.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from overread.core.inputs import regular
from overread.images.dicom import dicom_files, explained, read_dicom, rescale_of, size_of, stored_values
from overread.images.header import BadFile
from overread.images.kinds import ENOUGH, file_problem, kind_of

if TYPE_CHECKING:
    from PIL import Image

LARGEST_PICTURE = 50_000_000
"""Pixels. The largest detectors give about 18 million; what is far above is a decompression bomb, not a radiograph."""

EXIF_ORIENTATION = 0x0112

OUTER = 0.5
"""Per cent of the pixels at either end that may be a marker or dead elements."""

MORE_BITS = "more than 8 bits, as stored"

Grey = npt.NDArray[np.float32]
"""24 bits of precision: more than any detector has."""


@dataclass(frozen=True)
class Radiograph:
    """What is to be shown, not yet rounded."""

    grey: npt.NDArray[np.uint8] | Grey
    """(rows, columns): 0..255 if the file has 8 bits, else 0 (black) to 1 (white)."""
    scaling: str
    spacing: tuple[float, float] = (1.0, 1.0)
    """Height and width of a pixel, in any unit."""

    def picture(self, size: int | None = None) -> Image.Image:
        """Mode L, with square pixels, and with `size` as its longer edge if that is given."""
        from PIL import Image

        picture = Image.fromarray(self.grey)
        finest = min(self.spacing)
        height, width = picture.height * self.spacing[0] / finest, picture.width * self.spacing[1] / finest
        factor = size / max(height, width) if size is not None else 1.0
        wanted = (max(1, round(width * factor)), max(1, round(height * factor)))
        if wanted != picture.size:
            picture = picture.resize(wanted, Image.Resampling.LANCZOS)
        if picture.mode == "L":
            return picture
        return Image.fromarray(np.rint(np.clip(np.asarray(picture), 0, 1) * 255).astype(np.uint8))


def read_radiograph(path: Path) -> Radiograph:
    """The radiograph in a file, or in a folder with a single DICOM file.

    raises  BadFile with the file and the reason: missing, truncated, no image, too large, nothing to see
    """
    path, kind = _found(path)
    return _dicom(path) if kind == "DICOM" else _picture(path, kind)


@dataclass(frozen=True)
class DetectorValues:
    """A radiograph for someone who sets the window: what the file holds, before any window was laid over it."""

    values: npt.NDArray[np.uint8] | Grey
    """(rows, columns), in the unit of the file; padding has the value that is shown darkest."""
    low: float
    high: float
    """The window to begin with: what is black and what is white, or the other way round if `inverted`."""
    inverted: bool
    """Whether the file shows its least value brightest (MONOCHROME1)."""
    about: str
    spacing: tuple[float, float] = (1.0, 1.0)


def read_values(path: Path) -> DetectorValues:
    """The values in a radiograph's file at their full depth, and the file's own window.

    A VOI lookup table is no window: where the file has one, the values are those behind it, from 0 to 1.
    raises  BadFile as `read_radiograph` does
    """
    path, kind = _found(path)
    if kind != "DICOM":
        values, note = _picture_values(path, kind)
        if values.dtype == np.uint8:
            return DetectorValues(np.asarray(values), 0.0, 255.0, False, f"{kind}, {note}")
        low, high, _ = _range(path, values)
        return DetectorValues(np.asarray(values, dtype=np.float32), low, high, False, f"{kind}, {note}")
    with explained(path):
        dataset, stored, padding = _grey_dicom(path)
        values, note = _rescaled(dataset, stored)
        note = f"DICOM, {int(dataset.BitsStored)} bits, {note}"
        if dataset.get("VOILUTSequence"):
            values, looked_up = _looked_up(dataset.VOILUTSequence[0], values)
            note = f"{note}, {looked_up}"
            low, high = 0.0, 1.0
        elif dataset.get("WindowCenter") is not None and dataset.get("WindowWidth") is not None:
            note = f"{note}, {_windowed(path, dataset, values)[1]}"
            low, high = _ends(dataset)
        else:
            low, high, _ = _range(path, values if padding is None else values[~padding])
        inverted = dataset.PhotometricInterpretation == "MONOCHROME1"
        if padding is not None:
            values = values.copy()
            values[padding] = values.max() if inverted else values.min()
        return DetectorValues(values, low, high, inverted, note, _spacing(dataset))


def _ends(dataset: Any) -> tuple[float, float]:
    """What the file's first window shows black and white; of a sigmoid, where its tangent in the centre does."""
    center, width = (_first(dataset[name].value) for name in ("WindowCenter", "WindowWidth"))
    if str(dataset.get("VOILUTFunction") or "LINEAR") == "LINEAR":
        center, width = center - 0.5, max(width - 1, 1.0)
    return center - width / 2, center + width / 2


def _found(path: Path) -> tuple[Path, str]:
    """The radiograph's file, and its kind by its first bytes. BadFile if it is none that can be read."""
    if path.is_dir():
        found = dicom_files(path)
        if len(found) != 1:
            raise BadFile(f"{path}: {len(found)} DICOM files; a radiograph's folder holds one")
        path = found[0]
    problem = file_problem(path)
    if problem is not None:
        raise BadFile(problem)
    try:
        with regular(path).open("rb") as file:
            kind = kind_of(file.read(ENOUGH))
    except OSError as error:
        raise BadFile(f"{path}: not readable: {error.strerror or error}") from None
    if kind in ("NIfTI", "gzip"):
        raise BadFile(f"{path}: a NIfTI file does not say how a radiograph is shown; give JPEG, PNG or DICOM")
    if kind not in ("DICOM", "JPEG", "PNG"):
        raise BadFile(f"{path}: not an image that can be read (JPEG, PNG or DICOM)")
    return path, kind


# -- JPEG, PNG -------------------------------------------------------------------------------------------------------


def _picture(path: Path, kind: str) -> Radiograph:
    """Turned as its EXIF data say; more than 8 bits are scaled from their least to their greatest value."""
    values, note = _picture_values(path, kind)
    if values.dtype == np.uint8:
        return Radiograph(np.asarray(values), f"{kind}, {note}")
    low, high, which = _range(path, values)
    turned = note.removeprefix(MORE_BITS)
    return Radiograph(_share(values, low, high), f"{kind}, {low:g} black to {high:g} white ({which}){turned}")


def _picture_values(path: Path, kind: str) -> tuple[npt.NDArray[Any], str]:
    """Grey values as the file holds them, 8 bits as uint8, and what was done to them."""
    from PIL import Image, ImageOps

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # the size is checked here, and is an error
            opened = Image.open(regular(path), formats=(kind,))
        with opened:
            _check_size(path, opened.width, opened.height)
            if getattr(opened, "n_frames", 1) != 1:
                raise BadFile(f"{path}: {getattr(opened, 'n_frames', 0)} frames; a radiograph has one")
            opened.load()
            turned = opened.getexif().get(EXIF_ORIENTATION, 1)
            picture = ImageOps.exif_transpose(opened)
    except BadFile:
        raise
    except Image.DecompressionBombError:
        raise BadFile(f"{path}: too many pixels for a radiograph") from None
    except Exception as error:  # Pillow reports a broken file as any of many kinds
        raise BadFile(f"{path}: damaged or truncated {kind}: {' '.join(str(error).split())[:300]}") from None
    note = f", turned by EXIF orientation {turned}" if turned not in (0, 1) else ""
    if picture.mode.startswith("I") or picture.mode == "F":
        return np.asarray(picture), f"{MORE_BITS}{note}"
    if picture.mode == "L":
        return np.asarray(picture), f"8 bits as stored{note}"
    mode, seen = picture.mode, _without_transparency(picture)
    return np.asarray(seen.convert("L")), f"{mode} to grey by ITU-R BT.601, 8 bits{note}"


def _without_transparency(picture: Image.Image) -> Image.Image:
    """RGB, or L of a black and white picture: what is transparent lies on black."""
    from PIL import Image

    if picture.mode in ("RGBA", "LA", "PA") or "transparency" in picture.info:
        solid = Image.new("RGBA", picture.size, (0, 0, 0, 255))
        return Image.alpha_composite(solid, picture.convert("RGBA")).convert("RGB")
    return picture.convert("L" if picture.mode == "1" else "RGB")


def _check_size(path: Path, width: int, height: int) -> None:
    if width * height > LARGEST_PICTURE:
        raise BadFile(f"{path}: {width} x {height} pixels are too many for a radiograph")


def _range(path: Path, values: npt.NDArray[Any]) -> tuple[float, float, str]:
    """What is shown black and white where the file does not say: its extremes, since few detectors use all their bits.

    A few pixels far beyond all others - a burnt-in marker, a dead element - would leave the rest in a few grey levels.
    Where they take more than three quarters of the range, the ends are percentiles; what lies beyond is black or white.
    """
    low, high = _extremes(path, values)
    inner = np.percentile(values, (OUTER, 100 - OUTER))
    if not inner[0] < inner[1] or inner[1] - inner[0] >= (high - low) / 4:
        return low, high, "its extremes"
    beyond = int(np.count_nonzero((values < inner[0]) | (values > inner[1])))
    which = f"percentiles {OUTER:g} and {100 - OUTER:g}: {beyond} pixels from {low:g} to {high:g} lie beyond"
    return float(inner[0]), float(inner[1]), which


def _extremes(path: Path, values: npt.NDArray[Any]) -> tuple[float, float]:
    """The least and the greatest value. BadFile where there is nothing between them."""
    if values.size == 0:
        raise BadFile(f"{path}: only padding; there is nothing to see")
    low, high = float(values.min()), float(values.max())
    if not (np.isfinite(low) and np.isfinite(high)):
        raise BadFile(f"{path}: pixels that are not finite numbers")
    if low == high:
        raise BadFile(f"{path}: every pixel has the same value ({low:g}); there is nothing to see")
    return low, high


def _share(values: npt.NDArray[Any], low: float, high: float) -> Grey:
    return (values.astype(np.float32) - np.float32(low)) / np.float32(high - low)


# -- DICOM -----------------------------------------------------------------------------------------------------------


def _dicom(path: Path) -> Radiograph:
    """Rescale, then the VOI (PS3.3 C.11.2), then MONOCHROME1 inverted; padding is black.

    The VOI is the file's first lookup table, else its first window, else the whole range of the values.
    """
    with explained(path):
        dataset, stored, padding = _grey_dicom(path)
        values, rescaled = _rescaled(dataset, stored)
        share, shown = _voi(path, dataset, values, padding)
        inverted = dataset.PhotometricInterpretation == "MONOCHROME1"
        spacing = _spacing(dataset)
    share = np.clip(1 - share if inverted else share, 0, 1)
    if padding is not None:
        share[padding] = 0
    return Radiograph(share, f"DICOM, {rescaled}, {shown}{', inverted (MONOCHROME1)' if inverted else ''}", spacing)


def _grey_dicom(path: Path) -> tuple[Any, npt.NDArray[Any], npt.NDArray[np.bool_] | None]:
    """The dataset of a file with one frame, its values as stored, and where the file says that there is no image."""
    dataset = read_dicom(path)
    frames, rows, columns = size_of(path, dataset)
    if frames != 1:
        raise BadFile(f"{path}: {frames} frames; a radiograph has one")
    _check_size(path, columns, rows)
    stored = stored_values(path, dataset).reshape(rows, columns)
    return dataset, stored, _padding(dataset, stored)


def _rescaled(dataset: Any, stored: npt.NDArray[Any]) -> tuple[Grey, str]:
    """Values of the modality, and what was done to the stored ones."""
    from pydicom.pixels.processing import apply_modality_lut

    if dataset.get("ModalityLUTSequence"):
        return np.asarray(apply_modality_lut(stored, dataset), dtype=np.float32), "modality lookup table"
    rescale = rescale_of(dataset)
    slope, intercept = rescale or (1.0, 0.0)
    if not np.isfinite([slope, intercept]).all():
        raise ValueError(f"a rescale slope of {slope:g} and intercept of {intercept:g}")
    note = f"rescale slope {slope:g}, intercept {intercept:g}{' (the file has none)' if rescale is None else ''}"
    return stored.astype(np.float32) * np.float32(slope) + np.float32(intercept), note


def _voi(path: Path, dataset: Any, values: Grey, padding: npt.NDArray[np.bool_] | None) -> tuple[Grey, str]:
    """0 (least) to 1 (most) of what is of interest, and which rule said what that is."""
    if dataset.get("VOILUTSequence"):
        return _looked_up(dataset.VOILUTSequence[0], values)
    if dataset.get("WindowCenter") is not None and dataset.get("WindowWidth") is not None:
        return _windowed(path, dataset, values)
    low, high, which = _range(path, values if padding is None else values[~padding])
    return _share(values, low, high), f"no window: {low:g} to {high:g} ({which})"


def _looked_up(item: Any, values: Grey) -> tuple[Grey, str]:
    """PS3.3 C.11.2.1.1. Values below the table take its first entry, those above its last.

    Agfa's and others' files say 16 bits of entries that have 12: white is then the greatest entry, which is told.

    pydicom's own function cuts the index to the width of an entry before it looks for the end of the table, so that
    values far above an 8-bit table start again from its beginning.
    """
    entries, first, bits = (int(number) for number in item.LUTDescriptor)
    data = item.LUTData
    table = np.frombuffer(data, dtype="<u2") if isinstance(data, bytes) else np.asarray(data)
    entries = entries or 65536
    if table.size < entries:
        raise ValueError(f"a lookup table of {table.size} entries that says it has {entries}")
    places = np.clip(np.rint(values).astype(np.int64) - first, 0, entries - 1)
    white, note, most = 2**bits - 1, "VOI lookup table", int(table[:entries].max())
    if 0 < most < 2 ** (bits - 1):
        white, note = (
            most,
            f"VOI lookup table (no entry uses the {bits} bits that it names: the greatest, {most}, is white)",
        )
    return np.asarray(table[places], dtype=np.float32) / np.float32(white), note


def _windowed(path: Path, dataset: Any, values: Grey) -> tuple[Grey, str]:
    """The first of the file's windows, with the formulas of PS3.3 C.11.2.1.2 and .3."""
    center, width = (_first(dataset[name].value) for name in ("WindowCenter", "WindowWidth"))
    function = str(dataset.get("VOILUTFunction") or "LINEAR")
    note = f"window {center:g} \u00b1 {width / 2:g} ({function})"
    if function not in ("LINEAR", "LINEAR_EXACT", "SIGMOID"):
        raise BadFile(f"{path}: a window of unknown function {function}")
    if not np.isfinite([center, width]).all() or width <= 0 or (function == "LINEAR" and width < 1):
        raise BadFile(f"{path}: a window of width {width:g}")
    if function == "SIGMOID":
        return 1 / (1 + np.exp(-4 * (values - center) / width)), note
    if function == "LINEAR_EXACT":
        return (values - center) / width + 0.5, note
    if width == 1:  # a step: everything above center - 0.5 is white
        return (values > center - 0.5).astype(np.float32), note
    return (values - (center - 0.5)) / (width - 1) + 0.5, note


def _padding(dataset: Any, stored: npt.NDArray[Any]) -> npt.NDArray[np.bool_] | None:
    """Where the file says that there is no image (PS3.3 C.7.5.1.1.2); None if it does not."""
    value = dataset.get("PixelPaddingValue")
    if value is None:
        return None
    ends = sorted(_as_pixel(dataset, int(one)) for one in (value, dataset.get("PixelPaddingRangeLimit", value)))
    padding = (stored >= ends[0]) & (stored <= ends[1])
    return padding if padding.any() else None


def _as_pixel(dataset: Any, value: int) -> int:
    """A padding value as the pixels have it: some files write it without a sign where the pixels have one, or with one
    where they have none. The bits are the same.
    """
    bits = int(dataset.BitsAllocated)
    if int(dataset.get("PixelRepresentation") or 0) == 1:
        return value - 2**bits if value >= 2 ** (bits - 1) else value
    return value + 2**bits if value < 0 else value


def _spacing(dataset: Any) -> tuple[float, float]:
    """Height and width of a pixel: its spacing at the patient or the detector, else its aspect ratio, else square."""
    for name in ("PixelSpacing", "ImagerPixelSpacing", "PixelAspectRatio"):
        pair = dataset.get(name)
        try:
            height, width = (float(number) for number in pair)
        except (TypeError, ValueError):
            continue
        # Some files write zeros for what they don't know; a ratio beyond 4 is none of a detector.
        if height > 0 and width > 0 and 0.25 <= height / width <= 4:
            return (1.0, 1.0) if abs(height / width - 1) < 1e-3 else (height, width)
    return 1.0, 1.0


def _first(value: Any) -> float:
    """A window may have several values, one a view of the same picture."""
    return float(value[0] if hasattr(value, "__len__") and not isinstance(value, str) else value)
