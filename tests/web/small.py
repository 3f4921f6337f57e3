"""A small finished run for the viewer's tests, made by the stages' own functions on phantoms with calibrated readers.

    make_run(folder)      folder/results/small and folder/config: real volumes, radiographs, answers, tables, report
    shared_run(folder)    the same, made once by several workers at once

Three brain MRI studies of real size (for the volume viewer) and twelve patients' radiographs (for verdicts); three
readers, of which `looks` follows the image and `blind` never does; settings with the own, a substitute's and a black
image, in two runs where options are shuffled.
"""

from __future__ import annotations

import fcntl
import json
from pathlib import Path
from typing import Any

import yaml

from overread import plan
from overread.config import Config, load
from overread.core.records import (
    Study,
    read_pictures,
    read_studies,
    read_substitutes,
    write_questions,
    write_studies,
    write_substitutes,
    write_trials,
)
from overread.estimates.make import make_tables
from overread.estimates.spec import TablesSpec
from overread.images.index import index_images, write_views
from overread.questions import build, truth
from overread.responses.answering import answer_all
from overread.sources.shared.remarks import Remarks
from overread.trials.build import build_trials
from overread.trials.lengths import in_words
from overread.trials.mentions import OWN_FINDINGS, read_lexicon
from overread.trials.prompt import OWN_PROMPTS, Prompts
from overread.trials.reports import Reports
from overread.trials.substitutes import choose_substitutes

CONFIG: dict[str, Any] = {
    "name": "small",
    "title": "A small study for the viewer",
    "datasets": {
        "mri": {"source": "phantom", "modality": "mri", "studies": 3, "questions": {"origin": "grammar"}},
        "xray": {
            "source": "phantom",
            "modality": "xray",
            "patients": 12,
            "questions": {
                "origin": "findings",
                "findings": ["Cardiomegaly", "Edema", "Pleural Effusion"],
                "composite": [],
            },
        },
    },
    "views": {
        "flair-axial": {"series": "FLAIR", "slice": "largest-tumour"},
        "frontal": {"kind": "frontal", "size": 256},
    },
    "settings": {
        "single-slice": {"images": "flair-axial", "readout": "choice"},
        "swapped": {"extends": "single-slice", "source": "substitute"},
        "reshuffled": {"extends": "single-slice", "options": "shuffled"},
        "xray": {"images": "frontal", "readout": "yes-no"},
        "xray-swapped": {"extends": "xray", "source": "substitute"},
        "xray-black": {"extends": "xray", "source": "black"},
        "xray-report": {"extends": "xray", "report": "full"},
        "xray-report-swapped": {"extends": "xray-report", "source": "substitute"},
    },
    "evaluations": [
        {
            "dataset": "mri", "models": ["looks", "blind"],
            "settings": ["single-slice", "swapped", "reshuffled"], "runs": 2,
        },
        {"dataset": "xray", "models": "all", "settings": ["xray", "xray-swapped"]},
        {
            "dataset": "xray", "models": ["looks", "blind"],
            "settings": ["xray-black", "xray-report", "xray-report-swapped"],
        },
    ],
    "comparisons": {
        "image-swap": {"flips": ["single-slice", "swapped"]},
        "order-cost": {"accuracy": ["single-slice", "reshuffled"]},
        "swap-without-report": {"flips": ["xray", "xray-swapped"]},
        "swap-with-report": {"flips": ["xray-report", "xray-report-swapped"]},
        "image-gain": {"accuracy": ["xray", "xray-black"]},
    },
    "effects": {"report-effect": {"minus": ["swap-without-report", "swap-with-report"]}},
    "statistics": {"draws": 500},
}  # fmt: skip

MODELS = {
    "looks": {"label": "Looks at the image", "reliance": {"image": 0.9, "report": 0.6, "unparsed": 0.04}},
    "blind": {"label": "Never looks", "reliance": {"report": 0.8}},
    "first": {"label": "First option", "reliance": {"first_option": 1.0}, "takes": {"logprobs": False}},
}


def make_run(folder: Path) -> Path:
    """Make the run and return its folder, `folder`/results/small; the config is `folder`/config/study.yaml."""
    models = folder / "config" / "models"
    models.mkdir(parents=True)
    for name, model in MODELS.items():
        (models / f"{name}.yaml").write_text(yaml.safe_dump({"backend": "calibrated", **model}), encoding="utf-8")
    path = folder / "config" / "study.yaml"
    path.write_text(yaml.safe_dump(CONFIG, sort_keys=False), encoding="utf-8")
    config = load(path)
    results = folder / "results" / config.name
    cells = plan.runnable(config)
    for dataset in config.datasets:
        _make_dataset(results, config, dataset)
        for model in sorted({cell.model for cell in cells if cell.dataset == dataset}):
            runs = {cell.setting: cell.runs for cell in cells if (cell.dataset, cell.model) == (dataset, model)}
            answer_all(results / dataset, config.models[model], model, runs, results / "work" / dataset / model)
    spec = _spec(config)
    (results / "study.json").write_text(json.dumps(spec), encoding="utf-8")
    tables = {key: spec[key] for key in ("cells", "settings", "comparisons", "effects", "statistics")}
    make_tables(results, TablesSpec.model_validate(tables), results / "tables")
    _write_report(results, spec)
    return results


def shared_run(folder: Path) -> Path:
    """The run in `folder`, made by whoever comes first; the others wait for it."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        finished = folder / "made"
        if not finished.exists():
            make_run(folder)
            finished.touch()
    return folder / "results" / CONFIG["name"]


def _spec(config: Config) -> dict[str, Any]:
    """As `record_study` writes it."""
    cells = plan.runnable(config)
    return {
        "cells": [vars(cell) for cell in cells],
        "settings": {n: config.settings[n].model_dump(mode="json") for n in sorted({cell.setting for cell in cells})},
        "comparisons": {name: one.model_dump(mode="json") for name, one in config.comparisons.items()},
        "effects": {name: one.model_dump(mode="json") for name, one in config.effects.items()},
        "statistics": config.statistics.model_dump(mode="json"),
        "name": config.name,
        "title": config.title,
        "models": {n: config.models[n].model_dump(mode="json") for n in sorted({cell.model for cell in cells})},
        "datasets": {name: one.model_dump(mode="json") for name, one in config.datasets.items()},
        "config_hash": config.identity(),
        "not_run": plan.not_run(config),
    }


def _make_dataset(results: Path, config: Config, dataset: str) -> None:
    section, folder = config.datasets[dataset], results / dataset
    section.make(folder / "source", 1)
    read = section.read(dataset, folder / "source", Remarks())
    modality = "mri" if section.modality == "mri" else "xray"
    broken = Study(
        study=f"{dataset}-cut-short", patient="p-broken", dataset=dataset, modality=modality, images={}, report={},
        labels={}, restricted=False, semi_synthetic=True, problem="FLAIR: the file is cut short",
    )  # fmt: skip
    write_studies([*read, broken], folder / "studies.parquet")
    used = {config.settings[cell.setting].images for cell in plan.runnable(config) if cell.dataset == dataset}
    views = {name: config.views[name] for name in sorted(used - {"none"})}
    for study in read:
        write_views(study, views, folder / "images" / study.study / "views.json")
    studies = read_studies(folder / "studies.parquet", with_problems=True)
    index_images(studies, folder / "images", folder / "images.parquet", folder / "studies_rejected.csv")
    questions, _ = build(section.questions, studies, folder / "source")
    write_questions(questions, folder / "questions.jsonl")
    pictures = read_pictures(folder / "images.parquet")
    chosen = choose_substitutes(read_studies(folder / "studies.parquet"), pictures, 0, section.substitutes, None)
    write_substitutes(chosen, folder / "substitutes.csv")
    asked = {(c.setting, run) for c in plan.runnable(config) if c.dataset == dataset for run in range(1, c.runs + 1)}
    for setting, run in sorted(asked):
        trials, _ = build_trials(
            questions, read_studies(folder / "studies.parquet"), pictures, read_substitutes(folder / "substitutes.csv"),
            setting=config.settings[setting], name=setting, run=run,
            truth=lambda study, topic: truth(section.questions, study, topic),
            prompts=Prompts(OWN_PROMPTS), seed=0,
            reports=Reports(Prompts(OWN_PROMPTS), read_lexicon(OWN_FINDINGS), in_words, {}),
        )  # fmt: skip
        write_trials(trials, folder / "trials" / setting / f"run-{run}.parquet")


def _write_report(results: Path, spec: dict[str, Any]) -> None:
    from overread.reporting import plots, report

    plots.draw(
        results / "tables", {name: model["label"] for name, model in spec["models"].items()}, results / "figures"
    )
    report.write(results, spec, results / "report.html")
