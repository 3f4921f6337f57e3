"""A small example of each source, view and back end that is registered, for the tests that all of them must pass.

A source's example is a folder of three studies or more; `spoil` adds a row or a file that is no good, `shuffle` writes
all in another order. The example of a source that is not here stands in its own test, `test_<module>.py`, as `sample`.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from data.mimic_release import Release, write_tables
from data.open_i_release import OpenIRelease
from data.ucsf_release import scans
from overread.config.datasets import DatasetSection
from overread.config.kinds import BACKENDS, SOURCES, VIEWS
from overread.config.models import ModelSection
from overread.config.views import ViewSection

QUESTIONS = {"origin": "file", "path": "questions.jsonl"}


def section(source: str, **fields: Any) -> DatasetSection:
    return SOURCES[source].model_validate({"source": source, "questions": QUESTIONS, **fields})


def grey(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.arange(4096, dtype=np.uint32).reshape(64, 64).astype(np.uint8)).save(path)


# -- sources -----------------------------------------------------------------------------------------------------------


def source(name: str, root: Path, *, spoil: bool = False, shuffle: bool = False) -> tuple[DatasetSection, Path]:
    """The section of an example, and the folder or file that it is read from."""
    root.mkdir(parents=True)
    own = SAMPLES.get(name)
    if own is None:
        module = SOURCES.places[name].partition(":")[0].removesuffix(".section").rpartition(".")[2]
        own = import_module(f"unit.sources.test_{module}").sample
    made = own(root, spoil, shuffle)
    return made, Path(made.place) if made.place is not None else root / "made"


def empty_source(name: str, root: Path) -> tuple[DatasetSection, Path] | None:
    """An example whose folder is empty, or whose file holds nothing; none for a source that makes its own data."""
    made, _ = source(name, root / "full")
    if made.place is None:
        return None
    key = "root" if made.place == getattr(made, "root", None) else "path"
    place = root / "empty"
    if key == "root":
        place.mkdir()
    else:
        place.touch()
    return made.model_copy(update={key: str(place)}), place


def _phantom(root: Path, spoil: bool, shuffle: bool) -> DatasetSection:
    made = section("phantom", modality="xray", patients=3)
    made.make(root / "made", 1)
    if spoil:
        first = min((root / "made").rglob("*.jpg"))
        first.write_bytes(first.read_bytes()[:200])
    if shuffle:
        for path in (root / "made").glob("*.csv.gz"):
            head, *rows = gzip.decompress(path.read_bytes()).decode().splitlines()
            path.write_bytes(gzip.compress("\n".join([head, *reversed(rows)]).encode()))
    return made


def _ucsf_pdgm(root: Path, spoil: bool, shuffle: bool) -> DatasetSection:
    numbers = [4, 5, 7]
    for number in reversed(numbers) if shuffle else numbers:
        scans(root, f"UCSF-PDGM-{number:04d}")
    if spoil:
        scans(root, "UCSF-PDGM-0009", ("T1", "FLAIR"))
    return section("ucsf-pdgm", root=str(root))


def _mimic_cxr(root: Path, spoil: bool, shuffle: bool) -> DatasetSection:
    release = Release(root)
    for number in range(3):
        release.whole(10_000_032 + number, 50_414_267 + number, f"0{number}a")
    if spoil:
        release.image(10_000_099, 50_000_001, "0f", date="no date")
    order = slice(None, None, -1 if shuffle else 1)
    write_tables(root, release.metadata[order], release.split[order], release.labels[order])
    return release.section()


def _open_i(root: Path, spoil: bool, shuffle: bool) -> DatasetSection:
    release = OpenIRelease(root / "open-i")
    for number in (3, 2, 1) if shuffle else (1, 2, 3):
        release.study(number)
    if spoil:
        release.report(4).write_text("<x/>")
    if shuffle:
        release.projections.reverse()
    return section("open-i", root=str(release.root), projections=str(release.write_projections()))


def _chexpert_plus(root: Path, spoil: bool, shuffle: bool) -> DatasetSection:
    head = (
        "path_to_image", "path_to_dcm", "frontal_lateral", "ap_pa", "deid_patient_id", "patient_report_date_order",
        "report", "section_narrative", "section_findings", "section_impression", "age", "sex", "split",
    )  # fmt: skip
    rows = []
    for number in range(3):
        name = f"train/patient{number:05d}/study1/view1_frontal.jpg"
        grey(root / name)
        rows.append({
            "path_to_image": name, "frontal_lateral": "Frontal", "ap_pa": "AP",
            "deid_patient_id": f"patient{number:05d}", "patient_report_date_order": "1.0", "split": "train",
            "section_findings": f"Findings of {number}.", "section_impression": "None.", "age": "60", "sex": "F",
        })  # fmt: skip
    if spoil:
        rows.append({**rows[0], "path_to_image": "no path", "deid_patient_id": ""})
    with (root / "df_chexpert_plus_240401.csv").open("w", newline="") as file:
        table = csv.DictWriter(file, head, restval="")
        table.writeheader()
        table.writerows(reversed(rows) if shuffle else rows)
    return section("chexpert-plus", root=str(root))


def _table(root: Path, spoil: bool, shuffle: bool) -> DatasetSection:
    rows = []
    for name in ("e1", "e2", "e3"):
        grey(root / f"{name}.png")
        rows.append({"study": name, "patient": f"p-{name}", "image": f"{name}.png"})
    if spoil:
        rows.append({"study": "../e4", "patient": "p4", "image": "e1.png"})
    with (root / "own.csv").open("w", newline="") as file:
        table = csv.DictWriter(file, ("study", "patient", "image"))
        table.writeheader()
        table.writerows(reversed(rows) if shuffle else rows)
    return section("table", path=str(root / "own.csv"), modality="xray", images={"frontal": "image"})


SAMPLES: dict[str, Callable[[Path, bool, bool], DatasetSection]] = {
    "phantom": _phantom, "ucsf-pdgm": _ucsf_pdgm, "mimic-cxr": _mimic_cxr, "open-i": _open_i,
    "chexpert-plus": _chexpert_plus, "table": _table,
}  # fmt: skip


# -- views and back ends -----------------------------------------------------------------------------------------------

NEEDED: dict[str, dict[str, Any]] = {"slice": {"series": "FLAIR"}}
"""Keys without a default, by kind of view."""


def view(kind: str) -> ViewSection:
    return VIEWS[kind].model_validate({"kind": kind, **NEEDED.get(kind, {})})


SMALL = ("calibrated", "transformers")
"""Back ends of which a model small enough can be made here; the others have tests of their own against these."""


def can_run(name: str) -> bool:
    fields = BACKENDS[name].model_fields
    return name in SMALL or not any(fields[key].is_required() for key in set(fields) - {"label", "backend"})


def model(name: str, folder: Path, batch: int) -> ModelSection:
    """A model of the back end, small, made in the folder the first time."""
    fields: dict[str, Any] = {"label": "m", "backend": name, "batch": batch}
    if name == "calibrated":
        fields["reliance"] = {"report": 0.4, "image": 0.4}
    elif "weights" in BACKENDS[name].model_fields:
        from data.checkpoints import make_checkpoint

        if not (folder / "weights").is_dir():
            make_checkpoint("qwen3", folder / "weights")
        fields |= {"weights": str(folder / "weights"), "dtype": "float32", "decoding": {"max_tokens": 4}}
    return BACKENDS[name].model_validate(fields)
