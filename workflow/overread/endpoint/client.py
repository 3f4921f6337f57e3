"""Many chat requests to one endpoint: bounded tries, back-off with jitter, a bounded and adaptive number in flight."""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import httpx2
import openai
import tenacity

from overread.endpoint.adapting import Parameters, refused_parameter
from overread.endpoint.faults import BadReply, Hopeless, Refused, RequestError, Transient, fault_of
from overread.endpoint.flight import Flight
from overread.endpoint.guard import Destination, Resolve, shown
from overread.endpoint.replies import Reply, refusal, reply_of
from overread.endpoint.transport import http_client
from overread.errors import BadInput

Messages = list[dict[str, Any]]
Judge = Callable[[Reply], object]
"""Raises BadReply for an answer that can't be used: it is then asked for again."""


@dataclass(frozen=True)
class Call:
    """One request: what is said to the model, and how its answer is judged.

    key       names its content: the answer is kept under it
    what      names it to a person, without a word of the report: a study's id
    messages  as in the chat protocol
    """

    key: str
    what: str
    messages: Messages
    judge: Judge | None = None


@dataclass(frozen=True)
class Failure:
    """Why a request has no answer, in one line without any of the prompt."""

    reason: str


@dataclass(frozen=True)
class Patience:
    """How long and how often. Times in seconds."""

    in_flight: int = 16
    tries: int = 8
    bad_replies: int = 3
    """So many replies that can't be used, and the request fails."""
    first_wait: float = 1.0
    longest_wait: float = 60.0
    timeout: float = 600.0
    """Of one try, from sending to the last byte."""

    def wait(self, key: str, failed: int) -> float:
        """Back-off after the try number `failed`, from 1: doubled each time, and drawn between its half and its whole.

        The jitter comes from the key: requests that failed together do not come back together.
        """
        whole = min(self.longest_wait, self.first_wait * 2.0 ** min(failed - 1, 60))
        return whole * random.Random(f"{key}:{failed}").uniform(0.5, 1.0)


@dataclass
class ChatClient:
    """Sends calls to a cleared endpoint.

    to            where, from `guard.clear`
    model         the name that the server knows it by
    parameters    of every request: temperature, max_tokens, response_format ...
    key_variable  environment variable with the key; a server on this machine needs none
    say           takes lines for a person
    raises        BadInput if a server elsewhere has no key
    """

    to: Destination
    model: str
    parameters: Mapping[str, Any]
    key_variable: str = "OPENAI_API_KEY"
    patience: Patience = Patience()
    say: Callable[[str], None] = lambda line: None
    resolve: Resolve | None = None
    faults: Counter[str] = field(default_factory=Counter)
    """Tries that gave no answer, by reason."""
    sent: int = 0
    """Requests put on the wire, every try counted."""

    def __post_init__(self) -> None:
        self._key = os.environ.get(self.key_variable, "").strip()
        if not self._key and not self.to.loopback:
            raise BadInput(
                f"{shown(self.to.address)} needs a key: put it into the environment variable {self.key_variable}"
            )
        self._parameters = Parameters(self.parameters)
        self._hopeless: Hopeless | None = None

    async def answers(self, calls: Iterable[Call]) -> AsyncIterator[tuple[Call, Reply | Failure]]:
        """Each call with its reply, as they come. Calls are taken from the iterable as there is room for them.

        Nothing is sent twice after an answer. A key or a model that the server does not know ends the sending: the
        calls left over fail with that reason.
        """
        waiting = iter(calls)
        done: asyncio.Queue[tuple[Call, Reply | Failure] | BaseException | None] = asyncio.Queue()
        flight = Flight(self.patience.in_flight)

        async def work() -> None:
            try:
                for call in waiting:
                    done.put_nowait((call, await self._outcome(client, flight, call)))
                done.put_nowait(None)
            except BaseException as error:
                done.put_nowait(error)
                raise

        async with (
            http_client(self.to, connections=self.patience.in_flight, resolve=self.resolve) as http,
            openai.AsyncOpenAI(
                base_url=shown(self.to.address), api_key=self._key or "none", max_retries=0, http_client=http
            ) as client,
        ):
            workers = [asyncio.create_task(work()) for _ in range(self.patience.in_flight)]
            try:
                working = len(workers)
                while working:
                    outcome = await done.get()
                    if outcome is None:
                        working -= 1
                    elif isinstance(outcome, BaseException):
                        raise outcome
                    else:
                        yield outcome
            finally:
                for worker in workers:
                    worker.cancel()
                await asyncio.gather(*workers, return_exceptions=True)

    async def _outcome(self, client: openai.AsyncOpenAI, flight: Flight, call: Call) -> Reply | Failure:
        if self._hopeless is not None:
            return Failure(f"not sent: {self._hopeless}")
        bad = 0

        def again(state: tenacity.RetryCallState) -> bool:
            nonlocal bad
            error = state.outcome.exception() if state.outcome else None
            bad += isinstance(error, BadReply)
            return (
                self._hopeless is None and isinstance(error, Transient | BadReply) and bad < self.patience.bad_replies
            )

        def wait(state: tenacity.RetryCallState) -> float:
            error = state.outcome.exception() if state.outcome else None
            pause = error.pause if isinstance(error, Transient) else None
            return max(self.patience.wait(call.key, state.attempt_number), pause or 0.0)

        tries = tenacity.AsyncRetrying(
            stop=tenacity.stop_after_attempt(self.patience.tries),
            wait=wait,
            retry=again,
            sleep=asyncio.sleep,
            reraise=True,
        )
        try:
            reply: Reply = await tries(self._try, client, flight, call)
        except Refused as fault:
            return replace(refusal(fault), adjusted=self._parameters.adjusted)
        except Hopeless as fault:
            self._hopeless = fault
            return Failure(str(fault))
        except RequestError as fault:
            made = int(tries.statistics["attempt_number"])
            return Failure(f"{fault}" + (f" ({made} tries)" if made > 1 else ""))
        return reply

    async def _try(self, client: openai.AsyncOpenAI, flight: Flight, call: Call) -> Reply:
        """One try, again at once when the model turns out not to take a parameter."""
        while True:
            async with flight.slot() as took_off:
                if self._hopeless is not None:
                    raise self._hopeless
                parameters, adjusted = self._parameters.sent(), self._parameters.adjusted
                began = time.monotonic()
                try:
                    self.sent += 1
                    reply = reply_of(await self._post(client, call.messages, parameters))
                    if call.judge is not None and reply.status == "answered":
                        call.judge(reply)
                except Exception as error:
                    if self._adapted(error, parameters):
                        continue
                    fault = fault_of(error)
                    self.faults[str(fault)] += 1
                    if isinstance(fault, Transient):
                        flight.congested(took_off, fault.pause)
                    elif isinstance(fault, BadReply):
                        flight.landed()
                    raise fault from None
                flight.landed()
                return replace(reply, seconds=round(time.monotonic() - began, 3), adjusted=adjusted)

    async def _post(self, client: openai.AsyncOpenAI, messages: Messages, parameters: dict[str, Any]) -> bytes:
        """The body of the answer, all of it and in time."""
        async with asyncio.timeout(self.patience.timeout):
            # The client's untyped way in: its typed one walks through every message once more, to no use here.
            answer = await client.post(
                "/chat/completions",
                cast_to=httpx2.Response,
                body={"model": self.model, "messages": messages, **parameters},
                options={"timeout": self.patience.timeout},
            )
            return answer.content

    def _adapted(self, error: Exception, sent: dict[str, Any]) -> bool:
        """Whether the model refused a parameter that the next try does without."""
        if not isinstance(error, openai.BadRequestError | openai.UnprocessableEntityError):
            return False
        refused = refused_parameter(error.message, error.param, error.code, sent)
        before = self._parameters.adjusted
        if refused is None or not self._parameters.adapt(refused, sent):
            return False
        if self._parameters.adjusted != before:
            self.say(f"{self.model} does not take {refused}: {self._parameters.adjusted}")
        return True
