"""The model file of a model behind an OpenAI-compatible server."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from overread.backends.openai.servers import SERVERS, OpenaiServer
from overread.backends.writing import WriterModel
from overread.config.base import Endpoint
from overread.config.models import Decoding, ServerModel
from overread.core.progress import say

if TYPE_CHECKING:
    from overread.backends.transport.asking import Client
    from overread.backends.transport.client import Patience
    from overread.core.guard import Destination

OWN_PARAMETERS = frozenset(
    {
        "model", "messages", "max_tokens", "max_completion_tokens", "temperature", "top_p", "seed", "n", "stream",
        "reasoning_effort", "logprobs", "top_logprobs", "response_format", "structured_outputs",
    }
)  # fmt: skip
"""Of a request: what `OpenaiModel.extra` may not hold."""


class OpenaiModel(ServerModel, WriterModel):
    """A model behind an OpenAI-compatible server. The key comes from the environment."""

    backend: Literal["openai"]
    title: ClassVar[str] = "an OpenAI-compatible server"
    implementation: ClassVar[str] = "overread.backends.openai.backend:OpenaiBackend"
    model: str = Field(min_length=1, description="the name that the server knows it by; on Azure the deployment's")
    endpoint: Endpoint = "https://api.openai.com/v1"
    server: Literal["openai", "azure", "vllm"] = Field(
        default="openai", description="vllm: log-probabilities and constraints are asked for in that server's own way"
    )
    api_version: str | None = Field(
        default=None, pattern=r"^\d{4}-\d{2}-\d{2}(-preview)?$", description="of Azure, as in 2024-10-21"
    )
    key_variable: str = Field(default="OPENAI_API_KEY", description="environment variable that holds the key")
    decoding: Decoding = Decoding()
    thinking: bool = Field(default=False, description="vllm: whether the chat template lets the model think first")
    image_detail: Literal["auto", "low", "high"] | None = Field(
        default=None, description="how closely the server looks at images; none: as it does by itself"
    )
    top_logprobs: int = Field(default=20, ge=1, description="log-probabilities asked for; servers give 20, old ones 5")
    extra: dict[str, Any] = Field(default_factory=dict, description="parameters of each request besides, as they are")

    optional: ClassVar[frozenset[str]] = frozenset(
        {"server", "api_version", "thinking", "image_detail", "top_logprobs", "extra"}
    )
    """Part of the identity only where a file says something else than is so by itself."""

    @property
    def reasons(self) -> bool:
        """Whether it thinks before it answers, as the models do that take no temperature."""
        by_itself = self.decoding.temperature is None or self.decoding.reasoning_effort is not None
        return by_itself and not self.protocol.thinks_by_template

    @property
    def protocol(self) -> OpenaiServer:
        """How its server is spoken to."""
        return SERVERS[self.server](self)

    def identity(self) -> dict[str, Any]:
        fields = type(self).model_fields
        usual = {
            name for name in self.optional if getattr(self, name) == fields[name].get_default(call_default_factory=True)
        }
        return {name: value for name, value in super().identity().items() if name not in usual}

    @model_validator(mode="after")
    def _goes_together(self) -> Self:
        self.protocol.check()
        if self.reasons and self.decoding.reasoning_effort is not None and self.takes.logprobs:
            raise ValueError("a model that reasons gives no log-probabilities: set takes.logprobs to false")
        own = sorted(OWN_PARAMETERS & set(self.extra))
        if own:
            raise ValueError(f"extra must not hold {own[0]!r}: the other keys of this file say it")
        return self

    def writer_identity(self, model_id: str) -> dict[str, Any]:
        return self.identity()

    def client(
        self, model_id: str, asked: Mapping[str, Any], work: Path, patience: Patience, to: Destination | None
    ) -> Client:
        from overread.backends.transport.batches import batched
        from overread.backends.transport.client import ChatClient
        from overread.backends.transport.spending import Purse

        assert to is not None
        chat = ChatClient(
            to=to,
            model=self.model,
            parameters=asked,
            key_variable=self.key_variable,
            patience=patience,
            say=say,
            protocol=self.protocol,
            purse=Purse.of(self, work.with_suffix(".spent.jsonl"), work.name),
        )
        return batched(chat, self, work)
