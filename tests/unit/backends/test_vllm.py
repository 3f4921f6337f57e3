"""The vllm back end without vLLM: what it would ask, and whether it believes what comes back.

The engine is replaced by one that plays back what transformers gave, with a cache of its own. The real one is in
`test_vllm_engine`.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given as hypothesis_given
from hypothesis import strategies as st

from data.checkpoints import make_checkpoint
from data.trials import Shown, make_trial
from overread.backends.base import load
from overread.backends.order import by_shared_beginning
from overread.backends.transformers.network import load_network
from overread.backends.vllm import engine as engine_module
from overread.backends.vllm import parity, reader, reference
from overread.backends.vllm.engine import Engine, Output, Request
from overread.backends.vllm.parity import TOLERANCES, Asked, check, chosen, deviation
from overread.backends.vllm.reader import Reader, Unloaded, as_transformers
from overread.backends.vllm.reference import Given, Probe
from overread.backends.vllm.section import VllmModel
from overread.config import Decoding, Takes
from overread.core.errors import BadInput
from overread.core.records import Block, Trial

FLOAT32 = TOLERANCES["float32"]


def make_vllm_model(folder: Path, **changes: Any) -> VllmModel:
    fields: dict[str, Any] = {
        "label": "tiny",
        "backend": "vllm",
        "weights": str(folder),
        "dtype": "float32",
        "takes": Takes(images=4),
        "decoding": Decoding(max_tokens=12),
    }
    return VllmModel(**{**fields, **changes})


@pytest.fixture(scope="module")
def qwen(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_checkpoint("qwen2.5-vl", tmp_path_factory.mktemp("qwen"))


@pytest.fixture(scope="module")
def read(qwen: Path) -> Reader:
    return Reader(make_vllm_model(qwen), "tiny")


@pytest.fixture(scope="module")
def probes(shown: Shown) -> list[Probe]:
    """A free answer, a choice with two pictures, a first token without a picture; the first once more, inverted."""
    three = {"options": ("left lobe", "right lobe", "the heart"), "permutation": (2, 0, 1), "readout": "choice"}
    trials = [
        make_trial(0, images=(shown("0"),)),
        make_trial(1, images=(shown("1"), shown("2")), **three),
        make_trial(2, readout="first-token"),
    ]
    return [*map(Probe, trials), Probe(trials[0], negative=True)]


@pytest.fixture(scope="module")
def given(qwen: Path, probes: list[Probe], dataset: Path) -> list[Given]:
    """What transformers gives, in this process."""
    return reference._given(make_vllm_model(qwen), "tiny", probes, dataset)


@dataclass
class Playback:
    """An engine that gives what transformers gave, for the prompt and the names of the pictures in its caches.

    moved   added to every log-probability
    """

    made: dict[Any, Given]
    moved: float = 0.0
    known: dict[Any, Given] = field(default_factory=dict)
    asked: list[Request] = field(default_factory=list)

    def run(self, requests: Iterable[Request]) -> Iterator[Output]:
        for request in requests:
            self.asked.append(request)
            pictures = request.prompt.get("multi_modal_data", {"image": []})["image"]
            ids = tuple(request.prompt["prompt_token_ids"])
            names = tuple(request.prompt.get("multi_modal_uuids", {"image": []})["image"])
            true = self.made[ids, tuple(picture.tobytes() for picture in pictures)]
            # The caches know a picture by its name alone.
            found = self.known.setdefault((request.prompt.get("cache_salt"), ids, names), true)
            wanted = request.sampling.get("logprob_token_ids")
            tokens = found.tokens[: request.sampling["max_tokens"]]
            positions = [
                {token: value + self.moved for token, value in each.items()} for each in found.logprobs[: len(tokens)]
            ]
            if wanted is not None:
                positions[0] = {token: positions[0].get(token, -20.0) for token in wanted}
            yield Output(found.prompt, tokens=tokens, logprobs=tuple(positions), finish_reason="length")


@pytest.fixture
def made(read: Reader, probes: list[Probe], given: list[Given], dataset: Path) -> dict[Any, Given]:
    found = {}
    for probe, one in zip(probes, given, strict=True):
        pictures = [picture.tobytes() for _, picture in reference.pictures_of(probe, dataset)]
        found[tuple(read.prompt(probe.trial).ids.tolist()), tuple(pictures)] = one
    assert len(found) == len(probes)
    return found


def test_an_engine_that_answers_as_transformers_does_is_believed(
    read: Reader,
    probes: list[Probe],
    given: list[Given],
    made: dict[Any, Given],
    dataset: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    engine: Any = Playback(made)
    check(engine, read, probes, given, dataset)
    assert "parity: vLLM answers 4 trials as transformers does" in capsys.readouterr().err
    # Three ways: the first position of all four, and the beginning of the two free answers.
    assert len(engine.asked) == 3 * (4 + 2)


def test_other_log_probabilities_stop_the_job_with_both_answers_shown(
    read: Reader, probes: list[Probe], given: list[Given], made: dict[Any, Given], dataset: Path
) -> None:
    engine: Any = Playback(made, moved=2 * FLOAT32.each)
    with pytest.raises(BadInput) as caught:
        check(engine, read, probes, given, dataset)
    message = str(caught.value)
    yes, no = (read.prompts.first_tokens.of(probes[0].trial) or [])[:2]
    for moved in (0.0, 2 * FLOAT32.each):
        shown = [f"{given[0].logprobs[0][token] + moved:.4f}" for token in (yes, no)]
        assert f"(yes {shown[0]}, no {shown[1]})" in message
    assert "model 'tiny'" in message and "question q0 of study s0" in message.lower() and "parity: 0" in message
    assert "\n" not in message


def test_a_small_shift_of_everything_stops_the_job_by_its_mean(
    read: Reader, probes: list[Probe], given: list[Given], made: dict[Any, Given], dataset: Path
) -> None:
    assert FLOAT32.mean < 0.5 * FLOAT32.each
    engine: Any = Playback(made, moved=0.5 * FLOAT32.each)
    with pytest.raises(BadInput, match="on average"):
        check(engine, read, probes, given, dataset)
    check(Playback(made, moved=0.5 * FLOAT32.mean), read, probes, given, dataset)  # type: ignore[arg-type]


def test_a_cache_that_does_not_tell_pictures_apart_is_caught_by_the_canary(
    read: Reader,
    probes: list[Probe],
    given: list[Given],
    made: dict[Any, Given],
    dataset: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Uncached all is well; with the caches, the inverted picture is answered as the picture was."""
    monkeypatch.setattr(reader, "picture_name", lambda pixels: "picture")
    engine: Any = Playback(made)
    with pytest.raises(BadInput, match=r"with its pictures inverted: transformers gives .*, vLLM \(first\)"):
        check(engine, read, probes, given, dataset)


def test_the_canary_says_when_it_tells_nothing(
    probes: list[Probe], given: list[Given], capsys: pytest.CaptureFixture[str]
) -> None:
    parity._judge_canary(probes, given, FLOAT32)
    assert capsys.readouterr().err == ""
    parity._judge_canary(probes, [*given[:3], given[0]], FLOAT32)
    assert "canary tells little" in capsys.readouterr().err
    parity._judge_canary(probes[:3], given[:3], FLOAT32)
    assert "there is no canary" in capsys.readouterr().err


def asked_as(given: Given) -> Asked:
    """What an engine that agrees in everything gives."""
    free = Output(given.prompt, tokens=given.tokens, logprobs=given.logprobs)
    return Asked(Output(given.prompt, tokens=given.tokens[:1], logprobs=given.logprobs[:1]), free)


HAND = Given((5, 6), (1, 2, 3), ({1: -0.1, 2: -3.0}, {2: -0.7, 4: -0.7005}, {3: -0.2, 1: -2.0}))


def test_a_free_answer_may_part_where_two_tokens_are_as_likely() -> None:
    """Here position 1: what follows another token is another text, and is not compared."""
    other = asked_as(replace(HAND, tokens=(1, 4, 9), logprobs=(HAND.logprobs[0], {4: -0.7005}, {9: -5.0})))
    assert deviation(HAND, other, FLOAT32).mismatch is None
    unlike = asked_as(replace(HAND, tokens=(2, 4, 9), logprobs=(HAND.logprobs[0], {4: -0.7005}, {9: -5.0})))
    assert "another token at position 0" in str(deviation(HAND, unlike, FLOAT32).mismatch)
    unlikely = asked_as(replace(HAND, tokens=(1, 2, 9), logprobs=(*HAND.logprobs[:2], {9: -5.0})))
    assert "an unlikely token at position 2" in str(deviation(HAND, unlikely, FLOAT32).mismatch)


def test_what_can_not_be_the_same_answer_is_told_whatever_the_tolerance() -> None:
    wide = TOLERANCES["bfloat16"]
    assert deviation(HAND, asked_as(HAND), wide) == parity.Deviation((0.0,) * 5)
    longer = asked_as(replace(HAND, prompt=(5, 6, 7)))
    assert "3 tokens, that of transformers 2" in str(deviation(HAND, longer, wide).mismatch)
    refused = Asked(Output(error="too long"))
    assert "too long" in str(deviation(HAND, refused, wide).mismatch)
    broken = replace(HAND, logprobs=({1: math.nan, 2: -3.0}, *HAND.logprobs[1:]))
    assert "no numbers" in str(deviation(HAND, asked_as(broken), wide).mismatch)


def test_probes_are_spread_over_the_trials_and_one_is_the_canary(shown: Shown) -> None:
    trials = [make_trial(n, images=(shown("0"),) if n % 2 else ()) for n in range(20)]
    probes = chosen(trials, 8)
    assert len({probe.trial.question for probe in probes}) == 8
    assert sum(bool(probe.trial.images) for probe in probes if not probe.negative) == 4
    (canary,) = [probe for probe in probes if probe.negative]
    assert canary.trial.images and Probe(canary.trial) in probes
    assert chosen(trials, 0) == []
    assert not any(probe.negative for probe in chosen(trials[::2], 8))
    # With fewer trials than asked for, and with the one that shows a picture not among the few.
    assert len(chosen(trials[:1], 8)) == 1
    assert [probe.negative for probe in chosen(trials[:2], 1)] == [False, False, True]


def test_a_readout_is_read_from_the_whole_vocabulary_and_a_draw_has_a_seed_of_its_own(
    read: Reader, qwen: Path, probes: list[Probe]
) -> None:
    free, choice, first = (read.sampling(read.prompt(probe.trial)) for probe in probes[:3])
    for constrained, number in ((choice, 3), (first, 2)):
        assert constrained["logprob_token_ids"] == constrained["allowed_token_ids"]
        assert len(constrained["allowed_token_ids"]) == number
        assert constrained["max_tokens"] == 1 and constrained["temperature"] == 0
    assert "allowed_token_ids" not in free and "seed" not in free and free["max_tokens"] == 12
    assert set(free["stop_token_ids"]) == set(read.network.stops)
    warm = Reader(make_vllm_model(qwen, decoding=Decoding(temperature=1.0, top_p=0.9)), "tiny")
    trials = [probes[0].trial, probes[0].trial.model_copy(update={"run": 2}), make_trial(5)]
    drawn = [warm.sampling(warm.prompt(trial)) for trial in trials]
    assert len({each["seed"] for each in drawn}) == 3
    assert {(each["temperature"], each["top_p"]) for each in drawn} == {(1.0, 0.9)}
    assert warm.sampling(warm.prompt(trials[0])) == drawn[0]


def test_the_prompt_has_one_placeholder_a_picture_in_the_order_of_the_blocks(read: Reader, shown: Shown) -> None:
    own = make_trial(0, images=(shown("0"), shown("1")))
    text_first = make_trial(0, blocks=(own.blocks[2], *own.blocks[:2], own.blocks[3]))
    token = read.network.image_token
    for trial in (own, text_first):
        prompt = read.prompt(trial)
        assert prompt.ids.tolist().count(token) == 2
    before = read.network.tokenizer.decode(prompt.ids[: prompt.ids.tolist().index(token)])
    assert str(own.blocks[2].text) in before
    assert read.prompt(own).ids.tolist() != read.prompt(text_first).ids.tolist()


def test_the_dress_of_a_model_is_no_part_of_its_identity(qwen: Path) -> None:
    plain = load(make_vllm_model(qwen), "tiny").identity()
    dressed = make_vllm_model(qwen, parity=0, python="/opt/vllm/bin/python", gpu_memory=0.5, batch=8, label="other")
    assert load(dressed, "tiny").identity() == plain
    for change in ({"structured": "json"}, {"thinking": True}, {"dtype": "bfloat16"}, {"context": 100}):
        assert load(make_vllm_model(qwen, **change), "tiny").identity() != plain


def test_the_reference_is_the_same_model_for_transformers(qwen: Path) -> None:
    model = make_vllm_model(qwen, revision="abc", max_pixels=5000, thinking=True, dtype="bfloat16")
    other = as_transformers(model)
    for name in ("weights", "revision", "dtype", "decoding", "max_pixels", "thinking"):
        assert getattr(other, name) == getattr(model, name), name


@pytest.mark.parametrize("thinking", [False, True])
def test_a_model_is_read_without_its_weights_as_with_them(qwen: Path, gemma: Path, thinking: bool) -> None:
    for folder in (qwen, gemma):
        model = as_transformers(make_vllm_model(folder, thinking=thinking, decoding=Decoding(temperature=None)))
        unloaded, loaded = Unloaded(model, "tiny"), load_network(model, "tiny")
        for name in ("sees", "image_token", "stops", "suppressed", "architecture"):
            assert getattr(unloaded, name) == getattr(loaded, name), name
        assert unloaded.sampling() == loaded.sampling()
        assert unloaded.processor.chat_template == loaded.processor.chat_template


def test_without_vllm_one_line_says_what_to_install(qwen: Path, tmp_path: Path) -> None:
    if find_spec("vllm") is not None:
        pytest.skip("vLLM is installed here")
    with pytest.raises(BadInput, match=r"vLLM is not installed in this environment: make it with `make vllm`"):
        list(load(make_vllm_model(qwen), "tiny").answer([make_trial(0)], tmp_path))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"readout": "similarity"}, "no readout 'similarity'"),
        ({"attention": "from-0"}, "can't hide the report"),
        ({"readout": "first-token", "options": ("left", "right")}, "needs the options yes and no"),
        ({"blocks": (Block(role="image", image="volumes/a.nii.gz", pixels="0"),)}, "takes pictures, no volumes"),
    ],
)
def test_what_the_back_end_can_not_do_is_an_error(
    qwen: Path, tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(BadInput, match=message):
        list(load(make_vllm_model(qwen), "tiny").answer([make_trial(0, **changes)], tmp_path))


# -- order -----------------------------------------------------------------------------------------------------------


def trial_of(texts: str) -> Trial:
    return make_trial(0, blocks=tuple(Block(role="question", text=text) for text in texts))


@hypothesis_given(st.lists(st.text("abc", min_size=1, max_size=4), min_size=1, max_size=12))
def test_trials_that_begin_alike_follow_each_other(texts: list[str]) -> None:
    order = by_shared_beginning([trial_of(text) for text in texts])
    assert sorted(order) == list(range(len(texts)))
    sent = [texts[place] for place in order]
    for length in (1, 2, 3):
        beginnings = [text[:length] for text in sent if len(text) >= length]
        changes = sum(one != other for one, other in itertools.pairwise(beginnings))
        assert changes == max(len(set(beginnings)) - 1, 0)


def test_trials_in_order_stay_in_order() -> None:
    texts = ["xa", "xb", "xc", "ab", "aa"]
    assert by_shared_beginning([trial_of(text) for text in texts]) == [0, 1, 2, 3, 4]
    assert by_shared_beginning([trial_of(text) for text in ["xa", "aa", "xb", "ab"]]) == [0, 2, 1, 3]


# -- engine ----------------------------------------------------------------------------------------------------------


class Shuffled(Engine):
    """An engine that finishes whatever it likes of what it works on, and notes how much that was."""

    def __init__(self, ahead: int) -> None:
        self.ahead = ahead
        self.llm = SimpleNamespace(llm_engine=self)
        self.working: list[tuple[str, Request]] = []
        self.most = self.most_pictures = 0
        self._draw = random.Random(0)

    def _enqueue(self, request: Request) -> str | Output:
        if request.sampling["refused"]:
            return Output(error="refused")
        self.working.append((str(request.prompt["prompt_token_ids"][0]), request))
        self.most = max(self.most, len(self.working))
        self.most_pictures = max(self.most_pictures, len({name for _, one in self.working for name in one.pictures}))
        return self.working[-1][0]

    def step(self) -> list[Any]:
        done = [
            self.working.pop(self._draw.randrange(len(self.working)))
            for _ in range(min(self._draw.randint(0, 2), len(self.working)))
        ]
        return [
            SimpleNamespace(
                request_id=name,
                finished=True,
                prompt_token_ids=request.prompt["prompt_token_ids"],
                num_cached_tokens=None,
                outputs=[SimpleNamespace(finish_reason="length", token_ids=[7], logprobs=None)],
            )
            for name, request in done
        ]


@pytest.mark.parametrize(("pictures", "most", "most_pictures"), [(1000, 4, 8), (3, 3, 4)])
def test_outputs_come_in_the_order_of_the_requests_however_they_finish(
    monkeypatch: pytest.MonkeyPatch, pictures: int, most: int, most_pictures: int
) -> None:
    """A request is taken as long as fewer pictures than that are held, and brings two at most."""
    monkeypatch.setattr(engine_module, "PICTURES_AHEAD", pictures)
    requests: list[Request | Output] = [
        Request(
            {"prompt_token_ids": [n], "multi_modal_uuids": {"image": [str(n // 2), f"{n // 2} too"]}},
            {"refused": n % 7 == 3},
        )
        for n in range(40)
    ]
    requests[5] = Output(error="no such picture")
    engine = Shuffled(ahead=4)
    outputs = list(engine._run(iter(requests)))
    assert [each.error for each in outputs] == [
        "no such picture" if n == 5 else "refused" if n % 7 == 3 else None for n in range(40)
    ]
    assert [each.prompt for each in outputs if each.error is None] == [(n,) for n in range(40) if n != 5 and n % 7 != 3]
    assert (engine.most, engine.most_pictures) == (most, most_pictures)
    assert engine.working == []
