"""The plan: what is asked for, what can run, and why the rest can't."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

from data.configs import MODELS, OTHERS, SETTINGS, config_of, small
from overread import plan
from overread.backends.calibrated.section import CalibratedModel
from overread.config import Config
from overread.core import guard
from overread.plan import Cell

ROOT = Path(__file__).parents[2]
PAPERS = ROOT / "config" / "config.yaml"


@pytest.fixture(autouse=True)
def _no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def why(config: Config, dataset: str, model: str, setting: str) -> list[tuple[str, str]]:
    return [(each.when, each.why) for each in plan.obstacles(config, Cell(dataset, model, setting, 1))]


# -- cells -------------------------------------------------------------------------------------------------------------


def test_a_cell_asked_for_twice_is_run_once_with_the_larger_number_of_runs(tmp_path: Path) -> None:
    evaluations = [
        {"dataset": "mri", "models": ["reader"], "settings": ["plain", "black"], "runs": 2},
        {"dataset": "mri", "models": ["truth", "reader"], "settings": ["plain"], "runs": 3},
        {"dataset": "mri", "models": ["reader"], "settings": ["plain"], "runs": 1},
    ]
    assert plan.cells(config_of(tmp_path, evaluations=evaluations)) == [
        Cell("mri", "reader", "black", 2),
        Cell("mri", "reader", "plain", 3),
        Cell("mri", "truth", "plain", 3),
    ]


def test_the_order_of_lists_in_a_config_changes_no_cell(tmp_path: Path) -> None:
    one = config_of(tmp_path)
    evaluations = [dict(each) for each in reversed(small()["evaluations"])]
    for each in evaluations:
        each["models"] = list(reversed(each["models"]))
        each["settings"] = random.Random(0).sample(each["settings"], len(each["settings"]))
    two = config_of(tmp_path, evaluations=evaluations)
    assert plan.cells(one) == plan.cells(two)
    assert plan.runnable(one) == plan.runnable(two)


def test_all_means_every_model_and_every_setting(tmp_path: Path) -> None:
    config = config_of(tmp_path, evaluations=[{"dataset": "mri", "models": "all", "settings": "all"}])
    assert len(plan.cells(config)) == 2 * 6


# -- never -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dataset", "model", "setting", "reason"),
    [
        ("mri", "blind", "plain", "blind takes no images"),
        ("mri", "reader", "slices", "reader takes one image, and the view all-series gives up to 23"),
        ("mri", "reader", "volume", "reader takes no volumes"),
        ("mri", "cube", "plain", "cube takes no images"),
        ("mri", "cube", "text", "cube takes no question without a picture"),
        ("xray", "server", "first-token", "server gives no log-probabilities, which the readout first-token needs"),
        ("xray", "reader", "hidden-from-0", "a report can't be hidden from the layers of reader"),
        ("xray", "masked", "hidden-from-5", "masked has 4 layers (0 to 3)"),
        ("xray", "masked", "hidden-only-4", "masked has 4 layers (0 to 3)"),
        ("mri", "reader", "report", "the view frontal is of chest X-rays, and mri holds brain MRI"),
        ("mri", "reader", "first-token",
            "the readout first-token needs yes/no questions, and those of mri have four options"),
        ("mri", "reader", "similarity", "reader writes its answers: the readout similarity is for contrastive models"),
        ("mri", "clip", "plain", "clip writes no answer: it takes the readout similarity only"),
        ("mri", "clip", "similarity-report", "clip compares option texts with a picture: a report does not reach it"),
    ],
)  # fmt: skip
def test_a_pair_that_can_not_be_is_never_run_and_says_why(
    tmp_path: Path, dataset: str, model: str, setting: str, reason: str
) -> None:
    config = config_of(tmp_path, OTHERS, settings=SETTINGS)
    assert ("never", reason) in why(config, dataset, model, setting)
    first = plan.obstacle(config, Cell(dataset, model, setting, 1))
    assert first is not None
    assert first.when == "never"


@pytest.mark.parametrize(
    ("dataset", "model", "setting"),
    [
        ("mri", "reader", "plain"), ("mri", "blind", "text"), ("mri", "truth", "slices"), ("mri", "cube", "volume"),
        ("mri", "clip", "similarity"), ("xray", "server", "report"), ("xray", "reader", "first-token"),
        ("xray", "masked", "hidden-from-4"), ("xray", "masked", "hidden-only-3"), ("mri", "truth", "similarity"),
    ],
)  # fmt: skip
def test_a_pair_that_can_be_has_nothing_in_its_way(tmp_path: Path, dataset: str, model: str, setting: str) -> None:
    assert why(config_of(tmp_path, OTHERS, settings=SETTINGS), dataset, model, setting) == []


def test_a_model_takes_as_many_pictures_as_it_says_and_not_one_more(tmp_path: Path) -> None:
    views = {**small()["views"], "two": {"series": ["T1", "T2"]}}
    models = {str(n) + "-images": {**MODELS["reader"], "takes": {"images": n}} for n in (1, 2)}
    config = config_of(tmp_path, models, views=views, settings={**SETTINGS, "two": {"images": "two"}})
    assert why(config, "mri", "2-images", "two") == []
    assert why(config, "mri", "1-images", "two") == [
        ("never", "1-images takes one image, and the view two gives up to 2")
    ]


def test_a_volume_as_a_stack_of_pictures_needs_so_many_pictures(tmp_path: Path) -> None:
    views = {**small()["views"], "stack": {"kind": "volume", "slices": 85}}
    settings = {**SETTINGS, "stack": {"images": "stack"}}
    config = config_of(tmp_path, OTHERS, views=views, settings=settings)
    assert why(config, "mri", "truth", "stack") == []
    assert why(config, "mri", "reader", "stack") == [
        ("never", "reader takes one image, and the view stack gives up to 85")
    ]


@pytest.mark.parametrize(("slices", "fits"), [(85, True), (86, False)])
def test_medgemma_takes_a_stack_of_85_slices_and_no_more(tmp_path: Path, slices: int, fits: bool) -> None:
    views = {**small()["views"], "stack": {"kind": "volume", "slices": slices}}
    models = {"medgemma": {**MODELS["reader"], "takes": {"images": 85}}}
    config = config_of(tmp_path, models, views=views, settings={**SETTINGS, "stack": {"images": "stack"}})
    said = [] if fits else [("never", "medgemma takes 85 images, and the view stack gives up to 86")]
    assert why(config, "mri", "medgemma", "stack") == said


# -- missing -----------------------------------------------------------------------------------------------------------


def test_a_folder_that_is_not_there_is_missing_and_a_folder_that_is_there_is_not(tmp_path: Path) -> None:
    datasets = {
        **small()["datasets"],
        "mri": {
            "source": "ucsf-pdgm",
            "root": "scans",
            "reports": "reports.csv",
            "questions": {"origin": "file", "path": "q.jsonl"},
        },
    }
    config = config_of(tmp_path, datasets=datasets)
    assert why(config, "mri", "truth", "plain") == [
        ("missing", f"nothing at {tmp_path}/scans (datasets.mri.root)"),
        ("missing", f"nothing at {tmp_path}/reports.csv (datasets.mri.reports)"),
        ("missing", f"nothing at {tmp_path}/q.jsonl (datasets.mri.questions.path)"),
    ]
    (tmp_path / "scans").mkdir()
    (tmp_path / "reports.csv").touch()
    (tmp_path / "q.jsonl").touch()
    assert why(config, "mri", "truth", "plain") == []


def test_weights_that_are_not_there_are_missing(tmp_path: Path) -> None:
    config = config_of(tmp_path, {"gone": {**MODELS["reader"], "weights": "./gone"}})
    assert why(config, "mri", "gone", "plain") == [
        ("missing", f"no folder of weights for gone at {tmp_path}/models/gone")
    ]
    assert why(config, "mri", "reader", "plain") == []


def test_restricted_data_wait_for_an_attestation_of_exactly_that_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_KEY", "x")
    remote = {**OTHERS["server"], "endpoint": "https://vlm.example/v1", "key_variable": "SOME_KEY"}
    datasets = small()["datasets"]
    datasets["mri"]["restricted"] = True

    def found(*attested: str) -> list[tuple[str, str]]:
        config = config_of(tmp_path, {"remote": remote}, datasets=datasets, attested_endpoints=list(attested))
        assert why(config, "xray", "remote", "report") == [], "the other dataset is not restricted"
        return why(config, "mri", "remote", "plain")

    refused = [("missing", "mri is restricted, and attested_endpoints does not name https://vlm.example/v1")]
    assert found() == refused
    assert found("https://vlm.example/other") == refused
    for other in ("https://vlm.example.evil/v1", "http://vlm.example/v1", "https://vlm.example:8443/v1"):
        assert found(other) == refused
    assert found("https://vlm.example/v1/") == []
    assert found("https://VLM.example:443/v1") == []


def test_a_model_that_does_not_say_where_trials_go_gets_no_restricted_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its section extends neither LocalModel nor ServerModel; what is attested is no word about it."""
    monkeypatch.setattr(CalibratedModel, "stays_here", False)
    datasets = small()["datasets"]
    datasets["mri"]["restricted"] = True
    config = config_of(tmp_path, datasets=datasets, attested_endpoints=["https://vlm.example/v1"])
    said = (
        "truth gets no restricted data: its back end calibrated says neither that they stay on this machine nor which "
        "server they go to"
    )
    assert why(config, "mri", "truth", "plain") == [("never", said)]
    assert why(config, "mri", "reader", "plain") == []
    assert why(config, "xray", "truth", "report") == [], "the other dataset is not restricted"


@pytest.mark.parametrize(
    ("endpoint", "loopback"),
    [
        ("http://localhost:8000/v1", True), ("http://127.0.0.1/v1", True), ("http://127.8.9.1/v1", True),
        ("http://[::1]:80/v1", True), ("http://127.0.0.1.evil.example/v1", False), ("http://0.0.0.0/v1", False),
        ("https://localhost.example/v1", False),
    ],
)  # fmt: skip
def test_only_this_machine_is_loopback(endpoint: str, loopback: bool) -> None:
    assert guard.is_plainly_loopback(endpoint) is loopback


def test_a_key_that_is_not_set_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    remote = {**OTHERS["server"], "endpoint": "https://vlm.example/v1", "key_variable": "SOME_KEY"}
    config = config_of(tmp_path, {"remote": remote, **OTHERS})
    monkeypatch.delenv("SOME_KEY", raising=False)
    assert why(config, "mri", "remote", "plain") == [("missing", "the environment variable SOME_KEY holds no key")]
    assert why(config, "mri", "server", "plain") == [], "a server on this machine may need none"
    monkeypatch.setenv("SOME_KEY", "x")
    assert why(config, "mri", "remote", "plain") == []


def test_cells_run_or_say_why_not(tmp_path: Path) -> None:
    evaluations = [{"dataset": "mri", "models": "all", "settings": "all", "runs": 2}]
    config = config_of(tmp_path, OTHERS, settings=SETTINGS, evaluations=evaluations)
    able = {cell.name for cell in plan.runnable(config)}
    unable = {(row["dataset"], row["model"], row["setting"]): row for row in plan.not_run(config)}
    assert able.isdisjoint(unable)
    assert able | set(unable) == {cell.name for cell in plan.cells(config)}
    assert able
    assert {row["when"] for row in unable.values()} == {"never"}
    assert all(row["why"] for row in unable.values())


def test_the_plan_is_light_to_import() -> None:
    """The Snakefile asks for its targets every time that it is parsed."""
    code = (
        "import sys; from pathlib import Path; from overread import plan; from overread.config import load;"
        f"plan.check(load(Path({str(ROOT / 'config' / 'demo.yaml')!r})));"
        "heavy = {'matplotlib', 'nibabel', 'pandas', 'pyarrow', 'rich', 'scipy', 'torch', 'transformers', 'typer'};"
        "print(sorted(heavy & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
