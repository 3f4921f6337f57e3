"""What turns pictures and texts into vectors that can be compared."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from overread.core.errors import BadInput

if TYPE_CHECKING:
    import torch
    from PIL.Image import Image

Item = TypeVar("Item")

PROBE_TEXTS = ("a grey square", "a chest X-ray", "an MRI scan of the brain", "a photograph of a dog")
"""Texts for the comparison of an encoder with its model's own way to compare."""


class Encoder(ABC):
    """A model with an image part and a text part.

    context  tokens that a text may have
    scale    what the cosine of two vectors is multiplied by: the model's own inverse temperature
    device   cpu or cuda
    """

    context: int
    scale: float
    device: str

    @abstractmethod
    def images(self, pictures: Sequence[Image]) -> torch.Tensor:
        """(n, d) vectors of RGB pictures."""

    @abstractmethod
    def texts(self, texts: Sequence[str]) -> torch.Tensor:
        """(n, d) vectors of texts, none of them longer than `context`."""

    @abstractmethod
    def tokens(self, text: str) -> list[int]:
        """The tokens of a text, begin and end tokens among them, however long it is."""

    def ends_early(self, tokens: list[int]) -> bool:
        """Whether a text holds the token that ends it, behind which the model reads nothing."""
        return False


def unit(vectors: torch.Tensor, place: str) -> torch.Tensor:
    """(n, d) vectors of length 1 in float32 on the CPU. BadInput for one that has no direction."""
    import torch

    vectors = vectors.detach().to("cpu", torch.float32)
    lengths = vectors.norm(dim=1, keepdim=True)
    if not bool(torch.isfinite(lengths).all()) or bool((lengths == 0).any()):
        raise BadInput(f"{place}: the model gives NaN, infinite or empty vectors; try another dtype")
    return torch.div(vectors, lengths)


def in_halves(encode: Callable[[Sequence[Item]], torch.Tensor], items: Sequence[Item]) -> torch.Tensor:
    """`encode` of all items; where memory runs out, of half of them at a time. OutOfMemoryError for a single one."""
    import torch

    try:
        return encode(items)
    except torch.OutOfMemoryError:
        if len(items) == 1:
            raise
        torch.cuda.empty_cache()
    half = len(items) // 2
    return torch.cat([in_halves(encode, items[:half]), in_halves(encode, items[half:])])


def probe_picture() -> Image:
    """A small picture that is not empty, for the same comparison."""
    import numpy as np
    from PIL import Image

    ramp: Any = np.tile(np.arange(64, dtype=np.uint8) * 4, (64, 1))
    return Image.fromarray(ramp).convert("RGB")
