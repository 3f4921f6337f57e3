"""Answering a trials file: asked once, kept, resumed, never made up."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from data.trials import make_trial
from overread.backends.base import Answer, Backend, LocalBackend, ServerBackend, guard_restricted, load
from overread.backends.calibrated import backend as calibrated
from overread.backends.calibrated.section import CalibratedModel, Reliance
from overread.backends.order import in_turn
from overread.core.account import read_cost
from overread.core.errors import BadInput, NotAnswered
from overread.core.records import Trial, read_responses, request_key, write_trials
from overread.responses import commands
from overread.responses.answering import Counts, answer_all, answer_trials

MODEL = CalibratedModel(label="c", backend="calibrated", reliance=Reliance(yes=0.5))


class Anywhere(Backend):
    """Says yes; fails for the questions it is told to; counts what it is asked. It does not say where trials go."""

    def __init__(self, fails: Sequence[str] = (), **identity: Any) -> None:
        self.fails, self._identity = fails, identity
        self.asked: list[str] = []

    def identity(self) -> dict[str, Any]:
        return self._identity

    def answer(self, trials: Sequence[Trial], folder: Path) -> Iterator[Answer]:
        for trial in trials:
            self.asked.append(trial.question)
            failed = trial.question in self.fails
            yield Answer(text="", error="connection refused") if failed else Answer(text="Yes", finish_reason="stop")


class Counting(Anywhere, LocalBackend):
    """One that stays here."""


class Server(Anywhere, ServerBackend):
    """One that sends trials to an address."""

    def __init__(self, endpoint: str) -> None:
        super().__init__()
        self._endpoint = endpoint

    @property
    def endpoint(self) -> str:
        return self._endpoint


class Place:
    """Paths of one job."""

    def __init__(self, folder: Path, trials: Sequence[Trial]) -> None:
        self.trials = folder / "d" / "trials" / "s" / "run-1.parquet"
        self.work, self.out = folder / "work" / "run-1.jsonl", folder / "d" / "responses" / "run-1.parquet"
        write_trials(trials, self.trials)

    def answer(self, back_end: Backend) -> Counts:
        return answer_trials(self.trials, MODEL, "m", self.work, self.out, backend=back_end)


def test_the_responses_stand_in_the_order_of_the_trials(tmp_path: Path) -> None:
    place = Place(tmp_path, [make_trial(number) for number in (3, 1, 2)])
    assert place.answer(Counting()) == Counts(asked=3, kept=0)
    responses = read_responses(place.out)
    assert [each.question for each in responses] == ["q1", "q2", "q3"]
    assert {(each.status, each.answer, each.choice, each.model, each.setting) for each in responses} == {
        ("answered", 0, 0, "m", "s")
    }


def test_what_was_answered_is_not_asked_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = Place(tmp_path, [make_trial(number) for number in range(5)])
    place.answer(Counting())
    before = place.out.read_bytes()
    again = Counting()
    assert place.answer(again) == Counts(asked=0, kept=5)
    assert again.asked == []
    assert place.out.read_bytes() == before
    assert capsys.readouterr().out.splitlines() == ["asked 5, kept 0", "asked 0, kept 5"]


def test_a_changed_question_is_asked_and_no_other(tmp_path: Path) -> None:
    trials = [make_trial(number) for number in range(5)]
    Place(tmp_path, trials).answer(Counting())
    changed = make_trial(2, question="q2-reworded")
    again = Counting()
    assert Place(tmp_path, [*trials[:2], changed, *trials[3:]]).answer(again) == Counts(asked=1, kept=4)
    assert again.asked == ["q2-reworded"]


@pytest.mark.parametrize("change", [{"weights": "b"}, {"version": 2}, {"dtype": "float32"}])
def test_another_identity_asks_everything_again(tmp_path: Path, change: dict[str, Any]) -> None:
    place = Place(tmp_path, [make_trial(number) for number in range(3)])
    place.answer(Counting(weights="a", version=1, dtype="bfloat16"))
    assert place.answer(Counting(**{"weights": "a", "version": 1, "dtype": "bfloat16", **change})).asked == 3


def test_failed_requests_are_missing_and_only_they_are_sent_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = Place(tmp_path, [make_trial(number) for number in range(6)])
    with pytest.raises(
        NotAnswered, match=r"2 of 6 requests to m failed, the first with: connection refused.*only these 2"
    ):
        place.answer(Counting(fails=["q1", "q4"]))
    assert not place.out.exists()
    assert capsys.readouterr().out == "asked 6, kept 0\n"
    again = Counting()
    assert place.answer(again) == Counts(asked=2, kept=4)
    assert again.asked == ["q1", "q4"]
    assert len(read_responses(place.out)) == 6


def test_a_crash_in_the_middle_keeps_what_came_before(tmp_path: Path) -> None:
    class Crashing(Counting):
        def answer(self, trials: Sequence[Trial], folder: Path) -> Iterator[Answer]:
            yield from super().answer(trials[:3], folder)
            raise RuntimeError("power cut")

    place = Place(tmp_path, [make_trial(number) for number in range(5)])
    with pytest.raises(RuntimeError, match="power cut"):
        place.answer(Crashing())
    assert not place.out.exists()
    assert place.answer(Counting()) == Counts(asked=2, kept=3)


def test_a_damaged_line_is_asked_again_and_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = Place(tmp_path, [make_trial(number) for number in range(4)])
    place.answer(Counting())
    lines = place.work.read_text().splitlines()
    entry = json.loads(lines[1])
    entry["answer"]["text"] = "No"
    place.work.write_text("\n".join([lines[0], json.dumps(entry), *lines[2:]]) + "\n")
    assert place.answer(Counting()) == Counts(asked=1, kept=3)
    assert "1 damaged line" in capsys.readouterr().err
    assert {each.text for each in read_responses(place.out)} == {"Yes"}


def test_a_killed_job_goes_on_where_it_stood(tmp_path: Path) -> None:
    """SIGKILL in the middle: the next run asks what was missing; its responses equal an undisturbed run's."""
    trials = [make_trial(number) for number in range(40)]
    killed, undisturbed = Place(tmp_path / "killed", trials), Place(tmp_path / "whole", trials)
    code = f"""
import time
from pathlib import Path
from overread.backends.calibrated.section import CalibratedModel, Reliance
from overread.responses.answering import answer_trials
from overread.backends.base import load

model = CalibratedModel(label="c", backend="calibrated", reliance=Reliance(yes=0.5))
back_end = load(model, "m")
quick = back_end.answer

def slow(trials, folder):
    for answer in quick(trials, folder):
        time.sleep(0.05)
        yield answer

back_end.answer = slow
place = [Path(each) for each in {[str(killed.trials), str(killed.work), str(killed.out)]!r}]
answer_trials(place[0], model, "m", *place[1:], backend=back_end)
"""
    job = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while not (killed.work.exists() and killed.work.read_bytes().count(b"\n") >= 5):
        assert time.monotonic() < deadline, "the job did not begin"
        time.sleep(0.01)
    os.kill(job.pid, signal.SIGKILL)
    job.wait()
    kept = killed.work.read_bytes().count(b"\n")
    assert 5 <= kept < 40
    assert not killed.out.exists()
    answer_trials(undisturbed.trials, MODEL, "m", undisturbed.work, undisturbed.out)
    assert answer_trials(killed.trials, MODEL, "m", killed.work, killed.out) == Counts(asked=40 - kept, kept=kept)
    assert killed.out.read_bytes() == undisturbed.out.read_bytes()


def test_a_rerun_with_everything_answered_loads_no_weights(tmp_path: Path) -> None:
    """Not even torch: the identity of a folder of weights is read off its files."""
    weights = tmp_path / "weights"
    weights.mkdir()
    (weights / "config.json").write_text("{}")
    place = Place(tmp_path, [make_trial(number) for number in range(3)])
    code = f"""
import sys
from pathlib import Path
from overread.backends.transformers.section import TransformersModel
from overread.responses.answering import answer_trials
from overread.backends.base import Answer, load

model = TransformersModel(label="t", backend="transformers", weights={str(weights)!r})
place = [Path({str(place.trials)!r}), model, "t", Path({str(place.work)!r}), Path({str(place.out)!r})]
back_end = load(model, "t")
back_end.as_they_come = lambda trials, folder, job: enumerate(Answer(text="no") for _ in trials)
assert answer_trials(*place, backend=back_end).asked == 3
assert answer_trials(*place).kept == 3
print(sorted({{"torch", "transformers", "PIL"}} & set(sys.modules)))
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.splitlines() == ["asked 3, kept 0", "asked 0, kept 3", "[]"]


def test_weights_that_changed_ask_again(tmp_path: Path) -> None:
    from overread.backends.transformers.section import TransformersModel

    model = TransformersModel(label="t", backend="transformers", weights=str(tmp_path))
    (tmp_path / "model.safetensors").write_bytes(b"one")
    first = load(model, "t").identity()
    (tmp_path / "README.md").write_text("about")
    assert load(model, "t").identity() == first
    (tmp_path / "model.safetensors").write_bytes(b"two")
    assert load(model, "t").identity() != first


def test_a_folder_of_weights_is_known_by_its_content_wherever_it_lies(tmp_path: Path) -> None:
    from overread.backends.transformers.section import TransformersModel

    identities = []
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "model.safetensors").write_bytes(b"one")
        model = TransformersModel(label=name, backend="transformers", weights=str(tmp_path / name), batch=len(name))
        identities.append(load(model, name).identity())
    assert identities[0] == identities[1]


@given(st.permutations(range(6)))
def test_keys_do_not_depend_on_the_order_of_the_trials(order: list[int]) -> None:
    keys = {number: request_key({}, make_trial(number)) for number in range(6)}
    assert {number: request_key({}, make_trial(number)) for number in order} == keys
    assert len(set(keys.values())) == 6


def test_a_key_tells_questions_runs_and_content_apart_but_not_settings() -> None:
    base = make_trial(0)
    assert request_key({}, base) == request_key({}, make_trial(0, setting="another"))
    others = [make_trial(0, run=2), make_trial(0, question="q9"), make_trial(0, readout="first-token")]
    assert len({request_key({}, each) for each in [base, *others]}) == 4
    assert request_key({"dtype": "float32"}, base) != request_key({"dtype": "bfloat16"}, base)


@pytest.mark.parametrize(
    "endpoint", ["http://127.0.0.1:8000/v1", "http://localhost:8000", "http://[::1]:9", "https://192.0.2.7/v1"]
)
def test_restricted_data_go_to_this_machine_and_to_attested_endpoints(endpoint: str) -> None:
    guard_restricted([make_trial(restricted=True)], Server(endpoint), ["https://192.0.2.7/v1/"])
    guard_restricted([make_trial(restricted=True)], Counting())


@pytest.mark.parametrize(
    "endpoint",
    ["https://192.0.2.9/v1", "http://10.0.0.1/v1", "https://192.0.2.7/v2", "http://192.0.2.7/v1"],
)
def test_restricted_data_reach_no_other_endpoint(tmp_path: Path, endpoint: str) -> None:
    place = Place(tmp_path, [make_trial(0), make_trial(1, restricted=True)])
    back_end = Server(endpoint)
    with pytest.raises(BadInput, match="nothing was sent"):
        answer_trials(
            place.trials, MODEL, "m", place.work, place.out, attested=["https://192.0.2.7/v1"], backend=back_end
        )
    assert back_end.asked == []
    guard_restricted([make_trial(0)], back_end)


def test_a_back_end_that_does_not_say_where_trials_go_gets_no_restricted_one(tmp_path: Path) -> None:
    """It neither stays here nor names a server: an attested endpoint is no word about it."""
    place = Place(tmp_path, [make_trial(0), make_trial(1, restricted=True)])
    back_end = Anywhere()
    with pytest.raises(BadInput, match=r"dataset d is restricted, and the back end Anywhere does not say where"):
        answer_trials(
            place.trials, MODEL, "m", place.work, place.out, attested=["https://192.0.2.7/v1"], backend=back_end
        )
    assert back_end.asked == [] and not place.out.exists()
    open_ = Place(tmp_path / "open", [make_trial(0)])
    assert answer_trials(open_.trials, MODEL, "m", open_.work, open_.out, backend=back_end).asked == 1


def test_a_back_end_names_its_endpoint_or_is_none() -> None:
    class Nameless(Anywhere, ServerBackend):
        pass

    with pytest.raises(TypeError, match="endpoint"):
        Nameless()


def test_a_section_that_says_its_trials_stay_needs_a_back_end_that_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    class Elsewhere(Server):
        def __init__(self, model: object, model_id: str) -> None:
            super().__init__("https://192.0.2.7/v1")

    monkeypatch.setattr(calibrated, "CalibratedBackend", Elsewhere)
    with pytest.raises(BadInput, match=r"stay on this machine, and CalibratedBackend does not extend LocalBackend"):
        load(MODEL, "m")


def test_the_command_answers_and_says_so(tmp_path: Path) -> None:
    place = Place(tmp_path, [make_trial(number) for number in range(3)])
    arguments = [
        "answer",
        str(place.trials),
        "--model",
        MODEL.model_dump_json(),
        "--id",
        "m",
        "--work",
        str(place.work),
        "--out",
        str(place.out),
    ]
    result = CliRunner().invoke(commands.app, arguments)
    assert result.exit_code == 0
    assert "asked 3, kept 0" in result.output
    assert len(read_responses(place.out)) == 3


def test_the_command_names_what_is_wrong_with_a_model() -> None:
    arguments = [
        "answer",
        "x.parquet",
        "--model",
        '{"backend": "calibrated", "label": "c"}',
        "--id",
        "m",
        "--work",
        "w",
        "--out",
        "o",
    ]
    result = CliRunner().invoke(commands.app, arguments)
    assert isinstance(result.exception, BadInput)
    assert "reliance" in str(result.exception)


def test_several_files_are_answered_by_one_back_end(tmp_path: Path) -> None:
    folder = tmp_path / "d"
    runs = {"s": 2, "t": 1}
    for setting, run in (("s", 1), ("s", 2), ("t", 1)):
        trials = [make_trial(number, setting=setting, run=run) for number in range(3)]
        write_trials(trials, folder / "trials" / setting / f"run-{run}.parquet")
    back_end = Counting(fails=["q1"])
    with pytest.raises(NotAnswered, match=r"3 of 3 files lack answers"):
        answer_all(folder, MODEL, "m", runs, tmp_path / "work", backend=back_end)
    assert len(back_end.asked) == 9, "a failed request in one file stops no other file"
    again = Counting()
    assert answer_all(folder, MODEL, "m", runs, tmp_path / "work", backend=again) == [Counts(asked=1, kept=2)] * 3
    assert again.asked == ["q1"] * 3
    for setting, run in (("s", 1), ("s", 2), ("t", 1)):
        path = folder / "responses" / "m" / setting / f"run-{run}.parquet"
        assert {(each.setting, each.run) for each in read_responses(path)} == {(setting, run)}
        cost = read_cost(path.with_suffix(".cost.json"))
        assert (cost.requests, cost.jobs) == (3, 2)


def test_answers_that_come_in_any_order_are_given_in_turn_and_none_waits_for_a_later_one() -> None:
    given: list[str] = []
    come = iter([(2, "c"), (0, "a"), (1, "b"), (3, "d")])
    turns = in_turn(come)
    given.append(next(turns))
    assert list(come) == [(1, "b"), (3, "d")]  # a was given before these were looked at
    assert given == ["a"]
    assert list(in_turn([(2, "c"), (0, "a"), (1, "b"), (3, "d")])) == ["a", "b", "c", "d"]
