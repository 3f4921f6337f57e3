"""The edit `rotate`: the picture turned about its middle."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from overread.edits.base import EditSection, Expected, Strength, within

if TYPE_CHECKING:
    from overread.edits.base import Below, FloatArray, Place, Scene


class Rotate(EditSection):
    """The picture turned within its plane; corners that come in from outside are black."""

    kind: Literal["rotate"]
    gives: ClassVar[str] = "the picture turned within its plane"
    family: ClassVar[str] = "geometry"
    expects: ClassVar[Expected] = "stay"
    degrees: float = Field(default=0, ge=-180, le=180, description="clockwise on the picture")

    @property
    def nothing(self) -> bool:
        return self.degrees == 0

    def words(self) -> str:
        way = "clockwise" if self.degrees >= 0 else "counter-clockwise"
        return f"turned by {abs(self.degrees):g}° {way}"

    def strengths(self) -> tuple[Strength, ...]:
        return (Strength("degrees", self.degrees, "turned by, degrees"),)

    def part(self, below: Below, place: Place, scene: Scene) -> FloatArray:
        return self._turned(below, place, scene, order=1, outside=scene.low)

    def labels(self, below: Below, place: Place, scene: Scene) -> FloatArray:
        return self._turned(below, place, scene, order=0, outside=0.0)

    def _turned(self, below: Below, place: Place, scene: Scene, *, order: Literal[0, 1], outside: float) -> FloatArray:
        """Each pixel looked up where it lay before, in steps of equal length whatever the spacing."""
        import numpy as np
        from scipy.ndimage import map_coordinates

        whole = scene.in_plane(place)
        values = below(whole)
        turn = np.radians(self.degrees)
        # A reversed axis turns the sense of rotation round.
        turn = -turn if scene.flip_down != scene.flip_right else turn
        at = list(np.meshgrid(*(np.arange(n, dtype=np.float64) for n in values.shape), indexing="ij"))
        middle = {axis: (scene.shape[axis] - 1) / 2 for axis in (scene.down, scene.right)}
        down, right = ((at[axis] - middle[axis]) * scene.spacing[axis] for axis in (scene.down, scene.right))
        before = down * np.cos(turn) - right * np.sin(turn), right * np.cos(turn) + down * np.sin(turn)
        for axis, length in zip((scene.down, scene.right), before, strict=True):
            at[axis] = length / scene.spacing[axis] + middle[axis]
        found: FloatArray = map_coordinates(values, np.stack(at), order=order, mode="constant", cval=outside)
        return found[within(place, whole)]
