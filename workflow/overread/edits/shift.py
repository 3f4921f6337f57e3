"""The edit `shift`: the image moved by whole pixels. By one it is a placebo: no answer should change."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from overread.edits.base import EditSection, Expected, Strength

if TYPE_CHECKING:
    from overread.edits.base import Below, FloatArray, Place, Scene


class Shift(EditSection):
    """The image moved to the picture's right and downwards; what comes in from the edge is black."""

    kind: Literal["shift"]
    gives: ClassVar[str] = "the image moved by whole pixels of the scan"
    family: ClassVar[str] = "geometry"
    expects: ClassVar[Expected] = "stay"
    pixels: int = Field(default=1, ge=-4096, le=4096, description="to the right on the picture; negative to the left")
    down: int = Field(default=0, ge=-4096, le=4096, description="downwards, in pixels; negative upwards")

    @property
    def nothing(self) -> bool:
        return self.pixels == 0 and self.down == 0

    def words(self) -> str:
        sideways = f"{abs(self.pixels)} px to the {'right' if self.pixels > 0 else 'left'} of the picture"
        upright = f"{abs(self.down)} px {'down' if self.down > 0 else 'up'}"
        moved = [text for text, by in ((sideways, self.pixels), (upright, self.down)) if by]
        return f"moved by {' and '.join(moved) or 'nothing'}"

    def strengths(self) -> tuple[Strength, ...]:
        return (Strength("pixels", self.pixels, "shift, pixels"),)

    def short(self) -> str:
        return f"moved by {self.pixels}, {self.down} px"

    def part(self, below: Below, place: Place, scene: Scene) -> FloatArray:
        return self._moved(below, place, scene, scene.low)

    def labels(self, below: Below, place: Place, scene: Scene) -> FloatArray:
        return self._moved(below, place, scene, 0.0)

    def _moved(self, below: Below, place: Place, scene: Scene, edge: float) -> FloatArray:
        import numpy as np

        by = [0] * len(scene.shape)
        by[scene.right] = -self.pixels if scene.flip_right else self.pixels
        by[scene.down] = -self.down if scene.flip_down else self.down
        moved = np.full([one.stop - one.start for one in place], edge)
        wanted = [(one.start - step, one.stop - step) for one, step in zip(place, by, strict=True)]
        there = [(max(0, a), min(n, b)) for (a, b), n in zip(wanted, scene.shape, strict=True)]
        if all(a < b for a, b in there):
            into = tuple(slice(a - start, b - start) for (a, b), (start, _) in zip(there, wanted, strict=True))
            moved[into] = below(tuple(slice(a, b) for a, b in there))
        return moved
