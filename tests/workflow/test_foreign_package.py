"""A package that is not Overread's brings a source, a view and a back end: a study runs with them to its report."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
import venv
from pathlib import Path
from textwrap import dedent
from typing import Any

import numpy as np
import pytest
from PIL import Image

from workflow.runner import ROOT, Workflow

pytestmark = pytest.mark.workflow

PROJECT = """
    [build-system]
    requires = ["setuptools"]
    build-backend = "setuptools.build_meta"

    [project]
    name = "ward-notes"
    version = "1.0"

    [project.entry-points."overread.sources"]
    ward-notes = "ward_notes.source:WardNotes"

    [project.entry-points."overread.views"]
    thumbnail = "ward_notes.view:Thumbnail"

    [project.entry-points."overread.backends"]
    coin = "ward_notes.coin_section:CoinModel"
"""

SOURCE = '''
    """A folder of `<patient>-<study>.png` with a `.txt` beside each: a line with the label, then the report."""

    from pathlib import Path
    from typing import ClassVar, Literal

    from overread.config.datasets import Folder
    from overread.core.records import Study


    class WardNotes(Folder):
        source: Literal["ward-notes"]
        title: ClassVar[str] = "notes of the ward"
        modality: ClassVar[str] = "xray"
        layout: ClassVar[tuple[str, ...]] = ("*.txt",)

        def read(self, dataset, folder, remarks):
            studies = []
            for path in sorted(folder.glob("*.txt")):
                label, report = path.read_text().split("\\n", 1)
                studies.append(Study(
                    study=path.stem, patient=path.stem.partition("-")[0], dataset=dataset, modality="xray",
                    images={"frontal": str(path.with_suffix(".png"))}, report={"findings": report.strip()},
                    labels={"Edema": label}, restricted=self.restricted,
                ))
            return studies
'''

VIEW = '''
    """The image as a small square."""

    from typing import ClassVar, Literal

    from overread.config.views import ViewSection


    class Thumbnail(ViewSection):
        kind: Literal["thumbnail"]
        modality: ClassVar[str] = "xray"
        gives: ClassVar[str] = "the radiograph as a small square"
        edge: int = 24

        @property
        def pictures(self):
            return 1

        def render(self, study, files):
            from PIL import Image

            with Image.open(study.images["frontal"]) as picture:
                small = picture.convert("L").resize((self.edge, self.edge))
            yield small, {"name": "thumbnail", "series": "frontal", "scaling": "as stored"}

        def words(self):
            return f"a thumbnail of {self.edge} pixels"
'''

SECTION = '''
    """A model that tosses a coin."""

    from typing import ClassVar, Literal

    from overread.config.models import LocalModel


    class CoinModel(LocalModel):
        backend: Literal["coin"]
        title: ClassVar[str] = "a tossed coin"
        implementation: ClassVar[str] = "ward_notes.coin:CoinBackend"
        edge: int = 0
'''

BACKEND = """
    import hashlib

    from overread.backends.base import Answer, LocalBackend


    class CoinBackend(LocalBackend):
        def __init__(self, model, model_id):
            self.model = model

        def identity(self):
            return {**self.model.identity(), "version": self.version}

        def answer(self, trials, folder):
            for trial in trials:
                seen = "".join(block.pixels or "" for block in trial.blocks) + trial.question
                yield Answer(text=trial.options[hashlib.sha256(seen.encode()).digest()[0] % 2], finish_reason="stop")
"""

CONFIG: dict[str, Any] = {
    "name": "foreign",
    "datasets": {
        "ward": {
            "source": "ward-notes", "root": "../notes", "restricted": True,
            "questions": {"origin": "findings", "findings": ["Edema"], "composite": []},
        }
    },
    "views": {"thumb": {"kind": "thumbnail", "edge": 16}},
    "settings": {
        "shown": {"images": "thumb", "readout": "yes-no"},
        "black": {"extends": "shown", "source": "black"},
        "swapped": {"extends": "shown", "source": "substitute", "report": "full"},
    },
    "evaluations": [{"dataset": "ward", "models": ["coin"], "settings": "all"}],
    "comparisons": {"gain": {"accuracy": ["shown", "black"]}},
    "statistics": {"draws": 200},
}  # fmt: skip


class Foreign(Workflow):
    """Run by the Python of an environment that has the package, above the one that runs the tests."""

    python: str

    def command(self, *arguments: str) -> list[str]:
        return [self.python, *super().command(*arguments)[1:]]


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An environment of its own with the package, installed as its user would."""
    folder = tmp_path_factory.mktemp("foreign")
    package = folder / "package" / "ward_notes"
    package.mkdir(parents=True)
    (folder / "package" / "pyproject.toml").write_text(dedent(PROJECT))
    files = {"__init__": "", "source": SOURCE, "view": VIEW, "coin_section": SECTION, "coin": BACKEND}
    for name, text in files.items():
        (package / f"{name}.py").write_text(dedent(text).lstrip())
    venv.create(folder / "env", with_pip=False)
    executable = folder / "env" / "bin" / "python"
    (site,) = (folder / "env" / "lib").glob("python*/site-packages")
    below = [path for path in sys.path if path.endswith("site-packages")]
    (site / "below.pth").write_text("".join(f"import site; site.addsitedir({path!r})\n" for path in below))
    command = [str(executable), "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation"]
    done = subprocess.run(
        [*command, str(folder / "package")], capture_output=True, text=True, timeout=600, env=without_pip_settings()
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return str(executable)


def without_pip_settings() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in ("PIP_PREFIX", "PIP_TARGET", "PIP_USER")}


@pytest.fixture(scope="module")
def foreign(python: str, tmp_path_factory: pytest.TempPathFactory) -> Foreign:
    folder = tmp_path_factory.mktemp("foreign-study")
    notes = folder / "study" / "notes"
    notes.mkdir(parents=True)
    rng = np.random.default_rng(0)
    for number in range(12):
        name = f"p{number // 2}-s{number}"
        Image.fromarray(rng.integers(0, 256, (40, 50), dtype=np.uint8)).save(notes / f"{name}.png")
        (notes / f"{name}.txt").write_text(f"{'positive' if number % 3 else 'negative'}\nThe ward's note {number}.\n")
    study = Foreign(folder / "study", CONFIG, [])
    study.python = python
    study.add_model("coin", {"label": "Coin", "backend": "coin"})
    return study


def overread(python: str, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "workflow")}
    return subprocess.run(
        [python, "-m", "overread", *arguments], cwd=cwd, capture_output=True, text=True, timeout=300, env=environment
    )


def test_a_study_runs_to_its_report_with_what_another_package_brings(foreign: Foreign) -> None:
    checked = overread(foreign.python, "check", "--config", str(foreign.config_file), cwd=foreign.folder)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    foreign.run()
    with (foreign.results / "tables" / "accuracy.csv").open(newline="") as file:
        rows = {row["setting"]: row for row in csv.DictReader(file)}
    assert set(rows) == {"shown", "black", "swapped"}
    assert rows["shown"]["questions"] == rows["shown"]["answered"] == "12" and rows["shown"]["patients"] == "6"
    report = (foreign.results / "report.html").read_text()
    for words in ("notes of the ward", "a tossed coin", "thumb is a thumbnail of 16 pixels"):
        assert words in report
    assert not foreign.planned()


def test_an_edit_of_the_foreign_source_reads_it_again(foreign: Foreign) -> None:
    """What a job depends on is found in other packages too."""
    where = "import ward_notes.source as module; print(module.__file__)"
    file = Path(subprocess.check_output([foreign.python, "-c", where], text=True).strip())
    before = file.read_text()
    try:
        file.write_text(before.replace("studies = []", "studies = list()"))
        assert "read_studies" in foreign.planned()
        file.write_text(before.replace("studies = []", "studies = []  # none yet"))
        assert not foreign.planned()
    finally:
        file.write_text(before)


def test_without_the_package_its_names_are_told_with_what_there_is(foreign: Foreign) -> None:
    told = overread(sys.executable, "check", "--config", str(foreign.config_file), cwd=foreign.folder)
    assert told.returncode == 1
    assert "datasets.ward.source: no value 'ward-notes'; there are: chexpert-plus" in told.stderr
    assert "views.thumb.kind: no value 'thumbnail'" in told.stderr and "backend: no value 'coin'" in told.stderr
