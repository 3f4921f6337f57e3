"""The back end: trials in, answers out, in the trials' order.

Trials are read ahead and put in an order in which prompts that begin alike follow each other; an answer that comes
before its turn waits. Pictures and prompts of the next trials are made ready while the model works on these.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any, ClassVar

from overread.backends.base import Answer, Job, LocalBackend
from overread.backends.order import by_shared_beginning, in_turn
from overread.backends.transformers import copying, packing
from overread.backends.transformers.hiding import check_hiding
from overread.backends.transformers.network import Network, first_line, load_network
from overread.backends.transformers.pictures import read_picture
from overread.backends.transformers.plain import Batches
from overread.backends.transformers.prompts import Prompt, Prompts, Shown, Unaskable
from overread.backends.transformers.readouts import READOUTS, is_yes_no
from overread.backends.transformers.section import TransformersModel
from overread.backends.weights import folder_identity, versions
from overread.config import is_folder
from overread.core.errors import BadInput
from overread.core.progress import say
from overread.core.records import Trial
from overread.core.stopping import until_warned

AHEAD = 1024
"""Trials that are put in order together: a killed job loses the answers of no more than these."""

WINDOW = 256
"""Trials that are made ready together and share what they can; fewer where they show many pictures."""

WINDOW_PICTURES = 128
"""Pictures that are held ready at once, about a gigabyte of those of MedGemma."""


class TransformersBackend(LocalBackend):
    """AutoProcessor with AutoModelForImageTextToText, or AutoModelForCausalLM where there is no vision part."""

    version = 2
    hides: ClassVar[bool] = True
    """Whether the report can be hidden from layers."""
    pictures_at_once: ClassVar[int] = WINDOW_PICTURES

    def __init__(self, model: TransformersModel, model_id: str) -> None:
        self.model, self.model_id = model, model_id

    def identity(self) -> dict[str, Any]:
        """The model file's part; a folder is named by the hashes of its files, never by its path."""
        identity = {**self.model.identity(), "version": self.version}
        identity["versions"] = versions("transformers", "tokenizers", "torch", "pillow")
        if is_folder(self.model.weights):
            identity["weights"] = folder_identity(Path(self.model.weights).expanduser(), self.model_id)
        return identity

    def answer(self, trials: Sequence[Trial], folder: Path) -> Iterator[Answer]:
        yield from in_turn(self._come(trials, folder))

    def as_they_come(self, trials: Sequence[Trial], folder: Path, job: Job) -> Iterator[tuple[int, Answer]]:
        yield from self._come(trials, folder)

    def _come(self, trials: Sequence[Trial], folder: Path) -> Iterator[tuple[int, Answer]]:
        """Place and answer of each trial, in the order in which they are made."""
        self._check(trials)
        self._say_words(trials)
        with ThreadPoolExecutor(max_workers=1) as reader:
            for numbers, ready in until_warned(self._windows(trials, folder, reader)):
                yield from self._answers(numbers, ready)

    @cached_property
    def network(self) -> Network:
        return load_network(self.model, self.model_id)

    @cached_property
    def _prompts(self) -> Prompts:
        return Prompts(self.network)

    @cached_property
    def _engine(self) -> packing.Packs | copying.Copies | Batches:
        network = self.network
        self.account.device, self.account.gpus = _device(network)
        if self.model.share_prefix and network.architecture in packing.ARCHITECTURES:
            return self._packs
        if self.model.share_prefix and network.architecture in copying.ARCHITECTURES:
            return copying.Copies(network, self.account)
        if self.model.share_prefix:
            say(f"model {self.model_id!r}: what prompts begin with alike is not shared in {network.architecture}")
        return Batches(network, self.account)

    @cached_property
    def _packs(self) -> packing.Packs:
        """Also where nothing is shared, a report is hidden in packs: what a token sees is chosen there."""
        self.account.device, self.account.gpus = _device(self.network)
        return packing.Packs(self.network, self.account, share=self.model.share_prefix)

    def _check(self, trials: Sequence[Trial]) -> None:
        for trial in trials:
            place = f"model {self.model_id!r}: setting {trial.setting}"
            if trial.readout not in READOUTS:
                raise BadInput(f"{place}: the {self.model.backend} back end has no readout {trial.readout!r}")
            if trial.attention != "none" and not self.hides:
                raise BadInput(f"{place}: the {self.model.backend} back end can't hide the report from layers")
            if trial.attention != "none":
                check_hiding(self.network, trial.attention, place, packing.ARCHITECTURES)
            if trial.readout == "first-token" and not is_yes_no(trial):
                raise BadInput(
                    f"{place}: readout 'first-token' needs the options yes and no, not {list(trial.options)}"
                )
            if trial.images and not self.network.sees:
                raise BadInput(
                    f"{self.network.place}: this model takes text only, but setting {trial.setting} shows pictures"
                )

    def _say_words(self, trials: Sequence[Trial]) -> None:
        """Which tokens are yes and no is a choice that a reader of the log should be able to check."""
        for trial in trials:
            if trial.readout == "first-token":
                first = self._prompts.first_tokens
                place = f"{self.network.place}: {list(trial.options)}"
                say(f"{place} are read as tokens {first.of(trial)}; {first.variants(trial)}")
                return

    def _windows(
        self, trials: Sequence[Trial], folder: Path, reader: ThreadPoolExecutor
    ) -> Iterator[tuple[list[int], list[Prompt | Answer]]]:
        """Numbers of trials that are answered together, and what became of each: a prompt, or why there is none."""
        windows = _cut(trials, self.pictures_at_once)
        shown: dict[str, Shown] = {}
        coming: Future[list[Prompt | Answer]] | None = None
        for place, numbers in enumerate(windows):
            now = coming or reader.submit(self._ready, [trials[number] for number in numbers], folder, shown)
            ready = now.result()
            if place + 1 < len(windows):
                coming = reader.submit(self._ready, [trials[number] for number in windows[place + 1]], folder, shown)
            yield numbers, ready

    def _ready(self, trials: list[Trial], folder: Path, shown: dict[str, Shown]) -> list[Prompt | Answer]:
        """Prompts of trials, with their pictures. What concerns one trial is its answer."""
        wanted = {block.pixels for trial in trials for block in trial.images}
        for pixels in [each for each in shown if each not in wanted]:
            del shown[pixels]
        made: list[Prompt | Answer] = []
        for trial in trials:
            try:
                made.append(
                    self._prompts.prompt(trial, [self._picture(block, folder, shown) for block in trial.images])
                )
            except _NoPicture as error:
                made.append(Answer(text="", error=str(error)))
            except Unaskable as error:
                made.append(Answer(text="", error=str(error), final=True))
        return made

    def _picture(self, block: Any, folder: Path, shown: dict[str, Shown]) -> Shown:
        pixels = str(block.pixels)
        if pixels not in shown:
            try:
                image = read_picture(folder / str(block.image), pixels)
            except BadInput as error:
                raise _NoPicture(str(error)) from None
            try:
                shown[pixels] = self._prompts.picture(image, pixels)
            except ValueError as error:
                place = self.network.place
                raise Unaskable(f"{place}: its processor refuses {block.image}: {first_line(error)}") from None
        return shown[pixels]

    def _answers(self, numbers: list[int], ready: list[Prompt | Answer]) -> Iterator[tuple[int, Answer]]:
        asked = [(number, each) for number, each in zip(numbers, ready, strict=True) if isinstance(each, Prompt)]
        for number, each in zip(numbers, ready, strict=True):
            if isinstance(each, Answer):
                yield number, each
        # What is hidden in one prompt is in view in another: they share nothing.
        by_attention = sorted(asked, key=lambda each: each[1].trial.attention)
        for attention, alike in groupby(by_attention, key=lambda each: each[1].trial.attention):
            group = list(alike)
            engine = self._engine if attention == "none" else self._packs
            for place, answer in engine.answer([prompt for _, prompt in group]):
                yield group[place][0], answer


def _cut(trials: Sequence[Trial], most: int) -> list[list[int]]:
    """Numbers of the trials, those with the same beginning together, in windows that show at most so many pictures."""
    windows: list[list[int]] = []
    pictures: set[str | None] = set()
    for begin in range(0, len(trials), AHEAD):
        windows.append([])
        pictures.clear()
        for place in by_shared_beginning(trials[begin : begin + AHEAD]):
            pictures |= {block.pixels for block in trials[begin + place].images}
            if windows[-1] and (len(windows[-1]) == WINDOW or len(pictures) > most):
                windows.append([])
                pictures = {block.pixels for block in trials[begin + place].images}
            windows[-1].append(begin + place)
    return windows


class _NoPicture(BadInput):
    """A trial's picture can't be read."""


def _device(network: Network) -> tuple[str, int]:
    """The name of the device, and how many GPUs it is."""
    import torch

    if network.device == "cuda":
        return str(torch.cuda.get_device_name()), 1
    return "CPU", 0
