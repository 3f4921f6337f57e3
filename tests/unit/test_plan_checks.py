"""What needs fixing before the first job, and what is only a warning."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from data.configs import MODELS, OTHERS, config_of, small
from overread import plan

ROOT = Path(__file__).parents[2]
PAPERS = ROOT / "config" / "config.yaml"
UNMEASURED = (
    "comparisons.swap: no floor is measured on xray for reader (no rerun, no placebo): answers that move in it without "
    'following the image can show no more than "reacts; floor not measured"; give the evaluation of report `runs: 2`, '
    "or add a comparison with `kind: placebo`"
)


@pytest.fixture(autouse=True)
def _no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def test_a_sound_config_has_no_errors_and_no_warnings(tmp_path: Path) -> None:
    evaluations = small()["evaluations"]
    evaluations[1]["runs"] = 2
    assert plan.check(config_of(tmp_path, evaluations=evaluations)) == ([], [])


def test_a_primary_swap_whose_floor_nothing_measures_is_named_with_its_models(tmp_path: Path) -> None:
    """A rerun of the own picture or a placebo that is asked measures it; a placebo that no one asks does not."""
    assert plan.check(config_of(tmp_path)) == ([], [UNMEASURED])
    sections = small()
    settings = {**sections["settings"], "again": {**sections["settings"]["report"], "order": "text-first"}}
    comparisons = {**sections["comparisons"], "still": {"flips": ["report", "again"], "kind": "placebo"}}
    _, warnings = plan.check(config_of(tmp_path, settings=settings, comparisons=comparisons))
    assert UNMEASURED in warnings and any("no evaluation asks for again" in one for one in warnings)
    evaluations = small()["evaluations"]
    evaluations[1]["settings"] = ["report", "report-swapped", "again"]
    asked = config_of(tmp_path, settings=settings, comparisons=comparisons, evaluations=evaluations)
    assert plan.check(asked) == ([], [])


def test_a_floor_is_looked_for_on_each_dataset_and_model_and_for_primary_swaps_alone(tmp_path: Path) -> None:
    """What was run twice for one model measures nothing of another; one that decides nothing needs no floor."""
    evaluations = small()["evaluations"]
    evaluations[1] |= {"models": ["reader", "truth"]}
    evaluations.append({"dataset": "xray", "models": ["truth"], "settings": ["report"], "runs": 2})
    assert plan.check(config_of(tmp_path, evaluations=evaluations)) == ([], [UNMEASURED])
    chosen = config_of(tmp_path, statistics={"primary": ["gain"]})
    assert plan.check(chosen) == ([], [])


def test_a_named_pair_that_can_not_be_is_an_error_of_one_line_that_says_what_to_do(tmp_path: Path) -> None:
    evaluations = [{"dataset": "mri", "models": ["reader", "blind"], "settings": ["plain", "black", "text"]}]
    config = config_of(
        tmp_path, {"blind": {**OTHERS["blind"], "revision": "0" * 40}}, evaluations=evaluations, comparisons={}
    )
    assert plan.check(config)[0] == [
        "evaluations[0]: blind takes no images (black, plain): move it to another evaluation, or remove it"
    ]


def test_with_all_what_can_not_be_is_left_out_with_a_warning(tmp_path: Path) -> None:
    evaluations = [{"dataset": "mri", "models": "all", "settings": ["plain", "slices"]}]
    config = config_of(tmp_path, evaluations=evaluations, comparisons={})
    assert plan.check(config) == (
        [],
        ["evaluations[0]: reader takes one image, and the view all-series gives up to 23 (slices): left out"],
    )


def test_an_evaluation_of_which_nothing_can_ever_run_is_an_error(tmp_path: Path) -> None:
    evaluations = [{"dataset": "mri", "models": "all", "settings": ["report"]}, small()["evaluations"][0]]
    errors, _ = plan.check(config_of(tmp_path, evaluations=evaluations))
    assert errors == [
        "evaluations[0]: nothing in it can ever run: the view frontal is of chest X-rays, and mri holds brain MRI; "
        "give it other models or settings"
    ]


def test_an_evaluation_of_which_nothing_can_run_now_is_a_warning(tmp_path: Path) -> None:
    """The second one asks a model whose weights are not there."""
    gone = {"reader": {**MODELS["reader"], "weights": "./gone"}}
    evaluations = [
        {**small()["evaluations"][0], "models": ["truth"]},
        {**small()["evaluations"][1], "models": ["reader"]},
    ]
    assert plan.check(config_of(tmp_path, gone, evaluations=evaluations)) == (
        [],
        ["evaluations[1]: nothing asked for can run now; `overread plan` says why", UNMEASURED],
    )


@pytest.mark.parametrize(
    ("source", "makes", "looked_for"),
    [
        ("ucsf-pdgm", "UCSF-PDGM-0004_nifti", "*_nifti or */*_nifti"),
        ("mimic-cxr", "files/p10/p10000032/s50414267/0a.jpg", "files/p*/p*/s*/*.jpg or p*/p*/s*/*.jpg"),
    ],
)
def test_an_empty_dataset_folder_is_an_error_that_says_what_was_looked_for(
    tmp_path: Path, source: str, makes: str, looked_for: str
) -> None:
    datasets = small()["datasets"]
    name = "mri" if source == "ucsf-pdgm" else "xray"
    datasets[name] = {"source": source, "root": "scans", "questions": {"origin": "file", "path": "q.jsonl"}}
    (tmp_path / "scans").mkdir()
    question = {"study": "a", "stem": "?", "options": ["x", "y"], "answer": "x", "topic": "t"}
    (tmp_path / "q.jsonl").write_text(json.dumps(question) + "\n")
    config = config_of(tmp_path, datasets=datasets)
    assert plan.check(config)[0] == [
        f"datasets.{name}.root: {tmp_path}/scans holds no study: looked for {looked_for}; "
        "give the folder that holds them"
    ]
    (tmp_path / "scans" / makes).mkdir(parents=True)
    assert plan.check(config)[0] == []


def test_weights_of_the_hub_without_a_revision_are_a_warning(tmp_path: Path) -> None:
    evaluations = [{"dataset": "mri", "models": ["blind", "truth"], "settings": ["text"]}]
    _, warnings = plan.check(config_of(tmp_path, OTHERS, evaluations=evaluations, comparisons={}))
    assert warnings == [
        "models: no revision is pinned for blind: the main branch in the hub's cache would be used; "
        "put `revision: <commit>` into its file"
    ]


def test_comparisons_and_effects_without_anything_to_compare_are_warnings(tmp_path: Path) -> None:
    comparisons = {
        **small()["comparisons"],
        "unasked": {"flips": ["plain", "text"]},
        "apart": {"flips": ["plain", "report"]},
    }
    config = config_of(tmp_path, comparisons=comparisons, effects={"mixed": {"minus": ["gain", "swap"]}})
    assert sorted(plan.check(config)[1]) == [
        "comparisons.apart: no model is asked both plain and report on the same dataset: it will be empty",
        UNMEASURED,
        "comparisons.unasked: no evaluation asks for text: it will be empty",
        "effects.mixed: gain and swap share no model and dataset: it will be empty",
    ]


def test_a_setting_against_itself_needs_two_runs(tmp_path: Path) -> None:
    again = {"again": {"flips": ["plain", "plain"]}}
    once = [{"dataset": "mri", "models": ["reader"], "settings": ["plain"], "runs": 1}]
    assert plan.check(config_of(tmp_path, comparisons=again, effects={}, evaluations=once))[1] == [
        "comparisons.again: sets the runs of plain against each other, and it is run once: it will be empty; give its "
        "evaluation `runs: 2`"
    ]
    twice = [{**once[0], "runs": 2}]
    assert plan.check(config_of(tmp_path, comparisons=again, effects={}, evaluations=twice))[1] == []


def test_an_effect_of_effects_is_checked_down_to_its_comparisons(tmp_path: Path) -> None:
    effects = {
        "one": {"minus": ["gain", "gain"]},
        "two": {"minus": ["swap", "swap"]},
        "both": {"minus": ["one", "two"]},
    }
    warnings = plan.check(config_of(tmp_path, comparisons=small()["comparisons"], effects=effects))[1]
    assert warnings == ["effects.both: one and two share no model and dataset: it will be empty", UNMEASURED]
