"""Plain batches: prompts padded to one length, and the library's `generate` does the rest. Nothing is shared.

For models whose prompts can't be packed, and where `share_prefix` is off; also what packs are tested against.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib import import_module
from inspect import signature
from itertools import groupby
from typing import TYPE_CHECKING, Any

from overread.backends.base import Answer
from overread.backends.transformers.generation import Draws, word_logprobs
from overread.backends.transformers.memory import Memory, ran_out
from overread.backends.transformers.network import Network, first_line
from overread.backends.transformers.prompts import Prompt
from overread.backends.transformers.readouts import CONSTRAINED, answer, count
from overread.core.account import Account
from overread.core.stopping import until_warned

if TYPE_CHECKING:
    import torch


class Batches:
    """Answers prompts in batches of equally many pictures and one readout."""

    def __init__(self, network: Network, account: Account) -> None:
        self.network, self.account = network, account
        self.memory = Memory(network)

    def answer(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Answer]]:
        """The number of each prompt with its answer, in order."""
        numbered = list(enumerate(prompts))
        for _, alike in groupby(numbered, key=lambda each: (len(each[1].pictures), each[1].trial.readout)):
            group = list(alike)
            batch = self.network.model.batch
            for begin in until_warned(range(0, len(group), batch)):
                part = group[begin : begin + batch]
                answers = self._answers([prompt for _, prompt in part])
                yield from ((number, made) for (number, _), made in zip(part, answers, strict=True))

    def _answers(self, prompts: list[Prompt]) -> list[Answer]:
        """Halved where memory runs out."""
        started = time.perf_counter()
        try:
            answers = self._batch(prompts)
        except (RuntimeError, MemoryError) as error:
            if not ran_out(error):
                raise
            failure = first_line(error)
        else:
            seconds = (time.perf_counter() - started) / len(prompts)
            return [replace(each, seconds=seconds) for each in answers]
        self.memory.release()
        if len(prompts) == 1:
            return [Answer(text="", error=f"out of memory ({failure})")]
        half = len(prompts) // 2
        return self._answers(prompts[:half]) + self._answers(prompts[half:])

    def _batch(self, prompts: list[Prompt]) -> list[Answer]:
        import torch

        inputs = self._inputs(prompts)
        watch = _Watch(self.network, prompts)
        constrained = prompts[0].trial.readout in CONSTRAINED
        self.memory.begin()
        with torch.inference_mode():
            output = self.network.network.generate(
                **inputs,
                generation_config=self._generation(1 if constrained else self.network.model.decoding.max_tokens),
                logits_processor=[watch],
            )
        answers = []
        for row, prompt in enumerate(prompts):
            tokens = output[row, inputs["input_ids"].shape[1] :].tolist()
            stop = next((place for place, token in enumerate(tokens) if token in self.network.stops), None)
            answers.append(answer(self.network, prompt, watch.logprobs[row], tokens[:stop], stop is not None))
        count(self.account, answers)
        self.account.prefilled_tokens += sum(len(prompt.ids) for prompt in prompts)
        self.account.images_encoded += sum(len(prompt.pictures) for prompt in prompts)
        self.account.peak_bytes = max(self.account.peak_bytes, self.memory.peak())
        return answers

    def _inputs(self, prompts: list[Prompt]) -> dict[str, Any]:
        """Prompts padded on the left, whatever side the tokenizer's own files say: the answer follows on the right."""
        import torch

        lengths = [len(prompt.ids) for prompt in prompts]
        longest = max(lengths)
        pad = self.network.tokenizer.pad_token_id
        ids = torch.full((len(prompts), longest), pad)
        mask = torch.zeros(len(prompts), longest, dtype=torch.long)
        for row, prompt in enumerate(prompts):
            ids[row, longest - lengths[row] :] = torch.from_numpy(prompt.ids)
            mask[row, longest - lengths[row] :] = 1
        inputs: dict[str, torch.Tensor] = {"input_ids": ids, "attention_mask": mask}
        if self.network.image_token is not None:
            kinds = ((ids == self.network.image_token) & (mask == 1)).long()
            takes = signature(self.network.network.forward).parameters
            inputs |= {name: kinds for name in ("token_type_ids", "mm_token_type_ids") if name in takes}
        shown = [picture.inputs for prompt in prompts for picture in prompt.pictures]
        for name in shown[0] if shown else ():
            inputs[name] = _stacked([each[name] for each in shown])
        dtype, device = self.network.network.dtype, self.network.device
        return {
            name: value.to(device, dtype) if value.is_floating_point() else value.to(device)
            for name, value in inputs.items()
        }

    def _generation(self, max_tokens: int) -> Any:
        """Greedy, with nothing inherited from the model's defaults but its end tokens: draws are made by `_Watch`."""
        transformers: Any = import_module("transformers")
        return transformers.GenerationConfig(
            max_new_tokens=max_tokens,
            do_sample=False,
            eos_token_id=sorted(self.network.stops),
            pad_token_id=self.network.tokenizer.pad_token_id,
        )


def _stacked(tensors: list[torch.Tensor]) -> torch.Tensor:
    """Pictures' inputs in one tensor; LLaVA-NeXT's pictures have different numbers of tiles, and the rest is zeros."""
    import torch

    if tensors[0].dim() < 5:
        return torch.cat(tensors)
    most = max(each.shape[1] for each in tensors)
    return torch.cat([torch.nn.functional.pad(each, (0, 0) * 3 + (0, most - each.shape[1])) for each in tensors])


class _Watch:
    """Sees the logits of every step: keeps the words' log-probabilities of the first, and chooses the next token."""

    def __init__(self, network: Network, prompts: list[Prompt]) -> None:
        self.network, self.prompts = network, prompts
        self.draws = Draws.of_trials(network, [prompt.trial for prompt in prompts])
        self.logprobs: list[tuple[float, ...] | None] = []

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """scores   (trials, vocabulary) logits of the next token"""
        if not self.logprobs:
            self.logprobs = word_logprobs(scores, [prompt.words for prompt in self.prompts], self.network.place)
        return self.draws.scores(scores, range(len(self.prompts)))
