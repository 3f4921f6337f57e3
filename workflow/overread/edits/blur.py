"""The edit `blur`: a Gaussian blur, in every direction that the array has."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal, Self

from pydantic import Field, model_validator

from overread.edits.base import EditSection, Strength, widened, within

if TYPE_CHECKING:
    from overread.edits.base import Below, FloatArray, Place, Scene

REACH = 4.0
"""Standard deviations after which a Gaussian is cut off, as in SciPy."""


class Blur(EditSection):
    """A Gaussian blur, its standard deviation in mm, or in pixels of the scan for files that do not tell their size."""

    kind: Literal["blur"]
    gives: ClassVar[str] = "a Gaussian blur"
    family: ClassVar[str] = "quality"
    mm: float = Field(default=0, ge=0, le=100, description="standard deviation in mm")
    pixels: float = Field(default=0, ge=0, le=500, description="standard deviation in pixels or voxels of the scan")

    @model_validator(mode="after")
    def _one_unit(self) -> Self:
        if self.mm and self.pixels:
            raise ValueError("give 'mm' or 'pixels', not both")
        return self

    @property
    def nothing(self) -> bool:
        return self.mm == 0 and self.pixels == 0

    def words(self) -> str:
        return f"blurred by {f'{self.pixels:g} px' if self.pixels else f'{self.mm:g} mm'}"

    def strengths(self) -> tuple[Strength, ...]:
        return (Strength("mm", self.mm, "blur, mm"), Strength("pixels", self.pixels, "blur, pixels"))

    def part(self, below: Below, place: Place, scene: Scene) -> FloatArray:
        from scipy.ndimage import gaussian_filter

        if self.mm:
            scene.needs_mm("the blur")
        sigmas = scene.steps(self.mm) if self.mm else (self.pixels,) * len(scene.shape)
        wide = widened(place, tuple(int(REACH * sigma + 0.5) for sigma in sigmas), scene.shape)
        smooth: FloatArray = gaussian_filter(below(wide), sigmas, mode="nearest", truncate=REACH)
        return smooth[within(place, wide)]
