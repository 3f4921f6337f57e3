"""Weights of a network: the file that the config names, with the hash that it names, holding numbers and no code."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

from overread.core.errors import BadInput
from overread.core.inputs import regular

if TYPE_CHECKING:
    import torch

BLOCK = 1 << 20


def sha256_of(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal. BadInput if it can't be read."""
    digest = hashlib.sha256()
    try:
        with regular(path).open("rb") as file:
            while block := file.read(BLOCK):
                digest.update(block)
    except OSError as error:
        raise BadInput(f"{path}: checkpoint not readable ({error.strerror or error})") from None
    return digest.hexdigest()


def load_weights(network: torch.nn.Module, path: Path, sha256: str | None = None) -> str:
    """Put a checkpoint's weights into `network`; returns the file's SHA-256. What is hashed is what is loaded.

    The file holds a state dict, alone or under `state_dict` as the training scripts of MONAI write it.
    raises  BadInput: no such file, another hash than `sha256`, anything in it that is no plain value or tensor, and
            weights that are missing, left over or of another shape
    """
    try:
        content = regular(path).read_bytes()
    except OSError as error:
        raise BadInput(f"{path}: checkpoint not readable ({error.strerror or error})") from None
    found = hashlib.sha256(content).hexdigest()
    if sha256 is not None and found != sha256:
        raise BadInput(f"{path}: the checkpoint's SHA-256 is {found}, and checkpoint_sha256 says {sha256}")
    state = _state_dict(path, content)
    own = network.state_dict()
    shapes = [
        f"{name} is {_times(state[name])}, not {_times(own[name])}"
        for name in own
        if name in state and state[name].shape != own[name].shape
    ]
    lists = [
        ("lacks", [name for name in own if name not in state]),
        ("has what the network has not:", [name for name in state if name not in own]),
        ("does not fit:", shapes),
    ]
    wrong = [f"{what} {_some(names)}" for what, names in lists if names]
    if wrong:
        raise BadInput(f"{path}: weights of another network (method or feature_size): the file {'; '.join(wrong)}")
    network.load_state_dict(state)
    return found


def _state_dict(path: Path, content: bytes) -> dict[str, Any]:
    import pickle

    import torch

    try:
        with torch.serialization.safe_globals(_numpy_scalars()):
            loaded = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        what = " ".join(str(error).split())
        named = what.partition("Unsupported ")[2].partition(" was not")[0] or "something that is no tensor"
        raise BadInput(
            f"{path}: the checkpoint holds more than weights ({named}), which could run code: refused"
        ) from None
    except Exception as error:  # a damaged file shows itself in many ways
        raise BadInput(f"{path}: not a checkpoint of PyTorch ({' '.join(str(error).split())[:200]})") from None
    state = loaded.get("state_dict", loaded) if isinstance(loaded, dict) else None
    if not isinstance(state, dict) or not state or not all(isinstance(value, torch.Tensor) for value in state.values()):
        raise BadInput(f"{path}: no state_dict in the checkpoint")
    # Several GPUs at once wrote each name with a prefix.
    return {str(name).removeprefix("module."): value for name, value in state.items()}


def _numpy_scalars() -> list[Any]:
    """Scripts save their best score beside the weights, often as a NumPy number: a plain value, and no code."""
    import numpy as np

    scalar: Any = np._core.multiarray.scalar  # type: ignore[attr-defined]
    names = ("numpy._core.multiarray.scalar", "numpy.core.multiarray.scalar")
    kinds = np.dtypes.Float64DType, np.dtypes.Float32DType, np.dtypes.Int64DType
    return [*((scalar, name) for name in names), np.dtype, *kinds]


def _times(tensor: torch.Tensor) -> str:
    return "x".join(map(str, tensor.shape)) or "one number"


def _some(names: list[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more
