"""The device that a model runs on, for the account."""

from __future__ import annotations

import resource


def device_name(device: str) -> tuple[str, int]:
    """What `cuda` or `cpu` is, and how many GPUs that is."""
    import torch

    return (str(torch.cuda.get_device_name()), 1) if device == "cuda" else ("CPU", 0)


def peak_bytes(device: str) -> int:
    """Most bytes held: on the GPU, or by this process in its life."""
    import torch

    if device == "cuda":
        return int(torch.cuda.max_memory_allocated())
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
