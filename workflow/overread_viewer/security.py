"""What every request and every answer must pass: who may ask, how much, and what a browser may do with the answer.

The viewer has no accounts: whoever reaches it may look. So it listens on loopback, and there a hostile web page that is
open in the same browser is the likely attacker. It is kept out by the Host name (a name of its own that resolves to
127.0.0.1 is refused), by the origin of every POST, and by a content policy that runs no script but ours.

Elsewhere than on loopback a password is asked (`login.py`), of a study's raters too: their links travel by mail.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Callable
from urllib.parse import quote, urlsplit

from fastapi.responses import PlainTextResponse, RedirectResponse, Response
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from overread_viewer.options import LOCAL_NAMES, Options, is_loopback

LARGEST_BODY = 64 * 1024
"""Bytes of a form: a rater's comment is the longest there is."""

BODY_SECONDS = 30.0
"""A body that takes longer is given up, so that slow senders don't pile up."""

METHODS = ("GET", "HEAD", "POST")

OPEN_PATHS = ("/login", "/static/")
"""Shown without the password: the login itself and the project's own files."""

CONTENT_POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data: blob:",
        "connect-src 'self' blob: data:",
        "worker-src 'self' blob:",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    ]
)

HEADERS = {
    "content-security-policy": CONTENT_POLICY,
    "x-content-type-options": "nosniff",
    # With `no-referrer` a form would be sent with the origin "null": without TLS that is all there is to go by.
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}


class Guard:
    """ASGI middleware around the whole app.

    options     the host that is listened on decides which names are allowed
    restricted  whether any dataset is restricted: then nothing but the project's own files is kept by a browser
    signed_in   whether a request's cookie is that of someone who gave the password; none where no password is asked
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        options: Options,
        restricted: Callable[[], bool],
        signed_in: Callable[[Headers], bool] | None,
    ) -> None:
        self.app = app
        self.hosts = Hosts(options.host)
        self.restricted = restricted
        self.signed_in = signed_in

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":  # no page opens a WebSocket
            await send({"type": "websocket.close", "code": 1008})
            return
        guarded = self._guarded(scope, send)
        refusal = self._refusal(scope)
        if refusal is None:
            try:
                async with asyncio.timeout(BODY_SECONDS):
                    body = await _body(receive)
            except TimeoutError:
                refusal = PlainTextResponse("The request took too long to arrive.", 408)
            else:
                if body is None:
                    refusal = PlainTextResponse(f"The request is larger than {LARGEST_BODY // 1024} KiB.", 413)
        if refusal is not None:
            # The rest of a refused body is not read: the connection ends with the answer.
            refusal.headers["connection"] = "close"
            await refusal(scope, receive, guarded)
            return
        assert body is not None
        await self.app(scope, _replayed(body, receive), guarded)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self.hosts.allowed(hosts[0]):
            return PlainTextResponse("This server is not known by that name. Open the address that it printed.", 400)
        if scope["method"] not in METHODS:
            return PlainTextResponse("Method not allowed.", 405, {"allow": ", ".join(METHODS)})
        length = headers.get("content-length", "0")
        if not length.isascii() or not length.isdigit():
            return PlainTextResponse("The length of the request is no number.", 400)
        if int(length) > LARGEST_BODY:
            return PlainTextResponse(f"The request is larger than {LARGEST_BODY // 1024} KiB.", 413)
        if scope["method"] == "POST" and not same_origin(headers):
            return PlainTextResponse("Refused: the form was sent from another site, or by no browser's page.", 403)
        path = scope["path"]
        if self.signed_in is not None and not _is_open(path) and not self.signed_in(headers):
            if scope["method"] == "POST":
                return PlainTextResponse("Sign in first.", 401)
            query = scope["query_string"].decode("latin-1")
            wanted = quote(path) + (f"?{query}" if query else "")
            return RedirectResponse(f"/login?next={quote(wanted, safe='')}", 303)
        return None

    def _guarded(self, scope: Scope, send: Send) -> Send:
        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                if not scope["path"].startswith("/static/"):
                    if self.restricted() or self.signed_in is not None:
                        headers["cache-control"] = "no-store"
                    else:
                        headers.setdefault("cache-control", "private, no-cache")
            await send(message)

        return guarded


class Hosts:
    """The names by which the server may be called.

    On loopback only loopback's own, whatever the port: a tunnel may end on another. Elsewhere also the host that was
    given, this machine's names, and addresses, since an attacker's page can only come by a name.
    """

    def __init__(self, host: str) -> None:
        self.loopback = is_loopback(host)
        names = {*LOCAL_NAMES, host}
        if not self.loopback:
            names |= {socket.gethostname(), socket.getfqdn()}
        self.names = {name.lower().rstrip(".") for name in names}

    def allowed(self, header: str) -> bool:
        try:
            name, port = (parts := urlsplit(f"//{header}")).hostname, parts.port
        except ValueError:
            return False
        if name is None or parts.path or parts.query or parts.fragment or parts.username is not None or port == 0:
            return False
        name = name.rstrip(".")
        if name in self.names or is_loopback(name):
            return True
        if self.loopback:
            return False
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True


def same_origin(headers: Headers) -> bool:
    """Whether a page of this server sent the request: by Sec-Fetch-Site, else by Origin against Host.

    A request that says neither is refused: no browser of today sends one.
    """
    site = headers.get("sec-fetch-site")
    if site is not None:
        return site == "same-origin"
    origin = headers.get("origin")
    if origin is None:
        return False
    parts = urlsplit(origin)
    return parts.scheme in ("http", "https") and parts.netloc.lower() == headers.get("host", "").lower()


def _is_open(path: str) -> bool:
    return any(path.startswith(one) if one.endswith("/") else path == one for one in OPEN_PATHS)


async def _body(receive: Receive) -> bytes | None:
    """The whole body; None as soon as it is larger than allowed, whatever length was declared."""
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] != "http.request":  # gone
            return b"".join(parts)
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > LARGEST_BODY:
            return None
        if not message.get("more_body", False):
            return b"".join(parts)


def _replayed(body: bytes, receive: Receive) -> Receive:
    """A `receive` that gives the body that was read, then goes on."""
    left: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replayed() -> Message:
        return left.pop() if left else await receive()

    return replayed
