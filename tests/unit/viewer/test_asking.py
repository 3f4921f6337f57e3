"""The queue of questions of one's own, and the process that answers them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from data.asked_run import MODELS, trial_of
from overread.backends.calibrated.section import CalibratedModel
from overread_viewer.asking import Asking, Call, TooMany

STAND_IN = """#!{python}
import json, os, sys, time
for line in sys.stdin:
    asked = json.loads(line)
    what = asked["trial"]["blocks"][0]["text"]
    with open({log!r}, "a") as log:
        print(os.getpid(), what, file=log)
    if what == "sleep":
        time.sleep(600)
    if what == "die":
        print("a first line\\nout of memory on the device", file=sys.stderr, flush=True)
        sys.exit(3)
    trial = asked["trial"]
    reply = dict(request="r", trial=trial["trial"], question=trial["question"], dataset="d", model="m", setting="x",
                 run=1, text=str(os.getpid()), status="unparsed", answer=None, choice=None)
    print(json.dumps({{"response": reply}}), flush=True)
"""


@pytest.fixture
def stand_in(tmp_path: Path) -> Callable[..., Call]:
    """Calls to an interpreter that is a script: it answers with its process id, sleeps or dies as it is asked."""
    script, log = tmp_path / "python", tmp_path / "log"
    script.write_text(STAND_IN.format(python=sys.executable, log=str(log)))
    script.chmod(0o755)

    def call(what: str, model: str = "m") -> Call:
        trial = trial_of(blocks=[{"role": "question", "text": what}])
        return Call(trial, model, {"model": model}, tmp_path, tmp_path / "l", tmp_path / "s", python=str(script))

    call.log = log  # type: ignore[attr-defined]
    return call


def over(asking: Asking, call: Call, seconds: float = 30) -> Any:
    return until_over(asking.put(call, {}), seconds)


def until_over(asked: Any, seconds: float = 30) -> Any:
    until = time.monotonic() + seconds
    while not asked.over:
        assert time.monotonic() < until, asked.state
        time.sleep(0.02)
    return asked


def started(call: Any, lines: int) -> list[str]:
    until = time.monotonic() + 30
    while time.monotonic() < until:
        if call.log.exists() and len(found := call.log.read_text().splitlines()) >= lines:
            return found
        time.sleep(0.02)
    raise AssertionError("the process did not begin")


def gone(pid: int) -> bool:
    until = time.monotonic() + 15
    while time.monotonic() < until:
        try:
            os.kill(pid, 0)
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except (ProcessLookupError, FileNotFoundError):
            return True
        time.sleep(0.05)
    return False


def test_one_process_holds_the_model_for_the_next_question_and_gives_way_to_another_model(stand_in):
    asking = Asking()
    first, second = over(asking, stand_in("a")), over(asking, stand_in("b"))
    assert first.response.text == second.response.text
    assert (first.loads, second.loads) == (True, False)
    other = over(asking, stand_in("c", "another"))
    assert other.response.text != first.response.text and other.loads
    assert gone(int(first.response.text)) and asking.holds() == "another"
    asking.close()
    assert gone(int(other.response.text)) and asking.holds() is None


def test_questions_are_answered_in_turn_and_too_many_are_refused(stand_in):
    asking = Asking()
    running = asking.put(stand_in("sleep"), {})
    started(stand_in, 1)
    waiting = [asking.put(stand_in(f"q{number}"), {}) for number in range(10)]
    assert [asking.before(one) for one in waiting] == list(range(1, 11))
    with pytest.raises(TooMany):
        asking.put(stand_in("one more"), {})
    asking.cancel(waiting[3].name)
    assert waiting[3].state == "cancelled"
    asking.cancel(running.name)
    for one in waiting:
        until_over(one)
    said = [line.split(" ", 1)[1] for line in stand_in.log.read_text().splitlines()]
    assert said == ["sleep", *(f"q{number}" for number in range(10) if number != 3)]
    asking.close()


def test_cancelling_ends_the_process_and_the_next_question_is_answered(stand_in):
    asking = Asking()
    asked = asking.put(stand_in("sleep"), {})
    pid = int(started(stand_in, 1)[0].split()[0])
    asking.cancel(asked.name)
    until_over(asked)
    assert asked.state == "cancelled" and gone(pid)
    assert over(asking, stand_in("a")).state == "answered"
    asking.close()


def test_an_answer_that_takes_too_long_is_given_up(stand_in):
    asking = Asking(limit=0.5)
    asked = over(asking, stand_in("sleep"))
    assert asked.state == "failed" and "within 0.5 seconds" in asked.error
    assert gone(int(stand_in.log.read_text().split()[0]))
    asking.close()


def test_a_model_that_takes_long_to_load_is_given_that_time(stand_in):
    """Half a second for an answer, and an hour for loading: after two seconds it is still waited for."""
    asking = Asking(limit=0.5)
    asked = asking.put(replace(stand_in("sleep"), loading=3600), {})
    started(stand_in, 1)
    time.sleep(2)
    assert asked.state == "answering"
    asking.cancel(asked.name)
    assert until_over(asked).state == "cancelled"
    asking.close()


def test_a_process_that_dies_says_its_last_line_and_the_next_question_is_answered(stand_in):
    asking = Asking()
    asked = over(asking, stand_in("die"))
    assert asked.state == "failed"
    assert "ended with code 3" in asked.error and "out of memory on the device" in asked.error
    assert over(asking, stand_in("a")).state == "answered"
    asking.close()


def test_an_interpreter_that_is_not_there_is_a_failed_question_and_no_more(stand_in, tmp_path: Path):
    asking = Asking()
    asked = over(asking, replace(stand_in("a"), python=str(tmp_path / "nowhere")))
    assert asked.state == "failed" and "nowhere" in asked.error
    assert over(asking, stand_in("a")).state == "answered"
    asking.close()


def test_a_model_that_nobody_asks_gives_its_memory_back(stand_in):
    asking = Asking(idle=0.3)
    asked = over(asking, stand_in("a"))
    assert gone(int(asked.response.text)) and asking.holds() is None
    assert over(asking, stand_in("b")).state == "answered"
    asking.close()


def test_the_process_ends_with_a_server_that_is_killed(tmp_path: Path):
    """The real process, in the middle of a question; the server is killed without warning."""
    model = CalibratedModel.model_validate(MODELS["reader"]).model_dump(mode="json")
    (tmp_path / "trial.json").write_text(trial_of().model_dump_json())
    (tmp_path / "model.json").write_text(json.dumps(model))
    script = f"""
import json, os, signal, time
from pathlib import Path
from overread.core.records import Trial
from overread_viewer.asking import Asking, Call
folder = Path({str(tmp_path)!r})
trial = Trial.model_validate_json((folder / "trial.json").read_text())
asking = Asking()
asked = asking.put(Call(trial, "m", json.loads((folder / "model.json").read_text()), folder, folder, folder), {{}})
while not asked.over:
    time.sleep(0.05)
print(asked.state, asking._worker._process.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert done.returncode == -signal.SIGKILL, done.stderr
    state, pid = done.stdout.split()
    assert state == "answered"
    assert gone(int(pid))
