"""Back ends: what puts trials to a model.

A back end is a small class; nothing outside its folder knows how it works. It extends `LocalBackend` or
`ServerBackend`: one that extends neither gets no restricted trial.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

from overread.backends.weights import pinned
from overread.config.models import ModelSection
from overread.core.account import Account
from overread.core.errors import BadInput
from overread.core.guard import clear
from overread.core.records import Block, Trial


@dataclass(frozen=True)
class Answer:
    """What a model gave for one trial, before anybody has judged it.

    chosen     place shown of the option, where the readout itself picks one (choice, first-token); None where the
               text has to be parsed
    logprobs   log-probability by place shown, at the first generated position
    served_by  the model as a server names it, with its date
    adjusted   parameters that a server did not take, and what was done about them
    error      why the request failed: network, memory, a picture that can't be read. A failed request is asked again.
    final      a failed request that would fail again whenever it is asked, such as a prompt longer than the model
               reads: it is kept, and counted as failed
    """

    text: str
    chosen: int | None = None
    logprobs: tuple[float, ...] | None = None
    finish_reason: str | None = None
    prompt_tokens: int | None = None
    image_tokens: int | None = None
    completion_tokens: int | None = None
    seconds: float | None = None
    served_by: str | None = None
    adjusted: str | None = None
    error: str | None = None
    final: bool = False


@dataclass(frozen=True)
class Job:
    """What a back end may need to know of a job besides its trials.

    work      its work file; files of the back end's own go beside it
    ledger    where all jobs of the model write down what they spend
    kept      the answers that the work file holds already
    attested  endpoints that may receive restricted data
    """

    work: Path
    ledger: Path
    kept: Collection[Answer] = ()
    attested: Sequence[str] = ()


class Backend(ABC):
    """Answers trials. Making one is cheap: weights are loaded with the first trial that is put to it."""

    version: ClassVar[int] = 1
    """Raised when the back end's own code begins to answer differently."""

    @cached_property
    def account(self) -> Account:
        """What answering has cost so far."""
        return Account()

    @abstractmethod
    def identity(self) -> dict[str, Any]:
        """Everything that can change an answer, as JSON: the model file's own part, version, libraries, weights."""

    def also(self, trial: Trial) -> Sequence[str | None]:
        """What the back end looks at in a trial besides its blocks, options and readout: part of the request key."""
        return ()

    @abstractmethod
    def answer(self, trials: Sequence[Trial], folder: Path) -> Iterator[Answer]:
        """One answer a trial, in order, in batches of the back end's own choice.

        folder   the dataset's folder, which the pictures' paths are relative to
        raises   BadInput if the model can't be used at all; what concerns one trial is an Answer with an `error`
        """

    def as_they_come(self, trials: Sequence[Trial], folder: Path, job: Job) -> Iterator[tuple[int, Answer]]:
        """Each answer with its trial's place in `trials`, the moment it is there; in order, unless overridden."""
        yield from enumerate(self.answer(trials, folder))


class LocalBackend(Backend):
    """Answers in this process: no trial leaves the machine."""


class ServerBackend(Backend):
    """Sends trials to a server."""

    @property
    @abstractmethod
    def endpoint(self) -> str:
        """Address that trials are sent to: the guard clears it before the first of them."""


def load(model: ModelSection, model_id: str) -> Backend:
    """The back end of a model, its hub weights pinned. BadInput if the back end, or these weights, are not there."""
    module, _, name = model.implementation.partition(":")
    backend: Backend = getattr(import_module(module), name)(pinned(model, model_id), model_id)
    if model.stays_here and not isinstance(backend, LocalBackend):
        raise BadInput(
            f"model {model_id!r}: its section says that trials stay on this machine, and {name} does not extend "
            "LocalBackend: one of the two is wrong"
        )
    return backend


def guard_restricted(trials: Sequence[Trial], backend: Backend, attested: Sequence[str] = ()) -> None:
    """BadInput if restricted data would leave this machine for an endpoint that nobody vouches for.

    A back end that does not say where its trials go might send them anywhere: it is refused by name.
    """
    restricted = sorted({trial.dataset for trial in trials if trial.restricted})
    if not restricted:
        return
    if isinstance(backend, ServerBackend):
        clear(backend.endpoint, restricted=True, attested=attested, what=f"dataset {restricted[0]}")
    elif not isinstance(backend, LocalBackend):
        raise BadInput(
            f"dataset {restricted[0]} is restricted, and the back end {type(backend).__name__} does not say where its "
            "trials go: nothing was sent. It must extend LocalBackend, or ServerBackend with its endpoint"
        )


def content(blocks: Sequence[Block]) -> list[str | Path]:
    """A trial's blocks for a chat message: text, and the pictures' paths, in order.

    Text blocks that follow each other become one text with a blank line between them: chat templates strip and join
    texts in ways of their own, and every back end must put the same words.
    """
    parts: list[str | Path] = []
    for block in blocks:
        if block.image is not None:
            parts.append(Path(block.image))
        elif parts and isinstance(parts[-1], str):
            parts[-1] = f"{parts[-1]}\n\n{block.text}"
        else:
            parts.append(block.text or "")
    return parts
