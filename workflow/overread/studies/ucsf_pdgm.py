"""UCSF-PDGM (Calabrese et al. 2022): glioma MRI, and folders in its layout.

    UCSF-PDGM-v5/UCSF-PDGM-0004_nifti/UCSF-PDGM-0004_FLAIR.nii.gz    or without the folder UCSF-PDGM-v5
    UCSF-PDGM-metadata_v5.csv                                        here, one level down or where `metadata` says
    reports                                                          not released: a CSV or a folder of text files

Headers are read, voxels are not: what only they can tell is the images stage's to find. A study without a usable T1,
T1c, T2, FLAIR or tumour mask has a `problem`; another series that can't be used is left out, and an attribute
`unusable <series>` says why.
"""

from __future__ import annotations

import csv
import re
from pathlib import Path

from overread.config import Phantom, UcsfPdgm
from overread.errors import BadInput
from overread.images.volume import BadFile, read_header
from overread.records import Study
from overread.studies.phantom.marker import is_semi_synthetic
from overread.studies.reports import read_reports
from overread.studies.sections import Sections

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

FORMER_IDS = {
    "0289": "0391", "0175": "0396", "0181": "0409", "0138": "0429", "0278": "0431", "0315": "0433",
}  # fmt: skip
"""Follow-up scans that the older releases number like patients of their own, and whose they are."""

_ID = re.compile(r"UCSF-PDGM-(\d{1,4})(_FU\d+d)?")
_SCANS = re.compile(_ID.pattern + r"_nifti")
_FILE = re.compile(_ID.pattern + r"_(?P<series>\w+)\.nii(\.gz)?")


def read(dataset: str, section: UcsfPdgm | Phantom, folder: Path) -> list[Study]:
    """All studies under `folder`, sorted, unusable ones with their `problem`.

    raises  BadInput if there is no study, or a table or a folder that the section names is missing or not readable
    """
    made = is_semi_synthetic(folder)
    truth = _truth(folder) if made else {}
    rows = _metadata(_metadata_path(section, folder))
    reports_at = Path(section.reports) if isinstance(section, UcsfPdgm) and section.reports else folder / "reports"
    named = isinstance(section, UcsfPdgm) and section.reports is not None
    reports = read_reports(reports_at, whole_id) if named or reports_at.exists() else {}
    mask_needed = not isinstance(section, UcsfPdgm) or section.segmentation == "provided"
    studies = []
    for study, scans in sorted(_folders(folder).items()):
        images, unusable = _images(scans)
        needed = (*NEEDED, "tumor_segmentation") if mask_needed else NEEDED
        problems = [unusable.get(name, f"{name}: missing") for name in needed if name not in images]
        labels, facts = truth.get(study, ({}, {}))
        if made and not labels:
            problems.append("truth.csv: no row for this study")
        attributes = {**rows.get(study, {}), **facts}
        attributes |= {f"unusable {name}": why for name, why in unusable.items()}
        report = reports.get(study, Sections())
        attributes |= {"unusable report": report.problem} if report.problem else {}
        studies.append(
            Study(
                study=study,
                patient=_patient(study, made),
                dataset=dataset,
                modality="mri",
                images={name: str(path) for name, path in images.items()},
                report=report.report,
                labels=labels,
                attributes=attributes,
                restricted=section.restricted,
                semi_synthetic=made,
                problem="; ".join(problems) or None,
            )
        )
    return studies


def whole_id(text: str) -> str | None:
    """`UCSF-PDGM-0004` of `UCSF-PDGM-004`, with `_FU016d` if that follows; None for what is no id."""
    found = _ID.fullmatch(text.strip())
    return f"UCSF-PDGM-{int(found[1]):04d}{found[2] or ''}" if found else None


def _patient(study: str, made: bool) -> str:
    """The base patient of a scan. Made studies are numbered from 1 and know no former ids."""
    base = study.split("_FU", maxsplit=1)[0]
    number = base.removeprefix("UCSF-PDGM-")
    return base if made else f"UCSF-PDGM-{FORMER_IDS.get(number, number)}"


def _folders(folder: Path) -> dict[str, Path]:
    """Scan folders by study id, directly in `folder` or one level down."""
    if not folder.is_dir():
        raise BadInput(f"{folder}: no such folder; name the one that holds UCSF-PDGM-v5")
    found: dict[str, Path] = {}
    for path in sorted([*folder.glob("*_nifti"), *folder.glob("*/*_nifti")]):
        matched = _SCANS.fullmatch(path.name)
        if matched is None or not path.is_dir():
            continue
        study = f"UCSF-PDGM-{int(matched[1]):04d}{matched[2] or ''}"
        if study in found:
            raise BadInput(
                f"{path}: study {study} is there twice, also as {found[study]}; keep one release in the folder"
            )
        found[study] = path
    if not found:
        raise BadInput(f"{folder}: no study; looked for folders like UCSF-PDGM-0004_nifti here and one level down")
    return found


def _images(scans: Path) -> tuple[dict[str, Path], dict[str, str]]:
    """Files by series that can be used as far as their headers tell, and why others can't."""
    images: dict[str, Path] = {}
    unusable: dict[str, str] = {}
    for path in sorted(scans.iterdir()):
        matched = _FILE.fullmatch(path.name)
        series = matched["series"] if matched else None
        if series not in SERIES:
            continue
        try:
            shape = read_header(path).shape
            if series not in OTHER_GRID and shape != GRID:
                raise BadFile(f"{path.name}: wrong shape {_times(shape)}; on this data set's grid it is {_times(GRID)}")
            images[series] = path
        except BadFile as error:
            unusable[series] = str(error)
    for series in images:
        unusable.pop(series, None)
    return images, unusable


def _times(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape))


def _metadata_path(section: UcsfPdgm | Phantom, folder: Path) -> Path | None:
    if isinstance(section, UcsfPdgm) and section.metadata is not None:
        return Path(section.metadata)
    return next(
        iter(sorted([*folder.glob("UCSF-PDGM-metadata*.csv"), *folder.glob("*/UCSF-PDGM-metadata*.csv")])), None
    )


def _metadata(path: Path | None) -> dict[str, dict[str, str]]:
    """What the table says by study; blank and "unknown" both mean that it says nothing."""
    if path is None:
        return {}
    rows: dict[str, dict[str, str]] = {}
    for row in _read_csv(path, "ID"):
        study = whole_id(row.pop("ID"))
        if study is None:
            continue
        if study in rows:
            raise BadInput(f"{path}: {study} has two rows; keep one")
        rows[study] = {
            name: value.strip() for name, value in row.items() if value.strip().lower() not in ("", "unknown")
        }
    return rows


def _truth(folder: Path) -> dict[str, tuple[dict[str, str], dict[str, str]]]:
    """Labels and planted facts by study of a semi-synthetic folder."""
    path = folder / "truth.csv"
    if not path.is_file():
        raise BadInput(f"{path}: missing: the semi-synthetic data set was not finished; make it again")
    truth = {}
    for row in _read_csv(path, "study"):
        study = row.pop("study")
        row.pop("patient", None)
        facts = {name: value for name, value in row.items() if name.startswith("fact_")}
        truth[study] = ({name: value for name, value in row.items() if name not in facts}, facts)
    return truth


def _read_csv(path: Path, key: str) -> list[dict[str, str]]:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            table = csv.DictReader(file, restkey="", restval="")
            if key not in (table.fieldnames or ()):
                raise BadInput(f"{path}: no column {key!r}; there are: {', '.join(table.fieldnames or ()) or 'none'}")
            return [{name: value for name, value in row.items() if name} for row in table]
    except FileNotFoundError:
        raise BadInput(f"{path}: no such file") from None
    except (UnicodeDecodeError, csv.Error, OSError) as error:
        raise BadInput(f"{path}: not readable as CSV ({error})") from None
