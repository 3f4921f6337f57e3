"""Where voxels lie: resampling onto a grid by affines, and turning arrays to the orientation that networks know."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from overread.images.volume import BadFile, BoolArray, FloatArray, Volume

SingleArray = npt.NDArray[np.float32]

TRAINED = ("L", "P", "S")
"""Where indices of the arrays that the networks were trained on grow to: left, back, up (BraTS, UCSF-PDGM)."""

LEAST_REACHED = 0.98
"""Share of the foreground of the grid's own series that another series must reach."""


@dataclass(frozen=True)
class Grid:
    """Of a volume, as it is stored."""

    shape: tuple[int, ...]
    affine: FloatArray  # (4, 4) voxel to RAS+ world, mm

    @classmethod
    def of(cls, volume: Volume) -> Grid:
        return cls(volume.shape, volume.affine)

    def is_that_of(self, volume: Volume) -> bool:
        """Voxel for voxel, to a thousandth of a millimetre."""
        return volume.shape == self.shape and bool(np.allclose(volume.affine, self.affine, atol=1e-3))

    @property
    def spacing_mm(self) -> tuple[float, float, float]:
        x, y, z = (float(size) for size in np.linalg.norm(self.affine[:3, :3], axis=0))
        return x, y, z

    def turned(self, arrays: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
        """Arrays (..., x, y, z) on this grid with their axes swapped and mirrored to `TRAINED`: no value is changed."""
        return _applied(arrays, self._to_trained())

    def turned_back(self, arrays: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
        """The inverse of `turned`."""
        import nibabel as nib

        own, trained = self._orientations()
        return _applied(arrays, nib.orientations.ornt_transform(trained, own))  # type: ignore[no-untyped-call]

    def _to_trained(self) -> npt.NDArray[np.generic]:
        import nibabel as nib

        own, trained = self._orientations()
        return np.asarray(nib.orientations.ornt_transform(own, trained))  # type: ignore[no-untyped-call]

    def _orientations(self) -> tuple[npt.NDArray[np.generic], npt.NDArray[np.generic]]:
        import nibabel as nib

        own = nib.orientations.io_orientation(self.affine)  # type: ignore[no-untyped-call]
        return np.asarray(own), np.asarray(nib.orientations.axcodes2ornt(TRAINED))  # type: ignore[no-untyped-call]


def _applied(arrays: npt.NDArray[np.generic], orientation: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
    """An orientation of the last three axes."""
    import nibabel as nib

    if arrays.ndim == 3:
        return np.asarray(nib.orientations.apply_orientation(arrays, orientation))  # type: ignore[no-untyped-call]
    return np.stack([_applied(array, orientation) for array in arrays])


def values_of(volume: Volume) -> SingleArray:
    """Scaled values, with 0 exactly where there is no signal: a slope and an intercept may leave 1e-14 there."""
    whole = (slice(None),) * 3
    return np.asarray(np.where(volume.foreground, volume.part(whole), 0.0), dtype=np.float32)


def series_on(volume: Volume, grid: Grid, inside: BoolArray) -> tuple[SingleArray, bool]:
    """A series' values at the voxels of `grid`, and whether it had to be interpolated (linearly) for that.

    inside  the foreground of the grid's own series, on the grid
    raises  BadFile if the series does not reach nearly all of it
    """
    if grid.is_that_of(volume):
        return values_of(volume), False
    reached = _reached(volume, grid, inside)
    if reached < LEAST_REACHED:
        raise BadFile(
            f"{volume.path.name}: lies elsewhere than FLAIR: by their affines it covers {100 * reached:.0f} % of what "
            "FLAIR shows"
        )
    return np.asarray(_interpolated(values_of(volume), volume, grid, order=1), dtype=np.float32), True


def mask_on(volume: Volume, grid: Grid) -> BoolArray:
    """Where a mask is not 0, at the voxels of `grid`: the nearest of its voxels."""
    if grid.is_that_of(volume):
        return volume.labelled
    return np.asarray(_interpolated(volume.labelled.astype(np.float32), volume, grid, order=0) > 0)


def _between(volume: Volume, grid: Grid) -> FloatArray:
    """(4, 4) from voxels of the grid to those of the volume. Rounded, so that whole voxels stay whole."""
    return np.asarray(np.round(np.linalg.inv(volume.affine) @ grid.affine, 9))


def _interpolated(values: SingleArray, volume: Volume, grid: Grid, order: Literal[0, 1]) -> SingleArray:
    """0 outside of the volume."""
    from scipy.ndimage import affine_transform

    between = _between(volume, grid)
    return np.asarray(
        affine_transform(values, between[:3, :3], between[:3, 3], output_shape=grid.shape, order=order, mode="constant")
    )


def _reached(volume: Volume, grid: Grid, inside: BoolArray) -> float:
    """Share of the voxels `inside` that lie within the volume, half a voxel of it included on each side."""
    places = np.argwhere(inside)
    between = _between(volume, grid)
    at = places @ between[:3, :3].T + between[:3, 3]
    within = (at >= -0.5) & (at <= np.array(volume.shape) - 0.5)
    return float(within.all(axis=1).mean()) if len(places) else 0.0
