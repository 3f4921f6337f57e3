"""The transformers back end, on a random Gemma 3 made on the spot."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from data.checkpoints import make_checkpoint
from data.trials import Shown, make_model, make_trial
from overread.backends.base import Answer, content, load
from overread.config import Decoding
from overread.core.errors import BadInput
from overread.core.records import Block, Trial

Ask = Callable[..., list[Answer]]


@pytest.fixture(scope="module")
def ask(gemma: Path, dataset: Path) -> Ask:
    def asked(trials: list[Trial], **changes: Any) -> list[Answer]:
        return list(load(make_model(gemma, **changes), "tiny").answer(trials, dataset))

    return asked


@pytest.fixture(scope="module")
def trials(shown: Shown) -> list[Trial]:
    """Yes-no, choice and first-token; two pictures, one, none, black; prompts of many lengths."""
    asked = [make_trial(n, images=(shown(str(n % 4)),)) for n in range(6)]
    asked += [make_trial(n) for n in range(6, 9)]
    options = ("left lobe", "right lobe", "the heart")
    three = {"options": options, "permutation": (2, 0, 1), "readout": "choice"}
    asked += [make_trial(n, images=(shown("0"), shown(str(n % 4))), **three) for n in range(9, 13)]
    asked += [make_trial(n, images=(shown("black"),), readout="first-token") for n in range(13, 17)]
    return asked


def test_a_batch_equals_single_trials(ask: Ask, trials: list[Trial]) -> None:
    batch, single = ask(trials, batch=8), ask(trials, batch=1)
    for one, other in zip(batch, single, strict=True):
        assert one.logprobs == pytest.approx(other.logprobs, abs=1e-4)
        assert (one.text, one.chosen, one.finish_reason) == (other.text, other.chosen, other.finish_reason)
        assert (one.prompt_tokens, one.image_tokens) == (other.prompt_tokens, other.image_tokens)


def test_sampled_answers_do_not_depend_on_the_batch_and_differ_by_run(ask: Ask, trials: list[Trial]) -> None:
    decoding = Decoding(temperature=1.5, top_p=0.95, max_tokens=6)
    batch, single = ask(trials[:6], batch=8, decoding=decoding), ask(trials[:6], batch=1, decoding=decoding)
    assert [each.text for each in batch] == [each.text for each in single]
    again = [make_trial(n, images=each.images, run=2) for n, each in enumerate(trials[:6])]
    assert [each.text for each in ask(again, decoding=decoding)] != [each.text for each in batch]
    other_seed = ask(trials[:6], decoding=decoding.model_copy(update={"seed": 1}))
    assert [each.text for each in other_seed] != [each.text for each in batch]


def test_draws_have_the_probabilities_of_the_softmax(ask: Ask, gemma: Path, dataset: Path) -> None:
    """The first token of 400 requests with one prompt: the likeliest comes as often as its log-probability says."""
    back_end = load(make_model(gemma, batch=64, decoding=Decoding(temperature=0.3, max_tokens=1)), "tiny")
    base = make_trial(0)
    drawn = [
        each.text for each in back_end.answer([base.model_copy(update={"run": run}) for run in range(1, 401)], dataset)
    ]
    import torch
    import transformers

    network: Any = transformers.AutoModelForImageTextToText.from_pretrained(gemma, dtype=torch.float32)
    processor: Any = transformers.AutoProcessor.from_pretrained(gemma)
    message = [{"role": "user", "content": [{"type": "text", "text": content(base.blocks)[0]}]}]
    inputs = processor.apply_chat_template(
        message, tokenize=True, return_dict=True, add_generation_prompt=True, processor_kwargs={"return_tensors": "pt"}
    )
    with torch.no_grad():
        chances = (network(**inputs).logits[0, -1] / 0.3).softmax(0)
    best = int(chances.argmax())
    share = sum(text == processor.tokenizer.decode([best], skip_special_tokens=True).strip() for text in drawn) / 400
    chance = float(chances[best])
    assert abs(share - chance) < 4 * (chance * (1 - chance) / 400) ** 0.5


def test_log_probabilities_are_those_of_the_plain_library(ask: Ask, gemma: Path, dataset: Path, shown: Shown) -> None:
    """One trial through the processor and the network by hand, without this project's code."""
    import torch
    import transformers
    from PIL import Image

    trial = make_trial(4, images=(shown("2"),), readout="first-token")
    network: Any = transformers.AutoModelForImageTextToText.from_pretrained(gemma, dtype=torch.float32)
    processor: Any = transformers.AutoProcessor.from_pretrained(gemma, backend="pil")
    text = f"{trial.blocks[1].text}\n\n{trial.blocks[2].text}"
    prompt = f"<bos><start_of_turn>user\n<start_of_image>{text}<end_of_turn>\n<start_of_turn>model\n"
    picture = Image.open(dataset / "2.png").convert("RGB")
    inputs = processor(text=[prompt], images=[[picture]], add_special_tokens=False, return_tensors="pt")
    with torch.no_grad():
        logprobs = network(**inputs).logits[0, -1].log_softmax(0)
    tokens = processor.tokenizer.convert_tokens_to_ids(["yes", "no"])
    (answer,) = ask([trial])
    assert answer.logprobs == pytest.approx(logprobs[tokens].tolist(), abs=1e-5)
    assert answer.prompt_tokens == inputs["input_ids"].shape[1]
    assert answer.image_tokens == 4


def test_the_picture_and_the_place_of_the_picture_reach_the_answer(ask: Ask, shown: Shown) -> None:
    own, other, black, none = (
        make_trial(0, images=images) for images in ((shown("0"),), (shown("1"),), (shown("black"),), ())
    )
    last = make_trial(0, blocks=(*own.blocks[1:], own.blocks[0]))
    answers = ask([own, other, black, none, last])
    assert len({each.logprobs for each in answers}) == 5
    assert [each.image_tokens for each in answers] == [4, 4, 4, 0, 4]


def test_a_choice_is_the_likeliest_option_number(ask: Ask, trials: list[Trial]) -> None:
    for answer in ask(trials[9:13]):
        assert answer.logprobs is not None
        assert answer.chosen == answer.logprobs.index(max(answer.logprobs))
        assert answer.text == str((answer.chosen or 0) + 1)
        assert sum(2.718281828**value for value in answer.logprobs) < 1  # of the whole vocabulary


def test_first_token_and_yes_no_see_the_same_first_position(ask: Ask, shown: Shown) -> None:
    picture = (shown("0"),)
    (free,), (first,) = (
        ask([make_trial(0, images=picture)]),
        ask([make_trial(0, images=picture, readout="first-token")]),
    )
    assert free.logprobs == pytest.approx(first.logprobs, abs=1e-5)
    assert free.chosen is None
    assert first.chosen in (0, 1)


def test_options_in_another_order_have_their_own_log_probabilities(ask: Ask) -> None:
    (one,) = ask([make_trial(0, readout="first-token")])
    (other,) = ask([make_trial(0, readout="first-token", options=("no", "yes"), permutation=(1, 0), answer=1)])
    assert one.logprobs is not None
    assert other.logprobs == pytest.approx(one.logprobs[::-1], abs=1e-6)


def test_a_readout_word_of_several_tokens_is_an_error(tmp_path: Path, gemma: Path, dataset: Path) -> None:
    folder = shutil.copytree(gemma, tmp_path / "gemma")
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    tokenizer["model"]["merges"] = []
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    back_end = load(make_model(folder), "tiny")
    with pytest.raises(BadInput, match="'yes' is not one token after its prompt"):
        list(back_end.answer([make_trial(0, readout="first-token")], dataset))


def test_first_token_asks_for_yes_and_no(ask: Ask) -> None:
    with pytest.raises(BadInput, match="needs the options yes and no"):
        ask([make_trial(0, readout="first-token", options=("left", "right"))])


def test_a_picture_that_is_missing_damaged_or_another_fails_its_trial_alone(
    tmp_path: Path, gemma: Path, dataset: Path, shown: Shown
) -> None:
    folder = shutil.copytree(dataset, tmp_path / "d")
    trials = [make_trial(n, images=(shown(str(n)),)) for n in range(4)]
    whole = list(load(make_model(gemma), "tiny").answer(trials, folder))
    (folder / "0.png").unlink()
    (folder / "1.png").write_bytes((folder / "1.png").read_bytes()[:300])
    shutil.copy(folder / "3.png", folder / "2.png")
    answers = list(load(make_model(gemma), "tiny").answer(trials, folder))
    assert "no such picture" in str(answers[0].error)
    assert "damaged picture" in str(answers[1].error)
    assert "another picture" in str(answers[2].error)
    assert answers[3].error is None
    assert answers[3].logprobs == pytest.approx(whole[3].logprobs, abs=1e-5)


def _without(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


def _pickled(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


def _cut(folder: Path) -> None:
    shard = folder / "model.safetensors"
    shard.write_bytes(shard.read_bytes()[:-100])


def _lacking_a_shard(folder: Path) -> None:
    (folder / "model.safetensors.index.json").write_text('{"weight_map": {"a": "model-2.safetensors"}}')


def _lacking_a_tensor(folder: Path) -> None:
    from safetensors.torch import load_file, save_file

    tensors = load_file(folder / "model.safetensors")
    del tensors[next(name for name in sorted(tensors) if "q_proj" in name)]
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (_without("model.safetensors"), "no \\*.safetensors file"),
        (_pickled, "is a pickle"),
        (_cut, "model.safetensors: damaged"),
        (_lacking_a_shard, "model-2.safetensors: this shard is missing"),
        (_lacking_a_tensor, "the weights have no fitting .*q_proj"),
        (_without("config.json"), "no config.json"),
        (_without("processor_config.json"), "processor"),
        (_without("chat_template.jinja"), "no chat template"),
    ],
)
def test_weights_that_can_not_be_loaded_are_one_clear_line(
    tmp_path: Path, gemma: Path, spoil: Callable[[Path], None], message: str
) -> None:
    folder = shutil.copytree(gemma, tmp_path / "gemma")
    spoil(folder)
    with pytest.raises(BadInput, match=message) as caught:
        list(load(make_model(folder), "tiny").answer([make_trial(0)], tmp_path))
    assert "\n" not in str(caught.value)
    assert "tiny" in str(caught.value) or str(folder) in str(caught.value)


def test_a_missing_folder_is_said_before_anything_is_asked(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no such folder of weights"):
        load(make_model(tmp_path / "nowhere"), "tiny").identity()


def test_float16_is_refused_for_gemma_3(gemma: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="overflows in float16"):
        list(load(make_model(gemma, dtype="float16"), "tiny").answer([make_trial(0)], tmp_path))


def test_pixels_that_a_processor_does_not_take_are_refused(gemma: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="takes no max_pixels"):
        list(load(make_model(gemma, max_pixels=1000), "tiny").answer([make_trial(0)], tmp_path))


def test_a_text_only_model_answers_text_and_refuses_pictures(
    tmp_path: Path, dataset: Path, gemma: Path, shown: Shown
) -> None:
    """Qwen 3 made tiny, with Gemma's tokenizer: through AutoModelForCausalLM."""
    import torch
    import transformers

    tokenizer: Any = transformers.AutoTokenizer.from_pretrained(gemma)
    config = transformers.Qwen3Config(
        vocab_size=len(tokenizer), hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=1, head_dim=16, eos_token_id=1, pad_token_id=0, initializer_range=0.2,
    )  # fmt: skip
    torch.manual_seed(0)
    transformers.Qwen3ForCausalLM(config).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    trials = [make_trial(n, readout=readout) for n, readout in enumerate(["first-token"] * 4 + ["yes-no"] * 3)]
    batch = list(load(make_model(tmp_path), "tiny").answer(trials, dataset))
    single = list(load(make_model(tmp_path, batch=1), "tiny").answer(trials, dataset))
    for one, other in zip(batch, single, strict=True):
        assert one.logprobs == pytest.approx(other.logprobs, abs=1e-4)
        assert one.text == other.text
    with pytest.raises(BadInput, match="takes text only"):
        list(load(make_model(tmp_path), "tiny").answer([make_trial(0, images=(shown("0"),))], dataset))


def test_texts_that_follow_each_other_are_one_text_between_pictures() -> None:
    picture = Block(role="image", image="a.png", pixels="0")
    texts = [Block(role="report", text="R"), Block(role="question", text="Q"), Block(role="instruction", text="I")]
    assert content((picture, *texts)) == [Path("a.png"), "R\n\nQ\n\nI"]
    assert content((texts[0], picture, *texts[1:])) == ["R", Path("a.png"), "Q\n\nI"]


def test_weights_are_the_same_whatever_made_the_folder(tmp_path: Path) -> None:
    """The helper that these tests stand on is deterministic, so that a failure can be repeated."""
    one, other = (make_checkpoint("gemma3", tmp_path / name) for name in ("a", "b"))
    assert (one / "model.safetensors").read_bytes() == (other / "model.safetensors").read_bytes()
