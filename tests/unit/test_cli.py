import os
import subprocess
import sys
from pathlib import Path

import pytest

from overread.cli import STAGES

ROOT = Path(__file__).resolve().parents[2]


def overread(*arguments: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "overread", *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": str(ROOT / "workflow"), "COLUMNS": "200"},
    )


def test_every_stage_has_its_page_and_its_rules():
    """A stage is one rule file and one page of help with one name; its commands lie in a folder of the package."""
    shown = overread("--help").stdout
    for stage, module in STAGES.items():
        assert stage in shown
        assert (ROOT / "workflow" / module.replace(".", "/")).with_suffix(".py").is_file()
        assert (ROOT / "workflow" / "rules" / f"{stage}.smk").is_file()


@pytest.mark.parametrize("stage", STAGES)
def test_a_stages_page_lists_its_commands(stage):
    done = overread(stage, "--help")
    assert done.returncode == 0
    assert "Commands" in done.stdout


def test_an_error_is_one_line_without_a_traceback(tmp_path):
    done = overread("plan", "--config", str(tmp_path / "nothing.yaml"))
    assert done.returncode == 1
    assert done.stderr == f"overread: {tmp_path / 'nothing.yaml'}: no such file\n"


def test_a_wrong_part_of_the_config_is_named(tmp_path):
    done = overread(
        "trials", "build", "q.jsonl", "--studies", "s", "--pictures", "p", "--substitutes", "u", "--name", "n",
        "--setting", '{"imags": "x"}', "--out", str(tmp_path / "t"),
    )  # fmt: skip
    assert done.returncode != 0
    assert "Did you mean images?" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("module", ["torch", "transformers", "pandas", "matplotlib", "nibabel", "pyarrow", "scipy"])
def test_the_command_line_loads_no_heavy_library(module):
    """Each job starts it, and the Snakefile loads the config and the plan."""
    code = f"import overread.cli, overread.config, overread.plan, sys; sys.exit({module!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


def test_no_module_imports_what_its_layer_may_not(monkeypatch):
    """The contracts of pyproject.toml, as `make lint` holds them."""
    from importlinter.cli import lint_imports

    monkeypatch.chdir(ROOT)
    monkeypatch.syspath_prepend(str(ROOT / "workflow"))
    assert lint_imports(no_cache=True) == 0
