"""A folder in the layout of MIMIC-CXR-JPG and MIMIC-CXR, of the size of its test split, written in seconds.

Every image is a hard link to one tiny JPEG. Which studies lack a report or labels follows from their number, so that a
test can work out what must be counted.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from overread.config import FINDINGS
from overread.core.records import Study
from overread.sources.mimic_cxr.reader import read
from overread.sources.mimic_cxr.section import MimicCxr
from overread.sources.shared.remarks import Remarks

LABELS = sorted([*FINDINGS, "No Finding"])

METADATA = (
    "dicom_id,subject_id,study_id,PerformedProcedureStepDescription,ViewPosition,Rows,Columns,StudyDate,StudyTime"
)

REPORT = (
    " " * 33 + "FINAL REPORT\n EXAMINATION:  CHEST (PA AND LAT)\n \n INDICATION:  ___ year old with cough.\n \n"
    " FINDINGS: \n \n Opacity number {number} is seen in the left lower zone.  The heart is of\n normal size.\n \n"
    " IMPRESSION: \n \n Opacity number {number}.\n"
)


WHOLE_REPORT = (
    " " * 33 + "FINAL REPORT\n \n FINDINGS: \n \n The lungs are\n clear.\n \n IMPRESSION: \n \n Normal chest.\n"
)


@dataclass(frozen=True)
class Size:
    """How much there is: that of the test split by default."""

    patients: int = 293
    studies: int = 3269
    frontal: int = 3653
    lateral: int = 1502
    other: int = 4
    without_report: int = 62
    without_labels: int = 8

    @property
    def images(self) -> int:
        return self.frontal + self.lateral + self.other

    @property
    def usable(self) -> int:
        return self.studies - self.without_report - self.without_labels


def write_release(root: Path, size: Size | None = None) -> Size:
    """The whole folder. The last studies lack a report or labels; each has a frontal image, and some have more."""
    size = size or Size()
    seed = root / "seed.jpg"
    root.mkdir(parents=True, exist_ok=True)
    Image.linear_gradient("L").resize((64, 80)).save(seed, quality=90)
    patients = [10_000_000 + 31 * (number % size.patients) for number in range(size.studies)]
    studies = [50_000_000 + 7 * number for number in range(size.studies)]
    views = ["PA", "AP"] * (size.frontal // 2) + ["AP"] * (size.frontal % 2)
    views += ["LATERAL", "LL"] * (size.lateral // 2) + ["LL"] * (size.lateral % 2) + ["", "LPO"] * (size.other // 2)
    metadata, split = [], []
    for number, view in enumerate(views):
        patient, study = patients[number % size.studies], studies[number % size.studies]
        dicom = f"{number:08x}-{study:08x}-aa-bb-cc"
        clock = (number * 37) % 240_000
        seconds = (
            f"{clock if clock % 10_000 < 6_000 and clock % 100 < 60 else clock // 10_000 * 10_000}.{number % 1000}"
        )
        metadata.append(
            f"{dicom},{patient},{study},CHEST (PA AND LAT),{view},80,64,2180{number % 12 + 1:02d}17,{seconds}"
        )
        split.append(f"{dicom},{study},{patient},test")
        folder = root / f"files/p{str(patient)[:2]}/p{patient}/s{study}"
        folder.mkdir(parents=True, exist_ok=True)
        os.link(seed, folder / f"{dicom}.jpg")
    labels = []
    for number, (patient, study) in enumerate(zip(patients, studies, strict=True)):
        left = size.studies - number
        if left > size.without_report:
            path = root / f"files/p{str(patient)[:2]}/p{patient}/s{study}.txt"
            path.write_text(REPORT.format(number=number))
        if not size.without_report < left <= size.without_report + size.without_labels:
            values = [
                "1.0" if (number + place) % 5 == 0 else "0.0" if (number + place) % 7 == 0 else ""
                for place in range(14)
            ]
            labels.append(f"{patient},{study},{','.join(values)}")
    seed.unlink()
    write_tables(root, metadata, split, labels)
    return size


def write_tables(
    root: Path,
    metadata: Iterable[str],
    split: Iterable[str],
    labels: Iterable[str],
    *,
    labeller: str = "chexpert",
    packed: bool = True,
) -> None:
    """The release's CSVs, under the names that release 2.1.0 still gives them."""
    tables = {
        "metadata": (METADATA, metadata),
        "split": ("dicom_id,study_id,subject_id,split", split),
        labeller: ("subject_id,study_id," + ",".join(LABELS), labels),
    }
    for name, (head, lines) in tables.items():
        text = "\n".join([head, *lines]) + "\n"
        path = root / f"mimic-cxr-2.0.0-{name}.csv"
        if packed:
            path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
        else:
            path.write_text(text)


class Release:
    """A folder in that layout, built row by row."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.metadata: list[str] = []
        self.labels: list[str] = []
        self.split: list[str] = []

    def image(
        self,
        patient: int,
        study: int,
        dicom: str,
        view: str = "PA",
        date: str = "21800506",
        clock: str = "213014.5",
        split: str = "test",
    ) -> Path:
        self.metadata.append(f"{dicom},{patient},{study},CHEST (PA AND LAT),{view},64,48,{date},{clock}")
        self.split.append(f"{dicom},{study},{patient},{split}")
        path = self.root / f"files/p{str(patient)[:2]}/p{patient}/s{study}/{dicom}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.linear_gradient("L").save(path, quality=90)
        return path

    def report(self, patient: int, study: int, text: str = WHOLE_REPORT, under: str = "files") -> Path:
        path = self.root / f"{under}/p{str(patient)[:2]}/p{patient}/s{study}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def label(self, patient: int, study: int, **values: str) -> None:
        named = {name.replace("_", " "): value for name, value in values.items()}
        self.labels.append(f"{patient},{study}," + ",".join(named.get(name, "") for name in LABELS))

    def whole(self, patient: int, study: int, dicom: str) -> Path:
        """A study without a flaw."""
        self.report(patient, study)
        self.label(patient, study, Edema="1.0")
        return self.image(patient, study, dicom)

    def section(self, **section: object) -> MimicCxr:
        config = {"source": "mimic-cxr", "root": str(self.root), "questions": {"origin": "findings"}, **section}
        return MimicCxr.model_validate(config)

    def read(self, packed: bool = True, remarks: Remarks | None = None, **section: object) -> dict[str, Study]:
        labeller = str(section.get("labels", "chexpert"))
        write_tables(self.root, self.metadata, self.split, self.labels, labeller=labeller, packed=packed)
        return {study.study: study for study in read("cxr", self.section(**section), self.root, remarks)}
