import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from overread.cli import STAGES
from overread.core import provenance

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


HEAVY = {
    "torch", "transformers", "pandas", "matplotlib", "scipy", "statsmodels", "nibabel", "SimpleITK", "pydicom", "PIL",
    "openai", "monai", "fastapi",
}  # fmt: skip
NEEDED = {
    "tables make": {"pandas", "scipy"}, "tables human": {"pandas", "scipy"},
    "questions generate": {"openai"}, "questions validate": {"openai"},
}  # fmt: skip
"""What a command can't do without, whatever it is given. All else is loaded when a file or a section asks for it."""
COMMANDS = {
    f"{stage} {name}": targets
    for stage, package in provenance.COMMANDS.items()
    for file in sorted((ROOT / "workflow" / package.replace(".", "/")).glob("*commands.py"))
    for name, (_, targets) in provenance.commands_in(file.read_text(), package).items()
}
"""What each command's own function imports."""


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_loads_no_heavy_library_that_it_does_not_need(command):
    """With all that its function imports, before it has looked at what it is given."""
    assert len(COMMANDS) > 20
    code = """
import json, sys
from importlib import import_module
for module, _, name in (target.partition(":") for target in sys.argv[2:]):
    if name and not hasattr(import_module(module), name):
        import_module(f"{module}.{name}")
print(json.dumps(sorted(set(json.loads(sys.argv[1])) & set(sys.modules))))
"""
    loaded = subprocess.run(
        [sys.executable, "-c", code, json.dumps(sorted(HEAVY)), *COMMANDS[command]],
        cwd=ROOT, capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": str(ROOT / "workflow")},
    ).stdout  # fmt: skip
    assert set(json.loads(loaded)) == NEEDED.get(command, set())


def test_the_command_line_loads_no_group_that_is_not_called():
    code = """
import sys
from overread.cli import main
sys.argv = ["overread", "studies", "--help"]
try:
    main()
finally:
    print(*[name for name in sys.modules if name.startswith("overread")], file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    loaded = {name.split(".")[1] for name in done.stderr.split() if "." in name}
    assert loaded == {"cli", "core", "sources"}


def test_no_module_imports_what_its_layer_may_not(monkeypatch):
    """The contracts of pyproject.toml, as `make lint` holds them."""
    from importlinter.cli import lint_imports

    monkeypatch.chdir(ROOT)
    monkeypatch.syspath_prepend(str(ROOT / "workflow"))
    assert lint_imports(no_cache=True) == 0
