"""A folder of chest X-rays as PNG files with a JSON report each.

    e1.png      the frontal image
    e1.json     {"patient": "p1", "findings": "Clear lungs.", "impression": "Normal.", "labels": {"Edema": 0}}

Both lie in the folder or one level down, side by side and under one name, which is the study's id. A report may be
given whole under `report`, and is then cut into its sections. Labels are 1, 0, -1 or their words; other keys with a
text, a number or a truth value become attributes. A file that is no report, and a picture without one, are left out
and told.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field

from overread.config.datasets import FINDINGS, Folder
from overread.core.inputs import regular
from overread.core.records import Modality

if TYPE_CHECKING:
    from pathlib import Path

    from overread.core.records import Study
    from overread.sources.shared.remarks import Remarks

LARGEST_REPORT = 1_000_000
"""Bytes. A long report has about 10,000."""

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
"""Studies name folders of results."""


class PngJson(Folder):
    """Chest X-rays as <study>.png, each with its <study>.json."""

    source: Literal["png-json"]
    title: ClassVar[str] = "a folder of PNG files with JSON reports"
    layout: ClassVar[tuple[str, ...]] = ("*.json", "*/*.json")
    modality: ClassVar[Modality] = "xray"
    labels: bool = Field(default=False, description="whether the JSON files say under `labels` what a study shows")

    labels_are_named_by: ClassVar[str] = "'labels: true'"
    blank_is_not_mentioned: ClassVar[bool] = False

    @property
    def has_labels(self) -> bool:
        return self.labels

    def read(self, dataset: str, folder: Path, remarks: Remarks) -> list[Study]:
        from overread.core.errors import BadInput
        from overread.sources.shared.paths import DataRoot

        root = DataRoot(folder, follow_links=self.follow_links)
        found: dict[str, list[tuple[Path, Mapping[str, Any]]]] = {}
        files = sorted(path for pattern in self.layout for path in folder.glob(pattern))
        for path in files:
            try:
                content = _content(path, root)
            except ValueError as error:
                remarks.add(path, path.stem, f"{error}: left out")
                remarks.count("files that are no report")
            else:
                found.setdefault(path.stem, []).append((path, content))
        for picture in sorted(picture for pattern in ("*.png", "*/*.png") for picture in folder.glob(pattern)):
            if picture.with_suffix(".json") not in files:
                remarks.add(picture, picture.stem, "a picture without a report beside it: left out")
                remarks.count("pictures without a report")
        if not found:
            raise BadInput(f"{folder}: no report; looked for <study>.json here and one level down")
        return [self._study(dataset, study, reports, root, remarks) for study, reports in sorted(found.items())]

    def _study(
        self, dataset: str, study: str, reports: list[tuple[Path, Mapping[str, Any]]], root: Any, remarks: Remarks
    ) -> Study:
        from overread.core.records import Study
        from overread.sources.shared.blank import filled
        from overread.sources.shared.image_files import radiograph_problem
        from overread.sources.shared.labels import in_words

        path, content = reports[0]
        image = path.with_suffix(".png")
        no_image = root.problem(image) or radiograph_problem(image, ("PNG",))
        labels, bad_labels = in_words(_labels(content)) if self.labels else ({}, None)
        sections = _sections(content)
        patient = filled(_text(content.get("patient")))
        problems = {
            "studies with two reports": f"{len(reports)} reports of this name; keep one" if len(reports) > 1 else None,
            "studies without a patient": None if patient else "no patient",
            "studies without an image that can be used": no_image,
            "studies with labels that can't be used": bad_labels,
        }
        for what, problem in problems.items():
            remarks.count(what, int(problem is not None))
        remarks.count("studies without a report", int(not sections))
        told = {"patient", "report", "findings", "impression", "labels"}
        return Study(
            study=study,
            patient=patient or f"unknown patient of {study}",
            dataset=dataset,
            modality="xray",
            images={} if no_image else {"frontal": str(image)},
            report=sections,
            labels=labels,
            attributes={key: text for key, value in content.items() if key not in told and (text := _text(value))},
            restricted=self.restricted,
            problem="; ".join(problem for problem in problems.values() if problem is not None) or None,
        )


def _content(path: Path, root: Any) -> Mapping[str, Any]:
    """A report's file. ValueError with the reason if it is none, or must not be read."""
    from overread.images.kinds import file_problem

    if _ID.fullmatch(path.stem) is None:
        raise ValueError(
            "its name is not a valid id of a study: letters, digits, dot, hyphen and underscore, at most 100"
        )
    if (problem := root.problem(path) or file_problem(path)) is not None:
        raise ValueError(problem)
    if path.stat().st_size > LARGEST_REPORT:
        raise ValueError(f"more than {LARGEST_REPORT} bytes are no report")
    try:
        content = json.loads(regular(path).read_text(encoding="utf-8"))
    except (ValueError, RecursionError, OSError) as error:
        raise ValueError(f"not readable as JSON ({error})") from None
    if not isinstance(content, dict):
        raise ValueError("not a JSON object")
    return content


def _labels(content: Mapping[str, Any]) -> dict[str, str | None]:
    """The findings' labels as text; one that is no label stays, to be refused."""
    named = content.get("labels")
    if not isinstance(named, dict):
        return {} if named is None else {"labels": str(named)}
    return {name: None if value is None else str(value) for name, value in named.items() if name in FINDINGS}


def _sections(content: Mapping[str, Any]) -> dict[str, str]:
    """Findings and impression, line breaks gone."""
    from overread.sources.shared.sections import Sections, find_sections

    whole = content.get("report")
    if isinstance(whole, str):
        found = find_sections(whole)
    else:
        parts = {name: content.get(name) for name in ("findings", "impression")}
        found = Sections(**{name: text for name, text in parts.items() if isinstance(text, str)})
    return {name: " ".join(text.split()) for name, text in found.report.items() if text.strip()}


def _text(value: Any) -> str:
    """A value that can be an attribute, as text; empty for any other."""
    return str(value).strip() if isinstance(value, str | int | float) else ""
