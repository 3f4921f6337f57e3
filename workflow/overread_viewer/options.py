"""How the viewer was started."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from pathlib import Path

LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True)
class Options:
    """What `overread serve` was given.

    results   the run's folder, results/<name>
    config    the study's config file: its models answer questions of one's own
    readers   the file of a reader study
    password  asked of everyone who opens a page; none on loopback alone
    """

    results: Path
    config: Path | None = None
    readers: Path | None = None
    host: str = "127.0.0.1"
    port: int = 8008
    password: str | None = field(default=None, repr=False)

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach the server."""
        return is_loopback(self.host)


def is_loopback(host: str) -> bool:
    """Whether a host name or address is this machine's own, by its form: no name is looked up."""
    if host.lower().rstrip(".") == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
