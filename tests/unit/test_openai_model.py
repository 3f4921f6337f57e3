"""The model file of a server: what goes together, what does not, and what of it is part of the model's identity."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from overread.backends.openai.section import OpenaiModel
from overread.config import read_yaml

BASE: dict[str, Any] = {"label": "M", "backend": "openai", "model": "m", "takes": {"logprobs": False}}
VLLM: dict[str, Any] = {"server": "vllm", "endpoint": "http://127.0.0.1:8000/v1"}
AZURE: dict[str, Any] = {"server": "azure", "endpoint": "https://x.openai.azure.com/openai"}
PRICES = {"input": 1.0, "output": 2.0}


def model(**changes: Any) -> OpenaiModel:
    return OpenaiModel.model_validate({**BASE, **changes})


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {**VLLM, "thinking": True},
        {**AZURE, "api_version": "2024-10-21"},
        {**AZURE, "api_version": "2025-04-01-preview", "batch_api": True},
        {"server": "azure", "endpoint": "https://x.openai.azure.com/openai/v1"},
        {"prices": PRICES, "budget_dollars": 5, "batch_api": True},
        {"budget_tokens": 10_000},
        {"decoding": {"temperature": None, "reasoning_effort": "low"}},
        {"extra": {"service_tier": "flex"}},
    ],
)
def test_what_goes_together_is_taken(changes: dict[str, Any]) -> None:
    assert model(**changes).model == "m"


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        (AZURE, "Azure needs an api_version"),
        ({"api_version": "2024-10-21"}, "api_version is for Azure"),
        ({**AZURE, "api_version": "newest"}, "api_version"),
        ({"thinking": True}, "thinking is for a vllm server"),
        ({**VLLM, "batch_api": True}, "has no batch API"),
        ({**AZURE, "endpoint": f"{AZURE['endpoint']}/deployments/m", "api_version": "2024-10-21", "batch_api": True},
         "must end with /openai"),
        ({"server": "vllm"}, "needs its endpoint"),
        ({"budget_dollars": 5}, "budget_dollars needs prices"),
        ({"budget_dollars": 0, "prices": PRICES}, "budget_dollars"),
        ({"prices": {"input": 1.0}}, "output"),
        ({"takes": {"logprobs": True}, "decoding": {"reasoning_effort": "low"}}, "gives no log-probabilities"),
        ({"extra": {"max_tokens": 5}}, "extra must not hold 'max_tokens'"),
    ],
)  # fmt: skip
def test_what_can_not_be_meant_is_refused(changes: dict[str, Any], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        model(**changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"prices": PRICES},
        {"prices": PRICES, "budget_dollars": 5},
        {"budget_tokens": 5},
        {"batch_api": True},
        {"batch": 3},
        {"timeout": 5},
        {"key_variable": "OTHER"},
    ],
)
def test_what_changes_no_answer_is_dress(changes: dict[str, Any]) -> None:
    assert model(**changes).identity() == model().identity()


@pytest.mark.parametrize(
    "changes",
    [
        {"model": "n"},
        {"endpoint": "https://elsewhere.example/v1"},
        {"decoding": {"max_tokens": 9}},
        {"decoding": {"temperature": None, "reasoning_effort": "low"}},
        VLLM,
        {"image_detail": "low"},
        {"top_logprobs": 5},
        {"extra": {"service_tier": "flex"}},
    ],
)
def test_what_can_change_an_answer_is_part_of_the_identity(changes: dict[str, Any]) -> None:
    assert model(**changes).identity() != model().identity()


def test_a_file_that_says_no_more_than_before_keeps_its_identity() -> None:
    """Answers under it were kept before the newer keys were there."""
    assert set(model().identity()) == {"backend", "model", "endpoint", "decoding"}


@pytest.mark.parametrize("name", ["gpt-4o", "gpt-5-mini", "gpt-5.2"])
def test_the_models_of_the_papers_are_valid(name: str) -> None:
    path = Path(__file__).parents[2] / "config" / "models" / f"{name}.yaml"
    section = OpenaiModel.model_validate(read_yaml(path))
    assert section.reasons == (name != "gpt-4o")
