"""The plane that divides a head or a chest into its two sides, fitted to the values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from overread.edits.base import NotEdited

if TYPE_CHECKING:
    from overread.edits.base import FloatArray, Scene

COARSE = {"mm": 5.0, "pixels": 12.0}
"""Step of the grid on which the plane is fitted."""
STEEPEST = 0.25
"""Slope from which on a fitted plane is none that divides a head: 14 degrees."""


@dataclass(frozen=True)
class Midplane:
    """Points with `normal` . x = `offset`, in the unit of the spacing along the array's axes."""

    normal: FloatArray
    offset: float

    def reflected(self, points: FloatArray) -> FloatArray:
        """Points (axes, ...) on the other side."""
        beyond = np.tensordot(self.normal, points, axes=1) - self.offset
        return np.asarray(points - 2 * beyond * self.normal.reshape(-1, *(1,) * (points.ndim - 1)))


def midplane(scene: Scene) -> Midplane:
    """The plane across which the unedited image is most like itself: where it lies, and in 3-D how it leans.

    raises  NotEdited where no plane near the middle is found
    """
    if "midplane" not in scene.shared:
        scene.shared["midplane"] = _fitted(scene)
    found: Midplane = scene.shared["midplane"]
    return found


def _fitted(scene: Scene) -> Midplane:
    from scipy.ndimage import map_coordinates
    from scipy.optimize import minimize

    steps = [max(1, round(COARSE[scene.unit] / one)) for one in scene.spacing]
    # Counted from the patient's right, back and feet: the same voxels however the array is stored.
    place = tuple(
        slice((n - 1) % step if back else 0, None, step)
        for n, step, back in zip(scene.shape, steps, scene.reversed, strict=True)
    )
    stored = scene.plain(place)
    inside = stored > stored.min() + 0.1 * np.ptp(stored) if scene.organ is None else scene.organ[place]
    if np.count_nonzero(inside) < 50:
        raise NotEdited("too little of the image is seen to tell its two sides apart")
    # Its own range, not that of a window: the plane is the same whatever is shown of it.
    low, high = np.percentile(stored[inside], (1, 99))
    values = np.clip(stored, min(low, 0.0), high)
    spacing = np.array([one * step for one, step in zip(scene.spacing, steps, strict=True)])
    start = np.array([one.start * size for one, size in zip(place, scene.spacing, strict=True)])
    points = np.argwhere(inside).T * spacing[:, None] + start[:, None]
    here, middle = values[inside], points.mean(axis=1)
    others = sorted(
        (axis for axis in range(len(scene.shape)) if axis != scene.side), key=lambda axis: scene.world[axis]
    )
    way = np.where(scene.reversed, -1.0, 1.0)

    def plane(numbers: FloatArray) -> Midplane:
        normal = np.zeros(len(scene.shape))
        normal[scene.side] = 1
        if len(others) == 2:
            normal[others] = -numbers[1:] * way[others] * way[scene.side]
        normal /= np.linalg.norm(normal)
        through = middle.copy()
        through[scene.side] += numbers[0] * way[scene.side]
        return Midplane(normal, float(normal @ through))

    def unlike(numbers: FloatArray) -> float:
        there = (plane(numbers).reflected(points) - start[:, None]) / spacing[:, None]
        return float(
            np.abs(map_coordinates(values, there, order=1, mode="constant", cval=float(values.min())) - here).mean()
        )

    reach = 2 * COARSE[scene.unit]
    leaning = len(others) == 2
    corners = [[0.0, 0, 0], [reach, 0, 0], [0, 0.06, 0], [0, 0, 0.06]] if leaning else [[0.0], [reach]]
    options: Any = {"initial_simplex": corners, "xatol": 2e-3, "fatol": 1e-6 * float(high - low), "maxiter": 120}
    found = minimize(unlike, np.array(corners[0]), method="Nelder-Mead", options=options).x
    extent = float(np.ptp(points[scene.side]))
    if abs(found[0]) > 0.2 * extent or (leaning and np.abs(found[1:]).max() > STEEPEST):
        raise NotEdited("the image has no middle that its two sides could be mirrored across")
    return plane(found)
