"""Code that is edited in the middle of a run: its jobs say so, and a new start runs again what the edit touches."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from data.openai_server import Asked, Completion, OpenaiServer
from workflow.runner import ROOT, Workflow

pytestmark = pytest.mark.workflow

CONFIG = {
    "name": "edited",
    "datasets": {
        "phantom-xray": {
            "source": "phantom", "modality": "xray", "patients": 2,
            "questions": {"origin": "findings", "findings": ["Edema"], "composite": []},
        }
    },
    "views": {"frontal": {"kind": "frontal", "size": 64}},
    "settings": {"own": {"images": "frontal", "readout": "yes-no"}},
    "evaluations": [{"dataset": "phantom-xray", "models": ["served"], "settings": "all"}],
    "statistics": {"draws": 100},
    "frozen_code": "refuse",
}  # fmt: skip


@pytest.fixture
def code(tmp_path: Path) -> Path:
    """A copy of the code, to be edited."""
    copy = tmp_path / "code"
    ignored = shutil.ignore_patterns("__pycache__", "vendor")
    shutil.copytree(ROOT / "workflow", copy / "workflow", ignore=ignored)
    shutil.copytree(ROOT / "config", copy / "config")
    shutil.copytree(ROOT / "envs", copy / "envs")
    shutil.copy(ROOT / "Snakefile", copy)
    return copy


def test_a_run_whose_code_is_edited_stops_and_a_new_start_goes_on(tmp_path: Path, code: Path) -> None:
    edited = code / "workflow" / "overread" / "estimates" / "tables" / "accuracy.py"

    def script(asked: Asked) -> Completion:
        if len(server.asked) == 1:
            edited.write_text(edited.read_text() + "\n# edited\n")
        return Completion("Yes")

    server = OpenaiServer(script)
    with server:
        study = Workflow(tmp_path / "study", CONFIG, [], code)
        study.add_model(
            "served",
            {"label": "S", "backend": "openai", "model": "m", "endpoint": server.endpoint, "takes": {"images": 1}},
        )
        output = study.run("tables", fails=True)
        assert "Overread's code has changed since this run began" in study.logs() + output
        assert "workflow/overread/estimates/tables/accuracy.py." in study.logs() + output
        assert not (study.results / "tables").exists()
        asked = server.counts.total()
        study.run("tables")
        assert server.counts.total() == asked
    assert (study.results / "tables" / "accuracy.csv").exists()

    starts = [json.loads(path.read_text()) for path in sorted((study.results / "provenance").glob("*.json"))]
    assert len(starts) == 2
    one, two = (each["code"]["workflow/overread/estimates/tables/accuracy.py"] for each in starts)
    assert one != two
    assert [each["executor"] for each in starts] == ["local", "local"]
    assert starts[0]["command"][-1] == "tables"
    assert starts[0]["config_hash"] == starts[1]["config_hash"]
    assert study.run("tables", "--dry-run").count("Nothing to be done") == 1
    assert len(list((study.results / "provenance").glob("*.json"))) == 2  # a dry run is no start
