"""The report hidden from layers: exactly, in every supported architecture, by both attentions, shared or not."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch

from data.trials import make_model, make_trial, picture_block
from overread.backends.transformers import packing, plain
from overread.backends.transformers.backend import TransformersBackend
from overread.backends.transformers.hiding import Hiding, hiding, report_tokens
from overread.backends.transformers.plain import Batches
from overread.backends.transformers.section import TransformersModel
from overread.core.account import Account
from overread.core.errors import BadInput
from overread.core.records import Block, Trial

SEEING = ("gemma3", "qwen2.5-vl", "llava-next", "llava")
KINDS = (*SEEING, "qwen3")
LAYERS = 2
REPORT = "the heart is large . the lungs are clear . there is a small left effusion ."
OTHER = "there is a small left effusion . the heart is large . the lungs are clear ."
"""The same tokens in another order: another report of equal length."""


def trial_of(
    folder: Path, attention: str, *, kind: str, report: str = REPORT, order: str = "image-first", number: int = 0
) -> Trial:
    text = (
        Block(role="report", text=f"Report: {report}"),
        Block(role="question", text=f"Is there an effusion in study number {number}?"),
        Block(role="instruction", text="answer with yes or no ."),
    )
    images = (picture_block(folder, "0"),) if kind in SEEING else ()
    blocks = (*images, *text) if order == "image-first" else (*text, *images)
    return make_trial(number, blocks=blocks, attention=attention, readout="first-token")


@contextmanager
def seen_logits() -> Iterator[list[torch.Tensor]]:
    """The logits of the first position of every prompt that goes through a pack or a plain batch."""
    seen: list[torch.Tensor] = []
    own = packing.word_logprobs

    def watched(logits: torch.Tensor, words: Any, place: str) -> Any:
        seen.append(logits.detach().clone())
        return own(logits, words, place)

    packing.word_logprobs = plain.word_logprobs = watched  # type: ignore[assignment]
    try:
        yield seen
    finally:
        packing.word_logprobs = plain.word_logprobs = own  # type: ignore[assignment]


def logits_of(backend: TransformersBackend, trials: Sequence[Trial], folder: Path) -> torch.Tensor:
    """(trials, vocabulary); the trials are put one by one, so that the order is theirs."""
    rows = []
    for trial in trials:
        with seen_logits() as seen:
            [answer] = list(backend.answer([trial], folder))
        assert answer.error is None
        rows.append(torch.cat(seen))
    return torch.cat(rows)


@pytest.fixture(scope="module")
def backend_of(checkpoint: Callable[[str], Path]) -> Callable[..., TransformersBackend]:
    made: dict[tuple[Any, ...], TransformersBackend] = {}

    def backend(kind: str, **changes: Any) -> TransformersBackend:
        key = (kind, *sorted(changes.items()))
        if key not in made:
            made[key] = TransformersBackend(model_of(checkpoint(kind), **changes), kind)
        return made[key]

    return backend


def model_of(folder: Path, **changes: Any) -> TransformersModel:
    return make_model(folder, dtype="float32", **changes)


EVERY = pytest.mark.parametrize("share", [True, False], ids=["shared", "unshared"])
ATTENTIONS = pytest.mark.parametrize("implementation", ["sdpa", "eager"])
ORDERS = pytest.mark.parametrize("order", ["image-first", "text-first"])


@pytest.mark.parametrize("kind", KINDS)
@ATTENTIONS
@ORDERS
@EVERY
def test_hidden_from_layer_0_other_words_of_equal_length_change_no_logit(
    kind: str, implementation: str, order: str, share: bool, dataset: Path, backend_of: Any
) -> None:
    """Exactly none: a blocked column has weight 0.0, whatever stands in it."""
    backend = backend_of(kind, attention_implementation=implementation, share_prefix=share)
    for attention, changes in (("from-0", False), ("none", True), ("from-1", True), (f"from-{LAYERS}", True)):
        pair = [trial_of(dataset, attention, kind=kind, report=each, order=order) for each in (REPORT, OTHER)]
        prompts = [_prompt(backend, each, dataset) for each in pair]
        assert len(prompts[0].ids) == len(prompts[1].ids) and (prompts[0].ids != prompts[1].ids).any()
        first, second = logits_of(backend, pair, dataset)
        assert bool(first.isfinite().all())
        difference = float((first - second).abs().max())
        assert (difference > 1e-4) if changes else (difference == 0.0), (attention, difference)


@pytest.mark.parametrize("kind", KINDS)
@ATTENTIONS
@ORDERS
@EVERY
def test_hiding_from_beyond_the_last_layer_changes_no_logit(
    kind: str, implementation: str, order: str, share: bool, dataset: Path, backend_of: Any
) -> None:
    backend = backend_of(kind, attention_implementation=implementation, share_prefix=share)
    shown, hidden = logits_of(
        backend, [trial_of(dataset, each, kind=kind, order=order) for each in ("none", f"from-{LAYERS}")], dataset
    )
    # Where nothing is shared, what is not hidden goes through the library's own batches.
    assert float((shown - hidden).abs().max()) == 0.0 if share else torch.allclose(shown, hidden, atol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
@ORDERS
@pytest.mark.parametrize("attention", ["from-0", "from-1", "only-0", "only-1"])
def test_hiding_is_what_blocking_the_librarys_own_masks_gives(
    kind: str, order: str, attention: str, dataset: Path, backend_of: Any
) -> None:
    """By another road: the library's forward pass of one prompt, a hook on each layer that blocks columns of its mask.

    The library makes Gemma 3's sliding window and the pictures' blocks; the prompt is longer than the window.
    """
    backend = backend_of(kind, attention_implementation="eager", share_prefix=True)
    trial = trial_of(dataset, attention, kind=kind, order=order)
    prompt = _prompt(backend, trial, dataset)
    window = getattr(backend.network.text_config, "sliding_window", None)
    assert kind != "gemma3" or len(prompt.ids) > window
    [ours] = logits_of(backend, [trial], dataset)
    reference = _reference(backend, prompt, hiding(attention))
    assert torch.allclose(ours, reference, atol=1e-4), float((ours - reference).abs().max())
    unhidden = _reference(backend, prompt, None)
    assert not torch.allclose(reference, unhidden, atol=1e-4), "the hooks blocked nothing"


def _reference(backend: TransformersBackend, prompt: Any, hidden: Hiding | None) -> torch.Tensor:
    network = backend.network
    report = torch.from_numpy(report_tokens(prompt))
    rows = ~report & (torch.arange(len(report)) > int(report.nonzero().max()))

    def hook(layer: int) -> Any:
        def block(module: Any, args: Any, kwargs: dict[str, Any]) -> Any:
            mask = kwargs["attention_mask"].clone()
            mask[:, :, rows[:, None] & report[None]] = torch.finfo(mask.dtype).min
            return args, {**kwargs, "attention_mask": mask}

        return block

    layers = _decoder_layers(network.network)
    assert len(layers) == LAYERS
    handles = [
        layer.register_forward_pre_hook(hook(place), with_kwargs=True)
        for place, layer in enumerate(layers)
        if hidden is not None and hidden.at(place)
    ]
    try:
        with torch.inference_mode():
            inputs = Batches(network, Account())._inputs([prompt])
            made: torch.Tensor = network.network(**inputs).logits[0, -1]
    finally:
        for handle in handles:
            handle.remove()
    return made


def _decoder_layers(network: Any) -> Any:
    inner = network.model
    return getattr(inner, "language_model", inner).layers


def _prompt(backend: TransformersBackend, trial: Trial, folder: Path) -> Any:
    pictures = [backend._prompts.picture(*_image(folder, trial))] if trial.images else []
    return backend._prompts.prompt(trial, pictures)


def _image(folder: Path, trial: Trial) -> tuple[Any, str]:
    from overread.backends.transformers.pictures import read_picture

    [block] = trial.images
    return read_picture(folder / str(block.image), str(block.pixels)), str(block.pixels)


@pytest.mark.parametrize("kind", KINDS)
def test_only_one_layer_is_less_than_from_it_on(kind: str, dataset: Path, backend_of: Any) -> None:
    backend = backend_of(kind, attention_implementation="sdpa", share_prefix=True)
    names = ("none", "only-0", "from-0", "only-1", "from-1")
    logits = dict(
        zip(names, logits_of(backend, [trial_of(dataset, each, kind=kind) for each in names], dataset), strict=True)
    )
    assert not torch.allclose(logits["only-0"], logits["from-0"], atol=1e-5)
    assert float((logits["only-1"] - logits["from-1"]).abs().max()) == 0.0  # the last layer is all that is left
    assert not torch.allclose(logits["none"], logits["only-1"], atol=1e-5)


@pytest.mark.parametrize("kind", ["gemma3", "qwen2.5-vl"])
def test_trials_with_different_hiding_share_nothing_and_keep_their_answers(
    kind: str, dataset: Path, backend_of: Any
) -> None:
    """All in one call, among them two reports and trials without one: each as if it were alone."""
    backend = backend_of(kind, attention_implementation="sdpa", share_prefix=True)
    trials = [
        trial_of(dataset, attention, kind=kind, report=report, number=number)
        for number in range(3)
        for attention in ("none", "from-0", "from-1", "only-1")
        for report in (REPORT, OTHER)
    ]
    together = list(backend.answer(trials, dataset))
    alone = [next(iter(backend.answer([trial], dataset))) for trial in trials]
    for one, other in zip(together, alone, strict=True):
        assert one.logprobs == pytest.approx(other.logprobs, abs=1e-4) and one.chosen == other.chosen


def test_answers_of_several_tokens_do_not_see_the_report_either(dataset: Path, backend_of: Any) -> None:
    """Hidden from layer 0, the whole written answer is the same for any report of equal length; in view it is not."""
    texts: dict[str, list[list[str]]] = {"from-0": [], "none": []}
    lengths: list[int] = []
    for kind in KINDS:
        backend = backend_of(kind, attention_implementation="sdpa", share_prefix=True)
        for attention, found in texts.items():
            asked = [trial_of(dataset, attention, kind=kind, report=each) for each in (REPORT, OTHER)]
            asked = [Trial(**{**each.model_dump(), "readout": "yes-no", "trial": ""}) for each in asked]
            answers = list(backend.answer(asked, dataset))
            lengths += [int(answer.completion_tokens or 0) for answer in answers]
            found.append([answer.text for answer in answers])
    assert max(lengths) > 1
    assert all(first == second for first, second in texts["from-0"])
    assert any(first != second for first, second in texts["none"])


def test_a_token_across_the_seam_belongs_to_the_report(dataset: Path, backend_of: Any) -> None:
    backend = backend_of("qwen3", attention_implementation="sdpa", share_prefix=True)
    trial = trial_of(dataset, "from-0", kind="qwen3")
    prompt = backend._prompts.prompt(trial, [])
    [(begin, end)] = [(first, last) for role, first, last in prompt.spans if role == "report"]
    inside = report_tokens(prompt)
    for place, (first, last) in enumerate(prompt.offsets):
        assert inside[place] == (first < end and last > begin)
    assert prompt.text[begin:end] == trial.blocks[0].text
    covered = prompt.offsets[inside]
    assert covered[:, 0].min() <= begin and covered[:, 1].max() >= end


@pytest.mark.parametrize(
    ("attention", "layer", "hides"),
    [("from-0", 0, True), ("from-1", 0, False), ("from-1", 5, True), ("only-3", 3, True), ("only-3", 4, False)],
)
def test_what_an_attention_says(attention: str, layer: int, hides: bool) -> None:
    found = hiding(attention)
    assert found is not None and found.at(layer) is hides


def test_an_attention_that_is_none_of_them_is_refused() -> None:
    assert hiding("none") is None
    with pytest.raises(BadInput, match="neither none nor from-L nor only-L"):
        hiding("from-x")


def test_linear_attention_is_refused_with_the_reason(dataset: Path, backend_of: Any) -> None:
    backend = backend_of("qwen3.5")
    with pytest.raises(BadInput, match=r"can't be hidden in qwen3_5: \d+ of its \d+ layers are linear attention"):
        list(backend.answer([trial_of(dataset, "from-0", kind="gemma3")], dataset))


@pytest.mark.parametrize(("attention", "most"), [("from-3", "from-2"), ("only-2", "only-1")])
def test_a_layer_beyond_the_last_is_refused(attention: str, most: str, dataset: Path, backend_of: Any) -> None:
    backend = backend_of("gemma3", attention_implementation="sdpa", share_prefix=True)
    with pytest.raises(BadInput, match=rf"{attention} is beyond the last of the model's 2 layers; the most is {most}"):
        list(backend.answer([trial_of(dataset, attention, kind="gemma3")], dataset))
