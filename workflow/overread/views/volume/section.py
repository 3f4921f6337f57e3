"""The config of the view `volume`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar, Literal, Self

from pydantic import Field, model_validator

from overread.config.views import CaptionPlace, ViewSection, Window, series_in_words
from overread.core.records import Modality

if TYPE_CHECKING:
    from PIL import Image

    from overread.core.records import Study
    from overread.images.files import StudyFiles
    from overread.images.volume_file import VolumePicture


class VolumeView(ViewSection):
    """A whole series: as one volume, or as a stack of slices for models that take a volume that way."""

    kind: Literal["volume"]
    modality: ClassVar[Modality] = "mri"
    gives: ClassVar[str] = "a whole series as one `.nii.gz`, or with `slices: n` as a stack of pictures"
    series: str = Field(default="FLAIR", description="a series' name")
    slices: int | None = Field(
        default=None, ge=2, description="as so many evenly spaced pictures, each named SLICE n; else one volume"
    )
    extent: Literal["volume", "brain"] = Field(
        default="volume", description="what the slices are spaced through: all of the volume, or its slices with brain"
    )
    window: Window | None = Field(
        default=None, description="the values that the slices show black and white; else the brain's percentiles"
    )
    caption: CaptionPlace = "after"

    @model_validator(mode="after")
    def _whole_or_slices(self) -> Self:
        if self.slices is None and self.window is not None:
            raise ValueError("a whole volume is shown as it was scanned: 'window' needs 'slices'")
        return self

    @property
    def pictures(self) -> int:
        return self.slices or 1

    @property
    def is_volume(self) -> bool:
        return self.slices is None

    @property
    def whole(self) -> frozenset[str]:
        return frozenset({self.series, "brain_segmentation"})

    def render(
        self, study: Study, files: StudyFiles
    ) -> Iterator[tuple[Image.Image | VolumePicture, dict[str, object]]]:
        from overread.views.volume.drawing import render_volume

        return render_volume(study, self, files)

    def words(self) -> str:
        stack = f"{self.slices} evenly spaced slices" if self.slices else "the whole volume"
        return f"{stack} of {series_in_words(self.series)}"
