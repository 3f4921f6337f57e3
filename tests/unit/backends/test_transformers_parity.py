"""Whatever is computed together, each trial has the answer that it has alone through the library's own `generate`."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from data.trials import make_model, make_trial, picture_block
from overread.backends.base import Answer, load
from overread.config import Decoding
from overread.core.account import Account
from overread.core.records import Block, Trial

KINDS = ("gemma3", "qwen2.5-vl", "llava-next", "llava", "qwen3", "qwen3.5")
SEEING = tuple(kind for kind in KINDS if kind != "qwen3")
FREE = Decoding(max_tokens=5)

Ask = Callable[..., tuple[list[Answer], Account]]


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four pictures of noise, each of another shape."""
    import numpy as np

    folder = tmp_path_factory.mktemp("pictures")
    draw = np.random.default_rng(0)
    for name, size in enumerate([(40, 40), (60, 40), (40, 90), (64, 64)]):
        Image.fromarray(draw.integers(0, 255, size, dtype=np.uint8)).save(folder / f"{name}.png")
    return folder


@pytest.fixture(scope="module")
def asked(pictures: Path) -> Callable[[str], list[Trial]]:
    """Trials of every readout, with and without report and pictures, in every order of blocks."""
    report = Block(role="report", text="Findings: The heart is large. No effusion is seen.\nImpression: normal.")

    def question(number: int) -> tuple[Block, ...]:
        text = f"Is there {'very ' * number}an effusion?"
        return (Block(role="question", text=text), Block(role="instruction", text="answer with yes or no ."))

    def study(*shown: Block, first: int) -> list[Trial]:
        readouts = ("yes-no", "first-token", "choice", "free-text")
        return [
            make_trial(first + 4 * bool(arm) + place, blocks=(*shown, *arm, *question(place)), readout=readout)
            for arm in ((), (report,))
            for place, readout in enumerate(readouts)
        ]

    @cache
    def trials(kind: str) -> list[Trial]:
        if kind == "qwen3":
            return [*study(first=0), make_trial(20, blocks=question(3)), make_trial(21)]
        captions = [Block(role="caption", text=f"SLICE {number}") for number in (1, 2)]
        one, two, three, four = (picture_block(pictures, str(name)) for name in range(4))
        return [
            *study(one, first=0),
            *study(two, first=10),
            make_trial(20),
            make_trial(21, images=(one, two)),
            make_trial(22, images=(one, three), readout="first-token"),
            make_trial(23, images=(four,)),
            make_trial(24, blocks=(report, *question(1))),
            make_trial(25, blocks=(report, one, *question(1))),
            make_trial(26, blocks=(report, *question(1), three)),
            make_trial(27, blocks=(captions[0], one, captions[1], two, *question(0))),
        ]

    return trials


@pytest.fixture(scope="module")
def ask(checkpoint: Callable[[str], Path], asked: Callable[[str], list[Trial]], pictures: Path) -> Ask:
    def answers(kind: str, trials: list[Trial] | None = None, **changes: Any) -> tuple[list[Answer], Account]:
        back_end = load(make_model(checkpoint(kind), **{"decoding": FREE, "batch": 64, **changes}), kind)
        return list(back_end.answer(asked(kind) if trials is None else trials, pictures)), back_end.account

    return answers


@pytest.fixture(scope="module")
def alone(ask: Ask) -> Callable[[str], list[Answer]]:
    """Each trial by itself: the library's `generate` on one prompt."""
    return cache(lambda kind: ask(kind, share_prefix=False, batch=1)[0])


def assert_same(some: list[Answer], others: list[Answer]) -> None:
    for one, other in zip(some, others, strict=True):
        assert one.error is None and other.error is None
        assert (one.logprobs is None) == (other.logprobs is None)
        if one.logprobs is not None:
            assert one.logprobs == pytest.approx(other.logprobs, abs=1e-4)
        assert (one.text, one.chosen, one.finish_reason) == (other.text, other.chosen, other.finish_reason)
        assert (one.prompt_tokens, one.image_tokens, one.completion_tokens) == (
            other.prompt_tokens,
            other.image_tokens,
            other.completion_tokens,
        )


@pytest.mark.parametrize("kind", KINDS)
def test_sharing_beginnings_changes_no_answer(kind: str, ask: Ask, alone: Callable[[str], list[Answer]]) -> None:
    answers, account = ask(kind)
    assert_same(answers, alone(kind))
    assert account.prefilled_tokens < 0.75 * account.prompt_tokens


@pytest.mark.parametrize("kind", KINDS)
def test_it_does_not_matter_how_many_are_computed_together(
    kind: str, ask: Ask, alone: Callable[[str], list[Answer]]
) -> None:
    assert_same(ask(kind, batch=3)[0], alone(kind))


@pytest.mark.parametrize("kind", KINDS)
def test_a_padded_batch_equals_single_trials(kind: str, ask: Ask, alone: Callable[[str], list[Answer]]) -> None:
    answers, account = ask(kind, share_prefix=False, batch=8)
    assert_same(answers, alone(kind))
    assert account.prefilled_tokens == account.prompt_tokens


@pytest.mark.parametrize("kind", ["gemma3", "qwen2.5-vl", "qwen3.5"])
def test_eager_attention_gives_the_same_answers(kind: str, ask: Ask, alone: Callable[[str], list[Answer]]) -> None:
    assert_same(ask(kind, attention_implementation="eager")[0], alone(kind))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("share", [True, False])
def test_the_side_that_the_tokenizer_pads_on_does_not_matter(
    kind: str,
    share: bool,
    tmp_path: Path,
    checkpoint: Callable[[str], Path],
    asked: Callable[[str], list[Trial]],
    pictures: Path,
    alone: Callable[[str], list[Answer]],
) -> None:
    folder = shutil.copytree(checkpoint(kind), tmp_path / "right")
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    assert settings["padding_side"] == "left"
    (folder / "tokenizer_config.json").write_text(json.dumps({**settings, "padding_side": "right"}))
    back_end = load(make_model(folder, decoding=FREE, batch=8, share_prefix=share), kind)
    some = asked(kind)[:6]
    assert_same(list(back_end.answer(some, pictures)), alone(kind)[:6])


@pytest.mark.parametrize("kind", KINDS)
def test_a_draw_depends_on_its_request_alone(kind: str, ask: Ask, asked: Callable[[str], list[Trial]]) -> None:
    decoding = Decoding(temperature=1.3, top_p=0.9, max_tokens=4)
    free = [trial for trial in asked(kind) if trial.readout in ("yes-no", "free-text")][:6]
    together, _ = ask(kind, free, decoding=decoding)
    single, _ = ask(kind, free, decoding=decoding, share_prefix=False, batch=1)
    assert [each.text for each in together] == [each.text for each in single]
    assert together != ask(kind, free)[0]


@pytest.mark.parametrize("kind", SEEING)
@pytest.mark.parametrize("share", [True, False])
def test_a_missing_picture_takes_no_pictures_from_its_batch(
    kind: str, share: bool, tmp_path: Path, ask: Ask, pictures: Path, checkpoint: Callable[[str], Path]
) -> None:
    """lmms-eval once answered a whole batch without pictures when one of its trials had none."""
    folder = shutil.copytree(pictures, tmp_path / "d")
    shown = [picture_block(folder, str(name)) for name in range(4)]
    trials = [make_trial(n, images=(shown[n],) if n != 2 else (), readout="first-token") for n in range(4)]
    (folder / "1.png").unlink()
    back_end = load(make_model(checkpoint(kind), batch=8, share_prefix=share), kind)
    answers = list(back_end.answer(trials, folder))
    assert "no such picture" in str(answers[1].error)
    blind, _ = ask(kind, [make_trial(n, readout="first-token") for n in range(4)])
    for place in (0, 3):
        (seen,), _ = ask(kind, [trials[place]], share_prefix=False)
        assert answers[place].logprobs == pytest.approx(seen.logprobs, abs=1e-4)
        assert answers[place].logprobs != pytest.approx(blind[place].logprobs, abs=1e-3)
        assert (answers[place].image_tokens or 0) > 0
    assert answers[2].logprobs == pytest.approx(blind[2].logprobs, abs=1e-4)
    assert answers[2].image_tokens == 0


@pytest.mark.parametrize("kind", SEEING)
def test_each_picture_goes_through_the_vision_part_once(
    kind: str, ask: Ask, asked: Callable[[str], list[Trial]]
) -> None:
    _, account = ask(kind)
    assert account.images_encoded == 4
    _, plain = ask(kind, share_prefix=False)
    assert plain.images_encoded == sum(len(trial.images) for trial in asked(kind))


@pytest.mark.parametrize("kind", ["gemma3", "qwen3.5"])
def test_answers_come_in_the_order_of_the_trials(kind: str, ask: Ask, asked: Callable[[str], list[Trial]]) -> None:
    """Though trials that begin alike are answered together."""
    trials = asked(kind)
    mixed = trials[::2] + trials[1::2][::-1]
    place = {trial.trial: answer for trial, answer in zip(trials, ask(kind, trials)[0], strict=True)}
    assert_same(ask(kind, mixed)[0], [place[trial.trial] for trial in mixed])
