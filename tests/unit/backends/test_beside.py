"""Files beside the weights: whole or refused by name. Nothing of a damaged checkpoint is replaced by a default."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from data.trials import make_model
from overread.backends import beside
from overread.backends.beside import JSON_FILES, check_beside, check_stops, read_object
from overread.backends.transformers.backend import TransformersBackend
from overread.backends.transformers.network import load_network
from overread.core.errors import BadInput


@pytest.fixture
def folder(gemma: Path, tmp_path: Path) -> Path:
    shutil.copytree(gemma, tmp_path / "weights")
    return tmp_path / "weights"


def changed(path: Path, **values: Any) -> None:
    content = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps({**content, **values}))


def test_a_sound_checkpoint_passes_and_its_key_is_that_of_its_content(folder: Path) -> None:
    check_beside(folder)
    before = TransformersBackend(make_model(folder), "m").identity()
    changed(folder / "generation_config.json", temperature=0.25, do_sample=True)
    assert TransformersBackend(make_model(folder), "m").identity() != before


@pytest.mark.parametrize("name", JSON_FILES)
@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda path: path.write_text('{"eos_token_id": [1, 5'), "damaged or cut off"),
        (lambda path: path.write_bytes(b""), "damaged or cut off"),
        (lambda path: path.write_bytes(b"\xff\xfe{}"), "damaged or cut off"),
        (lambda path: path.write_text("[1, 2]"), "expected a JSON object, found a list"),
        (lambda path: path.write_text('{"a":' * 90 + "1" + "}" * 90), "nested more than 64 deep"),
        (lambda path: path.write_text("[" * 200_000), "nested more than 64 deep|damaged or cut off"),
        (lambda path: (path.unlink(missing_ok=True), os.mkfifo(path)), "a pipe, not a file"),
        (lambda path: (path.unlink(missing_ok=True), path.symlink_to("gone")), "No such file"),
        (lambda path: os.truncate(path, 2**27), "more than .* bytes"),
    ],
)
def test_every_file_beside_the_weights_is_whole_or_named(
    tmp_path: Path, name: str, spoil: Callable[[Path], Any], why: str
) -> None:
    (tmp_path / name).write_text("{}")
    spoil(tmp_path / name)
    with pytest.raises(BadInput, match=rf"{name}.*(?:{why})"):
        check_beside(tmp_path)


def test_a_cut_off_generation_config_ends_the_job_and_not_the_sampling(folder: Path) -> None:
    """As the library does it, temperature 0.7 became 0, and other tokens ended an answer, without a word."""
    changed(folder / "generation_config.json", temperature=0.7, do_sample=True)
    assert load_network(make_model(folder, decoding={"max_tokens": 4, "temperature": None}), "m").sampling()[0] == 0.7
    whole = (folder / "generation_config.json").read_text()
    (folder / "generation_config.json").write_text(whole[: len(whole) // 2])
    with pytest.raises(BadInput, match=r"generation_config\.json: damaged or cut off"):
        load_network(make_model(folder), "m")


@pytest.mark.parametrize("stop", ["abc", -5, 10**9, 1.5, True])
def test_a_stop_token_that_is_none_is_refused(folder: Path, stop: Any) -> None:
    for value in (stop, [1, stop]):
        with pytest.raises(BadInput, match="is no token of the vocabulary"):
            check_stops("m", value if isinstance(value, list) else [value], 100)
    changed(folder / "generation_config.json", eos_token_id=[1, stop])
    with pytest.raises(BadInput, match="weights"):
        load_network(make_model(folder), "m")


@pytest.mark.parametrize(
    ("name", "values", "why"),
    [
        ("config.json", {"hidden_size": "abc"}, "hidden_size is 'abc', no size"),
        ("config.json", {"text_config": {"num_hidden_layers": -1}}, r"text_config\.num_hidden_layers is -1"),
        ("preprocessor_config.json", {"size": {"height": 200_000, "width": 200_000}}, "so many pixels"),
        ("processor_config.json", {"image_processor": {"size": {"shortest_edge": 200_000}}}, "so many pixels"),
        ("generation_config.json", {"temperature": "warm"}, "temperature is 'warm'"),
        ("generation_config.json", {"do_sample": "yes"}, "do_sample is 'yes'"),
        ("model.safetensors.index.json", {"weight_map": ["a"]}, "not an index of shards"),
    ],
)
def test_a_value_that_can_t_be_meant_is_named(tmp_path: Path, name: str, values: Any, why: str) -> None:
    (tmp_path / name).write_text(json.dumps(values))
    with pytest.raises(BadInput, match=why):
        check_beside(tmp_path)


def test_sizes_that_are_meant_pass(tmp_path: Path) -> None:
    """Qwen counts pixels where others name an edge; some models have a size per layer."""
    changed(tmp_path / "preprocessor_config.json", size={"shortest_edge": 65536, "longest_edge": 16777216})
    changed(tmp_path / "config.json", intermediate_size=[8192, 8192], num_attention_heads=None)
    check_beside(tmp_path)


def test_a_template_that_does_not_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beside, "_CHILD", beside._CHILD.replace("(10, 10 + 1)", "(1, 2)"))
    loop = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"
    grows = "{% set x = namespace(t='aaaaaaaa') %}{% for a in range(99) %}{% set x.t = x.t ~ x.t %}{% endfor %}"
    for text in (loop, grows):
        (tmp_path / "chat_template.jinja").write_text(text)
        with pytest.raises(BadInput, match=r"chat_template\.jinja: the chat template does not come to an end"):
            check_beside(tmp_path)
    (tmp_path / "chat_template.jinja").write_text("{% generation %}{{ messages[0].role }}{% endgeneration %}")
    check_beside(tmp_path)


@pytest.mark.parametrize("template", ["{{ raise_exception('no system role') }}", "{% for %}", "{{ nothing.at.all }}"])
def test_a_template_that_raises_is_one_line(folder: Path, template: str) -> None:
    from overread.backends.transformers.prompts import Prompts

    (folder / "chat_template.jinja").write_text(template)
    with pytest.raises(BadInput, match="chat template can't be used"):
        Prompts(load_network(make_model(folder), "m")).render([{"role": "user", "content": "x"}], True)


def test_read_object_of_nothing_says_so(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="can't be read"):
        read_object(tmp_path / "config.json")
