"""Where data may go.

The data-use rules of PhysioNet (2025-09) forbid to hand its data to third parties. Restricted data therefore go to a
loopback address, or to an endpoint that the operator has attested in the config, and to nothing else. This is decided
before a connection is made; `transport` holds to it on every request.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import urlsplit

from overread.core.errors import BadInput

Resolve = Callable[[str, int], Sequence[str]]
"""IP addresses of a host and port; OSError if it has none."""

_PORTS = {"http": 80, "https": 443}
_HOST = re.compile(r"[a-z0-9_]([a-z0-9._-]*[a-z0-9_])?\.?|[0-9a-f:.]+")


class Address(NamedTuple):
    """An endpoint in one form: two ways of writing it are equal here."""

    scheme: str
    host: str
    port: int
    path: str


@dataclass(frozen=True)
class Destination:
    """An endpoint that data have been cleared for."""

    endpoint: str
    address: Address
    loopback: bool
    restricted: bool = False
    """Whether restricted data go there."""


def clear(
    endpoint: str,
    *,
    restricted: bool,
    attested: Iterable[str] = (),
    what: str = "the data set",
    resolve: Resolve | None = None,
) -> Destination:
    """The endpoint, cleared for data.

    restricted  whether any of the data are
    attested    endpoints that the operator vouches for
    what        names the data in the error
    raises      BadInput if restricted data would leave this machine for an endpoint that nobody vouches for, and for
                an address that can't be one
    """
    to = address(endpoint)
    loopback = bool(loopback_addresses(to.host, to.port, resolve))
    if restricted and not loopback and to not in {address(each) for each in attested}:
        raise BadInput(
            f"{what} is restricted and {shown(to)} is not on this machine: nothing was sent. Use a local model, or "
            "list the endpoint under attested_endpoints if its operator is bound to the data's rules"
        )
    return Destination(endpoint, to, loopback, restricted)


def address(endpoint: str) -> Address:
    """BadInput for what is no http address, and for one that carries a user, a password or a query."""
    try:
        parts = urlsplit(endpoint.strip())
        host, port = (parts.hostname or "").lower(), parts.port
    except ValueError:
        raise BadInput(
            f"endpoint: not an address; it should look like http://127.0.0.1:8000/v1 ({endpoint!r})"
        ) from None
    if "@" in parts.netloc:
        raise BadInput("endpoint: an address must hold no user or password; the key comes from the environment")
    if parts.scheme not in _PORTS or not _HOST.fullmatch(host) or parts.query or parts.fragment or "\\" in endpoint:
        raise BadInput(f"endpoint: not an address; it should look like http://127.0.0.1:8000/v1 ({endpoint!r})")
    return Address(parts.scheme, host.rstrip("."), port or _PORTS[parts.scheme], parts.path.rstrip("/"))


def shown(to: Address) -> str:
    host = f"[{to.host}]" if ":" in to.host else to.host
    port = "" if to.port == _PORTS[to.scheme] else f":{to.port}"
    return f"{to.scheme}://{host}{port}{to.path}"


def is_loopback(endpoint: str, resolve: Resolve | None = None) -> bool:
    """Whether everything sent to the endpoint stays on this machine. A name counts by what it resolves to."""
    to = address(endpoint)
    return bool(loopback_addresses(to.host, to.port, resolve))


def is_plainly_loopback(endpoint: str) -> bool:
    """Whether an address is this machine's own without asking a name server: other names may lead anywhere."""
    return is_loopback(endpoint, lambda host, _: ["127.0.0.1"] if host == "localhost" else [host])


def loopback_addresses(host: str, port: int, resolve: Resolve | None = None) -> tuple[str, ...]:
    """The host's IP addresses if every one of them is a loopback address; else none."""
    try:
        found = (resolve or resolved)(host, port)
    except (OSError, UnicodeError):
        return ()
    return tuple(found) if found and all(_is_loopback_ip(each) for each in found) else ()


def resolved(host: str, port: int) -> list[str]:
    """As the operating system resolves the name: IPv4 before IPv6, each once."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    ordered = sorted(found, key=lambda entry: entry[0] != socket.AF_INET)
    return list(dict.fromkeys(str(entry[4][0]) for entry in ordered))


def is_ip(host: str) -> bool:
    """Whether the host is an IP address and no name."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _is_loopback_ip(text: str) -> bool:
    try:
        ip = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(ip, "ipv4_mapped", None)
    return (mapped or ip).is_loopback
