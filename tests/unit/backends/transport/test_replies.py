from __future__ import annotations

import json
from typing import Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field

from overread.backends.transport.faults import BadReply, Transient
from overread.backends.transport.replies import Reply, reply_of, response_format, strict_json, structured


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid")
    title: str
    number: int
    tag: Literal["YES", "NO"]


class Whole(BaseModel):
    model_config = ConfigDict(extra="forbid")
    parts: list[Part]


GOOD = '{"parts": [{"title": "secret-words", "number": 1, "tag": "YES"}]}'


def answered(text: str, finish_reason: str = "stop") -> Reply:
    return Reply("answered", text, finish_reason)


def test_a_good_reply_is_read() -> None:
    assert structured(answered(GOOD), Whole).parts[0] == Part(title="secret-words", number=1, tag="YES")


def test_a_reply_inside_one_code_fence_is_read() -> None:
    assert structured(answered(f"```json\n{GOOD}\n```"), Whole).parts[0].number == 1


@pytest.mark.parametrize(
    ("text", "finish_reason", "reason"),
    [
        ("", "length", "nothing was written before the tokens ran out"),
        ("  \n", "length", "nothing was written before the tokens ran out"),
        ("", "stop", "an empty reply"),
        (GOOD, "length", "cut off: the tokens ran out"),
        (GOOD[:40], "length", "cut off: the tokens ran out"),
        (GOOD[:40], "stop", "not JSON: it ends too early"),
        (GOOD[:-1], "stop", "not JSON: it ends too early"),
        (f"Here you are: {GOOD}", "stop", "not JSON"),
        (f"{GOOD} Done.", "stop", "not JSON"),
        (GOOD.replace("1", "NaN"), "stop", "not JSON: NaN"),
        (GOOD.replace("1", "-Infinity"), "stop", "not JSON: -Infinity"),
        (GOOD.replace('"number"', '"tag": "NO", "number"'), "stop", "not JSON: duplicate key"),
        (GOOD.replace("secret-words", "\\ud83d"), "stop", "not JSON: half a surrogate pair"),
        ("[" * 100_000, "stop", "not JSON"),
        ('{"parts": null}', "stop", "another form than asked for: parts: Input should be a valid list"),
        ("{}", "stop", "another form than asked for: parts: Field required"),
        ("[]", "stop", "another form than asked for: the whole: "),
        (GOOD.replace("1", '"1"'), "stop", "another form than asked for: parts.0.number: "),
        (GOOD.replace("1", "1.0"), "stop", "another form than asked for: parts.0.number: "),
        (
            GOOD.replace("YES", "MAYBE"),
            "stop",
            "another form than asked for: parts.0.tag: Input should be 'YES' or 'NO'",
        ),
        (
            GOOD.replace('"number"', '"secret-key": 2, "number"'),
            "stop",
            "another form than asked for: a key that was not",
        ),
    ],
)
def test_what_is_not_quite_right_is_refused_with_its_reason(text: str, finish_reason: str, reason: str) -> None:
    with pytest.raises(BadReply) as caught:
        structured(answered(text, finish_reason), Whole)
    assert str(caught.value).startswith(reason)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("cut", range(1, len(GOOD)))
def test_no_beginning_of_a_reply_passes_for_the_whole(cut: int) -> None:
    with pytest.raises(BadReply):
        structured(answered(GOOD[:cut]), Whole)


def test_a_pair_of_surrogates_is_a_character() -> None:
    assert strict_json('"\\ud83d\\ude00"') == "\N{GRINNING FACE}"


def completion(**message: object) -> bytes:
    return json.dumps(
        {"choices": [{"message": message, "finish_reason": "stop"}], "model": "served", "id": "x"}
    ).encode()


def test_a_refusal_is_a_reply_of_its_own() -> None:
    reply = reply_of(completion(content=None, refusal="I would rather not."))
    assert (reply.status, reply.text, reply.served_by) == ("refused", "I would rather not.", "served")


def test_a_reply_that_a_filter_ended_is_a_refusal() -> None:
    body = completion(content="half").replace(b"stop", b"content_filter")
    assert reply_of(body).status == "refused"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>Bad gateway</html>",
        b'{"choices": [{"mess',
        b"null",
        b'{"error": {}}',
        b'{"choices": [{"message": {"content": 3}}]}',
        b'{"choices": [{"message": {"content": "\xff"}}]}',
    ],
)
def test_a_body_that_is_no_completion_can_be_sent_for_again(body: bytes) -> None:
    with pytest.raises(Transient):
        reply_of(body)


def test_a_completion_without_a_choice_says_nothing() -> None:
    with pytest.raises(BadReply, match="no choice"):
        reply_of(b'{"choices": []}')


def test_the_schema_is_closed_and_requires_every_key() -> None:
    schema = response_format("whole", Whole)["json_schema"]
    assert schema["strict"] is True
    part = schema["schema"]["$defs"]["Part"]
    assert part["additionalProperties"] is False
    assert part["required"] == ["title", "number", "tag"]
    assert part["properties"]["title"] == {"type": "string"}


def test_a_form_that_strict_output_could_not_hold_to_is_refused() -> None:
    class WithDefault(BaseModel):
        model_config = ConfigDict(extra="forbid")
        number: int = Field(default=1)

    class Open(BaseModel):
        number: int

    for form in (WithDefault, Open):
        with pytest.raises(ValueError, match="strict output"):
            response_format("form", form)


def first(content: object) -> dict[str, float] | None:
    body = {"choices": [{"message": {"content": "2"}, "finish_reason": "stop", "logprobs": content}]}
    return reply_of(json.dumps(body).encode()).first


def test_the_first_position_holds_the_likeliest_tokens_and_the_one_generated() -> None:
    """-9999 stands for a token too unlikely to have a log-probability: it is none. Later positions say nothing."""
    listed = [{"token": "1", "logprob": -0.5}, {"token": "2", "logprob": -9999.0}, {"token": "1", "logprob": -3.0}]
    position = {"token": "The", "logprob": -4.0, "top_logprobs": listed}
    assert first({"content": [position, {"token": "9", "logprob": 0.0}]}) == {"1": -0.5, "The": -4.0}


@pytest.mark.parametrize(
    "content",
    [
        None,
        {},
        {"content": None},
        {"content": []},
        {"content": [{"logprob": -1.0}]},
        {"content": [{"token": "a", "logprob": "likely"}]},
        {"tokens": ["a"], "token_logprobs": [-1.0]},
        [],
    ],
)
def test_log_probabilities_of_another_form_are_none_and_cost_no_answer(content: object) -> None:
    assert first(content) is None


def test_tokens_that_were_cached_are_counted_where_the_server_says_so() -> None:
    usage = {"prompt_tokens": 9, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 4}}
    body = {"choices": [{"message": {"content": "2"}}], "usage": usage}
    reply = reply_of(json.dumps(body).encode())
    assert (reply.prompt_tokens, reply.completion_tokens, reply.cached_tokens) == (9, 1, 4)
    assert reply_of(json.dumps({**body, "usage": None}).encode()).cached_tokens is None
