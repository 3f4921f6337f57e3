"""Who reviews: a name that is said once, kept in a signed cookie.

It is no login: whoever may open the viewer may say any name. The signature keeps out what no form of ours has checked.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from fastapi import Response
from itsdangerous import BadSignature, URLSafeSerializer

from overread.core.errors import BadInput
from overread.core.inputs import regular

SECONDS = 90 * 24 * 3600


class Names:
    """Cookies with the names of reviewers of a run.

    The key lies beside the decisions, so that nobody is asked again after a restart; it is made with the first name.

    folder  of the decisions
    run     the run's name: servers on several ports of a host share their cookies, and it keeps them apart
    """

    def __init__(self, folder: Path, run: str) -> None:
        self._file = folder / ".key"
        self._cookie = f"overread-reviewer-{run}"
        self._made: URLSafeSerializer | None = None

    def said(self, cookies: dict[str, str]) -> str:
        """The name of a request's cookie; empty if it has none, or if it was not made here."""
        cookie = cookies.get(self._cookie)
        if not cookie or not self._file.is_file():
            return ""
        try:
            name = self._signer().loads(cookie)
        except BadSignature:
            return ""
        return name if isinstance(name, str) else ""

    def keep(self, answer: Response, name: str, *, secure: bool = False) -> None:
        """Have the browser remember a name, `secure` where the page came by TLS.

        raises  BadInput if the key can't be written
        """
        answer.set_cookie(
            self._cookie, str(self._signer().dumps(name)), max_age=SECONDS, httponly=True, samesite="strict",
            path="/review", secure=secure,
        )  # fmt: skip

    def _signer(self) -> URLSafeSerializer:
        if self._made is None:
            try:
                if not self._file.is_file():
                    _write_key(self._file)
                key = regular(self._file).read_text(encoding="ascii")
            except (OSError, UnicodeDecodeError) as error:
                raise BadInput(f"{self._file}: can't be used: {error}; decisions are kept beside it") from None
            self._made = URLSafeSerializer(key, salt="overread.reviewer")
        return self._made


def _write_key(path: Path) -> None:
    """A key that is whole as soon as it is there; where two servers start at once, the first one's stays."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".key.{os.getpid()}.{secrets.token_hex(4)}")
    with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(secrets.token_urlsafe(32))
    try:
        os.link(temporary, path)
    except FileExistsError:
        pass
    finally:
        temporary.unlink()
