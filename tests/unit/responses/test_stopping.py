"""A job that SLURM warns keeps what is on its way, ends by itself, and the next attempt asks nothing twice."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from data.batch_provider import BatchProvider
from data.endpoint_calls import QUICK, calls, echo
from data.openai_job import Place, choice, openai_model
from data.openai_server import Asked, Completion, Happening, OpenaiServer, Status
from data.trials import make_model, make_trial
from overread.backends.base import Answer, LocalBackend, load
from overread.backends.calibrated.section import CalibratedModel, Reliance
from overread.backends.transport.asking import ask
from overread.backends.transport.client import ChatClient
from overread.core.errors import BadInput, Stopped
from overread.core.guard import clear
from overread.core.records import Trial, read_responses, write_trials
from overread.core.stopping import heeding_warnings, until_warned, warned
from overread.core.work import KeptAnswers
from overread.responses.answering import answer_all, answer_trials

COUNT = 40


def right(asked: Asked) -> Completion:
    return Completion('{"answer": "1"}')


def warn() -> None:
    os.kill(os.getpid(), signal.SIGTERM)


def started(place: Place, server: OpenaiServer, requests: int, **environment: str) -> subprocess.Popen[str]:
    """The command as a job runs it, when the server has seen so many requests."""
    command = [sys.executable, "-m", "overread", *place.command(openai_model(server.endpoint))]
    job = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **environment}
    )
    deadline = time.monotonic() + 60
    while len(server.asked) < requests and time.monotonic() < deadline and job.poll() is None:
        time.sleep(0.02)
    assert len(server.asked) >= requests, job.communicate()
    return job


def test_a_warned_job_keeps_what_was_on_its_way_and_a_rerun_asks_nothing_twice(tmp_path: Path) -> None:
    place = Place(tmp_path, [choice(number) for number in range(COUNT)])
    with OpenaiServer(right, latency=0.3) as server:
        job = started(place, server, 10, SLURM_JOB_ID="7")
        job.send_signal(signal.SIGTERM)
        _, said = job.communicate(timeout=60)
        sent = len(server.asked)
        assert job.returncode == 75
        assert sent < COUNT
        last = said.splitlines()[-1]
        assert last.endswith(
            f"stopped by SLURM's warning: {sent} of {COUNT} answered; the next attempt goes on from there"
        )
        assert len(place.kept) == sent
        assert not place.out.exists()

        server.latency = 0.0
        again = started(place, server, sent + 1)
        output, said = again.communicate(timeout=60)
        assert again.returncode == 0, said
        assert f"asked {COUNT - sent}, kept {sent}" in output
        assert set(server.counts.values()) == {1} and len(server.counts) == COUNT
    assert len(place.responses) == COUNT


def test_a_warned_job_does_not_wait_for_a_server_that_is_down(tmp_path: Path) -> None:
    """Its tries would go on for minutes: SLURM kills it before that."""
    place = Place(tmp_path, [choice(number) for number in range(COUNT)])
    with OpenaiServer(lambda asked: Status(503, headers={"retry-after": "50"})) as server:
        job = started(place, server, 3)
        job.send_signal(signal.SIGTERM)
        began = time.monotonic()
        _, said = job.communicate(timeout=40)
    assert time.monotonic() - began < 20
    assert job.returncode == 75
    assert f"0 of {COUNT} answered" in said


def test_a_warned_job_leaves_its_batches_with_the_provider_and_finds_them_again(tmp_path: Path) -> None:
    place = Place(tmp_path, [choice(number) for number in range(3)])
    ready: list[bool] = []
    provider = BatchProvider(right, ready=lambda: bool(ready))
    with OpenaiServer(right, also=provider) as server:
        model = openai_model(server.endpoint, batch_api=True)
        with heeding_warnings():
            threading.Timer(1.0, warn).start()
            with pytest.raises(Stopped, match="0 of 3 answered"):
                place.ask(model)
        assert len(provider.uploaded) == 1
        ready.append(True)
        place.ask(model)
        assert len(provider.uploaded) == 1
    assert len(place.responses) == 3


def test_the_author_of_questions_stops_in_the_same_way(tmp_path: Path) -> None:
    def script(asked: Asked) -> Happening:
        if len(server.asked) == 6:
            warn()
        return echo(asked)

    server = OpenaiServer(script, latency=0.05)
    work = tmp_path / "work.jsonl"
    with server:
        client = ChatClient(clear(server.endpoint, restricted=True), "m", {}, patience=replace(QUICK, in_flight=2))
        with heeding_warnings(), pytest.raises(Stopped) as told:
            ask(client, calls(30), work, "author, 30 studies")
        found = re.search(r"author, 30 studies: stopped by .*: (\d+) of 30 answered", str(told.value))
        assert found is not None
        assert 6 <= int(found[1]) == server.counts.total() < 30
        done = ask(client, calls(30), work, "author, 30 studies")
        assert (done.asked, done.kept) == (30 - int(found[1]), int(found[1]))
        assert set(server.counts.values()) == {1}


@pytest.fixture
def warned_after_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """The warning comes when the first answer has been kept."""
    append, times = KeptAnswers.append, iter([True])

    def appended(self: KeptAnswers[Any], request: str, answer: Any) -> None:
        append(self, request, answer)
        if next(times, False):
            warn()

    monkeypatch.setattr(KeptAnswers, "append", appended)


@pytest.mark.parametrize("share", [True, False], ids=["shared beginnings", "plain batches"])
@pytest.mark.usefixtures("warned_after_the_first")
def test_weights_on_this_machine_finish_their_batch_and_keep_all_of_it(
    tmp_path: Path, gemma: Path, share: bool
) -> None:
    trials = [make_trial(number) for number in range(12)]
    path, work, out = tmp_path / "d/trials/s/run-1.parquet", tmp_path / "w.jsonl", tmp_path / "out.parquet"
    write_trials(trials, path)
    model = make_model(gemma, batch=3, share_prefix=share)
    with heeding_warnings(), pytest.raises(Stopped) as told:
        answer_trials(path, model, "g", work, out)
    kept = len(work.read_bytes().splitlines())
    assert f"{kept} of 12 answered" in str(told.value)
    assert 1 <= kept < 12
    counts = answer_trials(path, model, "g", work, out)
    assert (counts.asked, counts.kept) == (12 - kept, kept)
    assert [each.question for each in read_responses(out)] == [
        each.question for each in sorted(trials, key=lambda one: one.question)
    ]


@pytest.mark.usefixtures("warned_after_the_first")
def test_a_model_that_is_loaded_once_for_several_files_stops_at_the_first_that_lacks_answers(tmp_path: Path) -> None:
    folder = tmp_path / "d"
    for run in (1, 2):
        write_trials([make_trial(number, run=run) for number in range(3)], folder / f"trials/s/run-{run}.parquet")
    model = CalibratedModel(label="c", backend="calibrated", reliance=Reliance(yes=0.5))
    with heeding_warnings(), pytest.raises(Stopped, match=r"run-1\.parquet.*1 of 3"):
        answer_all(folder, model, "m", {"s": 2}, tmp_path / "work")
    assert not list(folder.glob("responses/**/*.parquet"))
    counts = answer_all(folder, model, "m", {"s": 2}, tmp_path / "work")
    assert [(each.asked, each.kept) for each in counts] == [(2, 1), (3, 0)]


class Dying(LocalBackend):
    """Its own processes are warned too, and die of it."""

    def identity(self) -> dict[str, Any]:
        return {}

    def answer(self, trials: Sequence[Trial], folder: Path) -> Iterator[Answer]:
        yield Answer(text="Yes", finish_reason="stop")
        raise BadInput("the engine died")


def answering(tmp_path: Path) -> Callable[[], object]:
    path = tmp_path / "d/trials/s/run-1.parquet"
    write_trials([make_trial(number) for number in range(3)], path)
    model = CalibratedModel(label="c", backend="calibrated", reliance=Reliance(yes=0.5))
    return lambda: answer_trials(path, model, "m", tmp_path / "w.jsonl", tmp_path / "o.parquet", backend=Dying())


@pytest.mark.usefixtures("warned_after_the_first")
def test_an_engine_that_dies_of_the_warning_is_no_fault(tmp_path: Path) -> None:
    with heeding_warnings(), pytest.raises(Stopped, match="1 of 3 answered"):
        answering(tmp_path)()


def test_an_engine_that_dies_without_a_warning_is_one(tmp_path: Path) -> None:
    with heeding_warnings(), pytest.raises(BadInput, match="the engine died"):
        answering(tmp_path)()


def test_the_last_answer_came_with_the_warning_and_the_job_is_done(tmp_path: Path) -> None:
    path, out = tmp_path / "d/trials/s/run-1.parquet", tmp_path / "o.parquet"
    write_trials([make_trial(0)], path)
    model = CalibratedModel(label="c", backend="calibrated", reliance=Reliance(yes=0.5))
    back_end = load(model, "m")
    with heeding_warnings():
        answer = back_end.answer

        def answered(trials: Sequence[Trial], folder: Path) -> Iterator[Answer]:
            for each in answer(trials, folder):
                warn()
                yield each

        back_end.answer = answered  # type: ignore[method-assign]
        answer_trials(path, model, "m", tmp_path / "w.jsonl", out, backend=back_end)
        assert warned()
    assert len(read_responses(out)) == 1


def test_without_a_warning_all_items_come() -> None:
    with heeding_warnings():
        assert list(until_warned(range(5))) == [0, 1, 2, 3, 4]
        assert not warned()


def test_after_it_the_signal_means_what_it_meant_before() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with heeding_warnings():
        warn()
        assert warned()
        assert list(until_warned([1])) == []
    assert signal.getsignal(signal.SIGTERM) is before
    assert not warned()
