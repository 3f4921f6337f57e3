"""CheXpert Plus (Chambon et al. 2024): chest X-rays with their reports.

    df_chexpert_plus_240401.csv                             a row an image, with the report of its study
    train/patient00001/study1/view1_frontal.jpg             images: here or in `section.images`; or .png in their place
    labels                                                  a table of their own: `section.labels`

A study is a folder of images, and its patient is the one that the table names. Where rows of one study say different
things, none of them is believed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from overread.config import FINDINGS
from overread.core.errors import BadInput
from overread.core.inputs import regular
from overread.core.records import Study
from overread.sources.chexpert_plus.section import ChexpertPlus
from overread.sources.shared.frontal_choice import frontal_image
from overread.sources.shared.image_files import radiograph_problem
from overread.sources.shared.labels import in_words
from overread.sources.shared.paths import DataRoot
from overread.sources.shared.remarks import Remarks
from overread.sources.shared.rows import read_rows

COLUMNS = (
    "path_to_image", "frontal_lateral", "ap_pa", "deid_patient_id", "patient_report_date_order", "split",
    "section_findings", "section_impression",
)  # fmt: skip

_PATH = re.compile(r"(?:\w[\w.-]*/)*(?P<patient>patient\d+)/(?P<study>study\d+)/view(?P<view>\d+)_\w+\.\w+")

Labels = tuple[dict[str, str], str | None]


@dataclass(frozen=True, order=True)
class View:
    """One image. The table tells no time: the order is that of the views' numbers."""

    number: int
    path: str
    view: str

    @property
    def timed(self) -> bool:
        return True


@dataclass
class _Study:
    """The rows of one study."""

    patient: str
    split: str
    order: str
    report: dict[str, str]
    views: list[View] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    contradictions: list[str] = field(default_factory=list)


def read(dataset: str, section: ChexpertPlus, folder: Path, remarks: Remarks | None = None) -> list[Study]:
    """All studies of the wanted split, sorted by id, unusable ones with their `problem`.

    remarks  takes what is odd about rows, and the counts of images and studies
    raises   BadInput if the table is missing or has other columns, or if nothing is left
    """
    remarks = remarks if remarks is not None else Remarks()
    table = _table(folder)
    found, splits = _studies(table, section.split, remarks)
    if not found:
        there = f"; there are: {', '.join(sorted(splits))}" if splits else ""
        raise BadInput(f"{table}: no study" + (f" of the split {section.split!r}{there}" if section.split else ""))
    labels = _labels(Path(section.labels), remarks) if section.labels is not None else None
    images = Path(section.images) if section.images is not None else folder
    root = DataRoot(images, follow_links=section.follow_links)
    studies = []
    for name, study in sorted(found.items()):
        view = frontal_image(study.views, section.frontal)
        path, unreadable = _image(view, root) if view is not None else (None, None)
        known, unlabelled = _labels_of(study, labels)
        wanted = " or ".join(section.frontal.views)
        problems = {
            "studies without a frontal image": None if view is not None else f"no frontal image ({wanted})",
            "studies whose frontal image can't be read": unreadable,
            "studies without labels that can be used": unlabelled,
            "studies without a report": None if study.report else "no report: findings and impression are blank",
            "studies whose rows differ": "; ".join(dict.fromkeys(study.contradictions)) or None,
        }
        for what, problem in problems.items():
            remarks.count(what, int(problem is not None))
        facts = {"split": study.split, "patient_report_date_order": study.order}
        facts |= {"path_to_image": view.path, "ap_pa": view.view} if view is not None else {}
        studies.append(
            Study(
                study=name,
                patient=study.patient,
                dataset=dataset,
                modality="xray",
                images={"frontal": str(path)} if path is not None else {},
                report=study.report,
                labels=known,
                attributes={name: value for name, value in facts.items() if value},
                restricted=section.restricted,
                problem="; ".join(problem for problem in problems.values() if problem is not None) or None,
            )
        )
    return studies


def _table(folder: Path) -> Path:
    found = sorted(folder.glob("df_chexpert_plus_*.csv"))
    if len(found) != 1:
        there = ", ".join(path.name for path in found) or "none"
        raise BadInput(f"{folder}: needs one table df_chexpert_plus_<date>.csv; there are: {there}")
    return found[0]


def _studies(table: Path, wanted: str | None, remarks: Remarks) -> tuple[dict[str, _Study], set[str]]:
    """The studies of a split by id, and all splits there are."""
    found: dict[str, _Study] = {}
    seen: dict[str, dict[str, str]] = {}
    splits: set[str] = set()
    for row in read_rows(table, COLUMNS):
        cells = row.cells
        path = cells["path_to_image"].removeprefix("./")
        matched = _PATH.fullmatch(path)
        if row.problem is not None or matched is None or not cells["deid_patient_id"]:
            why = row.problem or ("path_to_image names no study" if matched is None else "no deid_patient_id")
            remarks.add(table, path or row.place, f"{row.place}: {why}: left out")
            continue
        splits.add(cells["split"])
        if wanted is not None and cells["split"] != wanted:
            continue
        if seen.setdefault(path, cells) is not cells:
            same = seen[path] == cells
            remarks.add(table, path, f"{row.place}: listed twice, in rows that {'say the same' if same else 'differ'}")
            if not same:
                found[f"{matched['patient']}-{matched['study']}"].contradictions.append(f"{path} is listed twice")
            continue
        report = {name: " ".join(cells[f"section_{name}"].split()) for name in ("findings", "impression")}
        report = {name: text for name, text in report.items() if text}
        study = found.setdefault(
            f"{matched['patient']}-{matched['study']}",
            _Study(cells["deid_patient_id"], cells["split"], cells["patient_report_date_order"], report),
        )
        mine = (study.patient, study.split, study.order, study.report)
        if mine != (cells["deid_patient_id"], cells["split"], cells["patient_report_date_order"], report):
            study.contradictions.append("its rows name different patients, splits, dates or reports")
        if matched["patient"] != cells["deid_patient_id"]:
            study.contradictions.append(f"{path} lies with another patient than {cells['deid_patient_id']}")
        study.paths.append(path)
        _count(cells["frontal_lateral"], remarks)
        if cells["frontal_lateral"] == "Frontal":
            if "_lateral." in path:
                remarks.add(table, path, f"{row.place}: called lateral by its name and Frontal by the table: not used")
            else:
                study.views.append(View(int(matched["view"]), path, cells["ap_pa"]))
        elif cells["frontal_lateral"] != "Lateral":
            remarks.add(table, path, f"{row.place}: frontal_lateral is {cells['frontal_lateral']!r}: not used")
    return found, splits


def _count(shown: str, remarks: Remarks) -> None:
    remarks.count("images listed")
    remarks.count("frontal images", int(shown == "Frontal"))
    remarks.count("lateral images", int(shown == "Lateral"))


def _image(view: View, root: DataRoot) -> tuple[Path | None, str | None]:
    """The listed file; the images also come as PNG under the same names."""
    path, problem = root.locate(view.path)
    if path is None or problem is not None:
        return path, problem
    png = path.with_suffix(".png")
    if not path.exists() and png.exists():
        path = png
    return path, root.problem(path) or radiograph_problem(path)


# -- labels ----------------------------------------------------------------------------------------------------------


def _labels(path: Path, remarks: Remarks) -> dict[str, Labels]:
    """Labels by path_to_image, of a CSV or of JSON lines."""
    rows = _json_rows(path, remarks) if path.suffix.lower() in (".json", ".jsonl") else _csv_rows(path, remarks)
    found: dict[str, Labels] = {}
    for place, cells in rows:
        image = (cells.pop("path_to_image") or "").removeprefix("./")
        labels = in_words(cells)
        if not image:
            remarks.add(path, place, "no path_to_image: left out")
            continue
        if found.setdefault(image, labels) != labels:
            remarks.add(path, image, f"{place}: labelled twice, with labels that differ: none is used")
            found[image] = ({}, f"{image} is labelled twice, with labels that differ")
    if not found:
        raise BadInput(f"{path}: no row that can be used")
    return found


def _csv_rows(path: Path, remarks: Remarks) -> Iterator[tuple[str, dict[str, str | None]]]:
    for row in read_rows(path, ["path_to_image", *FINDINGS]):
        if row.problem is not None:
            remarks.add(path, row.place, f"{row.problem}: left out")
        else:
            yield row.place, dict(row.cells)


def _json_rows(path: Path, remarks: Remarks) -> Iterator[tuple[str, dict[str, str | None]]]:
    names = ("path_to_image", *FINDINGS)
    try:
        with regular(path).open(encoding="utf-8-sig") as file:
            for number, line in enumerate(file, start=1):
                if not line.strip():
                    continue
                row = json.loads(line)
                lacking = [name for name in names if not isinstance(row, dict) or name not in row]
                if lacking:
                    raise BadInput(f"{path}:{number}: no key {', '.join(lacking)}")
                yield f"line {number}", {name: None if row[name] is None else str(row[name]) for name in names}
    except FileNotFoundError:
        raise BadInput(f"{path}: no such file") from None
    except (ValueError, OSError) as error:
        raise BadInput(f"{path}: not readable as JSON lines ({error})") from None


def _labels_of(study: _Study, labels: dict[str, Labels] | None) -> Labels:
    """The labels of a study's images, which are those of its report and so the same."""
    if labels is None:
        return {}, None
    found = [labels[path] for path in study.paths if path in labels]
    if not found:
        return {}, "no labels"
    if any(one != found[0] for one in found):
        return {}, "its images are labelled differently"
    return found[0]
