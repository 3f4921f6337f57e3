"""The view `frontal`: the frontal chest X-ray as a grey picture, air dark and bone bright."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from overread.config.views import ViewSection
from overread.core.records import Modality

if TYPE_CHECKING:
    from PIL import Image

    from overread.core.records import Study
    from overread.images.files import StudyFiles


SMALLEST_EDGE = 16


class FrontalView(ViewSection):
    """The frontal chest X-ray."""

    kind: Literal["frontal"]
    modality: ClassVar[Modality] = "xray"
    gives: ClassVar[str] = "the frontal chest X-ray"
    size: int | None = Field(default=None, ge=16, description="longer edge in pixels; else as scanned")

    @property
    def pictures(self) -> int:
        return 1

    def render(self, study: Study, files: StudyFiles) -> Iterator[tuple[Image.Image, dict[str, object]]]:
        return render_frontal(study, self, files)

    def words(self) -> str:
        return "the frontal radiograph" + (f", {self.size} pixels at its longer edge" if self.size else "")


def render_frontal(
    study: Study, view: FrontalView, files: StudyFiles
) -> Iterator[tuple[Image.Image, dict[str, object]]]:
    """The study's frontal image, mode L, with what it shows. With `view.size` its longer edge has that many pixels.

    raises  BadFile with the file and the reason: missing, truncated, no image, too small, too large, nothing to see
    """
    from overread.edits.base import NotEdited
    from overread.images.header import BadFile

    if "frontal" not in study.images:
        raise BadFile(f"study {study.study}: no frontal image")
    path = Path(study.images["frontal"])
    radiograph = files.radiograph(path)
    height, width = radiograph.grey.shape
    if min(height, width) < SMALLEST_EDGE:
        raise BadFile(f"{path}: {width} x {height} pixels are too few for a radiograph")
    picture = radiograph.picture(view.size)
    darkest, brightest = picture.getextrema()
    if darkest == brightest and files.are_edited:
        raise NotEdited(f"nothing but one grey ({darkest}) is left of {path.name}")
    if darkest == brightest:
        raise BadFile(f"{path}: every pixel has the same value ({darkest}); there is nothing to see")
    yield (
        picture,
        {
            "name": "frontal chest X-ray",
            "series": "frontal",
            "scaling": radiograph.scaling,
            "hides": files.hides if files.are_edited else None,
        },
    )
