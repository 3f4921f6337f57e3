"""Masks as a step of the workflow: made where the config asks for them, taken by views, and nothing else changes."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch

from data.small_brain import SERIES, study
from overread.config import SwinUnetr
from overread.core.records import Question, read_pictures, write_questions
from overread.images.segmentation.networks import METHODS
from workflow.runner import SMALL, Workflow

pytestmark = pytest.mark.workflow

MASKS = ("brain_segmentation", "tumor_segmentation")


def made(folder: Path) -> dict[str, Any]:
    """Two small studies, a table of them with a question each, and weights; the config of a data set of them."""
    columns = [*SERIES, *MASKS]
    rows = [["study", "patient", *columns]]
    for name in ("A", "B"):
        one = study(folder, name)
        rows.append([name, f"p{name}", *(str(Path(one.images[column]).relative_to(folder)) for column in columns)])
    with (folder / "table.csv").open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    asked = {"stem": "Which?", "options": ("this", "that"), "answer": "this", "topic": "size", "origin": "hand"}
    write_questions(
        [Question.model_validate({**asked, "study": name, "patient": f"p{name}"}) for name in ("A", "B")],
        folder / "questions.jsonl",
    )
    return {
        "source": "table", "modality": "mri", "path": str(folder / "table.csv"), "restricted": False,
        "images": {column: column for column in columns},
        "questions": {"origin": "file", "path": str(folder / "questions.jsonl")},
    }  # fmt: skip


def weights(path: Path) -> dict[str, Any]:
    """A section of the config with a real network, whose last layer is set so that it finds no tumour anywhere."""
    section = {
        "method": "swin-unetr",
        "checkpoint": str(path),
        "feature_size": 12,
        "roi": [64, 64, 32],
        "device": "cpu",
    }
    torch.manual_seed(0)
    network = METHODS["swin-unetr"].build(SwinUnetr.model_validate(section))
    torch.nn.init.constant_(network.out.conv.conv.bias, -100.0)
    torch.save({"state_dict": network.state_dict()}, path)
    return {**section, "resources": {"gpu": 0, "mem_mb": 2000}}


def config_of(dataset: dict[str, Any], segmentation: Any = None) -> dict[str, Any]:
    return {
        "name": "masks",
        "datasets": {"mri": {**dataset, **({} if segmentation is None else {"segmentation": segmentation})}},
        "views": {"flair-axial": {"series": "FLAIR"}},
        "settings": {"own": {"images": "flair-axial", "readout": "choice"}},
        "evaluations": [{"dataset": "mri", "models": ["calibrated-70"], "settings": ["own"]}],
        "statistics": SMALL["statistics"],
    }


def planned(workflow: Workflow) -> Counter[str]:
    output = workflow.run("--dry-run", "--quiet", "rules", "--", "images")
    jobs = Counter({rule: int(count) for rule, count in re.findall(r"^(\w+) +(\d+)$", output, flags=re.MULTILINE)})
    jobs.pop("total", 0)
    return jobs


def test_masks_are_made_where_the_config_asks_for_them_and_nothing_else_is_done_again(tmp_path: Path) -> None:
    """A data set with its own masks; then with a network's, which one study can't have; then with other resources."""
    dataset, network = made(tmp_path / "scans"), weights(tmp_path / "model.pt")
    workflow = Workflow(tmp_path / "study", config_of(dataset), ["calibrated-70"])
    workflow.run("--", "images")
    images = workflow.results / "mri" / "images"
    index = workflow.results / "mri" / "images.parquet"
    assert {one.chosen_by for one in read_pictures(index)} == {"most tumour voxels"}

    workflow.config = config_of(dataset, "provided")  # which is what it was
    assert planned(workflow) == Counter()

    workflow.config = config_of(dataset, network)
    once = Counter(read_studies=1)  # whether a study needs a mask of its own is asked when studies are read
    assert planned(workflow) == once + Counter(index_images=1, images=1)
    spoilt = tmp_path / "scans" / "B" / "B_T2.nii.gz"
    spoilt.write_bytes(spoilt.read_bytes()[:3000])
    workflow.run("--", "images")
    about = {name: json.loads((images / name / "segmentation" / "mask.json").read_text()) for name in ("A", "B")}
    assert (about["A"]["problem"], about["A"]["feature_size"], about["A"]["device"]) == (None, 12, "cpu")
    assert about["A"]["volumes_ml"] == {"1": 0, "2": 0, "4": 0}
    assert about["B"]["problem"].startswith("B_T2.nii.gz: truncated")
    assert {(one.study, one.chosen_by) for one in read_pictures(index)} == {
        ("A", "no tumour: most brain voxels (tumour mask: swin-unetr)")
    }
    with (workflow.results / "mri" / "studies_rejected.csv").open(newline="") as rows:
        assert [row["reason"] for row in csv.DictReader(rows)] == [f"swin-unetr: {about['B']['problem']}"]

    workflow.config = config_of(dataset, {**network, "resources": {"gpu": 0, "mem_mb": 3000}})
    assert planned(workflow) == Counter()
    workflow.config = config_of(dataset, {**network, "overlap": 0.25})
    assert planned(workflow) == Counter(segment_study=2, render_views=2, index_images=1, images=1)
