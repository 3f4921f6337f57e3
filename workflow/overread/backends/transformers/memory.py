"""How much can be computed at once: what is free, and what a token has been seen to cost."""

from __future__ import annotations

import gc
import resource
from pathlib import Path
from typing import Any

SHARE = 0.85
"""Of the free memory that a forward pass may plan with: the rest is for what the plan does not know."""


class Memory:
    """The memory of the device that a network is on.

    A pass over `rows` new tokens with `columns` in the cache is expected to take
    `rows * per_row + columns * per_column` bytes. What a row costs is guessed from the sizes of the layers, and then
    measured: the dearest pass so far counts. On a CPU nothing can be measured so finely, and the guess stays.
    """

    def __init__(self, network: Any) -> None:
        self.device = network.device
        config = network.text_config
        size = next(network.network.parameters()).element_size()
        heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
        head = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        # Keys and values of every layer, and a second copy of them while one layer's cache grows.
        self.per_column = 2 * config.num_hidden_layers * heads * head * size * 2
        # Input, output and gate of the feed-forward part, the residual stream, queries, and their copies.
        self.per_row = size * (4 * config.intermediate_size + 8 * config.hidden_size)
        self.per_logit = 4 * config.vocab_size * 4

    def fits(self, rows: int, columns: int, logits: int) -> bool:
        wanted: int = rows * self.per_row + columns * self.per_column + logits * self.per_logit
        return wanted <= SHARE * self.free()

    def free(self) -> int:
        """Bytes that nobody holds."""
        if self.device == "cuda":
            import torch

            held_back = torch.cuda.memory_reserved() - torch.cuda.memory_allocated()
            return int(torch.cuda.mem_get_info()[0] + held_back)
        return min(_available(), _left_in_group())

    def begin(self) -> None:
        """A pass begins: from here its peak is measured."""
        if self.device == "cuda":
            import torch

            torch.cuda.reset_peak_memory_stats()
            self._before = torch.cuda.memory_allocated()

    def end(self, rows: int, columns: int, logits: int) -> None:
        """A pass ended: learn what a row costs."""
        if self.device == "cuda":
            import torch

            known = columns * self.per_column + logits * self.per_logit
            cost = (torch.cuda.max_memory_allocated() - self._before - known) / max(rows, 1)
            self.per_row = max(self.per_row, int(cost))

    def peak(self) -> int:
        """Most bytes held: on the GPU since the last pass began, else by this process in its life."""
        if self.device == "cuda":
            import torch

            return int(torch.cuda.max_memory_allocated())
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

    def release(self) -> None:
        """After memory ran out: give back what is not in use."""
        gc.collect()
        if self.device == "cuda":
            import torch

            torch.cuda.empty_cache()


def ran_out(error: BaseException) -> bool:
    """Whether an error says that memory ran out. On a CPU the library raises no error of its own for it."""
    import torch

    if isinstance(error, (torch.OutOfMemoryError, MemoryError)):
        return True
    return isinstance(error, RuntimeError) and "can't allocate memory" in str(error)


def _available() -> int:
    """Bytes that the machine could give, by the kernel's own estimate; without one, no limit is known."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return 1 << 62
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")), 1 << 62)


def _left_in_group() -> int:
    """Bytes that the job's control group has left: on a cluster a job may have less than its machine."""
    group = Path("/sys/fs/cgroup")
    try:
        limit = (group / "memory.max").read_text(encoding="ascii").strip()
        return 1 << 62 if limit == "max" else int(limit) - int((group / "memory.current").read_text(encoding="ascii"))
    except (OSError, ValueError):
        return 1 << 62
