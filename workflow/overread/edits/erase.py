"""The edit `erase`: the lesion replaced by what healthy tissue would show there."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from overread.edits.base import EditSection, Expected
from overread.edits.shared.region import FILLS, blended, filled, region

if TYPE_CHECKING:
    from overread.edits.base import Below, FloatArray, Place, Scene

LABEL = "of the mask: a number or a name of its labels; without it all of them"


class Erase(EditSection):
    """The lesion replaced by the other side's mirror image, matched in intensity, or by a surface from around it."""

    kind: Literal["erase"]
    gives: ClassVar[str] = "the lesion replaced by healthy tissue"
    family: ClassVar[str] = "lesion"
    label: str | None = Field(default=None, description=LABEL)
    by: FILLS = Field(default="mirror", description="mirror: what the other side shows; around: from what lies around")
    feather: float = Field(default=2.0, ge=0, le=50, description="width of the edge, in mm (pixels where not known)")

    @property
    def nothing(self) -> bool:
        return False

    @property
    def expected(self) -> Expected:
        """What is asked about the very finding whose boxes are erased must be denied."""
        return "no-finding" if self.label is not None else None

    def words(self) -> str:
        which = "the lesion" if self.label is None else f"the lesion's part {self.label}"
        return f"with {which} erased (filled from {'the other side' if self.by == 'mirror' else 'around it'})"

    def short(self) -> str:
        return "lesion erased" if self.label is None else f"part {self.label} of the lesion erased"

    def part(self, below: Below, place: Place, scene: Scene) -> FloatArray:
        key = (self, below)
        if key not in scene.kept:
            lesion = scene.find(None)
            one = region(scene.find(self.label), scene, self.feather, avoid=lesion)
            scene.kept[key] = (one, filled(below, one, scene, self.by, lesion))
        one, instead = scene.kept[key]
        return blended(below, place, one, instead)

    def labels(self, below: Below, place: Place, scene: Scene) -> FloatArray:
        values = below(place).copy()
        values[scene.find(self.label)[place]] = 0
        return values
