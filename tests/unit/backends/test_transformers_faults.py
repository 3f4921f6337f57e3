"""Memory runs out, weights can't be had. What concerns one trial is its answer; the rest is one line."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from data.trials import Shown, make_model, make_trial
from overread.backends.base import Answer, load
from overread.backends.transformers.backend import TransformersBackend
from overread.backends.transformers.memory import Memory
from overread.core.errors import BadInput
from overread.core.records import Block, Trial

KINDS = ("gemma3", "qwen3.5")
"""One that is packed, and one whose states are copied."""


class Small:
    """A network on a device that has room for so many new tokens in a pass."""

    def __init__(self, network: Any, room: int, error: Callable[[], Exception]) -> None:
        self._network, self._room, self._error = network, room, error
        self.passes: list[int] = []

    def __call__(self, **inputs: Any) -> Any:
        rows, tokens = inputs["inputs_embeds"].shape[:2]
        if rows * tokens > self._room:
            raise self._error()
        self.passes.append(rows * tokens)
        return self._network(**inputs)

    def generate(self, **inputs: Any) -> Any:
        if inputs["input_ids"].numel() > self._room:
            raise self._error()
        self.passes.append(inputs["input_ids"].numel())
        return self._network.generate(**inputs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._network, name)


def on_gpu() -> Exception:
    return torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.\nMore lines of advice.")


def on_cpu() -> Exception:
    return RuntimeError("[enforce fail at alloc_cpu.cpp:124] DefaultCPUAllocator: can't allocate memory: you tried ...")


@pytest.fixture(scope="module")
def trials(shown: Shown) -> list[Trial]:
    """Six questions about two pictures, of every kind of readout; one of them far longer than the others."""
    made = [
        make_trial(n, images=(shown(str(n // 3)),), readout=("first-token", "yes-no", "choice")[n % 3])
        for n in range(6)
    ]
    long = Block(role="question", text="Is there an effusion? " * 12)
    made[4] = make_trial(4, blocks=(made[4].blocks[0], long))
    return made


def with_room(folder: Path, room: int, error: Callable[[], Exception] = on_gpu, **changes: Any) -> Any:
    back_end: Any = load(make_model(folder, batch=64, **changes), "small")
    back_end.network.network = Small(back_end.network.network, room, error)
    return back_end


def same(one: Answer, other: Answer) -> bool:
    return (one.text, one.chosen, one.prompt_tokens) == (other.text, other.chosen, other.prompt_tokens)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("error", [on_gpu, on_cpu])
@pytest.mark.parametrize("share", [True, False])
def test_where_memory_runs_out_less_is_computed_at_once(
    kind: str,
    error: Callable[[], Exception],
    share: bool,
    checkpoint: Callable[[str], Path],
    trials: list[Trial],
    dataset: Path,
) -> None:
    expected = list(load(make_model(checkpoint(kind)), kind).answer(trials, dataset))
    longest = max(each.prompt_tokens or 0 for each in expected)
    back_end = with_room(checkpoint(kind), longest, error, share_prefix=share)
    answers = list(back_end.answer(trials, dataset))
    assert all(same(one, other) for one, other in zip(answers, expected, strict=True))
    assert len(back_end.network.network.passes) > 2


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("share", [True, False])
def test_a_trial_that_does_not_fit_alone_fails_alone(
    kind: str, share: bool, checkpoint: Callable[[str], Path], trials: list[Trial], dataset: Path
) -> None:
    expected = list(load(make_model(checkpoint(kind)), kind).answer(trials, dataset))
    sizes = sorted(each.prompt_tokens or 0 for each in expected)
    assert sizes[-1] > 1.5 * sizes[-2]
    answers = list(with_room(checkpoint(kind), sizes[-2], share_prefix=share).answer(trials, dataset))
    assert [place for place, each in enumerate(answers) if each.error is not None] == [4]
    assert answers[4].error == "out of memory (CUDA out of memory. Tried to allocate 2.00 GiB.)"
    assert not answers[4].final  # another machine may have the memory
    assert all(same(answers[place], expected[place]) for place in (0, 1, 2, 3, 5))


def test_without_free_memory_trials_are_answered_one_by_one(
    monkeypatch: pytest.MonkeyPatch, gemma: Path, trials: list[Trial], dataset: Path
) -> None:
    expected = list(load(make_model(gemma), "g").answer(trials, dataset))
    monkeypatch.setattr(Memory, "free", lambda self: 0)
    back_end = with_room(gemma, 10_000)
    answers = list(back_end.answer(trials, dataset))
    assert all(same(one, other) for one, other in zip(answers, expected, strict=True))
    assert len([size for size in back_end.network.network.passes if size > 1]) == len(trials)


def test_an_error_that_is_not_about_memory_is_not_taken_for_it(gemma: Path, trials: list[Trial], dataset: Path) -> None:
    with pytest.raises(RuntimeError, match="a bug"):
        list(with_room(gemma, 1, lambda: RuntimeError("a bug")).answer(trials, dataset))


def test_the_account_counts_what_was_shared(gemma: Path, shown: Shown, dataset: Path) -> None:
    """Two questions about one picture and one about another, their tokens compared by hand."""
    trials = [
        make_trial(n, blocks=(shown(name), Block(role="question", text=text)), readout="first-token")
        for n, (name, text) in enumerate([("0", "left ?"), ("0", "right ?"), ("1", "left ?")])
    ]
    back_end: Any = load(make_model(gemma), "g")
    answers = list(back_end.answer(trials, dataset))
    ids = [back_end._ready([trial], dataset, {})[0].ids.tolist() for trial in trials]
    shared = next(place for place, (one, two) in enumerate(zip(ids[0], ids[1], strict=False)) if one != two)
    before_the_picture = ids[0].index(back_end.network.image_token)
    assert back_end.account.prompt_tokens == sum(map(len, ids)) == sum(each.prompt_tokens or 0 for each in answers)
    assert back_end.account.prefilled_tokens == sum(map(len, ids)) - shared - before_the_picture
    assert back_end.account.images_encoded == 2
    assert back_end.account.completion_tokens == 3
    assert (back_end.account.device, back_end.account.gpus) == ("CPU", 0)
    assert back_end.account.peak_bytes > 10_000_000


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the hub without a network, with revision `main` of models that a test puts there."""
    import huggingface_hub.constants as constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    return tmp_path / "hub"


def put(hub: Path, folder: Path, name: str = "group--model") -> Path:
    """A folder as a hub model in the cache."""
    commit = "0123456789abcdef0123456789abcdef01234567"
    snapshot = shutil.copytree(folder, hub / f"models--{name}" / "snapshots" / commit)
    refs = hub / f"models--{name}" / "refs"
    refs.mkdir()
    (refs / "main").write_text(commit)
    return snapshot


def asked(weights: str, **changes: Any) -> list[Answer]:
    model = make_model(Path("/nowhere"), **changes).model_copy(update={"weights": weights})
    return list(TransformersBackend(model, "m").answer([make_trial(0)], Path("/nowhere")))


def test_a_model_of_the_hub_is_loaded_from_its_cache(hub: Path, gemma: Path) -> None:
    put(hub, gemma)
    (answer,) = asked("group/model")
    assert answer.error is None


@pytest.mark.parametrize(
    ("spoil", "revision", "message"),
    [
        (lambda folder: None, "abcdef", "at revision abcdef is not in the hub's cache"),
        (lambda folder: (folder / "model.safetensors").rename(folder / "pytorch_model.bin"), None, "safetensors"),
        (lambda folder: (folder / "processor_config.json").unlink(), None, "processor"),
        (lambda folder: (folder / "model.safetensors").write_bytes(b"\x10" * 4000), None, "damaged"),
        (lambda folder: (folder / "config.json").unlink(), None, "can't be loaded"),
    ],
)
def test_a_model_of_the_hub_that_can_not_be_had_is_one_clear_line(
    hub: Path, gemma: Path, spoil: Callable[[Path], None], revision: str | None, message: str
) -> None:
    spoil(put(hub, gemma))
    with pytest.raises(BadInput, match=message) as caught:
        asked("group/model", revision=revision)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith("model 'm': group/model")
    assert len(str(caught.value)) < 400


def test_a_shard_that_is_cut_short_is_named(tmp_path: Path, gemma: Path) -> None:
    """Two shards and their index, the second one not whole."""
    from safetensors.torch import load_file, save_file

    folder = shutil.copytree(gemma, tmp_path / "shards")
    tensors = load_file(folder / "model.safetensors")
    names = sorted(tensors)
    parts = {"model-00001-of-00002.safetensors": names[::2], "model-00002-of-00002.safetensors": names[1::2]}
    for part, held in parts.items():
        save_file({name: tensors[name] for name in held}, folder / part, metadata={"format": "pt"})
    (folder / "model.safetensors").unlink()
    index = {"metadata": {}, "weight_map": {name: part for part, held in parts.items() for name in held}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    assert asked(str(folder))[0].error is None
    last = folder / "model-00002-of-00002.safetensors"
    last.write_bytes(last.read_bytes()[:-10])
    with pytest.raises(BadInput, match="model-00002-of-00002\\.safetensors: damaged"):
        asked(str(folder))
