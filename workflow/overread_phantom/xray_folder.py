"""Semi-synthetic chest X-rays written as a MIMIC-CXR-JPG folder, with the reports of MIMIC-CXR beside the images.

Names, columns and layout are those of the release (`mimic-cxr-2.0.0-*.csv.gz`, `files/pNN/pNNNNNNNN/sNNNNNNNN/`), so
that one reader serves both. Patient and study numbers begin with 9: the real ones are 1xxxxxxx and 5xxxxxxx.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import textwrap
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from overread.core.csv_files import csv_text
from overread.core.errors import BadInput
from overread.core.outputs import OutputFolder
from overread.core.records import replacing
from overread.sources.shared.marker import mark
from overread_phantom.xray import PLANTED, PlantedStudy, draw_study, radiograph, study_count
from overread_phantom.xray_base import FULL, base, base_file

if TYPE_CHECKING:
    from overread_phantom.source import Phantom

FIRST_PATIENT, FIRST_STUDY = 90_000_001, 95_000_001

COMMAND = "studies make"
"""Whose manifest lies in the folder."""

PREFIX = "mimic-cxr-2.0.0"

LABELS = (
    "Atelectasis", "Cardiomegaly", "Consolidation", "Edema", "Enlarged Cardiomediastinum", "Fracture", "Lung Lesion",
    "Lung Opacity", "No Finding", "Pleural Effusion", "Pleural Other", "Pneumonia", "Pneumothorax", "Support Devices",
)  # fmt: skip
METADATA = (
    "dicom_id", "subject_id", "study_id", "PerformedProcedureStepDescription", "ViewPosition", "Rows", "Columns",
    "StudyDate", "StudyTime", "ProcedureCodeSequence_CodeMeaning", "ViewCodeSequence_CodeMeaning",
    "PatientOrientationCodeSequence_CodeMeaning",
)  # fmt: skip

SENTENCE = (
    "Semi-synthetic: every image is one real chest radiograph (RG1_UNCR.dcm of the package pydicom-data, its own "
    "masses removed) with planted findings; patients, dates and reports are invented."
)

_INDICATIONS = (
    "Shortness of breath.", "Cough.", "Chest pain.", "Fever.", "Follow-up.", "Preoperative film.", "Fall.", "Dyspnea.",
)  # fmt: skip


def make(section: Phantom, folder: Path, workers: int = 1) -> None:
    """Write `section.patients` patients.

    raises  BadInput if the package with the base radiograph is missing
    """
    if section.patients is None:
        raise BadInput("a phantom of modality xray needs 'patients'")
    write_folder(section.seed, section.patients, folder, workers)


def write_folder(seed: int, patients: int, folder: Path, workers: int = 1) -> None:
    """All studies of patients 0..`patients`-1: images, reports, the four CSVs, truth.csv and the marker.

    raises  BadInput if the base's package is missing, or if the folder holds something that the phantom did not make
    """
    base_file()  # a missing package is told at once, not by a worker
    own = OutputFolder(folder, COMMAND)
    own.clear()
    with own.guarding():
        mark(folder, SENTENCE)
        _write(seed, patients, folder, workers)


def _write(seed: int, patients: int, folder: Path, workers: int) -> None:
    studies = [
        draw_study(seed, index, number) for index in range(patients) for number in range(study_count(seed, index))
    ]
    write = partial(_write_study, folder=folder)
    if workers > 1:
        with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
            list(pool.map(write, studies, chunksize=8))
    else:
        base(*FULL)
        for study in studies:
            write(study)
    _write_gzipped(folder / f"{PREFIX}-metadata.csv.gz", METADATA, (_metadata(study) for study in studies))
    _write_gzipped(
        folder / f"{PREFIX}-split.csv.gz",
        ("dicom_id", "study_id", "subject_id", "split"),
        ((dicom_id(study), study_id(study), subject_id(study), "test") for study in studies),
    )
    for labeller in ("chexpert", "negbio"):
        rows = ([subject_id(study), study_id(study), *_labels(study)] for study in studies)
        _write_gzipped(folder / f"{PREFIX}-{labeller}.csv.gz", ("subject_id", "study_id", *LABELS), rows)
    truth = ([subject_id(s), study_id(s), *(int(s.truth[name]) for name in PLANTED), _places(s)] for s in studies)
    with replacing(folder / "truth.csv") as temporary:
        temporary.write_text(_table(("subject_id", "study_id", *PLANTED, "planted"), truth), encoding="utf-8")


def subject_id(study: PlantedStudy) -> int:
    return FIRST_PATIENT + study.index


def study_id(study: PlantedStudy) -> int:
    """Four numbers a patient, in the order of time."""
    return FIRST_STUDY + 4 * study.index + study.number


def dicom_id(study: PlantedStudy) -> str:
    """Five groups of eight hex digits, as in the release."""
    digits = hashlib.sha256(f"overread phantom {study.seed} {study.index} {study.number}".encode()).hexdigest()
    return "-".join(digits[start : start + 8] for start in range(0, 40, 8))


def patient_folder(study: PlantedStudy) -> Path:
    """Relative to the root: files/p90/p90000001."""
    subject = f"p{subject_id(study)}"
    return Path("files", subject[:3], subject)


def report_text(study: PlantedStudy) -> str:
    """The report as it is distributed: a title in the middle, indented headers, lines of at most 80 characters."""
    rng = np.random.default_rng([study.seed, study.index, 5, study.number])
    indication = f"___-year-old woman. {_INDICATIONS[int(rng.integers(len(_INDICATIONS)))]}"
    comparison = "Chest radiograph from ___." if study.number else "None."
    parts = [" " * 33 + "FINAL REPORT"]
    for header, text in (
        ("EXAMINATION", "CHEST (PA)"), ("INDICATION", indication), ("COMPARISON", comparison),
        ("FINDINGS", study.report["findings"]), ("IMPRESSION", study.report["impression"]),
    ):  # fmt: skip
        if header in ("FINDINGS", "IMPRESSION"):
            parts.append(f" {header}: \n \n{textwrap.fill(text, 79, initial_indent=' ', subsequent_indent=' ')}")
        else:
            parts.append(f" {header}:  {text}")
    return "\n \n".join(parts) + "\n"


def _write_study(study: PlantedStudy, folder: Path) -> None:
    home = folder / patient_folder(study)
    with OutputFolder(folder, COMMAND).guarding():
        with replacing(home / f"s{study_id(study)}.txt") as temporary:
            temporary.write_text(report_text(study), encoding="utf-8")
        with replacing(home / f"s{study_id(study)}" / f"{dicom_id(study)}.jpg") as temporary:
            radiograph(study).save(temporary, format="JPEG", quality=95)


def _metadata(study: PlantedStudy) -> list[object]:
    """One row of the metadata. Dates lie in the release's shifted years; times lose their leading zeros there."""
    patient = np.random.default_rng([study.seed, study.index, 4])
    year, month = 2110 + int(patient.integers(80)), int(patient.integers(1, 9))
    day, clock = int(patient.integers(1, 28)), int(patient.integers(24 * 3600))
    seconds = (clock + 5400 * study.number) % (24 * 3600)
    time = seconds // 3600 * 10000 + seconds // 60 % 60 * 100 + seconds % 60 + study.index % 8 * 0.125
    date = (year * 100 + month + study.number) * 100 + day
    return [
        dicom_id(study), subject_id(study), study_id(study), "CHEST (PA)", "PA", FULL[1], FULL[0], date, f"{time:.3f}",
        "CHEST (PA)", "postero-anterior", "Erect",
    ]  # fmt: skip


def _labels(study: PlantedStudy) -> list[str]:
    """1.0, 0.0, -1.0 or blank. No Finding is 1.0 where nothing but devices is positive or uncertain."""
    named = {name: f"{label}.0" for name, label in study.labels.items()}
    if not any(label in (1, -1) for name, label in study.labels.items() if name != "Support Devices"):
        named["No Finding"] = "1.0"
    return [named.get(name, "") for name in LABELS]


def _places(study: PlantedStudy) -> str:
    """What was planted where, as JSON."""
    planted = [
        {"finding": plan.finding, "kind": plan.kind, "side": plan.side, "zone": plan.zone}
        | {name: round(value, 3) for name, value in plan.numbers.items()}
        for plan in study.plans
    ]
    return json.dumps(planted, sort_keys=True)


def _table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    return csv_text(columns, rows, decimals=None)


def _write_gzipped(path: Path, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A CSV without a date or a name in its gzip header: the same rows give the same bytes."""
    with replacing(path) as temporary:
        temporary.write_bytes(gzip.compress(_table(columns, rows).encode(), mtime=0))
