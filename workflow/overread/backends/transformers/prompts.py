"""From a trial's blocks to the tokens that a model is given, their positions, and where each block lies.

The library's own template, processor and tokenizer do the work, each picture once. Two things are made sure of:

- The blocks stay in their order. Some templates (LLaVA's) put all pictures before all texts; then the pictures'
  placeholders are written into the text, where the blocks have them.
- What a text says stays text: a control token of the model in it fails its trial, since it would be obeyed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from overread.backends.base import content
from overread.backends.transformers.hiding import marked, report_tokens
from overread.backends.transformers.network import Network, first_line
from overread.backends.transformers.readouts import CONSTRAINED, FirstTokens
from overread.core.errors import BadInput
from overread.core.records import Block, Role, Trial

if TYPE_CHECKING:
    import numpy as np
    import torch
    from numpy.typing import NDArray
    from PIL.Image import Image

_MARK = "\ue000{}\ue001"
"""Stands for a text while the template is read: private-use characters, which no template holds."""

_BETWEEN = "\n\n"
"""What `content` puts between text blocks that follow each other."""


class Unaskable(BadInput):
    """One trial can't be put to the model, however often it is tried; others can."""


@dataclass
class Shown:
    """A picture as a model takes it.

    number      the same for the same pixels, another for others
    inputs      what the vision part is given
    expansion   the text that stands for it in a prompt
    """

    number: int
    inputs: dict[str, torch.Tensor]
    expansion: str


@dataclass
class Prompt:
    """A trial as tokens.

    text       the prompt, pictures as their expansions
    template   the prompt as the library's processor takes it, each picture one placeholder
    spans      role, begin and end of each text block, in characters of `text`
    ids        (n,) tokens
    offsets    (n, 2) begin and end of each token in characters of `text`
    key        (n,) the tokens, those of a picture made its own: equal keys mean equal prompts
    pictures   in order; `places[i]` holds the tokens of the i-th
    positions  (axes, n) rotary positions: one axis, or Qwen's three
    words      tokens of the readout's words
    """

    trial: Trial
    text: str
    template: str
    spans: list[tuple[Role, int, int]]
    ids: NDArray[np.int64]
    offsets: NDArray[np.int64]
    key: NDArray[np.int64]
    pictures: list[Shown]
    places: list[NDArray[np.int64]]
    positions: NDArray[np.int64]
    words: list[int] | None = field(default=None)

    def tokens_of(self, role: Role) -> list[tuple[int, int]]:
        """First and one past the last token of each text block of a role.

        A token that reaches into the block from outside counts, since it holds a part of it.
        """
        found = []
        for each, begin, end in self.spans:
            if each == role:
                inside = ((self.offsets[:, 0] < end) & (self.offsets[:, 1] > begin)).nonzero()[0]
                found.append((int(inside[0]), int(inside[-1]) + 1))
        return found

    @property
    def next_position(self) -> int:
        """Rotary position of the first token after the prompt, on every axis."""
        return int(self.positions.max()) + 1


class Prompts:
    """Makes prompts for one network.

    raises   BadInput if trials of this kind can't be put to it; Unaskable if this one can't
    """

    def __init__(self, network: Network) -> None:
        self.network, self.place = network, network.place
        self.tokenizer, self.processor = network.tokenizer, network.processor
        self._numbers: dict[str, int] = {}
        self._skeletons: dict[tuple[bool, ...], _Skeleton] = {}
        self.first_tokens = FirstTokens(
            self.render,
            self._encode,
            parts=network.sees,
            unknown=self.tokenizer.unk_token_id,
            place=self.place,
        )

    def prompt(self, trial: Trial, pictures: Sequence[Shown]) -> Prompt:
        """A trial with its pictures, in the order of its image blocks."""
        parts = _parts(trial.blocks)
        for part in parts:
            self._refuse_control_tokens(trial, part)
        text, template, spans = self._filled(parts, [each.expansion for each in pictures])
        ids, offsets = self._tokens(text)
        self._refuse_too_long(trial, len(ids))
        places, key = self._places(ids, pictures)
        prompt = Prompt(
            trial, text, template, spans, ids, offsets, key, list(pictures), places, self._positions(ids, pictures)
        )
        prompt.words = self.first_tokens.of(trial)
        if trial.attention != "none":
            prompt.key = marked(prompt.key, report_tokens(prompt))
        return prompt

    def picture(self, image: Image, pixels: str) -> Shown:
        """A picture through the model's processor. `pixels` is its hash."""
        # The template's text holds the one placeholder that this picture stands for.
        token = self.processor.image_token
        made = self.processor(text=[token], images=[[image]], return_text_replacement_offsets=True, return_tensors="pt")
        ((replaced,),) = made["text_replacement_offsets"]
        text = {"input_ids", "attention_mask", "token_type_ids", "mm_token_type_ids", "text_replacement_offsets"}
        inputs = {name: value for name, value in made.items() if name not in text}
        return Shown(self._numbers.setdefault(pixels, len(self._numbers)), inputs, replaced["replacement"])

    def render(self, conversation: list[dict[str, Any]], answer_begins: bool) -> str:
        """The chat template's text."""
        try:
            text: str = self.processor.apply_chat_template(
                conversation,
                tokenize=False,
                add_generation_prompt=answer_begins,
                enable_thinking=self.network.model.thinking,
            )
        except Exception as error:  # a template is a program, and raises what it likes
            raise BadInput(f"{self.place}: its chat template can't be used: {first_line(error)}") from None
        return text

    def adds_tokens(self, text: str) -> bool:
        """Whether the tokenizer still has to put its begin token: as the library's chat templates decide it."""
        begin = self.tokenizer.bos_token
        return self.network.sees and not (begin is not None and text.startswith(begin))

    def _encode(self, text: str) -> list[int]:
        ids: list[int] = self.tokenizer(text, add_special_tokens=self.adds_tokens(text))["input_ids"]
        return ids

    @cached_property
    def _control_tokens(self) -> re.Pattern[str]:
        added = self.tokenizer.added_tokens_decoder.values()
        texts = {each.content for each in added if each.special} | {getattr(self.processor, "image_token", None)}
        return re.compile("|".join(re.escape(text) for text in sorted(filter(None, texts))) or r"(?!)")

    def _refuse_control_tokens(self, trial: Trial, part: _Part) -> None:
        if found := self._control_tokens.search(part.text):
            begin = found.start()
            role = next(role for role, first, last in part.spans if first <= begin < last)
            raise Unaskable(
                f"{self.place}: the {role} of study {trial.study} holds {found[0]!r}, a control token of this model"
            )

    def _refuse_too_long(self, trial: Trial, length: int) -> None:
        limit = getattr(self.network.text_config, "max_position_embeddings", None)
        answer = 1 if trial.readout in CONSTRAINED else self.network.model.decoding.max_tokens
        if limit is not None and length + answer > limit:
            raise Unaskable(
                f"{self.place}: the prompt of question {trial.question} has {length} tokens and its answer up to "
                f"{answer}; the model reads {limit}"
            )

    def _filled(self, parts: list[_Part], expansions: list[str]) -> tuple[str, str, list[tuple[Role, int, int]]]:
        """A conversation of one message: its text, the same with placeholders, and where the text blocks lie in it."""
        shape = tuple(part.is_image for part in parts)
        if shape not in self._skeletons:
            self._skeletons[shape] = _Skeleton(self, parts)
        text, template = "", ""
        spans: list[tuple[Role, int, int]] = []
        left = iter(expansions)
        for piece in self._skeletons[shape].pieces:
            if isinstance(piece, str):
                text, template = text + piece, template + piece
            elif parts[piece].is_image:
                text, template = text + next(left), template + self.processor.image_token
            else:
                part = parts[piece]
                spans += [(role, len(text) + begin, len(text) + end) for role, begin, end in part.spans]
                text, template = text + part.text, template + part.text
        return text, template, spans

    def _tokens(self, text: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(n,) tokens of a text, and (n, 2) where each of them lies in it.

        Thousands of equal image tokens in a row are costly to tokenize. One of them stands for them all: it is a
        control token, which never merges with what is beside it.
        """
        import numpy as np

        image = self._image_text
        runs = list(re.finditer(f"(?:{re.escape(image)})+", text)) if image else []
        short = re.sub(f"(?:{re.escape(image)})+", lambda _: image, text) if image else text
        encoded = self.tokenizer(short, add_special_tokens=self.adds_tokens(text), return_offsets_mapping=True)
        ids = np.array(encoded["input_ids"], dtype=np.int64)
        offsets = np.array(encoded["offset_mapping"], dtype=np.int64).reshape(-1, 2)
        (found,) = (ids == self.network.image_token).nonzero() if image else ([],)
        if len(found) != len(runs):
            raise BadInput(f"{self.place}: {len(found)} image tokens in a prompt that has {len(runs)} runs of them")
        times = np.ones_like(ids)
        times[found] = [(run.end() - run.start()) // len(image) for run in runs]
        more = (times - 1) * len(image)  # characters that each token stands for besides its own
        offsets[:, 0] += np.cumsum(more) - more
        offsets[:, 1] += np.cumsum(more) - more
        place = np.arange(times.sum()) - np.repeat(np.cumsum(times) - times, times)  # within its run
        return np.repeat(ids, times), np.repeat(offsets, times, axis=0) + len(image) * place[:, None]

    def _places(
        self, ids: NDArray[np.int64], pictures: Sequence[Shown]
    ) -> tuple[list[NDArray[np.int64]], NDArray[np.int64]]:
        """Tokens of each picture, and the key. BadInput if a picture's tokens were cut or merged."""
        import numpy as np

        key = ids.copy()
        if self.network.image_token is None:
            return [], key
        (found,) = (ids == self.network.image_token).nonzero()
        counts = [self._image_tokens(each) for each in pictures]
        if sum(counts) != len(found):
            raise BadInput(f"{self.place}: {len(found)} image tokens in a prompt whose pictures need {sum(counts)}")
        places = np.split(found, np.cumsum(counts)[:-1]) if counts else []
        for shown, place in zip(pictures, places, strict=True):
            key[place] = -1 - (np.int64(shown.number) << 32) - np.arange(len(place))
        return places, key

    def _image_tokens(self, shown: Shown) -> int:
        """How many tokens a picture is: those that its expansion holds."""
        return shown.expansion.count(self._image_text)

    @cached_property
    def _image_text(self) -> str:
        """The text of an image token; empty for a model of text."""
        token = self.network.image_token
        return "" if token is None else str(self.tokenizer.convert_ids_to_tokens(token))

    def _positions(self, ids: NDArray[np.int64], pictures: Sequence[Shown]) -> NDArray[np.int64]:
        import numpy as np

        plain = np.arange(len(ids))[None]
        inner: Any = getattr(self.network.network, "model", None)
        if not hasattr(inner, "get_rope_index"):
            return plain
        if not pictures:
            return plain.repeat(3, 0)
        import torch

        tokens = torch.from_numpy(ids)[None]
        grids = torch.cat([each.inputs["image_grid_thw"] for each in pictures])
        kinds = torch.from_numpy(ids == self.network.image_token)[None].int()
        positions, _ = inner.get_rope_index(tokens, mm_token_type_ids=kinds, image_grid_thw=grids)
        made: NDArray[np.int64] = positions[:, 0].numpy()
        return made


@dataclass
class _Part:
    """A picture, or text blocks that follow each other, with where each of them lies in `text`."""

    is_image: bool
    text: str = ""
    spans: list[tuple[Role, int, int]] = field(default_factory=list)


def _parts(blocks: Sequence[Block]) -> list[_Part]:
    """As `content` has them."""
    parts = [_Part(isinstance(part, Path), "" if isinstance(part, Path) else part) for part in content(blocks)]
    left = iter(parts)
    open_text: _Part | None = None
    for block in blocks:
        if block.image is not None:
            next(left)
            open_text = None
            continue
        if open_text is None:
            open_text = next(left)
        begin = open_text.spans[-1][2] + len(_BETWEEN) if open_text.spans else 0
        open_text.spans.append((block.role, begin, begin + len(str(block.text))))
    return parts


class _Skeleton:
    """A chat template's text around the parts of a message: pieces of text, and numbers of parts.

    raises   BadInput if the template can't show the parts in their order, or does more with a text than to show it
    """

    def __init__(self, prompts: Prompts, parts: list[_Part]) -> None:
        self._prompts, self._parts = prompts, parts
        self._token = getattr(prompts.processor, "image_token", None)
        marks = [_MARK.format(number) for number in range(len(parts))]
        for message in (self._message, self._inline):
            self.pieces = self._read(message(marks))
            if [piece for piece in self.pieces if isinstance(piece, int)] == list(range(len(parts))):
                break
        else:
            raise BadInput(f"{prompts.place}: its chat template leaves out or reorders what a trial shows")
        texts = [part.text for part in parts]
        shown = [str(self._token) if part.is_image else part.text for part in parts]
        if "".join(piece if isinstance(piece, str) else shown[piece] for piece in self.pieces) != self._render(
            message(texts)
        ):
            raise BadInput(f"{prompts.place}: its chat template changes the texts that a trial shows")

    def _message(self, texts: list[str]) -> Any:
        """The content of a message: its parts, or the one text of a model that takes text only."""
        if not self._prompts.network.sees:
            return texts[0]
        return [
            {"type": "image"} if part.is_image else {"type": "text", "text": text}
            for part, text in zip(self._parts, texts, strict=True)
        ]

    def _inline(self, texts: list[str]) -> Any:
        """One text with the pictures' placeholders where the parts have them, each on a line of its own."""
        lines = [str(self._token) if part.is_image else text for part, text in zip(self._parts, texts, strict=True)]
        return [{"type": "text", "text": "\n".join(lines)}]

    def _render(self, content: Any) -> str:
        return self._prompts.render([{"role": "user", "content": content}], True)

    def _read(self, content: Any) -> list[str | int]:
        text = self._render(content)
        images = iter([number for number, part in enumerate(self._parts) if part.is_image])
        slots = _MARK.format(r"(\d+)") + (f"|{re.escape(self._token)}" if self._token else "")
        pieces: list[str | int] = []
        end = 0
        for found in re.finditer(slots, text):
            pieces += [text[end : found.start()], next(images, -1) if found[1] is None else int(found[1])]
            end = found.end()
        return [*pieces, text[end:]]
