"""The edit `jpeg`: what lossy compression leaves of the picture."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from overread.edits.base import EditSection, Strength, within

if TYPE_CHECKING:
    from overread.edits.base import Below, FloatArray, Place, Scene


class Jpeg(EditSection):
    """Each slice of the picture compressed by JPEG between its black and white, and read again."""

    kind: Literal["jpeg"]
    gives: ClassVar[str] = "what JPEG compression leaves"
    family: ClassVar[str] = "quality"
    quality: int = Field(default=75, ge=1, le=100, description="100 is nearly lossless, 10 shows blocks")

    @property
    def nothing(self) -> bool:
        return False

    def words(self) -> str:
        return f"compressed by JPEG of quality {self.quality}"

    def strengths(self) -> tuple[Strength, ...]:
        return (Strength("quality", self.quality, "JPEG quality"),)

    def part(self, below: Below, place: Place, scene: Scene) -> FloatArray:
        import numpy as np

        whole = scene.in_plane(place)
        values = below(whole)
        turned = tuple(axis for axis in (scene.down, scene.right) if scene.flipped(axis))
        rows_first = np.moveaxis(np.flip(values, turned), (scene.down, scene.right), (-2, -1))
        share = np.clip((rows_first - scene.low) / scene.range, 0, 1)
        read = np.stack([self._read(one) for one in share.reshape(-1, scene.height, scene.width)])
        found = scene.low + read.reshape(rows_first.shape) * scene.range
        back = np.flip(np.moveaxis(found, (-2, -1), (scene.down, scene.right)), turned)
        return np.asarray(back[within(place, whole)])

    def _read(self, share: FloatArray) -> FloatArray:
        import numpy as np
        from PIL import Image

        file = io.BytesIO()
        Image.fromarray(np.rint(share * 255).astype(np.uint8)).save(file, format="JPEG", quality=self.quality)
        with Image.open(io.BytesIO(file.getvalue())) as read:
            return np.asarray(read, dtype=np.float64) / 255
