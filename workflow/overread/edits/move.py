"""The edit `move`: the lesion at its mirror place, healthy tissue at its own. The side swaps, all else stays."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from overread.edits.base import EditSection, Expected, NotEdited
from overread.edits.shared.midplane import midplane
from overread.edits.shared.region import blended, from_other_side, region

if TYPE_CHECKING:
    from overread.edits.base import Below, BoolArray, FloatArray, Place, Scene


class Move(EditSection):
    """The lesion and its mirror place exchanged, each matched to what lies around its new place."""

    kind: Literal["move"]
    gives: ClassVar[str] = "the lesion moved to its mirror place"
    family: ClassVar[str] = "lesion"
    expects: ClassVar[Expected] = "swap-sides"
    feather: float = Field(default=2.0, ge=0, le=50, description="width of the edge, in mm (pixels where not known)")

    @property
    def nothing(self) -> bool:
        return False

    def words(self) -> str:
        return "with the lesion moved to its mirror place on the other side"

    def short(self) -> str:
        return "lesion on the other side"

    def part(self, below: Below, place: Place, scene: Scene) -> FloatArray:
        import numpy as np

        key = (self, below)
        if key not in scene.kept:
            lesion = scene.find(None)
            there = mirrored_mask(lesion, scene)
            if (lesion & there).any():
                raise NotEdited("the lesion reaches its own mirror place on the other side")
            own = region(lesion, scene, self.feather)
            new = region(there, scene, self.feather, avoid=lesion)
            nothing = np.zeros_like(lesion)
            scene.kept[key] = (
                (own, from_other_side(below, own, scene, lesion)),
                # The lesion itself keeps its brightness.
                (new, from_other_side(below, new, scene, nothing, match=False)),
            )
        first, second = scene.kept[key]

        def once(part: Place) -> FloatArray:
            return blended(below, part, *first)

        return blended(once, place, *second)

    def labels(self, below: Below, place: Place, scene: Scene) -> FloatArray:
        import numpy as np

        n = scene.shape[scene.side]
        there = tuple(slice(n - one.stop, n - one.start) if a == scene.side else one for a, one in enumerate(place))
        return np.flip(below(there), axis=scene.side)


def mirrored_mask(mask: BoolArray, scene: Scene) -> BoolArray:
    """A mask on the other side of the fitted plane. NotEdited where it would leave the image."""
    import numpy as np
    from scipy.ndimage import map_coordinates

    places = np.argwhere(mask).T.astype(np.float64)
    spacing = np.array(scene.spacing)[:, None]
    mirrored = midplane(scene).reflected(places * spacing) / spacing
    low = np.floor(mirrored.min(axis=1)).astype(int) - 1
    high = np.ceil(mirrored.max(axis=1)).astype(int) + 2
    if (low < 0).any() or (high > np.array(scene.shape)).any():
        raise NotEdited("the region's mirror place lies outside of the image")
    axes = np.meshgrid(*(np.arange(a, b, dtype=np.float64) for a, b in zip(low, high, strict=True)), indexing="ij")
    wide = spacing.reshape(-1, *(1,) * len(scene.shape))
    back = midplane(scene).reflected(np.stack(axes) * wide) / wide
    found = np.zeros(mask.shape, dtype=np.bool_)
    box = tuple(slice(int(a), int(b)) for a, b in zip(low, high, strict=True))
    found[box] = map_coordinates(mask.astype(np.uint8), back, order=0, mode="constant", cval=0) > 0
    return found
