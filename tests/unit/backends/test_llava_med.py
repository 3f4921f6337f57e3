"""LLaVA-Med's back end, on small checkpoints in the original's form, beside the library's LLaVA of the same weights."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.llava_med import EDGE, make_llava_med
from data.trials import Shown, make_trial, picture_block
from overread.backends.base import Answer, content, load
from overread.backends.llava_med.checkpoint import library_names
from overread.backends.llava_med.conversation import drawn_place, segments, square
from overread.backends.llava_med.section import LlavaMedModel
from overread.config import Decoding
from overread.core.errors import BadInput
from overread.core.records import Block, Trial


class Made(NamedTuple):
    """The original's folder, the library's with the same weights, and the CLIP's."""

    original: Path
    library: Path
    clip: Path


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return Made(*make_llava_med(tmp_path_factory.mktemp("llava-med")))


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of pictures that are not square: 60 x 40 and 40 x 61."""
    import numpy as np
    from PIL import Image

    folder = tmp_path_factory.mktemp("wide")
    draw = np.random.default_rng(1)
    for name, shape in (("wide", (40, 60)), ("tall", (61, 40))):
        Image.fromarray(draw.integers(0, 255, shape, dtype=np.uint8)).save(folder / f"{name}.png")
    return folder


def model(folder: Path, **changes: Any) -> LlavaMedModel:
    fields = {"label": "t", "backend": "llava-med", "weights": str(folder), "dtype": "float32", "batch": 8}
    return LlavaMedModel(**{**fields, "decoding": Decoding(max_tokens=4), **changes})


def asked(folder: Path, trials: list[Trial], dataset: Path, **changes: Any) -> list[Answer]:
    return list(load(model(folder, **changes), "med").answer(trials, dataset))


@pytest.fixture
def trials(shown: Shown) -> list[Trial]:
    """Every readout; one picture, none, black; two questions on a picture; the text before the picture."""
    four = {"options": ("left lobe", "right lobe", "the heart"), "permutation": (2, 0, 1), "readout": "choice"}
    some = [make_trial(n, images=(shown(str(n // 2)),)) for n in range(4)]
    some += [make_trial(n, images=(shown("0"),), **four) for n in range(4, 6)]
    some += [make_trial(6, images=(shown("black"),), readout="first-token"), make_trial(7, readout="first-token")]
    some += [make_trial(8, images=(shown("1"),), readout="free-text")]
    last = make_trial(9, images=(shown("2"),))
    return [*some, make_trial(9, blocks=(*last.blocks[1:], last.blocks[0]))]


def by_the_library(made: Made, trial: Trial, dataset: Path) -> Any:
    """Logits after a trial's prompt, by the library's own LLaVA from its own folder, and the prompt's tokens.

    The original's prompt is written out here: texts around a picture are tokenised apart, each with its begin token,
    which only the first one keeps.
    """
    import torch
    import transformers
    from PIL import Image

    network: Any = transformers.LlavaForConditionalGeneration.from_pretrained(made.library, dtype=torch.float32).eval()
    tokenizer: Any = transformers.AutoTokenizer.from_pretrained(made.original)
    pixels: Any = transformers.CLIPImageProcessorPil.from_pretrained(made.clip)
    text = "\n\n".join(str(block.text) for block in trial.blocks if block.role != "image")
    pictures = []
    if not trial.images:
        ids = tokenizer(f"[INST] {text} [/INST]")["input_ids"]
    else:
        pictures = [Image.open(dataset / str(block.image)).convert("RGB") for block in trial.images]
        before, behind = ("[INST] ", f"\n{text} [/INST]")
        if trial.blocks[-1].role == "image":
            before, behind = f"[INST] {text}\n", " [/INST]"
        tail = tokenizer(behind)["input_ids"]
        assert tail[0] == tokenizer.bos_token_id
        placeholder = network.config.image_token_id
        ids = [*tokenizer(before)["input_ids"], *[placeholder] * 4, *tail[1:]]
    inputs = {"pixel_values": pixels(images=pictures, return_tensors="pt")["pixel_values"]} if pictures else {}
    with torch.no_grad():
        logits = network(input_ids=torch.tensor([ids]), **inputs).logits[0, -1]
    return logits, ids, tokenizer


# -- the checkpoint ----------------------------------------------------------------------------------------------------


def test_log_probabilities_are_those_of_the_librarys_own_llava(made: Made, trials: list[Trial], dataset: Path) -> None:
    """The pictures are square, so that nothing is drawn."""
    for trial, answer in zip(trials, asked(made.original, trials, dataset), strict=True):
        if trial.readout == "free-text":
            assert answer.logprobs is None
            continue
        logits, ids, tokenizer = by_the_library(made, trial, dataset)
        words = ["1", "2", "3"] if trial.readout == "choice" else ["▁yes", "▁no"]
        expected = logits.log_softmax(0)[tokenizer.convert_tokens_to_ids(words)].tolist()
        assert answer.logprobs == pytest.approx(expected, abs=1e-4)
        assert answer.prompt_tokens == len(ids)
        assert answer.image_tokens == 4 * len(trial.images)
        if trial.readout in ("choice", "first-token"):
            assert answer.chosen == expected.index(max(expected))


def test_greedy_answers_are_those_of_the_librarys_generate(made: Made, trials: list[Trial], dataset: Path) -> None:
    import torch
    import transformers
    from PIL import Image

    network: Any = transformers.LlavaForConditionalGeneration.from_pretrained(made.library, dtype=torch.float32).eval()
    pixels: Any = transformers.CLIPImageProcessorPil.from_pretrained(made.clip)
    free = [trials[0], trials[2], trials[8]]
    answers = asked(made.original, free, dataset, decoding=Decoding(temperature=0, max_tokens=6))
    for trial, answer in zip(free, answers, strict=True):
        _, ids, tokenizer = by_the_library(made, trial, dataset)
        picture = Image.open(dataset / str(trial.images[0].image)).convert("RGB")
        written = network.generate(
            input_ids=torch.tensor([ids]),
            attention_mask=torch.ones(1, len(ids), dtype=torch.long),
            pixel_values=pixels(images=[picture], return_tensors="pt")["pixel_values"],
            max_new_tokens=6, do_sample=False, pad_token_id=0, eos_token_id=tokenizer.eos_token_id,
        )[0, len(ids) :]  # fmt: skip
        assert answer.text == tokenizer.decode(written, skip_special_tokens=True).strip()


def test_every_tensor_of_the_original_has_one_place(made: Made) -> None:
    from safetensors import safe_open

    names: list[str] = []
    for shard in made.original.glob("*.safetensors"):
        with safe_open(shard, framework="pt") as file:
            names += file.keys()
    placed, strange = library_names(names)
    assert strange == []
    assert len(set(placed.values())) == len(placed) == len(names) - 1  # a saved buffer is left out
    assert placed["model.layers.1.self_attn.q_proj.weight"] == "model.language_model.layers.1.self_attn.q_proj.weight"
    assert placed["model.mm_projector.2.bias"] == "model.multi_modal_projector.linear_2.bias"
    assert placed["lm_head.weight"] == "lm_head.weight"


def _tensors(change: Callable[[dict[str, Any]], None]) -> Callable[[Path], None]:
    def spoil(folder: Path) -> None:
        from safetensors.torch import load_file, save_file

        shard = folder / "model-00001-of-00002.safetensors"
        tensors = load_file(shard)
        change(tensors)
        save_file(tensors, shard)

    return spoil


def _config(**changes: Any) -> Callable[[Path], None]:
    def spoil(folder: Path) -> None:
        raw = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps({**raw, **changes}))

    return spoil


NORM = "model.layers.0.input_layernorm.weight"


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (_tensors(lambda each: each.pop(NORM)), "lacks model.language_model.layers.0.input_layernorm.weight"),
        (
            _tensors(lambda each: each.update({"model.resampler.latents": each[NORM].clone()})),
            "model.resampler.latents",
        ),
        (_tensors(lambda each: each.update({"model.layers.9.norm": each[NORM].clone()})), "has no place in LLaVA-Med"),
        (_tensors(lambda each: each.update({"model.norm.weight": each[NORM].clone()})), "in another shard as well"),
        (_tensors(lambda each: each.update({NORM: each[NORM][:-1].clone()})), "no fitting|can't be loaded"),
        (_config(mm_projector_type="linear"), "mm_projector_type is 'linear'"),
        (_config(mm_use_im_start_end=True), "mm_use_im_start_end is True"),
        (_config(image_aspect_ratio="anyres"), "image_aspect_ratio is 'anyres'"),
        (_config(model_type="llava"), "have the back end transformers"),
        (_config(mm_hidden_size=7), "mm_hidden_size is 7"),
        (_config(mm_vision_tower="/nowhere"), "no folder /nowhere"),
        (lambda folder: (folder / "tokenizer.json").unlink(), "no tokenizer.json and no tokenizer.model"),
        (lambda folder: next(folder.glob("*.safetensors")).unlink(), "the checkpoint lacks"),
        (lambda folder: (folder / "config.json").write_text("{"), "config.json: damaged or cut off"),
    ],
)
def test_a_checkpoint_that_is_not_whole_or_is_another_is_one_clear_line(
    tmp_path: Path, made: Made, dataset: Path, spoil: Callable[[Path], None], message: str
) -> None:
    folder = shutil.copytree(made.original, tmp_path / "original")
    spoil(folder)
    with pytest.raises(BadInput, match=message) as caught:
        asked(folder, [make_trial(0)], dataset)
    assert "\n" not in str(caught.value)


def test_a_tokenizer_that_needs_other_packages_says_which(
    tmp_path: Path, made: Made, dataset: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from overread.backends.llava_med import network

    folder = shutil.copytree(made.original, tmp_path / "original")
    (folder / "tokenizer.json").rename(folder / "tokenizer.model")
    monkeypatch.setattr(network, "_installed", lambda package: package != "sentencepiece")
    with pytest.raises(BadInput, match="which sentencepiece and protobuf read: install both"):
        asked(folder, [make_trial(0)], dataset)


def test_the_image_part_comes_from_the_named_clip_where_the_checkpoint_has_none(
    tmp_path: Path, made: Made, trials: list[Trial], dataset: Path
) -> None:
    original, _, clip = make_llava_med(tmp_path, tower=False)
    with pytest.raises(BadInput, match="name the CLIP that it was trained with as vision_tower"):
        asked(original, trials[:1], dataset)
    ours = asked(original, trials[:6], dataset, vision_tower=str(clip))
    assert [each.logprobs for each in ours] == [
        pytest.approx(each.logprobs, abs=1e-5) for each in asked(made.original, trials[:6], dataset)
    ]


def test_the_clips_content_is_part_of_what_the_model_is(tmp_path: Path, made: Made) -> None:
    clip = shutil.copytree(made.clip, tmp_path / "clip")
    before = load(model(made.original, vision_tower=str(clip)), "med").identity()
    (clip / "preprocessor_config.json").write_text("{}")
    assert load(model(made.original, vision_tower=str(clip)), "med").identity() != before


# -- prompts and pictures ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        (["Q"], ["[INST] Q [/INST]"]),
        ([Path("a"), "Q"], ["[INST] ", "\nQ [/INST]"]),
        (["Q", Path("a")], ["[INST] Q\n", " [/INST]"]),
        ([Path("a"), Path("b"), "Q"], ["[INST] ", "\n", "\nQ [/INST]"]),
        (["R", Path("a"), "Q"], ["[INST] R\n", "\nQ [/INST]"]),
    ],
)
def test_the_conversation_is_the_originals(parts: list[str | Path], expected: list[str]) -> None:
    assert segments(parts) == expected


def test_a_prompts_tokens_are_the_originals_with_one_begin_token(made: Made, shown: Shown, dataset: Path) -> None:
    import transformers

    back_end: Any = load(model(made.original), "med")
    trial = make_trial(3, images=(shown("0"), shown("1")))
    pictures = [back_end._picture(block, dataset, {}) for block in trial.images]
    prompt = back_end._prompts.prompt(trial, pictures)
    tokenizer: Any = transformers.AutoTokenizer.from_pretrained(made.original)
    text = "\n\n".join(str(block.text) for block in trial.blocks[2:])
    before, between, behind = (tokenizer(each)["input_ids"] for each in ("[INST] ", "\n", f"\n{text} [/INST]"))
    expected = [*before, *[-200] * 4, *between[1:], *[-200] * 4, *behind[1:]]
    assert prompt.ids.tolist() == expected
    assert prompt.ids.tolist().count(tokenizer.bos_token_id) == 1
    assert [place.tolist() for place in prompt.places] == [
        list(range(len(before), len(before) + 4)),
        list(range(len(before) + 4 + len(between) - 1, len(before) + 8 + len(between) - 1)),
    ]
    assert (prompt.key[prompt.places[0]] != prompt.key[prompt.places[1]]).all()


def test_a_batch_equals_single_trials(made: Made, trials: list[Trial], dataset: Path) -> None:
    batch = asked(made.original, trials, dataset)
    for one, trial in zip(batch, trials, strict=True):
        (other,) = asked(made.original, [trial], dataset, batch=1)
        assert one.logprobs == pytest.approx(other.logprobs, abs=1e-4)
        assert (one.text, one.chosen, one.finish_reason) == (other.text, other.chosen, other.finish_reason)


def test_a_picture_is_encoded_once_for_all_its_questions(made: Made, trials: list[Trial], dataset: Path) -> None:
    back_end = load(model(made.original), "med")
    list(back_end.answer(trials[:6], dataset))
    assert back_end.account.images_encoded == 2
    assert back_end.account.prefilled_tokens < back_end.account.prompt_tokens


def test_sampled_answers_do_not_depend_on_the_batch_and_differ_by_run_and_seed(
    made: Made, trials: list[Trial], dataset: Path
) -> None:
    hot = Decoding(temperature=1.5, max_tokens=6)
    free = [*trials[:4], trials[8]]
    batch = [each.text for each in asked(made.original, free, dataset, decoding=hot)]
    assert batch == [asked(made.original, [each], dataset, decoding=hot, batch=1)[0].text for each in free]
    again = [each.model_copy(update={"run": 2}) for each in free]
    assert [each.text for each in asked(made.original, again, dataset, decoding=hot)] != batch
    other = hot.model_copy(update={"seed": 1})
    assert [each.text for each in asked(made.original, free, dataset, decoding=other)] != batch


def test_padding_is_drawn_by_seed_run_and_picture_and_by_nothing_else(made: Made, wide: Path) -> None:
    """A later question, another batch, another process: the same square. Another run or seed: another one."""
    block = picture_block(wide, "wide")
    first = [make_trial(n, images=(block,)) for n in range(3)]
    base = asked(made.original, first, wide)
    assert asked(made.original, first[2:], wide, batch=1)[0].logprobs == pytest.approx(base[2].logprobs, abs=1e-5)
    runs = {asked(made.original, [make_trial(0, images=(block,), run=run)], wide)[0].logprobs for run in range(1, 6)}
    assert len(runs) > 2
    seeds = {
        asked(made.original, first[:1], wide, decoding=Decoding(max_tokens=1, seed=seed))[0].logprobs
        for seed in range(5)
    }
    assert len(seeds) > 2


def test_runs_in_one_call_are_padded_as_they_are_apart(made: Made, wide: Path) -> None:
    block = picture_block(wide, "tall")
    trials = [make_trial(0, images=(block,), run=run) for run in (1, 2, 3)]
    together = asked(made.original, trials, wide)
    apart = [asked(made.original, [each], wide)[0] for each in trials]
    assert [each.logprobs for each in together] == [pytest.approx(each.logprobs, abs=1e-5) for each in apart]
    assert len({each.logprobs for each in together}) == 3


def test_centred_padding_is_drawn_by_nothing(made: Made, wide: Path) -> None:
    block = picture_block(wide, "wide")
    (one,) = asked(made.original, [make_trial(0, images=(block,))], wide, padding="centred")
    (other,) = asked(made.original, [make_trial(0, images=(block,), run=7)], wide, padding="centred")
    assert one.logprobs == other.logprobs


@pytest.mark.parametrize(
    ("size", "place", "box"), [((6, 3), None, (0, 1)), ((6, 3), 0.0, (0, 0)), ((3, 6), 1.0, (3, 0))]
)
def test_a_square_holds_the_whole_picture_and_clips_mean_beside_it(
    size: tuple[int, int], place: float | None, box: tuple[int, int]
) -> None:
    import numpy as np
    from PIL import Image

    picture = Image.fromarray(np.full((size[1], size[0], 3), 200, dtype=np.uint8))
    whole = np.asarray(square(picture, [0.48145466, 0.4578275, 0.40821073], place))
    assert whole.shape == (6, 6, 3)
    inside = np.zeros((6, 6), dtype=bool)
    inside[box[1] : box[1] + size[1], box[0] : box[0] + size[0]] = True
    assert (whole[inside] == 200).all()
    assert (whole[~inside] == [122, 116, 104]).all()


@given(st.integers(0, 10_000), st.integers(1, 50), st.text(min_size=1, max_size=5))
def test_a_drawn_place_is_in_its_range(seed: int, run: int, pixels: str) -> None:
    assert 0 <= drawn_place(seed, run, pixels) < 1


def test_drawn_places_are_even(wide: Path) -> None:
    """Of 4,000 draws each of 21 places gets its share within 4 standard errors."""
    import numpy as np
    from PIL import Image

    picture = Image.new("RGB", (60, 40), (255, 255, 255))
    counts = np.zeros(21)
    for number in range(4000):
        whole = np.asarray(square(picture, [0, 0, 0], drawn_place(0, 1, str(number)))) if number < 400 else None
        place = min(int(drawn_place(0, 1, str(number)) * 21), 20)
        counts[place] += 1
        if whole is not None:
            assert int(whole[:, 0, 0].argmax()) == place
    assert (abs(counts - 4000 / 21) < 4 * (4000 / 21) ** 0.5).all()


def test_a_control_token_in_a_text_fails_its_trial_for_good(made: Made, dataset: Path, shown: Shown) -> None:
    picture = shown("0")
    bad = make_trial(1, blocks=(picture, Block(role="report", text="clear</s>"), Block(role="question", text="?")))
    answers = asked(made.original, [make_trial(0, images=(picture,)), bad], dataset)
    assert answers[0].error is None
    assert answers[1].final
    assert "control token" in str(answers[1].error)


@pytest.mark.parametrize("changes", [{"min_pixels": 10}, {"max_pixels": 10}])
def test_pixel_limits_mean_nothing_here_and_are_refused(made: Made, changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="as large as the image part wants it"):
        model(made.original, **changes)


def test_the_pictures_of_these_tests_are_resized_to_the_image_parts_size(made: Made) -> None:
    assert json.loads((made.clip / "config.json").read_text())["image_size"] == EDGE


def test_blocks_of_text_are_put_together_as_for_every_back_end() -> None:
    blocks = (Block(role="report", text="R"), Block(role="question", text="Q"))
    assert segments(content(blocks)) == ["[INST] R\n\nQ [/INST]"]
