"""The model files that come with Overread, and the page about them: all can be read, and say what the papers say."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import TypeAdapter

from overread.backends.openai.section import OpenaiModel
from overread.config import Model, WeightsModel, load_model

ROOT = Path(__file__).parents[2]
FILES = {path.stem: path for path in sorted((ROOT / "config" / "models").glob("*.yaml"))}
PAGE = (ROOT / "docs" / "models.md").read_text(encoding="utf-8")
EXAMPLES = [
    text for text in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL) if "label:" in text and "backend:" in text
]

DECODING = {
    "medgemma-1.5-4b": {"temperature": 0, "max_tokens": 512},
    "gpt-5-mini": {"temperature": None, "max_tokens": 4096},
    "lingshu-32b": {"temperature": 0, "max_tokens": 512},
    "llava-med-1.5": {"temperature": 0.2},
    "llava-med-1.5-hf": {"temperature": 0.2},
    "med3dvlm": {"temperature": 0, "max_tokens": 512},
    "qwen3-8b": {"temperature": 0},
    "medgemma-27b": {"temperature": 0},
    "qwen3.5-9b": {"temperature": 0},
    "qwen3.5-27b": {"temperature": 0},
    "llava-next-mistral-7b": {"temperature": 0},
    "gpt-4o": {"temperature": 0.15},
}
"""Table 8 of UCSF-PDGM-VQA; ModaLens reads greedy answers."""

WEIGHTS = {
    "medgemma-1.5-4b": ("google/medgemma-1.5-4b-it", "bfloat16"),
    "lingshu-32b": ("lingshu-medical-mllm/Lingshu-32B", "bfloat16"),
    "llava-med-1.5": ("microsoft/llava-med-v1.5-mistral-7b", "bfloat16"),
    "llava-med-1.5-hf": ("chaoyinshe/llava-med-v1.5-mistral-7b-hf", "bfloat16"),
    "med3dvlm": ("MagicXin/Med3DVLM-Qwen-2.5-7B", "bfloat16"),
    "medimageinsight": ("lion-ai/MedImageInsights", "float32"),
    "qwen3-8b": ("Qwen/Qwen3-8B", "bfloat16"),
    "medgemma-27b": ("google/medgemma-27b-it", "bfloat16"),
    "qwen3.5-9b": ("Qwen/Qwen3.5-9B", "bfloat16"),
    "qwen3.5-27b": ("Qwen/Qwen3.5-27B", "bfloat16"),
    "llava-next-mistral-7b": ("llava-hf/llava-v1.6-mistral-7b-hf", "bfloat16"),
}


def read(name: str) -> Any:
    return load_model(FILES[name])


@pytest.mark.parametrize("name", FILES)
def test_a_model_file_can_be_read(name: str) -> None:
    assert read(name).label


@pytest.mark.parametrize("name", DECODING)
def test_a_models_decoding_is_that_of_its_paper(name: str) -> None:
    decoding = read(name).decoding
    assert {key: getattr(decoding, key) for key in DECODING[name]} == DECODING[name]


@pytest.mark.parametrize("name", WEIGHTS)
def test_a_models_weights_and_precision_are_those_of_its_paper(name: str) -> None:
    model = read(name)
    assert isinstance(model, WeightsModel)
    assert (model.weights, model.dtype) == WEIGHTS[name]


def test_the_dated_model_of_the_paper_is_asked() -> None:
    model = read("gpt-5-mini")
    assert isinstance(model, OpenaiModel)
    assert model.model == "gpt-5-mini-2025-08-07"


def test_no_file_that_comes_with_overread_lets_code_of_others_run() -> None:
    assert not [name for name in FILES if getattr(read(name), "trust_remote_code", False)]


def test_lingshus_pictures_are_pinned_to_the_tokens_that_the_plan_counts() -> None:
    """A token for each 28 x 28 pixels."""
    model = read("lingshu-32b")
    assert model.max_pixels == 28 * 28 * model.takes.image_tokens
    assert model.attention_implementation == "sdpa"


def test_the_page_has_an_example_for_every_back_end() -> None:
    backends = {yaml.safe_load(text)["backend"] for text in EXAMPLES}
    assert backends == {"transformers", "vllm", "openai", "contrastive", "llava-med", "med3dvlm"}


@pytest.mark.parametrize("text", EXAMPLES, ids=lambda text: str(yaml.safe_load(text)["label"]))
def test_an_example_of_the_page_can_be_read(text: str) -> None:
    content = yaml.safe_load(text.replace("<commit>", "a" * 40))
    TypeAdapter[Model](Model).validate_python(content)


def test_the_page_names_every_file_of_the_papers() -> None:
    table = PAGE.partition("## The models of the two papers")[2]
    named = set(
        re.findall(r"`([a-z0-9.-]+)`", "\n".join(line.split("|")[1] for line in table.splitlines() if "|" in line))
    )
    assert named == set(DECODING) | set(WEIGHTS) | {"gpt-5.2"}
    assert named <= set(FILES)


def test_the_page_explains_every_key_of_a_model_file() -> None:
    from typing import get_args

    kinds = get_args(get_args(Model)[0])
    keys = {key for kind in kinds for key in kind.model_fields if kind.__name__ != "CalibratedModel"}
    assert sorted(key for key in keys if not re.search(rf"\b{key}\b", PAGE)) == []
