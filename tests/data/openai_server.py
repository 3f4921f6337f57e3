"""A real HTTP server on loopback that speaks the OpenAI chat protocol, scripted request by request.

    with OpenaiServer(script) as server:
        ... server.endpoint ...
    server.counts[content]      how often a content was asked

A script takes what was asked and returns what happens: a completion, a status, or a fault of the connection. It is
plain asyncio on sockets: a server library would not let a connection break in the middle of a body.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self


@dataclass(frozen=True)
class Asked:
    """A request as it came."""

    body: dict[str, Any]
    headers: Mapping[str, str]
    time: int
    """How often this content has been asked, this time included."""

    @property
    def content(self) -> str:
        return content_of(self.body["messages"])

    @property
    def system(self) -> str:
        return "\n".join(one["content"] for one in self.body["messages"] if one["role"] == "system")

    @property
    def user(self) -> str:
        """The text of the user's messages."""
        return "\n".join(part["text"] for part in self.parts if part["type"] == "text")

    @property
    def parts(self) -> list[dict[str, Any]]:
        """The user's messages as parts of text and images."""
        said = [one["content"] for one in self.body["messages"] if one["role"] == "user"]
        parts = [[{"type": "text", "text": one}] if isinstance(one, str) else one for one in said]
        return [part for each in parts for part in each]


def content_of(messages: Sequence[Mapping[str, Any]]) -> str:
    return hashlib.sha256(json.dumps(list(messages), sort_keys=True).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Completion:
    """Status 200 with a text, or with a refusal.

    first    log-probability by token at the first position; the first of them is the one generated
    listed   whether `top_logprobs` lists it too
    tokens   of prompt and answer, and how many of the prompt's were cached
    """

    text: str | None = None
    finish_reason: str = "stop"
    refusal: str | None = None
    first: Mapping[str, float] | None = None
    listed: bool = True
    tokens: tuple[int, int, int] = (100, 10, 0)


@dataclass(frozen=True)
class Status:
    """An error of the protocol."""

    code: int
    error: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Raw:
    """Status 200 with any body."""

    body: bytes
    content_type: str = "application/json"


@dataclass(frozen=True)
class Reset:
    """The connection breaks: before the answer, or in the middle of its body."""

    mid_body: bool = True


@dataclass(frozen=True)
class Stall:
    """Nothing comes for so many seconds."""

    seconds: float


@dataclass(frozen=True)
class Drip:
    """A body that comes byte by byte and takes so many seconds."""

    seconds: float


@dataclass(frozen=True)
class Held:
    """Comes when the event is set, if whoever asked is still there."""

    until: threading.Event
    then: Completion


@dataclass(frozen=True)
class Flood:
    """A body of so many megabytes that never ends."""

    megabytes: int


Also = Callable[[str, str, bytes], "tuple[int, bytes] | None"]
"""What else the server knows: method, path and body to status and body; None for a path that it does not know."""

Happening = Completion | Status | Raw | Reset | Stall | Drip | Held | Flood
Script = Callable[[Asked], Happening]


@dataclass
class OpenaiServer:
    """Listens in a thread of its own from `with` to its end.

    latency   seconds before each answer
    refuses   parameters that get status 400, each with the name to use instead, or None
    key       what must stand in the Authorization header, if anything
    path      that chat requests come to
    also      other paths
    """

    script: Script
    latency: float = 0.0
    refuses: Mapping[str, str | None] = field(default_factory=dict)
    key: str | None = None
    port: int = 0
    path: str = "/v1/chat/completions"
    also: Also | None = None

    def __post_init__(self) -> None:
        self.asked: list[Asked] = []
        self.counts: Counter[str] = Counter()
        """Requests that reached the script, by content."""
        self.answered: Counter[str] = Counter()
        """Completions whose last byte was written, by content."""
        self.completed: list[Asked] = []
        """The same, as they were asked."""
        self.others: list[tuple[str, str]] = []
        """Method and path of the other requests."""
        self.times: list[float] = []
        """When each request came, by the monotonic clock."""
        self.flying = self.most_flying = 0
        self._connections: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.come_back()
        return self

    def __exit__(self, *error: object) -> None:
        self.die()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        with contextlib.suppress(RuntimeError):
            self._loop.close()

    def come_back(self) -> None:
        """Listen, on the same port as before."""
        self._in_loop(self._listen())

    def die(self) -> None:
        """Stop listening and break every connection, as a killed process does."""
        self._in_loop(self._break_off())

    def _in_loop(self, coroutine: Any) -> None:
        asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(timeout=10)

    async def _listen(self) -> None:
        listening = socket.socket()
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(("127.0.0.1", self.port))
        self.port = listening.getsockname()[1]
        self._server = await asyncio.start_server(self._connection, sock=listening, backlog=256)

    async def _break_off(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        for writer in list(self._connections):
            _reset(writer)
        for task in asyncio.all_tasks():
            if task is not asyncio.current_task():
                task.cancel()
        await asyncio.sleep(0)

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections.add(writer)
        try:
            while (request := await self._request(reader)) is not None:
                if not isinstance(request, Asked):
                    await self._told(*request, writer)
                    continue
                self.flying += 1
                self.most_flying = max(self.most_flying, self.flying)
                try:
                    if not await self._answer(request, reader, writer):
                        return
                finally:
                    self.flying -= 1
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._connections.discard(writer)
            writer.close()

    async def _request(self, reader: asyncio.StreamReader) -> Asked | tuple[str, str, bytes] | None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        except asyncio.IncompleteReadError:
            return None
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])}
        raw = await reader.readexactly(int(headers.get("content-length", 0)))
        method, path, _ = head[0].split(" ")
        if (method, path.partition("?")[0]) != ("POST", self.path):
            assert self.also is not None, head[0]
            self.others.append((method, path))
            return method, path, raw
        body = json.loads(raw)
        content = content_of(body["messages"])
        self.counts[content] += 1
        self.times.append(time.monotonic())
        self.asked.append(Asked(body, {**headers, ":path": path}, self.counts[content]))
        return self.asked[-1]

    async def _told(self, method: str, path: str, raw: bytes, writer: asyncio.StreamWriter) -> None:
        assert self.also is not None
        known = self.also(method, path, raw)
        code, body = known or (404, json.dumps({"error": {"message": "no such path", "code": "not_found"}}).encode())
        writer.write(_head(code, {"content-length": str(len(body))}) + body)
        await writer.drain()

    async def _answer(self, asked: Asked, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Whether the connection goes on."""
        happening = self.refusal(asked) or self.script(asked)
        if self.latency:
            await asyncio.sleep(self.latency)
        if isinstance(happening, Held):
            while not happening.until.is_set():
                if reader.at_eof():
                    return False
                await asyncio.sleep(0.05)
            happening = happening.then
        if isinstance(happening, Flood):
            writer.write(_head(200, {"content-length": str(10**12)}))
            for _ in range(happening.megabytes):
                writer.write(b" " * 1_000_000)
                await writer.drain()
            while not reader.at_eof():
                await asyncio.sleep(0.05)
            return False
        if isinstance(happening, Stall):
            await asyncio.sleep(happening.seconds)
            return False
        if isinstance(happening, Drip):
            writer.write(_head(200, {"content-length": "1000"}))
            for _ in range(int(happening.seconds / 0.05)):
                writer.write(b" ")
                await writer.drain()
                await asyncio.sleep(0.05)
            return False
        if isinstance(happening, Reset):
            if happening.mid_body:
                writer.write(
                    _head(200, {"content-length": "1000"}) + b'{"id": "chatcmpl-1", "choices": [{"index": 0, "mes'
                )
                await writer.drain()
                await asyncio.sleep(0.01)
            _reset(writer)
            return False
        if isinstance(happening, Status):
            body = json.dumps(error_of(happening)).encode()
            writer.write(_head(happening.code, {"content-length": str(len(body)), **happening.headers}) + body)
        elif isinstance(happening, Raw):
            head = {"content-length": str(len(happening.body)), "content-type": happening.content_type}
            writer.write(_head(200, head) + happening.body)
        else:
            body = json.dumps(completion_of(happening, asked)).encode()
            writer.write(_head(200, {"content-length": str(len(body))}) + body)
        await writer.drain()
        if isinstance(happening, Completion):
            self.answered[asked.content] += 1
            self.completed.append(asked)
        return True

    def refusal(self, asked: Asked) -> Status | None:
        if self.key is not None and asked.headers.get("authorization") != f"Bearer {self.key}":
            return Status(401, {"message": "Incorrect API key provided", "code": "invalid_api_key"})
        for name, instead in self.refuses.items():
            if name in asked.body:
                hint = f" Use '{instead}' instead." if instead else ""
                message = f"Unsupported parameter: '{name}' is not supported with this model.{hint}"
                return Status(400, {"message": message, "param": name, "code": "unsupported_parameter"})
        return None


def completion_of(happening: Completion, asked: Asked) -> dict[str, Any]:
    message = {"role": "assistant", "content": happening.text, "refusal": happening.refusal}
    logprobs = None
    if happening.first is not None and asked.body.get("logprobs"):
        listed = [{"token": token, "logprob": value, "bytes": None} for token, value in happening.first.items()]
        logprobs = {"content": [{**listed[0], "top_logprobs": listed if happening.listed else []}], "refusal": None}
    prompt, answer, cached = happening.tokens
    return {
        "id": f"chatcmpl-{asked.content}",
        "object": "chat.completion",
        "created": 0,
        "model": f"{asked.body['model']}-served",
        "choices": [{"index": 0, "message": message, "finish_reason": happening.finish_reason, "logprobs": logprobs}],
        "usage": {
            "prompt_tokens": prompt,
            "completion_tokens": answer,
            "total_tokens": prompt + answer,
            "prompt_tokens_details": {"cached_tokens": cached},
        },
    }


def error_of(status: Status) -> dict[str, Any]:
    """The body of an error of the protocol."""
    return {"error": {"message": "scripted", "type": "scripted_error", "param": None, "code": None, **status.error}}


def _head(code: int, headers: Mapping[str, str]) -> bytes:
    lines = [
        f"HTTP/1.1 {code} Scripted",
        *(f"{k}: {v}" for k, v in {"content-type": "application/json", **headers}.items()),
    ]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def _reset(writer: asyncio.StreamWriter) -> None:
    """Close at once with a reset, as the kernel does for a process that was killed."""
    connection = writer.get_extra_info("socket")
    with contextlib.suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


@dataclass
class Faults:
    """A script that meets each content with its list of faults, one a request, and then lets the good script answer.

    `before` maps a word of the prompt to the faults of the requests that hold it, in order.
    """

    good: Script
    before: Mapping[str, Sequence[Happening | Callable[[Asked], Happening]]]

    def __call__(self, asked: Asked) -> Happening:
        for word, faults in self.before.items():
            if word in asked.user and asked.time <= len(faults):
                fault = faults[asked.time - 1]
                return fault(asked) if callable(fault) else fault
        return self.good(asked)
