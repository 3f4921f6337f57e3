"""The vllm back end against bare vLLM, on one engine. Runs in vLLM's own environment.

    python tests/data/vllm_bench.py WEIGHTS TRIALS ROUNDS

Prints one JSON object: seconds and processor seconds of each round by what was timed, and how many trials gave the same
option. Bare vLLM is `LLM.generate` with the same prompts, pictures and sampling parameters. All caches are emptied
before each round, and who begins changes from round to round.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from overread.backends.vllm.backend import VllmBackend
from overread.backends.vllm.section import VllmModel
from overread.config import Decoding, Takes
from overread.core.records import Trial, read_trials


def bare(llm: Any, processor: Any, trials: Sequence[Trial], folder: Path, tokens: Sequence[int]) -> list[str]:
    """What one would write without this project: each picture is opened once, and vLLM gets all prompts at once."""
    from PIL import Image
    from vllm import SamplingParams

    opened: dict[str, Any] = {}
    prompts, parameters = [], []
    for trial in trials:
        parts: list[dict[str, str]] = []
        pictures = []
        for block in trial.blocks:
            if block.image is not None:
                if block.image not in opened:
                    opened[block.image] = Image.open(folder / block.image).convert("RGB")
                pictures.append(opened[block.image])
                parts.append({"type": "image"})
            elif parts and parts[-1]["type"] == "text":
                parts[-1]["text"] += f"\n\n{block.text}"
            else:
                parts.append({"type": "text", "text": str(block.text)})
        text = processor.apply_chat_template(
            [{"role": "user", "content": parts}], add_generation_prompt=True, tokenize=False
        )
        prompts.append({"prompt": text, "multi_modal_data": {"image": pictures}})
        own = list(tokens[: len(trial.options)])
        parameters.append(
            SamplingParams(max_tokens=1, temperature=0, allowed_token_ids=own, logprob_token_ids=own, detokenize=True)
        )
    return [output.outputs[0].text for output in llm.generate(prompts, parameters, use_tqdm=False)]


def main(weights: str, file: Path, rounds: int) -> None:
    trials = read_trials(file)
    folder = file.parent.parent.parent
    model = VllmModel(
        label="t", backend="vllm", weights=weights, dtype="float32", takes=Takes(images=1), decoding=Decoding(),
        parity=0,
    )  # fmt: skip
    backend = VllmBackend(model, "t")
    list(backend.answer(trials[:1], folder))
    assert backend._loaded is not None
    reader, engine = backend._loaded
    words = reader.prompts.first_tokens.of(max(trials, key=lambda trial: len(trial.options)))
    assert words is not None

    def ours() -> list[str]:
        return [answer.text for answer in backend.answer(trials, folder)]

    def theirs() -> list[str]:
        return bare(engine.llm, reader.network.processor, trials, folder, words)

    seconds: dict[str, list[float]] = {"back end": [], "bare": []}
    processor: dict[str, list[float]] = {"back end": [], "bare": []}
    given: dict[str, list[str]] = {}
    for turn in range(rounds + 1):  # the first is to warm up, and is not counted
        for name, work in sorted({"back end": ours, "bare": theirs}.items(), reverse=bool(turn % 2)):
            engine.llm.reset_prefix_cache()
            engine.llm.reset_mm_cache()
            began, used = time.perf_counter(), time.process_time()
            given[name] = work()
            if turn:
                seconds[name].append(time.perf_counter() - began)
                processor[name].append(time.process_time() - used)
    same = sum(one.strip() == other.strip() for one, other in zip(given["back end"], given["bare"], strict=True))
    print(json.dumps({"trials": len(trials), "same": same, "seconds": seconds, "processor": processor}))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
