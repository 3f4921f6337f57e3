"""The client library's connection to a cleared endpoint, for an OpenAI server and for Azure's form of one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import openai

from overread.backends.transport.transport import http_client
from overread.core.guard import Destination, Resolve, shown


@asynccontextmanager
async def connection(
    to: Destination, key: str, *, connections: int, api_version: str | None = None, resolve: Resolve | None = None
) -> AsyncIterator[openai.AsyncOpenAI]:
    """A client of the endpoint. It tries everything once: trying again is the caller's.

    key          empty for a server that needs none
    api_version  of Azure, whose endpoint ends with /openai or with /openai/deployments/<deployment>
    """
    async with http_client(to, connections=connections, resolve=resolve) as http:
        if api_version is None:
            client = openai.AsyncOpenAI(
                base_url=shown(to.address), api_key=key or "none", max_retries=0, http_client=http
            )
        else:
            client = openai.AsyncAzureOpenAI(
                base_url=shown(to.address),
                api_key=key or "none",
                api_version=api_version,
                max_retries=0,
                http_client=http,
            )
        async with client:
            yield client
