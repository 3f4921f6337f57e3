"""MIMIC-CXR-JPG with the reports of MIMIC-CXR (Johnson et al. 2019), and folders in their layout.

    mimic-cxr-2.0.0-{metadata,split,chexpert}.csv.gz        or unpacked, .csv; negbio in place of chexpert
    files/p10/p10000032/s50414267/<dicom_id>.jpg            images
    files/p10/p10000032/s50414267.txt                       reports, here or under `section.reports`

A study has one image: the first frontal one (AP or PA) by date and time, unless the config says otherwise. What makes
a study unusable is said in its `problem`; the others go on.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from overread.core.errors import BadInput
from overread.core.records import Study
from overread.sources.mimic_cxr.section import MimicCxr
from overread.sources.mimic_cxr.tables import Image, Labelled, Metadata, read_labels, read_metadata, read_splits
from overread.sources.shared.frontal_choice import frontal_image
from overread.sources.shared.image_files import radiograph_problem
from overread.sources.shared.marker import is_semi_synthetic
from overread.sources.shared.paths import DataRoot
from overread.sources.shared.remarks import Remarks
from overread.sources.shared.reports import read_text

LATERAL = ("LATERAL", "LL")
"""For the counts. Views from the side in other positions (XTABLE LATERAL, RAO, ...) count as others."""


def read(dataset: str, rules: MimicCxr, folder: Path, remarks: Remarks | None = None) -> list[Study]:
    """All studies of the wanted split, sorted by patient and study, unusable ones with their `problem`.

    remarks  takes what is odd about rows, and the counts of images and studies at each step
    raises   BadInput if a CSV is missing or has other columns, or if nothing is left
    """
    remarks = remarks if remarks is not None else Remarks()
    wanted = rules.split
    release = _Release(
        images=DataRoot(folder, follow_links=rules.follow_links),
        reports=DataRoot(Path(rules.reports) if rules.reports else folder, follow_links=rules.follow_links),
        metadata=read_metadata(folder, remarks),
        labels=read_labels(folder, rules.labels, remarks),
        splits=read_splits(folder, remarks) if wanted is not None else {},
    )
    planted = is_semi_synthetic(folder)
    studies = [
        Study(dataset=dataset, semi_synthetic=planted, **release.study(study, patient, rules, remarks))
        for study, patient in release.patients()
        if wanted is None or wanted in release.splits.get(study, ())
    ]
    if not studies:
        raise BadInput(f"{folder}: no study" + (f" of the split {wanted!r}" if wanted is not None else ""))
    return studies


@dataclass(frozen=True)
class _Release:
    """Where images and reports lie, and what the tables say."""

    images: DataRoot
    reports: DataRoot
    metadata: Metadata
    labels: dict[int, Labelled]
    splits: dict[int, set[str]]

    def patients(self) -> list[tuple[int, int]]:
        """Study and patient, sorted by patient; also of studies that are labelled and have no image."""
        found = {study: labelled.patient for study, labelled in self.labels.items()} | self.metadata.patients
        return sorted(found.items(), key=lambda item: (item[1], item[0]))

    def study(self, study: int, patient: int, rules: MimicCxr, remarks: Remarks) -> dict[str, Any]:
        """What a `Study` says of itself, and its part of the counts."""
        images = self.metadata.images.get(study, [])
        image = frontal_image(images, rules.frontal)
        home = Path(f"p{str(patient)[:2]}", f"p{patient}", f"s{study}")
        path = _files(self.images.folder) / home / f"{image.dicom}.jpg" if image is not None else None
        report, no_report = _report((_files(self.reports.folder) / home).with_suffix(".txt"), self.reports)
        labelled = self.labels.get(study, Labelled(patient, {}, problem="no labels"))
        problems = {
            "studies without a frontal image": None
            if image
            else f"no frontal image ({' or '.join(rules.frontal.views)})",
            "studies whose frontal image can't be read": self._unreadable(path),
            "studies without labels that can be used": _unlabelled(labelled, patient),
            "studies without a report": no_report,
            "studies with two patients or splits": self.metadata.problems.get(study) or self._two_splits(study),
        }
        _count_images(images, remarks)
        for what, problem in problems.items():
            remarks.count(what, int(problem is not None))
        return {
            "study": f"s{study}",
            "patient": f"p{patient}",
            "modality": "xray",
            "images": {"frontal": str(path)} if path is not None else {},
            "report": report,
            "labels": labelled.findings,
            "attributes": _attributes(image, labelled, self.splits.get(study, set())),
            "restricted": rules.restricted,
            "problem": "; ".join(problem for problem in problems.values() if problem is not None) or None,
        }

    def _unreadable(self, path: Path | None) -> str | None:
        return None if path is None else self.images.problem(path) or radiograph_problem(path, ("JPEG",))

    def _two_splits(self, study: int) -> str | None:
        splits = sorted(self.splits.get(study, ()))
        return f"its images are in several splits: {', '.join(splits)}" if len(splits) > 1 else None


def _unlabelled(labelled: Labelled, patient: int) -> str | None:
    if labelled.patient != patient:
        return f"labelled under another patient, p{labelled.patient}"
    return labelled.problem


def _attributes(image: Image | None, labelled: Labelled, splits: set[str]) -> dict[str, str]:
    attributes = {"split": ", ".join(sorted(splits))} if splits else {}
    if labelled.no_finding is not None:
        attributes["No Finding"] = labelled.no_finding
    if image is not None:
        attributes |= {
            "dicom_id": image.dicom,
            "ViewPosition": image.view,
            "StudyDate": image.date,
            "StudyTime": image.clock,
        }
    return attributes


def _count_images(images: Sequence[Image], remarks: Remarks) -> None:
    remarks.count("images listed", len(images))
    remarks.count("frontal images (AP, PA)", sum(image.view in ("AP", "PA") for image in images))
    remarks.count("lateral images (LATERAL, LL)", sum(image.view in LATERAL for image in images))
    remarks.count("other images", sum(image.view not in ("AP", "PA", *LATERAL) for image in images))


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


def _report(path: Path, root: DataRoot) -> tuple[dict[str, str], str | None]:
    text, problem = read_text(path, root)
    if problem is not None:
        return {}, f"no report: {problem}"
    report = sections(text)
    return report, None if report else f"the report {path} is empty"


# -- files -----------------------------------------------------------------------------------------------------------


def _files(root: Path) -> Path:
    """The folder of pNN folders: `root/files`, or the root itself if that was given."""
    return root if not (root / "files").is_dir() and root.name == "files" else root / "files"
