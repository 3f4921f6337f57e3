"""The report: one HTML file with everything in it, for a reader who was not there.

It is made of the tables, the figures and the run's records alone, holds no date and no script, and loads nothing: the
same run gives the same bytes. Every text is escaped, whoever wrote it.
"""

from __future__ import annotations

import base64
import csv
import json
import platform
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

import yaml

from overread.core.errors import BadInput
from overread.core.inputs import regular
from overread.core.records import Picture, Study, read_columns, replacing
from overread.images.index import reasons as left_out_reasons
from overread.reporting import presented, presented_audit, presented_human, words
from overread.reporting.brief import in_brief
from overread.reporting.conclusion import summary
from overread.reporting.contrasts import Tables
from overread.reporting.evidence import FEW_PATIENTS, FEWEST_PATIENTS
from overread.reporting.examples import examples
from overread.reporting.figure_texts import FIGURE_TEXTS
from overread.reporting.methods import MODALITIES, Data, methods
from overread.reporting.plots import FIGURES
from overread.reporting.presented_conditions import conditions
from overread.reporting.rows import Row, read
from overread.reporting.seen import seen
from overread.reporting.verdict import judge
from overread.settings.setting import read_settings

KEYS = (
    "name", "title", "cells", "settings", "comparisons", "effects", "statistics", "models", "datasets", "config_hash",
    "not_run",
)  # fmt: skip
TABLES = (
    "dataset", "accuracy", "accuracy_wide", "flips", "effects", "findings", "margins", "noise", "significance",
    "own_label", "modality", "layers", "curves", "positions", "blind_hits", "verdicts", "following", "reacting",
    "margin_auc", "gain", "statuses", "grounding", "metamorphic", "sight",
    "occlusion", "occlusion_lesion", "half_doses",
)  # fmt: skip

EVIDENCE = (
    "accuracy", "flips", "effects", "positions", "significance", "layers", "verdicts", "following", "gain", "grounding",
    "sight",
)  # fmt: skip
"""The tables that verdicts are drawn from, in the order of `contrasts.Tables`."""

PACKAGES = (
    "overread", "snakemake", "numpy", "pandas", "scipy", "pyarrow", "pydantic", "matplotlib", "statsmodels", "jinja2",
    "pillow", "nibabel", "pydicom", "isal", "torch", "torchvision", "transformers", "tokenizers", "safetensors", "vllm",
    "openai",
)  # fmt: skip
"""Packages whose version can bear on a result or on how it looks."""

WHEN = {"never": "never", "missing": "something is missing"}
"""When a cell can be run, by what the plan calls it."""


DATA = (*(name for name in TABLES if name != "blind_hits"), "cost")
"""The tables that the report holds as files to keep. Questions stay beside it: they are many."""


def write(results: Path, spec: dict[str, Any], out: Path, *, human: bool = False) -> None:
    """Write the report of the run in `results` as the file `out`.

    spec    name, title, cells, settings, comparisons, effects, statistics, models, datasets, config_hash and not_run,
            and views if it has them, as JSON has them; their order changes nothing
    human   whether the tables of readers are part of the run: a file left by an earlier config is not
    raises  BadInput if a key of the spec, a table, a figure or a file of the run is missing or damaged
    """
    import jinja2

    spec = _canonical(spec)
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    page = environment.get_template("report.html.j2").render(_content(results, spec, human=human))
    with replacing(out) as temporary:
        temporary.write_text(page, encoding="utf-8", newline="\n")


def _canonical(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The spec in one order, so that the order of a config's lists and keys does not show."""
    missing = [key for key in KEYS if key not in spec]
    if missing:
        raise BadInput(f"the spec of the report lacks {', '.join(missing)}; make it with the run's config")
    whole: dict[str, Any] = json.loads(json.dumps(spec, sort_keys=True))
    for key, names in (("cells", ("dataset", "model", "setting")), ("not_run", ("dataset", "model", "setting"))):
        whole[key] = sorted(whole[key], key=lambda one: [str(one[name]) for name in names])
    return {**whole, "settings": read_settings(whole["settings"])}


def _content(results: Path, spec: dict[str, Any], *, human: bool) -> dict[str, Any]:
    """Everything that the template sets."""
    folder = results / "tables"
    tables = {name: read(folder, name) for name in TABLES}
    labels = {name: model["label"] for name, model in spec["models"].items()}
    level = f"{round(100 * spec['statistics']['level'], 1):g}{words.SPACE}%"
    names = sorted({cell["dataset"] for cell in spec["cells"]})
    sources = [_source(results, name, spec, tables["dataset"]) for name in names]
    evidence = Tables(*(tables[name] for name in EVIDENCE))
    hidden = {(row["dataset"], row["comparison"]) for row in tables["layers"]}
    swaps = [row for row in tables["flips"] if (row["dataset"], row["comparison"]) not in hidden]
    asked = sorted({(cell["dataset"], cell["model"]) for cell in spec["cells"]})
    judgements = [judge(dataset, model, evidence, spec) for dataset, model in asked]
    of_dataset = {name: [one for one in judgements if one.dataset == name] for name in names}
    modalities = {source.name: source.modality for source in sources}
    versions = _versions()
    significance = tables["significance"]
    return {
        "spec": spec,
        "labels": labels,
        "level": level,
        "fewest_patients": FEWEST_PATIENTS,
        "few_patients": FEW_PATIENTS,
        "sources": sources,
        "modalities": MODALITIES,
        "made": [source.name for source in sources if source.semi_synthetic],
        "restricted": [source.name for source in sources if source.restricted],
        "briefs": {name: in_brief(of_dataset[name], evidence, labels) for name in names},
        "summaries": {name: summary([one.conclusion for one in of_dataset[name]]) for name in names},
        "judgements": of_dataset,
        "settings": {name: spec["settings"][name] for name in sorted({cell["setting"] for cell in spec["cells"]})},
        "comparisons": _comparisons(spec),
        "models": [(name, spec["models"][name]) for name in sorted({cell["model"] for cell in spec["cells"]})],
        "about_model": _about_model,
        "dataset_table": presented.datasets(tables["dataset"]),
        "conditions_tables": conditions(tables["accuracy"], labels, spec, level, modalities),
        "readers": presented_human.readers(folder, labels, level) if human else None,
        "accuracy_tables": presented.accuracy(tables["accuracy"], labels, level),
        "flips_tables": presented.flips(swaps, labels, level),
        "group_tables": presented.flips_by_group(swaps, labels, level),
        "effects_tables": presented.effects(tables["effects"], labels, level),
        "audit": {
            "significance": presented_audit.significance(significance, tables["flips"], labels, level),
            **{
                name: getattr(presented_audit, name)(tables[name], labels, level)
                for name in (
                    "following",
                    "reacting",
                    "gain",
                    "margin_auc",
                    "noise",
                    "findings",
                    "margins",
                    "own_label",
                    "modality",
                    "layers",
                    "curves",
                    "grounding",
                    "metamorphic",
                    "sight",
                    "occlusion_lesion",
                    "half_doses",
                )
            },
        },
        "occluded": bool(tables["occlusion"]),
        "positions_tables": presented.positions(tables["positions"], tables["accuracy"], labels),
        "cost": presented.cost(_cost(folder), labels),
        "blind_hits": presented.blind_hits(tables["blind_hits"], labels),
        "not_run": _not_run(spec, labels),
        "figures": {name: _figure(results / "figures", name, level) for name in FIGURES},
        "data": {name: _file(folder / f"{name}.csv") for name in _kept(folder, human=human)},
        "seen": [one for source in sources if not source.restricted for one in [seen(results, source.name)] if one],
        "examples": _examples(results, sources, spec),
        "methods": methods(spec, [source.data for source in sources], significance, dict(versions)),
        "config": _as_yaml(spec),
        "versions": versions,
        "overread": dict(versions).get("overread", ""),
    }


def _cost(folder: Path) -> list[Row]:
    """What the models' answers cost; nothing of a run that kept no account."""
    return read(folder, "cost") if (folder / "cost.csv").exists() else []


# -- the datasets ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Source:
    """A dataset as the report presents it."""

    name: str
    modality: str
    origin: str
    questions: str
    restricted: bool
    semi_synthetic: bool
    numbers: Row
    rejected: tuple[tuple[str, int], ...]
    unusable: int
    not_shown: tuple[tuple[str, int], ...]
    """Views, with their edits, that could not be shown of a study that is used otherwise: why, and how often."""
    doubted: tuple[tuple[str, int], ...]
    """Pictures that a person should look at: why, and how many."""

    @property
    def data(self) -> Data:
        return Data(self.name, self.modality, self.numbers, self.unusable, self.semi_synthetic)


def _source(results: Path, name: str, spec: Mapping[str, Any], table: list[Row]) -> _Source:
    section = spec["datasets"][name]
    studies = read_columns(results / name / "studies.parquet", Study, ["modality", "restricted", "semi_synthetic"])
    columns = studies.to_pydict()
    restricted = bool(section.get("restricted", True)) or any(columns["restricted"])
    reasons = _rejected(results / name / "studies_rejected.csv", "stage" if restricted else "reason")
    numbers = next((row for row in table if row["dataset"] == name), {})
    return _Source(
        name=name,
        modality=next(iter(columns["modality"]), ""),
        origin=section["source"],
        questions=section["questions"]["origin"],
        restricted=restricted,
        semi_synthetic=any(columns["semi_synthetic"]),
        numbers=numbers,
        rejected=tuple(sorted(reasons.items(), key=lambda one: (-one[1], one[0]))),
        unusable=sum(reasons.values()),
        not_shown=_counted(_not_shown(results / name / "pictures_left_out.csv"), restricted),
        doubted=_counted(_doubted(results / name / "images.parquet"), restricted),
    )


def _counted(reasons: Counter[str], restricted: bool) -> tuple[tuple[str, int], ...]:
    """The most frequent first; of restricted data their number alone, since a reason may tell of a patient."""
    if restricted:
        return (("", reasons.total()),) if reasons else ()
    return tuple(sorted(reasons.items(), key=lambda one: (-one[1], one[0])))


def _not_shown(path: Path) -> Counter[str]:
    return Counter(left_out_reasons(path).values()) if path.exists() else Counter()


def _doubted(path: Path) -> Counter[str]:
    if not path.exists():
        return Counter()
    return Counter(one for one in read_columns(path, Picture, ["doubt"])["doubt"].to_pylist() if one)


def _rejected(path: Path, column: str) -> Counter[str]:
    """How many studies could not be used, by reason; by stage alone where reasons may tell too much."""
    try:
        with regular(path).open(newline="", encoding="utf-8") as file:
            return Counter(row[column] for row in csv.DictReader(file))
    except FileNotFoundError:
        raise BadInput(f"{path}: no such file; index the images of this dataset first") from None
    except KeyError:
        raise BadInput(f"{path}: no column {column!r}; index the images of this dataset again") from None


def _examples(results: Path, sources: list[_Source], spec: dict[str, Any]) -> list[Any]:
    """Of each modality the first unrestricted dataset that has any."""
    found: list[Any] = []
    for modality in ("mri", "xray"):
        for source in sources:
            if source.modality == modality and not source.restricted:
                shown = examples(results, source.name, modality, spec)
                found += shown
                if shown:
                    break
    return found


# -- models, comparisons, settings -----------------------------------------------------------------------------------


def _about_model(model: Mapping[str, Any]) -> str:
    """What a model is and how its answers are drawn, in one line."""
    parts = [f"back end {model['backend']}"]
    weights = model.get("weights") or model.get("model")
    if weights:
        parts.append(f"weights {_shortened(weights)}")
    if model.get("revision"):
        parts.append(f"revision {model['revision']}")
    if model.get("dtype"):
        parts.append(str(model["dtype"]))
    decoding = model.get("decoding") or {}
    if decoding.get("temperature") is not None:
        parts.append(f"temperature {decoding['temperature']:g}")
    if decoding.get("max_tokens") is not None:
        parts.append(f"at most {decoding['max_tokens']} tokens")
    return ", ".join(parts)


def _comparisons(spec: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Comparisons and effects in words, those of which a cell was run."""
    ran = {cell["setting"] for cell in spec["cells"]}
    told = []
    for name, comparison in spec["comparisons"].items():
        first, second = comparison.get("flips") or comparison["accuracy"]
        if first not in ran or second not in ran:
            continue
        differing = spec["settings"][first].differing(spec["settings"][second])
        changed = f" Only {differing[0].title} differs." if len(differing) == 1 else ""
        if first == second:
            told.append((name, f"How often the answer differs between one run of {first} and the next."))
        elif comparison.get("flips"):
            told.append((name, f"How often the answer differs between {first} and {second}.{changed}"))
        else:
            told.append((name, f"Accuracy under {first} less accuracy under {second}, on the same questions.{changed}"))
    here = {name for name, _ in told}
    for name, effect in spec["effects"].items():
        first, second = effect["minus"]
        if first in here and second in here:
            told.append((name, f"The rate of {first} less the rate of {second}, over the same patients."))
        elif not {first, second} & set(spec["comparisons"]):
            told.append((name, f"The difference {first} less the difference {second}, over the same patients."))
    return told


def _not_run(spec: Mapping[str, Any], labels: Mapping[str, str]) -> list[dict[str, str]]:
    """What was not run: a row for all settings of a dataset and model that share the reason."""
    grouped: dict[tuple[str, str, str, str], list[str]] = {}
    for one in spec["not_run"]:
        model = labels.get(one["model"], one["model"])
        grouped.setdefault((one["dataset"], model, one["when"], one["why"]), []).append(one["setting"])
    return [
        {"dataset": dataset, "model": model, "settings": ", ".join(settings), "when": WHEN.get(when, when), "why": why}
        for (dataset, model, when, why), settings in sorted(grouped.items())
    ]


def _as_yaml(spec: Mapping[str, Any]) -> str:
    """What was run, in full, as YAML. Folders are shortened to their last two names: where they lie tells nothing."""
    runs: dict[str, dict[str, dict[str, int]]] = {}
    for cell in spec["cells"]:
        runs.setdefault(cell["dataset"], {}).setdefault(cell["model"], {})[cell["setting"]] = cell["runs"]
    keys = ("name", "title", "datasets", "settings", "comparisons", "effects", "statistics", "models")
    settings = {name: one.model_dump(mode="json") for name, one in spec["settings"].items()}
    whole = {**{key: spec[key] for key in keys}, "settings": settings, "runs": runs}
    text: str = yaml.safe_dump(_plain(whole), sort_keys=False, allow_unicode=True, width=100)
    return text


def _plain(value: Any) -> Any:
    """Without what is none, and with paths shortened."""
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items() if one is not None}
    if isinstance(value, list):
        return [_plain(one) for one in value]
    return _shortened(value) if isinstance(value, str) else value


def _shortened(text: str) -> str:
    if not (PurePosixPath(text).is_absolute() or PureWindowsPath(text).is_absolute()) or "\n" in text:
        return text
    return "\N{HORIZONTAL ELLIPSIS}/" + "/".join(PureWindowsPath(text).parts[1:][-2:])


# -- figures and versions --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _File:
    """A file that the report holds, to be kept by a click: its path in the run's folder, and its content."""

    path: str
    uri: str


def _kept(folder: Path, *, human: bool) -> list[str]:
    """The tables that are given along; a run that kept no account has no table of it."""
    names = [*DATA, *(presented_human.TABLES if human else ())]
    return [name for name in names if name != "cost" or (folder / "cost.csv").exists()]


def _file(path: Path) -> _File:
    return _File(f"{path.parent.name}/{path.name}", f"data:text/csv;charset=utf-8;base64,{_encoded(path)}")


def _encoded(path: Path) -> str:
    return base64.b64encode(regular(path).read_bytes()).decode()


@dataclass(frozen=True)
class _Figure:
    """A figure, its pages as images."""

    name: str
    pages: tuple[str, ...]
    caption: str
    alt: str
    data: _File


def _figure(folder: Path, name: str, level: str) -> _Figure:
    caption, alt = FIGURE_TEXTS[name]
    later = sorted(folder.glob(f"{name}-[0-9]*.svg"), key=lambda path: int(path.stem.rpartition("-")[2]))
    try:
        pages = [f"data:image/svg+xml;base64,{_encoded(path)}" for path in (folder / f"{name}.svg", *later)]
        data = _file(folder / f"{name}.csv")
    except FileNotFoundError as error:
        raise BadInput(f"{error.filename}: no such file; draw the figures first") from None
    return _Figure(name, tuple(pages), caption.format(level=level), alt, data)


def _versions() -> list[tuple[str, str]]:
    """Versions in the environment that writes the report; a package that is not there is left out."""
    found = [("Python", platform.python_version())]
    for name in PACKAGES:
        try:
            found.append((name, metadata.version(name)))
        except metadata.PackageNotFoundError:
            continue
    return found
