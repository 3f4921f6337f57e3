"""Black pictures: of the same size as what they replace, and of a volume the same shape and place."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from overread.core.records import Picture, content_hash

FOLDER = "images/black"
"""Where they lie in a dataset's folder."""

VOXEL = "|u1"


def black_twin(picture: Picture) -> Picture:
    """The black picture that takes the place of `picture`; `write_black` writes its file."""
    name, pixels = _twin(picture.width, picture.height, picture.depth, picture.affine)
    return picture.model_copy(update={"path": f"{FOLDER}/{name}", "pixels": pixels})


def is_black(picture: Picture) -> bool:
    """Whether nothing is to be seen on it: a slice above the head, the mask of a brain without a tumour."""
    return picture.pixels == _twin(picture.width, picture.height, picture.depth, picture.affine)[1]


def write_black(pictures: Iterable[Picture], folder: Path) -> None:
    """The black twins of all `pictures`, each once; `folder` is <dataset>/images/black."""
    import numpy as np
    from PIL import Image

    from overread.images.render import write_png
    from overread.images.volume_file import VolumePicture, write_volume

    folder.mkdir(parents=True, exist_ok=True)
    for width, height, depth, affine in {(one.width, one.height, one.depth, one.affine) for one in pictures}:
        path = folder / _twin(width, height, depth, affine)[0]
        if depth is None or affine is None:
            write_png(Image.new("L", (width, height)), path)
        else:
            whole = np.vstack([np.reshape(affine, (3, 4)), [0, 0, 0, 1]])
            write_volume(VolumePicture(np.zeros((width, height, depth), dtype=VOXEL), whole), path)


@cache
def _twin(width: int, height: int, depth: int | None, affine: tuple[float, ...] | None) -> tuple[str, str]:
    """Its file's name and its hash, without making it."""
    if depth is None or affine is None:
        pixels = hashlib.sha256(f"L:{width}x{height}:".encode() + bytes(width * height)).hexdigest()
        return f"{width}x{height}.png", pixels
    from overread.images.volume_file import SUFFIX, digest

    shape = (width, height, depth)
    place = content_hash(list(affine))[:8]  # two volumes of one shape may lie in different places
    pixels = digest(VOXEL, shape, affine, 1.0, 0.0, bytes(width * height * depth))
    return f"{width}x{height}x{depth}-{place}{SUFFIX}", pixels
