"""Views, which are what can be rendered of a study, and settings, which are what a model is shown of it."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, FiniteFloat, StringConstraints, model_validator

from overread.config.base import Distinct, Name, NotEmpty, OneOrMore, Section
from overread.core.errors import unknown
from overread.core.records import Modality, Readout

Plane = Literal["axial", "coronal", "sagittal"]
SliceChoice = Annotated[
    Literal["largest-tumour", "middle", "largest-label-1", "largest-label-2", "largest-label-4"],
    Field(description="which slice: with the most tumour, or of a label (1 necrotic core, 2 oedema, 4 enhancing)"),
]


def _rising(window: tuple[float, float]) -> tuple[float, float]:
    if window[0] >= window[1]:
        raise ValueError(f"{list(window)}: the value shown black must be below the one shown white")
    return window


CaptionPlace = Annotated[
    Literal["before", "after"], Field(description="of several pictures, where each one's name stands in the prompt")
]

Window = Annotated[tuple[FiniteFloat, FiniteFloat], AfterValidator(_rising)]
Windows = Annotated[
    dict[str, Window],
    Field(description="by series, the values that are shown black and white; else the brain's percentiles"),
]


def _windows_of_shown(windows: Windows, series: str | tuple[str, ...]) -> None:
    """A window of a series that the view does not show would be a slip of the pen."""
    if series != "all":
        named = (series,) if isinstance(series, str) else series
        for name in windows:
            if name not in named:
                raise ValueError(f"windows: {unknown('series', name, named)}")


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
    windows: Windows = Field(default_factory=dict)
    caption: CaptionPlace = "before"

    @model_validator(mode="after")
    def _windows_fit(self) -> Self:
        _windows_of_shown(self.windows, self.series)
        return self

    @property
    def pictures(self) -> int:
        """How many pictures it gives at most."""
        if self.series == "all":
            return UCSF_PDGM_SERIES
        return 1 if isinstance(self.series, str) else len(self.series)


class MontageView(Section):
    """One square grid picture a plane, with all series' slices and the segmentations as panels, each with its name."""

    kind: Literal["montage"]
    modality: ClassVar[Modality] = "mri"
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
        _windows_of_shown(self.windows, self.series)
        return self

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
    substitute: int = Field(default=1, ge=1, description="which of a study's substitutes, from 1")
    report: Name = Field(
        default="none",
        description="none; full; substitute: the substitute's; neutral, boilerplate, without-finding, with-answer, or "
        "any other <name> with a template report-<name>.j2 in the folder `prompts`",
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
