"""What goes wrong between a job and its server: nothing is lost or sent twice after success, and one line says it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from data.openai_job import Place, choice, openai_model, picture
from data.openai_server import Asked, Completion, Drip, Faults, Happening, OpenaiServer, Raw, Reset, Stall, Status
from overread.backends.transport.client import Patience
from overread.config import Decoding
from overread.core.errors import BadInput, NotAnswered
from overread.responses.answering import Counts

GOOD = Completion('{"answer": "2"}')
BODY = b'{"choices": [{"message": {"content": "2"}, "finish_reason": "stop"}], "usage": %s}'
FAULTS: dict[str, Happening] = {
    "429 with Retry-After": Status(429, {"code": "rate_limit_exceeded"}, {"retry-after": "0.1"}),
    "500": Status(500),
    "503": Status(503, {"code": "overloaded"}),
    "reset in the middle of the body": Reset(),
    "reset before the answer": Reset(mid_body=False),
    "no answer in time": Stall(30.0),
    "an answer that never ends": Drip(30.0),
    "truncated JSON": Raw(b'{"choices": [{"message": {"content": "2"}, "fini'),
    "wrong schema": Raw(b'{"choices": [{"message": {"content": 2}}]}'),
    "an error page": Raw(b"<html>busy</html>", "text/html"),
    "a key that stands twice": Raw(BODY % b'{"prompt_tokens": 1, "prompt_tokens": 2}'),
    "NaN": Raw(BODY % b'{"prompt_tokens": NaN}'),
}


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def good(asked: Asked) -> Completion:
    return GOOD


def trials(count: int, **changes: Any) -> list[Any]:
    return [choice(number, **changes) for number in range(count)]


def times_asked(server: OpenaiServer) -> dict[str, int]:
    """How often the server was asked about each brain."""
    counts: dict[str, int] = {}
    for asked in server.asked:
        brain = asked.user.split("brain ")[1].split("?")[0]
        counts[brain] = counts.get(brain, 0) + 1
    return counts


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_fault_is_survived_and_nothing_is_sent_twice_after_success(tmp_path: Path, fault: Happening) -> None:
    hangs = isinstance(fault, Stall | Drip)
    with OpenaiServer(Faults(good, {"brain 3?": (fault, fault)})) as server:
        place = Place(tmp_path, trials(8))
        patience = Patience(tries=5, first_wait=0.01, longest_wait=0.05, timeout=0.5 if hangs else 20.0)
        assert place.ask(openai_model(server.endpoint), patience) == Counts(8, 0)
        assert times_asked(server) == {str(n): 3 if n == 3 else 1 for n in range(8)}
    assert [response.answer for response in place.responses] == [1] * 8


def test_a_parameter_that_the_model_does_not_take_is_left_out_said_and_kept_beside_the_answer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with OpenaiServer(good, refuses={"temperature": None, "max_tokens": "max_completion_tokens"}) as server:
        place = Place(tmp_path, trials(5))
        place.ask(openai_model(server.endpoint, batch=1))
        assert len(server.asked) == 7
        assert server.asked[-1].body["max_completion_tokens"] == 64
    said = "max_tokens sent as max_completion_tokens; temperature left out"
    assert {one["adjusted"] for one in place.kept} == {said}
    assert {one["served_by"] for one in place.kept} == {"m-1-served"}
    assert capsys.readouterr().err.count("does not take") == 2


def test_a_server_that_dies_and_comes_back_is_waited_for(tmp_path: Path) -> None:
    with OpenaiServer(good, latency=0.02) as server:

        def accident() -> None:
            while len(server.asked) < 10:
                time.sleep(0.005)
            server.die()
            time.sleep(0.3)
            server.come_back()

        thread = threading.Thread(target=accident)
        thread.start()
        place = Place(tmp_path, trials(40))
        assert place.ask(openai_model(server.endpoint), Patience(tries=12, first_wait=0.05, longest_wait=0.2)) == (
            40,
            0,
        )
        thread.join()
        assert set(server.answered.values()) == {1}
    assert len(place.responses) == 40


def test_a_request_that_always_fails_holds_up_no_other_and_the_next_job_sends_it_alone(tmp_path: Path) -> None:
    sick = Faults(good, {"brain 2?": [Status(500, {"type": "server_error", "message": "brain 2 secret"})] * 5})
    with OpenaiServer(sick) as server:
        place, model = Place(tmp_path, trials(6)), openai_model(server.endpoint)
        with pytest.raises(
            NotAnswered, match=r"1 of 6 requests to m failed.*status 500, server_error \(5 tries\)"
        ) as one:
            place.ask(model)
        assert "secret" not in str(one.value)
        assert not place.out.exists()
        assert place.ask(model) == Counts(1, 5)
        assert times_asked(server) == {str(n): 6 if n == 2 else 1 for n in range(6)}


def test_a_prompt_that_is_too_long_is_kept_as_failed_and_never_sent_again(tmp_path: Path) -> None:
    long = Status(400, {"code": "context_length_exceeded", "message": "maximum context length is 9 tokens"})
    with OpenaiServer(Faults(good, {"brain 1?": [long] * 9})) as server:
        place, model = Place(tmp_path, trials(3)), openai_model(server.endpoint)
        assert (place.ask(model), place.ask(model)) == ((3, 0), (0, 3))
        assert len(server.asked) == 3
    one = place.responses[1]
    assert (one.status, one.answer) == ("failed", None)
    assert "longer than the model takes" in str(one.error)


def after(answered: int, then: Happening) -> Callable[[Asked], Happening]:
    """Good until so many requests have come, and then the same thing for ever."""
    met: list[Asked] = []

    def script(asked: Asked) -> Happening:
        met.append(asked)
        return GOOD if len(met) <= answered else then

    return script


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (Status(401, {"code": "invalid_api_key"}), "status 401, invalid_api_key: the key is not accepted"),
        (Status(403, {"code": "account_deactivated"}), "the key is not accepted"),
        (Status(404, {"code": "model_not_found"}), "the server knows no such address or model"),
        (Status(429, {"code": "insufficient_quota"}), "the account's quota is used up"),
    ],
)
def test_a_key_revoked_or_a_model_retired_in_the_middle_ends_the_job_with_one_line_and_loses_nothing(
    tmp_path: Path, status: Status, reason: str
) -> None:
    place = Place(tmp_path, trials(30))
    with OpenaiServer(after(10, status)) as server:
        model = openai_model(server.endpoint, batch=2)
        with pytest.raises(NotAnswered) as caught:
            place.ask(model)
        assert len(server.asked) <= 13
        sent = times_asked(server)
        server.script = good
        assert "\n" not in str(caught.value)
        assert reason in str(caught.value)
        assert "20 of 30 requests to m failed" in str(caught.value)
        assert "the same command again sends only these 20" in str(caught.value)
        assert len(place.kept) == 10
        assert place.ask(model) == Counts(20, 10)
        assert sum(times_asked(server).values()) - sum(sent.values()) == 20
    assert [response.answer for response in place.responses] == [1] * 30


PRICES = {"input": 100.0, "output": 1000.0}
"""A reply of 10 tokens to 90 costs 0.009 + 0.01 = 0.019 dollars."""
TEN = Decoding(temperature=0, max_tokens=10)


def priced(asked: Asked) -> Completion:
    return Completion('{"answer": "2"}', tokens=(90, 10, 0))


def test_a_budget_ends_the_job_cleanly_and_a_larger_one_goes_on(tmp_path: Path) -> None:
    place = Place(tmp_path, trials(40))
    with OpenaiServer(priced, latency=0.01) as server:

        def model(dollars: float) -> Any:
            return openai_model(server.endpoint, prices=PRICES, budget_dollars=dollars, decoding=TEN, batch=3)

        with pytest.raises(NotAnswered) as caught:
            place.ask(model(0.2))
        # Ten cost 0.19, and the eleventh would bring it to 0.209.
        assert len(server.asked) == len(place.kept) == 10
        assert "\n" not in str(caught.value)
        assert "the budget does not hold another request (0.2 dollars" in str(caught.value)
        assert "raise budget_dollars" in str(caught.value)
        with pytest.raises(NotAnswered):
            place.ask(model(0.2))
        assert len(server.asked) == 10, "a rerun got a fresh budget"
        assert place.ask(model(5.0)) == Counts(30, 10)
        assert times_asked(server) == {str(n): 1 for n in range(40)}
    entries = [json.loads(line) for line in place.ledger.read_text().splitlines()]
    assert sum(entry["dollars"] for entry in entries if "settle" in entry) == pytest.approx(40 * 0.019)


def test_no_budget_is_ever_overdrawn_by_requests_that_fly_together(tmp_path: Path) -> None:
    with OpenaiServer(priced, latency=0.05) as server:
        model = openai_model(server.endpoint, prices=PRICES, budget_dollars=0.1, decoding=TEN, batch=16)
        with pytest.raises(NotAnswered):
            Place(tmp_path, trials(30)).ask(model)
        assert len(server.asked) == 5  # 0.095 dollars


def test_the_jobs_of_a_model_share_its_budget(tmp_path: Path) -> None:
    with OpenaiServer(priced) as server:
        model = openai_model(server.endpoint, budget_tokens=1_250, decoding=TEN)
        first = Place(tmp_path, trials(5), "run-1")
        first.ask(model)
        second = Place(tmp_path, trials(40, run=2), "run-2")
        with pytest.raises(NotAnswered, match="raise budget_tokens"):
            second.ask(model)
        assert len(server.asked) == 12
        assert len(second.kept) == 7


def test_a_ledger_that_is_gone_is_made_again_from_the_kept_answers(tmp_path: Path) -> None:
    with OpenaiServer(priced) as server:
        place = Place(tmp_path, trials(40))
        model = openai_model(server.endpoint, budget_tokens=1_000, decoding=TEN)
        with pytest.raises(NotAnswered):
            place.ask(model)
        assert len(server.asked) == 9  # the tenth prompt's estimate is a tenth above what the others were
        place.ledger.unlink()
        with pytest.raises(NotAnswered):
            place.ask(model)
        assert len(server.asked) == 9


def test_an_answer_that_was_lost_on_its_way_counts_as_paid(tmp_path: Path) -> None:
    """The server may have charged it. One whose request was turned away costs nothing."""
    with OpenaiServer(Faults(priced, {"brain 0?": [Reset()], "brain 1?": [Status(500)]})) as server:
        place = Place(tmp_path, trials(2))
        model = openai_model(server.endpoint, budget_tokens=100_000, decoding=TEN, batch=1)
        place.ask(model)
    entries = [json.loads(line) for line in place.ledger.read_text().splitlines()]
    reserved = {entry["reserve"] for entry in entries if "reserve" in entry}
    settled = {entry["settle"]: entry["tokens"] for entry in entries if "settle" in entry}
    assert len(reserved) == 4
    assert len(reserved - set(settled)) == 1
    assert sorted(settled.values()) == [0, 100, 100]


def test_restricted_trials_reach_no_server_that_nobody_vouches_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    place = Place(tmp_path, [choice(0), choice(1, restricted=True)])
    model = openai_model("https://192.0.2.7/v1")
    with pytest.raises(
        BadInput, match=r"dataset d is restricted and https://192.0.2.7/v1 is not on this machine: nothing"
    ):
        place.ask(model)
    with pytest.raises(BadInput, match="nothing was sent"):
        place.ask(model, attested=["https://192.0.2.7/v2"])
    assert not place.work.exists()


def test_restricted_trials_go_to_this_machine_and_to_an_attested_address(tmp_path: Path) -> None:
    place = Place(tmp_path, [choice(0, restricted=True)])
    with OpenaiServer(good) as server:
        assert place.ask(openai_model(server.endpoint)) == (1, 0)
    with pytest.raises(BadInput, match="needs a key"):  # past the guard; nothing is sent without a key
        Place(tmp_path / "other", [choice(0, restricted=True)]).ask(
            openai_model("https://192.0.2.7/v1"), attested=["https://192.0.2.7/v1"]
        )


def run_command(place: Place, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "overread", *arguments], capture_output=True, text=True, check=False,
        env={**os.environ, **environment}, cwd=place.folder,
    )  # fmt: skip


def test_a_killed_job_goes_on_and_sends_only_what_is_missing(tmp_path: Path) -> None:
    """SIGKILL in the middle, through the command: what was kept is not sent again, and the responses are whole."""
    shown = picture(tmp_path, "one")
    place = Place(tmp_path, [choice(n, (0, 1, 2, 3), shown) for n in range(60)])
    with OpenaiServer(good, latency=0.05) as server:
        model = openai_model(server.endpoint, batch=3)
        job = subprocess.Popen(
            [sys.executable, "-m", "overread", *place.command(model)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + 60
        while len(place.kept) < 9:
            assert time.monotonic() < deadline, "the job did not begin"
            time.sleep(0.01)
        os.kill(job.pid, signal.SIGKILL)
        job.wait()
        kept = len(place.work.read_bytes().rsplit(b"\n", 1)[0].splitlines())
        assert 9 <= kept < 60
        assert not place.out.exists()
        before = len(server.asked)
        ended = run_command(place, *place.command(model))
        assert ended.returncode == 0, ended.stderr
        assert ended.stdout == f"asked {60 - kept}, kept {kept}\n"
        assert len(server.asked) - before == 60 - kept
        counts = times_asked(server)
    # Only those on their way when the job died were sent again.
    assert sum(times - 1 for times in counts.values()) <= 3
    assert max(counts.values()) <= 2
    assert [response.answer for response in place.responses] == [1] * 60


def test_the_command_says_in_one_line_what_is_wrong_and_no_word_of_key_prompt_or_report(tmp_path: Path) -> None:
    secret = {"message": "prompt was: Question: Which lobe of brain 0? sk-very-secret Zebra findings"}
    script = Faults(after(3, Status(401, secret)), {"brain 1?": [Status(500, secret), Reset()]})
    report = choice(0).blocks[0].model_copy(update={"role": "report", "text": "Zebra findings"})
    place = Place(tmp_path, [choice(n, (0, 1, 2, 3), report, restricted=True) for n in range(12)])
    with OpenaiServer(script, key="sk-very-secret", refuses={"temperature": None}) as server:
        model = openai_model(server.endpoint, batch=1, prices=PRICES, budget_dollars=5)
        ended = run_command(
            place, *place.command(model), OPENAI_API_KEY="sk-very-secret", OPENAI_LOG="debug", PYTHONDEVMODE="1"
        )
    assert ended.returncode == 1
    lines = ended.stderr.splitlines()
    assert "Traceback" not in ended.stderr
    assert "the key is not accepted" in lines[-1]
    written = [path.read_bytes() for path in (place.work, place.ledger)]
    for said in (ended.stdout, ended.stderr, *(each.decode() for each in written)):
        for word in ("sk-very-secret", "Zebra", "Which lobe", "base64"):
            assert word not in said


def test_the_command_answers_from_end_to_end(tmp_path: Path) -> None:
    shown, orders = picture(tmp_path, "one"), [(0, 1, 2, 3), (3, 1, 0, 2), (1, 2, 3, 0)]
    place = Place(tmp_path, [choice(n, order, shown) for n, order in enumerate(orders)])
    with OpenaiServer(good) as server:
        ended = run_command(place, *place.command(openai_model(server.endpoint)))
        assert ended.returncode == 0, ended.stderr
        again = run_command(place, *place.command(openai_model(server.endpoint)))
        assert len(server.asked) == 3
    assert (ended.stdout, again.stdout) == ("asked 3, kept 0\n", "asked 0, kept 3\n")
    assert [(one.answer, one.choice, one.status) for one in place.responses] == [
        (1, 1, "answered"), (1, 1, "answered"), (1, 2, "answered"),
    ]  # fmt: skip
