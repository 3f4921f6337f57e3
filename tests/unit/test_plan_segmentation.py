"""What the plan and `overread check` say of a network's weights before the first job."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from data.configs import config_of, small
from overread import plan
from overread.config import Config, Provided, SwinUnetr
from overread.core.errors import BadConfig
from overread.core.records import Question, write_questions
from overread.plan import judging
from overread.plan.estimates import segmentings


def config_with(folder: Path, segmentation: Any) -> Config:
    (folder / "scans" / "UCSF-PDGM-0004_nifti").mkdir(parents=True, exist_ok=True)
    question = Question(
        study="UCSF-PDGM-0004", patient="", stem="Where is it?", options=("left", "right"), answer="left", topic="side",
        origin="by hand",
    )  # fmt: skip
    write_questions([question], folder / "q.jsonl")
    datasets = small()["datasets"]
    datasets["mri"] = {
        "source": "ucsf-pdgm", "root": "scans", "questions": {"origin": "file", "path": "q.jsonl"},
        **({"segmentation": segmentation} if segmentation is not None else {}),
    }  # fmt: skip
    return config_of(folder, datasets=datasets)


def network(**more: Any) -> dict[str, Any]:
    return {"method": "swin-unetr", "checkpoint": "model.pt", **more}


def of_segmentation(lines: list[str]) -> list[str]:
    return [line for line in lines if "segmentation" in line]


def test_missing_weights_are_named_and_keep_the_cells_of_their_data_set_from_running(tmp_path: Path) -> None:
    config = config_with(tmp_path, network())
    errors, warnings = plan.check(config)
    assert errors == []
    assert of_segmentation(warnings) == [
        f"datasets.mri.segmentation.checkpoint: no file at {tmp_path}/model.pt: mri can't run without it"
    ]
    found = {cell.dataset: plan.obstacle(config, cell) for cell in plan.cells(config)}
    assert found["mri"] == judging.Obstacle(
        "missing", f"nothing at {tmp_path}/model.pt (datasets.mri.segmentation.checkpoint)"
    )
    assert found["xray"] is None


def test_other_weights_than_the_config_names_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "model.pt").write_bytes(b"weights")
    right, wrong = hashlib.sha256(b"weights").hexdigest(), hashlib.sha256(b"others").hexdigest()
    errors, warnings = plan.check(config_with(tmp_path, network(checkpoint_sha256=right)))
    assert (errors, of_segmentation(warnings)) == ([], [])
    assert plan.check(config_with(tmp_path, network(checkpoint_sha256=wrong)))[0] == [
        f"datasets.mri.segmentation.checkpoint_sha256: the SHA-256 of {tmp_path}/model.pt is {right}, not {wrong}: "
        "it is another file"
    ]


def test_weights_that_are_not_pinned_are_told_with_their_hash(tmp_path: Path) -> None:
    (tmp_path / "model.pt").write_bytes(b"weights")
    errors, warnings = plan.check(config_with(tmp_path, network()))
    sha256 = hashlib.sha256(b"weights").hexdigest()
    assert errors == []
    assert of_segmentation(warnings) == [
        f"datasets.mri.segmentation.checkpoint_sha256: not given; that of {tmp_path}/model.pt is {sha256}"
    ]


@pytest.mark.parametrize(
    ("segmentation", "wanted", "makes"),
    [
        (None, Provided(), False),
        ("provided", Provided(), False),
        ({"method": "provided"}, Provided(), False),
        ({"brain": "deepbet"}, Provided(brain="deepbet"), True),
        (network(), SwinUnetr(method="swin-unetr", checkpoint="model.pt"), True),
    ],
)
def test_the_ways_to_write_it(tmp_path: Path, segmentation: Any, wanted: Any, makes: bool) -> None:
    found = config_with(tmp_path, segmentation).datasets["mri"].segmentation  # type: ignore[union-attr]
    if isinstance(wanted, SwinUnetr):
        wanted = wanted.model_copy(update={"checkpoint": str(tmp_path / "model.pt")})
    assert (found, found.makes_masks) == (wanted, makes)


@pytest.mark.parametrize(
    ("segmentation", "line"),
    [
        ("swin-unetr", "datasets.mri.segmentation.checkpoint: is missing"),
        ({"method": "swin"}, "datasets.mri.segmentation.method: "),
        (network(overlap=1), "datasets.mri.segmentation.overlap: "),
        (network(feature_size=20), "datasets.mri.segmentation.feature_size: 20 is no multiple of 12"),
        (network(roi=[100, 128, 128]), "datasets.mri.segmentation: roi [100, 128, 128]: each edge must be a multiple"),
        (network(roi=[32, 32, 32]), "datasets.mri.segmentation.roi: [32, 32, 32] is too small: one edge must be 64"),
        (network(checkpoint_sha256="abc"), "datasets.mri.segmentation.checkpoint_sha256: "),
        (network(overlp=0.5), "datasets.mri.segmentation: no key 'overlp'; there are: brain, checkpoint"),
        (network(device="cuda", resources={"gpu": 0}), "datasets.mri.segmentation: device 'cuda' needs resources"),
        ({"method": "provided", "checkpoint": "m"}, "datasets.mri.segmentation: no key 'checkpoint'"),
    ],
)
def test_mistakes_are_one_line_with_the_key(tmp_path: Path, segmentation: Any, line: str) -> None:
    with pytest.raises(BadConfig) as caught:
        config_with(tmp_path, segmentation)
    assert str(caught.value).count("\n") == 0
    assert f"study.yaml: {line}" in str(caught.value)


def table(modality: str, images: tuple[str, ...], segmentation: Any) -> dict[str, Any]:
    return {
        "source": "table", "modality": modality, "path": "study.yaml", "images": {name: name for name in images},
        "questions": {"origin": "file", "path": "study.yaml"}, "segmentation": segmentation,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("dataset", "why"),
    [
        (table("mri", ("FLAIR", "T1"), network()), "images: swin-unetr takes T1c, T2 too; name their columns"),
        (table("xray", ("frontal",), network()), "segmentation: is for MRI; a chest X-ray has no tumour or brain mask"),
        (table("xray", ("frontal",), {"brain": "deepbet"}), "segmentation: is for MRI"),
    ],
)
def test_a_table_must_have_what_the_network_takes(tmp_path: Path, dataset: dict[str, Any], why: str) -> None:
    datasets = {**small()["datasets"], "mri": dataset}
    with pytest.raises(BadConfig, match=why):
        config_of(tmp_path, datasets=datasets)


def test_a_table_of_mri_can_be_segmented(tmp_path: Path) -> None:
    dataset = table("mri", ("FLAIR", "T1", "T1c", "T2"), network())
    datasets = {**small()["datasets"], "mri": dataset}
    config = config_of(tmp_path, datasets=datasets)
    assert "datasets.mri.segmentation.checkpoint: no file at" in "\n".join(plan.check(config)[1])


def test_the_plan_counts_the_gpu_hours_of_masks(tmp_path: Path) -> None:
    """473 studies of the release (generated questions) at up to 10 minutes on one GPU are 78.8 hours."""
    (tmp_path / "scans" / "UCSF-PDGM-0004_nifti").mkdir(parents=True)
    datasets = small()["datasets"]
    datasets["mri"] = {
        "source": "ucsf-pdgm", "root": "scans", "segmentation": network(),
        "questions": {"origin": "generated", "author": "truth", "validator": "truth"},
    }  # fmt: skip
    config = config_of(tmp_path, datasets=datasets)
    [masks] = segmentings(config, plan.estimate(config, None))
    assert (masks.dataset, masks.studies, masks.gpu_hours) == ("mri", 473, pytest.approx(473 / 6))
    own = config_of(tmp_path, datasets={**datasets, "mri": {**datasets["mri"], "segmentation": "provided"}})
    assert segmentings(own, plan.estimate(own, None)) == []
