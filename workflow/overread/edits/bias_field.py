"""The edit `bias-field`: one side of the image brighter than the other, as an uneven coil makes it."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from overread.edits.base import EditSection, Strength

if TYPE_CHECKING:
    from overread.edits.base import Below, FloatArray, Place, Scene

DEGREE = 3
"""Of the polynomial, as in MONAI's RandBiasField."""


class BiasField(EditSection):
    """Values multiplied by the exponential of a smooth random field, a sum of Legendre polynomials."""

    kind: Literal["bias-field"]
    gives: ClassVar[str] = "a smooth field of brightness over the image"
    family: ClassVar[str] = "quality"
    strength: float = Field(
        default=0, ge=0, le=3, description="greatest departure of the field's logarithm: 0.7 doubles or halves"
    )
    seed: int = Field(default=0, ge=0, description="another number gives another field")

    @property
    def nothing(self) -> bool:
        return self.strength == 0

    def words(self) -> str:
        return f"under a bias field of {self.strength:g}" + (f" (seed {self.seed})" if self.seed else "")

    def strengths(self) -> tuple[Strength, ...]:
        return (Strength("strength", self.strength, "bias field, greatest log ratio"),)

    def part(self, below: Below, place: Place, scene: Scene) -> FloatArray:
        """Black stays black: it is what lies above it that is multiplied."""
        import numpy as np

        black = min(scene.low, scene.high)
        return (below(place) - black) * np.exp(self._field(place, scene)) + black

    def _field(self, place: Place, scene: Scene) -> FloatArray:
        import numpy as np

        powers = [
            one for one in itertools.product(range(DEGREE + 1), repeat=len(scene.shape)) if 0 < sum(one) <= DEGREE
        ]
        shape = (DEGREE + 1,) * len(scene.shape)
        drawn = np.zeros(shape)
        coefficients = scene.random("bias-field", self.seed).uniform(-1, 1, len(powers))
        for one, coefficient in zip(powers, coefficients, strict=True):
            drawn[one] = coefficient
        coarse = _legendre(drawn, [np.linspace(-1, 1, 17)] * len(scene.shape))
        axes = [np.linspace(-1, 1, n)[one] if n > 1 else np.zeros(1) for n, one in zip(scene.shape, place, strict=True)]
        return _legendre(drawn * (self.strength / np.abs(coarse).max()), axes)


def _legendre(coefficients: FloatArray, axes: list[FloatArray]) -> FloatArray:
    import numpy as np

    values = coefficients
    for axis in axes:
        values = np.tensordot(values, np.polynomial.legendre.legvander(axis, DEGREE), axes=(0, 1))
    return np.asarray(values)
