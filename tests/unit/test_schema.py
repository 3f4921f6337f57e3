"""The JSON schema for editors: it is the one that the models make, and it says yes to the project's own configs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from data.configs import small
from overread.config import json_schema, read_yaml

ROOT = Path(__file__).parents[2]


def validator() -> Any:
    schema = json.loads(json_schema())
    return jsonschema.validators.validator_for(schema)(schema)


def test_the_schema_in_the_repository_is_the_one_that_the_models_make() -> None:
    path = ROOT / "config" / "schema.json"
    assert path.read_text(encoding="utf-8") == json_schema(), (
        "config/schema.json has drifted; the docstring of overread/config/schema.py says how to write it anew"
    )


@pytest.mark.parametrize("name", ["demo", "config"])
def test_the_configs_of_the_project_fit_the_schema_as_they_are_written(name: str) -> None:
    assert [error.message for error in validator().iter_errors(read_yaml(ROOT / "config" / f"{name}.yaml"))] == []


@pytest.mark.parametrize(
    ("section", "value"),
    [
        ("settings", {"plain": {"sorce": "own"}}),
        ("settings", {"plain": {"readout": "chioce"}}),
        ("settings", {"plain": {"sweep": {"attension": ["from-0"]}}}),
        ("evaluations", [{"dataset": "mri", "models": "reader", "settings": "all"}]),
        ("evaluations", []),
        ("models", {}),
        ("sweeps", {}),
        ("datasets", {"mri": {"source": "phantm"}}),
        ("statistics", {"draws": 1}),
    ],
)
def test_the_schema_refuses_what_the_models_refuse(section: str, value: Any) -> None:
    assert list(validator().iter_errors(small())) == []
    assert list(validator().iter_errors(small(**{section: value}))) != []
