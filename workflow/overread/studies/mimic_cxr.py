"""MIMIC-CXR-JPG with the reports of MIMIC-CXR (Johnson et al. 2019), and folders in their layout.

    mimic-cxr-2.0.0-{metadata,split,chexpert}.csv.gz        or unpacked, .csv
    files/p10/p10000032/s50414267/<dicom_id>.jpg            images
    files/p10/p10000032/s50414267.txt                       reports, here or under `section.reports`

A study has one image: the first frontal one (AP or PA) by date and time. What makes a study unusable is said in its
`problem`; the others go on.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from overread.config import FINDINGS, MimicCxr, Phantom
from overread.errors import BadInput
from overread.records import Study
from overread.studies.phantom.marker import is_semi_synthetic

if TYPE_CHECKING:
    import pyarrow as pa

FRONTAL = ("AP", "PA")
LABELS = {1.0: "positive", 0.0: "negative", -1.0: "uncertain"}
PREFIX = "mimic-cxr-2.0.0"
"""Release 2.1.0 keeps this name."""


def read(dataset: str, section: MimicCxr | Phantom, folder: Path) -> list[Study]:
    """All studies of the wanted split, sorted by patient and study, unusable ones with their `problem`.

    raises  BadInput if a CSV is missing or has other columns, or if nothing is left
    """
    wanted = section.split if isinstance(section, MimicCxr) else None
    reports = Path(section.reports) if isinstance(section, MimicCxr) and section.reports is not None else folder
    patients, frontal = _images(folder)
    labels = _labels(folder)
    splits = _splits(folder) if wanted is not None else {}
    for study, (patient, _) in labels.items():
        patients.setdefault(study, patient)
    planted = is_semi_synthetic(folder)
    studies: list[Study] = []
    for study, patient in sorted(patients.items(), key=lambda item: (item[1], item[0])):
        if wanted is not None and splits.get(study) != wanted:
            continue
        image = frontal.get(study)
        path = _files(folder) / _home(patient) / f"s{study}" / f"{image.dicom}.jpg" if image is not None else None
        problem = _image_problem(path)
        findings, no_finding, label_problem = _named(labels[study][1]) if study in labels else ({}, None, "no labels")
        report, report_problem = _report(_files(reports) / _home(patient) / f"s{study}.txt")
        attributes = {"split": splits[study]} if study in splits else {}
        if no_finding is not None:
            attributes["No Finding"] = no_finding
        if image is not None:
            attributes |= {
                "dicom_id": image.dicom,
                "ViewPosition": image.view,
                "StudyDate": image.date,
                "StudyTime": image.clock,
            }
        studies.append(
            Study(
                study=f"s{study}",
                patient=f"p{patient}",
                dataset=dataset,
                modality="xray",
                images={"frontal": str(path)} if path is not None else {},
                report=report,
                labels=findings,
                attributes=attributes,
                restricted=section.restricted,
                semi_synthetic=planted,
                problem="; ".join(one for one in (problem, label_problem, report_problem) if one is not None) or None,
            )
        )
    if not studies:
        raise BadInput(f"{folder}: no study" + (f" of the split {wanted!r}" if wanted is not None else ""))
    return studies


# -- reports ---------------------------------------------------------------------------------------------------------

_HEADER = re.compile(r"\n ?([A-Z][A-Z ()/,&-]*):(?=\s)")
_NAMES = {
    "FINDINGS": "findings", "FINDING": "findings", "FINDINGS AND IMPRESSION": "findings",
    "FINDINGS/IMPRESSION": "findings",
    "IMPRESSION": "impression", "IMPRESSIONS": "impression", "CONCLUSION": "impression", "CONCLUSIONS": "impression",
}  # fmt: skip
_VIEWS = re.compile(r"\b(VIEWS?|RADIOGRAPHS?|FILMS?|CHEST)\b")
_TITLE = re.compile(r"^\s*(WET READ|FINAL REPORT|FINAL ADDENDUM)\b")


def sections(text: str) -> dict[str, str]:
    """Findings and impression of a report as it is distributed. `___`, which marks a redaction, is kept.

    The last section of a name wins, since addenda and preliminary readings stand on top. A report without a findings
    section may describe them after the name of the views (PA AND LATERAL VIEWS OF THE CHEST: ...). Where neither
    section is found, the whole body counts as findings: it says what was seen. Other sections (indication, technique)
    are left out.
    """
    body = "\n" + text.replace("\r\n", "\n").replace("\r", "\n")
    headers = list(_HEADER.finditer(body))
    found: dict[str, str] = {}
    under_views = ""
    for header, following in itertools.zip_longest(headers, headers[1:]):
        content = " ".join(body[header.end() : following.start() if following is not None else len(body)].split())
        title = " ".join(header[1].split())
        if content and title in _NAMES:
            found[_NAMES[title]] = content
        elif content and _VIEWS.search(title) and len(content.split()) > 5:
            under_views = content
    if under_views and "findings" not in found:
        found["findings"] = under_views
    if not found:
        whole = " ".join(_TITLE.sub("", body).split())
        found = {"findings": whole} if whole else {}
    return {name: found[name] for name in ("findings", "impression") if name in found}


def _report(path: Path) -> tuple[dict[str, str], str | None]:
    try:
        report = sections(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}, f"no report: {path} is missing"
    except (OSError, UnicodeDecodeError) as error:
        return {}, f"the report {path} is not readable: {error}"
    return report, None if report else f"the report {path} is empty"


# -- images ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, order=True)
class _Frontal:
    """One frontal image. The order is that of time, and of the name where times are equal or missing."""

    date: str
    clock: str
    dicom: str
    view: str


def _images(folder: Path) -> tuple[dict[int, int], dict[int, _Frontal]]:
    """The patient of every study, and the first frontal image of those that have one."""
    table = _read(folder, "metadata", ["dicom_id", "subject_id", "study_id", "ViewPosition", "StudyDate", "StudyTime"])
    patients: dict[int, int] = {}
    first: dict[int, _Frontal] = {}
    columns = (table[name].to_pylist() for name in table.column_names)
    for dicom, subject, study, view, date, time in zip(*columns, strict=True):
        patients[study] = subject
        if view in FRONTAL:
            image = _Frontal(f"{date:08d}" if date is not None else "unknown", clock_time(time), dicom, view)
            if study not in first or image < first[study]:
                first[study] = image
    return patients, first


def clock_time(number: float | None) -> str:
    """`HHMMSS.fff` with the leading zeros that the release lost: 81534.5 is 081534.500. Letters sort after digits."""
    return f"{number:010.3f}" if number is not None else "unknown"


def _image_problem(path: Path | None) -> str | None:
    """What is wrong with a JPEG, from its length and its first and last bytes: decoding all takes hours.

    The picture is decoded, and checked in full, when it is rendered.
    """
    if path is None:
        return "no frontal image (AP or PA)"
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            start = file.read(3)
            file.seek(max(0, size - 1024))
            end = file.read()
    except FileNotFoundError:
        return f"the image {path} is missing"
    except OSError as error:
        return f"the image {path} is not readable: {error}"
    if size == 0:
        return f"the image {path} is empty"
    if start != b"\xff\xd8\xff":
        return f"the image {path} is not a JPEG"
    if not end.rstrip(b"\x00\r\n").endswith(b"\xff\xd9"):
        return f"the image {path} is truncated"
    return None


def _files(root: Path) -> Path:
    """The folder of pNN folders: `root/files`, or the root itself if that was given."""
    return root if not (root / "files").is_dir() and root.name == "files" else root / "files"


def _home(patient: int) -> Path:
    return Path(f"p{str(patient)[:2]}", f"p{patient}")


# -- tables ----------------------------------------------------------------------------------------------------------


def _labels(folder: Path) -> dict[int, tuple[int, Mapping[str, float | None]]]:
    """Patient and label values by study."""
    names = (*FINDINGS, "No Finding")
    table = _read(folder, "chexpert", ["subject_id", "study_id", *names])
    columns = [table[name].to_pylist() for name in table.column_names]
    return {row[1]: (row[0], dict(zip(names, row[2:], strict=True))) for row in zip(*columns, strict=True)}


def _named(values: Mapping[str, float | None]) -> tuple[dict[str, str], str | None, str | None]:
    """Labels in words (blank: absent), what No Finding says, and what is wrong with them."""
    unknown = [f"{name} {value:g}" for name, value in values.items() if value is not None and value not in LABELS]
    if unknown:
        return {}, None, f"labels other than 1, 0, -1 and blank: {', '.join(unknown)}"
    named = {name: LABELS[value] for name, value in values.items() if value is not None}
    no_finding = named.pop("No Finding", None)
    return named, no_finding, None


def _splits(folder: Path) -> dict[int, str]:
    table = _read(folder, "split", ["study_id", "split"])
    return dict(zip(table["study_id"].to_pylist(), table["split"].to_pylist(), strict=True))


def _read(folder: Path, name: str, columns: list[str]) -> pa.Table:
    """Columns of one of the release's CSVs, packed or not."""
    import pyarrow as pa
    from pyarrow import csv

    paths = [folder / f"{PREFIX}-{name}{ending}" for ending in (".csv.gz", ".csv")]
    path = next((one for one in paths if one.is_file()), None)
    if path is None:
        raise BadInput(f"{paths[0]}: no such file, nor {paths[1].name}; it belongs in the root of MIMIC-CXR-JPG")
    text = {"dicom_id", "ViewPosition", "split"}
    whole = {"subject_id", "study_id", "StudyDate"}
    types: dict[str, Any] = {
        column: pa.string() if column in text else pa.int64() if column in whole else pa.float64() for column in columns
    }
    try:
        table = csv.read_csv(path, convert_options=csv.ConvertOptions(column_types=types, include_columns=columns))
    except (pa.ArrowException, KeyError, OSError, EOFError) as error:
        raise BadInput(f"{path}: not the {name} table of MIMIC-CXR-JPG: {' '.join(str(error).split())}") from None
    for column in ("dicom_id", "subject_id", "study_id"):
        if column in columns and table[column].null_count:
            raise BadInput(f"{path}: {table[column].null_count} rows have no {column}")
    return table
