"""The HTTP client of a cleared endpoint.

To a loopback endpoint it connects to an address that it has just looked up and seen to be loopback, never through a
proxy. To any other it sends requests of that origin only. It follows no redirect: a redirect would carry the data on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import httpx2

from overread.core.errors import BadInput
from overread.core.guard import Destination, Resolve, is_ip, loopback_addresses, shown

CONNECT_SECONDS = 20.0


def http_client(to: Destination, *, connections: int, resolve: Resolve | None = None) -> httpx2.AsyncClient:
    """A client for requests to `to` and nowhere else. Time-outs of a whole try are the caller's."""
    limits = httpx2.Limits(max_connections=connections, max_keepalive_connections=connections)
    timeout = httpx2.Timeout(None, connect=CONNECT_SECONDS)
    hooks: dict[str, list[Callable[..., Any]]] = {"request": [_Origin(to)]}
    if to.loopback:
        # Certificates are read from the disk for https alone: the origin is fixed.
        inner = httpx2.AsyncHTTPTransport(verify=to.address.scheme == "https", limits=limits, trust_env=False)
        return httpx2.AsyncClient(
            transport=LoopbackTransport(inner, resolve),
            verify=False,
            timeout=timeout,
            follow_redirects=False,
            trust_env=False,
            event_hooks=hooks,
        )
    # A proxy sees what goes over plain http: it is no endpoint that anybody attested.
    proxies = not (to.restricted and to.address.scheme == "http")
    return httpx2.AsyncClient(
        limits=limits, timeout=timeout, follow_redirects=False, trust_env=proxies, event_hooks=hooks
    )


class LoopbackTransport(httpx2.AsyncBaseTransport):
    """Looks the host up itself and connects to what it has checked: a name can't come to mean another machine."""

    def __init__(self, inner: httpx2.AsyncBaseTransport, resolve: Resolve | None = None) -> None:
        self._inner = inner
        self._resolve = resolve

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        host = request.url.host
        if is_ip(host):
            found = loopback_addresses(host, 0, lambda host, port: [host])
        else:
            port = request.url.port or (443 if request.url.scheme == "https" else 80)
            found = await asyncio.to_thread(loopback_addresses, host, port, self._resolve)
        if not found:
            raise BadInput(f"{host} is not, or no longer, an address of this machine: nothing was sent")
        if found[0] == host:
            return await self._inner.handle_async_request(request)
        # The Host header is set already, and the certificate is still checked against the name.
        checked = request.url.copy_with(host=found[0])
        sent = httpx2.Request(
            request.method,
            checked,
            headers=request.headers,
            stream=request.stream,
            extensions={**request.extensions, "sni_hostname": host},
        )
        return await self._inner.handle_async_request(sent)

    async def aclose(self) -> None:
        await self._inner.aclose()


class _Origin:
    """Refuses a request to another origin than the one that was cleared."""

    def __init__(self, to: Destination) -> None:
        # As httpx reads the endpoint: the same reading on both sides.
        url = httpx2.URL(shown(to.address))
        self._cleared = (url.scheme, url.host, url.port)

    async def __call__(self, request: httpx2.Request) -> None:
        url = request.url
        if (url.scheme, url.host, url.port) != self._cleared:
            raise BadInput(f"a request was to go to {url.host}, which nobody cleared: nothing was sent")
