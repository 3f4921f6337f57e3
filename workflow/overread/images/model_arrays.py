"""What models that take volumes make of one: the array that their vision part was trained on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from overread.images.volume_file import read_volume_picture

MED3DVLM_SHAPE = (128, 256, 256)
"""Slices, rows, columns (Xin et al. 2025)."""


def med3dvlm_array(path: Path, pixels: str | None = None) -> npt.NDArray[np.float32]:
    """A volume as Med3DVLM takes it: the box of what is not background, 0 to 1, resized.

    path     a volume that the images stage wrote
    pixels   the hash that it must have, if that is known
    returns  (1, 128, 256, 256) float32 in 0..1: channel; slices from the feet to the head, rows from the front to the
             back, columns from the patient's right to left. That is the order in which SimpleITK reads a release whose
             axes are LPS, as those of UCSF-PDGM are. All 0 for a volume without contrast, such as a black one.
    raises   BadInput if the file can't be read, or has another hash

    The box and the scaling are those that the model's training data were made with (M3D: MONAI's CropForeground and a
    trilinear Resize that takes voxels as areas); the volume is stretched to the shape whatever its spacing.
    """
    from scipy.ndimage import zoom

    values = read_volume_picture(path, pixels).values
    placed = _foreground(values.transpose(2, 1, 0)[:, ::-1, ::-1])
    low, high = float(placed.min()), float(placed.max())
    if high <= low:
        return np.zeros((1, *MED3DVLM_SHAPE), dtype=np.float32)
    scaled = (placed - np.float32(low)) / np.float32(high - low)
    factors = [wanted / have for wanted, have in zip(MED3DVLM_SHAPE, scaled.shape, strict=True)]
    resized: Any = zoom(scaled, factors, order=1, mode="nearest", grid_mode=True)
    return np.ascontiguousarray(resized[np.newaxis], dtype=np.float32)


def _foreground(values: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """The smallest box that holds all voxels that are not 0, rounding errors of the scaling aside."""
    shown = np.abs(values) > 1e-6 * np.abs(values).max()
    box = []
    for axis in range(3):
        inside = np.flatnonzero(shown.any(axis=tuple(other for other in range(3) if other != axis)))
        if inside.size == 0:
            return values
        box.append(slice(int(inside[0]), int(inside[-1]) + 1))
    return values[tuple(box)]
