"""What is read at the first generated position: the words of a readout, and the token that each of them is there.

choice       the option numbers "1" to "n", as the text that follows the prompt at once
first-token  lower-case "yes" and "no", in the form in which an answer begins: some templates put a space before it,
             and a tokenizer's word with a space is another token than the word without
yes-no       the same tokens, for the margin, where each word is one token; the answer itself is parsed
free-text    nothing: the answer is parsed

Log-probabilities are over the whole vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import jinja2

from overread.backends.base import Answer
from overread.core.errors import BadInput
from overread.core.records import Trial

if TYPE_CHECKING:
    from overread.backends.transformers.network import Network
    from overread.backends.transformers.prompts import Prompt
    from overread.core.account import Account

READOUTS = ("choice", "yes-no", "first-token", "free-text")
CONSTRAINED = ("choice", "first-token")
"""Readouts whose answer is the likeliest of its words: one token, nothing to parse."""


def is_yes_no(trial: Trial) -> bool:
    return sorted(option.casefold() for option in trial.options) == ["no", "yes"]


def words(trial: Trial) -> list[str] | None:
    """The readout's words by place shown; None where it has none."""
    if trial.readout == "choice":
        return [str(place + 1) for place in range(len(trial.options))]
    if trial.readout in ("first-token", "yes-no") and is_yes_no(trial):
        return [option.casefold() for option in trial.options]
    return None


def answer(
    network: Network, prompt: Prompt, logprobs: tuple[float, ...] | None, tokens: list[int], stopped: bool
) -> Answer:
    """The answer to a prompt: the likeliest of its words, or what was written.

    tokens    of the answer, without the end token
    stopped   whether it ended by itself
    """
    sizes: dict[str, Any] = {
        "prompt_tokens": len(prompt.ids),
        "image_tokens": sum(len(place) for place in prompt.places),
        "logprobs": logprobs,
    }
    asked = words(prompt.trial)
    if prompt.trial.readout in CONSTRAINED and logprobs is not None and asked is not None:
        best = max(range(len(logprobs)), key=logprobs.__getitem__)
        return Answer(text=asked[best], chosen=best, finish_reason="constrained", completion_tokens=1, **sizes)
    text = network.tokenizer.decode(tokens, skip_special_tokens=True).strip()
    return Answer(text=text, finish_reason="stop" if stopped else "length", completion_tokens=len(tokens), **sizes)


def count(account: Account, answers: Iterable[Answer]) -> None:
    """Count what answers took in; what went through the model for them is counted where it does."""
    for each in answers:
        account.prompt_tokens += each.prompt_tokens or 0
        account.completion_tokens += each.completion_tokens or 0


class FirstTokens:
    """Which token a word is at the first generated position.

    render   the chat template: a conversation, and whether the answer is to begin -> prompt
    encode   the tokenizer: a prompt -> its tokens
    parts    whether a message is a list of parts
    unknown  the token that stands for what the tokenizer does not know
    """

    def __init__(
        self,
        render: Callable[[list[dict[str, Any]], bool], str],
        encode: Callable[[str], list[int]],
        *,
        parts: bool,
        unknown: int | None,
        place: str,
    ) -> None:
        self._render, self._encode, self._parts = render, encode, parts
        self._unknown, self._place = unknown, place
        self.token = lru_cache(maxsize=None)(self._token)
        self.beginning = lru_cache(maxsize=None)(self._beginning)

    def of(self, trial: Trial) -> list[int] | None:
        """Token of each of the trial's words. BadInput if a constrained readout has a word of several tokens."""
        asked = words(trial)
        if asked is None:
            return None
        texts = asked if trial.readout == "choice" else [f"{self.beginning()}{word}" for word in asked]
        tokens = [self.token(text) for text in texts]
        if None in tokens or len(set(tokens)) < len(tokens):
            if trial.readout == "yes-no":
                return None
            # Where there is no token for a word, or one for two of them, nothing can be read.
            text = texts[tokens.index(None)] if None in tokens else texts[0]
            raise BadInput(
                f"{self._place}: {text!r} is not one token after its prompt: readout {trial.readout!r} can't be used "
                f"({self.variants(trial)})"
            )
        return [token for token in tokens if token is not None]

    def variants(self, trial: Trial) -> str:
        """Every form of the trial's words at the beginning of an answer, with its token: for messages."""
        found = []
        for word in words(trial) or []:
            for text in dict.fromkeys((word, f" {word}", word.capitalize(), f" {word.capitalize()}")):
                token = self.token(text)
                found.append(f"{text!r} is {'several tokens' if token is None else f'token {token}'}")
        return ", ".join(found)

    def _message(self, role: str, text: str) -> dict[str, Any]:
        return {"role": role, "content": [{"type": "text", "text": text}] if self._parts else text}

    def _beginning(self) -> str:
        """The white space that the template puts between the prompt and an answer."""
        asked = self._message("user", "?")
        prompt = self._render([asked], True)
        try:
            answered = self._render([asked, self._message("assistant", "yes")], False)
        except (jinja2.TemplateError, TypeError):
            # Some templates take no answer in a conversation: the prompt stands alone.
            return ""
        rest = answered[len(prompt) :] if answered.startswith(prompt) else ""
        space = rest[: len(rest) - len(rest.lstrip())]
        return space if rest.lstrip().startswith("yes") else ""

    def _token(self, text: str) -> int | None:
        """The token that `text` is where an answer begins: tokenizers merge across that seam. None for several."""
        prompt = self._render([self._message("user", "?")], True)
        before, after = self._encode(prompt), self._encode(prompt + text)
        fits = len(after) == len(before) + 1 and after[:-1] == before and after[-1] != self._unknown
        return after[-1] if fits else None
