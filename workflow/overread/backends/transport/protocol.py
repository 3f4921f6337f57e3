"""How a server is spoken to. One class per wire protocol, behind the client's retries, budget and batches.

The client decides when a request is sent and how often; the protocol, what it looks like on the wire and what the
answer says.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from overread.backends.transport.faults import RequestError
    from overread.backends.transport.replies import Reply
    from overread.core.guard import Destination, Resolve


class Protocol(ABC):
    """A wire protocol. Making one imports nothing heavy."""

    batch_path: str | None = None
    """Path in each request of a batch; none where the server takes no batches."""

    @abstractmethod
    def connected(
        self, to: Destination, key: str, *, connections: int, resolve: Resolve | None = None
    ) -> AbstractAsyncContextManager[Any]:
        """A connection to a cleared endpoint, which tries everything once: trying again is the client's.

        It must be made of `transport.http_client`, which keeps to the endpoint that was cleared.
        key  empty for a server that needs none
        """

    @abstractmethod
    async def send(
        self, connection: Any, model: str, messages: list[dict[str, Any]], parameters: Mapping[str, Any], seconds: float
    ) -> bytes:
        """The body of the answer to one request, all of it and within so many seconds."""

    @abstractmethod
    def reply(self, body: bytes) -> Reply:
        """What the body says. BadReply for one that can't be used, Refused where the model would not answer."""

    @abstractmethod
    def fault(self, error: Exception) -> RequestError:
        """What an error of `send` or `reply` means for the next try. An error that is no fault is raised again."""

    @abstractmethod
    def refused(self, error: Exception, sent: Mapping[str, Any]) -> str | None:
        """The parameter that the server would not take, if that is what the error says."""


class ChatProtocol(Protocol):
    """OpenAI's chat completions, by its client library."""

    batch_path: str | None = "/v1/chat/completions"
    api_version: str | None = None
    """Of Azure, whose endpoint ends with /openai or with /openai/deployments/<deployment>."""

    def connected(
        self, to: Destination, key: str, *, connections: int, resolve: Resolve | None = None
    ) -> AbstractAsyncContextManager[Any]:
        from overread.backends.transport.connecting import connection

        return connection(to, key, connections=connections, api_version=self.api_version, resolve=resolve)

    async def send(
        self, connection: Any, model: str, messages: list[dict[str, Any]], parameters: Mapping[str, Any], seconds: float
    ) -> bytes:
        import httpx2

        async with asyncio.timeout(seconds):
            # The client's untyped way in: its typed one walks through every message once more, to no use here.
            answer = await connection.post(
                "/chat/completions",
                cast_to=httpx2.Response,
                body={"model": model, "messages": messages, **parameters},
                options={"timeout": seconds},
            )
            body: bytes = answer.content
            return body

    def reply(self, body: bytes) -> Reply:
        from overread.backends.transport.replies import reply_of

        return reply_of(body)

    def fault(self, error: Exception) -> RequestError:
        from overread.backends.transport.faults import fault_of

        return fault_of(error)

    def refused(self, error: Exception, sent: Mapping[str, Any]) -> str | None:
        import openai

        from overread.backends.transport.adapting import refused_parameter

        if not isinstance(error, openai.BadRequestError | openai.UnprocessableEntityError):
            return None
        return refused_parameter(error.message, error.param, error.code, dict(sent))
