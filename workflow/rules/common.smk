"""What all rules share: the checked config, the package on the path, the cells that can run, and what rules ask of them.

A job is told what it depends on through its params, as JSON with sorted keys: a change of the config re-runs the jobs
whose part of it changed, and no others.
"""

import json
import os
import re
import shlex
import sys
from functools import cache
from pathlib import Path

from snakemake.exceptions import WorkflowError
from snakemake.settings.types import DeploymentMethod

ROOT = Path(workflow.basedir)
CONFIG_FILE = (Path(workflow.configfiles[-1]) if workflow.configfiles else ROOT / "config" / "demo.yaml").resolve()
sys.path.insert(0, str(ROOT / "workflow"))

from overread import config as overread_config
from overread import plan
from overread.core import frozen, resources
from overread.core.errors import OverreadError
from overread.estimates import tables
from overread.images.segmentation import SOURCES as SEGMENTATION_SOURCES
from overread.core.provenance import source_hash
from overread.slurm import group_afresh, keep_waiting
from overread.settings.report import UNEDITED
from overread.trials import template_files

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

# Snakemake loads the plugins that are installed before it reads this file.
if workflow.is_main_process and "snakemake_executor_plugin_slurm" in sys.modules:
    keep_waiting(sys.modules["snakemake_executor_plugin_slurm"].Executor)
    group_afresh(sys.modules["snakemake.dag"].DAG)

RESULTS = f"results/{study.name}"
PROVENANCE = Path(RESULTS, "provenance")

code_now = frozen.code(ROOT)
if not workflow.is_main_process:
    try:
        frozen.check_frozen_code(PROVENANCE, code_now)
    except OverreadError as error:
        raise WorkflowError(str(error)) from None


onstart:
    frozen.write_record(
        frozen.start_record(
            study,
            CONFIG_FILE,
            code_now,
            executor=workflow.executor_plugin.name,
            command=frozen.command_line(),
        ),
        PROVENANCE,
    )


# Without conda the jobs use the Python that runs Snakemake. With it, the prefix comes after the activation, which drops
# PYTHONPATH from the environment.
with_conda = DeploymentMethod.CONDA in workflow.deployment_settings.deployment_method
shell.prefix(
    "set -euo pipefail; "
    + ("" if with_conda else f"export PATH={shlex.quote(str(Path(sys.executable).parent))}:$PATH; ")
    + f"export PYTHONPATH={shlex.quote(str(ROOT / 'workflow'))}; "
    + f"export {frozen.FOLDER_VARIABLE}={shlex.quote(str(PROVENANCE))}; "
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


def growing(amount):
    """A resource that grows with every attempt: a job that ran out of memory or time gets more when it is tried again."""
    return lambda wildcards, attempt: amount * attempt


def in_report(path, caption, category, subcategory=None, **labels):
    """An output that `snakemake --report` shows, with its caption from workflow/report. It changes no job."""
    labels = labels or {"file": os.path.basename(path)}
    return report(path, caption=f"../report/{caption}.rst", category=category, subcategory=subcategory, labels=labels)


def listed_in_report(path, caption):
    """As `in_report`, a list that names studies or says why one is left out; kept out where a data set is restricted, since
    Snakemake's report is made to be passed on."""
    restricted = any(study.datasets[dataset].restricted for dataset in datasets_with_cells())
    return path if restricted else in_report(path, caption, "Data", "{dataset}")


def table_files(names, kind):
    """The files of tables, each in Snakemake's report beside what it holds."""
    return [
        in_report(
            f"{RESULTS}/tables/{table}.csv", "table", "Tables", kind, table=table, holds=tables.description(table)
        )
        for table in names
    ]


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
    if section.place is None:
        return rules.make_phantom.output.folder.format(dataset=wildcards.dataset)
    return section.place


def source_tables(wildcards):
    """The files that a data set's section names besides: labels, metadata, a CSV of reports. Folders are not watched."""
    named = study.datasets[wildcards.dataset].also_read.values()
    return sorted(path for path in named if os.path.isfile(path))


def source_section(dataset):
    """A data set's section without its questions and substitutes: what is asked does not change what is read."""
    return {
        **study.datasets[dataset].model_dump(mode="json", exclude={"substitutes"}),
        "questions": {"origin": "grammar"},
        **segmentation_read(dataset),
    }


def segmentation_read(dataset):
    """What readers want to know of a segmentation: whether a study needs a mask of its own."""
    section = segmentation_of(dataset)
    if section is None:
        return {}
    return {"segmentation": section.model_dump(mode="json", include={"method", "checkpoint"}, exclude_none=True)}


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


# -- trials --------------------------------------------------------------------------------------------------------------


def substitutes_section(dataset):
    """What substitutes must be like; where each question has its own, also what is right for it."""
    section = study.datasets[dataset].substitutes
    return {
        "section": as_json(section),
        "questions": as_json(study.datasets[dataset].questions) if section.by_topic else "",
    }


def paper_of(dataset):
    """Whose counts stand beside a cohort's: ModaLens took the test split of MIMIC-CXR."""
    paper = study.datasets[dataset].paper
    return "" if paper is None else f"--paper {paper}"


def prompt_folders():
    """Where templates are looked for: the user's own folder goes before Overread's."""
    return [resources.PROMPTS] if study.prompts is None else [Path(study.prompts), resources.PROMPTS]


def templates_of(wildcards):
    return [str(file) for file in template_files(study.settings[wildcards.setting].report, *prompt_folders())]


def finding_words(wildcards):
    """The file with the words that mention a finding, for a report that is edited."""
    if study.settings[wildcards.setting].report in UNEDITED:
        return []
    return study.reports.findings or str(resources.FINDINGS)


def report_options(wildcards, input):
    """How `trials build` is told of the user's own templates, words and tokenizer."""
    given = {"--prompts": study.prompts, "--findings": input.findings or None}
    if study.settings[wildcards.setting].report not in UNEDITED:
        given["--tokenizer"] = study.reports.tokenizer
    return " ".join(f"{option} {shlex.quote(str(value))}" for option, value in given.items() if value is not None)


# -- images --------------------------------------------------------------------------------------------------------------


def views_of(dataset):
    """The views that some setting of the data set shows. Only these are rendered."""
    used = [study.settings[cell.setting] for cell in cells_of(dataset)]
    shown = {
        one.view(one.images): one.view_section(study.views[one.images].model_dump(mode="json"))
        for one in used
        if one.images != "none"
    }
    return dict(sorted(shown.items()))


def images_of(dataset):
    """The images of each usable study of a data set, by its name; its studies must have been read."""
    file = Path(checkpoints.read_studies.get(dataset=dataset).output.studies)
    written = os.stat(file)
    return images_in(file, written.st_mtime_ns, written.st_size)


@cache
def images_in(file, *written):
    """Every study asks for its own: the file is read once as it was written."""
    from overread.core.records import read_studies

    return {row.study: row.images for row in read_studies(file)}


def study_files(wildcards):
    """The files of a study that are there; a missing one is the renderer's to report, and stops no other study."""
    images = images_of(wildcards.dataset)[wildcards.study]
    return [file for path in sorted(images.values()) for file in files_at(path)]


def files_at(path):
    """An image's file; of a DICOM series the files of its folder; nothing where there is nothing."""
    if os.path.isdir(path):
        return sorted(entry.path for entry in os.scandir(path) if entry.is_file())
    return [path] if os.path.exists(path) else []


def segmentation_of(dataset):
    """The section that says whose masks choose the slices; None for a data set that has none to choose by."""
    return getattr(study.datasets[dataset], "segmentation", None)


def segmentation_section(dataset):
    """What masks depend on, and where they are made; what the job asks of the cluster changes none."""
    return segmentation_of(dataset).model_dump(mode="json", exclude={"resources"})


def files_to_segment(wildcards):
    """What of a study its segmentation reads; as with its views, a missing file is the job's to report."""
    images = images_of(wildcards.dataset)[wildcards.study]
    wanted = [images[name] for name in segmentation_of(wildcards.dataset).reads if name in images]
    return sorted(file for file in wanted if os.path.exists(file))


def checkpoint_of(wildcards):
    """The network's weights. With their hash in the config they are told apart by that, not by the file's time."""
    section = segmentation_of(wildcards.dataset)
    path = getattr(section, "checkpoint", None)
    if path is None:
        return []
    return path if section.checkpoint_sha256 is None else ancient(path)


def masks_of(wildcards):
    """The folder of the masks that are made for a study; nothing where the data set's own are taken."""
    section = segmentation_of(wildcards.dataset)
    made = section is not None and section.makes_masks
    return rules.segment_study.output.masks.format(**wildcards) if made else []


def view_indices(wildcards):
    if workflow.group_settings and workflow.group_settings.overwrite_groups:
        # Snakemake forms its groups anew when a checkpoint has passed, and would submit the ones that run a second time.
        for dataset in datasets_with_cells():
            checkpoints.read_studies.get(dataset=dataset)
    return [f"{RESULTS}/{wildcards.dataset}/images/{name}/views.json" for name in images_of(wildcards.dataset)]


# -- responses -----------------------------------------------------------------------------------------------------------


def model_section(model):
    """What of a model's file its jobs depend on: all but its label, its note and its resources."""
    section = study.models[model].model_dump(mode="json", exclude={"label", "note", "resources"})
    return {**section, "label": model}


def server_options(model):
    """Where restricted data may go, and where the jobs of a model write down what they spend; nothing for one that is here."""
    if study.models[model].stays_here:
        return ""
    return f"{attested_endpoints()} --ledger {shlex.quote(f'{RESULTS}/work/spent/{model}.jsonl')}"


def weights_in(model):
    """The files of a model that lies in folders: new weights ask anew."""
    folders = [Path(folder).expanduser() for folder in study.models[model].folders]
    return sorted(str(file) for folder in folders for file in folder.rglob("*") if file.is_file())


def weights_of(wildcards):
    return weights_in(wildcards.model)


def answered_together(group):
    """(dataset, model, name, runs by setting) of each job that answers all runs of a setting, or all of a model."""
    jobs = {}
    for cell in cells:
        name = f"{cell.dataset}_{cell.model}" + (f"_{cell.setting}" if group == "setting" else "")
        jobs.setdefault((cell.dataset, cell.model, name), {})[cell.setting] = cell.runs
    return [(*key, dict(sorted(runs.items()))) for key, runs in sorted(jobs.items())]


def trials_of(dataset, runs):
    return [
        f"{RESULTS}/{dataset}/trials/{setting}/run-{run}.parquet"
        for setting, count in runs.items()
        for run in range(1, count + 1)
    ]


def responses_of(dataset, model, runs, ending):
    return [
        f"{RESULTS}/{dataset}/responses/{model}/{setting}/run-{run}.{ending}"
        for setting, count in runs.items()
        for run in range(1, count + 1)
    ]


def minutes_of(model, runs):
    """What a job that answers these runs may take: as long as if each had a job of its own."""
    return study.models[model].resources.runtime * sum(runs.values())


def environment_of(model):
    """Some back ends want other versions than the rest."""
    named = study.models[model].environment
    return named if os.path.isabs(named) else f"../../envs/{named}.yaml"


def python_of(model):
    """The interpreter that asks a model."""
    named = None if with_conda else study.models[model].interpreter(ROOT)
    if named is None:
        return "python"
    return os.path.relpath(named) if Path(named).is_relative_to(ROOT) else named


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


RATED = {name: subset for name, subset in sorted(study.human.items()) if subset.ratings}
"""The reader studies whose ratings are there."""


def rated_section():
    """What the tables of readers depend on besides the ratings. The order of the files changes nothing."""
    return {name: {**vars(subset), "ratings": sorted(subset.ratings)} for name, subset in RATED.items()}


def ratings_files():
    return sorted({path for subset in RATED.values() for path in subset.ratings})


def rated_datasets():
    return sorted({subset.dataset for subset in RATED.values()})


def responses_beside_readers():
    """The answers of every model to the datasets that people were asked about, with their trials."""
    files = []
    for dataset in rated_datasets():
        files += [f"{RESULTS}/{dataset}/trials/{setting}/run-{run}.parquet" for setting, run in runs_of(dataset)]
        for cell in cells_of(dataset):
            files += responses_of(dataset, cell.model, {cell.setting: cell.runs}, "parquet")
    return files


def whole_study():
    """What the report tells besides."""
    return {
        **what_was_run(),
        "name": study.name,
        "title": study.title,
        "models": {name: study.models[name].model_dump(mode="json") for name in sorted({cell.model for cell in cells})},
        "datasets": {name: study.datasets[name].model_dump(mode="json") for name in datasets_with_cells()},
        "views": {name: view for dataset in datasets_with_cells() for name, view in views_of(dataset).items()},
        # With these the viewer builds trials as the run did.
        "seed": study.seed,
        "prompts": study.prompts,
        "reports": study.reports.model_dump(mode="json"),
        "config_hash": study.identity(),
        "not_run": plan.not_run(study),
    }
