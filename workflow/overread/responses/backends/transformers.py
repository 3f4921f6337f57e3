"""Models that run in this process through the transformers library.

A trial's blocks go in order through the model's own chat template and processor. Readouts:

choice       one forward pass; the option number ("1".."n") with the highest log-probability at the first position
first-token  one forward pass; the likelier of lower-case "yes" and "no" at the first position
yes-no       an answer of up to `max_tokens` tokens, to be parsed; the log-probabilities of "yes" and "no" at the first
             position are kept for the margin

Log-probabilities are over the whole vocabulary. A batch holds trials with equally many pictures, padded on the left.
Sampling adds Gumbel noise to the logits and takes the highest (Gumbel 1954; an exact draw from the softmax), with a
generator of its own for each request, so that an answer does not depend on the batch it came in.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from importlib import import_module
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from overread.config import TransformersModel
from overread.errors import BadInput
from overread.records import Trial, content_hash
from overread.responses.backends import Answer, Backend, content
from overread.responses.backends.weights import check_folder, folder_identity, is_folder, versions

if TYPE_CHECKING:
    import torch
    from PIL.Image import Image

READOUTS = ("choice", "yes-no", "first-token")
THOUGHT_OPENERS = ("<unused94>",)
"""Tokens with which MedGemma opens a thought; not generated unless `thinking` is set."""


class TransformersBackend(Backend):
    """AutoProcessor with AutoModelForImageTextToText, or AutoModelForCausalLM where there is no vision part."""

    def __init__(self, model: TransformersModel, model_id: str) -> None:
        self.model, self.model_id = model, model_id
        self._loaded: _Network | None = None

    def identity(self) -> dict[str, Any]:
        """The model file's part; a folder is named by the hashes of its files, never by its path."""
        identity = {**self.model.identity(), "version": self.version}
        identity["versions"] = versions("transformers", "tokenizers", "torch", "pillow")
        if is_folder(self.model.weights):
            identity["weights"] = folder_identity(Path(self.model.weights).expanduser(), self.model_id)
        return identity

    def answer(self, trials: Sequence[Trial], folder: Path) -> Iterator[Answer]:
        self._check(trials)
        # Questions about one study follow each other: its picture is read once.
        read = lru_cache(maxsize=64)(_picture)
        for _, alike in groupby(trials, key=lambda trial: (len(trial.images), trial.readout)):
            group = list(alike)
            for start in range(0, len(group), self.model.batch):
                yield from self._batch(group[start : start + self.model.batch], folder, read)

    @property
    def network(self) -> _Network:
        if self._loaded is None:
            self._loaded = _Network(self.model, self.model_id)
        return self._loaded

    def _check(self, trials: Sequence[Trial]) -> None:
        for trial in trials:
            place = f"model {self.model_id!r}: setting {trial.setting}"
            if trial.readout not in READOUTS:
                raise BadInput(f"{place}: the transformers back end has no readout {trial.readout!r}")
            if trial.attention != "none":
                raise BadInput(f"{place}: the transformers back end can't hide the report from layers")
            if trial.readout == "first-token" and not _is_yes_no(trial):
                raise BadInput(
                    f"{place}: readout 'first-token' needs the options yes and no, not {list(trial.options)}"
                )

    def _batch(self, trials: list[Trial], folder: Path, read: Callable[[Path, str], Image]) -> list[Answer]:
        """Answers of trials with equally many pictures and one readout; halved where memory runs out."""
        import torch

        pictures: list[list[Image]] = []
        for trial in trials:
            try:
                pictures.append([read(folder / str(block.image), str(block.pixels)) for block in trial.images])
            except BadInput as error:
                # One picture concerns one trial: the others of the batch are asked without it.
                place = trials.index(trial)
                others = trials[:place] + trials[place + 1 :]
                rest = self._batch(others, folder, read) if others else []
                return [*rest[:place], Answer(text="", error=str(error)), *rest[place:]]
        started = time.perf_counter()
        try:
            answers = self.network.answer(trials, pictures)
        except torch.OutOfMemoryError as error:
            torch.cuda.empty_cache()
            if len(trials) == 1:
                return [Answer(text="", error=f"out of memory ({str(error).splitlines()[0]})")]
            half = len(trials) // 2
            return self._batch(trials[:half], folder, read) + self._batch(trials[half:], folder, read)
        seconds = (time.perf_counter() - started) / len(trials)
        return [Answer(**{**answer, "seconds": seconds}) for answer in answers]


class _Network:
    """The loaded model, with its processor.

    raises   BadInput if it can't be loaded, or not faithfully: pickles, missing or damaged shards, missing tensors,
             no processor, no chat template, or float16 where that overflows
    """

    def __init__(self, model: TransformersModel, model_id: str) -> None:
        import torch

        transformers: Any = import_module("transformers")
        transformers.logging.set_verbosity_error()
        transformers.logging.disable_progress_bar()
        self._transformers = transformers
        self.model, self.place = model, f"model {model_id!r}: {model.weights}"
        where = model.weights
        if is_folder(where):
            where = str(Path(where).expanduser())
            check_folder(Path(where), model_id)
        common: dict[str, Any] = {"revision": model.revision, "trust_remote_code": False}
        try:
            config = transformers.AutoConfig.from_pretrained(where, **common)
        except (OSError, ValueError) as error:
            raise BadInput(f"{self.place}: can't be loaded: {_first_line(error)}") from None
        if model.dtype == "float16" and config.model_type.startswith("gemma3"):
            raise BadInput(
                f"{self.place}: Gemma 3 overflows in float16 and gives NaN; set dtype to bfloat16 or float32"
            )
        self.sees = type(config) in transformers.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING
        self.processor = self._processor(transformers, where, common)
        self.tokenizer = self.processor.tokenizer if self.sees else self.processor
        self.tokenizer.padding_side = "left"
        if self.tokenizer.pad_token_id is None:
            self.tokenizer.pad_token = self.tokenizer.eos_token
        kind = transformers.AutoModelForImageTextToText if self.sees else transformers.AutoModelForCausalLM
        try:
            network, loading = kind.from_pretrained(
                where,
                config=config,
                dtype=model.dtype,
                use_safetensors=True,
                attn_implementation=model.attention_implementation,
                output_loading_info=True,
                **common,
            )
        except (OSError, ValueError, RuntimeError) as error:
            raise BadInput(f"{self.place}: can't be loaded: {_first_line(error)}") from None
        lacking = sorted({*loading["missing_keys"], *(str(each) for each in loading["mismatched_keys"])})
        if lacking:
            raise BadInput(f"{self.place}: the weights have no fitting {lacking[0]} ({len(lacking)} tensors in all)")
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.network = network.eval().to(self.device)
        self.defaults = self.network.generation_config
        self.image_token = getattr(config, "image_token_id", None) or getattr(config, "image_token_index", None)
        self._words = lru_cache(maxsize=None)(self._word)

    def _processor(self, transformers: Any, where: str, common: dict[str, Any]) -> Any:
        pixels = {name: getattr(self.model, name) for name in ("min_pixels", "max_pixels")}
        pixels = {name: value for name, value in pixels.items() if value is not None}
        try:
            if not self.sees:
                processor = transformers.AutoTokenizer.from_pretrained(where, **common)
            else:
                # The torchvision processors resize a little differently: one is used everywhere.
                processor = transformers.AutoProcessor.from_pretrained(where, backend="pil", **pixels, **common)
        except (OSError, ValueError, ImportError, KeyError) as error:
            raise BadInput(f"{self.place}: its processor can't be loaded: {_first_line(error)}") from None
        if self.sees and not hasattr(processor, "image_processor"):
            raise BadInput(f"{self.place}: no processor for images; the folder needs its processor's configuration")
        takes = getattr(getattr(processor, "image_processor", None), "valid_kwargs", None)
        for name in pixels:
            if takes is None or name not in takes.__annotations__:
                raise BadInput(f"{self.place}: this model's processor takes no {name}; remove it from the model file")
        if not processor.chat_template:
            raise BadInput(f"{self.place}: no chat template; the folder needs chat_template.jinja")
        return processor

    def answer(self, trials: list[Trial], pictures: list[list[Image]]) -> list[dict[str, Any]]:
        """Fields of an Answer for each trial."""
        import torch

        if pictures[0] and not self.sees:
            raise BadInput(f"{self.place}: this model takes text only, but setting {trials[0].setting} shows pictures")
        inputs = self._inputs(trials, pictures)
        watch = _Watch(self, trials)
        constrained = trials[0].readout != "yes-no"
        with torch.inference_mode():
            output = self.network.generate(
                **inputs,
                generation_config=self._generation(1 if constrained else self.model.decoding.max_tokens),
                logits_processor=[watch],
            )
        length = inputs["input_ids"].shape[1]
        prompt_tokens = inputs["attention_mask"].sum(1).tolist()
        images = [0] * len(trials)
        if self.image_token is not None:
            images = (inputs["input_ids"] == self.image_token).sum(1).tolist()
        answers = []
        for row, trial in enumerate(trials):
            fields: dict[str, Any] = {"prompt_tokens": prompt_tokens[row], "image_tokens": images[row]}
            logprobs = watch.logprobs[row]
            fields["logprobs"] = logprobs
            words = self.words(trial)
            if constrained and logprobs is not None and words is not None:
                best = max(range(len(logprobs)), key=logprobs.__getitem__)
                fields |= {"chosen": best, "text": words[best], "finish_reason": "constrained"}
                fields["completion_tokens"] = 1
            else:
                tokens = output[row, length:].tolist()
                stop = next((place for place, token in enumerate(tokens) if token in self.stops), None)
                tokens = tokens if stop is None else tokens[:stop]
                fields |= {"text": self.tokenizer.decode(tokens, skip_special_tokens=True).strip()}
                fields |= {"finish_reason": "length" if stop is None else "stop", "completion_tokens": len(tokens)}
            answers.append(fields)
        return answers

    def _inputs(self, trials: list[Trial], pictures: list[list[Image]]) -> dict[str, Any]:
        conversations = []
        for trial, images in zip(trials, pictures, strict=True):
            left = iter(images)
            parts: Any = [
                {"type": "image", "image": next(left)} if isinstance(part, Path) else {"type": "text", "text": part}
                for part in content(trial.blocks)
            ]
            conversations.append([{"role": "user", "content": parts if self.sees else parts[0]["text"]}])
        inputs = self._templated(conversations, tokenize=True)
        return dict(inputs.to(self.device, self.network.dtype) if self.sees else inputs.to(self.device))

    def _templated(self, conversations: Any, *, tokenize: bool) -> Any:
        settings: dict[str, Any] = {"add_generation_prompt": True, "enable_thinking": self.model.thinking}
        if not tokenize:
            return self.processor.apply_chat_template(conversations, tokenize=False, **settings)
        padded: dict[str, Any] = {"padding": True, "return_tensors": "pt"}
        packed = {"processor_kwargs": padded} if self.sees else padded
        return self.processor.apply_chat_template(conversations, tokenize=True, return_dict=True, **settings, **packed)

    def _generation(self, max_tokens: int) -> Any:
        """Greedy, with nothing inherited from the model's defaults but its end tokens: draws are made by `_Watch`."""
        openers = [] if self.model.thinking else self.tokenizer.convert_tokens_to_ids(list(THOUGHT_OPENERS))
        known = [each for each in openers if each is not None and each != self.tokenizer.unk_token_id]
        return self._transformers.GenerationConfig(
            max_new_tokens=max_tokens,
            do_sample=False,
            eos_token_id=sorted(self.stops),
            pad_token_id=self.tokenizer.pad_token_id,
            suppress_tokens=known or None,
        )

    @property
    def stops(self) -> set[int]:
        """End tokens of the model's own generation config, and the tokenizer's."""
        ends = self.defaults.eos_token_id
        ends = ends if isinstance(ends, list) else [ends]
        return {each for each in [*ends, self.tokenizer.eos_token_id] if each is not None}

    def sampling(self) -> tuple[float, float]:
        """Temperature and top-p; what the config leaves out is the model's own default."""
        decoding, own = self.model.decoding, self.defaults
        inherited = (own.temperature if own.temperature is not None else 1.0) if own.do_sample else 0.0
        temperature = inherited if decoding.temperature is None else decoding.temperature
        top_p = decoding.top_p if decoding.top_p is not None else (own.top_p if own.do_sample else None)
        return temperature, 1.0 if top_p is None else top_p

    def words(self, trial: Trial) -> list[str] | None:
        """The readout's words by place shown; None where the options have none."""
        if trial.readout == "choice":
            return [str(place + 1) for place in range(len(trial.options))]
        return [option.casefold() for option in trial.options] if _is_yes_no(trial) else None

    def word_tokens(self, trial: Trial) -> list[int] | None:
        """Token of each of the readout's words. BadInput if a constrained readout has a word of several tokens."""
        words = self.words(trial)
        if words is None:
            return None
        tokens = [self._words(word) for word in words]
        if None in tokens:
            if trial.readout == "yes-no":
                return None
            word = words[tokens.index(None)]
            raise BadInput(
                f"{self.place}: {word!r} is not one token after its prompt: readout {trial.readout!r} can't be used"
            )
        return [token for token in tokens if token is not None]

    def _word(self, word: str) -> int | None:
        """The token that `word` is where an answer begins: tokenizers merge across that seam. None for several."""
        message: Any = [{"type": "text", "text": "?"}] if self.sees else "?"
        prompt = self._templated([{"role": "user", "content": message}], tokenize=False)
        before = self.tokenizer(prompt, add_special_tokens=False)["input_ids"]
        after = self.tokenizer(prompt + word, add_special_tokens=False)["input_ids"]
        fits = len(after) == len(before) + 1 and after[:-1] == before and after[-1] != self.tokenizer.unk_token_id
        return int(after[-1]) if fits else None


class _Watch:
    """Sees the logits of every step: keeps the words' log-probabilities of the first, and draws where it is told to."""

    def __init__(self, network: _Network, trials: list[Trial]) -> None:
        import torch

        self.tokens = [network.word_tokens(trial) for trial in trials]
        self.logprobs: list[tuple[float, ...] | None] = [None] * len(trials)
        self.temperature, self.top_p = network.sampling()
        self.place, self.first = network.place, True
        seed = network.model.decoding.seed
        self.generators = [
            torch.Generator().manual_seed(int(content_hash([seed, trial.trial, trial.question, trial.run])[:15], 16))
            for trial in trials
        ]

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """scores   (trials, vocabulary) logits of the next token; returned with noise where tokens are drawn"""
        import torch

        if self.first:
            self.first = False
            logits = scores.float()
            total = logits.logsumexp(1)
            for row, tokens in enumerate(self.tokens):
                if tokens is not None:
                    values = (logits[row, tokens] - total[row]).tolist()
                    if not all(value > float("-inf") for value in values):
                        raise BadInput(f"{self.place}: the model gives NaN or infinite logits; try another dtype")
                    self.logprobs[row] = tuple(values)
        if self.temperature == 0:
            return scores
        scores = scores.float() / self.temperature
        if self.top_p < 1:
            ordered, order = scores.sort(1, descending=True)
            probabilities = ordered.softmax(1)
            # A token stays as long as those before it do not reach top_p: at least one always does.
            outside = probabilities.cumsum(1) - probabilities >= self.top_p
            scores = scores.masked_fill(outside.scatter(1, order, outside), float("-inf"))
        noise = [torch.empty(scores.shape[1]).exponential_(generator=each).log() for each in self.generators]
        return scores - torch.stack(noise).to(scores.device)


def _is_yes_no(trial: Trial) -> bool:
    return sorted(option.casefold() for option in trial.options) == ["no", "yes"]


def _picture(path: Path, pixels: str) -> Image:
    """A trial's picture. BadInput if it is missing, damaged, or not the one that the trial was built with."""
    from PIL import Image

    from overread.images.render import pixel_hash

    try:
        with Image.open(path) as file:
            picture = file.copy()
    except FileNotFoundError:
        raise BadInput(f"{path}: no such picture; render the images again") from None
    except (OSError, SyntaxError, ValueError) as error:
        raise BadInput(f"{path}: damaged picture ({error}); render the images again") from None
    if pixel_hash(picture) != pixels:
        raise BadInput(f"{path}: another picture than the trial was built with; build the trials again")
    return picture.convert("RGB")


def _first_line(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
