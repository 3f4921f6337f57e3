"""The diffusion series as it left the scanner: on a grid of its own, several volumes in one file.

UCSF-PDGM gives it unregistered (`DTI_eddy_noreg`): another spacing, axes that grow to the patient's left, front and
top, and a head that lies a little askew. Here it has few directions, to keep it small.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from overread_phantom.anatomy import AFFINE, GRID, FloatArray
from overread_phantom.tumour import generator

NAME = "DTI_eddy_noreg"
SHAPE = (256, 256, 48)
SPACING_MM = (0.9375, 0.9375, 3.0)
TILT_DEGREES = (5.0, -3.0, 2.0)
DIRECTIONS = 3


def grid() -> npt.NDArray[np.float64]:
    """The affine: LAS axes, turned by `TILT_DEGREES` about the patient's, centred on the brain's grid."""
    turned = np.diag([-1.0, 1.0, 1.0])
    for axis, angle in enumerate(np.deg2rad(TILT_DEGREES)):
        one, two = (other for other in range(3) if other != axis)
        turn = np.eye(3)
        turn[one, one] = turn[two, two] = np.cos(angle)
        turn[one, two], turn[two, one] = -np.sin(angle), np.sin(angle)
        turned = turn @ turned
    affine = np.eye(4)
    affine[:3, :3] = turned * SPACING_MM
    middle = AFFINE[:3] @ [*((np.array(GRID) - 1) / 2), 1]
    affine[:3, 3] = middle - affine[:3, :3] @ ((np.array(SHAPE) - 1) / 2)
    return affine


def directions(seed: int, index: int) -> npt.NDArray[np.float64]:
    """(3, 1 + DIRECTIONS) unit vectors, the first column 0: the volume without diffusion weighting."""
    drawn = generator(seed, index, 51).standard_normal((3, DIRECTIONS))
    return np.column_stack([np.zeros(3), drawn / np.linalg.norm(drawn, axis=0)])


def scan(unweighted: FloatArray, weighted: FloatArray, seed: int, index: int) -> npt.NDArray[np.int16]:
    """Stored values (volume, third, second, first axis) at a scale of 1.

    unweighted, weighted  (third, second, first axis) signal on the brain's grid
    """
    from scipy.ndimage import affine_transform

    # Both arrays have their axes in turned order, so the affines are taken in turned order as well.
    between = (np.linalg.inv(AFFINE) @ grid())[:3][::-1]
    matrix, offset = between[:, :3][:, ::-1], between[:, 3]
    native = [
        affine_transform(values, matrix, offset, output_shape=SHAPE[::-1], order=1, output=np.float32)
        for values in (unweighted, weighted)
    ]
    rng = generator(seed, index, 50)
    volumes = []
    for number in range(1 + DIRECTIONS):
        signal = native[min(number, 1)] * (1 if number == 0 else np.float32(rng.uniform(0.9, 1.1)))
        noise = rng.standard_normal(signal.shape, dtype=np.float32) * np.float32(12)
        volumes.append(np.rint(np.maximum(signal + noise * (signal > 0), 0)).astype(np.int16))
    return np.stack(volumes)
