"""Contrastive models: a picture and the texts of the options are embedded, and the nearest option is the answer.

Readout `similarity`, and no other. A trial's blocks are one picture and a text of role `options` for each option
(`trials.prompt.option_texts`): these very texts are embedded. The probability of an option is the softmax over the
options' cosines with the picture, each multiplied by the model's own scale; SigLIP's bias is the same for all options
and drops out. Two options that are equal at the top, to within the rounding of their vectors, are no answer (status
unparsed): neither is taken by its place, nor by chance.

A text that the model would not read whole (longer than its context, or with a token that ends it) is never cut: its
trial fails for good, and is counted as failed.
Each picture and each text is embedded once for as long as the back end lives (a vector is about 4 kB).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from overread.backends.base import Answer, LocalBackend
from overread.backends.contrastive.encoder import Encoder, in_halves, unit
from overread.backends.contrastive.section import ContrastiveModel
from overread.backends.hardware import device_name, peak_bytes
from overread.backends.transformers.pictures import read_picture
from overread.backends.weights import folder_identity, versions
from overread.config import is_folder
from overread.core.errors import BadInput
from overread.core.records import Trial
from overread.core.stopping import until_warned

if TYPE_CHECKING:
    import torch

_ROUNDING = 1e-6
"""Cosines of 32-bit vectors that are no further apart are equal: the order of a sum can make as much."""

_TRIALS_AT_ONCE = 1024
"""Answers are given after as many trials at the latest, however few pictures they show."""


class ContrastiveBackend(LocalBackend):
    """CLIP and SigLIP through transformers; MedImageInsight through its own class."""

    def __init__(self, model: ContrastiveModel, model_id: str) -> None:
        self.model, self.model_id = model, model_id
        self._pictures: dict[str, torch.Tensor] = {}
        self._texts: dict[str, torch.Tensor] = {}
        self._lengths: dict[str, int] = {}

    def identity(self) -> dict[str, Any]:
        """The model file's part; a folder is named by the hashes of its files, its own code among them."""
        identity = {**self.model.identity(), "version": self.version}
        identity["versions"] = versions("transformers", "tokenizers", "torch", "pillow")
        if is_folder(self.model.weights):
            identity["weights"] = folder_identity(Path(self.model.weights).expanduser(), self.model_id)
        return identity

    def answer(self, trials: Sequence[Trial], folder: Path) -> Iterator[Answer]:
        for trial in trials:
            self._check(trial)
        for window in until_warned(self._windows(trials)):
            started = time.perf_counter()
            answers = self._answers(window, folder)
            seconds = (time.perf_counter() - started) / len(window)
            self.account.device, self.account.gpus = device_name(self.encoder.device)
            self.account.peak_bytes = max(self.account.peak_bytes, peak_bytes(self.encoder.device))
            for answer in answers:
                yield Answer(**{**vars(answer), "seconds": seconds})

    @cached_property
    def encoder(self) -> Encoder:
        if self.model.loader is not None:
            from overread.backends.contrastive.medimageinsight import MedImageInsightEncoder

            return MedImageInsightEncoder(self.model, self.model_id)
        from overread.backends.contrastive.library import LibraryEncoder

        return LibraryEncoder(self.model, self.model_id)

    def _check(self, trial: Trial) -> None:
        """BadInput for a trial of a setting that does not go with such a model."""
        place = f"model {self.model_id!r}: setting {trial.setting}"
        if trial.readout != "similarity":
            raise BadInput(f"{place}: a contrastive model has no readout {trial.readout!r}, only 'similarity'")
        strange = sorted({block.role for block in trial.blocks} - {"image", "options"})
        if strange:
            raise BadInput(f"{place}: a contrastive model sees a picture and the options' texts, no {strange[0]}")
        if len(trial.images) != 1:
            raise BadInput(f"{place}: a contrastive model compares one picture; this trial shows {len(trial.images)}")
        if len(_texts(trial)) != len(trial.options):
            raise BadInput(
                f"{place}: {len(_texts(trial))} texts for {len(trial.options)} options; build the trials again"
            )

    def _windows(self, trials: Sequence[Trial]) -> Iterator[list[Trial]]:
        """Stretches of trials that together show at most `batch` new pictures, so that these are encoded at once."""
        window: list[Trial] = []
        new: set[str] = set()
        for trial in trials:
            picture = _pixels(trial)
            is_new = picture not in self._pictures and picture not in new
            if window and (len(window) == _TRIALS_AT_ONCE or (is_new and len(new) == self.model.batch)):
                yield window
                window, new, is_new = [], set(), picture not in self._pictures
            window.append(trial)
            if is_new:
                new.add(picture)
        if window:
            yield window

    def _answers(self, trials: list[Trial], folder: Path) -> list[Answer]:
        problems = {trial.trial: problem for trial in trials if (problem := self._refused(trial))}
        asked = [trial for trial in trials if trial.trial not in problems]
        unseen = self._see(asked, folder)
        self._read([trial for trial in asked if _pixels(trial) not in unseen])
        answers = []
        for trial in trials:
            if trial.trial in problems:
                answers.append(Answer(text="", error=problems[trial.trial], final=True))
            elif _pixels(trial) in unseen:
                answers.append(Answer(text="", error=unseen[_pixels(trial)]))
            else:
                answers.append(self._compare(trial))
        return answers

    def _refused(self, trial: Trial) -> str | None:
        """Why a text of the trial can't be read whole; None if all can."""
        for place, text in enumerate(_texts(trial), start=1):
            where = f"question {trial.question}: the text of option {place}"
            if text not in self._lengths:
                tokens = self.encoder.tokens(text)
                if self.encoder.ends_early(tokens):
                    return f"{where} holds a token that {self.model_id} takes for its end: {text!r}"
                self._lengths[text] = len(tokens)
            if self._lengths[text] > self.encoder.context:
                return (
                    f"{where} is {self._lengths[text]} tokens, and {self.model_id} reads {self.encoder.context}; "
                    "shorten it, or the template similarity.j2"
                )
        return None

    def _see(self, trials: list[Trial], folder: Path) -> dict[str, str]:
        """Embed the pictures that are new. What could not be: why, by hash of the picture."""
        import torch

        unseen: dict[str, str] = {}
        read: dict[str, Any] = {}
        for trial in trials:
            (block,) = trial.images
            pixels = _pixels(trial)
            if pixels in self._pictures or pixels in read or pixels in unseen:
                continue
            try:
                read[pixels] = read_picture(folder / str(block.image), pixels)
            except BadInput as error:
                unseen[pixels] = str(error)
        if not read:
            return unseen
        try:
            vectors = unit(in_halves(self.encoder.images, list(read.values())), self._place)
        except torch.OutOfMemoryError as error:
            return unseen | dict.fromkeys(read, f"out of memory ({str(error).splitlines()[0]})")
        self._pictures.update(zip(read, vectors, strict=True))
        self.account.images_encoded += len(read)
        return unseen

    def _read(self, trials: list[Trial]) -> None:
        """Embed the texts that are new."""
        import torch

        new = [text for trial in trials for text in _texts(trial) if text not in self._texts]
        new = list(dict.fromkeys(new))
        many = 4 * self.model.batch
        for start in range(0, len(new), many):
            some = new[start : start + many]
            try:
                vectors = unit(in_halves(self.encoder.texts, some), self._place)
            except torch.OutOfMemoryError as error:
                raise BadInput(f"{self._place}: out of memory for one text ({str(error).splitlines()[0]})") from None
            self._texts.update(zip(some, vectors, strict=True))
            self.account.prefilled_tokens += sum(self._lengths[text] for text in some)

    def _compare(self, trial: Trial) -> Answer:
        """The option whose text lies nearest to the picture."""
        import torch

        texts = _texts(trial)
        cosines = torch.stack([self._texts[text] for text in texts]).double() @ self._pictures[_pixels(trial)].double()
        logprobs = tuple((self.encoder.scale * cosines).log_softmax(0).tolist())
        best = (cosines >= cosines.max() - _ROUNDING).nonzero().flatten().tolist()
        tokens = sum(self._lengths[text] for text in texts)
        self.account.prompt_tokens += tokens
        chosen = best[0] if len(best) == 1 else None
        return Answer(
            text="" if chosen is None else trial.options[chosen],
            chosen=chosen,
            logprobs=logprobs,
            prompt_tokens=tokens,
            completion_tokens=0,
        )

    @property
    def _place(self) -> str:
        return f"model {self.model_id!r}: {self.model.weights}"


def _texts(trial: Trial) -> list[str]:
    """The options' texts, in the order shown."""
    return [block.text or "" for block in trial.blocks if block.role == "options"]


def _pixels(trial: Trial) -> str:
    return str(trial.images[0].pixels)
