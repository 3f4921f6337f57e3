"""The password of a server that others can reach: one for all, checked slowly, remembered by the server.

Wrong passwords make an address slow, and all addresses together make the account slow; neither locks the correct one
out, since all who come through one proxy may have one address.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
import time
from collections import OrderedDict, deque
from http.cookies import CookieError, SimpleCookie
from typing import Annotated

from fastapi import APIRouter, Form, Request
from fastapi.responses import RedirectResponse, Response
from itsdangerous import BadSignature, TimestampSigner
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers

from overread_viewer.options import Options
from overread_viewer.pages import render

router = APIRouter()

COOKIE = "overread"
SESSION_SECONDS = 12 * 3600
"""A working day."""

FAILURES, WINDOW_SECONDS = 5, 60.0
"""So many wrong passwords of one address in so many seconds; the next ones are looked at one after the other."""

ACCOUNT_FAILURES = 100
"""So many of all addresses together."""

LINE = 16
"""Tries of one address that wait for their turn; whoever comes then is told to come again."""

MOST_SESSIONS = 10_000

DELAY_SECONDS = 1.0
"""How long a wrong password waits for its answer."""

MOST_ADDRESSES = 10_000


class Login:
    """Knows the password, who failed to give it, and who gave it. A restart signs everybody out."""

    def __init__(self, password: str) -> None:
        self._salt = secrets.token_bytes(16)
        self._hash = self._hashed(password)
        self._signer = TimestampSigner(secrets.token_bytes(32), salt="overread.login", digest_method=hashlib.sha256)
        self._failures: OrderedDict[str, deque[float]] = OrderedDict()
        self._sessions: OrderedDict[str, float] = OrderedDict()
        self._lanes: dict[str, tuple[asyncio.Lock, int]] = {}

    def _hashed(self, password: str) -> bytes:
        return hashlib.scrypt(password.encode(), salt=self._salt, n=2**14, r=8, p=1)

    def right(self, password: str) -> bool:
        return hmac.compare_digest(self._hashed(password), self._hash)

    def cookie(self) -> str:
        """Begins a session."""
        session = secrets.token_urlsafe(16)
        self._sessions[session] = time.monotonic()
        while len(self._sessions) > MOST_SESSIONS:
            self._sessions.popitem(last=False)
        return self._signer.sign(session).decode()

    def signed_in(self, headers: Headers) -> bool:
        """Whether the request carries a cookie of a session that has not ended."""
        session = self._session(headers)
        return session is not None and session in self._sessions

    def end(self, headers: Headers) -> None:
        """End the session of a request: a copy of its cookie opens nothing any more."""
        self._sessions.pop(self._session(headers) or "", None)

    def _session(self, headers: Headers) -> str | None:
        cookies: SimpleCookie = SimpleCookie()
        try:
            cookies.load(headers.get("cookie", ""))
            return self._signer.unsign(cookies[COOKIE].value, max_age=SESSION_SECONDS).decode()
        except (KeyError, BadSignature, CookieError, UnicodeDecodeError):
            return None

    def may_try(self, address: str) -> bool:
        """Whether a try of the address is looked at at once; else it waits for its turn."""
        since = time.monotonic() - WINDOW_SECONDS
        failed = self._failures.get(address, deque())
        while failed and failed[0] < since:
            failed.popleft()
        if len(failed) >= FAILURES:
            return False
        return sum(each >= since for times in self._failures.values() for each in times) < ACCOUNT_FAILURES

    async def turn(self, address: str) -> bool:
        """Wait for the address's turn: one try each `DELAY_SECONDS`. False where too many wait already."""
        lock, waiting = self._lanes.get(address, (asyncio.Lock(), 0))
        if waiting >= LINE:
            return False
        self._lanes[address] = lock, waiting + 1
        try:
            async with lock:
                await asyncio.sleep(DELAY_SECONDS)
        finally:
            left = self._lanes[address][1] - 1
            if left:
                self._lanes[address] = lock, left
            else:
                del self._lanes[address]
        return True

    def failed(self, address: str) -> None:
        self._failures.setdefault(address, deque()).append(time.monotonic())
        self._failures.move_to_end(address)
        while len(self._failures) > MOST_ADDRESSES:
            self._failures.popitem(last=False)

    def succeeded(self, address: str) -> None:
        self._failures.pop(address, None)


@router.get("/login")
def ask(request: Request, next: str = "/") -> Response:
    """The page that asks for the password."""
    if request.app.state.login is None:
        return RedirectResponse("/", 303)
    return render(request, "login.html.j2", next=own_path(next), wrong="")


@router.post("/login")
async def check(
    request: Request, password: Annotated[str, Form()] = "", next: Annotated[str, Form()] = "/"
) -> Response:
    login: Login | None = request.app.state.login
    if login is None:
        return RedirectResponse("/", 303)
    peer = request.client.host if request.client else ""
    options: Options = request.app.state.options
    address = options.address(peer, request.headers.get("x-forwarded-for", ""))
    slow = not login.may_try(address)
    login.failed(address)  # counted before it is checked, so that tries sent at once are counted too
    if slow and not await login.turn(address):
        return _too_many(request, next)
    if not await run_in_threadpool(login.right, password):
        if slow:
            return _too_many(request, next)
        await asyncio.sleep(DELAY_SECONDS)
        return render(request, "login.html.j2", 403, next=own_path(next), wrong="That is not the password.")
    login.succeeded(address)
    answer = RedirectResponse(own_path(next), 303)
    secure = options.by_tls(peer, request.headers.get("x-forwarded-proto", ""))
    answer.set_cookie(
        COOKIE, login.cookie(), max_age=SESSION_SECONDS, httponly=True, samesite="lax", path="/", secure=secure
    )
    return answer


def _too_many(request: Request, wanted: str) -> Response:
    text = "Too many wrong passwords came from here. Try again in a moment; the correct password is let in."
    page = render(request, "login.html.j2", 429, next=own_path(wanted), wrong=text)
    page.headers["retry-after"] = str(max(1, round(DELAY_SECONDS)))
    return page


@router.post("/logout")
def leave(request: Request) -> Response:
    """End the session, here and on the server."""
    if request.app.state.login is not None:
        request.app.state.login.end(request.headers)
    answer = RedirectResponse("/login", 303)
    answer.delete_cookie(COOKIE, path="/")
    return answer


def own_path(text: str) -> str:
    """`text` if it is a path of this server; the first page otherwise, so that a link can't lead elsewhere."""
    plain = text.isascii() and text.isprintable() and "\\" not in text
    return text if plain and text.startswith("/") and not text.startswith("//") else "/"
