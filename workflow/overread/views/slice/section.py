"""The config of the view `slice`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar, Literal, Self

from pydantic import Field, model_validator

from overread.config.base import OneOrMore
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


UCSF_PDGM_SERIES = 23
"""Series of a UCSF-PDGM study, segmentations among them: the most pictures that `series: all` gives."""


class SliceView(ViewSection):
    """One slice of one or more series at the same level: a picture a series, in the order given."""

    kind: Literal["slice"] = "slice"
    modality: ClassVar[Modality] = "mri"
    gives: ClassVar[str] = "a picture per series, all at one level"
    series: OneOrMore = Field(description="a series' name, a list of names, or `all`")
    plane: Plane = "axial"
    slice: SliceChoice = "largest-tumour"
    size: int | None = Field(default=None, ge=16, description="longer edge in pixels; else as scanned")
    windows: Windows = Field(default_factory=dict)
    caption: CaptionPlace = "before"

    @model_validator(mode="after")
    def _windows_fit(self) -> Self:
        windows_of_shown(self.windows, self.series)
        return self

    @property
    def pictures(self) -> int:
        """How many pictures it gives at most."""
        if self.series == "all":
            return UCSF_PDGM_SERIES
        return 1 if isinstance(self.series, str) else len(self.series)

    @property
    def single(self) -> int:
        return self.pictures

    @property
    def levels(self) -> tuple[tuple[Plane, SliceChoice], ...]:
        return ((self.plane, self.slice),)

    def render(self, study: Study, files: StudyFiles) -> Iterator[tuple[Image.Image, dict[str, object]]]:
        from overread.views.slice.drawing import render_slices

        return render_slices(study, self, files)

    def words(self) -> str:
        chosen = self.slice.replace("-", " ")
        return f"the {self.plane} slice of {series_in_words(self.series)} (chosen by: {chosen})"
