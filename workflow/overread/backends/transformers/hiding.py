"""Hiding the report: from a layer on, or in one layer only, no later token attends to a token of the report.

The report's own tokens go on seeing each other: their rows would be empty otherwise, and what they hold reaches nobody.
Hidden from layer 0, the report is as good as absent: other words of equal length change no logit. Hidden from a later
layer, the layers before it have carried the report on already, and how much is what a sweep over layers measures. With
the text first, the picture is among the later tokens.

The report is the block with that role, its heading included; a token that reaches into it from outside, where the
tokenizer merges across the seam, belongs to it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from overread.core.errors import BadInput

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from overread.backends.transformers.network import Network
    from overread.backends.transformers.prompts import Prompt

FULL = frozenset({"full_attention", "sliding_attention"})
"""Kinds of layers whose attention can be blocked token by token."""


@dataclass(frozen=True)
class Hiding:
    """Where the report is hidden.

    only    in layer `layer` alone; else from it on
    """

    layer: int
    only: bool

    def at(self, layer: int) -> bool:
        return layer == self.layer if self.only else layer >= self.layer


def hiding(attention: str) -> Hiding | None:
    """What a trial's `attention` says: none, from-L or only-L, layers counted from 0."""
    if attention == "none":
        return None
    found = re.fullmatch(r"(from|only)-(\d+)", attention)
    if found is None:
        raise BadInput(f"attention {attention!r} is neither none nor from-L nor only-L")
    return Hiding(int(found[2]), only=found[1] == "only")


def check_hiding(network: Network, attention: str, place: str, architectures: frozenset[str]) -> None:
    """BadInput if the report can't be hidden from this network's layers as asked.

    architectures   those whose attention is ours
    """
    wanted = hiding(attention)
    if wanted is None:
        return
    kinds = list(getattr(network.text_config, "layer_types", None) or [])
    others = sorted(set(kinds) - FULL)
    if others:
        kind, count = others[0].replace("_", " "), kinds.count(others[0])
        raise BadInput(
            f"{place}: the report can't be hidden in {network.architecture}: {count} of its {len(kinds)} layers are "
            f"{kind}, which carries on all that came before"
        )
    if network.architecture not in architectures:
        raise BadInput(f"{place}: hiding the report is not proven for {network.architecture}")
    layers = int(network.text_config.num_hidden_layers)
    if wanted.layer > layers - wanted.only:
        last = f"only-{layers - 1}" if wanted.only else f"from-{layers}, which hides nothing"
        raise BadInput(f"{place}: {attention} is beyond the last of the model's {layers} layers; the most is {last}")


def report_tokens(prompt: Prompt) -> NDArray[np.bool_]:
    """Which of a prompt's tokens are of its report, (n,)."""
    import numpy as np

    found = np.zeros(len(prompt.ids), dtype=bool)
    for begin, end in prompt.tokens_of("report"):
        found[begin:end] = True
    return found


def marked(key: NDArray[np.int64], report: NDArray[np.bool_]) -> NDArray[np.int64]:
    """A key under which a token of a report is another than the same token elsewhere: it is seen by others."""
    import numpy as np

    return np.where(report, key + (np.int64(1) << 48), key)
