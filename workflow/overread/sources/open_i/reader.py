"""Open-I, the Indiana University chest X-rays (Demner-Fushman et al. 2016): XML reports and PNG.

    ecgen-radiology/1.xml            reports, here or one level down
    CXR1_1_IM-0001-3001.png          images: here, one level down, or in `section.images`
    a table of projections           not released with them: which image is frontal, `section.projections`

The reports name no patient, so each study is a cluster of its own. They do not say either which image is frontal, and
the first one listed often is not. Labels come from the MeSH terms of the indexers by `section.mesh`, or from a CSV.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from overread.config import FINDINGS
from overread.core.errors import BadInput
from overread.core.inputs import regular
from overread.core.records import Study
from overread.images.kinds import file_problem
from overread.sources.open_i.mesh import MeshLabels, read_mesh
from overread.sources.open_i.section import OpenI
from overread.sources.shared.image_files import radiograph_problem
from overread.sources.shared.labels import in_words
from overread.sources.shared.paths import DataRoot
from overread.sources.shared.remarks import Remarks
from overread.sources.shared.rows import read_rows

LARGEST_REPORT = 1_000_000
"""Bytes. The reports have about 6,000."""

_ENDING = re.compile(r"(\.dcm)?\.(png|jpe?g|dcm)$", re.IGNORECASE)
_ID = re.compile(r"CXR\d+")


@dataclass(frozen=True)
class Report:
    """What a report's file says."""

    study: str
    sections: dict[str, str]
    images: tuple[str, ...]
    major: tuple[str, ...]
    automatic: tuple[str, ...]


def read(dataset: str, section: OpenI, folder: Path, remarks: Remarks | None = None) -> list[Study]:
    """All studies, sorted by number, unusable ones with their `problem`.

    remarks  takes what is odd about files and rows
    raises   BadInput if there is no report, or a table that the section names is missing or can't be read
    """
    remarks = remarks if remarks is not None else Remarks()
    source = _Source(section, folder, remarks)
    studies = []
    for study, found in sorted(_reports(folder, source.root, remarks).items(), key=lambda item: int(item[0][3:])):
        report = found[0]
        image, no_image = source.frontal(report)
        labels, no_labels = source.labels_of(report)
        problems = {
            "studies without a frontal image that can be used": no_image,
            "studies without labels": no_labels,
            "studies without a report": None if report.sections else "the report has no findings and no impression",
            "studies with two reports": f"{len(found)} reports with this id; keep one" if len(found) > 1 else None,
        }
        for what, problem in problems.items():
            remarks.count(what, int(problem is not None))
        remarks.count("images listed", len(report.images))
        terms = {"MeSH major": report.major, "MeSH automatic": report.automatic}
        studies.append(
            Study(
                study=study,
                patient=study,
                dataset=dataset,
                modality="xray",
                images={"frontal": str(image)} if image is not None else {},
                report=report.sections,
                labels=labels,
                attributes={name: "; ".join(each) for name, each in terms.items() if each},
                restricted=section.restricted,
                problem="; ".join(problem for problem in problems.values() if problem is not None) or None,
            )
        )
    return studies


def image_key(name: str) -> str:
    """What the names of one image have in common: CXR1_1_IM-0001-3001, 1_IM-0001-3001.dcm.png -> 1_IM-0001-3001.

    The releases of the images differ in how they prefix the study's number and in the endings.
    """
    stem = _ENDING.sub("", name.strip().replace("\\", "/").rsplit("/", 1)[-1]).removeprefix("CXR")
    return re.sub(r"^(\d+)_\1_", r"\1_", stem)


class _Source:
    """Images, projections and labels, beside the reports."""

    def __init__(self, section: OpenI, folder: Path, remarks: Remarks) -> None:
        self.section = section
        self.root = DataRoot(folder, follow_links=section.follow_links)
        at = Path(section.images) if section.images is not None else folder
        self.images_at = DataRoot(at, follow_links=section.follow_links)
        self.files = _pngs(at, deeper=section.images is None)
        self.views = _projections(section, remarks)
        self.mesh: MeshLabels | None = read_mesh(Path(section.mesh_file)) if section.mesh_file is not None else None
        self.table = _labels(Path(section.labels), remarks) if section.labels is not None else None

    def frontal(self, report: Report) -> tuple[Path | None, str | None]:
        """The first image of the report that the projections call frontal, and why it can't be used, if so."""
        if not report.images:
            return None, "the report names no image"
        wanted = {value.lower() for value in self.section.frontal_values}
        key = next((key for key in map(image_key, report.images) if self.views.get(key) in wanted), None)
        if key is None:
            known = sum(image_key(name) in self.views for name in report.images)
            return None, f"no frontal image: {len(report.images)} images, {known} of them in the projections"
        paths = self.files.get(key, [])
        if len(paths) != 1:
            why = "missing" if not paths else f"there {len(paths)} times, {paths[0]} and {paths[1]}"
            return None, f"the image {key}: {why}"
        return paths[0], self.images_at.problem(paths[0]) or radiograph_problem(paths[0], ("PNG",))

    def labels_of(self, report: Report) -> tuple[dict[str, str], str | None]:
        if self.mesh is not None:
            return self.mesh.of(report.major if self.mesh.field == "major" else report.automatic)
        if self.table is not None:
            return self.table.get(report.study, ({}, "no labels"))
        return {}, None


# -- reports ---------------------------------------------------------------------------------------------------------


def _reports(folder: Path, root: DataRoot, remarks: Remarks) -> dict[str, list[Report]]:
    if not folder.is_dir():
        raise BadInput(f"{folder}: no such folder; name the one that holds ecgen-radiology")
    paths = sorted([*folder.glob("ecgen-radiology/*.xml"), *folder.glob("*/ecgen-radiology/*.xml")])
    found: dict[str, list[Report]] = {}
    for path in paths:
        report, problem = _report(path, root)
        if report is None:
            remarks.add(path, path.stem, f"{problem}: left out")
            remarks.count("files that are no report")
        else:
            found.setdefault(report.study, []).append(report)
    if not paths:
        raise BadInput(f"{folder}: no report; looked for ecgen-radiology/*.xml here and one level down")
    if not found:
        raise BadInput(
            f"{folder}: none of {len(paths)} files is a report; the first: {remarks.rows[-len(paths)].remark}"
        )
    return found


class _DocumentType(ValueError):
    """XML that brings a document type of its own."""


class _WithoutType(ElementTree.TreeBuilder):
    """Ends at a document type, in whatever encoding it is written: the entities of one can grow without bound."""

    def doctype(self, name: str, pubid: str | None, system: str | None) -> None:
        raise _DocumentType


def _report(path: Path, root: DataRoot) -> tuple[Report | None, str | None]:
    problem = root.problem(path) or file_problem(path)
    if problem is not None:
        return None, problem
    try:
        content = regular(path).read_bytes() if path.stat().st_size <= LARGEST_REPORT else b""
        if not content:
            return None, f"more than {LARGEST_REPORT} bytes are no report"
        tree = ElementTree.fromstring(content, ElementTree.XMLParser(target=_WithoutType()))
    except _DocumentType:
        return None, "XML with a document type of its own"
    except (ElementTree.ParseError, OSError, ValueError) as error:
        return None, f"not readable as XML ({error})"
    named = tree.find("uId")
    study = named.get("id", "") if named is not None else ""
    if _ID.fullmatch(study) is None:
        return None, f"its uId is {study!r}, which is not a valid id"
    sections = {}
    for part in tree.iter("AbstractText"):
        name, text = (part.get("Label") or "").lower(), " ".join("".join(part.itertext()).split())
        if name in ("findings", "impression") and text:
            sections[name] = text
    images = (image.get("id", "") for image in tree.iter("parentImage"))
    major, automatic = (
        tuple(" ".join((term.text or "").split()) for term in tree.iter(name) if (term.text or "").strip())
        for name in ("major", "automatic")
    )
    return Report(study, sections, tuple(name for name in images if name), major, automatic), None


# -- tables ----------------------------------------------------------------------------------------------------------


def _pngs(folder: Path, *, deeper: bool) -> Mapping[str, list[Path]]:
    found: dict[str, list[Path]] = {}
    for path in sorted([*folder.glob("*.png"), *(folder.glob("*/*.png") if deeper else ())]):
        found.setdefault(image_key(path.name), []).append(path)
    return found


def _projections(section: OpenI, remarks: Remarks) -> dict[str, str]:
    """What each image is called, in small letters. One that is called two things is called neither."""
    path, columns = Path(section.projections), section.projection_columns
    views: dict[str, str] = {}
    differ: set[str] = set()
    for row in read_rows(path, [columns.image, columns.view]):
        key, view = image_key(row.cells[columns.image]), row.cells[columns.view].lower()
        if row.problem is not None or not key or not view:
            remarks.add(path, key or row.place, f"{row.place}: {row.problem or 'no image or no view'}: left out")
        elif views.setdefault(key, view) != view:
            remarks.add(path, key, f"{row.place}: conflicting projections ({views[key]}, {view}): ignored")
            differ.add(key)
    if not views:
        raise BadInput(f"{path}: no row that says what an image shows")
    return {key: view for key, view in views.items() if key not in differ}


def _labels(path: Path, remarks: Remarks) -> dict[str, tuple[dict[str, str], str | None]]:
    """Labels by study from a CSV: CXR1 or 1 in `study`, and a column a finding."""
    found: dict[str, tuple[dict[str, str], str | None]] = {}
    for row in read_rows(path, ["study", *FINDINGS]):
        name = row.cells.pop("study")
        study = f"CXR{name.removeprefix('CXR')}"
        if row.problem is not None or _ID.fullmatch(study) is None:
            remarks.add(path, name or row.place, f"{row.place}: {row.problem or 'no id of a study'}: left out")
            continue
        labels = in_words(row.cells)
        if study in found and found[study] != labels:
            remarks.add(path, study, f"{row.place}: labelled twice, with labels that differ: none is used")
            labels = ({}, "labelled twice, with labels that differ")
        found[study] = labels
    if not found:
        raise BadInput(f"{path}: no row that can be used")
    return found
