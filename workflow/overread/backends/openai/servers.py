"""Servers that speak OpenAI's protocol, each in its own way: what a model file may say of it, and what it is asked for.

To add one, write its class and give it a name in `SERVERS` and in `OpenaiModel.server`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from overread.backends.transport.protocol import ChatProtocol

if TYPE_CHECKING:
    from overread.backends.openai.section import OpenaiModel


class OpenaiServer(ChatProtocol):
    """OpenAI's own, and whatever answers as it does."""

    needs_endpoint: ClassVar[bool] = False
    thinks_by_template: ClassVar[bool] = False
    """Whether `thinking` is told to the chat template; else a model reasons by `reasoning_effort`."""
    tells_tokens: ClassVar[bool] = False
    """Whether it tells its tokens, and holds an answer to them or to given texts."""

    def __init__(self, model: OpenaiModel) -> None:
        self.model = model

    def check(self) -> None:
        """ValueError where the model file says what this server does not know."""
        model = self.model
        if self.needs_endpoint and "endpoint" not in model.model_fields_set:
            raise ValueError(f"server {model.server} needs its endpoint")
        self.check_version()
        if model.thinking and not self.thinks_by_template:
            raise ValueError("thinking is for a vllm server; other models reason by decoding.reasoning_effort")
        if model.batch_api and self.batch_path is None:
            raise ValueError(f"a {model.server} server has no batch API: remove batch_api")
        if model.batch_api and "/deployments/" in model.endpoint:
            raise ValueError("for the batch API the endpoint must end with /openai, and model name the deployment")

    def check_version(self) -> None:
        if self.model.api_version is not None:
            raise ValueError("api_version is for Azure: set server to azure, or remove it")

    def usual(self) -> dict[str, Any]:
        """Parameters of every request besides."""
        return {}


class AzureServer(OpenaiServer):
    """Azure: versions of the interface, and deployments."""

    needs_endpoint = True

    def __init__(self, model: OpenaiModel) -> None:
        super().__init__(model)
        self.api_version = model.api_version
        if self.api_version is not None:
            self.batch_path = "/chat/completions"

    def check_version(self) -> None:
        if self.model.api_version is None and not self.model.endpoint.rstrip("/").endswith("/v1"):
            raise ValueError("Azure needs an api_version, as in 2024-10-21, unless the endpoint ends with /openai/v1")


class VllmServer(OpenaiServer):
    """vLLM's: it knows tokens, and takes what a request leaves out from the model's own generation config."""

    batch_path = None
    needs_endpoint = True
    thinks_by_template = True
    tells_tokens = True

    def usual(self) -> dict[str, Any]:
        neutral = {"top_k": 0, "min_p": 0.0, "repetition_penalty": 1.0}
        return {**neutral, "chat_template_kwargs": {"enable_thinking": self.model.thinking}}


SERVERS: dict[str, type[OpenaiServer]] = {"openai": OpenaiServer, "azure": AzureServer, "vllm": VllmServer}
"""By `server` of a model file."""
