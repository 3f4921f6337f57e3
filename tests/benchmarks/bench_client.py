"""The client of servers: many requests in flight. Against the `openai` library's own client with as many at once, and
against what the server's latency alone would take."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path

import openai
import pytest

from benchmarks.conftest import Bench
from data.endpoint_calls import send
from overread.backends.transport.client import Call

LATENCY = 1.0
SERVER = """
import sys, time
sys.path[:0] = sys.argv[1:3]
from data.openai_server import Completion, OpenaiServer
with OpenaiServer(lambda asked: Completion("yes"), latency=float(sys.argv[3])) as server:
    print(server.endpoint, flush=True)
    sys.stdin.read()
"""


class Elsewhere:
    """The server in a process of its own: it must not share the client's interpreter."""

    def __init__(self) -> None:
        tests = Path(__file__).parents[1]
        self.process = subprocess.Popen(
            [sys.executable, "-c", SERVER, str(tests), str(tests.parent / "workflow"), str(LATENCY)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=dict(os.environ),
        )  # fmt: skip
        assert self.process.stdout is not None
        self.endpoint = self.process.stdout.readline().strip()

    def end(self) -> None:
        self.process.communicate("")


@pytest.mark.parametrize(("in_flight", "expected"), [(32, 1.0), (128, 0.9)])
def bench_requests_in_flight(bench: Bench, in_flight: int, expected: float) -> None:
    count = bench.size(16, 4) * in_flight
    said = [[{"role": "user", "content": f"say {number}."}] for number in range(count)]
    server = Elsewhere()

    def ours() -> None:
        sent = [Call(f"{time.monotonic_ns()}-{n}", f"study-{n}", one) for n, one in enumerate(said)]
        outcomes, _ = send(server, sent, in_flight=in_flight, timeout=60.0)  # type: ignore[arg-type]
        assert len(outcomes) == count

    async def ask_all() -> None:
        async with openai.AsyncOpenAI(base_url=server.endpoint, api_key="none") as client:
            room = asyncio.Semaphore(in_flight)

            async def one(messages: list[dict[str, str]]) -> None:
                async with room:
                    await client.chat.completions.create(model="m", messages=messages)  # type: ignore[arg-type]

            await asyncio.gather(*(one(messages) for messages in said))

    try:
        row = bench.against(
            f"{count} requests, {in_flight} in flight", ours, "AsyncOpenAI and a semaphore",
            lambda: asyncio.run(ask_all()), expected=expected, clock="wall",
        )  # fmt: skip
        bench.measured(
            f"{count} requests, {in_flight} in flight", row.ours, "latency alone", LATENCY * count / in_flight,
            expected=0.65, limit=1.0, clock="wall",
        )  # fmt: skip
    finally:
        server.end()
