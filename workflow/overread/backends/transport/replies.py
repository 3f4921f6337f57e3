"""What a server said, read strictly: a reply that is not quite JSON is none.

JSON allows no NaN (RFC 8259, 6) and gives no meaning to a key that stands twice (4); Python's reader takes both. A
reply that holds either was not written by what it claims to be, and choosing one of two answers would be a guess.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Literal, NoReturn, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from overread.backends.transport.faults import BadReply, Refused, Transient

M = TypeVar("M", bound=BaseModel)

_FENCE = re.compile(r"\s*```(?:json)?\s*\n(.*)\n\s*```\s*", re.DOTALL)


@dataclass(frozen=True)
class Reply:
    """A reply as it is kept.

    status      refused: the model or its provider would not answer; `text` then says what it said instead
    served_by   the model as the server names it
    adjusted    parameters that the model did not take, and what was done about them
    first       log-probability by token at the first generated position: the likeliest ones, and the one generated
    """

    status: Literal["answered", "refused"]
    text: str
    finish_reason: str | None = None
    served_by: str | None = None
    adjusted: str = ""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    seconds: float | None = None
    cached_tokens: int | None = None
    first: dict[str, float] | None = None


class _Loose(BaseModel):
    model_config = ConfigDict(extra="ignore")


class _Message(_Loose):
    content: str | None = None
    refusal: str | None = None


class _Choice(_Loose):
    message: _Message
    finish_reason: str | None = None
    logprobs: Any = None


class _Token(_Loose):
    token: str
    logprob: float | None = None


class _Position(_Token):
    top_logprobs: list[_Token] = []


class _Details(_Loose):
    cached_tokens: int | None = None


class _Usage(_Loose):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _Details | None = None


class _Completion(_Loose):
    choices: list[_Choice]
    usage: _Usage | None = None
    model: str | None = None


def reply_of(body: bytes) -> Reply:
    """The first choice of a chat completion.

    raises  Transient for a body that is no completion (cut off by a proxy, an error page), BadReply for one that says
            nothing
    """
    try:
        content = strict_json(body.decode())
    except (BadReply, UnicodeDecodeError):
        raise Transient("a reply that is none of the protocol", lost=True) from None
    return reply_in(content)


def reply_in(content: object) -> Reply:
    """The same of a completion that has been read already."""
    try:
        completion = _Completion.model_validate(content)
    except ValidationError:
        raise Transient("a reply that is none of the protocol", lost=True) from None
    if not completion.choices:
        raise BadReply("the reply holds no choice")
    choice, usage = completion.choices[0], completion.usage or _Usage()
    refused = choice.message.refusal is not None or choice.finish_reason in ("content_filter", "refusal")
    return Reply(
        status="refused" if refused else "answered",
        text=choice.message.refusal or choice.message.content or "",
        finish_reason=choice.finish_reason,
        served_by=completion.model,
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
        cached_tokens=usage.prompt_tokens_details.cached_tokens if usage.prompt_tokens_details else None,
        first=_first(choice.logprobs),
    )


UNKNOWN_LOGPROB = -9999.0
"""What the protocol writes for a token too unlikely to have a log-probability."""


def _first(logprobs: Any) -> dict[str, float] | None:
    """What a choice's log-probabilities say of the first position; None where they say nothing that can be read."""
    content = logprobs.get("content") if isinstance(logprobs, dict) else None
    if not isinstance(content, list) or not content:
        return None
    try:
        first = _Position.model_validate(content[0])
    except ValidationError:
        return None
    found: dict[str, float] = {}
    for each in (*first.top_logprobs, first):
        if each.logprob is not None and each.logprob > UNKNOWN_LOGPROB:
            # Two tokens can be written alike; the likelier one is what the model would write.
            found[each.token] = max(each.logprob, found.get(each.token, UNKNOWN_LOGPROB))
    return found or None


def refusal(fault: Refused) -> Reply:
    """The reply for a request that the provider turned away before the model saw it."""
    return Reply(status="refused", text=str(fault), finish_reason="content_filter")


def structured(reply: Reply, kind: type[M]) -> M:
    """The object that a reply's text holds. BadReply, with a reason that quotes nothing, for one that does not fit.

    No value is turned into another type, and no unknown key is passed over.
    """
    if not reply.text.strip():
        what = "nothing was written before the tokens ran out" if reply.finish_reason == "length" else "an empty reply"
        raise BadReply(what)
    if reply.finish_reason == "length":
        raise BadReply("cut off: the tokens ran out; the model file's decoding says how many there may be")
    fenced = _FENCE.fullmatch(reply.text)
    content = strict_json(fenced[1] if fenced else reply.text)
    try:
        return kind.model_validate(content, strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        if first["type"] == "extra_forbidden":
            # The unknown key's name is the server's own text.
            raise BadReply("another form than asked for: a key that was not asked for") from None
        message = first["msg"].removeprefix("Value error, ")
        raise BadReply(f"another form than asked for: {place or 'the whole'}: {message}") from None


def strict_json(text: str) -> Any:
    """BadReply for what is no JSON: cut off, NaN or Infinity, a key twice, half a surrogate pair."""
    try:
        content = json.loads(text, object_pairs_hook=_each_key_once, parse_constant=_no_constant)
        if "\\u" in text:  # only an escape can make one
            json.dumps(content, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise BadReply("not JSON: half a surrogate pair") from None
    except RecursionError:
        raise BadReply("not JSON: nested too deeply") from None
    except ValueError as error:
        at_end = isinstance(error, json.JSONDecodeError) and error.pos >= len(text.rstrip()) - 1
        cut = at_end or "Unterminated string" in str(error)
        raise BadReply("not JSON: it ends too early" if cut else "not JSON") from None
    return content


def _each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) != len(pairs):
        raise BadReply("not JSON: duplicate key")
    return content


def _no_constant(name: str) -> NoReturn:
    raise BadReply(f"not JSON: {name}")


def response_format(name: str, kind: type[BaseModel]) -> dict[str, Any]:
    """`response_format` of a request that asks for `kind`, strictly.

    Strict structured output wants every object closed and every key required; ValueError where `kind` is not so.
    """
    schema = kind.model_json_schema()
    for part in (schema, *schema.get("$defs", {}).values()):
        if part.get("type") != "object":
            continue
        required, properties = part.get("required", []), part.get("properties", {})
        if part.get("additionalProperties") is not False or set(required) != set(properties):
            raise ValueError(f"{kind.__name__}: strict output needs extra='forbid' and no default in {part['title']}")
    return {"type": "json_schema", "json_schema": {"name": name, "strict": True, "schema": _untitled(schema)}}


def _untitled(part: Any) -> Any:
    if isinstance(part, list):
        return [_untitled(each) for each in part]
    if not isinstance(part, dict):
        return part
    # `properties` maps names to schemas: a property may be called title.
    return {
        key: {name: _untitled(each) for name, each in value.items()}
        if key in ("properties", "$defs")
        else _untitled(value)
        for key, value in part.items()
        if key != "title"
    }
