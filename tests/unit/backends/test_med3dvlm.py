"""Med3DVLM's back end, on a small checkpoint whose folder holds code of its own, as the real repository does."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from data.med3dvlm import MODULE, make_med3dvlm
from data.trials import Shown, make_trial
from overread.backends.base import Answer, load
from overread.backends.med3dvlm.prompts import question_text
from overread.backends.med3dvlm.section import Med3dvlmModel
from overread.config import Decoding
from overread.core.errors import BadInput
from overread.core.records import Block, Trial, read_responses, write_trials
from overread.responses.answering import answer_trials

OPTIONS = ("left lobe", "right lobe", "the heart", "none of these")
FOUR: dict[str, Any] = {"options": OPTIONS, "permutation": (0, 1, 2, 3), "readout": "choice"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_med3dvlm(tmp_path_factory.mktemp("med3dvlm") / "med-vlm")


@pytest.fixture(scope="module")
def volumes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Block]:
    """Blocks of two small volumes and a black one, by name; their files lie in the folder that `dataset_of` gives."""
    import numpy as np

    from overread.images.volume_file import VolumePicture, write_volume

    dataset = tmp_path_factory.mktemp("volumes")
    draw = np.random.default_rng(0)
    blocks = {}
    for name in ("one", "other", "black"):
        voxels = np.zeros((12, 14, 10), dtype="<i2")
        if name != "black":
            voxels[2:10, 3:12, 1:9] = draw.integers(1, 900, (8, 9, 8))
        picture = VolumePicture(stored=voxels, affine=np.eye(4))
        write_volume(picture, dataset / f"{name}.nii.gz")
        blocks[name] = Block(role="image", image=f"{name}.nii.gz", pixels=picture.pixels)
    blocks["folder"] = Block(role="image", image=str(dataset), pixels="")
    return blocks


def dataset_of(volumes: dict[str, Block]) -> Path:
    return Path(str(volumes["folder"].image))


def choosing(number: int, volume: Block, **changes: Any) -> Trial:
    """A trial with four options, as the shared templates write it."""
    blocks = (
        volume,
        Block(role="question", text=f"Question: Where is lesion {number}?"),
        Block(role="options", text="\n".join(["Options:", *(f"{n}) {each}" for n, each in enumerate(OPTIONS, 1))])),
        Block(role="instruction", text="Reply with the number of the correct option, from 1 to 4, and nothing else."),
    )
    return make_trial(number, **{"images": (volume,), "blocks": blocks, **FOUR, **changes})


def model(folder: Path, **changes: Any) -> Med3dvlmModel:
    fields = {"label": "t", "backend": "med3dvlm", "weights": str(folder), "dtype": "float32"}
    return Med3dvlmModel(
        **{**fields, "trust_remote_code": True, "decoding": Decoding(temperature=0, max_tokens=5), **changes}
    )


def asked(folder: Path, trials: list[Trial], dataset: Path, **changes: Any) -> list[Answer]:
    return list(load(model(folder, **changes), "cube").answer(trials, dataset))


def by_its_own_code(folder: Path, text: str, volume: Path, patches: int = 257) -> tuple[Any, Any, Any]:
    """The repository's own network, its tokens of a prompt, and its log-probabilities after it.

    With 257 patches the first stays where a begin token stood, the volume takes the others, and the question is whole.
    """
    import torch
    import transformers

    from overread.images.model_arrays import med3dvlm_array

    network: Any = transformers.AutoModelForCausalLM.from_pretrained(
        folder, trust_remote_code=True, dtype=torch.float32
    ).eval()
    tokenizer: Any = transformers.AutoTokenizer.from_pretrained(folder, trust_remote_code=True)
    ids = tokenizer("<im_patch>" * patches + text, return_tensors="pt")["input_ids"]
    images = torch.from_numpy(med3dvlm_array(volume))[None]
    with torch.no_grad():
        vectors = network.prepare_inputs_for_multimodal(ids, None, None, None, None, images)[4]
        logprobs = network(inputs_embeds=vectors).logits[0, -1].log_softmax(0)
        written = network.generate(images=images, inputs=ids, max_new_tokens=5, do_sample=False)
    return ids[0].tolist(), logprobs, (tokenizer, tokenizer.decode(written[0], skip_special_tokens=True).strip())


def test_a_choice_is_the_repositorys_own_likeliest_letter(folder: Path, volumes: dict[str, Block]) -> None:
    dataset = dataset_of(volumes)
    trials = [choosing(n, volumes[name]) for n, name in enumerate(("one", "other", "black"))]
    for trial, answer in zip(trials, asked(folder, trials, dataset), strict=True):
        number = trial.question[1:]
        text = f" Where is lesion {number}? Choices: A. left lobe B. right lobe C. the heart D. none of these"
        ids, logprobs, (tokenizer, _) = by_its_own_code(folder, text, dataset / str(trial.images[0].image))
        expected = logprobs[tokenizer.convert_tokens_to_ids([" A", " B", " C", " D"])].tolist()
        assert answer.logprobs == pytest.approx(expected, abs=1e-4)
        assert answer.chosen == expected.index(max(expected))
        assert answer.text == "ABCD"[answer.chosen]
        assert (answer.prompt_tokens, answer.image_tokens) == (len(ids), 256)


def test_written_answers_are_those_of_the_repositorys_own_generate(folder: Path, volumes: dict[str, Block]) -> None:
    dataset = dataset_of(volumes)
    trial = make_trial(3, images=(volumes["one"],))
    (answer,) = asked(folder, [trial], dataset)
    text = f" {trial.blocks[1].text} {trial.blocks[2].text}"
    _, logprobs, (tokenizer, written) = by_its_own_code(folder, text, dataset / "one.nii.gz")
    assert answer.text == written
    assert answer.logprobs == pytest.approx(
        logprobs[tokenizer.convert_tokens_to_ids([" yes", " no"])].tolist(), abs=1e-4
    )
    assert answer.chosen is None


def test_first_token_reads_yes_and_no_at_the_first_position(folder: Path, volumes: dict[str, Block]) -> None:
    dataset = dataset_of(volumes)
    blocks = (volumes["other"], Block(role="question", text="Question: Is there an effusion?"))
    trial = make_trial(0, images=blocks[:1], blocks=blocks, readout="first-token", options=("no", "yes"))
    (answer,) = asked(folder, [trial], dataset)
    _, logprobs, (tokenizer, _) = by_its_own_code(folder, " Is there an effusion?", dataset / "other.nii.gz")
    expected = logprobs[tokenizer.convert_tokens_to_ids([" no", " yes"])].tolist()
    assert answer.logprobs == pytest.approx(expected, abs=1e-4)
    assert answer.chosen == expected.index(max(expected))


# -- the prompt --------------------------------------------------------------------------------------------------------


def prompt_of(folder: Path, trial: Trial, volumes: dict[str, Block]) -> Any:
    back_end: Any = load(model(folder), "cube")
    return back_end._prompts.prompt(trial, [back_end._picture(trial.images[0], dataset_of(volumes), {})])


def test_the_volume_stands_on_patches_alone_and_the_question_is_whole(folder: Path, volumes: dict[str, Block]) -> None:
    """The form's 256 patches take the volume; one more stands where the begin token of another model stood."""
    import transformers

    tokenizer: Any = transformers.AutoTokenizer.from_pretrained(folder)
    prompt = prompt_of(folder, choosing(0, volumes["one"]), volumes)
    text = " Where is lesion 0? Choices: A. left lobe B. right lobe C. the heart D. none of these"
    patch = tokenizer.convert_tokens_to_ids("<im_patch>")
    behind = tokenizer(text)["input_ids"]
    assert prompt.ids.tolist() == [patch, *[-200] * 256, *behind]
    assert prompt.text == "<im_patch>" * 257 + text
    assert tokenizer.decode(behind) == text
    # In the form as it is written, the volume's last vector takes the place of the question's first token.
    form = tokenizer("<im_patch>" * 256 + text)["input_ids"]
    assert form[256] == behind[0]


@pytest.mark.parametrize(("first", "begin_token"), [(0, False), (1, True)])
def test_the_row_of_the_volume_is_found_whatever_the_code_and_the_tokenizer(
    tmp_path: Path, volumes: dict[str, Block], first: int, begin_token: bool
) -> None:
    """Code that puts it at row 0, and a tokenizer with a begin token: 256 patches then, and the question is whole."""
    import transformers

    folder = make_med3dvlm(tmp_path / f"row-{first}", first=first, begin_token=begin_token)
    tokenizer: Any = transformers.AutoTokenizer.from_pretrained(folder)
    prompt = prompt_of(folder, choosing(0, volumes["one"]), volumes)
    behind = tokenizer(question_text(choosing(0, volumes["one"])), add_special_tokens=False)["input_ids"]
    begin = tokenizer("")["input_ids"]
    assert len(begin) == int(begin_token)
    assert prompt.ids.tolist() == [*begin, *[-200] * 256, *behind]
    assert prompt.text.count("<im_patch>") == 256


def test_a_volume_over_other_tokens_than_patches_is_refused(tmp_path: Path, volumes: dict[str, Block]) -> None:
    folder = make_med3dvlm(tmp_path / "over", first=0, begin_token=True)
    with pytest.raises(BadInput, match="it would stand on other tokens than <im_patch>"):
        asked(folder, [choosing(0, volumes["one"])], dataset_of(volumes))


@pytest.mark.parametrize(
    ("blocks", "expected"),
    [
        ([("question", "Question: Where?")], " Where?"),
        ([("question", "Where, in question: the left?")], " Where, in question: the left?"),
        ([("report", "Report:\nClear."), ("question", "Question: Where?")], " Report:\nClear. Where?"),
        ([("question", "Question: Is it?"), ("instruction", "Yes or No.")], " Is it? Yes or No."),
        (
            [
                ("instruction", "The report may err."),
                ("question", "Q"),
                ("options", "1) x"),
                ("instruction", "A number."),
            ],
            " The report may err. Q Choices: A. left lobe B. right lobe C. the heart D. none of these",
        ),
    ],
)
def test_the_form_is_the_texts_after_a_space_each_and_letters_for_options(
    volumes: dict[str, Block], blocks: list[tuple[Any, str]], expected: str
) -> None:
    texts = [Block(role=role, text=text) for role, text in blocks]
    assert question_text(choosing(0, volumes["one"], blocks=(volumes["one"], *texts))) == expected


def test_options_in_another_order_have_their_own_letters(folder: Path, volumes: dict[str, Block]) -> None:
    turned = choosing(0, volumes["one"], options=OPTIONS[::-1], permutation=(3, 2, 1, 0))
    assert question_text(turned).endswith("A. none of these B. the heart C. right lobe D. left lobe")


def test_a_prompt_of_more_than_512_tokens_fails_for_good_and_is_never_cut(
    tmp_path: Path, folder: Path, volumes: dict[str, Block]
) -> None:
    """The longest that fits is answered, one token more fails, and the trials beside it are answered."""
    import transformers

    tokenizer: Any = transformers.AutoTokenizer.from_pretrained(folder)
    dataset = dataset_of(volumes)

    def with_tokens(number: int, count: int) -> Trial:
        text = next(
            text
            for extra in range(600)
            if len(tokenizer(" " + (text := "a" + "." * extra))["input_ids"]) == count - 257
        )
        blocks = (volumes["one"], Block(role="question", text=text))
        return make_trial(number, images=blocks[:1], blocks=blocks, readout="yes-no")

    trials = [choosing(0, volumes["one"]), with_tokens(1, 512), with_tokens(2, 513)]
    path = tmp_path / "d" / "trials" / "s" / "run-1.parquet"
    write_trials(trials, path)
    shutil.copy(dataset / "one.nii.gz", tmp_path / "d" / "one.nii.gz")
    answer_trials(path, model(folder), "cube", tmp_path / "w.jsonl", tmp_path / "out")
    found = {each.question: each for each in read_responses(tmp_path / "out")}
    assert found["q1"].prompt_tokens == 512
    assert found["q1"].error is None
    assert found["q2"].status == "failed"
    assert "has 513 tokens" in str(found["q2"].error)
    assert found["q0"].status == "answered"


def test_a_batch_equals_single_trials_and_a_volume_is_seen_once(folder: Path, volumes: dict[str, Block]) -> None:
    trials = [choosing(n, volumes["one" if n < 2 else "other"]) for n in range(3)]
    trials += [make_trial(3, images=(volumes["one"],))]
    back_end = load(model(folder, batch=8), "cube")
    batch = list(back_end.answer(trials, dataset_of(volumes)))
    assert back_end.account.images_encoded == 2
    for one, trial in zip(batch, trials, strict=True):
        (other,) = back_end.answer([trial], dataset_of(volumes))
        assert one.logprobs == pytest.approx(other.logprobs, abs=1e-4)
        assert (one.text, one.chosen) == (other.text, other.chosen)


def test_the_volume_reaches_the_answer(folder: Path, volumes: dict[str, Block]) -> None:
    answers = asked(folder, [choosing(0, volumes[name]) for name in ("one", "other", "black")], dataset_of(volumes))
    assert len({each.logprobs for each in answers}) == 3


def test_a_volume_that_is_missing_or_another_fails_its_own_trials_alone(
    tmp_path: Path, folder: Path, volumes: dict[str, Block]
) -> None:
    dataset = shutil.copytree(dataset_of(volumes), tmp_path / "d")
    shutil.copy(dataset / "other.nii.gz", dataset / "one.nii.gz")
    gone = Block(role="image", image="gone.nii.gz", pixels="0")
    answers = asked(folder, [choosing(0, volumes["one"]), choosing(1, gone), choosing(2, volumes["other"])], dataset)
    assert "has changed since the trials were built" in str(answers[0].error)
    assert "no such file" in str(answers[1].error)
    assert not answers[0].final
    assert answers[2].error is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"volumes": ()}, "takes one volume; this trial shows none"),
        ({"volumes": ("one", "other")}, "takes one volume; this trial shows one.nii.gz, other.nii.gz"),
        ({"last": True}, "order text-first can't be shown"),
        ({"readout": "similarity"}, "no readout 'similarity'"),
        ({"attention": "from-0"}, "can't hide the report"),
    ],
)
def test_a_setting_that_does_not_go_with_it_is_refused(
    folder: Path, volumes: dict[str, Block], changes: dict[str, Any], message: str
) -> None:
    shown = [volumes[name] for name in changes.pop("volumes", ("one",))]
    texts = list(choosing(0, volumes["one"]).blocks[1:])
    blocks = [*texts, *shown] if changes.pop("last", False) else [*shown, *texts]
    with pytest.raises(BadInput, match=message):
        asked(folder, [choosing(0, volumes["one"], blocks=tuple(blocks), **changes)], dataset_of(volumes))


def test_a_flat_picture_is_no_volume(folder: Path, dataset: Path, shown: Shown) -> None:
    with pytest.raises(BadInput, match=r"takes one volume; this trial shows 0\.png"):
        asked(folder, [choosing(0, shown("0"))], dataset)


# -- the repository's code ---------------------------------------------------------------------------------------------


def test_its_code_runs_only_when_it_is_allowed(tmp_path: Path, folder: Path, volumes: dict[str, Block]) -> None:
    copy = shutil.copytree(folder, tmp_path / "copy")
    code = copy / f"{MODULE}.py"
    code.write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()\n{code.read_text()}")
    with pytest.raises(BadInput, match="set trust_remote_code: true"):
        asked(copy, [choosing(0, volumes["one"])], dataset_of(volumes), trust_remote_code=False)
    assert not (tmp_path / "ran").exists()
    asked(copy, [choosing(0, volumes["one"])], dataset_of(volumes))
    assert (tmp_path / "ran").exists()


def _code(old: str, new: str) -> Callable[[Path], None]:
    def spoil(folder: Path) -> None:
        code = (folder / f"{MODULE}.py").read_text()
        assert old in code
        (folder / f"{MODULE}.py").write_text(code.replace(old, new))

    return spoil


def _elsewhere(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    config["auto_map"]["AutoConfig"] = f"someone/other--{config['auto_map']['AutoConfig']}"
    (folder / "config.json").write_text(json.dumps(config))


def _without_patch(folder: Path) -> None:
    text = (folder / "tokenizer.json").read_text()
    (folder / "tokenizer.json").write_text(text.replace("<im_patch>", "<another>"))


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (_elsewhere, "takes code from another repository"),
        (_code("def encode_images", "def see"), "has no encode_images"),
        (_code("def prepare_inputs_for_multimodal", "def prepare"), "has no prepare_inputs_for_multimodal"),
        (
            _code("vectors[:, FIRST".replace("FIRST", "1") + " + features", "vectors[:, 2 + features"),
            "gives no vectors",
        ),
        (_code("features = self.encode", "features = 2 * self.encode"), "does not put the volume's 256 vectors"),
        (
            _code("def get_model(self):", "def get_model(self, kind):"),
            "fails with this version of the library: TypeError",
        ),
        (_without_patch, "<im_patch> is not one token"),
        (lambda folder: (folder / f"{MODULE}.py").write_text("import no_such_package"), "no_such_package"),
        (lambda folder: (folder / f"{MODULE}.py").unlink(), "can't be loaded"),
        (lambda folder: (folder / "model.safetensors").rename(folder / "pytorch_model.bin"), "is a pickle"),
    ],
)
def test_another_version_of_its_code_or_weights_is_one_clear_line(
    tmp_path: Path, folder: Path, volumes: dict[str, Block], spoil: Callable[[Path], None], message: str
) -> None:
    copy = shutil.copytree(folder, tmp_path / "copy")
    spoil(copy)
    with pytest.raises(BadInput, match=message) as caught:
        asked(copy, [choosing(0, volumes["one"])], dataset_of(volumes))
    assert "\n" not in str(caught.value)


def test_letters_of_several_tokens_are_an_error(tmp_path: Path, folder: Path, volumes: dict[str, Block]) -> None:
    copy = shutil.copytree(folder, tmp_path / "copy")
    tokenizer = json.loads((copy / "tokenizer.json").read_text())
    tokenizer["added_tokens"] = [each for each in tokenizer["added_tokens"] if each["content"] != " D"]
    (copy / "tokenizer.json").write_text(json.dumps(tokenizer))
    with pytest.raises(BadInput, match="letters are not one token each"):
        asked(copy, [choosing(0, volumes["one"])], dataset_of(volumes))
