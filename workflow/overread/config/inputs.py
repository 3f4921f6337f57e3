"""Views, which are what can be rendered of a study, and settings, which are what a model is shown of it."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from overread.config.base import Name, OneOrMore, Section
from overread.records import Modality, Readout

Plane = Literal["axial", "coronal", "sagittal"]
SliceChoice = Literal["largest-tumour", "middle"]

UCSF_PDGM_SERIES = 23
"""Series of a UCSF-PDGM study, segmentations among them: the most pictures that `series: all` gives."""


class SliceView(Section):
    """One slice of one or more series at the same level: a picture a series, in the order given."""

    kind: Literal["slice"] = "slice"
    modality: ClassVar[Modality] = "mri"
    series: OneOrMore = Field(description="a series' name, a list of names, or `all`")
    plane: Plane = "axial"
    slice: SliceChoice = "largest-tumour"
    size: int | None = Field(default=None, ge=16, description="longer edge in pixels; else as scanned")

    @property
    def pictures(self) -> int:
        """How many pictures it gives at most."""
        if self.series == "all":
            return UCSF_PDGM_SERIES
        return 1 if isinstance(self.series, str) else len(self.series)


class MontageView(Section):
    """One grid picture a plane, with all series' slices and the segmentations as panels."""

    kind: Literal["montage"]
    modality: ClassVar[Modality] = "mri"
    planes: tuple[Plane, ...] = Field(default=("axial",), min_length=1)
    slice: SliceChoice = "largest-tumour"
    size: int = Field(default=896, ge=64)

    @property
    def pictures(self) -> int:
        return len(self.planes)


class VolumeView(Section):
    """A whole series: as one volume, or as a stack of slices for models that take a volume that way."""

    kind: Literal["volume"]
    modality: ClassVar[Modality] = "mri"
    series: str = "FLAIR"
    slices: int | None = Field(
        default=None, ge=2, description="as so many evenly spaced pictures, each named SLICE n; else one volume"
    )

    @property
    def pictures(self) -> int:
        return self.slices or 1


class FrontalView(Section):
    """The frontal chest X-ray."""

    kind: Literal["frontal"]
    modality: ClassVar[Modality] = "xray"
    size: int | None = Field(default=None, ge=16, description="longer edge in pixels; else as scanned")

    @property
    def pictures(self) -> int:
        return 1


View = Annotated[SliceView | MontageView | VolumeView | FrontalView, Field(discriminator="kind")]

OptionOrder = Annotated[str, StringConstraints(pattern=r"^(as-written|shuffled|rotated-[1-9])$")]
Attention = Annotated[str, StringConstraints(pattern=r"^(none|(from|only)-(0|[1-9][0-9]*))$")]


class Setting(Section):
    """What a model is shown with a question, and how its answer is read. Every control is a value of one of these."""

    images: Name = Field(default="none", description="a view's name, or none")
    source: Literal["own", "substitute", "black"] = Field(default="own", description="whose image")
    report: Literal["none", "full", "neutral", "boilerplate", "without-finding", "with-answer", "substitute"] = Field(
        default="none", description="the study's report in full, edited, or that of the substitute"
    )
    warning: bool = Field(default=False, description="say that the report may be wrong")
    order: Literal["image-first", "text-first"] = "image-first"
    options: OptionOrder = Field(default="as-written", description="as-written, shuffled or rotated-k")
    readout: Readout = Field(default="choice", description="how the answer is asked for and read")
    attention: Attention = Field(default="none", description="hide the report: from-L (layer L on), only-L, or none")
    questions: Literal["all", "one-per-study"] = "all"

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.images == "none" and self.source != "own":
            raise ValueError(f"source {self.source!r} needs a view under 'images'")
        if self.report == "none" and self.attention != "none":
            raise ValueError("'attention' hides a report, but 'report' is none")
        if self.report == "none" and self.warning:
            raise ValueError("a warning about the report needs a 'report'")
        return self

    @property
    def shows_the_study(self) -> bool:
        """Whether a picture of some study, not a black one, is shown."""
        return self.images != "none" and self.source != "black"
