"""The edit `mirror`: left and right exchanged. The answer about a side must swap, every other must stay."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from overread.edits.base import EditSection, Expected

if TYPE_CHECKING:
    from overread.edits.base import Below, FloatArray, Place, Scene


class Mirror(EditSection):
    """The image mirrored, so that the patient's left lies where the right was."""

    kind: Literal["mirror"]
    gives: ClassVar[str] = "the image mirrored from left to right"
    family: ClassVar[str] = "geometry"
    expects: ClassVar[Expected] = "swap-sides"

    @property
    def nothing(self) -> bool:
        return False

    def words(self) -> str:
        return "mirrored left to right"

    def short(self) -> str:
        return "mirrored"

    def part(self, below: Below, place: Place, scene: Scene) -> FloatArray:
        """The array's own middle is the mirror: done twice it gives back every value."""
        import numpy as np

        n = scene.shape[scene.side]
        there = tuple(
            slice(n - one.stop, n - one.start) if axis == scene.side else one for axis, one in enumerate(place)
        )
        return np.flip(below(there), axis=scene.side)

    def labels(self, below: Below, place: Place, scene: Scene) -> FloatArray:
        return self.part(below, place, scene)
