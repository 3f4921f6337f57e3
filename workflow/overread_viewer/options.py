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
    config    the study's config file: its models can be asked ad-hoc questions
    readers   the file of a reader study
    password  asked of everyone who opens a page; none on loopback alone
    proxies   addresses whose X-Forwarded-For and X-Forwarded-Proto are believed; nobody else's are
    """

    results: Path
    config: Path | None = None
    readers: Path | None = None
    host: str = "127.0.0.1"
    port: int = 8008
    password: str | None = field(default=None, repr=False)
    proxies: tuple[str, ...] = ()

    def address(self, peer: str, forwarded: str) -> str:
        """Who asks: behind a proxy of ours the last address that it was told, else the peer."""
        told = [each.strip() for each in forwarded.split(",") if each.strip()]
        while peer in self.proxies and told:
            peer = told.pop()
        return peer

    def by_tls(self, peer: str, protocol: str) -> bool:
        """Whether the browser came by TLS, which a proxy of ours ended."""
        return peer in self.proxies and protocol.split(",")[-1].strip().lower() == "https"

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


def is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
