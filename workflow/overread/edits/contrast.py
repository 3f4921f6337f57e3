"""The edit `contrast`: a gamma between black and white."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from overread.edits.base import EditSection, Strength

if TYPE_CHECKING:
    from overread.edits.base import Below, FloatArray, Place, Scene


class Contrast(EditSection):
    """Grey levels between black and white bent by a power; black and white stay."""

    kind: Literal["contrast"]
    gives: ClassVar[str] = "grey levels bent by a gamma"
    family: ClassVar[str] = "quality"
    gamma: float = Field(default=1, gt=0, le=10, description="the exponent: below 1 brighter, above 1 darker")

    @property
    def nothing(self) -> bool:
        return self.gamma == 1

    def words(self) -> str:
        return f"with a gamma of {self.gamma:g}"

    def strengths(self) -> tuple[Strength, ...]:
        return (Strength("gamma", self.gamma, "gamma"),)

    def part(self, below: Below, place: Place, scene: Scene) -> FloatArray:
        import numpy as np

        share = np.clip((below(place) - scene.low) / scene.range, 0, 1)
        return scene.low + scene.range * share**self.gamma
