"""What all rules share of Snakemake's own: the checked config, the package on the path, files that wait for a checkpoint.

What a job is told and depends on, `overread.plan` says: `jobs`, `asking` and `rated`.
"""

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
from overread.core import frozen, resources
from overread.core.errors import OverreadError
from overread.core.provenance import code_of
from overread.estimates import tables
from overread.plan.asking import Asking
from overread.plan.jobs import Jobs, as_json, images_of
from overread.plan.telling import Rated, labels, tables_code, what_was_run, whole_study
from overread.slurm import group_afresh, keep_waiting

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
    jobs = Jobs(study, ROOT, plan.runnable(study))
    if not jobs.cells:
        raise OverreadError(f"nothing asked for can run now: `overread plan --config {CONFIG_FILE}` says why")
except OverreadError as error:
    raise WorkflowError(str(error)) from None

# Snakemake loads the plugins that are installed before it reads this file.
if workflow.is_main_process and "snakemake_executor_plugin_slurm" in sys.modules:
    keep_waiting(sys.modules["snakemake_executor_plugin_slurm"].Executor)
    group_afresh(sys.modules["snakemake.dag"].DAG)

RESULTS = jobs.results
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
asking = Asking(jobs, with_conda=with_conda)
rated = Rated(asking)
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


def growing(amount):
    """A resource that grows with every attempt: a job that ran out of memory or time gets more when it is tried again."""
    return lambda wildcards, attempt: amount * attempt


def one_of(names):
    """A wildcard that is one of the names; with none of them, nothing fits."""
    return "|".join(re.escape(name) for name in sorted(names)) or "(?!)"


def in_report(path, caption, category, subcategory=None, **labels):
    """An output that `snakemake --report` shows, with its caption from workflow/report. It changes no job."""
    labels = labels or {"file": os.path.basename(path)}
    return report(path, caption=f"../report/{caption}.rst", category=category, subcategory=subcategory, labels=labels)


def listed_in_report(path, caption):
    """As `in_report`, a list that names studies or says why one is left out; kept out where a data set is restricted, since
    Snakemake's report is made to be passed on."""
    return path if jobs.restricted else in_report(path, caption, "Data", "{dataset}")


def table_files(names, kind):
    """The files of tables, each in Snakemake's report beside what it holds."""
    return [
        in_report(
            f"{RESULTS}/tables/{table}.csv", "table", "Tables", kind, table=table, holds=tables.description(table)
        )
        for table in names
    ]


# -- files that are known when the studies have been read -----------------------------------------------------------------


def images_in(dataset):
    """The images of each usable study of a data set, by its name; its studies must have been read."""
    return images_of(Path(checkpoints.read_studies.get(dataset=dataset).output.studies))


def study_files(wildcards):
    return jobs.study_files(images_in(wildcards.dataset)[wildcards.study])


def files_to_segment(wildcards):
    return jobs.files_to_segment(wildcards.dataset, images_in(wildcards.dataset)[wildcards.study])


def checkpoint_of(wildcards):
    """The network's weights. With their hash in the config they are told apart by that, not by the file's time."""
    path, by_hash = jobs.checkpoint(wildcards.dataset)
    return [] if path is None else ancient(path) if by_hash else path


def masks_of(wildcards):
    """The folder of the masks that are made for a study; nothing where the data set's own are taken."""
    made = jobs.makes_masks(wildcards.dataset)
    return rules.segment_study.output.masks.format(**wildcards) if made else []


def view_indices(wildcards):
    if workflow.group_settings and workflow.group_settings.overwrite_groups:
        # Snakemake forms its groups anew when a checkpoint has passed, and would submit the ones that run a second time.
        for dataset in jobs.datasets:
            checkpoints.read_studies.get(dataset=dataset)
    return [f"{RESULTS}/{wildcards.dataset}/images/{name}/views.json" for name in images_in(wildcards.dataset)]
