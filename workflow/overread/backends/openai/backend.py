"""Models behind an OpenAI-compatible server: the API itself, Azure, a vLLM server, anything that speaks the protocol.

Trials that begin with the same pictures and report are sent one after the other, for servers that keep beginnings, and
each answer is kept the moment it comes. What the readouts ask and read: `readouts`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from overread.backends.base import Answer, Job, ServerBackend
from overread.backends.openai import readouts
from overread.backends.openai.messages import Read, messages, reader
from overread.backends.openai.section import OpenaiModel
from overread.backends.order import by_shared_beginning, in_turn
from overread.backends.transport.batches import POLL_SECONDS, batched
from overread.backends.transport.client import Call, ChatClient, Failure, Patience
from overread.backends.transport.faults import RequestError
from overread.backends.transport.replies import Reply
from overread.backends.transport.spending import Prices, Purse
from overread.core.errors import BadInput
from overread.core.guard import clear
from overread.core.progress import say
from overread.core.records import Trial, request_key

if TYPE_CHECKING:
    from overread.backends.openai.tokens import ServerTokens
    from overread.backends.transport.asking import Client


@dataclass(frozen=True)
class TrialCall(Call):
    """The request of one trial, with its place among those asked."""

    place: int = 0
    tokens: tuple[int, ...] | None = None


class OpenaiBackend(ServerBackend):
    """Sends trials to the endpoint of a model file."""

    def __init__(self, model: OpenaiModel, model_id: str) -> None:
        self.model, self.model_id = model, model_id
        self.patience = Patience(in_flight=model.batch, timeout=model.timeout)
        self.poll = POLL_SECONDS
        """Between two looks at a batch."""

    @property
    def endpoint(self) -> str:
        return self.model.endpoint

    def identity(self) -> dict[str, Any]:
        return {**self.model.identity(), "version": self.version}

    def answer(self, trials: Sequence[Trial], folder: Path) -> Iterator[Answer]:
        """In order. Without a job there is no place for a ledger or a batch: BadInput for a model that needs one."""
        if self.model.batch_api or self.model.budget_dollars or self.model.budget_tokens:
            raise BadInput(f"model {self.model_id!r}: a budget and the batch API need a job with a work file")
        yield from in_turn(self._come(trials, folder, None))

    def as_they_come(self, trials: Sequence[Trial], folder: Path, job: Job) -> Iterator[tuple[int, Answer]]:
        yield from self._come(trials, folder, job)

    def _come(self, trials: Sequence[Trial], folder: Path, job: Job | None) -> Iterator[tuple[int, Answer]]:
        from overread.backends.transport.asking import answers

        self._check(trials)
        chat = self._chat(trials, job)
        try:
            server = self._server(chat)
            tokens = self._words(server, trials)
            if server and self.model.takes.images and server.begin_is_missing():
                chat.taken.asked.setdefault("add_special_tokens", True)
        except RequestError as fault:
            yield from ((place, Answer(text="", error=str(fault))) for place in range(len(trials)))
            return
        calls = self._calls(trials, folder, tokens)
        loose = 0
        for call, outcome in answers(self._client(chat, job), calls):
            assert isinstance(call, TrialCall)
            trial = trials[call.place]
            if isinstance(outcome, Failure):
                yield call.place, Answer(text="", error=outcome.reason, final=outcome.final)
                continue
            self._count(outcome, trial)
            answer = readouts.answer_of(outcome, self.model, trial, call.tokens)
            loose += answer.chosen is None and answer.finish_reason == "stop" and trial.readout == "choice"
            yield call.place, answer
        self._summarise(chat, loose)

    def _check(self, trials: Sequence[Trial]) -> None:
        for trial in trials:
            place = f"model {self.model_id!r}: setting {trial.setting}"
            if trial.readout not in readouts.READOUTS:
                raise BadInput(f"{place}: the openai back end has no readout {trial.readout!r}")
            if trial.attention != "none":
                raise BadInput(f"{place}: the openai back end can't hide the report from layers; use transformers")
            if trial.readout == "first-token":
                if not self.model.takes.logprobs:
                    raise BadInput(f"{place}: readout 'first-token' needs log-probabilities, and this model gives none")
                if readouts.words(trial) is None:
                    raise BadInput(
                        f"{place}: readout 'first-token' needs the options yes and no, not {list(trial.options)}"
                    )
            if any(str(block.image).endswith(".nii.gz") for block in trial.images):
                raise BadInput(f"{place}: the openai back end takes pictures, no volumes")

    def _chat(self, trials: Sequence[Trial], job: Job | None) -> ChatClient:
        """A client of the endpoint. BadInput, before anything is sent, if the trials' data must not go there."""
        model, restricted = self.model, sorted({trial.dataset for trial in trials if trial.restricted})
        what = f"dataset {restricted[0]}" if restricted else "the data set"
        attested = job.attested if job else ()
        return ChatClient(
            to=clear(model.endpoint, restricted=bool(restricted), attested=attested, what=what),
            model=model.model,
            parameters=readouts.common(model),
            key_variable=model.key_variable,
            patience=self.patience,
            say=say,
            protocol=model.protocol,
            purse=self._purse(job),
            image_tokens=model.takes.image_tokens,
        )

    def _purse(self, job: Job | None) -> Purse | None:
        purse = Purse.of(self.model, job.ledger, str(job.work)) if job else None
        if purse is not None and job is not None:
            purse.recall((each.prompt_tokens or 0, each.completion_tokens or 0) for each in job.kept)
        return purse

    def _client(self, chat: ChatClient, job: Job | None) -> Client:
        return batched(chat, self.model, job.work, poll=self.poll) if job else chat

    def _server(self, chat: ChatClient) -> ServerTokens | None:
        """What the server says of its tokens; None for one that does not tell them."""
        if not self.model.protocol.tells_tokens:
            return None
        from overread.backends.openai.tokens import ServerTokens

        return ServerTokens(chat, thinking=self.model.thinking, place=f"model {self.model_id!r}")

    def _words(self, server: ServerTokens | None, trials: Sequence[Trial]) -> dict[tuple[str, ...], tuple[int, ...]]:
        """Tokens of the trials' words, by the words, where the server tells them."""
        found: dict[tuple[str, ...], tuple[int, ...]] = {}
        if server is None or not self.model.takes.logprobs:
            return found
        for trial in trials:
            asked = tuple(readouts.words(trial) or ())
            if asked not in found and (tokens := server.of(trial)) is not None:
                found[asked] = tuple(tokens)
        return found

    def _calls(
        self, trials: Sequence[Trial], folder: Path, tokens: dict[tuple[str, ...], tuple[int, ...]]
    ) -> Iterator[TrialCall]:
        read, identity = reader(), self.identity()
        for place in by_shared_beginning(trials):
            trial = trials[place]
            known = tokens.get(tuple(readouts.words(trial) or ()))
            parameters, needs = readouts.parameters(self.model, trial, known)
            yield TrialCall(
                key=request_key(identity, trial, self.also(trial)),
                what=trial.study,
                messages=partial(self._messages, trial, folder, read),
                parameters=parameters,
                needs=needs,
                place=place,
                tokens=known,
            )

    def _messages(self, trial: Trial, folder: Path, read: Read) -> list[dict[str, Any]]:
        return messages(trial, folder, read, self.model.image_detail)

    def _count(self, reply: Reply, trial: Trial) -> None:
        account, prompt, cached = self.account, reply.prompt_tokens or 0, reply.cached_tokens or 0
        completion = reply.completion_tokens or 0
        account.prompt_tokens += prompt
        account.prefilled_tokens += prompt - cached
        account.completion_tokens += completion
        account.images_encoded += len(trial.images)
        if self.model.prices is not None:
            account.dollars += Prices(**self.model.prices.model_dump()).of(prompt, completion, cached)

    def _summarise(self, chat: ChatClient, loose: int) -> None:
        """What a person should know of the job, in lines without a word of any prompt."""
        for reason, times in chat.faults.most_common():
            say(f"{self.model_id}: {times} tries without an answer: {reason}")
        if loose:
            say(f"{self.model_id}: {loose} answers were not held to the options' numbers: their text is parsed")
        if chat.purse is not None and self.model.prices is not None:
            say(f"{self.model_id}: {self.account.dollars:.4f} dollars now, {chat.purse.spent.dollars:.4f} in all")
