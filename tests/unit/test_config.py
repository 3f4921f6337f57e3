"""The config: what it can say, and that every mistake is one line with file, key, value and what to do."""

from __future__ import annotations

import random
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from data.configs import MODELS, small, written
from overread.config import build, load, load_model, read_yaml
from overread.config.base import NAME
from overread.config.kinds import SOURCES
from overread.config.resolving import value_in_name
from overread.core.errors import BadConfig, unknown

ROOT = Path(__file__).parents[2]


def mistakes(folder: Path, content: Mapping[str, Any] | str, models: Mapping[str, Any] = MODELS) -> list[str]:
    """The lines of the error that a config gives, without the folder."""
    with pytest.raises(BadConfig) as caught:
        load(written(folder, content, models))
    return [line.replace(f"{folder}/", "") for line in str(caught.value).splitlines()]


def changed(*keys: Any, value: Any) -> dict[str, Any]:
    """The small config with one value changed."""
    content = small()
    place: Any = content
    for key in keys[:-1]:
        place = place[key]
    place[keys[-1]] = value
    return content


SETTING_KEYS = (
    "attention, edit, extends, images, options, order, questions, readout, report, source, substitute, sweep, warning"
)


@pytest.mark.parametrize(
    ("keys", "value", "line"),
    [
        (
            ("setings",), {},
            "study.yaml: no key 'setings'; there are: attested_endpoints, comparisons, datasets, effects, evaluations, "
            "frozen_code, human, name, prompts, reports, responses, seed, settings, statistics, title, views. "
            "Did you mean settings?",
        ),
        (
            ("settings", "plain", "sorce"), "black",
            f"study.yaml: settings.plain: no key 'sorce'; there are: {SETTING_KEYS}. Did you mean source?",
        ),
        (
            ("settings", "plain", "readout"), "chioce",
            "study.yaml: settings.plain.readout: no value 'chioce'; there are: choice, first-token, free-text, "
            "similarity, yes-no. Did you mean choice?",
        ),
        (
            ("settings", "plain", "images"), "flare",
            "study.yaml: settings.plain.images: no view 'flare'; there are: all-series, flair, frontal, none, volume. "
            "Did you mean flair?",
        ),
        (
            ("settings", "plain", "extends"), "plain",
            "study.yaml: settings.plain.extends: plain -> plain comes back to itself; remove one `extends`",
        ),
        (
            ("settings", "plain", "extends"), "black",
            "study.yaml: settings.black.extends: black -> plain -> black comes back to itself; remove one `extends`",
        ),
        (
            ("settings", "black", "extends"), "plane",
            "study.yaml: settings.black.extends: no setting 'plane'; there are: black, plain, report, report-swapped, "
            "slices, text. Did you mean plain?",
        ),
        (
            ("settings", "text", "source"), "black",
            "study.yaml: settings.text: source 'black' needs a view under 'images'",
        ),
        (
            ("evaluations", 0, "models"), ["raeder"],
            "study.yaml: evaluations[0].models: no model 'raeder'; there are: reader, truth. Did you mean reader?",
        ),
        (
            ("evaluations", 0, "models"), [],
            "study.yaml: evaluations[0].models: the list is empty; name at least one",
        ),
        (
            ("evaluations", 0, "models"), "reader",
            'study.yaml: evaluations[0].models: must be `all` or a list, as in [reader] (it is "reader")',
        ),
        (
            ("evaluations", 0, "models"), ["reader", "reader"],
            "study.yaml: evaluations[0].models: duplicate 'reader'",
        ),
        (
            ("evaluations", 0, "dataset"), "mrt",
            "study.yaml: evaluations[0].dataset: no dataset 'mrt'; there are: mri, xray. Did you mean mri?",
        ),
        (
            ("evaluations", 0, "runs"), -3,
            "study.yaml: evaluations[0].runs: must be at least 1 (it is -3)",
        ),
        (
            ("evaluations", 0, "runs"), "three",
            'study.yaml: evaluations[0].runs: must be a whole number (it is "three")',
        ),
        (
            ("datasets", "mri", "source"), "phantm",
            f"study.yaml: datasets.mri.source: no value 'phantm'; there are: {', '.join(SOURCES)}. "
            "Did you mean phantom?",
        ),
        (
            ("datasets", "mri"), {"modality": "mri"},
            "study.yaml: datasets.mri.source: is missing",
        ),
        (
            ("datasets", "mri", "questions"), {"origin": "findings"},
            "study.yaml: datasets.mri: questions of origin 'findings' are about chest X-rays; the modality here is mri",
        ),
        (
            ("datasets", "xray", "questions", "findings"), ["Edma"],
            "study.yaml: datasets.xray.questions.findings: no finding 'Edma'; there are: Atelectasis, Cardiomegaly, "
            "Consolidation, Edema, Enlarged Cardiomediastinum, Fracture, Lung Lesion, Lung Opacity, Pleural Effusion, "
            "Pleural Other, Pneumonia, Pneumothorax, Support Devices. Did you mean Edema?",
        ),
        (
            ("views", "flair", "plan"), "axial",
            "study.yaml: views.flair: no key 'plan'; there are: caption, kind, plane, series, size, slice, windows. "
            "Did you mean plane?",
        ),
        (
            ("comparisons", "gain"), {"accuracy": ["plain", "blak"]},
            "study.yaml: comparisons.gain.accuracy: no setting 'blak'; there are: black, plain, report, "
            "report-swapped, slices, text. Did you mean black?",
        ),
        (
            ("comparisons", "gain"), {"accuracy": ["plain", "plain"]},
            "study.yaml: comparisons.gain: compares 'plain' with itself",
        ),
        (
            ("effects",), {"effect": {"minus": ["other", "other"]}, "other": {"minus": ["effect", "effect"]}},
            "study.yaml: effects.effect.minus: effect -> other -> effect comes back to itself",
        ),
        (
            ("effects",), {"effect": {"minus": ["swap", "gain"]}, "other": {"minus": ["effect", "gain"]}},
            "study.yaml: effects.other.minus: sets a comparison against an effect; name two comparisons or two effects",
        ),
        (
            ("effects",), {"effect": {"minus": ["swap", "gian"]}},
            "study.yaml: effects.effect.minus: no comparison 'gian'; there are: gain, swap. Did you mean gain?",
        ),
        (
            ("statistics",), {"level": 95},
            "study.yaml: statistics.level: must be less than 1 (it is 95)",
        ),
        (
            ("name",), "My Study",
            "study.yaml: name: must be small letters, digits, dots and hyphens, as in single-slice "
            '(it is "My Study")',
        ),
        (
            ("models",), {"reader": {}},
            "study.yaml: models: models are files in models, not a key of the config",
        ),
        (
            ("settings",), {},
            "study.yaml: settings: is empty; give at least one",
        ),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line_with_key_value_and_what_is_allowed(
    tmp_path: Path, keys: tuple[Any, ...], value: Any, line: str
) -> None:
    found = mistakes(tmp_path, changed(*keys, value=value))
    if keys == ("settings",):  # names of settings elsewhere lead nowhere then, but the sections are not looked at yet
        assert line in found
    else:
        assert found == [line]


def test_a_mistake_is_told_where_it_is_written_and_not_where_it_is_inherited(tmp_path: Path) -> None:
    """Three settings extend `plain`; each of its mistakes is told once, at `plain`."""
    content = small()
    content["settings"]["plain"] |= {"options": "shufled", "images": "nowhere", "colour": 1}
    assert [line.split(":")[1].strip() for line in mistakes(tmp_path, content)] == [
        "settings.plain",
        "settings.plain.options",
    ]
    del content["settings"]["plain"]["options"], content["settings"]["plain"]["colour"]
    assert [line.split(":")[1].strip() for line in mistakes(tmp_path, content)] == ["settings.plain.images"]


def test_a_contradiction_is_told_at_the_setting_that_has_it_and_not_at_its_heirs(tmp_path: Path) -> None:
    content = small()
    content["settings"]["report"] = {"images": "frontal", "warning": True}
    content["settings"]["text"] = {"warning": True}
    assert sorted(mistakes(tmp_path, content)) == [
        "study.yaml: settings.report: a warning about the report needs a 'report'",
        "study.yaml: settings.text: a warning about the report needs a 'report'",
    ]


def test_a_list_whose_only_entry_is_wrong_is_not_called_empty_as_well(tmp_path: Path) -> None:
    content = small(evaluations=[{"dataset": "mri", "models": "all", "settings": "all", "runs": 0}], comparisons={})
    assert mistakes(tmp_path, content) == ["study.yaml: evaluations[0].runs: must be at least 1 (it is 0)"]


def test_every_mistake_of_a_config_is_told_at_once(tmp_path: Path) -> None:
    content = changed("settings", "plain", "readout", value="x")
    content["evaluations"][1]["runs"] = 0
    content["views"]["flair"]["plane"] = "oblique"
    models = {**MODELS, "reader": {**MODELS["reader"], "dtype": "float8"}}
    assert [line.split(": ")[:2] for line in mistakes(tmp_path, content, models)] == [
        ["study.yaml", "views.flair.plane"],
        ["study.yaml", "settings.plain.readout"],
        ["study.yaml", "evaluations[1].runs"],
        ["models/reader.yaml", "dtype"],
    ]


def test_a_broken_model_file_is_one_line_and_no_unknown_model_besides(tmp_path: Path) -> None:
    models = {**MODELS, "reader": {**MODELS["reader"], "takes": {"image": 1}}}
    assert mistakes(tmp_path, small(), models) == [
        "models/reader.yaml: takes: no key 'image'; there are: attention, image_tokens, images, layers, logprobs, "
        "text_only, volumes. Did you mean images?"
    ]


def test_code_from_the_hub_is_run_only_when_it_is_pinned(tmp_path: Path) -> None:
    model = {"label": "M", "backend": "med3dvlm", "weights": "someone/model", "trust_remote_code": True}
    assert mistakes(tmp_path, small(), {**MODELS, "m": model}) == [
        "models/m.yaml: trust_remote_code runs code from the hub: pin it with 'revision'"
    ]
    load(written(tmp_path, small(), {**MODELS, "m": {**model, "revision": "0" * 40}}))


def test_a_key_that_stands_twice_is_an_error_with_its_line(tmp_path: Path) -> None:
    assert mistakes(tmp_path, "name: one\nseed: 1\nname: two\n") == [
        "study.yaml: not readable as YAML: line 3: duplicate key 'name'; remove or rename one of them"
    ]


def test_yes_and_no_are_words_and_true_and_false_are_not(tmp_path: Path) -> None:
    path = tmp_path / "some.yaml"
    path.write_text("{yes: no, on: off, t: true, f: False}")
    assert read_yaml(path) == {"yes": "no", "on": "off", "t": True, "f": False}
    with_yes = {**MODELS["truth"], "reliance": {"yes": 0.25}}
    model = load(written(tmp_path, small(), {**MODELS, "truth": with_yes})).models["truth"]
    assert model.model_dump()["reliance"]["yes"] == 0.25


def test_a_section_called_like_a_tag_of_a_union_keeps_its_name_in_errors(tmp_path: Path) -> None:
    """`phantom`, `slice` and `findings` are tags of discriminated unions, and names that a person may choose."""
    content = small()
    content["datasets"]["phantom"] = {**content["datasets"]["mri"], "studies": 0}
    content["views"]["slice"] = {"series": "FLAIR", "size": 1}
    content["views"]["montage"] = {"kind": "montage", "planes": ["top"]}
    assert sorted(line.split(": ")[1] for line in mistakes(tmp_path, content)) == [
        "datasets.phantom.studies",
        "views.montage.planes[0]",
        "views.slice.size",
    ]


def test_a_sweep_makes_a_setting_for_each_value_and_is_inherited(tmp_path: Path) -> None:
    content = small()
    content["settings"]["hidden"] = {"extends": "report", "sweep": {"attention": ["none", "from-0..2", "only-7"]}}
    content["settings"]["hidden-swapped"] = {"extends": "hidden", "source": "substitute"}
    content["evaluations"][1]["settings"] = ["hidden-*", "hidden-swapped-from-1"]
    content["comparisons"]["hiding"] = {"flips": ["hidden-*", "hidden-swapped-*"]}
    content["comparisons"]["against-open"] = {"flips": ["report", "hidden-*"]}
    config = load(written(tmp_path, content))
    values = ["none", "from-0", "from-1", "from-2", "only-7"]
    assert config.sweeps["hidden"] == tuple(f"hidden-{value}" for value in values)
    assert [config.settings[name].attention for name in config.sweeps["hidden-swapped"]] == values
    assert config.settings["hidden-swapped-only-7"].source == "substitute"
    assert config.settings["hidden-only-7"].source == "own"
    assert "hidden" not in config.settings
    assert config.evaluations[1].settings == (*config.sweeps["hidden"], "hidden-swapped-from-1")
    assert config.comparisons["hiding-from-2"].settings == ("hidden-from-2", "hidden-swapped-from-2")
    assert config.comparisons["against-open-none"].settings == ("report", "hidden-none")
    assert sum(name.startswith("hiding-") for name in config.comparisons) == 5


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (0.5, "0.5"), (2.0, "2"), (1e-5, "1e-05"), (-0.5, "minus-0.5"), (True, "true"), ("from-0", "from-0"),
        ([{"blur": 2}, {"crop": 0.1}], "blur-2-crop-0.1"), ([], "none"), (None, "none"), ("A_b", "a-b"),
    ],
)  # fmt: skip
def test_any_swept_value_ends_a_name(value: object, name: str) -> None:
    assert value_in_name(value) == name
    assert re.fullmatch(NAME, f"swept-{name}")


@pytest.mark.parametrize(
    ("sweep", "line"),
    [
        ({"attension": ["from-0"]}, "settings.hidden.sweep: no key 'attension'; there are: attention, edit, images, "
            "options, order, questions, readout, report, source, substitute, warning. Did you mean attention?"),
        ({"attention": []}, "settings.hidden.sweep: the list is empty; give at least one value"),
        ({"attention": "from-0"}, "settings.hidden.sweep: must be one key with a list of values, as in "
            "{options: [rotated-1, rotated-2]}"),
        ({"attention": ["from-3..1"]}, "settings.hidden.sweep: 'from-3..1' must run upwards, over at most 1000 values"),
        ({"attention": ["from-1", "from-0..2"]}, "settings.hidden.sweep: duplicate 'from-1'"),
        ({"attention": ["from-0..9", "behind-3"]},
            "settings.hidden.sweep.attention: must be none, from-L or only-L with "
            'a layer\'s number L, as in from-0 (it is "behind-3")'),
        ({"report": ["full", "none"]}, None),
        ({"warning": [True, False]}, None),
    ],
)  # fmt: skip
def test_a_wrong_sweep_is_one_line(tmp_path: Path, sweep: dict[str, Any], line: str | None) -> None:
    content = small()
    content["settings"]["hidden"] = {"extends": "report", "sweep": sweep}
    content["settings"]["hidden-too"] = {"extends": "hidden", "source": "substitute"}
    content["evaluations"][1]["settings"] = ["hidden-*"]
    if line is None:
        load(written(tmp_path, content))
    else:
        assert mistakes(tmp_path, content) == [f"study.yaml: {line}"]


def test_a_mistake_that_every_setting_of_a_sweep_shares_is_told_once(tmp_path: Path) -> None:
    content = small()
    content["settings"]["hidden"] = {"extends": "report", "report": "none", "sweep": {"attention": ["from-0..62"]}}
    assert mistakes(tmp_path, content) == [
        "study.yaml: settings.hidden: 'attention' hides a report, but 'report' is none"
    ]


def test_a_sweep_is_named_with_a_star(tmp_path: Path) -> None:
    content = small()
    content["settings"]["hidden"] = {"extends": "report", "sweep": {"attention": ["from-0..1"]}}
    content["evaluations"][1]["settings"] = ["hidden"]
    assert mistakes(tmp_path, content) == [
        "study.yaml: evaluations[1].settings: 'hidden' is a sweep: write 'hidden-*' for all that it makes, "
        "or name one of them"
    ]
    content["evaluations"][1]["settings"] = ["hiden-*"]
    assert mistakes(tmp_path, content) == [
        "study.yaml: evaluations[1].settings: 'hiden-*': no sweep 'hiden'; there are: hidden. Did you mean hidden?"
    ]


def test_a_sweep_does_not_replace_a_setting(tmp_path: Path) -> None:
    content = small()
    content["settings"]["report-full"] = {}
    content["settings"]["report"] = {**content["settings"]["report"], "sweep": {"report": ["full"]}}
    assert (
        "study.yaml: settings.report.sweep: makes 'report-full', which is there already; rename one of them"
        in mistakes(tmp_path, content)
    )


def test_sweeps_over_different_values_are_not_compared(tmp_path: Path) -> None:
    content = small()
    content["settings"]["one"] = {"extends": "report", "sweep": {"attention": ["from-0..2"]}}
    content["settings"]["two"] = {"extends": "report-swapped", "sweep": {"attention": ["from-0..3"]}}
    content["comparisons"] = {"hiding": {"flips": ["one-*", "two-*"]}}
    assert mistakes(tmp_path, content) == [
        "study.yaml: comparisons.hiding.flips: 'one-*' and 'two-*' sweep over different values"
    ]


def test_a_line_stays_readable_however_many_names_there_are() -> None:
    line = unknown("setting", "hiden-from-7", [f"hidden-from-{layer}" for layer in range(63)])
    assert len(line) < 300
    assert line.endswith("Did you mean hidden-from-7?")
    assert "of the 63 there are" in line


def test_a_mapping_of_another_reader_gives_the_same_config(tmp_path: Path) -> None:
    """Snakemake reads the file itself and may override values from the command line."""
    path = written(tmp_path, small())
    content = read_yaml(path)
    before = repr(content)
    assert build(content, path) == load(path)
    assert repr(content) == before, "the mapping given is left as it was"
    assert build({**content, "seed": "7"}, path).seed == 7


def test_paths_are_relative_to_the_file_that_names_them(tmp_path: Path) -> None:
    content = small()
    content["datasets"]["mri"] = {"source": "ucsf-pdgm", "root": "scans", "questions": {"origin": "file", "path": "/q"}}
    config = load(written(tmp_path, content))
    assert config.datasets["mri"].model_dump()["root"] == str(tmp_path / "scans")
    assert config.datasets["mri"].model_dump()["questions"]["path"] == "/q"
    assert config.models["reader"].model_dump()["weights"] == str(tmp_path / "models" / "weights")


@pytest.mark.parametrize("name", ["demo", "config"])
def test_the_configs_of_the_project_load(name: str) -> None:
    assert load(ROOT / "config" / f"{name}.yaml").evaluations


def test_dress_is_no_part_of_what_a_model_is(tmp_path: Path) -> None:
    path = ROOT / "config" / "models" / "medgemma-27b.yaml"
    before = load_model(path).identity()
    content = read_yaml(path)
    dressed = {**content, "label": "Other", "note": "x", "batch": 3, "resources": {"gpu": 8}, "takes": {"images": 2}}
    written(tmp_path, small(), {"dressed": dressed, "warm": {**content, "decoding": {"temperature": 0.5}}})
    assert load_model(tmp_path / "models" / "dressed.yaml").identity() == before
    assert load_model(tmp_path / "models" / "warm.yaml").identity() != before


def test_the_order_of_lists_and_keys_changes_no_setting(tmp_path: Path) -> None:
    content = small()
    one = load(written(tmp_path, content))
    shuffled = dict(content)
    for section in ("datasets", "views", "settings", "comparisons"):
        names = list(content[section])
        random.Random(3).shuffle(names)
        shuffled[section] = {name: content[section][name] for name in names}
    shuffled["evaluations"] = [
        {**each, "models": each["models"][::-1], "settings": each["settings"][::-1]}
        for each in reversed(content["evaluations"])
    ]
    path = written(tmp_path, {})
    two = build(shuffled, path)
    assert one.settings == two.settings
    assert one.identity() == two.identity()
    shuffled["evaluations"][0]["runs"] = 9
    assert build(shuffled, path).identity() != one.identity()


def test_the_order_of_findings_changes_no_question(tmp_path: Path) -> None:
    sections = []
    for findings in (["Edema", "Atelectasis"], ["Atelectasis", "Edema"]):
        content = changed("datasets", "xray", "questions", value={"origin": "findings", "findings": findings})
        sections.append(load(written(tmp_path, content)).datasets["xray"])
    assert sections[0].model_dump_json() == sections[1].model_dump_json()


def test_the_config_is_light_to_import() -> None:
    """The Snakefile is parsed once for every job."""
    code = (
        "import sys, overread.config; heavy = {'numpy', 'pandas', 'pyarrow', 'torch', 'snakemake', 'rich', 'typer'};"
        "print(sorted(heavy & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


@pytest.mark.parametrize(
    "endpoint", ["vlm.example", "https://key@vlm.example/v1", "ftp://vlm.example", "https://a b/v1"]
)
def test_an_address_that_the_guard_cannot_compare_is_refused(tmp_path: Path, endpoint: str) -> None:
    path = tmp_path / "server.yaml"
    path.write_text(f"label: S\nbackend: openai\nmodel: m\nendpoint: {endpoint}\n")
    with pytest.raises(BadConfig, match=r"server\.yaml: endpoint: "):
        load_model(path)
