"""The contrastive back end: CLIP and SigLIP made on the spot, and a stand-in for MedImageInsight's repository."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from data.checkpoints import make_checkpoint
from data.medimageinsight import write_repository
from data.trials import Shown, make_trial
from overread.backends.base import Answer, load
from overread.backends.contrastive.section import ContrastiveModel, MedImageInsightCode
from overread.config import Model, Takes
from overread.core.errors import BadInput
from overread.core.records import Block, Trial, read_responses, write_trials
from overread.responses.answering import answer_trials

OPTIONS = ("left lobe", "right lobe", "the heart", "none of these")


def comparing(number: int, picture: Block, options: tuple[str, ...] = OPTIONS, **changes: Any) -> Trial:
    """A trial of question `q<number>` with a text for each option."""
    texts = [Block(role="options", text=f"Where is lesion {number}? {option}") for option in options]
    fields: dict[str, Any] = {"options": options, "permutation": tuple(range(len(options))), "readout": "similarity"}
    return make_trial(number, **{"blocks": (picture, *texts), **fields, **changes})


def contrastive(folder: Path, **changes: Any) -> ContrastiveModel:
    fields = {"label": "tiny", "backend": "contrastive", "weights": str(folder), "dtype": "float32", "batch": 8}
    return ContrastiveModel(**{**fields, **changes})


@pytest.fixture(scope="module", params=["clip", "siglip"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_checkpoint(request.param, tmp_path_factory.mktemp(request.param))


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_checkpoint("clip", tmp_path_factory.mktemp("clip-alone"))


@pytest.fixture
def trials(shown: Shown) -> list[Trial]:
    return [comparing(n, shown(str(n % 4))) for n in range(8)]


def asked(folder: Path, trials: list[Trial], dataset: Path, **changes: Any) -> list[Answer]:
    return list(load(contrastive(folder, **changes), "tiny").answer(trials, dataset))


def test_probabilities_are_the_softmax_of_the_librarys_own_logits(
    folder: Path, trials: list[Trial], dataset: Path
) -> None:
    """The whole model's forward pass, a trial at a time, through AutoModel and AutoProcessor by hand."""
    import torch
    import transformers
    from PIL import Image

    network: Any = transformers.AutoModel.from_pretrained(folder).eval()
    processor: Any = transformers.AutoProcessor.from_pretrained(folder, backend="pil")
    padding: Any = "max_length" if "siglip" in network.config.model_type else True
    for trial, answer in zip(trials, asked(folder, trials, dataset), strict=True):
        picture = Image.open(dataset / str(trial.images[0].image)).convert("RGB")
        texts = [block.text for block in trial.blocks[1:]]
        with torch.no_grad():
            logits = network(
                **processor(text=texts, images=picture, padding=padding, return_tensors="pt")
            ).logits_per_image
        assert answer.logprobs == pytest.approx(logits[0].log_softmax(0).tolist(), abs=1e-4)
        assert answer.chosen == int(logits[0].argmax())
        assert answer.text == trial.options[answer.chosen]
        assert sum(math.exp(value) for value in answer.logprobs or ()) == pytest.approx(1)


def test_a_batch_equals_single_trials(folder: Path, trials: list[Trial], dataset: Path) -> None:
    batch, single = asked(folder, trials, dataset), [asked(folder, [each], dataset)[0] for each in trials]
    narrow = asked(folder, trials, dataset, batch=1)
    for one, other, third in zip(batch, single, narrow, strict=True):
        assert one.logprobs == pytest.approx(other.logprobs, abs=1e-4)
        assert one.logprobs == pytest.approx(third.logprobs, abs=1e-4)
        assert one.chosen == other.chosen == third.chosen
        assert one.prompt_tokens == other.prompt_tokens == third.prompt_tokens


def test_the_picture_decides(clip: Path, dataset: Path, shown: Shown) -> None:
    """The same four texts beside other pictures give other probabilities; the same picture gives the same ones."""
    answers = asked(clip, [comparing(0, shown(name)) for name in ("0", "1", "black", "0")], dataset)
    assert len({each.logprobs for each in answers[:3]}) == 3
    assert answers[0].logprobs == answers[3].logprobs


def test_options_in_another_order_keep_their_probabilities(clip: Path, dataset: Path, shown: Shown) -> None:
    order = (2, 0, 3, 1)
    turned = comparing(0, shown("0"), tuple(OPTIONS[each] for each in order), permutation=order)
    one, other = asked(clip, [comparing(0, shown("0")), turned], dataset)
    assert one.logprobs is not None
    assert other.logprobs == pytest.approx([one.logprobs[each] for each in order], abs=1e-6)
    assert order[other.chosen or 0] == one.chosen


def test_yes_and_no_are_compared_like_any_options(clip: Path, dataset: Path, shown: Shown) -> None:
    (answer,) = asked(clip, [comparing(0, shown("1"), ("yes", "no"))], dataset)
    assert answer.chosen in (0, 1)
    assert len(answer.logprobs or ()) == 2


def test_each_picture_and_each_text_is_embedded_once(clip: Path, dataset: Path, shown: Shown) -> None:
    """Six questions about two pictures, two of them with the same texts: 2 pictures and 5 x 4 texts."""
    trials = [comparing(min(n, 4), shown(str(n // 3)), question=f"q{n}") for n in range(6)]
    back_end = load(contrastive(clip), "tiny")
    answers = list(back_end.answer(trials, dataset))
    list(back_end.answer(trials, dataset))
    assert back_end.account.images_encoded == 2
    assert back_end.account.prompt_tokens == 2 * sum(each.prompt_tokens or 0 for each in answers)
    assert back_end.account.prefilled_tokens == sum(each.prompt_tokens or 0 for each in answers[:5])
    assert back_end.account.device
    assert back_end.account.peak_bytes > 10_000_000


def test_answers_come_as_soon_as_a_batch_of_pictures_is_embedded(clip: Path, dataset: Path, shown: Shown) -> None:
    back_end = load(contrastive(clip, batch=2), "tiny")
    stream = back_end.answer([comparing(n, shown(str(n // 2))) for n in range(8)], dataset)
    next(stream)
    assert back_end.account.images_encoded == 2
    assert len(list(stream)) == 7
    assert back_end.account.images_encoded == 4


def test_a_text_longer_than_the_context_fails_its_trial_for_good_and_is_never_cut(
    tmp_path: Path, clip: Path, dataset: Path, shown: Shown
) -> None:
    """Two texts that differ only behind the context would be equal if they were cut."""
    long = " ".join(["number"] * 90)
    trials = [
        comparing(0, shown("0")),
        comparing(1, shown("0"), (f"{long} one", f"{long} two")),
        comparing(2, shown("1")),
    ]
    folder = tmp_path / "d"
    folder.symlink_to(dataset)
    path, work, out = (
        tmp_path / "results" / "d" / "trials" / "s" / "run-1.parquet",
        tmp_path / "w.jsonl",
        tmp_path / "o",
    )
    write_trials(trials, path)
    for file in dataset.glob("*.png"):
        (path.parents[2] / file.name).symlink_to(file)
    model = contrastive(clip)
    assert answer_trials(path, model, "tiny", work, out).asked == 3
    by_question = {each.question: each for each in read_responses(out)}
    assert [by_question[name].status for name in ("q0", "q1", "q2")] == ["answered", "failed", "answered"]
    assert "the text of option 1" in str(by_question["q1"].error)
    assert "tiny reads 77" in str(by_question["q1"].error)
    assert answer_trials(path, model, "tiny", work, out) == (0, 3)


def test_a_text_that_fills_the_context_is_answered(clip: Path, dataset: Path, shown: Shown) -> None:
    """77 tokens with begin and end: the longest that is not cut. One word more is one too many."""
    import transformers

    tokenizer: Any = transformers.AutoTokenizer.from_pretrained(clip)
    begin = "lobe"
    room = 77 - len(tokenizer(begin)["input_ids"])
    word = next(
        each for each in ("the", "no", "yes", "of") if len(tokenizer(f"{begin} {each}")["input_ids"]) == 78 - room
    )
    full = " ".join([begin, *[word] * room])
    assert len(tokenizer(full)["input_ids"]) == 77
    trials = [
        comparing(
            n,
            shown("0"),
            blocks=(shown("0"), *(Block(role="options", text=each) for each in (text, "no"))),
            options=("a", "no"),
            permutation=(0, 1),
        )
        for n, text in enumerate((full, f"{full} {word}"))
    ]
    fits, exceeds = asked(clip, trials, dataset)
    assert fits.error is None
    assert fits.prompt_tokens == 77 + len(tokenizer("no")["input_ids"])
    assert exceeds.final
    assert "78 tokens" in str(exceeds.error)


def test_a_text_that_ends_before_its_end_fails_its_trial_for_good(clip: Path, dataset: Path, shown: Shown) -> None:
    """CLIP reads up to the first end token: the two options would be one text to it."""
    trial = comparing(0, shown("0"), ("the heart <|endoftext|> left", "the heart <|endoftext|> right"))
    whole, cut = asked(clip, [comparing(1, shown("0")), trial], dataset)
    assert whole.error is None
    assert cut.final
    assert "holds a token that tiny takes for its end" in str(cut.error)


def test_an_exact_tie_at_the_top_is_no_answer(clip: Path, dataset: Path, shown: Shown) -> None:
    """Small and large letters are one text to CLIP: neither option is taken."""
    from overread.responses.answering import response

    trial = comparing(0, shown("0"), ("The Heart", "the heart"))
    (answer,) = asked(clip, [trial], dataset)
    assert answer.logprobs == pytest.approx((math.log(0.5), math.log(0.5)))
    assert answer.chosen is None
    assert response("r", trial, "tiny", answer).status == "unparsed"


def test_a_picture_that_is_missing_or_another_fails_its_own_trials_alone(
    tmp_path: Path, clip: Path, dataset: Path, shown: Shown
) -> None:
    import shutil

    folder = shutil.copytree(dataset, tmp_path / "d")
    trials = [comparing(n, shown(str(n // 2))) for n in range(6)]
    whole = asked(clip, trials, folder)
    (folder / "0.png").unlink()
    shutil.copy(folder / "3.png", folder / "1.png")
    answers = asked(clip, trials, folder)
    assert ["no such picture" in str(each.error) for each in answers] == [True, True, *[False] * 4]
    assert ["another picture" in str(each.error) for each in answers] == [False, False, True, True, False, False]
    assert not any(each.final for each in answers)
    assert [each.logprobs for each in answers[4:]] == [pytest.approx(each.logprobs, abs=1e-5) for each in whole[4:]]


def test_out_of_memory_halves_the_batch_and_fails_only_what_does_not_fit_alone(
    clip: Path, dataset: Path, shown: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An encoder that takes two pictures at once: all are answered as before. One that takes none: each trial fails."""
    import torch

    from overread.backends.contrastive.library import LibraryEncoder

    trials = [comparing(n, shown(str(n % 4))) for n in range(8)]
    whole = asked(clip, trials, dataset)
    plain, most = LibraryEncoder.images, 2

    def small(self: LibraryEncoder, pictures: Any) -> Any:
        if len(pictures) > most:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return plain(self, pictures)

    back_end = load(contrastive(clip), "tiny")
    assert isinstance(back_end.encoder, LibraryEncoder)  # type: ignore[attr-defined]
    monkeypatch.setattr(LibraryEncoder, "images", small)
    for one, other in zip(back_end.answer(trials, dataset), whole, strict=True):
        assert one.logprobs == pytest.approx(other.logprobs, abs=1e-5)
    most = 0
    again = load(contrastive(clip), "tiny")
    again.encoder = back_end.encoder  # type: ignore[attr-defined]
    answers = list(again.answer(trials, dataset))
    assert {each.error for each in answers} == {"out of memory (CUDA out of memory.)"}
    assert not any(each.final for each in answers)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"readout": "choice"}, "has no readout 'choice', only 'similarity'"),
        ({"report": True}, "sees a picture and the options' texts, no report"),
        ({"pictures": 2}, "compares one picture; this trial shows 2"),
        ({"pictures": 0}, "compares one picture; this trial shows 0"),
        ({"texts": 3}, "3 texts for 4 options"),
    ],
)
def test_a_setting_that_does_not_go_with_such_a_model_is_refused(
    clip: Path, dataset: Path, shown: Shown, changes: dict[str, Any], message: str
) -> None:
    blocks = [shown("0")] * changes.get("pictures", 1)
    blocks += [Block(role="report", text="clear")] if "report" in changes else []
    blocks += [Block(role="options", text=each) for each in OPTIONS[: changes.get("texts", 4)]]
    trial = comparing(0, shown("0"), blocks=tuple(blocks), readout=changes.get("readout", "similarity"))
    with pytest.raises(BadInput, match=message):
        asked(clip, [trial], dataset)


def test_a_model_that_compares_nothing_is_refused(tmp_path: Path, gemma: Path, dataset: Path, shown: Shown) -> None:
    with pytest.raises(BadInput, match="does not compare pictures with texts"):
        asked(gemma, [comparing(0, shown("0"))], dataset)


def test_a_family_that_does_not_compare_by_the_cosine_is_refused(
    clip: Path, dataset: Path, shown: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The probe at load: a model whose own forward pass halves what it compares."""
    import transformers

    plain = transformers.CLIPModel.forward

    def other(self: Any, **given: Any) -> Any:
        out = plain(self, **given)
        out.logits_per_image = out.logits_per_image * 0.5
        return out

    monkeypatch.setattr(transformers.CLIPModel, "forward", other)
    with pytest.raises(BadInput, match="in another way than by the cosine"):
        asked(clip, [comparing(0, shown("0"))], dataset)


def _without(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


def _lacking_a_tensor(folder: Path) -> None:
    from safetensors.torch import load_file, save_file

    tensors = load_file(folder / "model.safetensors")
    del tensors["text_projection.weight"]
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (_without("model.safetensors"), "no \\*.safetensors file"),
        (lambda folder: (folder / "model.safetensors").rename(folder / "pytorch_model.bin"), "is a pickle"),
        (_lacking_a_tensor, "the weights have no fitting text_projection.weight"),
        (_without("processor_config.json"), "can't be loaded|no processor for pictures"),
        (_without("tokenizer.json"), "can't be loaded|no processor for pictures"),
    ],
)
def test_weights_that_can_not_be_loaded_are_one_clear_line(
    tmp_path: Path, clip: Path, dataset: Path, shown: Shown, spoil: Callable[[Path], None], message: str
) -> None:
    import shutil

    folder = shutil.copytree(clip, tmp_path / "clip")
    spoil(folder)
    with pytest.raises(BadInput, match=message) as caught:
        asked(folder, [comparing(0, shown("0"))], dataset)
    assert "\n" not in str(caught.value)


# -- MedImageInsight ---------------------------------------------------------------------------------------------------


def insight(folder: Path, **changes: Any) -> ContrastiveModel:
    loader = MedImageInsightCode(module=folder.name.replace("-", "_"))
    return contrastive(folder, **{"loader": loader, "trust_remote_code": True, **changes})


def repository(folder: Path, **changes: Any) -> Path:
    """Modules are known by their name in one process: each test's has its own."""
    return write_repository(folder, module=folder.name.replace("-", "_"), **changes)


@pytest.mark.parametrize(("factor", "logarithm", "scale"), [(3.0, True, math.exp(3.0)), (20.0, False, 20.0)])
def test_medimageinsight_gives_the_probabilities_of_its_own_predict(
    tmp_path: Path, dataset: Path, shown: Shown, factor: float, logarithm: bool, scale: float
) -> None:
    import base64

    folder = repository(tmp_path / f"insight-{logarithm}".lower(), factor=factor, logarithm=logarithm)
    back_end: Any = load(insight(folder), "insight")
    trials = [comparing(n, shown(str(n % 3))) for n in range(6)]
    answers = list(back_end.answer(trials, dataset))
    assert back_end.encoder.scale == pytest.approx(scale)
    for trial, answer in zip(trials, answers, strict=True):
        picture = base64.b64encode((dataset / str(trial.images[0].image)).read_bytes()).decode()
        (own,) = back_end.encoder.own.predict([picture], [block.text for block in trial.blocks[1:]])
        assert [math.exp(each) for each in answer.logprobs or ()] == pytest.approx(list(own.values()), abs=1e-4)
        assert answer.prompt_tokens == sum(len(str(block.text).split()) + 2 for block in trial.blocks[1:])
    assert str(folder) not in sys.path


def test_medimageinsight_sees_each_picture_and_each_text_once(tmp_path: Path, dataset: Path, shown: Shown) -> None:
    folder = repository(tmp_path / "insight-once")
    back_end: Any = load(insight(folder), "insight")
    encoder = back_end.encoder
    calls = sys.modules["insight_once"].CALLS
    calls.clear()
    list(back_end.answer([comparing(n % 2, shown(str(n // 2)), question=f"q{n}") for n in range(4)], dataset))
    assert [sum(each) for each in zip(*calls, strict=True)] == [2, 8]
    assert encoder.context == 12


def test_a_text_longer_than_medimageinsights_context_is_never_cut(tmp_path: Path, dataset: Path, shown: Shown) -> None:
    folder = repository(tmp_path / "insight-long")
    trial = comparing(0, shown("0"), ("right frontal lobe and left frontal lobe and more", "none"))
    (answer,) = load(insight(folder), "insight").answer([trial], dataset)
    assert answer.final
    assert "the text of option 1 is 15 tokens, and insight reads 12" in str(answer.error)


def test_code_of_a_repository_runs_only_when_it_is_allowed(tmp_path: Path, dataset: Path, shown: Shown) -> None:
    folder = repository(tmp_path / "insight-untrusted")
    with pytest.raises(BadInput, match="set trust_remote_code: true"):
        list(load(insight(folder, trust_remote_code=False), "m").answer([comparing(0, shown("0"))], dataset))
    assert "insight_untrusted" not in sys.modules


def _other_method(folder: Path) -> None:
    module = next(folder.glob("*.py"))
    module.write_text(module.read_text().replace("def predict", "def classify"))


def _other_key(folder: Path) -> None:
    module = next(folder.glob("*.py"))
    module.write_text(module.read_text().replace('out["image_embeddings"]', 'out["image_features"]'))


def _other_scale(folder: Path) -> None:
    module = next(folder.glob("*.py"))
    module.write_text(module.read_text().replace("image @ text.T", "7 + 2 * image @ text.T"))


def _no_weights(folder: Path) -> None:
    next(folder.rglob("*.pth")).unlink()


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (_other_method, "has no 'predict'"),
        (_other_key, "gives no 'image_embeddings'"),
        (_other_scale, "not the softmax of the cosines"),
        (_no_weights, "can't be loaded: FileNotFoundError"),
        (lambda folder: next(folder.glob("*.py")).unlink(), "can't be loaded: ModuleNotFoundError"),
    ],
)
def test_another_version_of_the_repositorys_code_stops_with_one_line(
    tmp_path: Path,
    dataset: Path,
    shown: Shown,
    request: pytest.FixtureRequest,
    spoil: Callable[[Path], None],
    message: str,
) -> None:
    folder = repository(tmp_path / f"insight-{abs(len(message))}-{spoil.__name__.strip('_<>')}".replace("_", "-"))
    spoil(folder)
    with pytest.raises(BadInput, match=message) as caught:
        list(load(insight(folder), "m").answer([comparing(0, shown("0"))], dataset))
    assert "\n" not in str(caught.value)


# -- the model file ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"takes": Takes(images=2, text_only=False)}, "compares texts with one picture"),
        ({"takes": Takes()}, "compares texts with one picture"),
        ({"max_pixels": 100}, "takes no 'max_pixels'"),
        ({"decoding": {"temperature": 1}}, "takes no 'decoding'"),
        ({"trust_remote_code": True}, "is for a model with a 'loader'"),
        ({"loader": {}, "dtype": "bfloat16"}, "set dtype to float32"),
        ({"loader": {}, "weights": "some/hub", "trust_remote_code": True}, "pin it with 'revision'"),
    ],
)
def test_a_model_file_that_can_not_be_meant_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        contrastive(Path("/weights"), **changes)


def test_a_model_survives_its_way_into_a_job(tmp_path: Path) -> None:
    """Rules hand a model over as JSON with all of its defaults."""
    model = insight(tmp_path / "x")
    assert TypeAdapter(Model).validate_json(model.model_dump_json()) == model
