"""Ask: restricted data and money, where a model is behind a server."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from data.asked_run import MODELS, STUDY, ask, contents, problems, sent, trial_of
from data.openai_server import Completion, OpenaiServer
from overread.backends.base import Backend
from overread.backends.calibrated import backend as calibrated
from overread.backends.calibrated.section import CalibratedModel
from overread.backends.openai.section import OpenaiModel
from overread.backends.transport.spending import Prices, Purse, Spent
from overread.core.errors import BadInput
from overread_viewer import asking_worker
from overread_viewer.asking_worker import Answerer


def test_restricted_data_are_put_to_a_server_only_if_it_is_attested(
    client_of, asked_run, asked_config, tmp_path, monkeypatch
):
    """The config and study.json say that the data set is restricted, whatever its studies say."""
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    closed = tmp_path / "small"
    shutil.copytree(asked_run, closed)
    spec = json.loads((closed / "study.json").read_text())
    spec["datasets"]["xray"]["restricted"] = True
    (closed / "study.json").write_text(json.dumps(spec))
    shutil.copytree(asked_config.parent, tmp_path / "config")
    path = tmp_path / "config" / "study.yaml"
    written = yaml.safe_load(path.read_text())
    written["datasets"]["xray"]["restricted"] = True
    path.write_text(yaml.safe_dump(written))
    client = client_of(closed, config=path)
    reply = client.post(f"/ask/xray/{STUDY}", data=sent(model="far-away"))
    assert reply.status_code == 422 and "attested_endpoints" in " ".join(problems(reply.text))
    assert reply.headers["cache-control"] == "no-store"
    # A local model takes them, and the trial says what it is: the process that answers looks at that again.
    name, page = ask(client)
    assert "Log-probability" in page
    assert client.app.state.desk.asking.get(name).call.trial.restricted
    path.write_text(yaml.safe_dump({**written, "attested_endpoints": ["https://models.example.org/v1"]}))
    attested = client_of(closed, config=path)
    attested.get(f"/ask/xray/{STUDY}")
    assert attested.app.state.desk.fitting.obstacle("xray", "far-away", "xray") is None
    assert attested.app.state.desk.fitting.attested() == ("https://models.example.org/v1",)


def test_a_model_that_does_not_say_where_trials_go_is_put_no_restricted_ones(
    client_of, asked_run, asked_config, tmp_path, monkeypatch
):
    """By its section on the page, with the config and without it; by its back end in the process that answers."""
    monkeypatch.setattr(CalibratedModel, "stays_here", False)
    closed = tmp_path / "small"
    shutil.copytree(asked_run, closed)
    spec = json.loads((closed / "study.json").read_text())
    spec["datasets"]["xray"]["restricted"] = True
    (closed / "study.json").write_text(json.dumps(spec))
    shutil.copytree(asked_config.parent, tmp_path / "config")
    path = tmp_path / "config" / "study.yaml"
    written = yaml.safe_load(path.read_text())
    written["datasets"]["xray"]["restricted"] = True
    path.write_text(yaml.safe_dump(written))
    said = "its back end calibrated says neither that they stay on this machine nor which server"
    for client in (client_of(closed, config=path), client_of(closed)):
        reply = client.post(f"/ask/xray/{STUDY}", data=sent())
        assert reply.status_code == 422 and said in " ".join(problems(reply.text))

    class Anywhere(Backend):
        def __init__(self, model: object, model_id: str) -> None: ...

        def identity(self):
            return {}

        def answer(self, trials, folder):
            raise AssertionError("it was asked")

    monkeypatch.setattr(calibrated, "CalibratedBackend", Anywhere)
    section = {"label": "c", "backend": "calibrated", "reliance": {}}
    reply = Answerer().reply(request(section, tmp_path, restricted=True))
    assert "the back end Anywhere does not say where its trials go: nothing was sent" in reply["error"]


def test_without_the_config_no_server_elsewhere_is_asked(client_of, asked_run: Path, tmp_path: Path):
    copy = tmp_path / "small"
    shutil.copytree(asked_run, copy)
    spec = json.loads((copy / "study.json").read_text())
    spec["models"]["reader"] = OpenaiModel.model_validate(MODELS["far-away"]).model_dump(mode="json")
    (copy / "study.json").write_text(json.dumps(spec))
    reply = client_of(copy).post(f"/ask/xray/{STUDY}", data=sent())
    assert reply.status_code == 422 and "--config" in " ".join(problems(reply.text))


def openai(**fields: Any) -> dict[str, Any]:
    return OpenaiModel.model_validate({**MODELS["far-away"], **fields}).model_dump(mode="json")


def request(model: dict[str, Any], tmp_path: Path, **fields: Any) -> dict[str, Any]:
    trial = trial_of(**fields).model_dump(mode="json")
    return {
        "trial": trial, "model": model, "model_id": "m", "folder": str(tmp_path), "attested": [],
        "ledger": str(tmp_path / "own.jsonl"), "study_ledger": str(tmp_path / "study.jsonl"),
    }  # fmt: skip


def test_the_process_that_answers_needs_no_web_library():
    """vLLM's environment has none."""
    script = "import overread_viewer.asking_worker, sys; print({'fastapi', 'starlette', 'torch'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "set()"


def test_the_process_that_answers_refuses_restricted_data_too(tmp_path: Path):
    """Whatever the page let through."""
    reply = Answerer().reply(request(openai(endpoint="http://192.0.2.1/v1"), tmp_path, restricted=True))
    assert "nothing was sent" in reply["error"]


def test_what_the_study_spent_is_spent_here_too_and_its_ledger_stays_as_it_was(tmp_path: Path):
    """A budget of 1,000 tokens, of which the study's jobs have spent 400: 600 are left for questions of one's own."""
    ledger = tmp_path / "study.jsonl"
    Purse(Prices(), ledger, "job", tokens=1000).settle(None, Spent(400, 0.0))
    before = ledger.read_bytes()
    model = OpenaiModel.model_validate({**MODELS["far-away"], "budget_tokens": 1000})
    assert asking_worker._within_budget(model, ledger).budget_tokens == 600
    Purse(Prices(), tmp_path / "more.jsonl", "job", tokens=1000).settle(None, Spent(1000, 0.0))
    with pytest.raises(BadInput, match="budget_tokens"):
        asking_worker._within_budget(model, tmp_path / "more.jsonl")
    assert ledger.read_bytes() == before
    assert asking_worker._within_budget(model, tmp_path / "none.jsonl").budget_tokens == 1000
    assert not (tmp_path / "none.jsonl").exists()


def test_a_spent_budget_asks_nothing(tmp_path: Path):
    Purse(Prices(), tmp_path / "study.jsonl", "job", tokens=50).settle(None, Spent(50, 0.0))
    reply = Answerer().reply(request(openai(budget_tokens=50, endpoint="http://127.0.0.1:9/v1"), tmp_path))
    assert "budget" in reply["error"]


def test_a_server_on_this_machine_is_asked_within_the_budget_that_the_study_left(
    client_of, asked_run: Path, asked_config: Path, tmp_path: Path, monkeypatch
):
    """Each answer costs 110 tokens. Of 8,000 the study has spent 1,000; what is spent here goes into a ledger of its
    own, outside the results, until the budget does not hold another request.
    """
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    copy = tmp_path / "small"
    shutil.copytree(asked_run, copy)
    Purse(Prices(), copy / "work/spent/near.jsonl", "job", tokens=8000).settle(None, Spent(1000, 0.0))
    before = contents(copy)
    shutil.copytree(asked_config.parent, tmp_path / "config")
    with OpenaiServer(lambda asked: Completion("No", tokens=(100, 10, 0))) as server:
        near = {**MODELS["far-away"], "endpoint": server.endpoint, "budget_tokens": 8000, "takes": {"logprobs": False}}
        (tmp_path / "config" / "models" / "near.yaml").write_text(yaml.safe_dump(near))
        client = client_of(copy, config=tmp_path / "config" / "study.yaml")
        for _ in range(2):
            name, page = ask(client, model="near", answer="2")
            asked = client.app.state.desk.asking.get(name)
            assert (asked.response.text, asked.response.answer) == ("No", 1)
            assert 'class="chip right"' in page and "gave no log-probabilities" in page and server.endpoint in page
        assert sum(server.counts.values()) == 2
        ledger = client.app.state.desk.fitting.ledger("near")
        assert ledger.is_relative_to(tmp_path / "state")
        purse = Purse(Prices(), ledger, "look", tokens=7000)
        assert purse.left().tokens == 7000 - 2 * 110
        purse.settle(None, Spent(6500, 0.0))
        _, page = ask(client, model="near")
        assert "the budget does not hold another request" in page
        assert sum(server.counts.values()) == 2
    assert contents(copy) == before
