"""Which slice of a volume is shown, and how it lies on the picture.

Pictures follow the radiological convention: the patient's right is on the left of axial and coronal pictures, the
front is on top of axial and on the left of sagittal ones, the top of the head is on top of coronal and sagittal ones.
What an index means is asked of the affine, never assumed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from overread.config import Plane
from overread.images.volume import BadFile, BoolArray, FloatArray, Volume

T = TypeVar("T", bound=np.generic)
IntArray = npt.NDArray[np.int64]

# World axes of nibabel's RAS+ coordinates: normal of the plane, downwards and rightwards on the picture. On both
# picture axes the RAS coordinate falls: rightwards is to the patient's left or back, downwards to the back or the feet.
WORLD_AXES: dict[Plane, tuple[int, int, int]] = {"axial": (2, 1, 0), "coronal": (1, 2, 0), "sagittal": (0, 2, 1)}


@dataclass(frozen=True)
class Layout:
    """How a volume's array lies on a picture of a plane."""

    plane: Plane
    normal: int  # array axis across the slices
    down: int  # array axis of the picture's rows
    right: int  # array axis of the picture's columns
    flip_down: bool
    flip_right: bool

    def place(self, cut: npt.NDArray[T]) -> npt.NDArray[T]:
        """The picture (rows, columns) of a 2-D cut whose axes are the array's two others, in the array's order."""
        picture = cut.T if self.right < self.down else cut
        if self.flip_down:
            picture = picture[::-1]
        return picture[:, ::-1] if self.flip_right else picture


def layout(affine: FloatArray, plane: Plane) -> Layout:
    """Array axes of a plane. Each array axis stands for the world axis that it is nearest to, also when it is oblique.

    affine  (4, 4) voxel to RAS+ world, mm
    """
    import nibabel as nib

    world, direction = nib.orientations.io_orientation(affine).T  # type: ignore[no-untyped-call]
    axis_of = {int(axis): place for place, axis in enumerate(world)}
    normal, down, right = (axis_of[axis] for axis in WORLD_AXES[plane])
    return Layout(
        plane, normal, down, right, flip_down=bool(direction[down] > 0), flip_right=bool(direction[right] > 0)
    )


@dataclass(frozen=True)
class Level:
    """The slice that a view shows: an index on the grid of the mask that chose it."""

    layout: Layout
    index: int
    affine: FloatArray
    shape: tuple[int, ...]
    chosen_by: str

    @property
    def position_mm(self) -> float:
        """Where the slice's centre lies along the plane's normal, in patient coordinates (LPS)."""
        centre = [(n - 1) / 2 for n in self.shape]
        centre[self.layout.normal] = self.index
        axis = WORLD_AXES[self.layout.plane][0]
        ras = float((self.affine @ [*centre, 1.0])[axis])
        return round(ras if axis == 2 else -ras, 3)

    @property
    def spacing_mm(self) -> tuple[float, float]:
        """Height and width of a pixel."""
        sizes = np.linalg.norm(self.affine[:3, :3], axis=0)
        return float(sizes[self.layout.down]), float(sizes[self.layout.right])


def most(counts: IntArray) -> int:
    """The index of the greatest count; of several, the middle one (the lower of two middle ones).

    counts  (n,) voxels of interest by slice
    """
    best = np.flatnonzero(counts == counts.max())
    return int(best[(len(best) - 1) // 2])


def largest_tumour(tumour: Volume, brain: Volume | None, plane: Plane) -> Level:
    """The slice with the most tumour voxels; without any tumour that with the most brain, and `chosen_by` says so."""
    axes = layout(tumour.affine, plane)
    counts = _counts(tumour.labelled, axes.normal)
    if counts.any():
        return Level(axes, most(counts), tumour.affine, tumour.shape, "most tumour voxels")
    if brain is None:
        raise BadFile(f"{tumour.path.name}: holds no tumour, and there is no brain mask to choose the slice by")
    axes = layout(brain.affine, plane)
    index = most(_counts(brain.labelled, axes.normal))
    return Level(axes, index, brain.affine, brain.shape, "no tumour: most brain voxels")


def middle(volume: Volume, plane: Plane, *, is_mask: bool) -> Level:
    """The middle slice of what is not 0 in `volume`: a brain mask, or a skull-stripped series."""
    axes = layout(volume.affine, plane)
    inside = np.flatnonzero(_counts(volume.labelled if is_mask else volume.foreground, axes.normal))
    if inside.size == 0:
        raise BadFile(f"{volume.path.name}: holds nothing to choose a slice by")
    return Level(axes, int(inside[0] + inside[-1]) // 2, volume.affine, volume.shape, "middle of the brain")


def cut(volume: Volume, level: Level) -> FloatArray:
    """The picture plane of `level` through `volume`, (rows, columns), scaled values.

    On the grid that chose the level it is the slice of that index. On any other grid the volume is interpolated
    linearly at the world coordinates of the level's pixels; NaN where it does not reach.
    raises  BadFile if it does not reach any pixel
    """
    if volume.shape == level.shape and np.allclose(volume.affine, level.affine, atol=1e-3):
        return level.layout.place(volume.slice(level.layout.normal, level.index))
    return level.layout.place(_interpolated(volume, level))


def _counts(mask: BoolArray, normal: int) -> IntArray:
    others = tuple(axis for axis in range(3) if axis != normal)
    return np.asarray(np.count_nonzero(mask, axis=others), dtype=np.int64)


def _interpolated(volume: Volume, level: Level) -> FloatArray:
    from scipy.ndimage import map_coordinates

    axes = [np.arange(n, dtype=np.float64) for n in level.shape]
    axes[level.layout.normal] = np.array([level.index], dtype=np.float64)
    points = np.stack([*np.meshgrid(*axes, indexing="ij"), np.ones([len(axis) for axis in axes])]).reshape(4, -1)
    at = (np.linalg.inv(volume.affine) @ level.affine @ points)[:3]
    last = np.array(volume.shape)[:, None] - 1
    at = np.where(np.abs(at - np.rint(at)) < 1e-6, np.rint(at), at)
    reached = ((at >= -0.5) & (at <= last + 0.5)).all(axis=0)
    if not reached.any():
        raise BadFile(
            f"{volume.path.name}: does not reach the slice at {level.position_mm:g} mm ({level.layout.plane})"
        )
    at = np.clip(at, 0, last)
    low = np.floor(at.min(axis=1)).astype(int)
    high = np.ceil(at.max(axis=1)).astype(int) + 1
    part = volume.part(tuple(slice(int(a), int(b)) for a, b in zip(low, high, strict=True)))
    values = map_coordinates(part, at - low[:, None], order=1, mode="nearest")
    values[~reached] = np.nan
    shape = [n for axis, n in enumerate(level.shape) if axis != level.layout.normal]
    return np.asarray(values.reshape(shape))
