"""From a trial's blocks to LLaVA-Med's tokens and pictures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from overread.backends.base import content
from overread.backends.llava_med.conversation import drawn_place, segments, square, tokens
from overread.backends.llava_med.network import PICTURE, LlavaMedNetwork
from overread.backends.transformers.prompts import Prompt, Prompts, Shown, _parts
from overread.backends.transformers.readouts import FirstTokens
from overread.core.records import Trial

if TYPE_CHECKING:
    from PIL.Image import Image


class LlavaMedPrompts(Prompts):
    """As `Prompts`, in the original's conversation format.

    run   of the trials that are asked: where a picture stands in its square is drawn for each run
    """

    network: LlavaMedNetwork
    run = 1

    def __init__(self, network: LlavaMedNetwork) -> None:
        self.network, self.place = network, network.place
        self.tokenizer, self.processor = network.tokenizer, None
        self._numbers = {}
        self.first_tokens = FirstTokens(
            self.render, self._encode, parts=False, unknown=self.tokenizer.unk_token_id, place=self.place
        )

    def prompt(self, trial: Trial, pictures: Sequence[Shown]) -> Prompt:
        import numpy as np

        for part in _parts(trial.blocks):
            self._refuse_control_tokens(trial, part)
        texts = segments(content(trial.blocks))
        pieces = tokens(self.tokenizer, texts)
        ids: list[int] = list(pieces[0])
        key: list[int] = list(pieces[0])
        places = []
        for shown, piece in zip(pictures, pieces[1:], strict=True):
            count = self._tokens_of_a_picture(shown)
            places.append(np.arange(len(ids), len(ids) + count))
            key += [-1 - (shown.number << 32) - place for place in range(count)] + piece
            ids += [PICTURE] * count + piece
        self._refuse_too_long(trial, len(ids))
        text = "<image>".join(texts)
        positions = np.arange(len(ids))[None]
        unknown = np.zeros((len(ids), 2), dtype=np.int64)  # where a token lies in the text is asked by hiding alone
        prompt = Prompt(trial, text, text, [], np.array(ids), unknown, np.array(key), list(pictures), places, positions)
        prompt.words = self.first_tokens.of(trial)
        return prompt

    def picture(self, image: Image, pixels: str) -> Shown:
        drawn = self.network.model.padding == "drawn" and image.width != image.height
        place = drawn_place(self.network.model.decoding.seed, self.run, pixels) if drawn else None
        whole = square(image, self.network.pixels.image_mean, place)
        inputs = dict(self.network.pixels(images=[whole], return_tensors="pt"))
        return Shown(self._numbers.setdefault(f"{pixels} {place}", len(self._numbers)), inputs, "<image>")

    def render(self, conversation: list[dict[str, Any]], answer_begins: bool) -> str:
        """A question and its answer, without pictures."""
        turns = [
            "".join(segments([each["content"]])) if each["role"] == "user" else f" {each['content']}</s>"
            for each in conversation
        ]
        return "".join(turns)

    def _encode(self, text: str) -> list[int]:
        return list(self.tokenizer(text)["input_ids"])

    def _tokens_of_a_picture(self, shown: Shown) -> int:
        """The patches of CLIP's picture: its class token is left out."""
        patch = self.network.network.config.vision_config.patch_size
        height, width = shown.inputs["pixel_values"].shape[-2:]
        return int((height // patch) * (width // patch))
