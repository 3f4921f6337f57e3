"""What a vLLM server's own tokenizer says: which tokens a readout's words are, and whether a begin token is missing.

Both are found as the transformers back end finds them, so that a server gives what the same weights give there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import httpx2
import jinja2
import openai

from overread.backends.transformers.readouts import FirstTokens, words
from overread.backends.transport.client import ChatClient
from overread.backends.transport.faults import BadReply, Hopeless, Rejected
from overread.backends.transport.replies import strict_json
from overread.backends.transport.trying import tried
from overread.core.guard import shown
from overread.core.records import Trial

_QUESTION = [{"role": "user", "content": "?"}]


class ServerTokens:
    """Asks a vLLM server's `/tokenize` and `/detokenize`.

    thinking  what the chat template is told
    place     names the model in an error
    """

    def __init__(self, client: ChatClient, *, thinking: bool, place: str) -> None:
        self._client, self._thinking = client, thinking
        root = client.to.address
        self._root = shown(root._replace(path=root.path.removesuffix("/v1")))
        self._first = FirstTokens(self._render, self._encode, parts=False, unknown=None, place=place)
        self._trusted: bool | None = None

    def of(self, trial: Trial) -> list[int] | None:
        """Token of each of the trial's words; None where it has none, or where the server does not tell.

        raises  BadInput if a constrained readout has a word of several tokens; RequestError if the server is not there
        """
        if words(trial) is None or not self._can_be_trusted():
            return None
        return self._first.of(trial)

    def begin_is_missing(self) -> bool:
        """Whether the chat template leaves the begin token to the tokenizer, which a server does not let put it."""
        if not self._can_be_trusted():
            return False
        prompt = self._chat(_QUESTION, True)
        text = self._render(_QUESTION, True)
        whole = list(self._told("/tokenize", {"prompt": text, "add_special_tokens": True}, "tokens", list))
        return whole[1:] == prompt and whole[:1] != prompt[:1]

    def _can_be_trusted(self) -> bool:
        """Whether the server tells its tokens, and reads a prompt back as the tokens that it wrote it from."""
        if self._trusted is None:
            try:
                self._trusted = self._encode(self._render(_QUESTION, True)) == self._chat(_QUESTION, True)
            except (Hopeless, Rejected, BadReply, jinja2.TemplateError):
                self._trusted = False
            if not self._trusted:
                self._client.say(
                    f"{shown(self._client.to.address)} does not tell its tokens: the readout choice is held to its "
                    "words without log-probabilities"
                )
        return self._trusted

    def _render(self, conversation: list[dict[str, Any]], answer_begins: bool) -> str:
        tokens = self._chat(conversation, answer_begins)
        return str(self._told("/detokenize", {"tokens": tokens}, "prompt", str))

    def _chat(self, conversation: list[dict[str, Any]], answer_begins: bool) -> list[int]:
        asked = {
            "messages": conversation,
            "add_generation_prompt": answer_begins,
            "chat_template_kwargs": {"enable_thinking": self._thinking},
        }
        try:
            return list(self._told("/tokenize", asked, "tokens", list))
        except Rejected as fault:
            raise jinja2.TemplateError(str(fault)) from None  # what a template raises that takes no such conversation

    def _encode(self, text: str) -> list[int]:
        return list(self._told("/tokenize", {"prompt": text, "add_special_tokens": False}, "tokens", list))

    def _told(self, path: str, asked: dict[str, Any], name: str, kind: type[str] | type[list[int]]) -> Sequence[Any]:
        content = asyncio.run(self._post(path, asked))
        value = content.get(name) if isinstance(content, dict) else None
        if not isinstance(value, kind):
            raise BadReply("a reply of another form than that of vLLM")
        return value

    async def _post(self, path: str, asked: dict[str, Any]) -> Any:
        async with self._client.connected() as api:

            async def attempt(api: openai.AsyncOpenAI = api) -> Any:
                answer = await api.post(
                    f"{self._root}{path}", cast_to=httpx2.Response, body={"model": self._client.model, **asked}
                )
                return strict_json(answer.content.decode())

            return await tried(self._client.patience, path, attempt, self._client.faults)
