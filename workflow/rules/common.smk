"""What all rules share: the checked config, the package on the path, the cells that can run, and what rules ask of them.

A job is told what it depends on through its params, as JSON with sorted keys: a change of the config re-runs the jobs
whose part of it changed, and no others.
"""

import json
import os
import re
import shlex
import sys
from pathlib import Path

from snakemake.exceptions import WorkflowError
from snakemake.settings.types import DeploymentMethod

ROOT = Path(workflow.basedir)
CONFIG_FILE = (Path(workflow.configfiles[-1]) if workflow.configfiles else ROOT / "config" / "demo.yaml").resolve()
sys.path.insert(0, str(ROOT / "workflow"))

from overread import config as overread_config
from overread import plan
from overread.errors import OverreadError
from overread.provenance import source_hash

try:
    # Snakemake's own reader keeps the last of two equal keys in silence.
    overread_config.read_yaml(CONFIG_FILE)
    study = overread_config.build(config, CONFIG_FILE)
    if workflow.is_main_process:
        errors, warnings = plan.check(study)
        for warning in warnings:
            print(f"warning: {CONFIG_FILE.name}: {warning}", file=sys.stderr)
        if errors:
            raise OverreadError("\n".join(f"{CONFIG_FILE}: {error}" for error in errors))
    cells = plan.runnable(study)
    if not cells:
        raise OverreadError(f"nothing asked for can run now: `overread plan --config {CONFIG_FILE}` says why")
except OverreadError as error:
    raise WorkflowError(str(error)) from None

RESULTS = f"results/{study.name}"
PROMPTS = ROOT / "config" / "prompts"

# Without conda the jobs use the Python that runs Snakemake. With it, the prefix comes after the activation, which drops
# PYTHONPATH from the environment.
with_conda = DeploymentMethod.CONDA in workflow.deployment_settings.deployment_method
shell.prefix(
    "set -euo pipefail; "
    + ("" if with_conda else f"export PATH={shlex.quote(str(Path(sys.executable).parent))}:$PATH; ")
    + f"export PYTHONPATH={shlex.quote(str(ROOT / 'workflow'))}; "
)


wildcard_constraints:
    dataset=r"[a-z0-9.-]+",
    model=r"[a-z0-9.-]+",
    setting=r"[a-z0-9.-]+",
    run=r"[1-9][0-9]*",
    study=r"[^/]+",


def as_json(part):
    """A part of the config as JSON whose text changes only if its meaning does."""
    plain = part.model_dump(mode="json") if hasattr(part, "model_dump") else part
    return json.dumps(plain, sort_keys=True)


def cells_of(dataset):
    return [cell for cell in cells if cell.dataset == dataset]


def runs_of(dataset):
    """(setting, run) of a dataset, each once, for however many models."""
    return sorted({(cell.setting, run) for cell in cells_of(dataset) for run in range(1, cell.runs + 1)})


def datasets_with_cells():
    return sorted({cell.dataset for cell in cells})


# -- studies -------------------------------------------------------------------------------------------------------------


def source_of(wildcards):
    """The folder or file that a data set is read from."""
    section = study.datasets[wildcards.dataset]
    if section.source == "phantom":
        return rules.make_phantom.output.folder.format(dataset=wildcards.dataset)
    return section.path if section.source == "table" else section.root


def source_section(dataset):
    """A data set's section without its questions: what is asked does not change what is read."""
    return {
        **study.datasets[dataset].model_dump(mode="json"),
        "questions": {"origin": "grammar"},
    }


# -- questions -----------------------------------------------------------------------------------------------------------


def question_files(wildcards):
    """Where questions come from besides the studies: the phantom's folder, or the user's file."""
    section = study.datasets[wildcards.dataset].questions
    if section.origin == "grammar":
        return source_of(wildcards)
    return section.path if section.origin == "file" else []


GENERATED = sorted(name for name, section in study.datasets.items() if section.questions.origin == "generated")


def one_of(names):
    """A wildcard that is one of the names; with none of them, nothing fits."""
    return "|".join(re.escape(name) for name in sorted(names)) or "(?!)"


def generation(dataset):
    return study.datasets[dataset].questions


def generation_section(dataset):
    """What author and validator depend on: rules, review and release come after them."""
    return generation(dataset).model_dump(mode="json", exclude={"rules", "review", "release"})


def attested_endpoints():
    return " ".join(f"--attested {shlex.quote(endpoint)}" for endpoint in sorted(study.attested_endpoints))


# -- images --------------------------------------------------------------------------------------------------------------


def views_of(dataset):
    """The views that some setting of the data set shows. Only these are rendered."""
    used = {study.settings[cell.setting].images for cell in cells_of(dataset)} - {"none"}
    return {name: study.views[name].model_dump(mode="json") for name in sorted(used)}


def read_rows(dataset):
    """The usable studies of a data set; its studies must have been read."""
    from overread.records import read_studies

    return read_studies(Path(checkpoints.read_studies.get(dataset=dataset).output.studies))


_files = {}


def study_files(wildcards):
    """The files of a study that are there; a missing one is the renderer's to report, and stops no other study."""
    if wildcards.dataset not in _files:
        rows = read_rows(wildcards.dataset)
        _files[wildcards.dataset] = {row.study: sorted(row.images.values()) for row in rows}
    return [file for file in _files[wildcards.dataset][wildcards.study] if os.path.exists(file)]


def view_indices(wildcards):
    return [f"{RESULTS}/{wildcards.dataset}/images/{row.study}/views.json" for row in read_rows(wildcards.dataset)]


# -- responses -----------------------------------------------------------------------------------------------------------


def model_section(model):
    """What of a model's file its jobs depend on: all but its label, its note and its resources."""
    section = study.models[model].model_dump(mode="json", exclude={"label", "note", "resources"})
    return {**section, "label": model}


def weights_of(wildcards):
    """The files of a model that lies in a folder: new weights ask anew."""
    folder = Path(getattr(study.models[wildcards.model], "weights", ""))
    return sorted(str(file) for file in folder.glob("*") if file.is_file()) if folder.is_absolute() else []


# -- tables --------------------------------------------------------------------------------------------------------------


def what_was_run():
    """Everything that the tables depend on, in an order that the config's order does not change."""
    used = sorted({cell.setting for cell in cells})
    return {
        "cells": [vars(cell) for cell in cells],
        "settings": {name: study.settings[name].model_dump(mode="json") for name in used},
        "comparisons": {name: one.model_dump(mode="json") for name, one in study.comparisons.items()},
        "effects": {name: one.model_dump(mode="json") for name, one in study.effects.items()},
        "statistics": study.statistics.model_dump(mode="json"),
    }


def whole_study():
    """What the report tells besides."""
    return {
        **what_was_run(),
        "name": study.name,
        "title": study.title,
        "models": {name: study.models[name].model_dump(mode="json") for name in sorted({cell.model for cell in cells})},
        "datasets": {name: study.datasets[name].model_dump(mode="json") for name in datasets_with_cells()},
        "config_hash": study.identity(),
        "not_run": plan.not_run(study),
    }
