"""Which slice of a volume is shown, and how it lies on the picture.

Pictures follow the radiological convention: the patient's right is on the left of axial and coronal pictures, the
front is on top of axial and on the left of sagittal ones, the top of the head is on top of coronal and sagittal ones.
What an index means is asked of the affine, never assumed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeVar

import numpy as np
import numpy.typing as npt

from overread.config import Plane
from overread.images.volume import BadFile, BoolArray, FloatArray, Volume

T = TypeVar("T", bound=np.generic)
IntArray = npt.NDArray[np.int64]

# World axes of nibabel's RAS+ coordinates: normal of the plane, downwards and rightwards on the picture. On both
# picture axes the RAS coordinate falls: rightwards is to the patient's left or back, downwards to the back or the feet.
WORLD_AXES: dict[Plane, tuple[int, int, int]] = {"axial": (2, 1, 0), "coronal": (1, 2, 0), "sagittal": (0, 2, 1)}

ENDS = ("R to L", "A to P", "S to I")
"""How a picture axis along each world axis runs: from the patient's right, front (anterior) or top (superior)."""

OBLIQUE = 0.5
"""Degrees between a grid and the patient's axes from which on a picture is said to be oblique."""


class NotShown(BadFile):
    """A sound file that shows nothing at a level."""


@dataclass(frozen=True)
class Layout:
    """How a volume's array lies on a picture of a plane."""

    plane: Plane
    normal: int  # array axis across the slices
    down: int  # array axis of the picture's rows
    right: int  # array axis of the picture's columns
    flip_down: bool
    flip_right: bool
    rising: bool  # whether the slices' index grows as LPS does: to the left, to the back, upwards

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
    upwards = direction[normal] > 0
    return Layout(
        plane,
        normal,
        down,
        right,
        flip_down=bool(direction[down] > 0),
        flip_right=bool(direction[right] > 0),
        rising=bool(upwards if plane == "axial" else not upwards),
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
    def orientation(self) -> str:
        """Of the picture, with DICOM's letters: `left to right: R to L; top to bottom: A to P`."""
        _, down, right = WORLD_AXES[self.layout.plane]
        text = f"left to right: {ENDS[right]}; top to bottom: {ENDS[down]}"
        axes = np.abs(self.affine[:3, :3]) / np.linalg.norm(self.affine[:3, :3], axis=0)
        tilt = float(np.degrees(np.arccos(np.clip(axes.max(axis=0).min(), 0, 1))))
        return text if tilt < OBLIQUE else f"{text}; {tilt:.1f} degrees oblique"

    @property
    def key(self) -> tuple[object, ...]:
        """What tells it from other levels."""
        return self.layout.plane, self.index, self.shape, self.affine.tobytes()

    def is_on_grid_of(self, volume: Volume) -> bool:
        """Whether the volume has the level's grid, to a thousandth of a millimetre."""
        return volume.shape == self.shape and bool(np.abs(volume.affine - self.affine).max() < 1e-3)

    @property
    def spacing_mm(self) -> tuple[float, float]:
        """Height and width of a pixel."""
        sizes = np.linalg.norm(self.affine[:3, :3], axis=0)
        return float(sizes[self.layout.down]), float(sizes[self.layout.right])


def most(counts: IntArray, *, rising: bool = True) -> int:
    """The index of the greatest count; of several, the middle one.

    Of two middle ones it is the one nearer to the right, the front or the feet, however the array is stored.

    counts  (n,) voxels of interest by slice
    rising  `Layout.rising`
    """
    best = np.flatnonzero(counts == counts.max())
    return int(best[(len(best) - rising) // 2])


def largest_tumour(tumour: Volume, brain: Volume | None, plane: Plane, label: int | None = None) -> Level:
    """The slice with the most tumour voxels, or the most of one label.

    Without that label it is the slice with the most tumour, and without any tumour that with the most brain;
    `chosen_by` says so.

    label   1 necrotic core, 2 oedema, 4 enhancing tumour; none for the whole tumour
    raises  BadFile for a mask whose values are no labels, and for no tumour and no brain mask
    """
    labels, relabelled = tumour.labels
    axes = layout(tumour.affine, plane)
    note = "".join(f"; label {theirs} of the mask read as {ours}" for theirs, ours in relabelled.items())
    if tumour.meanings is not None:
        note = f"{note}{' by the config' if note else ''}"
    wanted = _counts(labels == label, axes.normal) if label is not None else None
    if wanted is not None and wanted.any():
        return Level(
            axes, most(wanted, rising=axes.rising), tumour.affine, tumour.shape, f"most voxels of label {label}{note}"
        )
    counts = _counts(labels != 0, axes.normal)
    if counts.any():
        lacking = "" if label is None else f"no label {label}: "
        return Level(
            axes, most(counts, rising=axes.rising), tumour.affine, tumour.shape, f"{lacking}most tumour voxels{note}"
        )
    if brain is None:
        raise BadFile(f"{tumour.path.name}: holds no tumour, and there is no brain mask to choose the slice by")
    axes = layout(brain.affine, plane)
    index = most(_counts(brain.labelled, axes.normal), rising=axes.rising)
    return Level(axes, index, brain.affine, brain.shape, "no tumour: most brain voxels")


def middle(volume: Volume, plane: Plane, *, is_mask: bool) -> Level:
    """The middle slice of what is not 0 in `volume`: a brain mask, or a skull-stripped series."""
    axes = layout(volume.affine, plane)
    inside = np.flatnonzero(_counts(volume.labelled if is_mask else volume.foreground, axes.normal))
    if inside.size == 0:
        raise BadFile(f"{volume.path.name}: holds nothing to choose a slice by")
    index = int(inside[0] + inside[-1] + (not axes.rising)) // 2
    return Level(axes, index, volume.affine, volume.shape, "middle of the brain")


def cut(volume: Volume, level: Level, *, nearest: bool = False) -> FloatArray:
    """The picture plane of `level` through `volume`, (rows, columns), scaled values.

    On the grid that chose the level it is the slice of that index. On any other grid the volume is looked up at the
    world coordinates of the level's pixels; NaN where it does not reach.

    nearest  the value of the nearest voxel, for masks; else values are interpolated linearly
    raises   NotShown if it does not reach any pixel
    """
    if level.is_on_grid_of(volume):
        return level.layout.place(volume.slice(level.layout.normal, level.index))
    return level.layout.place(_interpolated(volume, level, order=0 if nearest else 1))


def _counts(mask: BoolArray, normal: int) -> IntArray:
    """How many are true in each slice across axis `normal`."""
    others = tuple(axis for axis in range(3) if axis != normal)
    return np.asarray(np.count_nonzero(mask, axis=others), dtype=np.int64)


def _interpolated(volume: Volume, level: Level, order: Literal[0, 1]) -> FloatArray:
    from scipy.ndimage import map_coordinates

    axes = [np.arange(n, dtype=np.float64) for n in level.shape]
    axes[level.layout.normal] = np.array([level.index], dtype=np.float64)
    points = np.stack([*np.meshgrid(*axes, indexing="ij"), np.ones([len(axis) for axis in axes])]).reshape(4, -1)
    at = (np.linalg.inv(volume.affine) @ level.affine @ points)[:3]
    last = np.array(volume.shape)[:, None] - 1
    at = np.where(np.abs(at - np.rint(at)) < 1e-6, np.rint(at), at)
    reached = ((at >= -0.5) & (at <= last + 0.5)).all(axis=0)
    if not reached.any():
        raise NotShown(
            f"{volume.path.name}: does not reach the slice at {level.position_mm:g} mm ({level.layout.plane})"
        )
    at = np.clip(at, 0, last)
    low = np.floor(at.min(axis=1)).astype(int)
    high = np.ceil(at.max(axis=1)).astype(int) + 1
    part = volume.part(tuple(slice(int(a), int(b)) for a, b in zip(low, high, strict=True)))
    values = map_coordinates(part, at - low[:, None], order=order, mode="nearest")
    values[~reached] = np.nan
    shape = [n for axis, n in enumerate(level.shape) if axis != level.layout.normal]
    return np.asarray(values.reshape(shape))
