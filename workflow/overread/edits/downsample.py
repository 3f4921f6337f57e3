"""The edit `downsample`: fewer and larger pixels, brought back to the size of the scan."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from overread.edits.base import EditSection, Strength, within

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from overread.edits.base import Below, FloatArray, Place, Scene


class Downsample(EditSection):
    """Each block of `factor` x `factor` pixels of the picture shows its mean."""

    kind: Literal["downsample"]
    gives: ClassVar[str] = "blocks of pixels replaced by their mean"
    family: ClassVar[str] = "quality"
    factor: int = Field(default=1, ge=1, le=512, description="pixels of the scan per side of a block")

    @property
    def nothing(self) -> bool:
        return self.factor == 1

    def words(self) -> str:
        return f"downsampled by {self.factor}"

    def strengths(self) -> tuple[Strength, ...]:
        return (Strength("factor", self.factor, "downsampled by"),)

    def part(self, below: Below, place: Place, scene: Scene) -> FloatArray:
        import numpy as np

        ends = {axis: self._ends(scene, axis) for axis in (scene.down, scene.right)}
        whole = tuple(
            slice(int(ends[axis][ends[axis] <= one.start][-1]), int(ends[axis][ends[axis] >= one.stop][0]))
            if axis in ends
            else one
            for axis, one in enumerate(place)
        )
        values = below(whole)
        for axis, edges in ends.items():
            inside = edges[(edges >= whole[axis].start) & (edges <= whole[axis].stop)] - whole[axis].start
            sizes = np.diff(inside)
            shape = [-1 if each == axis else 1 for each in range(values.ndim)]
            means = np.add.reduceat(values, inside[:-1], axis=axis) / sizes.reshape(shape)
            values = np.repeat(means, sizes, axis=axis)
        return np.asarray(values[within(place, whole)])

    def _ends(self, scene: Scene, axis: int) -> npt.NDArray[np.intp]:
        """Where blocks begin and end along an axis: they are counted from the picture's top and left."""
        import numpy as np

        n = scene.shape[axis]
        ends = np.unique(np.append(np.arange(0, n, self.factor), n))
        return n - ends[::-1] if scene.flipped(axis) else ends
