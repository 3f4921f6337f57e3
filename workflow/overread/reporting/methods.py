"""The methods in sentences that can be pasted into a paper: each is said only of what was run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from overread.config import Setting
from overread.config.kinds import BACKENDS, SOURCES, VIEWS
from overread.edits import EDITS
from overread.reporting.rows import Row, number, where
from overread.reporting.words import count, listed, percent
from overread.settings.image import Image

MODALITIES = {"mri": "brain MRI", "xray": "chest X-rays"}
ORIGINS = {
    "findings": "a yes/no question for each of {findings}{composite}, answered by the data set's labels",
    "grammar": "written with the semi-synthetic reports by the same grammar",
    "file": "taken from a file",
    "generated": "multiple-choice questions written from the reports by {author}, checked by {validator}, and filtered",
}
WHOSE = {
    "same-if-possible": "of the same patient where there was one, else of another patient",
    "same": "of the same patient",
    "another": "of another patient",
}
SOFTWARE = ("Python", "numpy", "scipy", "pandas", "statsmodels", "matplotlib")
"""What the tables and figures are made with."""


@dataclass(frozen=True)
class Data:
    """A dataset in numbers, as in dataset.csv, and how many of its studies could not be used."""

    name: str
    modality: str
    numbers: Row
    unusable: int
    semi_synthetic: bool


def methods(
    spec: Mapping[str, Any], data: Sequence[Data], significance: Sequence[Row], versions: Mapping[str, str]
) -> list[tuple[str, str]]:
    """Heading and text of each paragraph.

    spec          the report's: what was run
    significance  the rows of significance.csv
    versions      of packages, by name
    """
    return [
        ("Data", " ".join(_data(one, spec) for one in data)),
        ("Models", _models(spec)),
        ("Settings", _settings(spec)),
        ("Scoring", _scoring(spec)),
        ("Statistics", _statistics(spec, significance)),
        ("Software", _software(spec, versions)),
    ]


def _data(data: Data, spec: Mapping[str, Any]) -> str:
    section = spec["datasets"][data.name]
    kind = MODALITIES.get(data.modality, data.modality)
    source = SOURCES[section["source"]].title
    split = f", split {section['split']}" if section.get("split") else ""
    planted = " (findings planted in real anatomy)" if data.semi_synthetic else ""
    counts = [count(number(data.numbers.get(name)) or 0, *words) for name, words in _COUNTED.items()]
    text = f"{data.name} consisted of {kind} from {source}{planted}{split}: {', '.join(counts[:2])} and {counts[2]}."
    text += f" The questions were {_origin(section['questions'], spec)}."
    if data.unusable:
        were = "was" if data.unusable == 1 else "were"
        text += f" {count(data.unusable, 'study', 'studies')} could not be used and {were} left out."
    swapped = {cell["setting"] for cell in spec["cells"] if cell["dataset"] == data.name}
    if any(spec["settings"][name][Image].source == "substitute" for name in swapped):
        text += f" {_substitutes(section['substitutes'])}"
    return text


_COUNTED = {"questions": ("question",), "studies": ("study", "studies"), "patients": ("patient",)}


def _origin(section: Mapping[str, Any], spec: Mapping[str, Any]) -> str:
    words = ORIGINS.get(section["origin"], f"of the kind {section['origin']}")
    named = {name: spec["models"].get(section.get(name), {}).get("label", section.get(name)) for name in _AUTHORS}
    composite = " and one for any acute finding" if section.get("composite") else ""
    return words.format(findings=count(len(section.get("findings", ())), "finding"), composite=composite, **named)


_AUTHORS = ("author", "validator")


def _substitutes(section: Mapping[str, Any]) -> str:
    """Whose image took a study's place."""
    text = f"Where the image was swapped, it was that of another study {WHOSE[section['patient']]}"
    if section["same_attributes"]:
        text += f", equal in {listed(list(section['same_attributes']))}"
    if section["finding"] != "any":
        text += f", for which the correct answer was {'another' if section['finding'] == 'changed' else 'the same'}"
    if section["same_other_findings"]:
        text += ", with all other findings the same"
    if section["other"]:
        text += f", differing in {listed(list(section['other']))}"
    return f"{text}; it was chosen once, the same for every model."


def _models(spec: Mapping[str, Any]) -> str:
    names = sorted({cell["model"] for cell in spec["cells"]})
    sections = [spec["models"][name] for name in names]
    told = [f"{one['label']} ({_how(one)})" for one in sections if not BACKENDS[one["backend"]].told_the_truth]
    weights = [one["label"] for one in sections if BACKENDS[one["backend"]].told_the_truth]
    text = f"The questions were put to {listed(told)}." if told else ""
    if weights:
        text += (
            f" {listed(weights)} {'is a calibrated reader' if len(weights) == 1 else 'are calibrated readers'} and no"
            f" {'model' if len(weights) == 1 else 'models'}: told the truth, to follow it at a set rate."
        )
    return text.strip()


def _how(model: Mapping[str, Any]) -> str:
    """Weights, revision, type, back end and decoding, as far as they are known."""
    weights = str(model.get("weights") or model.get("model") or "")
    parts = [weights.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1] if _is_place(weights) else weights]
    parts.append(f"revision {model['revision']}" if model.get("revision") else "")
    parts.append(str(model.get("dtype") or ""))
    parts.append(BACKENDS[model["backend"]].title)
    decoding = model.get("decoding") or {}
    temperature = decoding.get("temperature")
    if temperature is not None:
        parts.append("greedy decoding" if temperature == 0 else f"temperature {temperature:g}")
    parts.append(f"top-p {decoding['top_p']:g}" if decoding.get("top_p") is not None else "")
    parts.append(f"at most {decoding['max_tokens']} tokens" if decoding.get("max_tokens") is not None else "")
    effort = decoding.get("reasoning_effort")
    parts.append(f"reasoning effort {effort}" if effort else "")
    return ", ".join(part for part in parts if part)


def _is_place(weights: str) -> bool:
    return weights.startswith(("/", ".", "~", "\\")) or weights[1:2] == ":"


def _settings(spec: Mapping[str, Any]) -> str:
    """Of each dataset the settings that were run; those of a sweep together."""
    text = " ".join(
        _settings_of(name, [cell for cell in spec["cells"] if cell["dataset"] == name], spec["settings"])
        for name in sorted({cell["dataset"] for cell in spec["cells"]})
    )
    views = "; ".join(f"{name} is {_view_in_words(view)}" for name, view in sorted((spec.get("views") or {}).items()))
    return text + (f" Of the inputs, {views}." if views else "")


def _view_in_words(written: Mapping[str, Any]) -> str:
    """A view as it was rendered, with what was changed in the picture."""
    section = {key: value for key, value in written.items() if key != "edit"}
    edits = [EDITS[one["kind"]].model_validate(one).words() for one in written.get("edit", ())]
    return ", ".join([VIEWS[section["kind"]].model_validate(section).words(), *edits])


def _settings_of(dataset: str, cells: Sequence[Mapping[str, Any]], settings: Mapping[str, Setting]) -> str:
    used = sorted({cell["setting"] for cell in cells})
    models = len({cell["model"] for cell in cells})
    runs = sorted({cell["runs"] for cell in cells})
    often = "once" if runs == [1] else f"in {runs[0]} runs" if len(runs) == 1 else f"in {runs[0]} to {runs[-1]} runs"
    some = "" if len(cells) == models * len(used) else ", not every model under each"
    told = [f"{called} ({text})" for called, text in _told(used, settings)]
    return f"The questions on {dataset} were put {often} under {count(len(used), 'setting')}{some}: {'; '.join(told)}."


def _told(names: Sequence[str], settings: Mapping[str, Setting]) -> list[tuple[str, str]]:
    """Each setting's name and what it does; of those that differ only in how much of something they have, one."""
    alike: dict[object, list[str]] = {}
    for name in names:
        setting = settings[name]
        doses = [dose for dose in setting.doses() if dose.field in setting.changed()]
        key = (doses[0].name, repr(setting.without(doses[0]))) if doses else name
        alike.setdefault(key, []).append(name)
    told = []
    for same in alike.values():
        dose = {one: settings[one].doses() for one in same}
        ordered = sorted(same, key=lambda one: [each.value for each in dose[one]])
        called, text = same[0], _merged([settings[one].describe() for one in ordered]).rstrip(".")
        if len(same) > 1:
            what = next(each.what for each in dose[same[0]] if each.field in settings[same[0]].changed())
            called = f"{called} and {len(same) - 1} more, each with its {what}"
        told.append((called, text[:1].lower() + text[1:]))
    return told


def _merged(texts: Sequence[str]) -> str:
    """Sentences that differ in one number as one: `from layer 0 to 61 on`. Others: the first."""
    rows = [text.split(" ") for text in texts]
    if len({len(row) for row in rows}) > 1:
        return texts[0]
    return " ".join(column[0] if len(set(column)) == 1 else _ranged(column) for column in zip(*rows, strict=True))


def _ranged(words: Sequence[str]) -> str:
    """`0 to 61` of whole numbers one after the other; else all of them."""
    values, end = [word.rstrip(";,.") for word in words], words[0][len(words[0].rstrip(";,.")) :]
    if len(values) > 2 and all(value.isdigit() for value in values):
        first, last = int(values[0]), int(values[-1])
        if [int(value) for value in values] == list(range(first, last + 1)):
            return f"{first} to {last}{end}"
    return f"{listed(values)}{end}"


def _scoring(spec: Mapping[str, Any]) -> str:
    text = (
        "An answer that could not be read, was refused or was cut off counted as not correct; a request that failed was"
        " left out. Beside each accuracy stand chance and what always taking the first option would score."
    )
    if any(one.get("flips") for one in spec["comparisons"].values()):
        text += (
            " A flip is a pair of answers to one question that differ between two settings; pairs in which either"
            " answer could not be read were left out."
        )
    return text


def _statistics(spec: Mapping[str, Any], significance: Sequence[Row]) -> str:
    statistics = spec["statistics"]
    level = percent(statistics["level"], 0)
    if statistics.get("intervals") == "bootstrap":
        text = (
            f"Intervals are {level} percentile intervals of a bootstrap over patients ({statistics['draws']:,} draws,"
            f" seed {statistics['seed']}): patients are drawn with replacement, all trials of a patient together."
            " A difference has an interval of its own, from one draw of patients for both of its sides."
        )
    else:
        text = (
            f"Intervals are {level} intervals of Korn and Graubard for shares, with patients as clusters; those of"
            " differences combine the limits of what moves up and of what moves down."
        )
    if not significance:
        return text
    measured = [bool(where(significance, floor_basis=kind)) for kind in ("measured", "not measured")]
    against = " or ".join(
        words
        for words, there in zip(
            ("the change seen in reruns or under a placebo", "nothing where that was not measured, which gives no p"),
            measured,
            strict=True,
        )
        if there
    )
    return (
        f"{text} Whether swapping the image changes answers was tested against {against}, one-sided, by flipping the"
        " sign of each patient's surplus of flips (exact, over all signs); the tests of a model on a data set were"
        " adjusted together after Holm."
    )


def _software(spec: Mapping[str, Any], versions: Mapping[str, str]) -> str:
    known = [f"{name} {versions[name]}" for name in SOFTWARE if name in versions]
    return (
        f"The study was run with Overread {versions.get('overread', '')} (configuration {spec['config_hash']}); its"
        f" tables and figures were made with {', '.join(known)}."
    )
