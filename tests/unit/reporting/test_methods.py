"""The methods in sentences: each is said of what was run, and of nothing else."""

from __future__ import annotations

import copy
from typing import Any

import made
import pytest

from overread.config import Setting
from overread.reporting.methods import Data, methods
from overread.settings.setting import read_settings

VERSIONS = {"overread": "0.1.0", "Python": "3.11.7", "numpy": "2.0.0", "vllm": "0.30"}
MEDGEMMA = {
    "label": "MedGemma 27B", "backend": "vllm", "weights": "google/medgemma-27b-it", "revision": "abc123",
    "dtype": "bfloat16", "decoding": {"temperature": 0.0, "max_tokens": 512, "top_p": None, "reasoning_effort": None},
}  # fmt: skip


@pytest.fixture(scope="module")
def whole_spec(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return made.make_results(tmp_path_factory.mktemp("methods") / "small", draws=2500)


@pytest.fixture
def spec(whole_spec: dict[str, Any]) -> dict[str, Any]:
    """Of `made`, with one dataset and one model, that each test changes as it needs."""
    whole = copy.deepcopy(whole_spec)
    whole["settings"] = read_settings(whole["settings"])
    whole["cells"] = [cell for cell in whole["cells"] if cell["dataset"] == "xray" and cell["model"] == "reader"]
    whole["models"]["reader"] = MEDGEMMA
    return whole


def told(spec: dict[str, Any], significance: list[dict[str, str]] | None = None, **about: Any) -> dict[str, str]:
    numbers = {"questions": "44786", "studies": "3199", "patients": "293"}
    data = Data(
        **{"name": "xray", "modality": "xray", "numbers": numbers, "unusable": 0, "semi_synthetic": False, **about}
    )
    found = dict(methods(spec, [data], significance or [], VERSIONS))
    return {name: text.replace("\N{NO-BREAK SPACE}", " ") for name, text in found.items()}


def setting(**fields: Any) -> Setting:
    return Setting.model_validate(fields)


def test_a_dataset_is_told_with_its_source_split_and_numbers(spec: dict[str, Any]) -> None:
    spec["datasets"]["xray"] |= {"source": "mimic-cxr", "split": "test"}
    text = told(spec)["Data"]
    assert text.startswith("xray consisted of chest X-rays from MIMIC-CXR-JPG, split test: 44,786 questions, 3,199")
    assert "3,199 studies and 293 patients." in text
    assert "could not be used" not in text and "planted" not in text
    assert told(spec, unusable=1)["Data"].count("1 study could not be used and was left out.") == 1
    assert "findings planted in real anatomy" in told(spec, semi_synthetic=True)["Data"]


def test_substitutes_are_told_only_where_an_image_was_swapped(spec: dict[str, Any]) -> None:
    spec["datasets"]["xray"]["substitutes"] |= {
        "patient": "another",
        "same_attributes": ["ViewPosition"],
        "finding": "changed",
    }
    wanted = (
        "Where the image was swapped, it was that of another study of another patient, equal in ViewPosition, for "
        "which the correct answer was another; it was chosen once, the same for every model."
    )
    assert wanted in told(spec)["Data"]
    spec["cells"] = [cell for cell in spec["cells"] if cell["setting"] == "xray"]
    assert "swapped" not in told(spec)["Data"]


def test_a_model_is_told_with_what_makes_it_the_same_model_again(spec: dict[str, Any]) -> None:
    assert told(spec)["Models"] == (
        "The questions were put to MedGemma 27B (google/medgemma-27b-it, revision abc123, bfloat16, vLLM, greedy "
        "decoding, at most 512 tokens)."
    )
    spec["models"]["reader"] = {
        **MEDGEMMA, "weights": "/home/someone/private/medgemma", "revision": None,
        "decoding": {"temperature": 0.2, "max_tokens": 64, "top_p": 0.9, "reasoning_effort": None},
    }  # fmt: skip
    text = told(spec)["Models"]
    assert "(medgemma, bfloat16, vLLM, temperature 0.2, top-p 0.9, at most 64 tokens)" in text
    assert "private" not in text


def test_a_calibrated_reader_is_not_called_a_model(spec: dict[str, Any]) -> None:
    spec["models"]["reader"] = {"label": "Reader", "backend": "calibrated"}
    text = told(spec)["Models"]
    assert text == "Reader is a calibrated reader and no model: told the truth, to follow it at a set rate."


def test_a_sweep_over_layers_is_told_once(spec: dict[str, Any]) -> None:
    base = {"images": "frontal", "report": "full", "readout": "yes-no"}
    spec["settings"] = {f"hidden-{n}": setting(**base, attention=f"from-{n}") for n in range(62)}
    spec["settings"]["only-3"] = setting(**base, attention="only-3")
    spec["cells"] = [
        {"dataset": "xray", "model": "reader", "setting": name, "runs": 3} for name in spec["settings"]
    ]  # fmt: skip
    text = told(spec)["Settings"]
    assert text.startswith(
        "The questions on xray were put in 3 runs under 63 settings: hidden-0 and 61 more, each with"
    )
    assert text.count("hidden from the model's attention from layer 0 to 61 on") == 1
    assert text.count("hidden from the model's attention in layer 3 alone") == 1


def test_gaps_between_models_and_between_runs_are_told(spec: dict[str, Any]) -> None:
    assert "not every model" not in told(spec)["Settings"] and "put once under" in told(spec)["Settings"]
    spec["cells"] = [*spec["cells"][1:], {**spec["cells"][0], "model": "blind-reader", "runs": 2}]
    text = told(spec)["Settings"]
    assert "put in 1 to 2 runs under" in text and ", not every model under each:" in text


def test_views_are_told_where_the_spec_has_them(spec: dict[str, Any]) -> None:
    assert "Of the inputs" not in told(spec)["Settings"]
    spec["views"] = {
        "frontal": {"kind": "frontal", "size": None},
        "three": {"kind": "montage", "series": "all", "planes": ["axial", "coronal"]},
        "slice": {"kind": "slice", "series": "FLAIR", "plane": "axial", "slice": "largest-tumour"},
    }
    assert told(spec)["Settings"].endswith(
        "Of the inputs, frontal is the frontal radiograph; slice is the axial slice of FLAIR (chosen by: largest "
        "tumour); three is a montage of every series, one picture each of the planes axial and coronal."
    )


def test_the_statistics_are_those_of_the_config_and_tests_are_told_only_where_there_are_any(
    spec: dict[str, Any],
) -> None:
    text = told(spec)["Statistics"]
    assert text.startswith("Intervals are 95 % intervals of Korn and Graubard for shares, with patients as clusters")
    assert "Holm" not in text
    spec["statistics"] = {"level": 0.9, "intervals": "bootstrap", "draws": 100, "seed": 7}
    measured, assumed = {"floor_basis": "measured"}, {"floor_basis": "not measured"}
    text = told(spec, [measured, measured])["Statistics"]
    assert "90 % percentile intervals" in text and "(100 draws, seed 7)" in text
    assert "the change seen in reruns or under a placebo, one-sided" in text and "no p" not in text
    assert "the tests of a model on a data set were adjusted together after Holm" in text
    text = told(spec, [assumed])["Statistics"]
    assert "against nothing where that was not measured, which gives no p, one-sided" in text


def test_flips_are_told_only_where_they_were_counted(spec: dict[str, Any]) -> None:
    assert "A flip is" in told(spec)["Scoring"]
    spec["comparisons"] = {"gain": {"accuracy": ["xray", "xray-black"], "flips": None}}
    assert "flip" not in told(spec)["Scoring"]


def test_the_software_names_the_version_the_configuration_and_what_made_the_tables(spec: dict[str, Any]) -> None:
    text = told(spec)["Software"]
    assert f"Overread 0.1.0 (configuration {spec['config_hash']})" in text
    assert "made with Python 3.11.7, numpy 2.0.0." in text and "vllm" not in text


def test_methods_change_nothing_in_the_spec(spec: dict[str, Any]) -> None:
    before = copy.deepcopy(spec)
    told(spec)
    assert spec == before
