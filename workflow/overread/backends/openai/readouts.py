"""What each readout asks of a server, and what is read from its reply.

first-token  one token; the likelier of lower-case yes and no at the first position
choice       one token too where the server gives log-probabilities: the likeliest of the option numbers at the first
             position, as every back end reads it. Where it gives none, JSON whose one value is a number from the list;
             a vLLM server whose tokens can't be asked for is held to the numbers themselves
yes-no       an answer to be parsed; the log-probabilities of yes and no at the first position, where offered
free-text    an answer to be parsed

Log-probabilities are over the whole vocabulary. A server lists the likeliest tokens only: a word that is not among them
has an unknown log-probability, and then none is kept. The likeliest word is known as long as one is listed, since what
is not listed is less likely than what is. A vLLM server is asked for the very tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from overread.backends.base import Answer
from overread.backends.openai.section import OpenaiModel
from overread.backends.transformers.readouts import CONSTRAINED, READOUTS, words
from overread.backends.transport.faults import BadReply
from overread.backends.transport.replies import Reply, strict_json
from overread.core.records import Trial, content_hash

__all__ = ["CONSTRAINED", "READOUTS", "answer_of", "common", "one_token", "parameters", "words"]

CONSTRAINED_TOKENS = 16
"""Enough for a word that a server without token ids is held to."""


def common(model: OpenaiModel) -> dict[str, Any]:
    """Parameters of every request to the model."""
    decoding = model.decoding
    wanted: dict[str, Any] = {
        "temperature": decoding.temperature,
        "top_p": decoding.top_p,
        "reasoning_effort": decoding.reasoning_effort,
    }
    whole = {**wanted, **model.protocol.usual(), **model.extra}
    return {name: value for name, value in whole.items() if value is not None}


def one_token(model: OpenaiModel, trial: Trial, tokens: Sequence[int] | None) -> bool:
    """Whether the readout reads the first position and nothing else.

    tokens  those of the readout's words, where they are known
    """
    if trial.readout == "choice":
        return model.takes.logprobs and (not model.protocol.tells_tokens or tokens is not None)
    return trial.readout == "first-token"


def parameters(
    model: OpenaiModel, trial: Trial, tokens: Sequence[int] | None = None
) -> tuple[dict[str, Any], frozenset[str]]:
    """Parameters of the trial's request alone, and those that it would be of no use without."""
    decoding, asked = model.decoding, words(trial)
    most = "max_completion_tokens" if model.reasons else "max_tokens"
    listed: dict[str, Any] = {"logprobs": True, "top_logprobs": model.top_logprobs}
    if tokens is not None:
        listed |= {"logprob_token_ids": list(tokens), "return_tokens_as_token_ids": True}
    wanted: dict[str, Any]
    if one_token(model, trial, tokens):
        wanted = {most: 1, **listed}
        if tokens is not None:
            wanted["allowed_token_ids"] = list(tokens)
        return _greedy(model) | wanted, frozenset(wanted) - {most}
    if trial.readout == "choice" and model.protocol.tells_tokens:
        wanted = {most: min(decoding.max_tokens, CONSTRAINED_TOKENS), "structured_outputs": {"choice": asked}}
        return _greedy(model) | wanted, frozenset({"structured_outputs"})
    wanted = {most: decoding.max_tokens}
    if decoding.temperature != 0:
        # A draw of its own for each question and run, the same whenever it is asked.
        wanted["seed"] = int(content_hash([decoding.seed, trial.trial, trial.question, trial.run])[:7], 16)
    if trial.readout == "choice":
        wanted["response_format"] = _one_of(asked or [])
    elif asked is not None and model.takes.logprobs:
        wanted |= listed
    return wanted, frozenset()


def answer_of(reply: Reply, model: OpenaiModel, trial: Trial, tokens: Sequence[int] | None = None) -> Answer:
    """The answer in a reply to the trial."""
    counted: dict[str, Any] = {
        "text": reply.text,
        "finish_reason": reply.finish_reason,
        "prompt_tokens": reply.prompt_tokens,
        "completion_tokens": reply.completion_tokens,
        "seconds": reply.seconds,
        "served_by": reply.served_by,
        "adjusted": reply.adjusted or None,
    }
    if reply.status == "refused":
        filtered = reply.finish_reason == "content_filter"
        return Answer(**{**counted, "finish_reason": "content_filter" if filtered else "refusal"})
    asked = words(trial)
    names = [f"token_id:{token}" for token in tokens] if tokens is not None else asked
    first = reply.first or {}
    known = {place: first[name] for place, name in enumerate(names or ()) if name in first}
    logprobs = tuple(known.values()) if names and len(known) == len(names) else None
    if one_token(model, trial, tokens):
        if reply.first is None:
            return Answer(text="", error="the server gives no log-probabilities: set takes.logprobs to false")
        chosen = max(known, key=known.__getitem__) if known else None
        return Answer(**{**counted, "finish_reason": "constrained"}, chosen=chosen, logprobs=logprobs)
    if trial.readout == "choice":
        # What is neither the JSON that was asked for nor one of the words is parsed like any other text.
        said = reply.text.strip() if model.protocol.tells_tokens else _value(reply.text)
        return Answer(**counted, chosen=asked.index(said) if asked and said in asked else None)
    return Answer(**counted, logprobs=logprobs)


def _greedy(model: OpenaiModel) -> dict[str, Any]:
    """The readout looks at the model's own probabilities: nothing is drawn."""
    return {} if model.decoding.temperature is None else {"temperature": 0}


def _one_of(names: Sequence[str]) -> dict[str, Any]:
    schema = {
        "type": "object",
        "properties": {"answer": {"type": "string", "enum": list(names)}},
        "required": ["answer"],
        "additionalProperties": False,
    }
    return {"type": "json_schema", "json_schema": {"name": "choice", "strict": True, "schema": schema}}


def _value(text: str) -> str | None:
    """The value of the JSON that was asked for; None for anything else."""
    try:
        content = strict_json(text)
    except BadReply:
        return None
    value = content.get("answer") if isinstance(content, dict) and set(content) == {"answer"} else None
    return value if isinstance(value, str) else None
