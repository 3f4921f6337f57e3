"""The model file of a model that transformers runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field

from overread.backends.writing import WriterModel
from overread.config.models import WeightsModel

if TYPE_CHECKING:
    from overread.backends.transport.asking import Client
    from overread.backends.transport.client import Patience
    from overread.core.guard import Destination


class TransformersModel(WeightsModel, WriterModel):
    """Run by the transformers library in the job itself."""

    backend: Literal["transformers"]
    title: ClassVar[str] = "transformers"
    implementation: ClassVar[str] = "overread.backends.transformers.backend:TransformersBackend"
    attention_implementation: Literal["sdpa", "eager"] = "sdpa"
    thinking: bool = False
    share_prefix: bool = Field(default=True, description="what prompts begin with alike goes through the model once")
    batch: int = Field(default=64, ge=1, description="trials at once, at most; memory may allow fewer")

    def writer_identity(self, model_id: str) -> dict[str, Any]:
        """With the content of weights on this machine."""
        from overread.backends.transformers.backend import TransformersBackend

        return TransformersBackend(self, model_id).identity()

    def client(
        self, model_id: str, asked: Mapping[str, Any], work: Path, patience: Patience, to: Destination | None
    ) -> Client:
        from overread.backends.transformers.chat import LocalClient

        return LocalClient(self, model_id, asked, tries=patience.bad_replies)
