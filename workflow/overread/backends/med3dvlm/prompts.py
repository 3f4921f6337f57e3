"""Med3DVLM's prompt form.

    <im_patch> x 256, then " " + question + " Choices: A. ... B. ..."

What stands before the question (a report, a warning) comes before it here too, each text after a space. The shared
template's label "Question:" is left out, since the form has none; so is what stands behind the options: how to reply,
by number, to a model that replies with a letter. Without listed options the texts stand as they are.

The volume's 256 vectors take the places of `<im_patch>` and of nothing else (see `network`). A prompt has room for 512
tokens, the volume's among them; a longer one fails for good and is never cut.
"""

from __future__ import annotations

import string
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from overread.backends.med3dvlm.network import PATCH, SHAPE, VOLUME, Med3dvlmNetwork
from overread.backends.transformers.prompts import Prompt, Prompts, Shown, Unaskable, _parts
from overread.backends.transformers.readouts import FirstTokens
from overread.core.errors import BadInput
from overread.core.records import Trial

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

CONTEXT = 512
LETTERS = string.ascii_uppercase
_LABEL = "Question:"


def question_text(trial: Trial) -> str:
    """What stands behind the volume."""
    texts: list[str] = []
    for block in trial.blocks:
        if block.role == "options":
            listed = zip(LETTERS, trial.options, strict=False)
            texts.append("Choices: " + " ".join(f"{letter}. {option}" for letter, option in listed))
            break
        if block.text is not None:
            texts.append(block.text.removeprefix(_LABEL).strip() if block.role == "question" else block.text)
    return "".join(f" {text}" for text in texts)


class Med3dvlmPrompts(Prompts):
    """As `Prompts`, in this form."""

    network: Med3dvlmNetwork

    def __init__(self, network: Med3dvlmNetwork) -> None:
        self.network, self.place = network, network.place
        self.tokenizer, self.processor = network.tokenizer, None
        self._numbers = {}
        self.first_tokens = FirstTokens(
            self.render, self._encode, parts=False, unknown=self.tokenizer.unk_token_id, place=self.place
        )
        around = self._encode(PATCH)
        self._begin = around[: around.index(network.patch)]
        if around != [*self._begin, network.patch] or len(self._begin) > network.first:
            raise BadInput(
                f"{self.place}: its tokenizer puts {around} around a text, and its code puts the volume from row "
                f"{network.first} on: it would stand on other tokens than {PATCH}"
            )

    def prompt(self, trial: Trial, pictures: Sequence[Shown]) -> Prompt:
        import numpy as np

        for part in _parts(trial.blocks):
            self._refuse_control_tokens(trial, part)
        network, (shown,) = self.network, pictures
        behind = network.first + network.count
        text = PATCH * (behind - len(self._begin)) + question_text(trial)
        ids = np.array(self._encode(text), dtype=np.int64)
        patches = (ids == network.patch).nonzero()[0]
        if patches.tolist() != list(range(len(self._begin), behind)):
            raise Unaskable(f"{self.place}: {PATCH} stands elsewhere than before question {trial.question}")
        if len(ids) > CONTEXT:
            raise Unaskable(
                f"{self.place}: the prompt of question {trial.question} has {len(ids)} tokens, the volume's among "
                f"them; the model reads {CONTEXT}"
            )
        places = [np.arange(network.first, behind)]
        key = ids.copy()
        ids[places[0]] = VOLUME
        key[places[0]] = -1 - (np.int64(shown.number) << 32) - np.arange(network.count)
        positions = np.arange(len(ids))[None]
        unknown = np.zeros((len(ids), 2), dtype=np.int64)  # where a token lies in the text is asked by hiding alone
        prompt = Prompt(trial, text, text, [], ids, unknown, key, [shown], places, positions)
        prompt.words = self._letters(len(trial.options)) if trial.readout == "choice" else self.first_tokens.of(trial)
        return prompt

    def volume(self, array: NDArray[np.float32], pixels: str) -> Shown:
        """A volume as `images.model_arrays.med3dvlm_array` makes it. `pixels` is its hash."""
        import torch

        images = torch.from_numpy(array)[None]
        if images.shape != SHAPE:
            raise BadInput(f"{self.place}: a volume of shape {tuple(images.shape)}, not {SHAPE}")
        return Shown(self._numbers.setdefault(pixels, len(self._numbers)), {"images": images}, PATCH)

    def render(self, conversation: list[dict[str, Any]], answer_begins: bool) -> str:
        """A question and its answer, as the training data have them: each after a space."""
        return "".join(f" {each['content']}" for each in conversation)

    def _encode(self, text: str) -> list[int]:
        return list(self.tokenizer(text)["input_ids"])

    def _letters(self, count: int) -> list[int]:
        """Token of each option's letter where an answer begins. BadInput if one is several."""
        tokens = [self.first_tokens.token(f" {letter}") for letter in LETTERS[:count]]
        if None in tokens or len(set(tokens)) < count:
            found = dict(zip(LETTERS, tokens, strict=False))
            raise BadInput(
                f"{self.place}: the letters are not one token each after its prompt ({found}): readout 'choice' "
                "can't be used"
            )
        return [token for token in tokens if token is not None]
