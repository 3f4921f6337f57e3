from __future__ import annotations

import pytest

from overread.backends.transport.adapting import Parameters, refused_parameter

SENT = {"temperature": 0.15, "max_tokens": 10, "reasoning_effort": "low", "response_format": {}}


@pytest.mark.parametrize(
    ("message", "param", "code", "name"),
    [
        ("Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
         "max_tokens", "unsupported_parameter", "max_tokens"),
        ("Unsupported value: 'temperature' does not support 0.15 with this model. Only the default (1) is.",
         "temperature", "unsupported_value", "temperature"),
        ("'max_tokens' is unknown; use 'temperature'", None, None, "max_tokens"),
        ("Error code: 422 - {'detail': [{'type': 'extra_forbidden', 'loc': ['body', 'reasoning_effort'], "
         "'msg': 'Extra inputs are not permitted'}]}", None, None, "reasoning_effort"),
        ("Unrecognized request argument supplied: reasoning_effort", None, None, "reasoning_effort"),
        ("'response_format' of type 'json_schema' is not supported with this model.", "response_format", None,
         "response_format"),
        ("'max_tokens' is too large: 4096. This model's maximum context length is 2048 tokens.", None, None, None),
        ("Invalid schema for response_format 'x'", "response_format.json_schema", "invalid_json_schema", None),
        ("Unsupported parameter: 'messages'", "messages", "unsupported_parameter", None),
        ("Unknown parameter: 'top_p'", "top_p", "unknown_parameter", None),
        ("something went wrong", None, None, None),
    ],
)  # fmt: skip
def test_the_parameter_that_a_refusal_is_about(
    message: str, param: str | None, code: str | None, name: str | None
) -> None:
    assert refused_parameter(message, param, code, SENT) == name


def test_max_tokens_is_renamed_first_and_left_out_then() -> None:
    parameters = Parameters({"max_tokens": 10, "temperature": 0.15})
    assert parameters.adapt("max_tokens", parameters.sent())
    assert parameters.sent() == {"max_completion_tokens": 10, "temperature": 0.15}
    assert parameters.adjusted == "max_tokens sent as max_completion_tokens"
    assert parameters.adapt("max_completion_tokens", parameters.sent())
    assert parameters.sent() == {"temperature": 0.15}
    assert parameters.adjusted == "max_tokens left out"


def test_what_another_request_has_learnt_is_taken_over_and_never_learnt_twice() -> None:
    parameters = Parameters({"temperature": 0.15})
    both_sent = parameters.sent()
    assert parameters.adapt("temperature", both_sent)
    assert parameters.adapt("temperature", both_sent)
    assert not parameters.adapt("temperature", parameters.sent())


def test_a_parameter_that_was_not_asked_for_teaches_nothing() -> None:
    parameters = Parameters({"temperature": 0.15})
    assert not parameters.adapt("top_p", parameters.sent())
    assert parameters.sent() == {"temperature": 0.15}


def test_parameters_of_one_request_are_renamed_and_left_out_like_those_of_all() -> None:
    parameters = Parameters({"temperature": 0})
    sent = parameters.sent({"max_tokens": 5, "seed": 7})
    assert parameters.adapt("max_tokens", sent)
    assert parameters.adapt("seed", sent)
    assert parameters.sent({"max_tokens": 9, "seed": 8}) == {"temperature": 0, "max_completion_tokens": 9}
    assert parameters.sent() == {"temperature": 0}
    assert parameters.adjusted == "max_tokens sent as max_completion_tokens; seed left out"
