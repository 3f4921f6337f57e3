"""From a trial to what vLLM is given: the tokens of the transformers back end, the pictures, and how to answer.

The prompt is made by the transformers back end's own code, with one placeholder a picture, which vLLM replaces by the
picture's tokens. So the words, their order and the tokens that are read are the same by construction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from overread.backends.base import Answer
from overread.backends.transformers.network import Network
from overread.backends.transformers.prompts import Prompt, Prompts, Shown
from overread.backends.transformers.readouts import CONSTRAINED, answer
from overread.backends.transformers.section import TransformersModel
from overread.backends.vllm.engine import Output, Request
from overread.backends.vllm.section import VllmModel
from overread.core.errors import BadInput
from overread.core.progress import say
from overread.core.records import Trial, content_hash

if TYPE_CHECKING:
    from PIL.Image import Image

NEVER = -100.0
"""Logit bias of a token that no answer may hold: the lowest that vLLM takes."""


def as_transformers(model: VllmModel) -> TransformersModel:
    """The same model for the transformers back end."""
    shared = (set(TransformersModel.model_fields) & set(VllmModel.model_fields)) - {"backend"}
    return TransformersModel(backend="transformers", **{name: getattr(model, name) for name in sorted(shared)})


class Unloaded(Network):
    """A model's tokenizer, processor and configuration, without its weights.

    dtype   the model file's, `auto` made explicit: vLLM's own `auto` makes float32 weights float16
    raises  BadInput as the transformers back end does
    """

    def __init__(self, model: TransformersModel, model_id: str) -> None:
        config = self._read(model, model_id)
        self.network, self.device = None, ""
        generation: Any = import_module("transformers").GenerationConfig
        try:
            defaults = generation.from_pretrained(self.where, revision=model.revision)
        except OSError:
            defaults = generation.from_model_config(config)
        self._settle(config, defaults)
        self.dtype: str = model.dtype
        if model.dtype == "auto":
            own = getattr(config, "dtype", None) or getattr(self.text_config, "dtype", None) or "float32"
            self.dtype = str(own).removeprefix("torch.")
            if self.dtype not in ("bfloat16", "float16", "float32"):
                raise BadInput(f"{self.place}: its own dtype is {self.dtype}; set dtype in the model file")


class Reader:
    """Makes requests of trials, and answers of outputs."""

    def __init__(self, model: VllmModel, model_id: str) -> None:
        self.model = model
        self.network = Unloaded(as_transformers(model), model_id)
        self.prompts = Prompts(self.network)
        self.temperature, self.top_p = self.network.sampling()

    def check(self, trials: Sequence[Trial]) -> None:
        """BadInput if the model can't be asked such trials at all: no pictures, or a word that is not one token."""
        for trial in {(each.readout, len(each.options), bool(each.images)): each for each in trials}.values():
            if trial.images and not self.network.sees:
                raise BadInput(
                    f"{self.network.place}: this model takes text only, but setting {trial.setting} shows pictures"
                )
            tokens = self.prompts.first_tokens.of(trial)
            if trial.readout == "first-token":
                told = f"{self.network.place}: {list(trial.options)} are read as tokens {tokens}"
                say(f"{told}; {self.prompts.first_tokens.variants(trial)}")

    def prompt(self, trial: Trial) -> Prompt:
        """The trial's prompt, each picture one placeholder. BadInput if this trial can't be put to the model."""
        placeholder = str(getattr(self.network.processor, "image_token", ""))
        return self.prompts.prompt(trial, [Shown(number, {}, placeholder) for number in range(len(trial.images))])

    def request(
        self,
        prompt: Prompt,
        pictures: Sequence[tuple[str, Image]],
        sampling: dict[str, Any] | None = None,
        *,
        salt: str = "",
    ) -> Request:
        """What vLLM is asked.

        pictures   pixel hash and picture, in the order of the placeholders
        sampling   instead of the trial's own
        salt       requests with different salts share nothing in the caches
        """
        asked: dict[str, Any] = {"prompt_token_ids": prompt.ids.tolist()}
        if pictures:
            asked["multi_modal_data"] = {"image": [picture for _, picture in pictures]}
            asked["multi_modal_uuids"] = {"image": [salt + picture_name(pixels) for pixels, _ in pictures]}
        if salt:
            asked["cache_salt"] = salt
        return Request(asked, {**(self.sampling(prompt) if sampling is None else sampling), "detokenize": False})

    def sampling(self, prompt: Prompt) -> dict[str, Any]:
        """Arguments of `SamplingParams` for the readout."""
        trial, tokens = prompt.trial, prompt.words
        if trial.readout in CONSTRAINED:
            return {"temperature": 0.0, "max_tokens": 1, "allowed_token_ids": tokens, "logprob_token_ids": tokens}
        asked: dict[str, Any] = {
            "temperature": self.temperature,
            "max_tokens": self.model.decoding.max_tokens,
            **self.ends(),
        }
        if self.temperature > 0:
            # Of its own for each request, so that what is drawn does not depend on the batch.
            key = content_hash([self.model.decoding.seed, trial.trial, trial.question, trial.run])
            asked |= {"top_p": self.top_p, "seed": int(key[:15], 16)}
        if self.model.structured != "none":
            asked["structured_outputs"] = structured(trial, self.model.structured)
        elif tokens is not None:
            # A grammar sets the logits of all else to nothing before they can be read.
            asked["logprob_token_ids"] = tokens
        return asked

    def ends(self) -> dict[str, Any]:
        """Where a free answer ends, and what it may not hold."""
        asked: dict[str, Any] = {"stop_token_ids": sorted(self.network.stops)}
        if self.network.suppressed:
            asked["logit_bias"] = dict.fromkeys(self.network.suppressed, NEVER)
        return asked

    def answer(self, prompt: Prompt, output: Output) -> Answer:
        """From what the engine gave to an answer. BadInput for logits that are no numbers."""
        if output.error is not None:
            return Answer(text="", error=output.error, final=output.final)
        tokens, network = prompt.words, self.network
        logprobs: tuple[float, ...] | None = None
        if tokens is not None and output.logprobs:
            logprobs = tuple(output.logprobs[0][token] for token in tokens)
            if not all(value > float("-inf") for value in logprobs):
                raise BadInput(f"{network.place}: the model gives NaN or infinite logits; try another dtype")
        kept = [token for token in output.tokens if token not in network.stops]
        given = answer(network, prompt, logprobs, kept, stopped=output.finish_reason == "stop")
        image_tokens = 0 if network.image_token is None else output.prompt.count(network.image_token)
        # vLLM's count: the prompt that it was given holds each picture as one placeholder.
        return replace(given, prompt_tokens=len(output.prompt), image_tokens=image_tokens, seconds=output.seconds)


def picture_name(pixels: str) -> str:
    """What vLLM's caches know a picture by: its pixels, never its place or its file."""
    return pixels


def structured(trial: Trial, form: str) -> Any:
    """vLLM's parameters that hold a free answer to the trial's options: as they are, or as `{"answer": option}`."""
    from vllm.sampling_params import StructuredOutputsParams

    if form == "choice":
        return StructuredOutputsParams(choice=list(trial.options))
    answer = {"type": "string", "enum": list(trial.options)}
    return StructuredOutputsParams(
        json={"type": "object", "properties": {"answer": answer}, "required": ["answer"], "additionalProperties": False}
    )
