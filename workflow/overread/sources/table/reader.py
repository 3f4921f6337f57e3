"""The user's own data: a CSV or Parquet file with a row a study.

    study,patient,findings,impression,frontal,Edema         columns are named in the config
    e1,p1,Clear lungs.,Normal.,images/e1.png,0

Paths start from the table's folder, or from `section.root`, and may not leave it. An image is a JPEG, PNG or DICOM
file; an MRI series is a NIfTI file, a folder of DICOM slices or a multi-frame DICOM file. An X-ray without a frontal
image that can be used has a `problem`; an MRI series that can't be used is left out, and an attribute
`unusable <series>` says why. Columns that the config does not name are attributes.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

from overread.config import FINDINGS
from overread.core.errors import BadInput
from overread.core.records import Modality, Study
from overread.images.dicom import files_in
from overread.images.dicom_series import is_series, series_of
from overread.images.header import BadFile
from overread.images.volume import read_header
from overread.sources.shared.blank import filled, says_nothing
from overread.sources.shared.image_files import radiograph_problem
from overread.sources.shared.labels import in_words
from overread.sources.shared.paths import DataRoot
from overread.sources.shared.remarks import Remarks
from overread.sources.shared.rows import Row, read_rows
from overread.sources.shared.sections import Sections, find_sections
from overread.sources.table.section import Table

MODALITIES: tuple[str, ...] = get_args(Modality)

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
"""Studies name folders of results."""


def read(dataset: str, section: Table, folder: Path, remarks: Remarks | None = None) -> list[Study]:
    """All studies of the table at `folder`, in its order, unusable ones with their `problem`.

    folder   the table, which is a file
    remarks  takes what is odd about rows
    raises   BadInput if the table is missing, can't be read or lacks a column, or if nothing is left
    """
    remarks = remarks if remarks is not None else Remarks()
    rows = _rows(section, folder, remarks)
    if not rows:
        raise BadInput(f"{folder}: no row of a study of modality {section.modality}")
    root = DataRoot(Path(section.root) if section.root else folder.parent, follow_links=section.follow_links)
    return [_study(dataset, section, study, found, root, remarks) for study, found in rows.items()]


def _rows(section: Table, path: Path, remarks: Remarks) -> dict[str, list[Row]]:
    """The rows by study: one each, unless the table says different things of a study."""
    columns = section.columns
    named = [columns.study, columns.patient, columns.modality, columns.report, columns.findings, columns.impression]
    needed = [name for name in (*named, *section.images.values(), *section.labels.values()) if name is not None]
    found: dict[str, list[Row]] = {}
    for row in read_rows(path, dict.fromkeys(needed), None):
        study = filled(row.cells[columns.study], free_text=True)
        modality = row.cells[columns.modality].lower() if columns.modality is not None else section.modality
        why = row.problem
        if why is None and _ID.fullmatch(study) is None:
            why = f"{study!r} is not a valid id of a study: letters, digits, dot, hyphen and underscore, at most 100"
        if why is None and modality not in MODALITIES:
            why = f"the modality is {modality!r}; there are: {', '.join(MODALITIES)}"
        if why is not None:
            remarks.add(path, study or row.place, f"{row.place}: {why}: left out")
            remarks.count("rows left out")
        elif modality != section.modality:
            remarks.count("rows of the other modality")
        elif study not in found:
            found[study] = [row]
        elif any(row.cells == one.cells for one in found[study]):
            remarks.add(path, study, f"{row.place}: the same row as before: counted once")
        else:
            remarks.add(path, study, f"{row.place}: another row of this study, which differs")
            found[study].append(row)
    return found


def _study(dataset: str, section: Table, study: str, rows: list[Row], root: DataRoot, remarks: Remarks) -> Study:
    row = rows[0]
    images, unusable = _images(section, row, root)
    labels, bad_labels = _labels(section, row)
    sections = _sections(section, row)
    patient = filled(row.cells[section.columns.patient])
    if says_nothing(row.cells[section.columns.patient]):
        remarks.count("patients given as nan, NA, null or the like")
    places = ", ".join(str(one.number) for one in rows)
    no_image = None
    if section.modality == "xray" and "frontal" not in images:
        no_image = unusable.get("frontal", "no frontal image: the cell is blank")
    elif not images:
        no_image = "; ".join(unusable.values()) or "no image: all cells are blank"
    problems = {
        "studies with rows that differ": f"rows {places} say different things; keep one" if len(rows) > 1 else None,
        "studies without a patient": None if patient else "no patient",
        "studies without an image that can be used": no_image,
        "studies with labels that can't be used": bad_labels,
    }
    for what, problem in problems.items():
        remarks.count(what, int(problem is not None))
    remarks.count("studies without a report", int(not sections.report))
    remarks.count("studies without any label", int(not labels))
    attributes = {name: value for name, value in row.cells.items() if value and name not in _named(section)}
    attributes |= {f"unusable {name}": why for name, why in unusable.items()}
    attributes |= {"unusable report": sections.problem} if sections.problem else {}
    return Study(
        study=study,
        patient=patient or f"unknown patient of {study}",
        dataset=dataset,
        modality=section.modality,
        images={name: str(path) for name, path in images.items()},
        report=sections.report,
        labels=labels,
        attributes=attributes,
        reading=section.reading,
        restricted=section.restricted,
        problem="; ".join(problem for problem in problems.values() if problem is not None) or None,
    )


def _named(section: Table) -> set[str]:
    columns = section.columns
    others = {columns.study, columns.patient, columns.modality, columns.report, columns.findings, columns.impression}
    return {*section.images.values(), *section.labels.values(), *(name for name in others if name is not None)}


def _images(section: Table, row: Row, root: DataRoot) -> tuple[dict[str, Path], dict[str, str]]:
    """Paths by series that can be used as far as headers tell, and why others can't. A blank cell is no image."""
    images: dict[str, Path] = {}
    unusable: dict[str, str] = {}
    for name, column in section.images.items():
        if not filled(row.cells[column]):
            continue
        path, problem = root.locate(row.cells[column])
        if path is not None and problem is None:
            problem = _problem(path, section, root)
        if problem is not None:
            unusable[name] = problem
        elif path is not None:
            images[name] = path
    return images, unusable


def _problem(path: Path, section: Table, root: DataRoot) -> str | None:
    if path.is_dir():
        try:
            files = files_in(path)
        except BadFile as error:
            return str(error)
        for inside in files:
            if (problem := root.problem(inside)) is not None:
                return problem
    elif section.modality == "xray":
        return radiograph_problem(path)
    try:
        if section.modality == "mri" and not is_series(path):
            read_header(path, section.geometry)
        elif section.modality == "mri":
            series_of(path)
    except (BadFile, OSError) as error:
        return str(error)
    return None


def _labels(section: Table, row: Row) -> tuple[dict[str, str], str | None]:
    """Of X-rays the findings, in words; of all else the cell's text."""
    cells = {topic: row.cells[column] for topic, column in section.labels.items()}
    findings = {topic: text for topic, text in cells.items() if section.modality == "xray" and topic in FINDINGS}
    labels, problem = in_words(findings)
    others = {topic: filled(text, free_text=True) for topic, text in cells.items() if topic not in findings}
    return labels | {topic: text for topic, text in others.items() if text}, problem


def _sections(section: Table, row: Row) -> Sections:
    """The report as far as the config names its columns, line breaks gone."""
    columns = section.columns
    if columns.report is not None:
        report = filled(row.cells[columns.report], free_text=True)
        found = find_sections(report)
        blank = "the report is blank" if not report else None
        return Sections(_flat(found.findings), _flat(found.impression), blank or found.problem)
    parts = {"findings": columns.findings, "impression": columns.impression}
    texts = {name: row.cells[column] for name, column in parts.items() if column is not None}
    return Sections(**{name: _flat(filled(text, free_text=True)) for name, text in texts.items()})


def _flat(text: str) -> str:
    return " ".join(text.split())
