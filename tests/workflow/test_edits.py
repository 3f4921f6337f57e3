"""What an edit of the code runs again, in a copy of it; and that no job uses code that its rule does not know of."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path

import pytest

from overread.config.kinds import BACKENDS, SOURCES, VIEWS
from overread.core.provenance import Code
from overread.edits import EDITS
from overread.estimates import tables
from overread.questions import ORIGINS
from workflow.runner import ROOT, SMALL, Workflow

pytestmark = pytest.mark.workflow

CONFIG = deepcopy(SMALL)
CONFIG["datasets"]["mri"]["studies"] = 2
CONFIG["datasets"]["xray"]["patients"] = 2
CONFIG["settings"]["erased"] = {"extends": "own", "edit": [{"kind": "erase"}, {"kind": "noise", "percent": 2}]}
CONFIG["evaluations"] = [
    {"dataset": "mri", "models": ["calibrated-70"], "settings": ["own", "swapped", "erased"]},
    {"dataset": "xray", "models": ["calibrated-70", "tiny-reader"], "settings": ["xray"]},
]
del CONFIG["comparisons"]["xray-swap"]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Workflow:
    """A small study that was run by a copy of the code. Its jobs left traces."""
    folder = tmp_path_factory.mktemp("edits")
    root = folder / "code"
    for part in ("workflow", "config", "envs"):
        shutil.copytree(ROOT / part, root / part, ignore=shutil.ignore_patterns("__pycache__"))
    for part in ("Snakefile", "pyproject.toml"):
        shutil.copy(ROOT / part, root)
    shutil.copy(ROOT / "tests/workflow/tracing_main.py", root / "workflow/overread/__main__.py")
    (folder / "traces").mkdir()
    study = Workflow(folder / "study", CONFIG, ["calibrated-70", "tiny-reader"], root)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OVERREAD_TRACES", str(folder / "traces"))
        study.run()
    return study


@pytest.fixture
def study(finished: Workflow) -> Iterator[Workflow]:
    """The finished study. What a test edits in the code is taken back, the times of files too."""
    before = {file: (file.read_bytes(), file.stat()) for file in _code(finished.root)}
    yield finished
    for file in _code(finished.root):
        if file not in before:
            file.unlink()
        elif file.read_bytes() != before[file][0]:
            content, was = before[file]
            file.write_bytes(content)
            os.utime(file, ns=(was.st_atime_ns, was.st_mtime_ns))


def _code(root: Path) -> list[Path]:
    files = [*(root / "workflow").rglob("*"), *(root / "config").rglob("*")]
    return [file for file in files if file.is_file() and "__pycache__" not in file.parts]


def edit(study: Workflow, *names: str) -> None:
    """Add a statement, or in a template a word, to files of the code, by the ends of their paths."""
    for name in names:
        (file,) = (each for each in _code(study.root) if each.as_posix().endswith(f"/{name}"))
        more = "\nEDITED = True\n" if file.suffix == ".py" else "/* edited */" if file.suffix == ".css" else " edited"
        file.write_text(file.read_text() + more)


TABLES = {"make_tables": 1, "draw_figures": 1, "write_report": 1, "all": 1}
ANSWERS = {"ask_model": 5, **TABLES}


def test_a_finished_study_plans_nothing(study: Workflow):
    assert not study.planned()


def test_code_that_no_job_of_the_study_reaches_runs_nothing_again(study: Workflow):
    """The release card, a reader, a view and an edit that it does not use, the viewer; a back end that nobody names."""
    edit(
        study,
        "curation/card.py",
        "open_i/reader.py",
        "montage/drawing.py",
        "edits/blur.py",
        "openai/readouts.py",
        "overread_viewer/app.py",
    )
    (study.root / "workflow/overread/backends/transport/another.py").touch()
    assert not study.planned()


def test_comments_and_docstrings_run_nothing_again(study: Workflow):
    for file in _code(study.root):
        if file.suffix == ".py" and file.parts[-2] != "rules":
            lines = file.read_text().split("\n")
            file.write_text("\n".join(["# A remark.", *lines, "# Another.", ""]))
    assert not study.planned()


@pytest.mark.parametrize(
    ("file", "planned"),
    [
        ("reporting/report.css", {"write_report": 1, "all": 1}),
        ("reporting/report.html.j2", {"write_report": 1, "all": 1}),
        ("reporting/words.py", {"write_report": 1, "all": 1}),
        ("images/sheet.py", {"write_report": 1, "all": 1}),
        ("reporting/forest.py", {"draw_figures": 1, "write_report": 1, "all": 1}),
        ("estimates/tables/flips.py", TABLES),
        ("backends/transformers/readouts.py", {"ask_model": 1, **TABLES}),
        ("calibrated/backend.py", {"ask_model": 4, **TABLES}),
        ("trials/build.py", {"build_trials": 4, **ANSWERS}),
        ("prompts/instruction-yes-no.j2", {"build_trials": 4, **ANSWERS}),
    ],
)
def test_an_edit_runs_again_what_reaches_it_and_no_more(study: Workflow, file: str, planned: dict[str, int]):
    edit(study, file)
    assert study.planned() == planned


def test_a_source_is_made_anew_when_the_code_that_draws_it_changes(study: Workflow):
    edit(study, "overread_phantom/tumour.py")
    planned = study.planned()
    assert planned["make_phantom"] == planned["read_studies"] == 2  # one module has both


def test_an_edited_view_renders_its_own_data_set_again(study: Workflow):
    edit(study, "views/frontal.py")
    planned = study.planned()
    assert planned["render_views"] == len(list(study.results.glob("xray/images/*/views.json")))
    assert planned["index_images"] == planned["write_report"] == 1


def test_an_edited_edit_renders_its_own_data_set_again(study: Workflow):
    edit(study, "edits/noise.py")
    planned = study.planned()
    assert planned["render_views"] == len(list(study.results.glob("mri/images/*/views.json")))
    assert planned["index_images"] == planned["write_report"] == 1
    assert planned["build_trials"] == 3  # all of the data set's settings: its pictures are written anew


def _edits(*edited: object) -> list[str]:
    """Where the kinds of edits lie that stand anywhere in sections of settings or views."""
    found = [one["kind"] for section in edited for one in section.get("edit", ())]
    return [EDITS.places[kind] for kind in sorted(set(found))]


ASKED = [EDITS.places["erase"], EDITS.places["noise"]]
SHOWN = [SOURCES.places["phantom"], VIEWS.places["slice"], VIEWS.places["frontal"]]
MADE = [tables.module(name) for name in tables.names()]
PARTS = {
    "studies make": ("--section", lambda one: [SOURCES.places[one["source"]]]),
    "studies read": ("--section", lambda one: [SOURCES.places[one["source"]]]),
    "images render": (
        "--views",
        lambda views: [*(VIEWS.places[view["kind"]] for view in views.values()), *_edits(*views.values())],
    ),
    "trials build": ("--setting", lambda setting: _edits(setting)),
    "questions build": ("--section", lambda one: [ORIGINS[one["origin"]]]),
    "responses answer": (
        "--model",
        lambda one: [BACKENDS.places[one["backend"]], BACKENDS[one["backend"]].implementation],
    ),
    "tables make": (None, lambda _: [*MADE, *ASKED]),
    "tables figures": (None, lambda _: [*MADE, *ASKED]),
    "tables report": (None, lambda _: [*MADE, *ASKED, *SHOWN]),
}
"""What a job's rule is told of the registries, from what stands on its command line."""

ALL = {"overread.cli", "overread.__main__", "overread.core.frozen", "overread.core.provenance", "overread.config"}
"""Code that every job starts with or is led on by, and that makes no result."""


def test_no_job_calls_a_function_or_reads_a_file_that_its_rule_does_not_know_of(finished: Workflow):
    """What the jobs of the study did in fact, against what their rules depend on."""
    code = Code(finished.root / "workflow")
    traces = [json.loads(file.read_text()) for file in (finished.folder.parent / "traces").glob("*.json")]
    commands = set()
    unknown: dict[str, set[str]] = {}
    for trace in traces:
        command, arguments = " ".join(trace["arguments"][:2]), trace["arguments"]
        option, parts = PARTS.get(command, (None, lambda _: []))
        told = parts(json.loads(arguments[arguments.index(option) + 1]) if option else None)
        known = set(code.reached(command, tuple(told))) | _inputs(finished)
        used = {_known_as(file) for file in (*trace["called"], *trace["opened"])}
        stage = {name for name in used if name.endswith("commands")}
        unknown.setdefault(command, set()).update(used - known - stage - ALL)
        commands.add(command)
    assert {"studies read", "images render", "trials build", "responses answer", "tables make"} <= commands
    assert not {command: sorted(names) for command, names in unknown.items() if names}


def _inputs(study: Workflow) -> set[str]:
    """Files of the package that rules name as inputs: prompts. The words of findings are an input where they are used;
    they are read for a report that is not edited, too."""
    packages = f"{study.root}/workflow/"
    records = [one for one in study.folder.glob(".snakemake/metadata/**/*") if one.is_file()]
    named = {path for one in records for path in json.loads(one.read_text())["input"]}
    found = {path.removeprefix(packages) for path in named if path.startswith(packages)}
    assert found
    return found | {"overread/resources/findings.yaml"}


def _backend(name: str) -> list[str]:
    return [BACKENDS.places[name], BACKENDS[name].implementation]


def _known_as(file: str) -> str:
    """A module by its name, a resource by its path."""
    return file.removesuffix(".py").removesuffix("/__init__").replace("/", ".") if file.endswith(".py") else file
