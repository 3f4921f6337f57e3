"""The edit `erase-control`: a region of the lesion's shape and size without lesion, replaced by the same means."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal, Self

from pydantic import Field, model_validator

from overread.edits.base import EditSection, Expected, NotEdited, widened, within
from overread.edits.erase import LABEL
from overread.edits.move import mirrored_mask
from overread.edits.shared.region import FILLS, blended, bounds, filled, region

if TYPE_CHECKING:
    from overread.edits.base import Below, BoolArray, FloatArray, Place, Scene

MOST_OUTSIDE = 0.02
"""Share of a control region that may lie outside of the organ, where a jagged edge meets another."""


class EraseControl(EditSection):
    """What `erase` does, done to a place without lesion: its mirror place, or a random one of the same slices."""

    kind: Literal["erase-control"]
    gives: ClassVar[str] = "a place without lesion replaced by the same means"
    family: ClassVar[str] = "lesion"
    expects: ClassVar[Expected] = "stay"
    label: str | None = Field(default=None, description=LABEL)
    by: FILLS = Field(default="mirror", description="as of `erase`")
    feather: float = Field(default=2.0, ge=0, le=50, description="width of the edge, in mm (pixels where not known)")
    place: Literal["random", "mirrored"] = Field(
        default="random", description="where: moved within its slices at random, or its mirror place on the other side"
    )
    seed: int = Field(default=0, ge=0, description="of the random place")

    @model_validator(mode="after")
    def _healthy(self) -> Self:
        if self.by == "mirror" and self.place == "mirrored":
            raise ValueError("place: mirrored by: mirror would show the lesion twice; use by: around, or place: random")
        return self

    @property
    def nothing(self) -> bool:
        return False

    def words(self) -> str:
        where = "at a random place" if self.place == "random" else "at its mirror place"
        filler = "the other side" if self.by == "mirror" else "around it"
        return f"with a region of the lesion's shape erased {where} without lesion (filled from {filler})"

    def short(self) -> str:
        return f"control erased ({self.place} place)"

    def part(self, below: Below, place: Place, scene: Scene) -> FloatArray:
        key = (self, below)
        if key not in scene.kept:
            lesion, shape = scene.find(None), scene.find(self.label)
            mask = mirrored_mask(shape, scene) if self.place == "mirrored" else self._moved(shape, lesion, scene)
            if (mask & lesion).any():
                raise NotEdited("the lesion reaches its own mirror place on the other side")
            one = region(mask, scene, self.feather, avoid=lesion)
            scene.kept[key] = (one, filled(below, one, scene, self.by, lesion))
        one, instead = scene.kept[key]
        return blended(below, place, one, instead)

    def _moved(self, shape: BoolArray, lesion: BoolArray, scene: Scene) -> BoolArray:
        """The mask moved within its slices to where neither it nor its mirror place has any lesion.

        raises  NotEdited where there is no such place
        """
        import numpy as np
        from scipy.ndimage import binary_dilation
        from scipy.signal import fftconvolve

        edge = max(1, round(self.feather / min(scene.spacing)))
        box, axes = bounds(shape), (scene.down, scene.right)
        slab = scene.in_plane(box)
        near = widened(slab, (edge,) * len(slab), scene.shape)
        barred = binary_dilation(lesion[near], iterations=edge)
        if self.by == "mirror":
            barred |= binary_dilation(mirrored_mask(lesion, scene)[near], iterations=edge)
        barred = barred[within(slab, near)]
        outside = np.zeros_like(barred) if scene.organ is None else ~scene.organ[slab]
        stamp = np.flip(shape[box].astype(np.float32), axis=axes)
        rest = tuple(axis for axis in range(shape.ndim) if axis not in axes)

        def under(what: BoolArray) -> FloatArray:
            """How many elements of `what` the mask covers, by where its box begins."""
            found = fftconvolve(what.astype(np.float32), stamp, mode="valid", axes=axes)
            return np.asarray(found.sum(axis=rest) if rest else found)

        size = np.count_nonzero(shape)
        free = (under(barred) < 0.5) & (under(outside) <= MOST_OUTSIDE * size + 0.5)
        places = np.argwhere(free)
        if not len(places):
            raise NotEdited("no other place of its slices takes a region of the lesion's size without lesion")
        chosen = places[scene.random("erase-control", self.seed).integers(len(places))]
        ordered = sorted(axes)
        moved = np.zeros_like(shape)
        into = list(box)
        for axis, start in zip(ordered, chosen, strict=True):
            into[axis] = slice(int(start), int(start) + box[axis].stop - box[axis].start)
        moved[tuple(into)] = shape[box]
        return moved
