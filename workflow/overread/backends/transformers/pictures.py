"""Pictures: read from disk, checked against the trial, and through the vision part, each once."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from overread.core.account import Account
from overread.core.errors import BadInput
from overread.core.inputs import regular

if TYPE_CHECKING:
    import torch
    from PIL.Image import Image

    from overread.backends.transformers.network import Network
    from overread.backends.transformers.prefix import Node
    from overread.backends.transformers.prompts import Shown

KEPT_BYTES = 256 * 2**20
"""Of features of pictures, which come back in other trials."""


def read_picture(path: Path, pixels: str) -> Image:
    """A trial's picture. BadInput if it is missing, damaged, or not the one that the trial was built with."""
    from PIL import Image

    from overread.images.render import pixel_hash

    try:
        with Image.open(regular(path)) as file:
            picture = file.copy()
    except FileNotFoundError:
        raise BadInput(f"{path}: no such picture; render the images again") from None
    except (OSError, SyntaxError, ValueError) as error:
        raise BadInput(f"{path}: damaged picture ({error}); render the images again") from None
    if pixel_hash(picture) != pixels:
        raise BadInput(f"{path}: another picture than the trial was built with; build the trials again")
    return picture.convert("RGB")


class Features:
    """What the language part is given: embedded tokens, and what the vision part makes of pictures.

    One picture at a time goes through the vision part: its features never depend on others.
    """

    def __init__(self, network: Network, account: Account) -> None:
        self.network, self.account = network, account
        self._kept: OrderedDict[int, torch.Tensor] = OrderedDict()

    def embedded(self, nodes: Sequence[Node]) -> torch.Tensor:
        """(tokens, hidden) of nodes, one after the other."""
        import numpy as np
        import torch

        ids = np.concatenate([node.prompt.ids[node.begin : node.end] for node in nodes])
        if self.network.image_token is not None:
            # The placeholder's own number may lie outside of the vocabulary.
            ids = np.where(ids == self.network.image_token, self.network.tokenizer.pad_token_id, ids)
        tokens = torch.from_numpy(ids).to(self.network.device)
        embedded: torch.Tensor = self.network.network.get_input_embeddings()(tokens)
        begin = 0
        for node in nodes:
            for shown, place in zip(node.prompt.pictures, node.prompt.places, strict=True):
                if node.begin <= place[0] < node.end:
                    index = torch.from_numpy(place - node.begin + begin).to(self.network.device)
                    embedded[index] = self.of(shown).to(embedded.dtype)
            begin += len(node)
        return embedded

    def of(self, shown: Shown) -> torch.Tensor:
        """(tokens, hidden)"""
        import torch

        if shown.number in self._kept:
            self._kept.move_to_end(shown.number)
            return self._kept[shown.number]
        dtype, device = self.network.network.dtype, self.network.device
        inputs = {
            name: value.to(device, dtype) if value.is_floating_point() else value.to(device)
            for name, value in shown.inputs.items()
        }
        made = self.network.network.get_image_features(**inputs, return_dict=True).pooler_output
        features = made.flatten(0, -2) if isinstance(made, torch.Tensor) else torch.cat(list(made))
        self.account.images_encoded += 1
        self._kept[shown.number] = features
        while len(self._kept) > 1 and sum(each.nbytes for each in self._kept.values()) > KEPT_BYTES:
            self._kept.popitem(last=False)
        return features
