"""Many chat requests to one endpoint: bounded tries, back-off with jitter, a bounded and adaptive number in flight."""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Container, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from typing import Any

import tenacity

from overread.backends.transport.adapting import Parameters
from overread.backends.transport.faults import BadReply, Hopeless, Refused, RequestError, TooLong, Transient
from overread.backends.transport.flight import Flight
from overread.backends.transport.protocol import ChatProtocol, Protocol
from overread.backends.transport.replies import Reply, refusal
from overread.backends.transport.spending import Purse, Spent
from overread.core.errors import BadInput
from overread.core.guard import Destination, Resolve, shown
from overread.core.stopping import pause, until_warned, warned, who

Messages = list[dict[str, Any]]
Judge = Callable[[Reply], object]
"""Raises BadReply for an answer that can't be used: it is then asked for again."""


@dataclass(frozen=True)
class Call:
    """One request: what is said to the model, and how its answer is judged.

    key         names its content: the answer is kept under it
    what        names it to a person, without a word of the report: a study's id
    messages    as in the chat protocol; or what makes them, for those with pictures, which need not lie in memory
                before they are sent. It raises BadInput if it can't: the call fails with that
    parameters  of this request alone
    needs       parameters that it would be of no use without: a model that does not take one fails it
    """

    key: str
    what: str
    messages: Messages | Callable[[], Messages]
    judge: Judge | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    needs: frozenset[str] = frozenset()

    def said(self) -> Messages:
        return self.messages() if callable(self.messages) else self.messages


@dataclass(frozen=True)
class Failure:
    """Why a request has no answer, in one line without any of the prompt.

    final  it would fail again whenever it is sent: it is longer than the model takes
    """

    reason: str
    final: bool = False


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
    protocol      how the server is spoken to
    purse         what may be spent; none: nothing is counted
    image_tokens  what an image is thought to cost before the server has said
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
    protocol: Protocol = field(default_factory=ChatProtocol)
    purse: Purse | None = None
    image_tokens: int | None = None
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
        self.taken = Parameters(self.parameters)
        """What the model turned out to take."""
        self._hopeless: Hopeless | None = None

    def connected(self) -> AbstractAsyncContextManager[Any]:
        """A connection to the endpoint."""
        return self.protocol.connected(self.to, self._key, connections=self.patience.in_flight, resolve=self.resolve)

    async def answers(self, calls: Iterable[Call]) -> AsyncIterator[tuple[Call, Reply | Failure]]:
        """Each call with its reply, as they come. Calls are taken from the iterable as there is room for them.

        After a warning (`stopping`) no more are taken, and what is on its way is waited for.

        Nothing is sent twice after an answer. A key or a model that the server does not know ends the sending: the
        calls left over fail with that reason.
        """
        waiting = until_warned(calls)
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

        async with self.connected() as client:
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

    async def _outcome(self, client: Any, flight: Flight, call: Call) -> Reply | Failure:
        if self._hopeless is not None:
            return Failure(f"not sent: {self._hopeless}")
        bad = 0

        def again(state: tenacity.RetryCallState) -> bool:
            nonlocal bad
            error = state.outcome.exception() if state.outcome else None
            bad += isinstance(error, BadReply)
            if self._hopeless is not None or warned():
                return False
            return isinstance(error, Transient | BadReply) and bad < self.patience.bad_replies

        def wait(state: tenacity.RetryCallState) -> float:
            error = state.outcome.exception() if state.outcome else None
            pause = error.pause if isinstance(error, Transient) else None
            return max(self.patience.wait(call.key, state.attempt_number), pause or 0.0)

        tries = tenacity.AsyncRetrying(
            stop=tenacity.stop_after_attempt(self.patience.tries),
            wait=wait,
            retry=again,
            sleep=pause,
            reraise=True,
        )
        try:
            said = call.said()
        except BadInput as error:
            return Failure(str(error))
        try:
            reply: Reply = await tries(self._try, client, flight, call, said)
        except Refused as fault:
            return replace(refusal(fault), adjusted=self.taken.adjusted)
        except Hopeless as fault:
            self._hopeless = fault
            return Failure(str(fault))
        except TooLong as fault:
            return Failure(str(fault), final=True)
        except RequestError as fault:
            made = int(tries.statistics["attempt_number"])
            return Failure(f"{fault}" + (f" ({made} tries)" if made > 1 else ""))
        return reply

    async def _try(self, client: Any, flight: Flight, call: Call, said: Messages) -> Reply:
        """One try, again at once when the model turns out not to take a parameter."""
        while True:
            async with flight.slot() as took_off:
                if warned():
                    raise Hopeless(f"{who()} came first")
                if self._hopeless is not None:
                    raise self._hopeless
                parameters, adjusted = self.taken.sent(call.parameters), self.taken.adjusted
                began = time.monotonic()
                reserved = await self._set_aside(said, parameters)
                try:
                    self.sent += 1
                    reply = self.protocol.reply(await self._post(client, said, parameters))
                    self._settle(reserved, reply)
                    reserved = None
                    if call.judge is not None and reply.status == "answered":
                        call.judge(reply)
                except Exception as error:
                    if self.adapted(error, parameters, call.needs):
                        self._release(reserved)
                        continue
                    fault = self.protocol.fault(error)
                    self._release(reserved, lost=isinstance(fault, Transient) and fault.lost)
                    self.faults[str(fault)] += 1
                    if isinstance(fault, Transient):
                        flight.congested(took_off, fault.pause)
                    elif isinstance(fault, BadReply):
                        flight.landed()
                    raise fault from None
                flight.landed()
                return replace(reply, seconds=round(time.monotonic() - began, 3), adjusted=adjusted)

    async def _set_aside(self, said: Messages, parameters: Mapping[str, Any]) -> tuple[str, int] | None:
        """The reservation of a request and its prompt's size; Hopeless where the budget does not hold it."""
        if self.purse is None or not self.purse.limited:
            return None
        while True:
            size, cost = self.cost(said, parameters)
            name = self.purse.reserve(cost)
            if name is not None:
                return name, size
            if not self.purse.held:
                raise Hopeless(self.purse.exhausted())
            # Those on their way were set aside at their dearest: some of it comes back.
            await asyncio.sleep(0.05)

    def cost(self, said: Messages, parameters: Mapping[str, Any]) -> tuple[int, Spent]:
        """The size of a prompt, and what its request is thought to cost at most."""
        assert self.purse is not None
        size = self.purse.size(*size_of(said), self.image_tokens)
        answer = parameters.get("max_completion_tokens") or parameters.get("max_tokens") or MOST_ANSWER_TOKENS
        return size, self.purse.most(self.purse.prompt_tokens(size), int(answer))

    def _settle(self, reserved: tuple[str, int] | None, reply: Reply) -> None:
        if self.purse is None:
            return
        prompt, completion = reply.prompt_tokens or 0, reply.completion_tokens or 0
        if reserved is not None:
            if not prompt:  # the server counts nothing: it stays as it was set aside
                self.purse.lose(reserved[0])
                return
            self.purse.learn(reserved[1], prompt)
        dollars = self.purse.prices.of(prompt, completion, reply.cached_tokens or 0)
        self.purse.settle(reserved[0] if reserved else None, Spent(prompt + completion, dollars))

    def _release(self, reserved: tuple[str, int] | None, *, lost: bool = False) -> None:
        if self.purse is None or reserved is None:
            return
        if lost:
            self.purse.lose(reserved[0])
        else:
            self.purse.settle(reserved[0], Spent())

    async def _post(self, client: Any, messages: Messages, parameters: dict[str, Any]) -> bytes:
        """The body of the answer, all of it and in time."""
        return await self.protocol.send(client, self.model, messages, parameters, self.patience.timeout)

    def adapted(self, error: Exception, sent: dict[str, Any], needs: Container[str] = ()) -> bool:
        """Whether the model refused a parameter that the next try does without."""
        return self.does_without(self.protocol.refused(error, sent), sent, needs)

    def does_without(self, refused: str | None, sent: dict[str, Any], needs: Container[str] = ()) -> bool:
        """Do without a refused parameter from now on, if a request can."""
        before = self.taken.adjusted
        if refused is None or refused in needs or not self.taken.adapt(refused, sent):
            return False
        if self.taken.adjusted != before:
            self.say(f"{self.model} does not take {refused}: {self.taken.adjusted}")
        return True


MOST_ANSWER_TOKENS = 16_384
"""Of a request that sets no limit, for the budget."""


def size_of(messages: Messages) -> tuple[int, int]:
    """Bytes of text, and images."""
    text = images = 0
    for message in messages:
        content = message["content"]
        for part in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            if part["type"] == "text":
                text += len(part["text"].encode())
            else:
                images += 1
    return text, images
