"""Each job on a cluster reads the Snakefile again: that loads nothing heavy and costs little above Snakemake itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from workflow.runner import ROOT

pytestmark = pytest.mark.workflow

HEAVY = {
    "torch", "torchvision", "transformers", "monai", "vllm", "openai", "httpx2", "matplotlib", "scipy", "statsmodels",
    "PIL", "nibabel", "SimpleITK", "pydicom", "tokenizers", "rapidfuzz", "tenacity", "fastapi", "uvicorn", "typer",
}  # fmt: skip
LIGHT = {
    "overread",
    "overread_phantom",
    "pydantic",
    "pydantic_core",
    "annotated_types",
    "typing_inspection",
    "typing_extensions",
    "yaml",
    "_yaml",
}
"""What reading the Snakefile may load that Snakemake alone has not: the packages, and what checks the config."""
MOST_TIMES = 3.0
"""What it may cost, with planning the demo, as a multiple of Snakemake with an empty file. Measured: 1.6, and 2.2
beside other tests."""

READ = """
import json, sys
from snakemake.cli import main
try:
    main()
except SystemExit as ended:
    assert not ended.code, ended
with open(sys.argv[0], "w") as file:
    json.dump(sorted({name.split(".")[0] for name in sys.modules}), file)
"""


def read(snakefile: Path, folder: Path, *more: str) -> tuple[set[str], float]:
    """The packages that are loaded when a Snakefile has been read and planned, and a processor's seconds for it."""
    told, script = folder / "modules.json", folder / "read.py"
    script.write_text(READ)
    code = f"import sys; sys.argv = [{str(told)!r}, *sys.argv[1:]]; exec(open({str(script)!r}).read())"
    arguments = ["--snakefile", str(snakefile), "--directory", str(folder), "--dry-run", "--quiet", "all", *more]
    process = subprocess.Popen([sys.executable, "-c", code, *arguments], cwd=folder, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return set(json.loads(told.read_text())), used.ru_utime


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("empty") / "Snakefile"
    path.write_text(
        "from snakemake.utils import min_version\n\nmin_version('9.27')\n\n\nrule all:\n    default_target: True\n"
    )
    return path


def third_party(names: set[str]) -> set[str]:
    return {name for name in names if name not in sys.stdlib_module_names and not name.startswith("_")}


def test_reading_the_snakefile_loads_nothing_heavy(tmp_path: Path, empty: Path) -> None:
    ours, _ = read(ROOT / "Snakefile", tmp_path)
    alone, _ = read(empty, tmp_path)
    assert "overread" in ours
    assert sorted(ours & (HEAVY - alone)) == []
    assert third_party(ours) - third_party(alone) <= LIGHT


def test_reading_and_planning_the_demo_costs_little_above_snakemake_itself(tmp_path: Path, empty: Path) -> None:
    """The least of a few each, on the processor's own clock: what else the machine does is left out."""
    ours = min(read(ROOT / "Snakefile", tmp_path)[1] for _ in range(3))
    alone = min(read(empty, tmp_path)[1] for _ in range(3))
    print(f"Snakefile {ours:.2f} s, an empty one {alone:.2f} s: {ours / alone:.2f} times")
    assert ours < MOST_TIMES * alone
