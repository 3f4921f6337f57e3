"""What LLaVA-Med is shown: its `mistral_instruct` conversation and its square pictures.

    <s>[INST] <picture>
    the texts [/INST]

The original tokenises the texts before and behind a picture apart, each with its own begin token, drops that token
but for the first, and puts the picture's vectors between them. Blocks keep their order: what follows another stands
on a new line.

A picture that is not square is put on a square of the mean colour of CLIP's training pictures. The original draws
where; here the place depends on the seed, the run and the picture alone, so that a picture is the same for all
questions of a run.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from overread.core.records import content_hash

if TYPE_CHECKING:
    from PIL.Image import Image

BEGIN, END = "[INST] ", " [/INST]"


def segments(parts: Sequence[str | Path]) -> list[str]:
    """The texts before, between and behind the pictures: one more than there are pictures.

    parts   texts and pictures, as `backends.content` gives them
    """
    texts = [BEGIN]
    for number, part in enumerate(parts):
        if number:
            texts[-1] += "\n"
        if isinstance(part, Path):
            texts.append("")
        else:
            texts[-1] += part
    texts[-1] += END
    return texts


def tokens(tokenizer: Any, texts: Sequence[str]) -> list[list[int]]:
    """The tokens of each segment; only the first keeps the begin token."""
    ids = [list(tokenizer(text)["input_ids"]) for text in texts]
    begin = tokenizer.bos_token_id
    return [ids[0], *(each[1:] if each[:1] == [begin] else each for each in ids[1:])]


def square(picture: Image, mean: Sequence[float], place: float | None) -> Image:
    """`picture` on a square as large as its longer edge.

    mean    the colour beside it, by channel in 0..1
    place   where it stands along its shorter edge, from 0 (left or top) to 1 (right or bottom); None: in the middle
    """
    from PIL import Image

    if picture.width == picture.height:
        return picture
    edge = max(picture.size)
    colour = tuple(int(255 * value) for value in mean)
    whole = Image.new("RGB", (edge, edge), colour)
    whole.paste(picture, (_before(edge - picture.width, place), _before(edge - picture.height, place)))
    return whole


def drawn_place(seed: int, run: int, pixels: str) -> float:
    """Uniform in 0..1, from the seed, the run and the hash of the picture."""
    return random.Random(content_hash(["padding", seed, run, pixels])).random()


def _before(room: int, place: float | None) -> int:
    """Pixels before a picture that has `room` to spare. Of a uniform draw each of the room + 1 places is as likely."""
    return room // 2 if place is None else min(int(place * (room + 1)), room)
