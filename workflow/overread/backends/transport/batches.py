"""A provider's batch API: requests go up as a file, and their answers come back as one, within a day and cheaper.

A journal beside the work file says what is on its way, so that a killed job finds its batches again and sends nothing
twice. It is written before each step: where a job died between sending a batch and writing down its id, the mark that
was written before finds it in the provider's list. What was answered is deleted from the provider's files.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import openai
from openai.types import Batch

from overread.backends.transport.adapting import Parameters, refused_parameter
from overread.backends.transport.client import Call, ChatClient, Failure
from overread.backends.transport.faults import (
    BadReply,
    Refused,
    RequestError,
    TooLong,
    Transient,
    code_word,
    fault_of_status,
)
from overread.backends.transport.replies import Reply, refusal, reply_in, strict_json
from overread.backends.transport.spending import Spent
from overread.backends.transport.trying import tried
from overread.core.errors import BadInput
from overread.core.inputs import regular
from overread.core.stopping import pause

if TYPE_CHECKING:
    from overread.config import ServerModel

T = TypeVar("T")

MOST_REQUESTS = 50_000
MOST_BYTES = 150_000_000
"""Of one batch. Providers take up to 50,000 requests and 200 MB."""
LISTED = 2_000
"""So many of the provider's newest batches are looked through for one whose id was lost."""
MARK = "overread"
"""Name of the mark in a batch's metadata."""
_ENDED_AS = {"completed": "ended", "failed": "was turned down", "expired": "expired", "cancelled": "was cancelled"}
SAY_SECONDS = 60.0
POLL_SECONDS = 30.0


@dataclass
class Sent:
    """A batch on its way.

    mark      in its metadata; made before it is sent
    sent_as   parameters that had been found not to be taken
    reserved  the budget's reservation
    file      id of the uploaded requests
    batch     its id, once it is known
    """

    mark: str
    keys: tuple[str, ...]
    sent_as: dict[str, str | None] = field(default_factory=dict)
    reserved: str | None = None
    file: str | None = None
    batch: str | None = None


class Journal:
    """What is on its way: one JSON line a step, on the disk before the next step is made."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def note(self, mark: str, **step: Any) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab") as file:
            file.write(json.dumps({"mark": mark, **step}).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())

    def on_their_way(self) -> dict[str, Sent]:
        """Batches without an end, by mark. BadInput for a journal that can't be read: what was sent can't be known."""
        found: dict[str, Sent] = {}
        content = regular(self.path).read_bytes() if self.path.exists() else b""
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            os.truncate(self.path, whole)  # a killed write: its step was not made yet
        for line in content[:whole].split(b"\n")[:-1]:
            try:
                step = json.loads(line)
                mark = step.pop("mark")
                if "keys" in step:
                    found[mark] = Sent(mark, **{**step, "keys": tuple(step["keys"])})
                elif "ended" in step:
                    found.pop(mark, None)
                else:
                    found[mark] = replace(found[mark], **step)
            except (ValueError, KeyError, TypeError):
                raise BadInput(
                    f"{self.path}: damaged journal of batches: what was sent can't be known; look at the provider's "
                    "list of batches, and delete this file to send what is missing anew"
                ) from None
        return found


def batched(
    chat: ChatClient, model: ServerModel, work: Path, *, poll: float = POLL_SECONDS
) -> ChatClient | BatchClient:
    """What sends a job's calls: a client of batches, with its journal beside the work file, where the model says so."""
    if not model.batch_api:
        return chat
    path = chat.protocol.batch_path
    if path is None:
        raise BadInput(f"{chat.to.endpoint} takes no batches: remove batch_api")
    return BatchClient(chat, work.with_suffix(".batches.jsonl"), poll=poll, path=path)


class BatchClient:
    """Sends calls as batches: takes the place of a ChatClient, whose endpoint, model and parameters it uses.

    journal  file of the batches on their way
    poll     seconds between two looks at a batch
    path     of the protocol, in each request
    """

    def __init__(
        self, chat: ChatClient, journal: Path, *, poll: float = POLL_SECONDS, path: str = "/v1/chat/completions"
    ) -> None:
        self.chat, self.journal, self.poll, self.path = chat, Journal(journal), poll, path
        self.faults, self.say = chat.faults, chat.say

    async def answers(self, calls: Iterable[Call]) -> AsyncIterator[tuple[Call, Reply | Failure]]:
        """Each call with its reply, as the batches end. Calls that an earlier job sent are waited for, not sent."""
        left = {call.key: call for call in calls}
        again: Counter[str] = Counter()
        try:
            async with self.chat.connected() as api:
                pending = await self._found(api)
                there = {key for sent in pending for key in sent.keys}
                todo = [call for call in left.values() if call.key not in there]
                while True:
                    sent_now, todo, failed = await self._send(api, todo)
                    pending += sent_now
                    for call, failure in failed:
                        del left[call.key]
                        yield call, failure
                    if not pending:
                        break
                    sent, batch = await self._ended(api, pending)
                    pending.remove(sent)
                    async for key, outcome in self._outcomes(api, sent, batch, left):
                        again[key] += outcome is None
                        if outcome is None and again[key] <= self.chat.patience.bad_replies:
                            todo.append(left[key])
                            continue
                        yield left.pop(key), outcome or Failure("no answer that can be used, in several batches")
                    self.journal.note(sent.mark, ended=batch.status)
                    await self._delete(api, sent.file, batch.output_file_id, batch.error_file_id)
                reason = self.chat.purse.exhausted() if self.chat.purse and self.chat.purse.limited else "not sent"
        except RequestError as fault:
            self.faults[str(fault)] += 1
            reason = str(fault)
        for call in left.values():
            yield call, Failure(reason)

    async def _found(self, api: openai.AsyncOpenAI) -> list[Sent]:
        """The batches of earlier jobs. One that never reached the provider is forgotten."""
        found = []
        for sent in self.journal.on_their_way().values():
            if sent.batch is None:
                batch = await self._tried(sent.mark, lambda mark=sent.mark: self._marked(api, mark))  # type: ignore[misc]
                if batch is None:
                    self._settle(sent, [])
                    self.journal.note(sent.mark, ended="never sent")
                    await self._delete(api, sent.file)
                    continue
                sent.batch = batch.id
                self.journal.note(sent.mark, batch=batch.id)
            self.say(f"batch {sent.batch}: {len(sent.keys)} requests were sent before and are waited for")
            found.append(sent)
        return found

    async def _marked(self, api: openai.AsyncOpenAI, mark: str) -> Batch | None:
        """The provider's batch with a mark."""
        seen = 0
        async for batch in api.batches.list(limit=100):
            if (batch.metadata or {}).get(MARK) == mark:
                return batch
            seen += 1
            if seen >= LISTED:
                break
        return None

    async def _send(
        self, api: openai.AsyncOpenAI, todo: list[Call]
    ) -> tuple[list[Sent], list[Call], list[tuple[Call, Failure]]]:
        """Send what can be sent: the batches, the calls that the budget does not hold, and those that can't be made."""
        sent: list[Sent] = []
        failed: list[tuple[Call, Failure]] = []
        while todo:
            chosen, lines, cost, rest, broken = self._packed(todo)
            failed += broken
            reserved = None
            if chosen and self.chat.purse is not None and self.chat.purse.limited:
                reserved = self.chat.purse.reserve(cost)
                if reserved is None:
                    return sent, [*chosen, *rest], failed
            if not chosen:
                return sent, rest, failed
            sent.append(await self._submitted(api, chosen, lines, reserved))
            todo = rest
        return sent, [], failed

    def _packed(self, todo: list[Call]) -> tuple[list[Call], bytes, Spent, list[Call], list[tuple[Call, Failure]]]:
        """As many calls as a batch and the budget hold; their lines; the most they can cost; the others; the broken."""
        purse = self.chat.purse
        room = purse.left() if purse is not None and purse.limited else None
        lines, cost = bytearray(), Spent()
        chosen: list[Call] = []
        failed: list[tuple[Call, Failure]] = []
        for place, call in enumerate(todo):
            try:
                said = call.said()
            except BadInput as error:
                failed.append((call, Failure(str(error))))
                continue
            parameters = self.chat.taken.sent(call.parameters)
            body = {"model": self.chat.model, "messages": said, **parameters}
            line = (
                json.dumps({"custom_id": call.key, "method": "POST", "url": self.path, "body": body}).encode() + b"\n"
            )
            full = len(chosen) >= MOST_REQUESTS or (chosen and len(lines) + len(line) > MOST_BYTES)
            if room is not None:
                more = cost + self.chat.cost(said, parameters)[1]
                full = full or more.dollars > room.dollars or more.tokens > room.tokens
                cost = cost if full else more
            if full:
                return chosen, bytes(lines), cost, todo[place:], failed
            chosen.append(call)
            lines += line
        return chosen, bytes(lines), cost, [], failed

    async def _submitted(self, api: openai.AsyncOpenAI, calls: list[Call], lines: bytes, reserved: str | None) -> Sent:
        sent = Sent(secrets.token_hex(8), tuple(call.key for call in calls), dict(self.chat.taken.sent_as), reserved)
        self.journal.note(sent.mark, keys=sent.keys, sent_as=sent.sent_as, reserved=reserved)
        upload = await self._tried(sent.mark, lambda: api.files.create(file=("requests.jsonl", lines), purpose="batch"))
        sent.file = upload.id
        self.journal.note(sent.mark, file=sent.file)
        tried = False

        async def create() -> Batch:
            nonlocal tried
            there = await self._marked(api, sent.mark) if tried else None
            tried = True
            return there or await api.batches.create(
                input_file_id=upload.id,
                endpoint=self.path,  # type: ignore[arg-type]
                completion_window="24h",
                metadata={MARK: sent.mark},
            )

        batch = await self._tried(sent.mark, create)
        self.chat.sent += len(calls)
        sent.batch = batch.id
        self.journal.note(sent.mark, batch=batch.id)
        self.say(f"batch {batch.id}: {len(calls)} requests sent")
        return sent

    async def _ended(self, api: openai.AsyncOpenAI, pending: list[Sent]) -> tuple[Sent, Batch]:
        """The first of the batches that has come to its end."""
        said = time.monotonic()
        while True:
            done = 0
            for sent in pending:
                batch = await self._tried(sent.mark, lambda sent=sent: api.batches.retrieve(str(sent.batch)))  # type: ignore[misc]
                if batch.status in _ENDED_AS:
                    return sent, batch
                done += batch.request_counts.completed if batch.request_counts else 0
            if time.monotonic() - said >= SAY_SECONDS:
                said = time.monotonic()
                self.say(f"batches: {done} of {sum(len(sent.keys) for sent in pending)} requests are done")
            await pause(self.poll)

    async def _outcomes(
        self, api: openai.AsyncOpenAI, sent: Sent, batch: Batch, left: dict[str, Call]
    ) -> AsyncIterator[tuple[str, Reply | Failure | None]]:
        """What came of each call of a batch; None for one that is to be sent again."""
        taken = Parameters(self.chat.taken.asked, sent.sent_as)
        replies: list[Reply] = []
        unseen = {key for key in sent.keys if key in left}
        for file in (batch.output_file_id, batch.error_file_id):
            if not file:
                continue
            content = await self._tried(sent.mark, lambda file=file: self._content(api, file))  # type: ignore[misc]
            for line in content.split(b"\n"):
                if not line.strip():
                    continue
                key, outcome = self._outcome(line, left, taken)
                if key not in unseen:
                    continue
                unseen.remove(key)
                if isinstance(outcome, Reply):
                    replies.append(outcome)
                yield key, outcome
        self._settle(sent, replies)
        codes = sorted({code_word(each.code) or "?" for each in (batch.errors.data or [])}) if batch.errors else []
        why = f"the batch {_ENDED_AS[batch.status]}" + (f" ({', '.join(codes)})" if codes else "")
        for key in [key for key in sent.keys if key in unseen]:
            yield key, Failure(f"{why} without an answer to this request")

    async def _content(self, api: openai.AsyncOpenAI, file: str) -> bytes:
        return (await api.files.content(file)).content

    def _outcome(self, line: bytes, left: dict[str, Call], taken: Parameters) -> tuple[str, Reply | Failure | None]:
        """A line of a result file: the key, and what came of its call."""
        try:
            entry = strict_json(line.decode())
            key, response = str(entry["custom_id"]), entry.get("response") or {}
            status, body = response.get("status_code"), response.get("body")
        except (BadReply, UnicodeDecodeError, KeyError, TypeError, AttributeError):
            return "", None  # whose it is can't be known: its call counts as unanswered
        call = left.get(key)
        if call is None:
            return key, None
        try:
            if status == 200:
                reply = replace(reply_in(body), adjusted=taken.adjusted)
                if call.judge is not None and reply.status == "answered":
                    call.judge(reply)
                return key, reply
            if not status:
                code = code_word((entry.get("error") or {}).get("code"))
                return key, Failure("no answer in the batch" + (f" ({code})" if code else ""))
            error = body.get("error") if isinstance(body, dict) else None
            error = error if isinstance(error, dict) else {}
            sent = taken.sent(call.parameters)
            refused = refused_parameter(str(error.get("message")), error.get("param"), error.get("code"), sent)
            if status in (400, 422) and self.chat.does_without(refused, sent, call.needs):
                return key, None
            raise fault_of_status(status, error)
        except Refused as fault:
            return key, replace(refusal(fault), adjusted=taken.adjusted)
        except (Transient, BadReply) as fault:
            self.faults[str(fault)] += 1
            return key, None
        except RequestError as fault:
            return key, Failure(str(fault), final=isinstance(fault, TooLong))

    def _settle(self, sent: Sent, replies: list[Reply]) -> None:
        purse = self.chat.purse
        if purse is None or (sent.reserved is None and not replies):
            return
        cost = Spent()
        for reply in replies:
            prompt, completion = reply.prompt_tokens or 0, reply.completion_tokens or 0
            cost += Spent(prompt + completion, purse.prices.of(prompt, completion, reply.cached_tokens or 0))
        purse.settle(sent.reserved, cost)

    async def _tried(self, key: str, attempt: Callable[[], Awaitable[T]]) -> T:
        return await tried(self.chat.patience, key, attempt, self.faults)

    async def _delete(self, api: openai.AsyncOpenAI, *files: str | None) -> None:
        """From the provider's files; one that stays there is no fault of the answers."""
        for file in files:
            if file:
                with contextlib.suppress(openai.OpenAIError, TimeoutError):
                    async with asyncio.timeout(self.chat.patience.timeout):
                        await api.files.delete(file)
