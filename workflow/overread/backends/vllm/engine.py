"""The engine: vLLM's offline `LLM`, kept fed, its outputs handed out in the order of the requests."""

from __future__ import annotations

import logging
import os
import resource
import sys
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from overread.backends.vllm.section import VllmModel
from overread.config import is_folder
from overread.core.errors import BadInput

INSTALL = "vLLM is not installed in this environment: make it with `make vllm`, or from envs/vllm.yaml"
AHEAD = 2
"""Requests in the engine, as a multiple of those that it works on at once: it never waits for the next prompt."""
PICTURES_AHEAD = 1024
"""Pictures in the engine, each counted once: they lie in its memory until they are encoded, a few megabytes each."""
BLOCK_ON_CPU = 32
"""Tokens of a block of the prefix cache: beginnings are shared block by block, and CPU kernels take multiples of 32."""
CACHE_SHARE_ON_CPU = 0.25
"""Share of `resources.mem_mb` for keys and values on a CPU. On a GPU, `gpu_memory` says how much vLLM takes in all."""


@dataclass(frozen=True)
class Request:
    """A prompt as vLLM takes it, with the arguments of its `SamplingParams`."""

    prompt: Mapping[str, Any]
    sampling: Mapping[str, Any]

    @property
    def pictures(self) -> Sequence[str]:
        """The names of its pictures."""
        names: Sequence[str] = self.prompt.get("multi_modal_uuids", {}).get("image", ())
        return names


@dataclass(frozen=True)
class Output:
    """What the engine gave for a request.

    prompt     tokens of the prompt, with those of its pictures
    tokens     the generated tokens, an end token among them
    logprobs   by position, log-probability by token: of the tokens that were asked for, and of the one generated
    cached     how many of the prompt's tokens were in the prefix cache
    seconds    its share of the time since the outputs before it
    error      why there is nothing of this
    final      the engine takes no such request, whenever it is asked
    """

    prompt: tuple[int, ...] = ()
    tokens: tuple[int, ...] = ()
    logprobs: tuple[Mapping[int, float], ...] = ()
    finish_reason: str | None = None
    cached: int = 0
    seconds: float | None = None
    error: str | None = None
    final: bool = False


def require_vllm(model_id: str) -> None:
    """BadInput if vLLM is not there."""
    if find_spec("vllm") is None:
        raise BadInput(f"model {model_id!r}: {INSTALL}")


def import_vllm() -> Any:
    """The module, told how to behave: its import takes seconds, and it reads its settings from the environment."""
    # Nothing leaves this machine on vLLM's own account.
    os.environ["VLLM_NO_USAGE_STATS"] = "1"
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "WARNING")
    from vllm.platforms import current_platform

    if current_platform.is_cpu():
        # In this process and on whatever cores it may use: processes of its own would share the same cores. Nothing is
        # compiled: the few kernels for which that is done in spite of `enforce_eager` take twenty seconds.
        os.environ.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0")
        os.environ.setdefault("VLLM_CPU_OMP_THREADS_BIND", "nobind")
        dynamo = import_module("torch._dynamo")
        dynamo.config.disable = True
        # It would warn with each picture that it leaves the number of threads as it is.
        logging.getLogger("vllm").setLevel(logging.ERROR)
    module = import_module("vllm")
    module.LLM  # noqa: B018 (imported when it is first looked at)
    return module


class Engine:
    """The loaded engine.

    sees     whether the model has a part for pictures
    dtype    as vLLM names it, never `auto`
    raises   BadInput if vLLM can't run the model
    """

    def __init__(self, model: VllmModel, model_id: str, *, sees: bool, dtype: str) -> None:
        self.place = f"model {model_id!r}: {model.weights}"
        vllm = import_vllm()
        from vllm.platforms import current_platform

        self.gpus = 0 if current_platform.is_cpu() else max(1, model.resources.gpu)
        try:
            self.llm = vllm.LLM(**_arguments(model, sees=sees, dtype=dtype, on_cpu=not self.gpus))
        except (OSError, ValueError, RuntimeError, ImportError, AssertionError) as error:
            raise BadInput(f"{self.place}: vLLM can't run it: {_told(error)}") from None
        self.device = str(current_platform.get_device_name()) if self.gpus else "CPU"
        own = getattr(self.llm.model_config.hf_text_config, "max_position_embeddings", 0)
        # Else a prompt that is too long for this machine's memory may fit into another's.
        self._reads_all = model.context is not None or self.llm.model_config.max_model_len >= own
        self.ahead = AHEAD * model.batch
        self._taken = self._memory_of_gpus()

    def run(self, requests: Iterable[Request | Output]) -> Iterator[Output]:
        """One output a request, in order. An Output among the requests is handed through in its place.

        raises   BadInput if the engine dies
        """
        from vllm.v1.engine.exceptions import EngineDeadError

        try:
            yield from self._run(iter(requests))
        except EngineDeadError as error:
            raise BadInput(
                f"{self.place}: vLLM's engine died ({_told(error)}); what it wrote before says why. "
                "What was answered is kept"
            ) from None

    def _run(self, requests: Iterator[Request | Output]) -> Iterator[Output]:
        order: deque[str | Output] = deque()
        done: dict[str, Output] = {}
        at_work: dict[str, Request] = {}
        held: Counter[str] = Counter()
        more, since = True, time.perf_counter()
        while True:
            while more and len(at_work) < self.ahead and len(held) < PICTURES_AHEAD:
                request = next(requests, None)
                if request is None:
                    more = False
                    break
                queued = request if isinstance(request, Output) else self._enqueue(request)
                order.append(queued)
                if isinstance(queued, str) and isinstance(request, Request):
                    at_work[queued] = request
                    held.update(request.pictures)
            while order and (isinstance(order[0], Output) or order[0] in done):
                first = order.popleft()
                yield first if isinstance(first, Output) else done.pop(first)
            if not order and not more:
                return
            if at_work:
                finished = [output for output in self.llm.llm_engine.step() if output.finished]
                now = time.perf_counter()
                for output in finished:
                    done[output.request_id] = _output(output, (now - since) / len(finished))
                    held -= Counter(at_work.pop(output.request_id).pictures)
                since = now if finished else since

    def _enqueue(self, request: Request) -> str | Output:
        """The request's id, or an output with the reason why it is not taken."""
        from vllm import SamplingParams
        from vllm.exceptions import VLLMClientError

        try:
            (name,) = self.llm.enqueue(request.prompt, SamplingParams(**request.sampling), use_tqdm=False)
        except (ValueError, VLLMClientError) as error:  # longer than the model reads, more pictures than it takes
            return Output(error=_told(error), final=self._reads_all)
        # What comes back is named without the random part that the engine adds.
        return str(name).partition("-")[0]

    def forget(self) -> None:
        """Empty the caches of beginnings and of pictures."""
        self.llm.reset_prefix_cache()
        self.llm.reset_mm_cache()

    def peak_bytes(self) -> int:
        """Most memory held so far: on a GPU what vLLM took at the start; on a CPU that of this process."""
        if self.gpus:
            return self._taken
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else 1024 * peak

    def _memory_of_gpus(self) -> int:
        """What is taken of them now, by whomever."""
        import torch

        memory = [torch.cuda.mem_get_info(device) for device in range(self.gpus)]
        return sum(total - free for free, total in memory)


def _arguments(model: VllmModel, *, sees: bool, dtype: str, on_cpu: bool) -> dict[str, Any]:
    """Keyword arguments of `vllm.LLM`."""
    where = str(Path(model.weights).expanduser()) if is_folder(model.weights) else model.weights
    arguments: dict[str, Any] = {
        "model": where,
        "revision": model.revision,
        "tokenizer_revision": model.revision,
        "trust_remote_code": False,
        "dtype": dtype,
        "seed": model.decoding.seed,
        "tensor_parallel_size": max(1, model.resources.gpu),
        "enable_prefix_caching": True,
        "max_num_seqs": model.batch,
        # -1: as long as the memory allows, up to what the model was trained for.
        "max_model_len": model.context or -1,
        # Without it a model may fill its answer's tokens with the white space that JSON allows everywhere.
        "structured_outputs_config": {"backend": "xgrammar", "disable_any_whitespace": True},
        # Log-probabilities of the model, before anything that constrains or sharpens what is drawn.
        "logprobs_mode": "raw_logprobs",
    }
    if sees:
        arguments["limit_mm_per_prompt"] = {"image": model.takes.images, "video": 0, "audio": 0}
        # The same processors as in the transformers back end: torchvision's resize a little differently.
        pixels = {"min_pixels": model.min_pixels, "max_pixels": model.max_pixels}
        arguments["mm_processor_kwargs"] = {
            "use_fast": False,
            **{name: value for name, value in pixels.items() if value is not None},
        }
    if on_cpu:
        cache = int(CACHE_SHARE_ON_CPU * model.resources.mem_mb * 1e6)
        arguments |= {"block_size": BLOCK_ON_CPU, "enforce_eager": True, "kv_cache_memory_bytes": cache}
    else:
        arguments["gpu_memory_utilization"] = model.gpu_memory
    return arguments


def _output(output: Any, seconds: float) -> Output:
    """From vLLM's `RequestOutput`."""
    (completion,) = output.outputs
    if completion.finish_reason not in ("stop", "length"):
        return Output(error=f"vLLM gave up the request ({completion.finish_reason})")
    return Output(
        prompt=tuple(output.prompt_token_ids),
        tokens=tuple(completion.token_ids),
        logprobs=tuple(
            {token: each.logprob for token, each in position.items()} for position in completion.logprobs or ()
        ),
        finish_reason=completion.finish_reason,
        cached=output.num_cached_tokens or 0,
        seconds=seconds,
    )


def _told(error: Exception) -> str:
    """The first line of what an exception says."""
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
