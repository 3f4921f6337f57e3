"""The edit `only`: the lesion kept, all else of the organ flattened to one grey."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from overread.edits.base import EditSection, widened
from overread.edits.shared.region import bounds

if TYPE_CHECKING:
    from overread.edits.base import Below, FloatArray, Place, Scene


class Only(EditSection):
    """What is not the lesion has the organ's median, what is outside of the organ stays as it is."""

    kind: Literal["only"]
    gives: ClassVar[str] = "the lesion alone, all else flattened"
    family: ClassVar[str] = "lesion"
    feather: float = Field(default=2.0, ge=0, le=50, description="width of the edge, in mm (pixels where not known)")

    @property
    def nothing(self) -> bool:
        return False

    def words(self) -> str:
        return "with nothing but the lesion, all else flattened"

    def short(self) -> str:
        return "lesion alone"

    def part(self, below: Below, place: Place, scene: Scene) -> FloatArray:
        import numpy as np
        from scipy.ndimage import distance_transform_edt

        key = (self, below)
        if key not in scene.kept:
            lesion = scene.find(None)
            margins = tuple(int(np.ceil(step)) + 1 for step in scene.steps(self.feather))
            near = widened(bounds(lesion), margins, scene.shape)
            keep = np.zeros(scene.shape)
            distance = distance_transform_edt(~lesion[near], sampling=scene.spacing)
            keep[near] = np.clip(1 - distance / self.feather, 0, 1) if self.feather else lesion[near]
            organ = np.ones(scene.shape, dtype=np.bool_) if scene.organ is None else scene.organ
            healthy = organ & ~lesion
            level = float(np.median(below(scene.everything)[healthy])) if healthy.any() else scene.low
            scene.kept[key] = (np.where(lesion, 1.0, keep), organ | lesion, level)
        keep, organ, level = scene.kept[key]
        values, weight = below(place), keep[place]
        return np.where(organ[place] & (weight < 1), values * weight + level * (1 - weight), values)
