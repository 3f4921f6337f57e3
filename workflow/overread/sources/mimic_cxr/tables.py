"""The CSVs of MIMIC-CXR-JPG: metadata, split and labels. Release 2.1.0 keeps the names of 2.0.0.

What is odd about a row gets a remark with the file and the row's key. What makes a study unusable is its problem:
nothing of it is chosen among contradictions.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from overread.config import FINDINGS
from overread.core.errors import BadInput
from overread.core.inputs import regular
from overread.sources.shared.frontal_choice import VIEW_POSITIONS
from overread.sources.shared.labels import in_words
from overread.sources.shared.remarks import Remarks

if TYPE_CHECKING:
    import pyarrow as pa

PREFIX = "mimic-cxr-2.0.0"
SPLITS = ("train", "validate", "test")
UNKNOWN = "unknown"
"""Of a date or a time: letters sort after digits."""

_ID = re.compile(r"[1-9]\d{0,14}")
_NAME = re.compile(r"\w[\w.-]*")
_TIME = re.compile(r"\d{1,6}(\.\d*)?")


@dataclass(frozen=True, order=True)
class Image:
    """One image. The order is that of time, and of the name where times are equal or unknown."""

    date: str
    clock: str
    dicom: str
    view: str

    @property
    def timed(self) -> bool:
        return UNKNOWN not in (self.date, self.clock)


@dataclass
class Metadata:
    """Patient and images by study, and what is wrong with a study."""

    patients: dict[int, int] = field(default_factory=dict)
    images: dict[int, list[Image]] = field(default_factory=dict)
    problems: dict[int, str] = field(default_factory=dict)


def read_metadata(folder: Path, remarks: Remarks) -> Metadata:
    """Every image of the release. One that is listed twice is counted once, or not at all where its rows differ."""
    columns = ["dicom_id", "subject_id", "study_id", "ViewPosition", "StudyDate", "StudyTime"]
    path, rows = _rows(folder, "metadata", columns, remarks)
    listed: dict[str, tuple[int, int, Image]] = {}
    contradicted: set[str] = set()
    for key, (dicom, subject, study_id, view, date, time) in rows:
        patient, study = _id(subject), _id(study_id)
        if dicom is None or _NAME.fullmatch(dicom) is None or patient is None or study is None:
            remarks.add(path, dicom or key, "dicom_id, subject_id or study_id is missing or no id: left out")
            continue
        if view is not None and view not in VIEW_POSITIONS:
            remarks.add(path, dicom, f"ViewPosition is {view!r}, which is none: the image is not frontal")
        clock = _checked(clock_time(time), "StudyTime", time, path, dicom, remarks)
        image = Image(_checked(_date(date), "StudyDate", date, path, dicom, remarks), clock, dicom, view or "")
        row = (patient, study, image)
        if dicom not in listed:
            listed[dicom] = row
        elif listed[dicom] == row:
            remarks.add(path, dicom, "listed twice, in rows that say the same: counted once")
        else:
            remarks.add(path, dicom, "listed twice, in rows that differ: the image is not used")
            contradicted.add(dicom)
    found = Metadata()
    for dicom, (patient, study, image) in listed.items():
        if found.patients.setdefault(study, patient) != patient:
            found.problems[study] = f"listed under two patients, p{found.patients[study]} and p{patient}"
        found.images.setdefault(study, [])
        if dicom not in contradicted:
            found.images[study].append(image)
    return found


def read_splits(folder: Path, remarks: Remarks) -> dict[int, set[str]]:
    """The splits that the images of a study are in: one, unless the table contradicts itself."""
    path, rows = _rows(folder, "split", ["study_id", "split"], remarks)
    splits: dict[int, set[str]] = defaultdict(set)
    for key, (study_id, split) in rows:
        study = _id(study_id)
        if study is None or split not in SPLITS:
            remarks.add(path, study_id or key, f"no study_id, or the split {split!r} is none: left out")
        else:
            splits[study].add(split)
    return splits


@dataclass(frozen=True)
class Labelled:
    """What the labeller says of a study: in words by finding (absent: not mentioned), or why that can't be used."""

    patient: int
    findings: dict[str, str]
    no_finding: str | None = None
    problem: str | None = None


def read_labels(folder: Path, labeller: str, remarks: Remarks) -> dict[int, Labelled]:
    """Labels by study. Two rows that differ label nothing."""
    names = (*FINDINGS, "No Finding")
    path, rows = _rows(folder, labeller, ["subject_id", "study_id", *names], remarks)
    labels: dict[int, Labelled] = {}
    key = None
    for key, (subject, study_id, *values) in rows:
        patient, study = _id(subject), _id(study_id)
        if patient is None or study is None:
            remarks.add(path, study_id or key, "subject_id or study_id is missing or no id: left out")
            continue
        labelled = _labelled(patient, dict(zip(names, values, strict=True)))
        if study not in labels:
            labels[study] = labelled
        elif labels[study] == labelled:
            remarks.add(path, f"s{study}", "labelled twice, with the same labels: counted once")
        else:
            remarks.add(path, f"s{study}", "labelled twice, with labels that differ: none of them is used")
            labels[study] = Labelled(patient, {}, problem="labelled twice, with labels that differ")
    if key is not None and not labels:
        raise BadInput(f"{path}: none of its rows can be used: {key} and the others have no subject_id and study_id")
    return labels


def _labelled(patient: int, values: dict[str, str | None]) -> Labelled:
    named, problem = in_words(values)
    no_finding = named.pop("No Finding", None)
    return Labelled(patient, named, no_finding, problem)


# -- cells -----------------------------------------------------------------------------------------------------------


def _id(text: str | None) -> int | None:
    return int(text) if text is not None and _ID.fullmatch(text) else None


def clock_time(text: str | None) -> str | None:
    """`HHMMSS.fff` with the leading zeros that the release lost: 81534.5 is 081534.500. None if it is no time.

    Milliseconds are rounded, since the release has the digits that computing leaves: 160741.46799999999.
    """
    if text is None:
        return UNKNOWN
    whole, _, part = text.partition(".")
    if _TIME.fullmatch(text) is None:
        return None
    whole = whole.zfill(6)
    if int(whole[:2]) > 23 or int(whole[2:4]) > 59 or int(whole[4:]) > 59:
        return None
    return f"{whole}.{min(round(1000 * float(f'0.{part}0')), 999):03d}"


def _date(text: str | None) -> str | None:
    """`YYYYMMDD`. None if it is no date; years are shifted into the future."""
    if text is None:
        return UNKNOWN
    if re.fullmatch(r"\d{8}", text) is None or not 1 <= int(text[4:6]) <= 12 or not 1 <= int(text[6:]) <= 31:
        return None
    return text


def _checked(value: str | None, column: str, text: str | None, path: Path, key: str, remarks: Remarks) -> str:
    if value is None:
        remarks.add(path, key, f"{column} is {text!r}, which is none: counted as unknown")
    return value if value is not None else UNKNOWN


# -- files -----------------------------------------------------------------------------------------------------------


def _rows(
    folder: Path, name: str, columns: list[str], remarks: Remarks
) -> tuple[Path, Iterator[tuple[str, tuple[str | None, ...]]]]:
    """The path of one of the release's CSVs, packed or not, and its rows as text, each with its place."""
    paths = [folder / f"{PREFIX}-{name}{ending}" for ending in (".csv.gz", ".csv")]
    path = next((one for one in paths if one.is_file()), None)
    if path is None:
        raise BadInput(f"{paths[0]}: no such file, nor {paths[1].name}; it belongs in the root of MIMIC-CXR-JPG")
    table = _table(path, name, columns, remarks)
    cells = zip(*(table[column].to_pylist() for column in columns), strict=True)
    return path, ((f"row {number}", row) for number, row in enumerate(cells, start=1))


def _table(path: Path, name: str, columns: list[str], remarks: Remarks) -> pa.Table:
    import pyarrow as pa
    from pyarrow import csv

    def skipped(row: Any) -> str:
        start = " ".join(str(row.text).split())[:60]
        remarks.add(path, start, f"{row.actual_columns} cells where the head has {row.expected_columns}: left out")
        return "skip"

    try:
        return csv.read_csv(
            regular(path),
            parse_options=csv.ParseOptions(invalid_row_handler=skipped),
            convert_options=csv.ConvertOptions(
                column_types={column: pa.string() for column in columns},
                include_columns=columns,
                null_values=[""],
                strings_can_be_null=True,
            ),
        )
    except (pa.ArrowException, KeyError, OSError, EOFError) as error:
        raise BadInput(f"{path}: not the {name} table of MIMIC-CXR-JPG: {' '.join(str(error).split())}") from None
