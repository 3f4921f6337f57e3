"""The model file of Med3DVLM."""

from __future__ import annotations

from typing import ClassVar, Literal, Self

from pydantic import model_validator

from overread.config.models import OwnCodeModel


class Med3dvlmModel(OwnCodeModel):
    """Med3DVLM: one 3-D volume and 512 tokens in all."""

    share_prefix: ClassVar[bool] = True
    thinking: ClassVar[bool] = False
    attention_implementation: ClassVar[str] = "sdpa"

    backend: Literal["med3dvlm"]
    title: ClassVar[str] = "Med3DVLM's own code"
    implementation: ClassVar[str] = "overread.backends.med3dvlm.backend:Med3dvlmBackend"

    @model_validator(mode="after")
    def _fixed_size(self) -> Self:
        self._refuse_other_than_default("min_pixels", "max_pixels")
        return self
