"""From values to grey pictures: the window, the size, the PNG and its hash. The same input gives the same bytes."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from overread.core.records import replacing

if TYPE_CHECKING:
    from PIL import Image

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

PERCENTILES = (0.5, 99.5)

COMPRESSION = 1
"""Of PNG: half the time of level 6 for a tenth more bytes."""


def grey_picture(
    values: FloatArray,
    inside: BoolArray,
    spacing_mm: tuple[float, float] = (1.0, 1.0),
    size: int | None = None,
    seen: tuple[float, float] | None = None,
) -> Image.Image:
    """An 8-bit picture of a slice.

    values      (rows, columns), any unit; NaN is shown black
    inside      (rows, columns) the brain, whose values set the window
    spacing_mm  height and width of a pixel; the picture's pixels are square
    size        longer edge of the picture in pixels; none keeps the finer of the two spacings
    seen        what is shown black and white, where that is known already
    raises      ValueError if nothing is inside or all inside is equal: there would be nothing to see
    """
    from PIL import Image

    low, high = seen or window(values[inside & np.isfinite(values)])
    finite = values if np.isfinite(values).all() else np.nan_to_num(values, nan=low)
    grey = np.clip((finite - low) / (high - low), 0, 1)
    picture = Image.fromarray(np.rint(grey * 255).astype(np.uint8), mode="L")
    return sized(picture, spacing_mm, size)


def label_picture(
    labels: FloatArray,
    greys: Mapping[int, int],
    spacing_mm: tuple[float, float] = (1.0, 1.0),
    size: int | None = None,
) -> Image.Image:
    """An 8-bit picture of a slice of a mask: a grey level a label, and none in between.

    labels  (rows, columns), near whole numbers; NaN, and what `greys` does not name, is black
    """
    from PIL import Image

    whole = np.rint(np.nan_to_num(labels))
    pixels = np.zeros(labels.shape, dtype=np.uint8)
    for label, grey in greys.items():
        pixels[whole == label] = grey
    return sized(Image.fromarray(pixels, mode="L"), spacing_mm, size, smooth=False)


def window(values: FloatArray, *, positive: bool = False) -> tuple[float, float]:
    """What is shown black and white: robust percentiles of the brain, so that no single voxel sets the contrast.

    Magnitude images have no signal at 0, so black is 0 unless the percentile lies below it (noise around 0).

    values    (n,) inside the brain
    positive  whether the quantity has no values below 0, so that those there are noise and shown black
    raises    ValueError for no values, or no contrast among them
    """
    if values.size == 0:
        raise ValueError("no brain in the slice")
    low, high = (float(value) for value in np.percentile(values, PERCENTILES))
    low = 0.0 if positive else min(low, 0.0)
    if high <= low or values.min() == values.max():
        raise ValueError("no contrast in the slice")
    return low, high


def sized(
    picture: Image.Image,
    spacing_mm: tuple[float, float] = (1.0, 1.0),
    size: int | None = None,
    *,
    smooth: bool = True,
) -> Image.Image:
    """`picture` with square pixels, and with `size` as its longer edge if that is given.

    smooth  whether values in between may arise; those of a mask may not
    """
    from PIL import Image

    finest = min(spacing_mm)
    height, width = picture.height * spacing_mm[0] / finest, picture.width * spacing_mm[1] / finest
    factor = size / max(height, width) if size is not None else 1.0
    wanted = (max(1, round(width * factor)), max(1, round(height * factor)))
    way = Image.Resampling.BICUBIC if smooth else Image.Resampling.NEAREST
    return picture if wanted == picture.size else picture.resize(wanted, way)


def pixel_hash(image: Image.Image) -> str:
    """SHA-256 of mode, size and pixels: two files that show the same have the same hash."""
    head = f"{image.mode}:{image.width}x{image.height}:".encode()
    return hashlib.sha256(head + image.tobytes()).hexdigest()


def write_png(image: Image.Image, path: Path) -> None:
    """A PNG without metadata, always with the same compression."""
    with replacing(path) as temporary:
        image.save(temporary, format="PNG", compress_level=COMPRESSION)


DARK, BRIGHT = 8, 247
NEARLY_ALL = 0.995
LONGEST = 3
"""Times the shorter edge from which on a picture is no likely shape of a scan."""


def suspicions(picture: Image.Image) -> list[str]:
    """Why a person should look at a picture before it is believed: a last check, whatever went before."""
    grey = np.asarray(picture.convert("L"))
    levels, edges = len(np.unique(grey)), sorted(picture.size)
    found = []
    if float((grey <= DARK).mean()) >= NEARLY_ALL:
        found.append("nearly all of it is black")
    elif float((grey >= BRIGHT).mean()) >= NEARLY_ALL:
        found.append("nearly all of it is white")
    if levels <= 2:
        found.append(f"it has {levels} grey level{'s' if levels > 1 else ''} only")
    if edges[1] > LONGEST * edges[0]:
        found.append(f"{picture.width} x {picture.height} pixels: one edge is more than {LONGEST} times the other")
    return found
