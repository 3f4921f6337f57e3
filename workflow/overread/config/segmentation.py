"""Tumour masks: whose mask chooses the slices, the data set's own or a network's, and where a brain mask comes from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, StringConstraints, field_validator, model_validator

from overread.config.base import FilePath, Section
from overread.config.models import Resources

BrainMask = Literal["provided", "deepbet"]
Meaning = Literal["core", "oedema", "enhancing", "other"]
"""What a number in a tumour mask stands for; `other` is no tumour, such as a resection cavity."""
Scheme = Literal["brats-2021", "brats-2023", "decathlon"]

SCHEMES: dict[Scheme, dict[int, Meaning]] = {
    "brats-2021": {1: "core", 2: "oedema", 4: "enhancing"},
    "brats-2023": {1: "core", 2: "oedema", 3: "enhancing"},
    "decathlon": {1: "oedema", 2: "core", 3: "enhancing"},
}
"""BraTS 2012 to 2021 and UCSF-PDGM; BraTS since 2023 (gliomas before treatment); Task01 of the Medical Segmentation
Decathlon. The numbers alone don't tell the last two apart."""
Roi = tuple[int, int, int]

NETWORK_SERIES = ("FLAIR", "T1", "T1c", "T2")
"""What both networks take, each in an order of its own (`images.segmentation.networks`)."""


class Provided(Section):
    """The data set's own tumour masks. No job runs for them unless brain masks are to be made."""

    method: Literal["provided"] = "provided"
    brain: BrainMask = Field(
        default="provided", description="deepbet: a brain mask is made for a study that brings none"
    )
    labels: Scheme | dict[Annotated[int, Field(ge=1, le=255)], Meaning] | None = Field(
        default=None,
        description="what the numbers in the masks mean: a scheme, or {1: oedema, 2: core, 3: enhancing}; "
        "None: as BraTS 2021, and a 3 without a 4 as enhancing",
    )
    resources: Resources = Resources(mem_mb=8000, runtime=10)

    @field_validator("labels")
    @classmethod
    def _some_tumour(cls, value: Scheme | dict[int, Meaning] | None) -> Scheme | dict[int, Meaning] | None:
        if isinstance(value, dict) and not set(value.values()) - {"other"}:
            raise ValueError("labels: none of them is tumour; there are: core, oedema, enhancing, other")
        return value

    @property
    def meanings(self) -> dict[int, Meaning] | None:
        """What each number means; None where the config does not say."""
        return SCHEMES[self.labels] if isinstance(self.labels, str) else self.labels

    @property
    def makes_masks(self) -> bool:
        """Whether there is something to make for each study."""
        return self.brain == "deepbet"

    @property
    def reads(self) -> tuple[str, ...]:
        """Files of a study that its segmentation reads, where they are there."""
        return "tumor_segmentation", "brain_segmentation", "T1"


class NetworkSegmentation(Section):
    """What every network that segments has. Resources and device are dress: they change no mask on purpose."""

    checkpoint: FilePath = Field(description="the network's weights, a file written by torch.save")
    checkpoint_sha256: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")] | None = Field(
        default=None, description="of that file; another file is refused"
    )
    overlap: float = Field(default=0.5, ge=0, lt=1, description="share of a window that the next one covers again")
    flips: bool = Field(default=False, description="average over the 8 mirror images of the brain: 8 times the work")
    brain: BrainMask = Field(
        default="deepbet", description="deepbet: a brain mask is made for a study that brings none"
    )
    device: Literal["auto", "cpu", "cuda"] = Field(default="auto", description="auto: a GPU where there is one")
    resources: Resources = Resources(gpu=1, mem_mb=16000, runtime=10, threads=2)

    divisor: ClassVar[int]
    """What each edge of a window must be a multiple of."""

    @property
    def makes_masks(self) -> bool:
        return True

    @property
    def reads(self) -> tuple[str, ...]:
        return *NETWORK_SERIES, "brain_segmentation"

    @model_validator(mode="after")
    def _fits(self) -> Self:
        roi: Roi = getattr(self, "roi", (self.divisor,) * 3)
        if any(edge < self.divisor or edge % self.divisor for edge in roi):
            raise ValueError(f"roi {list(roi)}: each edge must be a multiple of {self.divisor}")
        if self.device == "cuda" and self.resources.gpu == 0:
            raise ValueError("device 'cuda' needs resources with a gpu")
        return self


class SwinUnetr(NetworkSegmentation):
    """Swin-UNETR as trained on BraTS 2021 (Hatamizadeh et al. 2022)."""

    method: Literal["swin-unetr"]
    feature_size: int = Field(default=48, ge=12, description="width of the network; the public weights have 48")
    roi: Roi = Field(default=(128, 128, 128), description="window, voxels")

    divisor: ClassVar[int] = 32

    @field_validator("roi")
    @classmethod
    def _more_than_one_voxel(cls, value: Roi) -> Roi:
        if max(value) <= cls.divisor:  # the lowest level is 1/32 as wide, and is normalised over its voxels
            raise ValueError(f"{list(value)} is too small: one edge must be {2 * cls.divisor} at least")
        return value

    @field_validator("feature_size")
    @classmethod
    def _heads(cls, value: int) -> int:
        if value % 12:
            raise ValueError(f"{value} is no multiple of 12")
        return value


class SegResNet(NetworkSegmentation):
    """SegResNet of MONAI's bundle brats_mri_segmentation (Myronenko 2018)."""

    method: Literal["segresnet"]
    roi: Roi = Field(default=(240, 240, 160), description="window, voxels")

    divisor: ClassVar[int] = 8


_AnySection = Annotated[Provided | SwinUnetr | SegResNet, Field(discriminator="method")]


def _as_section(value: Any) -> Any:
    """`segmentation: provided` for `segmentation: {method: provided}`, which is also the method where none is named."""
    if isinstance(value, str):
        return {"method": value}
    return {"method": "provided", **value} if isinstance(value, Mapping) else value


Segmentation = Annotated[
    _AnySection, BeforeValidator(_as_section, json_schema_input_type=Literal["provided"] | _AnySection)
]
