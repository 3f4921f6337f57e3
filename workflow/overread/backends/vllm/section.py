"""The model file of a model that vLLM runs."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Literal, Self

from pydantic import Field

from overread.config.base import FilePath
from overread.config.models import ModelSection, WeightsModel


class VllmModel(WeightsModel):
    """Run by vLLM's offline engine in the job itself."""

    backend: Literal["vllm"]
    title: ClassVar[str] = "vLLM"
    implementation: ClassVar[str] = "overread.backends.vllm.backend:VllmBackend"
    environment: ClassVar[str] = "vllm"
    thinking: bool = False
    structured: Literal["none", "choice", "json"] = Field(
        default="none",
        description="holds the answers of the readouts yes-no and free-text to an option's text, or to JSON with one",
    )
    batch: int = Field(default=256, ge=1, description="trials at once, at most")
    context: int | None = Field(
        default=None, ge=1, description="tokens of the longest prompt and answer; none: as many as the memory allows"
    )
    gpu_memory: float = Field(default=0.9, gt=0, le=1, description="share of a GPU's memory that vLLM takes")
    parity: int = Field(
        default=8, ge=0, description="trials that transformers answers too before a job begins; 0: none"
    )
    python: FilePath | None = Field(
        default=None, description="interpreter with vLLM, for jobs without conda; none: .venv-vllm, where it is there"
    )

    dress: ClassVar[frozenset[str]] = ModelSection.dress | {"gpu_memory", "parity", "python"}

    def interpreter(self, root: Path) -> str | None:
        """vLLM wants other versions than the rest, so it has an interpreter of its own."""
        made = root / ".venv-vllm" / "bin" / "python"
        return self.python or (str(made) if made.exists() else None)

    def for_one_question(self) -> Self:
        """Without the comparison with transformers, which would load the model twice."""
        return self.model_copy(update={"parity": 0})
