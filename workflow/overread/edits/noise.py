"""The edit `noise`: of a magnitude image Rician, of a radiograph Gaussian."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from overread.edits.base import EditSection, Strength

if TYPE_CHECKING:
    from overread.edits.base import Below, FloatArray, Place, Scene


class Noise(EditSection):
    """Noise of which the standard deviation is a share of the range from black to white."""

    kind: Literal["noise"]
    gives: ClassVar[str] = "noise: Rician for MRI, Gaussian for radiographs"
    family: ClassVar[str] = "quality"
    percent: float = Field(
        default=0, ge=0, le=200, description="standard deviation, in per cent of the range from black to white"
    )
    seed: int = Field(default=0, ge=0, description="another number gives other noise")

    @property
    def nothing(self) -> bool:
        return self.percent == 0

    def words(self) -> str:
        return f"with noise of {self.percent:g} % of the grey range" + (f" (seed {self.seed})" if self.seed else "")

    def strengths(self) -> tuple[Strength, ...]:
        return (Strength("percent", self.percent, "noise, % of the grey range"),)

    def part(self, below: Below, place: Place, scene: Scene) -> FloatArray:
        """A slice's noise depends on its number alone, so that a part has the noise that the whole would have there."""
        import numpy as np

        values, sigma = below(place), scene.range * self.percent / 100
        normal = 0 if len(scene.shape) == 2 else ({0, 1, 2} - {scene.down, scene.right}).pop()
        if len(scene.shape) == 2:
            drawn = scene.random("noise", self.seed).standard_normal(scene.shape, dtype=np.float32)[place]
            return values + sigma * drawn
        flat = tuple(n for axis, n in enumerate(scene.shape) if axis != normal)
        rest = tuple(one for axis, one in enumerate(place) if axis != normal)
        drawn_by_slice = [
            scene.random("noise", self.seed, index).standard_normal((2, *flat), dtype=np.float32)[(slice(None), *rest)]
            for index in range(place[normal].start, place[normal].stop)
        ]
        channels = np.stack(drawn_by_slice, axis=normal + 1)
        # Noise of both channels of a receiver: what is seen is the length of signal and noise together.
        return np.asarray(np.hypot(values + sigma * channels[0], sigma * channels[1]))
