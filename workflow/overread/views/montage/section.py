"""The config of the view `montage`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from overread.config.base import Distinct, NotEmpty, OneOrMore
from overread.config.views import (
    CaptionPlace,
    Plane,
    SliceChoice,
    ViewSection,
    Windows,
    series_in_words,
    windows_of_shown,
)
from overread.core.records import Modality

if TYPE_CHECKING:
    from PIL import Image

    from overread.core.records import Study
    from overread.images.files import StudyFiles


class MontageView(ViewSection):
    """One square grid picture a plane, with all series' slices and the segmentations as panels, each with its name."""

    kind: Literal["montage"]
    modality: ClassVar[Modality] = "mri"
    gives: ClassVar[str] = "one square grid picture per plane, a panel per series"
    series: OneOrMore = Field(
        default="all", description="`all` that the study has, or a list: each name keeps its place, also where it lacks"
    )
    planes: Annotated[tuple[Plane, ...], NotEmpty, Distinct] = ("axial",)
    slice: SliceChoice = "largest-tumour"
    size: int = Field(default=896, ge=256, description="edge in pixels")
    crop: bool = Field(default=True, description="leave out the border in which every panel is black")
    windows: Windows = Field(default_factory=dict)
    caption: CaptionPlace = "before"

    @model_validator(mode="after")
    def _windows_fit(self) -> Self:
        windows_of_shown(self.windows, self.series)
        return self

    @property
    def pictures(self) -> int:
        return len(self.planes)

    @property
    def gathered(self) -> int:
        return len(self.planes)

    @property
    def levels(self) -> tuple[tuple[Plane, SliceChoice], ...]:
        return tuple((plane, self.slice) for plane in self.planes)

    def render(self, study: Study, files: StudyFiles) -> Iterator[tuple[Image.Image, dict[str, object]]]:
        from overread.views.montage.drawing import render_montages

        return render_montages(study, self, files)

    def words(self) -> str:
        shown = series_in_words(self.series)
        return f"a montage of {shown}, one picture each of the planes {series_in_words(self.planes)}"
