"""A real server, and requests written byte by byte: what no well-behaved client would send."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Wire:
    """An address, and the raw answer to raw bytes."""

    port: int
    process: subprocess.Popen[str]

    def send(self, *parts: bytes) -> tuple[int, str]:
        """The status and the whole text of the answer to these bytes; status 0 if the connection just ended."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=10) as connection:
            try:
                for part in parts:
                    connection.sendall(part)
            except (BrokenPipeError, ConnectionResetError):
                pass  # refused while it was still being sent
            said = b""
            try:
                while chunk := connection.recv(65536):
                    said += chunk
            except ConnectionResetError:
                pass
        text = said.decode("utf-8", "replace")
        found = re.match(r"HTTP/1\.1 (\d+)", text)
        return (int(found[1]) if found else 0), text

    def ask(self, line: str, *headers: str, host: str | None = None, body: bytes = b"") -> tuple[int, str]:
        """`line` is `GET /path`; the connection ends with the answer."""
        host = host if host is not None else f"127.0.0.1:{self.port}"
        top = [f"{line} HTTP/1.1", f"Host: {host}", "Connection: close", *headers]
        if body:
            top.append(f"Content-Length: {len(body)}")
        return self.send("\r\n".join([*top, "", ""]).encode() + body)


@contextmanager
def serving(results: Path, *arguments: str) -> Iterator[Wire]:
    process = subprocess.Popen(
        [sys.executable, "-u", "-m", "overread", "serve", str(results), "--port", "0", *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        said = ""
        for line in process.stdout:
            said += line
            if found := re.search(r"is at http://\S+?:(\d+)/ ", line):
                yield Wire(int(found[1]), process)
                break
        else:
            raise AssertionError(f"the server did not start:\n{said}")
    finally:
        process.terminate()
        process.communicate(timeout=10)
