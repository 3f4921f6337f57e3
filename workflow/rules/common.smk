"""What all rules share: the checked config, the package on the path, and the cells that can run.

A job is told what it depends on through its params, as JSON with sorted keys: a change of the config re-runs the jobs
whose part of it changed, and no others.
"""

import json
import os
import shlex
import sys
from pathlib import Path

from snakemake.exceptions import WorkflowError

ROOT = Path(workflow.basedir)
CONFIG_FILE = (Path(workflow.configfiles[-1]) if workflow.configfiles else ROOT / "config" / "demo.yaml").resolve()
sys.path.insert(0, str(ROOT / "workflow"))

from overread import config as overread_config
from overread import plan
from overread.errors import OverreadError
from overread.provenance import source_hash

try:
    overread_config.read_yaml(CONFIG_FILE)  # Snakemake's own reader keeps the last of two equal keys in silence
    study = overread_config.build(config, CONFIG_FILE)
    if workflow.is_main_process:
        errors, warnings = plan.check(study)
        for warning in warnings:
            print(f"warning: {CONFIG_FILE.name}: {warning}", file=sys.stderr)
        if errors:
            raise OverreadError("\n".join(f"{CONFIG_FILE}: {error}" for error in errors))
    cells = plan.runnable(study)
except OverreadError as error:
    raise WorkflowError(str(error)) from None

RESULTS = f"results/{study.name}"
PROMPTS = ROOT / "config" / "prompts"

# Without conda the jobs use the Python that runs Snakemake; a conda environment, once activated, comes before it.
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
# The prefix comes after the activation, which drops PYTHONPATH from the environment.
shell.prefix(f"set -euo pipefail; export PYTHONPATH={shlex.quote(str(ROOT / 'workflow'))}; ")


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
