"""What transformers answers to a few trials, in a process of its own, which gives all its memory back when it ends."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from overread.backends.transformers.readouts import CONSTRAINED
from overread.backends.vllm.section import VllmModel
from overread.core.errors import BadInput
from overread.core.records import Trial

if TYPE_CHECKING:
    from PIL.Image import Image

TOP = 5
"""How many of the likeliest tokens are compared at a position, besides the readout's words."""
POSITIONS = 8
"""How many tokens of a free answer are compared."""


@dataclass(frozen=True)
class Probe:
    """A trial that both answer. `negative`: with its pictures' colours inverted, which no other trial shows."""

    trial: Trial
    negative: bool = False


@dataclass(frozen=True)
class Given:
    """What transformers gave.

    prompt     tokens of the prompt, with those of its pictures
    tokens     the likeliest token at each position, after those before it
    logprobs   by position, log-probability by token: of the likeliest, and at the first of the readout's words
    """

    prompt: tuple[int, ...]
    tokens: tuple[int, ...]
    logprobs: tuple[Mapping[int, float], ...]


def by_transformers(
    model: VllmModel,
    model_id: str,
    probes: Sequence[Probe],
    folder: Path,
    meanwhile: Callable[[], object] = lambda: None,
) -> list[Given]:
    """What transformers gives for each probe, one at a time, without any sharing.

    folder      the dataset's folder, which the pictures' paths are relative to
    meanwhile   what this process does while it waits
    raises      BadInput if transformers can't run the model
    """
    with ProcessPoolExecutor(max_workers=1, mp_context=multiprocessing.get_context("spawn")) as pool:
        coming = pool.submit(_given, model, model_id, list(probes), folder)
        meanwhile()
        try:
            return coming.result()
        except BadInput as error:
            raise BadInput(f"{error} (parity: 0 goes on without the trials that transformers answers first)") from None
        except (BrokenProcessPool, RuntimeError) as error:
            why = "it was killed" if isinstance(error, BrokenProcessPool) else str(error).partition("\n")[0]
            raise BadInput(
                f"model {model_id!r}: transformers could not answer the parity trials, as a rule for lack of memory "
                f"({why}); give the job more, or set parity: 0 to go on without this check"
            ) from None


def pictures_of(probe: Probe, folder: Path) -> list[tuple[str, Image]]:
    """Pixel hash and picture of each of a probe's image blocks. BadInput if one can't be read."""
    from PIL import ImageOps

    from overread.backends.transformers.pictures import read_picture
    from overread.images.render import pixel_hash

    shown = []
    for block in probe.trial.images:
        pixels, picture = str(block.pixels), read_picture(folder / str(block.image), str(block.pixels))
        if probe.negative:
            picture = ImageOps.invert(picture)
            pixels = pixel_hash(picture)
        shown.append((pixels, picture))
    return shown


def _given(model: VllmModel, model_id: str, probes: Sequence[Probe], folder: Path) -> list[Given]:
    from overread.backends.transformers.network import load_network
    from overread.backends.transformers.prompts import Prompts
    from overread.backends.vllm.reader import as_transformers

    network = load_network(as_transformers(model), model_id)
    prompts = Prompts(network)
    return [_one(network, prompts, probe, pictures_of(probe, folder)) for probe in probes]


def _one(network: Any, prompts: Any, probe: Probe, pictures: Sequence[tuple[str, Image]]) -> Given:
    """Through the library's own processor and `generate`: nothing of the prefix tree is used."""
    import torch

    transformers: Any = import_module("transformers")
    prompt = prompts.prompt(probe.trial, [prompts.picture(picture, pixels) for pixels, picture in pictures])
    packed: dict[str, Any] = {"add_special_tokens": prompts.adds_tokens(prompt.template), "return_tensors": "pt"}
    if network.sees:
        images = [[picture for _, picture in pictures]] if pictures else None
        inputs = network.processor(text=[prompt.template], images=images, **packed).to(
            network.device, network.network.dtype
        )
    else:
        inputs = network.tokenizer([prompt.template], **packed).to(network.device)
    constrained = probe.trial.readout in CONSTRAINED
    with torch.inference_mode():
        generated = network.network.generate(
            **inputs,
            generation_config=transformers.GenerationConfig(
                max_new_tokens=1 if constrained else min(POSITIONS, network.model.decoding.max_tokens),
                do_sample=False,
                eos_token_id=sorted(network.stops),
                pad_token_id=network.tokenizer.pad_token_id,
                suppress_tokens=network.suppressed or None,
            ),
            output_logits=True,
            return_dict_in_generate=True,
        )
    length = inputs["input_ids"].shape[1]
    logprobs = [each[0].float().log_softmax(-1) for each in generated.logits]
    kept = [{*each.topk(TOP).indices.tolist()} for each in logprobs]
    kept[0] |= {*(prompt.words or ())}
    return Given(
        prompt=tuple(inputs["input_ids"][0].tolist()),
        tokens=tuple(generated.sequences[0, length:].tolist()),
        logprobs=tuple(
            {token: float(values[token]) for token in sorted(tokens)}
            for values, tokens in zip(logprobs, kept, strict=True)
        ),
    )
