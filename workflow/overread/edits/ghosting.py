"""The edit `ghosting`: fainter copies of the image along the phase-encoding direction, as from periodic motion."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from overread.edits.base import EditSection, Strength, within

if TYPE_CHECKING:
    from overread.edits.base import Below, FloatArray, Place, Scene


class Ghosting(EditSection):
    """Every n-th line of k-space made weaker or stronger, which gives n copies over the picture's height."""

    kind: Literal["ghosting"]
    gives: ClassVar[str] = "ghosts of the image from lines of k-space"
    family: ClassVar[str] = "quality"
    intensity: float = Field(default=0, ge=0, le=2, description="by what share every n-th line of k-space is weakened")
    ghosts: int = Field(default=4, ge=2, le=32, description="n: how many copies there are over the picture's height")

    @property
    def nothing(self) -> bool:
        return self.intensity == 0

    def words(self) -> str:
        return f"with {self.ghosts} ghosts of intensity {self.intensity:g}"

    def strengths(self) -> tuple[Strength, ...]:
        return (Strength("intensity", self.intensity, "ghosting intensity"),)

    def part(self, below: Below, place: Place, scene: Scene) -> FloatArray:
        """The lines lie along the picture's rows; the middle of k-space, which holds the mean, is left alone."""
        import numpy as np

        whole = scene.in_plane(place)
        black = min(scene.low, scene.high)
        lines = np.fft.fft(below(whole) - black, axis=scene.down)
        weak = np.arange(scene.height) % self.ghosts == 0
        weak[0] = False
        shape = [-1 if axis == scene.down else 1 for axis in range(lines.ndim)]
        weights = np.where(weak, 1 - self.intensity, 1.0).reshape(shape)
        return (np.abs(np.fft.ifft(lines * weights, axis=scene.down)) + black)[within(place, whole)]
