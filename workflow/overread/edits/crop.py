"""The edit `crop`: what lies outside the middle of the picture is black. The size stays."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from overread.edits.base import EditSection, Strength

if TYPE_CHECKING:
    from overread.edits.base import Below, BoolArray, FloatArray, Place, Scene


class Crop(EditSection):
    """A border of the picture made black on all four sides."""

    kind: Literal["crop"]
    gives: ClassVar[str] = "the picture's border made black"
    family: ClassVar[str] = "geometry"
    percent: float = Field(default=0, ge=0, lt=50, description="of width and height, from each of the four sides")

    @property
    def nothing(self) -> bool:
        return self.percent == 0

    def words(self) -> str:
        return f"with {self.percent:g} % cut off on each side"

    def strengths(self) -> tuple[Strength, ...]:
        return (Strength("percent", self.percent, "cut off per side, %"),)

    def part(self, below: Below, place: Place, scene: Scene) -> FloatArray:
        return self._cut(below, place, scene, scene.low)

    def labels(self, below: Below, place: Place, scene: Scene) -> FloatArray:
        return self._cut(below, place, scene, 0.0)

    def _cut(self, below: Below, place: Place, scene: Scene, outside: float) -> FloatArray:
        import numpy as np

        values = below(place).copy()
        kept = np.broadcast_to(scene.across(self._middle(scene), place), values.shape)
        values[~kept] = outside
        return values

    def _middle(self, scene: Scene) -> BoolArray:
        import numpy as np

        x, y = ((np.arange(n) + 0.5) / n for n in (scene.width, scene.height))
        edge = self.percent / 100
        return ((y > edge) & (y < 1 - edge))[:, None] & ((x > edge) & (x < 1 - edge))[None, :]
