"""What is written and deleted: a person's own file survives every command, whatever its name and wherever it lies."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, get_type_hints

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from data.small_mri import mri_study
from overread.cli import STAGES, app, registered
from overread.config.curation import Release
from overread.core.errors import BadInput
from overread.core.outputs import WRITES, OutputFolder, keep_inputs, replacing
from overread.core.records import Question, read_questions, write_questions, write_studies
from overread.curation.candidates import Candidate, write_candidates

if TYPE_CHECKING:
    from report_run import Run

SETTING = '{"images": "flair"}'
Command = tuple[str, Callable[[Path], list[object]]]


def run(*arguments: object) -> None:
    """BadInput as the person sees it; anything else fails the test."""
    result = CliRunner().invoke(app, [str(one) for one in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the commands read."""
    root = tmp_path_factory.mktemp("inputs")
    (root / "data").mkdir()
    studies = [
        mri_study(root / "data", name, series=("FLAIR",)).model_copy(
            update={"report": {"findings": f"The left mass {name} shows thick rim enhancement."}}
        )
        for name in "AB"
    ]
    write_studies(studies, root / "studies.parquet")
    (root / "table.csv").write_text("study,patient,image\n" + "".join(f"{s},{s},{s}.png\n" for s in "AB"))
    scans = [f"{one.study},{one.patient},{Path(one.images['FLAIR']).relative_to(root)}\n" for one in studies]
    (root / "scans.csv").write_text("study,patient,image\n" + "".join(scans))
    options = ("Thick", "Thin", "Solid", "None")
    asked = [
        Question(
            study=name, patient=one.patient, topic="rim", stem=f"Rim {name}?", options=options, answer="Thick",
            evidence="e", origin="author",
        )
        for name, one in zip("AB", studies, strict=True)
    ]  # fmt: skip
    write_questions(asked, root / "questions.jsonl")
    candidates = [
        Candidate(
            study=name, patient=one.patient, index=0, stem=f"How does left mass {name} enhance?", options=options,
            answer="Thick", evidence=(one.report["findings"],), origin="author", request="r", tag="YES", reasoning="",
        )
        for name, one in zip("AB", studies, strict=True)
    ]  # fmt: skip
    write_candidates(candidates, root / "candidates.jsonl")
    views = json.dumps({"flair": {"kind": "slice", "series": "FLAIR"}})
    dataset = root / "results" / "d"
    for name in "AB":
        out = dataset / "images" / name / "views.json"
        run("images", "render", root / "studies.parquet", "--study", name, "--views", views, "--out", out)
    shutil.copyfile(root / "studies.parquet", dataset / "studies.parquet")
    run(
        "images", "index", root / "studies.parquet", "--images", dataset / "images",
        "--out", dataset / "images.parquet", "--rejected", dataset / "studies_rejected.csv",
    )  # fmt: skip
    pictures = dataset / "images.parquet"
    run("trials", "substitutes", "--studies", root / "studies.parquet", "--pictures", pictures,
        "--out", root / "substitutes.csv")  # fmt: skip
    run("trials", "build", root / "questions.jsonl", "--studies", root / "studies.parquet", "--pictures", pictures,
        "--substitutes", root / "substitutes.csv", "--setting", SETTING, "--name", "own",
        "--out", root / "trials.parquet")  # fmt: skip
    return root


@pytest.fixture
def called(request: pytest.FixtureRequest, inputs: Path) -> Callable[[str], Command]:
    """A command by its name; those on tables have a run to read, and few of its tables to make and one to draw: how
    many there are is no matter here, and each takes its time."""

    def named(name: str) -> Command:
        run_of: Run | None = request.getfixturevalue("small") if name.startswith("tables") else None
        if run_of is not None:
            from made import tables_spec

            few = {**tables_spec(run_of.spec), "comparisons": {}, "effects": {}}
            (inputs / "spec.json").write_text(json.dumps(few))
            (inputs / "tables").mkdir(exist_ok=True)
            for table in (run_of.folder / "tables").glob("*.csv"):
                header, *rows = table.read_text().splitlines(keepends=True)
                kept = rows if table.stem == "accuracy" else []
                (inputs / "tables" / table.name).write_text("".join([header, *kept]))
        return commands(inputs, run_of.folder if run_of else inputs)[name]

    return named


def commands(root: Path, results: Path) -> dict[str, Command]:
    """Every command that writes: how it is called with a folder to write into, and the files it names itself there."""
    studies, questions = root / "studies.parquet", root / "questions.jsonl"
    release = Release(title="T", name="t").model_dump_json()
    phantom = json.dumps({"source": "phantom", "modality": "xray", "patients": 1, "questions": {"origin": "findings"}})
    views = json.dumps({"flair": {"kind": "slice", "series": "FLAIR"}})
    written = json.dumps({"origin": "file", "path": str(questions)})
    provided = json.dumps({"method": "provided"})
    model = json.dumps({"backend": "calibrated", "label": "M", "reliance": {}})
    images = root / "results" / "d" / "images"
    pictures = root / "results" / "d" / "images.parquet"
    table = json.dumps(
        {"source": "table", "path": str(root / "scans.csv"), "modality": "mri", "images": {"FLAIR": "image"},
         "questions": {"origin": "file", "path": "none"}}
    )  # fmt: skip
    named: dict[str, tuple[str, Callable[[Path], list[object]]]] = {
        "studies make": ("", lambda out: ["--section", phantom, "--out", out]),
        "studies read": (
            "s.parquet remarks.csv counts.csv",
            lambda out: [
                root / "scans.csv", "--dataset", "d", "--section", table, "--out", out / "s.parquet",
                "--remarks", out / "remarks.csv", "--counts", out / "counts.csv",
            ],
        ),
        "questions build": (
            "q.jsonl",
            lambda out: [studies, "--section", written, "--out", out / "q.jsonl"],
        ),
        "questions filter": (
            "q.jsonl", lambda out: [root / "candidates.jsonl", studies, "--out", out / "q.jsonl"],
        ),
        "questions sample": ("sheet.csv", lambda out: [questions, "--out", out / "sheet.csv"]),
        "questions apply-review": (
            "q.jsonl decided.csv",
            lambda out: [questions, "--out", out / "q.jsonl", "--outcomes", out / "decided.csv"],
        ),
        "questions release": ("", lambda out: [questions, studies, "--section", release, "--out", out]),
        "images render": (
            "views.json",
            lambda out: [studies, "--study", "A", "--views", views, "--out", out / "views.json"],
        ),
        "images segment": (
            "mask.nii.gz",
            lambda out: [
                studies, "--study", "A", "--section", provided, "--out", out / "mask.nii.gz", "--work", out / "work",
            ],
        ),
        "images index": (
            "images.parquet rejected.csv",
            lambda out: [
                studies, "--images", images, "--out", out / "images.parquet", "--rejected", out / "rejected.csv",
            ],
        ),
        "images sheet": ("", lambda out: [root / "results" / "d", "--out", out]),
        "trials substitutes": (
            "substitutes.csv",
            lambda out: ["--studies", studies, "--pictures", pictures, "--out", out / "substitutes.csv"],
        ),
        "trials build": (
            "t.parquet",
            lambda out: [
                questions, "--studies", studies, "--pictures", pictures, "--substitutes", root / "substitutes.csv",
                "--setting", SETTING, "--name", "own", "--out", out / "t.parquet",
            ],
        ),
        "responses answer": (
            "r.parquet work.jsonl ledger.jsonl",
            lambda out: [
                root / "trials.parquet", "--model", model, "--id", "m",
                "--work", out / "work.jsonl", "--out", out / "r.parquet",
            ],
        ),
        "tables make": ("", lambda out: [results, "--spec", root / "spec.json", "--out", out]),
        "tables figures": ("", lambda out: [root / "tables", "--labels", "{}", "--out", out]),
    }  # fmt: skip
    return {name: (own, lambda out, n=name, c=call: [*n.split(), *c(out)]) for name, (own, call) in named.items()}  # type: ignore[misc]


NAMES = (
    "SHA256SUMS", ".git/HEAD", "pictures/flair-0.png", "pictures/mine.png", "pictures/.overread-mine.jsonl", "A.png",
    "accuracy.csv", "accuracy.svg", "trail.csv", "rejected.jsonl", "funnel.csv", "funnel-figure.svg", "mask.json",
    "mask_brain.nii.gz", "work/mask.nii.gz", "SEMI-SYNTHETIC.txt", "truth.csv", "reports/mine.txt",
    "UCSF-PDGM-v5/mine.nii.gz", "files/p90/mine.jpg", "questions.jsonl", "README.md", "notes.txt", "a/b/c/deep.txt",
)  # fmt: skip


TRIED = [
        "studies make", "questions build", "questions filter", "questions sample", "questions apply-review",
        "questions release", "images render", "images segment", "images index", "images sheet", "tables make",
        "tables figures", "studies read", "trials substitutes", "trials build", "responses answer",
    ]  # fmt: skip


@pytest.mark.parametrize("name", TRIED)
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    mine=st.dictionaries(st.sampled_from(NAMES), st.binary(max_size=20), min_size=1, max_size=6),
    after=st.dictionaries(st.sampled_from(NAMES), st.binary(max_size=20), max_size=2),
)
def test_no_file_that_a_command_did_not_write_is_changed_or_gone(
    called: Callable[[str], Command], name: str, mine: dict[str, bytes], after: dict[str, bytes]
) -> None:
    """Random files lie there before the command; others are put there, or over its own, before it is run again."""
    own, call = called(name)
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch, "out")
        for files in (mine, after):
            for file, content in files.items():
                (out / file).parent.mkdir(parents=True, exist_ok=True)
                (out / file).write_bytes(content)
            kept = {**mine, **(after if files is after else {})}
            with suppress(BadInput):
                run(*call(out))
            for file, content in kept.items():
                assert file in own.split() or (out / file).read_bytes() == content, file


@pytest.mark.parametrize(
    "name", ["studies make", "questions filter", "questions release", "images render", "images segment",
             "images index", "images sheet", "tables figures"],
)  # fmt: skip
def test_a_command_replaces_what_it_wrote_itself(called: Callable[[str], Command], tmp_path: Path, name: str) -> None:
    _, call = called(name)
    out = tmp_path / "out"
    run(*call(out))
    first = {path.relative_to(out): path.read_bytes() for path in out.rglob("*") if path.is_file()}
    run(*call(out))
    again = {path.relative_to(out): path.read_bytes() for path in out.rglob("*") if path.is_file()}
    assert len(first) > 1 and first.keys() == again.keys()


def test_a_folder_of_scans_with_checksums_is_no_release(called: Callable[[str], Command], tmp_path: Path) -> None:
    """The very checksums of the very files: what only looks like a release is none."""
    _, call = called("questions release")
    (tmp_path / "scans").mkdir()
    (tmp_path / "scans" / "one.dcm").write_bytes(b"scan")
    sums = subprocess.run(["sha256sum", "one.dcm"], cwd=tmp_path / "scans", capture_output=True, check=True).stdout
    (tmp_path / "scans" / "SHA256SUMS").write_bytes(sums)
    with pytest.raises(BadInput, match=r"scans: holds files .* did not write.*: SHA256SUMS, one\.dcm; move them away"):
        run(*call(tmp_path / "scans"))
    assert (tmp_path / "scans" / "one.dcm").read_bytes() == b"scan"


def test_the_git_folder_of_a_release_is_named_and_kept(called: Callable[[str], Command], tmp_path: Path) -> None:
    _, call = called("questions release")
    run(*call(tmp_path / "r"))
    before = (tmp_path / "r" / "questions.jsonl").read_bytes()
    (tmp_path / "r" / ".git").mkdir()
    (tmp_path / "r" / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    with pytest.raises(BadInput, match=r"r: holds files .*: \.git/HEAD; move them away"):
        run(*call(tmp_path / "r"))
    assert (tmp_path / "r" / ".git" / "HEAD").is_file()
    assert (tmp_path / "r" / "questions.jsonl").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["r"], "nothing half made is left beside it"


def test_a_link_to_a_folder_of_ones_own_is_not_followed(called: Callable[[str], Command], tmp_path: Path) -> None:
    _, call = called("images render")
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "flair-0.png").write_bytes(b"holiday")
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "pictures").symlink_to(tmp_path / "photos")
    with pytest.raises(BadInput, match=r"flair-0\.png; move them away"):
        run(*call(tmp_path / "x"))
    assert (tmp_path / "photos" / "flair-0.png").read_bytes() == b"holiday"


def test_what_a_killed_run_left_is_its_own(tmp_path: Path) -> None:
    """Killed while a file was being written, between the manifest and the file, and within a line of the manifest."""
    folder = OutputFolder(tmp_path / "out", "images render")
    script = (
        "import os, sys; from pathlib import Path; from overread.core.outputs import OutputFolder\n"
        "folder = OutputFolder(Path(sys.argv[1]), 'images render')\n"
        "with folder.writing(folder.path / 'deep' / 'one.png') as temporary:\n"
        "    temporary.write_bytes(b'half'); os.kill(os.getpid(), 9)\n"
    )
    subprocess.run([sys.executable, "-c", script, folder.path], check=False)
    assert [path.suffix for path in (folder.path / "deep").iterdir()] == [".tmp"]
    with folder.manifest.open("a") as file:
        file.write('{"file": "tw')
    folder.clear()
    assert not folder.path.exists()


def test_a_file_that_was_changed_since_is_a_persons_own(tmp_path: Path) -> None:
    folder = OutputFolder(tmp_path, "tables make")
    with folder.writing(tmp_path / "accuracy.csv") as temporary:
        temporary.write_text("a\n1\n")
    (tmp_path / "accuracy.csv").write_text("a\n1\nmy remark\n")
    named = r"accuracy\.csv: exists, and `overread tables make` did not write it"
    with pytest.raises(BadInput, match=named), folder.writing(tmp_path / "accuracy.csv"):
        pass
    with pytest.raises(BadInput, match="accuracy"):
        folder.clear()
    assert (tmp_path / "accuracy.csv").read_text().endswith("my remark\n")


def test_a_release_that_cannot_take_its_place_leaves_the_older_one(
    called: Callable[[str], Command], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, call = called("questions release")
    run(*call(tmp_path / "r"))
    real = Path.rename

    def failing(self: Path, target: Path) -> Path:
        if self.name.endswith(".new"):
            raise PermissionError(13, "Permission denied", str(target))
        return real(self, target)

    monkeypatch.setattr(Path, "rename", failing)
    with pytest.raises(PermissionError):
        run(*call(tmp_path / "r"))
    assert (tmp_path / "r" / "questions.jsonl").is_file()
    assert os.listdir(tmp_path) == ["r"]


def test_an_output_that_is_an_input_is_refused(inputs: Path, tmp_path: Path) -> None:
    path = tmp_path / "questions.jsonl"
    shutil.copyfile(inputs / "questions.jsonl", path)
    before = path.read_bytes()
    (tmp_path / "link").symlink_to(path)
    for out in (path, tmp_path / "." / "questions.jsonl", tmp_path / "link"):
        with pytest.raises(BadInput, match=r"--out .*: is also 'questions' of this command; name another file"):
            run("questions", "sample", path, "--out", out)
    assert path.read_bytes() == before
    assert read_questions(path)


def test_every_parameter_that_names_what_is_written_is_known() -> None:
    """By what its help says; one that is missing from the list would not be kept apart from the inputs."""
    found = set()
    for module in (*STAGES.values(), "overread_viewer.readers_commands"):
        for command in registered(import_module(module).app):
            for name, hint in get_type_hints(command.callback, include_extras=True).items():
                words = " ".join(str(getattr(each, "help", "") or "") for each in getattr(hint, "__metadata__", ()))
                writes = "to write" in words or words.startswith(
                    ("work file", "folder for", "the folder for", "folder of")
                )
                if "Path" in str(hint) and writes and "tokenizer" not in words and "templates" not in words:
                    found.add(name)
    assert {"out", "remarks", "rejected", "replies", "outcomes", "work"} <= found <= WRITES


@pytest.mark.parametrize("name", TRIED)
def test_into_an_empty_folder_each_of_them_writes(called: Callable[[str], Command], tmp_path: Path, name: str) -> None:
    """Else the property test above would hold of commands that refuse everything."""
    own, call = called(name)
    (tmp_path / "out").mkdir()
    run(*call(tmp_path / "out"))
    there = {path.name for path in (tmp_path / "out").iterdir()}
    assert there and set(own.split()) - {"ledger.jsonl"} <= there


NOT_TRIED = {
    "questions generate": "writes one file by `replacing`, as `questions filter` does; needs a model that writes",
    "questions validate": "the same",
    "questions agreement": "one file by `replacing`; needs sheets that people have filled in",
    "trials cohort": "one or two files by `replacing`, beside a whole results folder",
    "responses answer-all": "`responses answer` for several settings",
    "tables human": "`tables make` with the readers' tables; needs ratings",
    "tables report": "one file by `replacing`; needs a whole results folder",
    "readers export": "one file by `replacing`; needs a reader study's database",
}
"""Commands that write and that the property test does not call, and why."""


def test_every_command_that_writes_is_tried_or_named(inputs: Path) -> None:
    found = set()
    for stage, module in (*STAGES.items(), ("readers", "overread_viewer.readers_commands")):
        for command in registered(import_module(module).app):
            name = command.name or command.callback.__name__.removesuffix("_command").replace("_", "-")
            if WRITES & set(get_type_hints(command.callback)):
                found.add(stage if name == stage else f"{stage} {name}")
    tried = set(commands(inputs, inputs))
    assert found == tried | set(NOT_TRIED), (sorted(found - tried - set(NOT_TRIED)), sorted(set(NOT_TRIED) - found))


def test_a_folder_in_the_place_of_a_file_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "out.csv").mkdir()
    with pytest.raises(BadInput, match=r"out\.csv: is a folder; name a file"), replacing(tmp_path / "out.csv"):
        pass


def test_keep_inputs_lets_two_reads_of_one_file_be() -> None:
    assert keep_inputs(lambda **paths: len(paths))(studies=Path("a"), images=Path("a"), out=Path("b")) == 3
