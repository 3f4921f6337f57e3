"""What went wrong with a request, and what follows from it.

Only what can pass by itself is sent again. The words name a status and a code, never the server's message: servers
quote the prompt in it, and a prompt may hold a restricted report. The message goes to the log at level DEBUG.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any

import httpx2
import openai

log = logging.getLogger("overread.backends.transport")

LONGEST_PAUSE = 600.0
"""Seconds. A server that wants to be left alone for longer is not waited for: the request fails."""

_TRANSIENT = {408, 409, 425, 429}
_TOO_LONG = re.compile(
    r"context.{0,20}length|context window|maximum.{0,20}(tokens|context)|too long|string_above_max", re.I
)
_FILTERED = {"content_filter", "content_policy_violation", "ResponsibleAIPolicyViolation"}


class RequestError(Exception):
    """Why a try gave no answer, in one line without any of the prompt."""


class Transient(RequestError):
    """It can pass by itself. `pause`: seconds that the server asked for; `lost`: it may have worked for the answer."""

    def __init__(self, reason: str, pause: float | None = None, *, lost: bool = False) -> None:
        super().__init__(reason)
        self.pause, self.lost = pause, lost


class BadReply(RequestError):
    """A reply came, and it is none that can be used: cut off, not JSON, of another form."""


class Refused(RequestError):
    """The model or its provider won't answer this: kept as such, and not asked again."""


class Rejected(RequestError):
    """This request can't be answered as it is, however often it is sent."""


class TooLong(Rejected):
    """The model does not take so many tokens."""


class Hopeless(RequestError):
    """No request can be answered: the key, the address or the model's name is wrong."""


def fault_of(error: Exception) -> RequestError:
    """The fault behind an error of a try. What is no fault of a request (a defect, bad input) is raised again."""
    if isinstance(error, RequestError):
        return error
    if isinstance(error, TimeoutError | openai.APITimeoutError):
        return Transient("no answer in time", lost=not _never_sent(error))
    if isinstance(error, openai.APIStatusError):
        return _of_status(error)
    if isinstance(error, openai.APIConnectionError):
        return Transient(f"connection lost ({type(error.__cause__).__name__})", lost=not _never_sent(error))
    if isinstance(error, openai.APIError):
        return Transient("a reply that is none of the protocol", lost=True)
    raise error


def _never_sent(error: BaseException) -> bool:
    """Whether there was no connection to send anything over."""
    return isinstance(error.__cause__, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.PoolTimeout)


def _of_status(error: openai.APIStatusError) -> RequestError:
    told = {"code": error.code, "type": error.type, "param": error.param, "message": error.message}
    return fault_of_status(error.status_code, told, error.response.headers)


def fault_of_status(status: int, error: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> RequestError:
    """The fault that a status and the protocol's error object (code, type, param, message) tell of."""
    code = code_word(error.get("code")) or code_word(error.get("type"))
    message = str(error.get("message") or "")
    reason = f"status {status}" + (f", {code}" if code else "")
    log.debug("%s: %s", reason, message)
    if code == "insufficient_quota":
        return Hopeless(f"{reason}: the account's quota is used up")
    if status in _TRANSIENT or status >= 500:
        pause = retry_after(headers or {})
        if pause is not None and pause > LONGEST_PAUSE:
            return Rejected(f"{reason}: the server wants {pause:.0f} s of pause; run it again later")
        return Transient(reason, pause)
    if _FILTERED & {str(error.get("code")), str(error.get("type"))}:
        return Refused(reason)
    if status in (401, 403):
        return Hopeless(f"{reason}: the key is not accepted")
    if status in (404, 405):
        return Hopeless(f"{reason}: the server knows no such address or model")
    if 300 <= status < 400:
        return Hopeless(f"{reason}: the server sends elsewhere; redirects are not followed, so name the address itself")
    if status == 413 or _TOO_LONG.search(f"{error.get('code')} {message}"):
        return TooLong(f"{reason}: longer than the model takes")
    parameter = code_word(error.get("param"))
    return Rejected(f"{reason}: it does not take {parameter} as it is" if parameter else reason)


def retry_after(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """Seconds until the server wants to hear from us again (RFC 9110, 10.2.3), or None where it doesn't say."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after")
    seconds = _number(value)
    if seconds is not None or value is None:
        return seconds
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - (time.time() if now is None else now))
    except (ValueError, TypeError):
        return None


def _number(value: str | None) -> float | None:
    return float(value) if value is not None and re.fullmatch(r"\s*\d{1,9}(\.\d*)?\s*", value) else None


def code_word(value: object) -> str | None:
    """A server's code, if it is one: a short word that can hold no prompt."""
    text = str(value) if value is not None else ""
    return text if re.fullmatch(r"[A-Za-z][\w.-]{1,63}", text) else None
