"""The model file of a contrastive encoder."""

from __future__ import annotations

from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from overread.config.base import Section
from overread.config.models import OwnCodeModel, Takes
from overread.core.records import Readout


class MedImageInsightCode(Section):
    """What the class `MedImageInsight` of that model's own repository is made with."""

    module: str = Field(default="medimageinsightmodel", description="the repository's module that holds the class")
    model_dir: str = Field(default="2024.09.27", description="folder of the weights, from the repository's root")
    vision_model: str = "medimageinsigt-v1.0.0.pt"
    language_model: str = "language_model.pth"


class ContrastiveModel(OwnCodeModel):
    """Image and option texts are embedded; the nearest option is the answer. It writes no text."""

    backend: Literal["contrastive"]
    title: ClassVar[str] = "a contrastive encoder"
    implementation: ClassVar[str] = "overread.backends.contrastive.backend:ContrastiveBackend"
    readouts: ClassVar[frozenset[Readout]] = frozenset({"similarity"})
    reads_reports: ClassVar[bool] = False
    takes: Takes = Takes(text_only=False)
    loader: MedImageInsightCode | None = Field(
        default=None, description="for MedImageInsight, which runs its own code; none: CLIP or SigLIP in transformers"
    )

    @property
    def untrusted(self) -> bool:
        return self.loader is not None and not self.trust_remote_code

    @model_validator(mode="after")
    def _compares_a_picture(self) -> Self:
        self._refuse_other_than_default("decoding", "min_pixels", "max_pixels")
        if self.takes.images != 1 or self.takes.volumes or self.takes.text_only:
            raise ValueError("it compares texts with one picture: takes must say images 1, volumes and text_only false")
        if self.loader is None and self.trust_remote_code:
            raise ValueError("trust_remote_code is for a model with a 'loader'; transformers needs none for this one")
        if self.loader is not None and self.dtype != "float32":
            raise ValueError("MedImageInsight's own code computes in float32: set dtype to float32")
        return self
