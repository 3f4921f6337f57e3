"""The model file of LLaVA-Med's original checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from overread.config.base import Weights, is_folder
from overread.config.models import WeightsModel
from overread.core.errors import shown


class LlavaMedModel(WeightsModel):
    """LLaVA-Med with its original conversation format and image preparation."""

    share_prefix: ClassVar[bool] = True
    thinking: ClassVar[bool] = False
    attention_implementation: ClassVar[str] = "sdpa"

    backend: Literal["llava-med"]
    title: ClassVar[str] = "LLaVA-Med's own code"
    implementation: ClassVar[str] = "overread.backends.llava_med.backend:LlavaMedBackend"
    vision_tower: Weights | None = Field(
        default=None,
        description="hub id or folder of the CLIP whose configuration (and, where the checkpoint lacks them, whose "
        "weights) the image part has; none: the one that the checkpoint's config.json names",
    )
    vision_tower_revision: str | None = Field(default=None, description="commit of the CLIP's hub repository")
    padding: Literal["drawn", "centred"] = Field(
        default="drawn", description="where a picture stands in its square: drawn by the seed, or in the middle"
    )

    @model_validator(mode="after")
    def _fixed_size(self) -> Self:
        for name in ("min_pixels", "max_pixels"):
            if getattr(self, name) is not None:
                raise ValueError(f"every picture is made as large as the image part wants it: remove {name!r}")
        return self

    @property
    def folders(self) -> tuple[str, ...]:
        tower = self.vision_tower
        return (*super().folders, *([tower] if tower is not None and is_folder(tower) else []))

    def lacks(self, model_id: str) -> list[str]:
        tower, found = self.vision_tower, super().lacks(model_id)
        if tower is not None and is_folder(tower) and not Path(tower).is_dir():
            found.append(f"no folder of the image part of {model_id} at {shown(tower)}")
        return found
