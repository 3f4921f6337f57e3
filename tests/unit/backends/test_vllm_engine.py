"""The vllm back end on vLLM itself, in the environment that `make vllm` makes; and a vLLM server through `openai`.

Everything that runs in that environment is started at once, two processes at a time: each takes longer to start than
to answer.
"""

from __future__ import annotations

import json
import os
import pickle
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from data.checkpoints import make_checkpoint
from data.trials import make_model, make_trial, picture_block
from lacking import interpreter
from overread.backends.openai.section import OpenaiModel
from overread.backends.vllm import reference
from overread.backends.vllm.parity import chosen
from overread.backends.vllm.reference import Probe
from overread.backends.vllm.section import VllmModel
from overread.config import Decoding, Resources, Takes
from overread.core.records import Response, Trial, read_responses, write_trials
from overread.responses.answering import answer_trials

pytestmark = pytest.mark.vllm

ROOT = Path(__file__).resolve().parents[3]
KINDS = ("llava-next", "qwen2.5-vl", "qwen3")
PIXELS = {"qwen2.5-vl": {"min_pixels": 28 * 28, "max_pixels": 3 * 28 * 28}}
"""Where a processor takes limits: here one to three tokens a picture, which would cost four and more by themselves."""
PATIENCE = 400.0
"""Seconds that a process may take on a busy machine."""


@dataclass
class Processes:
    """What runs in vLLM's environment, two at a time."""

    folder: Path
    python: Path
    pool: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(max_workers=2))
    started: dict[str, Future[Any]] = field(default_factory=dict)

    def start(self, name: str, work: Callable[[], Any]) -> None:
        self.started[name] = self.pool.submit(work)

    def result(self, name: str) -> Any:
        return self.started[name].result()

    @property
    def environment(self) -> dict[str, str]:
        paths = os.pathsep.join([str(ROOT / "workflow"), str(ROOT / "tests")])
        return {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(self.python), *arguments], env=self.environment, capture_output=True, text=True, timeout=PATIENCE
        )

    def model(self, kind: str, weights: str | None = None) -> VllmModel:
        return VllmModel(
            label=kind,
            backend="vllm",
            weights=str(self.folder / (weights or kind)),
            dtype="float32",
            takes=Takes(images=0 if kind == "qwen3" else 4),
            decoding=Decoding(max_tokens=12),
            resources=Resources(mem_mb=1200),  # a quarter of it for keys and values
            **PIXELS.get(kind, {}),
        )

    def answer(self, kind: str) -> subprocess.CompletedProcess[str]:
        """`overread responses answer` with the vllm back end."""
        model = self.model(kind).model_dump_json()
        return self.run(
            *("-m", "overread", "responses", "answer", str(self.trials(kind)), "--model", model, "--id", kind),
            *("--work", str(self.folder / f"{kind}.jsonl"), "--out", str(self.out(kind, "vllm"))),
        )

    def trials(self, kind: str) -> Path:
        return self.folder / "d" / "trials" / ("text" if kind == "qwen3" else "s") / "run-1.parquet"

    def out(self, kind: str, back_end: str) -> Path:
        return self.folder / f"{kind}.{back_end}.parquet"

    def serve(self, kind: str) -> list[Response]:
        """The responses of a vLLM server, asked through the openai back end."""
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            port = found.getsockname()[1]
        shown = {"image": 4, "video": 0}
        prepared = {"use_fast": False, **PIXELS.get(kind, {})}
        pictures = ["--limit-mm-per-prompt", json.dumps(shown), "--mm-processor-kwargs", json.dumps(prepared)]
        command = [
            str(self.python), "-m", "vllm.entrypoints.openai.api_server", "--model", str(self.folder / kind),
            "--served-model-name", "tiny", "--host", "127.0.0.1", "--port", str(port), "--dtype", "float32",
            "--block-size", "32", "--enforce-eager", "--max-num-seqs", "16", "--kv-cache-memory-bytes", "300000000",
            *([] if kind == "qwen3" else pictures),
        ]  # fmt: skip
        cpu = {"VLLM_CPU_OMP_THREADS_BIND": "nobind", "TORCHDYNAMO_DISABLE": "1", "VLLM_NO_USAGE_STATS": "1"}
        log = self.folder / f"{kind}.server.log"
        with log.open("w") as file:
            server = subprocess.Popen(command, env=self.environment | cpu, stdout=file, stderr=subprocess.STDOUT)
        try:
            wait_for(server, f"http://127.0.0.1:{port}/health", log)
            model = OpenaiModel(
                label="tiny",
                backend="openai",
                model="tiny",
                endpoint=f"http://127.0.0.1:{port}/v1",
                server="vllm",
                decoding=Decoding(max_tokens=12),
                # LLaVA-NeXT's template leaves its begin token to the tokenizer, which a server does not let put it.
                extra={"add_special_tokens": True} if kind == "llava-next" else {},
            )
            out = self.out(kind, "server")
            answer_trials(self.trials(kind), model, "tiny", self.folder / f"{kind}.server.jsonl", out)
        finally:
            server.terminate()
            server.wait(timeout=60)
        return read_responses(out)


def wait_for(server: subprocess.Popen[Any], address: str, log: Path) -> None:
    ends = time.monotonic() + PATIENCE
    while time.monotonic() < ends:
        assert server.poll() is None, log.read_text()[-3000:]
        try:
            with urllib.request.urlopen(address, timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.5)
    raise AssertionError(f"the server is not there after {PATIENCE:.0f} s\n{log.read_text()[-3000:]}")


def make_trials(folder: Path) -> list[Trial]:
    """Every readout, with one, two and no picture, and one with its question before its picture."""
    import numpy as np
    from PIL import Image

    draw = np.random.default_rng(0)
    for number in range(4):  # of different shapes: their number of tokens follows it in LLaVA-NeXT
        Image.fromarray(draw.integers(0, 255, (40, 40 + 12 * number), dtype=np.uint8)).save(folder / f"{number}.png")
    shown = [picture_block(folder, str(number)) for number in range(4)]
    three = {"options": ("left lobe", "right lobe", "the heart"), "permutation": (2, 0, 1), "readout": "choice"}
    two = {"options": ("left lobe", "right lobe"), "permutation": (1, 0), "readout": "free-text"}
    trials = [make_trial(n, images=(shown[n],)) for n in range(3)]
    trials += [make_trial(n, images=(shown[0], shown[n - 2]), **three) for n in range(3, 6)]
    trials += [make_trial(n, images=(shown[n - 5],), readout="first-token") for n in range(6, 8)]
    trials += [make_trial(n, images=(shown[1],), **two) for n in range(8, 10)]
    trials += [make_trial(10), make_trial(11, **three)]
    return trials


def without_pictures(trial: Trial) -> Trial:
    blocks = [block.model_dump() for block in trial.blocks if block.image is None]
    return Trial.model_validate({**trial.model_dump(), "trial": "", "blocks": blocks, "image_study": None})


@pytest.fixture(scope="module")
def processes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    processes = Processes(tmp_path_factory.mktemp("vllm"), interpreter("OVERREAD_VLLM_PYTHON", ".venv-vllm"))
    folder = processes.folder
    for kind in (*KINDS, "gemma3"):
        make_checkpoint(kind, folder / kind)
    (folder / "d").mkdir()
    trials = make_trials(folder / "d")
    write_trials(trials, processes.trials("llava-next"))
    write_trials(map(without_pictures, trials), processes.trials("qwen3"))
    make_checkpoint("qwen2.5-vl", folder / "other", seed=1)
    other = processes.model("qwen2.5-vl", "other")
    probes = [*chosen(trials, 4), Probe(trials[0]), Probe(trials[0], negative=True)]
    kept = probes, reference._given(other, "other", probes, folder / "d")
    (folder / "qwen2.5-vl.json").write_text(processes.model("qwen2.5-vl").model_dump_json())
    (folder / "other.pickle").write_bytes(pickle.dumps(kept))

    processes.start("session", lambda: processes.run(str(ROOT / "tests/data/vllm_session.py"), str(folder)))
    processes.start("llava-next", lambda: processes.answer("llava-next"))
    processes.start("qwen3", lambda: processes.answer("qwen3"))
    processes.start("gemma3", lambda: processes.answer("gemma3"))
    for kind in KINDS:
        processes.start(f"{kind} server", lambda kind=kind: processes.serve(kind))
    yield processes
    processes.pool.shutdown(cancel_futures=True)


@pytest.fixture(scope="module")
def by_transformers(processes: Processes) -> Callable[[str], list[Response]]:
    """The responses of the transformers back end, in this process."""

    def answered(kind: str) -> list[Response]:
        out = processes.out(kind, "transformers")
        if not out.exists():
            model = make_model(processes.folder / kind, decoding=Decoding(max_tokens=12), **PIXELS.get(kind, {}))
            answer_trials(processes.trials(kind), model, kind, processes.folder / f"{kind}.transformers.jsonl", out)
        return read_responses(out)

    return answered


def the_same(one: list[Response], other: list[Response]) -> None:
    """Answers and counts are equal, and log-probabilities to 1e-4."""
    for a, b in zip(one, other, strict=True):
        assert (a.trial, a.status, a.answer, a.finish_reason) == (b.trial, b.status, b.answer, b.finish_reason)
        assert (a.prompt_tokens, a.completion_tokens) == (b.prompt_tokens, b.completion_tokens)
        assert (a.logprobs is None) == (b.logprobs is None)
        if a.logprobs is not None:
            assert b.logprobs == pytest.approx(a.logprobs, abs=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_vllm_gives_the_responses_of_transformers(
    kind: str, processes: Processes, by_transformers: Callable[[str], list[Response]]
) -> None:
    done = processes.result("session" if kind == "qwen2.5-vl" else kind)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    assert "parity: vLLM answers" in done.stderr
    wanted = by_transformers(kind)
    assert len({each.text for each in wanted}) > 3, "answers that are all alike would tell nothing"
    given = read_responses(processes.out(kind, "vllm"))
    the_same(wanted, given)
    assert [(each.text, each.image_tokens) for each in given] == [(each.text, each.image_tokens) for each in wanted]


@pytest.mark.parametrize("kind", KINDS)
def test_a_vllm_server_gives_the_responses_of_transformers(
    kind: str, processes: Processes, by_transformers: Callable[[str], list[Response]]
) -> None:
    wanted, given = by_transformers(kind), processes.result(f"{kind} server")
    the_same(wanted, given)
    for one, other in zip(wanted, given, strict=True):
        if one.finish_reason != "constrained":
            # A server decodes token by token, so bytes that are no text come out otherwise from the first of them on.
            assert other.text.strip().startswith(one.text.partition("\ufffd")[0].strip())


def test_a_model_that_vllm_runs_differently_stops_the_job_with_both_answers_shown(processes: Processes) -> None:
    """vLLM's CPU attention does not let a picture's tokens see those after them, as Gemma 3 does."""
    done = processes.result("gemma3")
    assert done.returncode != 0
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("overread: ")]
    assert "vLLM does not answer as transformers does: log-probabilities" in line
    assert "transformers gives '" in line and "vLLM (uncached) '" in line
    assert not processes.out("gemma3", "vllm").exists()
    assert not (processes.folder / "gemma3.jsonl").read_text()


@pytest.fixture(scope="module")
def session(processes: Processes) -> dict[str, Any]:
    done = processes.result("session")
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    seen: dict[str, Any] = json.loads((processes.folder / "session.json").read_text())
    return seen


def test_weights_that_are_not_those_of_the_reference_are_caught(session: dict[str, Any]) -> None:
    assert session["own weights"] is None
    assert "does not answer as transformers does" in session["other weights"]
    assert "transformers gives" in session["other weights"] and "vLLM (uncached)" in session["other weights"]


def test_a_cache_that_does_not_tell_pictures_apart_is_caught(session: dict[str, Any]) -> None:
    """The engine itself, told that all pictures are one: what it has not cached it answers rightly."""
    message = session["pictures of one name"]
    assert "does not answer as transformers does" in message
    assert "with its pictures inverted: transformers gives" in message and "vLLM (first)" in message


def test_a_trial_alone_is_answered_as_in_a_batch(session: dict[str, Any]) -> None:
    for together, alone in zip(session["together"], session["alone"], strict=True):
        assert (together["text"], together["chosen"]) == (alone["text"], alone["chosen"])
        assert together["logprobs"] == pytest.approx(alone["logprobs"], abs=1e-4)


def test_draws_depend_on_the_request_alone(session: dict[str, Any]) -> None:
    drawn = [each["text"] for each in session["drawn together"]]
    assert drawn == [each["text"] for each in session["drawn alone"]]
    assert drawn != [each["text"] for each in session["drawn in another run"]]
    assert len(set(drawn)) > 1


def test_an_answer_can_be_held_to_the_options(session: dict[str, Any]) -> None:
    for options, plain, json_ in zip(
        session["options"], session["held to the options"], session["held to JSON"], strict=True
    ):
        assert plain["text"] in options
        answer = json.loads(json_["text"])
        assert list(answer) == ["answer"] and answer["answer"] in options
        assert plain["logprobs"] is None and json_["logprobs"] is None


def test_what_is_wrong_with_a_trial_concerns_that_trial_alone(session: dict[str, Any]) -> None:
    lost, long, good = session["spoilt"]
    assert "no such picture" in lost["error"] and not lost["final"]
    assert "tokens" in long["error"] and long["final"]
    assert good["error"] is None
    assert good["text"] == session["sound"][0]["text"]


def test_the_account_tells_shared_tokens_from_those_that_were_prefilled(
    session: dict[str, Any], processes: Processes
) -> None:
    account = session["account"]
    responses = read_responses(processes.out("qwen2.5-vl", "vllm"))
    assert account["prompt_tokens"] == sum(each.prompt_tokens or 0 for each in responses)
    assert 0 < account["prefilled_tokens"] < account["prompt_tokens"]
    assert account["device"] == "CPU" and account["gpus"] == 0
    assert account["images_encoded"] == 4
    assert account["peak_bytes"] > 100e6
