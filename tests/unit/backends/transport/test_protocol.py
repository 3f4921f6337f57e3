"""A server that speaks a protocol of its own, behind the client's retries and budget."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, get_args

import pytest

from data.endpoint_calls import QUICK
from overread.backends.openai.section import OpenaiModel
from overread.backends.openai.servers import SERVERS
from overread.backends.transport.client import Call, ChatClient, Failure
from overread.backends.transport.faults import BadReply, RequestError, Transient
from overread.backends.transport.protocol import Protocol
from overread.backends.transport.replies import Reply
from overread.backends.transport.spending import Prices, Purse
from overread.core.guard import clear


class Busy(Exception):
    """What this server's own client raises."""


class Refuses(Exception):
    """A word about a parameter that it does not take."""


class Telegraph(Protocol):
    """Answers with the last word it was sent, in a body of its own form; busy at first, and it takes no temperature."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []

    @asynccontextmanager
    async def connected(self, to: Any, key: str, *, connections: int, resolve: Any = None) -> AsyncIterator[str]:
        yield to.endpoint

    async def send(
        self, connection: Any, model: str, messages: list[dict[str, Any]], parameters: Mapping[str, Any], seconds: float
    ) -> bytes:
        self.sent.append(dict(parameters))
        if "temperature" in parameters:
            raise Refuses("temperature")
        if len(self.sent) < 4:
            raise Busy
        return json.dumps({"word": messages[-1]["content"].split()[-1], "letters": 40}).encode()

    def reply(self, body: bytes) -> Reply:
        content = json.loads(body)
        return Reply("answered", content["word"], "stop", prompt_tokens=content["letters"], completion_tokens=1)

    def fault(self, error: Exception) -> RequestError:
        return Transient("busy") if isinstance(error, Busy) else BadReply(str(error))

    def refused(self, error: Exception, sent: Mapping[str, Any]) -> str | None:
        return str(error) if isinstance(error, Refuses) else None


def ask(client: ChatClient, *calls: Call) -> dict[str, Reply | Failure]:
    async def gather() -> dict[str, Reply | Failure]:
        return {call.key: reply async for call, reply in client.answers(calls)}

    return asyncio.run(gather())


def test_retries_parameters_and_budget_are_the_clients_whatever_is_spoken(tmp_path: Path) -> None:
    telegraph = Telegraph()
    purse = Purse(Prices(), tmp_path / "ledger.jsonl", "job", tokens=20_000)
    to = clear("http://127.0.0.1:9/telegraph", restricted=True)
    said: list[str] = []
    client = ChatClient(to, "m", {"temperature": 0.5}, patience=QUICK, say=said.append, protocol=telegraph, purse=purse)
    first = ask(client, Call("a", "s1", [{"role": "user", "content": "left or right"}]))["a"]
    assert isinstance(first, Reply) and first.text == "right"
    assert [("temperature" in one) for one in telegraph.sent] == [True, False, False, False]
    assert client.faults == {"busy": 2} and "does not take temperature" in said[0]
    assert purse.spent.tokens == 41
    second = ask(
        client, Call("b", "s2", [{"role": "user", "content": "word " * 200}], parameters={"max_tokens": 30_000})
    )
    assert isinstance(second["b"], Failure) and len(telegraph.sent) == 4, "the budget holds no second one"


@pytest.mark.parametrize("server", SERVERS)
def test_every_server_that_a_model_file_may_name_has_its_class(server: str) -> None:
    assert set(SERVERS) == set(get_args(OpenaiModel.model_fields["server"].annotation))
    fields = {"label": "m", "backend": "openai", "model": "m", "endpoint": "http://127.0.0.1:9/openai/v1"}
    model = OpenaiModel.model_validate({**fields, "server": server})
    assert type(model.protocol) is SERVERS[server]
