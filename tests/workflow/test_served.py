"""A model behind a server in the workflow: where its data may go, and one ledger for all of its jobs."""

from __future__ import annotations

from pathlib import Path

from workflow.runner import Workflow

ENDPOINTS = ["https://vlm.hospital.example/v1", "https://another.example/v1"]
CONFIG = {
    "name": "tiny",
    "datasets": {
        "phantom-xray": {"source": "phantom", "modality": "xray", "patients": 2, "questions": {"origin": "findings"}}
    },
    "views": {"frontal": {"kind": "frontal"}},
    "settings": {"own": {"images": "frontal", "readout": "yes-no"}},
    "evaluations": [{"dataset": "phantom-xray", "models": ["served", "calibrated-70"], "settings": "all", "runs": 2}],
    "attested_endpoints": ENDPOINTS,
}


def test_jobs_of_a_served_model_are_told_where_data_may_go_and_share_a_ledger(tmp_path: Path) -> None:
    """The jobs of other models are not: an attestation asks nothing of them again."""
    workflow = Workflow(tmp_path, CONFIG, ["calibrated-70"])
    workflow.add_model("served", {"label": "S", "backend": "openai", "model": "m", "endpoint": "http://127.0.0.1:9/v1"})
    commands = [line for line in workflow.run("-n", "-p").splitlines() if "responses answer" in line]
    served = [line for line in commands if "--id served " in line]
    assert len(served) == 2
    for line in served:
        assert [each.split()[0] for each in line.split("--attested ")[1:]] == sorted(ENDPOINTS)
        assert line.split("--ledger ")[1].split()[0] == "results/tiny/work/spent/served.jsonl"
    others = [line for line in commands if line not in served]
    assert len(others) == 2
    assert not [line for line in others if "--attested" in line or "--ledger" in line]
