"""A run that questions of one's own can be put to, its config, and the form of the page "Ask".

build_run(folder, results)     a copy of `made`'s run with trials made by `overread trials build`, answered by one
                               calibrated reader
write_config(folder, run)      the config that its study.json is of, with models that it did not ask
ask(client, ...)               put a question through the page and wait for what comes of it
"""

from __future__ import annotations

import hashlib
import html
import json
import re
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import yaml

from overread.backends.calibrated.section import CalibratedModel
from overread.core.records import Question, Trial

STUDY = "xray-01-1"
ASKED = {"xray": ("xray", "xray-swapped", "xray-black", "xray-report"), "mri": ("single-slice", "reshuffled")}
MODELS = {
    "reader": {"label": "Reader, image 80 %", "backend": "calibrated",
               "reliance": {"image": 0.8, "report": 0.7, "unparsed": 0.03}},
    "blind-reader": {"label": "Blind reader", "backend": "calibrated", "reliance": {"report": 0.8, "unparsed": 0.03}},
    "far-away": {"label": "Far away", "backend": "openai", "model": "m", "endpoint": "https://models.example.org/v1"},
    "needs-vllm": {"label": "Needs vLLM", "backend": "vllm", "weights": "some/model", "python": sys.executable},
    "one-eyed": {"label": "No pictures", "backend": "calibrated", "reliance": {}, "takes": {"images": 0}},
}  # fmt: skip


def build_run(folder: Path, results: Path) -> Path:
    """A run whose trials are made by `overread trials build` and answered by the calibrated reader."""
    from overread.responses.answering import answer_all
    from overread.trials.commands import build_command

    shutil.copytree(results, folder)
    spec = json.loads((folder / "study.json").read_text())
    spec["cells"] = [
        {"dataset": dataset, "model": "reader", "setting": setting, "runs": 1}
        for dataset, settings in ASKED.items()
        for setting in settings
    ]
    (folder / "study.json").write_text(json.dumps(spec))
    for dataset, settings in ASKED.items():
        place = folder / dataset
        shutil.rmtree(place / "responses")
        shutil.rmtree(place / "trials")
        for setting in settings:
            build_command(
                place / "questions.jsonl", place / "studies.parquet", place / "images.parquet",
                place / "substitutes.csv", json.dumps(spec["settings"][setting]), setting,
                place / "trials" / setting / "run-1.parquet",
                section=json.dumps(spec["datasets"][dataset]["questions"]),
            )  # fmt: skip
        model = CalibratedModel.model_validate(MODELS["reader"])
        answer_all(place, model, "reader", dict.fromkeys(settings, 1), folder / "work" / dataset / "reader")
    return folder


def write_config(folder: Path, run: Path) -> Path:
    """The config that the run's study.json is of, with models that the run did not ask."""
    spec = json.loads((run / "study.json").read_text())
    (folder / "models").mkdir(parents=True)
    for name, model in MODELS.items():
        (folder / "models" / f"{name}.yaml").write_text(yaml.safe_dump(model))
    written = {
        "name": spec["name"],
        "datasets": spec["datasets"],
        "views": {"flair-axial": {"series": "FLAIR"}, "frontal": {"kind": "frontal"}},
        "settings": {name: spec["settings"][name] for settings in ASKED.values() for name in settings},
        "evaluations": [{"dataset": name, "models": ["reader"], "settings": list(ASKED[name])} for name in ASKED],
    }  # fmt: skip
    (folder / "study.yaml").write_text(yaml.safe_dump(written))
    return folder / "study.yaml"


def sent(**changes: str) -> dict[str, str]:
    form = {"stem": "Is there a fracture?", "option1": "yes", "option2": "no", "model": "reader", "setting": "xray"}
    return {**form, **changes}


def ask(client: Any, url: str = f"/ask/xray/{STUDY}", **changes: str) -> tuple[str, str]:
    """Put a question; its name and the page with its answer."""
    reply = client.post(url, data=sent(**changes), follow_redirects=False)
    assert reply.status_code == 303, problems(reply.text)
    name = re.search(r"asked=(\w+)#answer$", reply.headers["location"])
    assert name
    return name[1], wait(client, f"{url}/asked/{name[1]}")


def wait(client: Any, url: str, seconds: float = 120) -> str:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        text = client.get(url).text
        if 'data-over="yes"' in text:
            return text
        time.sleep(0.1)
    raise AssertionError(f"no answer: {text}")


def problems(text: str) -> list[str]:
    return [html.unescape(one) for one in re.findall(r'class="problem"[^>]*>(.*?)</p>', text)]


def contents(folder: Path) -> dict[str, tuple[str, int]]:
    """Bytes and time of every file."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {
        str(path.relative_to(folder)): (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns)
        for path in files
    }


def trial_of(**fields: Any) -> Trial:
    question = Question(
        study="s", patient="p", stem="Is it?", options=("yes", "no"), answer="yes", topic="t", origin="o"
    )
    return Trial.model_validate(
        {
            "dataset": "d",
            "setting": "x",
            "run": 1,
            "question": question.question,
            "topic": "t",
            "study": "s",
            "patient": "p",
            "image_study": None,
            "image_patient": None,
            "label": None,
            "image_label": None,
            "blocks": [{"role": "question", "text": "Is it?"}],
            "options": ["yes", "no"],
            "permutation": [0, 1],
            "answer": 0,
            "readout": "yes-no",
            "restricted": False,
            **fields,
        }
    )
