"""A region whose values are replaced: its feathered edge, and what takes its place.

Outside the feather nothing changes at all. What is put in is matched to what lies around the region: mean and spread of
a ring of healthy tissue, so that neither a coil's shading nor the two sides' difference draws its outline.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from overread.edits.base import NotEdited, widened, within
from overread.edits.shared.midplane import midplane

if TYPE_CHECKING:
    from overread.edits.base import Below, BoolArray, FloatArray, Place, Scene

FILLS = Literal["mirror", "around"]
RING = 3.0
"""How many feathers wide the ring is."""
MOST_GAIN = 2.0


@dataclass(frozen=True)
class Region:
    """A box of the array that holds a region and the ring around it.

    weight    in the box: 1 inside the region, falling to 0 over the feather
    core      the region itself
    ring      healthy tissue around it, beyond the feather
    """

    place: Place
    weight: FloatArray
    core: BoolArray
    ring: BoolArray


def region(mask: BoolArray, scene: Scene, feather: float, avoid: BoolArray | None = None) -> Region:
    """The region of a mask (of the array's shape, not empty).

    feather   its width, in the unit of the spacing
    avoid     what the ring may not hold: the lesion, where the region is another
    """
    from scipy.ndimage import distance_transform_edt

    box = bounds(mask)
    width = feather * (1 + RING) if feather else RING
    margins = tuple(int(np.ceil(step)) + 1 for step in scene.steps(width))
    place = widened(box, margins, scene.shape)
    core = mask[place]
    distance = distance_transform_edt(~core, sampling=scene.spacing)
    weight = np.where(core, 1.0, np.clip(1 - distance / feather, 0, 1) if feather else 0.0)
    ring = (distance > feather) & (distance <= width)
    if scene.organ is not None:
        ring &= scene.organ[place]
    if avoid is not None:
        ring &= ~avoid[place]
    return Region(place, weight, core, ring)


def bounds(mask: BoolArray) -> Place:
    """The smallest box that holds a mask, which is not empty."""
    axes = range(mask.ndim)
    ends = [np.flatnonzero(mask.any(axis=tuple(other for other in axes if other != axis))) for axis in axes]
    return tuple(slice(int(one[0]), int(one[-1]) + 1) for one in ends)


def blended(below: Below, place: Place, one: Region, filled: FloatArray) -> FloatArray:
    """The values of a part, those of the region's box replaced by `filled` as far as its weight goes."""
    values = below(place)
    both = tuple(slice(max(a.start, b.start), min(a.stop, b.stop)) for a, b in zip(place, one.place, strict=True))
    if any(side.start >= side.stop for side in both):
        return values
    values = values.copy()
    here, there = within(both, place), within(both, one.place)
    weight = one.weight[there]
    # Where the weight is 0 not even a rounding may change what is there.
    values[here] = np.where(weight > 0, values[here] * (1 - weight) + filled[there] * weight, values[here])
    return values


def filled(below: Below, one: Region, scene: Scene, by: FILLS, lesion: BoolArray) -> FloatArray:
    """What the region's box shows instead.

    lesion    what may not be copied in: NotEdited where the mirrored region holds some of it
    """
    return from_other_side(below, one, scene, lesion) if by == "mirror" else from_around(below(one.place), one, scene)


def from_other_side(below: Below, one: Region, scene: Scene, lesion: BoolArray, *, match: bool = True) -> FloatArray:
    """The box as the other side shows it.

    match   whether its mean and spread are made those of the region's ring
    raises  NotEdited where it holds some of the lesion, or lies outside of the image
    """
    from scipy.ndimage import map_coordinates

    axes = np.meshgrid(*(np.arange(side.start, side.stop, dtype=np.float64) for side in one.place), indexing="ij")
    spacing = np.array(scene.spacing).reshape(-1, *(1,) * len(scene.shape))
    there = midplane(scene).reflected(np.stack(axes) * spacing) / spacing
    last = np.array(scene.shape).reshape(spacing.shape) - 1
    reached = ((there >= 0) & (there <= last)).all(axis=0)
    if not reached[one.weight > 0].all():
        raise NotEdited("the region's mirror place lies outside of the image")
    there = np.clip(there, 0, last)
    nearest = tuple(np.rint(there).astype(np.intp))
    if lesion[nearest][one.weight > 0].any():
        raise NotEdited("the lesion reaches its own mirror place on the other side: there is nothing healthy to copy")
    flat = there.reshape(len(scene.shape), -1)
    box = tuple(
        slice(int(np.floor(a)), int(np.ceil(b)) + 1) for a, b in zip(flat.min(axis=1), flat.max(axis=1), strict=True)
    )
    starts = np.array([side.start for side in box]).reshape(spacing.shape)
    mirrored: FloatArray = map_coordinates(below(box), there - starts, order=1, mode="nearest")
    if not match:
        return mirrored
    return _matched(mirrored, below(one.place), one.ring & ~lesion[nearest])


def _matched(mirrored: FloatArray, own: FloatArray, ring: BoolArray) -> FloatArray:
    if np.count_nonzero(ring) < 20:
        return mirrored
    here, there = own[ring], mirrored[ring]
    gain = float(np.clip(here.std() / max(there.std(), 1e-9), 1 / MOST_GAIN, MOST_GAIN)) if there.std() else 1.0
    return np.asarray((mirrored - there.mean()) * gain + here.mean())


def from_around(values: FloatArray, one: Region, scene: Scene) -> FloatArray:
    """The region's box with the smoothest surface over the region that meets what lies around it, slice by slice."""
    normal = None if values.ndim == 2 else ({0, 1, 2} - {scene.down, scene.right}).pop()
    found = values.copy()
    hole = one.weight > 0
    if normal is None:
        return _smoothest(found, hole)
    for index in range(values.shape[normal]):
        at = tuple(index if axis == normal else slice(None) for axis in range(3))
        if hole[at].any():
            found[at] = _smoothest(values[at], hole[at])
    return found


def _smoothest(values: FloatArray, hole: BoolArray) -> FloatArray:
    """(rows, columns) with the harmonic function of the border's values inside `hole`."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.linalg import spsolve

    number = np.full(values.shape, -1)
    number[hole] = np.arange(np.count_nonzero(hole))
    rows, columns = np.nonzero(hole)
    here = number[rows, columns]
    degree, known = np.zeros(here.size), np.zeros(here.size)
    entries: list[tuple[Any, Any]] = []
    for dy, dx in ((0, 1), (0, -1), (1, 0), (-1, 0)):
        y, x = rows + dy, columns + dx
        there = (y >= 0) & (y < values.shape[0]) & (x >= 0) & (x < values.shape[1])
        degree += there
        y, x = np.where(there, y, rows), np.where(there, x, columns)
        unknown = there & hole[y, x]
        known += np.where(there & ~hole[y, x], values[y, x], 0)
        entries.append((here[unknown], number[y, x][unknown]))
    if not (degree > 0).all() or (known.size and not hole.size - np.count_nonzero(hole)):
        raise NotEdited("the region fills the whole image: there is nothing around it")
    i = np.concatenate([here, *(one for one, _ in entries)])
    j = np.concatenate([here, *(other for _, other in entries)])
    weights = np.concatenate([degree, -np.ones(i.size - here.size)])
    found = values.copy()
    found[hole] = spsolve(coo_matrix((weights, (i, j))).tocsc(), known)
    return found
