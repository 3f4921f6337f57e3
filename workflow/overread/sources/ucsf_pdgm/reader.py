"""UCSF-PDGM (Calabrese et al. 2022): glioma MRI, and folders in its layout.

    UCSF-PDGM-v5/UCSF-PDGM-0004_nifti/UCSF-PDGM-0004_FLAIR.nii.gz    or without the folder UCSF-PDGM-v5
    UCSF-PDGM-metadata_v5.csv                                        here, one level down or where `metadata` says
    reports                                                          not released: a CSV or a folder of text files

Headers are read, voxels are not: what only they can tell is the images stage's to find. A study without a usable T1,
T1c, T2, FLAIR or tumour mask has a `problem`; another series that can't be used is left out, and an attribute
`unusable <series>` says why.

A follow-up scan has an id of its own in older releases. Rows and reports under either id belong to it, and where both
lie in the folder the older one is not counted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from overread.core.errors import BadInput
from overread.core.records import Geometry, Study
from overread.images.volume import BadFile, read_header
from overread.sources.shared.marker import is_semi_synthetic
from overread.sources.shared.paths import DataRoot
from overread.sources.shared.remarks import Remarks
from overread.sources.shared.reports import read_reports
from overread.sources.shared.rows import read_rows
from overread.sources.shared.sections import Sections
from overread.sources.ucsf_pdgm.section import UcsfPdgm

GRID = (240, 240, 155)

SERIES = (
    "T1", "T1_bias", "T1c", "T1c_bias", "T2", "T2_bias", "FLAIR", "FLAIR_bias", "DWI", "DWI_bias", "SWI", "SWI_bias",
    "ADC", "ASL", "ASL_M0", "DTI_eddy_FA", "DTI_eddy_MD", "DTI_eddy_L1", "DTI_eddy_L2", "DTI_eddy_L3", "DTI_eddy_noreg",
    "brain_segmentation", "brain_parenchyma_segmentation", "tumor_segmentation",
)  # fmt: skip
"""The 23 of every study, and ASL_M0 of the follow-up scans."""

OTHER_GRID = frozenset({"DTI_eddy_noreg", "ASL_M0"})
"""On the scanner's own grid: their shape is not checked."""

NEEDED = ("T1", "T1c", "T2", "FLAIR")

FOLLOW_UPS = {
    "UCSF-PDGM-0289": "UCSF-PDGM-0391_FU016d", "UCSF-PDGM-0175": "UCSF-PDGM-0396_FU175d",
    "UCSF-PDGM-0181": "UCSF-PDGM-0409_FU001d", "UCSF-PDGM-0138": "UCSF-PDGM-0429_FU003d",
    "UCSF-PDGM-0278": "UCSF-PDGM-0431_FU001d", "UCSF-PDGM-0315": "UCSF-PDGM-0433_FU007d",
}  # fmt: skip
"""Follow-up scans that the older releases number like patients of their own, and what they are called now."""

USUAL = {
    "Sex": r"[MF]",
    "Age at MRI": r"\d{1,3}(\.\d+)?",
    "WHO CNS Grade": r"[1-4]",
    "1-dead 0-alive": r"[01](\.0)?",
    "OS": r"\d+(\.\d+)?",
}
"""Metadata whose form is certain. Another value is kept as it stands, and gets a remark."""

Named = Callable[[str], str | None]
"""The study that a cell or a file's name stands for; None for what is no id."""

_ID = re.compile(r"UCSF-PDGM-(\d{1,4})(?:_FU(\d{1,3})d)?")
_SCANS = re.compile(r"(?P<id>.+)_nifti")
_FILE = re.compile(rf"(?P<id>.+?)_(?P<series>{'|'.join(sorted(SERIES, key=len, reverse=True))})\.nii(\.gz)?")


def read(dataset: str, section: UcsfPdgm, folder: Path, remarks: Remarks | None = None) -> list[Study]:
    """All studies under `folder`, sorted, unusable ones with their `problem`.

    remarks  takes what is odd about files and rows
    raises   BadInput if there is no study, or a table or a folder that the section names is missing or not readable
    """
    remarks = remarks if remarks is not None else Remarks()
    made = is_semi_synthetic(folder)
    truth = _truth(folder) if made else {}
    # Made studies are numbered from 1 and know no former ids.
    named = whole_id if made else _now
    rows = _metadata(_metadata_path(section, folder), named, remarks)
    reports = _reports(section, folder, named, remarks)
    mask_needed = section.segmentation.method == "provided"
    needed = (*NEEDED, "tumor_segmentation") if mask_needed else NEEDED
    root = DataRoot(folder, follow_links=section.follow_links)
    found = _folders(folder, remarks)
    studies = []
    for study, places in sorted(found.items()):
        now = study if made else current_id(study)
        images, unusable = _images(study, places[0], root, remarks, section.geometry)
        problems = [unusable.get(name, f"{name}: missing") for name in needed if name not in images]
        if len(places) > 1:
            problems = [f"there twice: {' and '.join(map(str, places))}; keep one release in the folder"]
        if now != study and now in found:
            problems = [f"the same scan as {now}, under the id of older releases: not counted twice"]
        labels, facts = truth.get(study, ({}, {}))
        if made and not labels:
            problems.append("truth.csv: no row for this study")
        attributes = {**rows.get(now, {}), **facts}
        attributes |= {f"unusable {name}": why for name, why in unusable.items()}
        attributes |= {"current id": now} if now != study else {}
        report = reports.get(now, Sections())
        attributes |= {"unusable report": report.problem} if report.problem else {}
        studies.append(
            Study(
                study=study,
                patient=now.split("_FU", maxsplit=1)[0],
                dataset=dataset,
                modality="mri",
                images={name: str(path) for name, path in images.items()},
                report=report.report,
                labels=labels,
                attributes=attributes,
                reading=section.reading,
                restricted=section.restricted,
                semi_synthetic=made,
                problem="; ".join(problems) or None,
            )
        )
    _count(studies, rows, reports, remarks)
    return studies


def whole_id(text: str) -> str | None:
    """`UCSF-PDGM-0004` of `UCSF-PDGM-004`, with `_FU016d` if that follows; None for what is no id."""
    found = _ID.fullmatch(text.strip())
    if found is None or not text.isascii():
        return None
    return f"UCSF-PDGM-{int(found[1]):04d}" + (f"_FU{int(found[2]):03d}d" if found[2] else "")


def current_id(study: str) -> str:
    """The id of this release: a follow-up scan's is its base patient's with the days that passed."""
    return FOLLOW_UPS.get(study, study)


def _now(text: str) -> str | None:
    """The current id that a cell or a file's name stands for."""
    study = whole_id(text)
    return current_id(study) if study is not None else None


# -- scans -----------------------------------------------------------------------------------------------------------


def _folders(folder: Path, remarks: Remarks) -> dict[str, list[Path]]:
    """Scan folders by study id, directly in `folder` or one level down."""
    if not folder.is_dir():
        raise BadInput(f"{folder}: no such folder; name the one that holds UCSF-PDGM-v5")
    found: dict[str, list[Path]] = {}
    for path in sorted([*folder.glob("*_nifti"), *folder.glob("*/*_nifti")]):
        matched = _SCANS.fullmatch(path.name)
        study = whole_id(matched["id"]) if matched else None
        if study is not None and path.is_dir():
            found.setdefault(study, []).append(path)
        else:
            remarks.add(
                path, path.name, "no folder of a study: its name is not a valid id" if study is None else "no folder"
            )
    if not found:
        raise BadInput(f"{folder}: no study; looked for folders like UCSF-PDGM-0004_nifti here and one level down")
    return found


def _images(
    study: str, scans: Path, root: DataRoot, remarks: Remarks, geometry: Geometry
) -> tuple[dict[str, Path], dict[str, str]]:
    """Files by series that can be used as far as their headers tell, and why others can't."""
    files: dict[str, list[Path]] = {}
    for path in sorted(scans.iterdir()):
        matched = _FILE.fullmatch(path.name)
        if matched is not None:
            files.setdefault(matched["series"], []).append(path)
        elif path.name.endswith((".nii", ".nii.gz")):
            remarks.add(path, study, "no series of this data set: left out")
    images: dict[str, Path] = {}
    unusable: dict[str, str] = {}
    for series, paths in files.items():
        try:
            images[series] = _usable(study, series, paths, root, geometry)
        except BadFile as error:
            unusable[series] = str(error)
            remarks.add(paths[0], study, str(error))
    return images, unusable


def _usable(study: str, series: str, paths: list[Path], root: DataRoot, geometry: Geometry) -> Path:
    path = paths[0]
    if len(paths) > 1:
        raise BadFile(f"{series}: two files: {', '.join(one.name for one in paths)}; keep one")
    matched = _FILE.fullmatch(path.name)
    if matched is None or _now(matched["id"]) != current_id(study):
        raise BadFile(f"{path.name}: another study's name")
    problem = root.problem(path)
    if problem is not None:
        raise BadFile(problem)
    if path.exists() and not path.is_file():  # a pipe would never end
        raise BadFile(f"{path.name}: not a regular file")
    shape = read_header(path, geometry).shape
    if series not in OTHER_GRID and shape != GRID:
        raise BadFile(f"{path.name}: wrong shape {_times(shape)}; on this data set's grid it is {_times(GRID)}")
    return path


def _times(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape))


# -- tables ----------------------------------------------------------------------------------------------------------


def _metadata_path(section: UcsfPdgm, folder: Path) -> Path | None:
    if section.metadata is not None:
        return Path(section.metadata)
    found = sorted([*folder.glob("UCSF-PDGM-metadata*.csv"), *folder.glob("*/UCSF-PDGM-metadata*.csv")])
    if len(found) > 1:
        raise BadInput(f"{folder}: {len(found)} tables of metadata: {', '.join(map(str, found))}; name one (metadata)")
    return found[0] if found else None


def _metadata(path: Path | None, named: Named, remarks: Remarks) -> dict[str, dict[str, str]]:
    """What the table says by current id; blank and "unknown" both mean that it says nothing."""
    if path is None:
        return {}
    rows: dict[str, dict[str, str]] = {}
    for row in read_rows(path, ["ID"], None):
        name = row.cells.pop("ID")
        study = named(name)
        if study is None or row.problem is not None:
            remarks.add(path, name or row.place, f"{row.place}: {row.problem or 'no id of a study'}: left out")
            continue
        facts = {column: value for column, value in row.cells.items() if value.lower() not in ("", "unknown")}
        for column, usual in USUAL.items():
            if column in facts and re.fullmatch(usual, facts[column]) is None:
                remarks.add(path, name, f"{row.place}: {column} is {facts[column]!r}: kept as it stands")
        if study not in rows:
            rows[study] = facts
        elif rows[study] == facts:
            remarks.add(path, name, f"{row.place}: {study} is there twice, with the same facts: counted once")
        else:
            remarks.add(path, name, f"{row.place}: {study} has rows that differ: none of them is used")
            rows[study] = {"unusable metadata": f"{path.name}: rows that differ; keep one"}
    return rows


def _reports(section: UcsfPdgm, folder: Path, named: Named, remarks: Remarks) -> dict[str, Sections]:
    if section.reports is not None:
        path, links = Path(section.reports), section.follow_links
        return read_reports(path, named, remarks, section.report_columns, follow_links=links)
    path = folder / "reports"
    return read_reports(path, named, remarks) if path.exists() else {}


def _truth(folder: Path) -> dict[str, tuple[dict[str, str], dict[str, str]]]:
    """Labels and planted facts by study of a semi-synthetic folder."""
    path = folder / "truth.csv"
    if not path.is_file():
        raise BadInput(f"{path}: missing: the semi-synthetic data set was not finished; make it again")
    truth = {}
    for row in read_rows(path, ["study"], None):
        study = row.cells.pop("study")
        row.cells.pop("patient", None)
        facts = {name: value for name, value in row.cells.items() if name.startswith("fact_")}
        truth[study] = ({name: value for name, value in row.cells.items() if name not in facts}, facts)
    return truth


def _count(studies: list[Study], rows: Mapping[str, object], reports: Mapping[str, Sections], remarks: Remarks) -> None:
    there = {study.attributes.get("current id", study.study) for study in studies}
    remarks.count("rows of metadata", len(rows))
    remarks.count("rows of metadata without scans", len(set(rows) - there))
    remarks.count("reports", len(reports))
    remarks.count("reports without scans", len(set(reports) - there))
    usable = [study for study in studies if study.problem is None]
    remarks.count("usable studies without a report", sum(not study.report for study in usable))
    remarks.count(
        "usable studies in the training data of BraTS 2021", sum("BraTS21 ID" in s.attributes for s in usable)
    )
