"""The model file of a calibrated reader."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, Self, get_args

from pydantic import Field, model_validator

from overread.config.base import Section
from overread.config.models import LocalModel
from overread.core.records import Readout


class Reliance(Section):
    """What a calibrated reader does, as probabilities. It follows the report first, then the image, then guesses."""

    report: float = Field(default=0.0, ge=0, le=1, description="uses the report where there is one")
    image: float = Field(default=0.0, ge=0, le=1, description="uses the image where there is one")
    image_beside_report: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="uses the image although there is a report; none: as `image` allows after the report",
    )
    first_option: float = Field(default=0.0, ge=0, le=1, description="a guess takes the first option")
    yes: float = Field(default=0.5, ge=0, le=1, description="a guess between yes and no says yes")
    unparsed: float = Field(default=0.0, ge=0, le=1, description="gives no readable answer")
    by_patient: float | None = Field(
        default=None,
        gt=0,
        description="concentration of a beta distribution of the image reliance over patients; none: all alike",
    )


class GalleryReader(Section):
    """A reader of the gallery, put to a real study as a calibration weight."""

    name: str = Field(min_length=1, description="one of `overread gallery --list`")
    prevalence: dict[str, Annotated[float, Field(ge=0, le=1)]] = Field(
        default_factory=dict, description="share of yes by finding, for readers that answer by it"
    )
    usual: float = Field(default=0.3, ge=0, le=1, description="share of yes of a finding that `prevalence` leaves out")
    finding: str | None = Field(default=None, description="the finding that `one-finding` reads")


class CalibratedModel(LocalModel):
    """A reader of known behaviour: the instrument's calibration weight. It is told the truth; it is no model."""

    backend: Literal["calibrated"]
    title: ClassVar[str] = "a calibrated reader"
    implementation: ClassVar[str] = "overread.backends.calibrated.backend:CalibratedBackend"
    readouts: ClassVar[frozenset[Readout]] = frozenset(get_args(Readout))
    told_the_truth: ClassVar[bool] = True
    reliance: Reliance = Reliance()
    reader: GalleryReader | None = Field(default=None, description="a reader of the gallery, in place of `reliance`")
    seed: int = 0

    def identity(self) -> dict[str, Any]:
        """Without `reader` where there is none, so that answers from before it could be given keep their keys."""
        identity = super().identity()
        if self.reader is None:
            del identity["reader"]
        return identity

    @property
    def draws(self) -> Literal["greedy", "sampled", "unknown"]:
        """Its draws are hashes, the same in every run; a reader of the gallery may draw anew in each."""
        if self.reader is None:
            return "greedy"
        from overread.gallery.readers import GALLERY

        known = GALLERY.get(self.reader.name)
        return "sampled" if known is not None and known.temperature > 0 else "greedy"

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if ("reliance" in self.model_fields_set) == (self.reader is not None):
            raise ValueError("give either 'reliance' or 'reader'")
        return self
