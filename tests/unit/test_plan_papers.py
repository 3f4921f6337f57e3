"""The config of both papers: it asks for all that they report, and for nothing that can't be."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from overread import plan
from overread.config import load
from overread.plan import judging

ROOT = Path(__file__).parents[2]
PAPERS = ROOT / "config" / "config.yaml"


@pytest.fixture(autouse=True)
def _no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def test_the_plan_of_the_papers_holds_their_numbers() -> None:
    whole = plan.estimate(load(PAPERS), None)
    loads = {load.cell.name: load for load in whole.loads}
    assert whole.sizes["mimic-cxr"].questions == 44_786 == 3_199 * 14
    assert whole.sizes["mimic-cxr"].patients == 293
    assert (whole.sizes["ucsf-pdgm"].studies, whole.sizes["ucsf-pdgm"].questions) == (473, 2_387)
    for model in ("medgemma-27b", "qwen3.5-9b", "qwen3.5-27b", "llava-next-mistral-7b"):
        for setting in ("xray-report", "xray-report-swapped", "xray", "xray-swapped"):
            assert loads["mimic-cxr", model, setting].requests == 44_786
            assert loads["mimic-cxr", model, setting].images == 44_786
    assert loads["mimic-cxr", "medgemma-27b", "report-only"].images == 0
    assert loads["mimic-cxr", "medgemma-27b", "one-warning-swapped"].requests == 3_199
    assert loads["ucsf-pdgm", "lingshu-32b", "single-slice"].requests == 2_387 * 3
    assert loads["ucsf-pdgm", "medgemma-1.5-4b", "multi-slice"].images == 2_387 * 3 * 23
    assert loads["ucsf-pdgm", "medgemma-1.5-4b", "multi-slice-montages"].images == 2_387 * 3 * 3
    assert loads["ucsf-pdgm", "qwen3-8b", "text-only"].jobs == 3


TABLE_4 = {
    "qwen3-8b": {"text-only", "text-only-reshuffled"},
    "llava-med-1.5": {"single-slice", "single-slice-montage", "single-slice-black", "single-slice-reshuffled"},
    "medimageinsight": {"similarity", "similarity-montage", "similarity-black", "similarity-reshuffled"},
    "med3dvlm": {"volume", "volume-black", "volume-reshuffled"},
    "lingshu-32b": {"single-slice", "single-slice-montage", "single-slice-black", "single-slice-reshuffled"},
    "medgemma-1.5-4b": {
        "single-slice", "single-slice-montage", "single-slice-black", "single-slice-reshuffled",
        "multi-slice", "multi-slice-montages", "multi-slice-reshuffled",
    },
    "gpt-5-mini": {
        "single-slice", "single-slice-montage", "single-slice-black", "single-slice-reshuffled",
        "multi-slice", "multi-slice-montages", "multi-slice-reshuffled", "text-only",
    },
}  # fmt: skip
"""Every number of the paper's Table 4 but none of its dashes."""


def test_the_papers_config_asks_for_every_number_of_table_4_in_three_runs() -> None:
    asked = {cell.name: cell.runs for cell in plan.cells(load(PAPERS)) if cell.dataset == "ucsf-pdgm"}
    audit = ("swapped", "report", "shifted", "erased", "moved", "mirrored", "blurred", "marks")
    for model, settings in TABLE_4.items():
        plain = {name for _, of, name in asked if of == model and not any(part in name for part in audit)}
        assert plain == settings
    papers = {runs for (_, _, name), runs in asked.items() if not any(part in name for part in audit[2:])}
    assert papers == {3}


def test_the_papers_config_hides_the_report_from_each_of_62_layers() -> None:
    config = load(PAPERS)
    shown = {config.settings[cell.setting].attention for cell in plan.cells(config)}
    assert shown == {"none"} | {f"from-{layer}" for layer in range(63)} | {f"only-{layer}" for layer in range(62)}
    assert sum(name.startswith("hiding-") for name in config.comparisons) == 63 + 62


def test_with_everything_there_both_papers_run_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No pair of the papers' config can never be: only data, a key and an attestation are missing."""
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    config = load(PAPERS)
    assert not [row for row in plan.not_run(config) if row["when"] != "missing"]
    errors, warnings = plan.check(config)
    assert errors == []
    assert all("empty" not in line for line in warnings)


def test_every_part_of_a_setting_is_asked_for_by_the_papers_config() -> None:
    """Whatever the instrument can vary, the two papers together vary it but for rotations and free text."""
    config = load(PAPERS)
    used = [config.settings[cell.setting] for cell in plan.cells(config)]
    kinds = Counter(config.views[setting.images].kind for setting in used if setting.images != "none")
    assert set(kinds) == {"slice", "montage", "volume", "frontal"}
    assert {setting.source for setting in used} == {"own", "substitute", "black"}
    assert {setting.report for setting in used} == {
        "none", "full", "neutral", "boilerplate", "without-finding", "with-answer", "substitute",
    }  # fmt: skip
    assert {setting.warning for setting in used} == {True, False}
    assert {setting.order for setting in used} == {"image-first", "text-first"}
    assert {setting.options for setting in used} == {"as-written", "shuffled"}
    assert {setting.readout for setting in used} == {"choice", "yes-no", "first-token", "similarity"}
    assert {setting.questions for setting in used} == {"all", "one-per-study"}


def test_every_report_of_the_papers_config_can_be_made_by_this_version() -> None:
    config = load(PAPERS)
    assert [name for name in config.settings if judging.missing_of(config, name)] == []
