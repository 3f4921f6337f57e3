"""The password of a server that others can reach: one for all, checked slowly, remembered in a signed cookie."""

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

from overread_viewer.pages import render

router = APIRouter()

COOKIE = "overread"
SESSION_SECONDS = 12 * 3600
"""A working day."""

FAILURES, WINDOW_SECONDS = 5, 60.0
"""So many wrong passwords of one address in so many seconds; more are not looked at."""

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

    def _hashed(self, password: str) -> bytes:
        return hashlib.scrypt(password.encode(), salt=self._salt, n=2**14, r=8, p=1)

    def right(self, password: str) -> bool:
        return hmac.compare_digest(self._hashed(password), self._hash)

    def cookie(self) -> str:
        return self._signer.sign(secrets.token_urlsafe(8)).decode()

    def signed_in(self, headers: Headers) -> bool:
        """Whether the request carries a cookie that this server signed, and not too long ago."""
        cookies: SimpleCookie = SimpleCookie()
        try:
            cookies.load(headers.get("cookie", ""))
            self._signer.unsign(cookies[COOKIE].value, max_age=SESSION_SECONDS)
        except (KeyError, BadSignature, CookieError):
            return False
        return True

    def may_try(self, address: str) -> bool:
        failed = self._failures.get(address, deque())
        while failed and failed[0] < time.monotonic() - WINDOW_SECONDS:
            failed.popleft()
        return len(failed) < FAILURES

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
    address = request.client.host if request.client else ""
    if not login.may_try(address):
        page = render(
            request, "login.html.j2", 429, next=own_path(next), wrong="Too many wrong passwords. Wait a minute."
        )
        page.headers["retry-after"] = str(int(WINDOW_SECONDS))
        return page
    login.failed(address)  # counted before it is checked, so that tries sent at once are counted too
    if not await run_in_threadpool(login.right, password):
        await asyncio.sleep(DELAY_SECONDS)
        return render(request, "login.html.j2", 403, next=own_path(next), wrong="That is not the password.")
    login.succeeded(address)
    answer = RedirectResponse(own_path(next), 303)
    answer.set_cookie(COOKIE, login.cookie(), max_age=SESSION_SECONDS, httponly=True, samesite="lax", path="/")
    return answer


@router.post("/logout")
def leave() -> Response:
    """Forget the cookie in this browser."""
    answer = RedirectResponse("/login", 303)
    answer.delete_cookie(COOKIE, path="/")
    return answer


def own_path(text: str) -> str:
    """`text` if it is a path of this server; the first page otherwise, so that a link can't lead elsewhere."""
    plain = text.isascii() and text.isprintable() and "\\" not in text
    return text if plain and text.startswith("/") and not text.startswith("//") else "/"
