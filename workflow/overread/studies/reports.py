"""Radiology reports from a folder of text files or a CSV, cut into findings and impression.

Line breaks inside a section are those of the file's width, and go.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from overread.errors import BadInput
from overread.studies.sections import Sections, find_sections

ID_COLUMNS = ("study", "id", "study_id", "patient")


def read_reports(path: Path, whole_id: Callable[[str], str | None]) -> dict[str, Sections]:
    """Sections by study. Files are named by the study's id; a CSV has a column with it, and `report` or the sections.

    A report without Findings and Impression comes with its `problem` and no text: no other section is ever taken.

    whole_id  the study that a name or a cell stands for, or None if it is no id
    raises    BadInput if there is no such file or folder, no report in it, or two for one study
    """
    if path.is_dir():
        found = _texts(path)
    elif path.is_file():
        found = _rows(path)
    else:
        raise BadInput(f"{path}: no such file or folder of reports")
    reports: dict[str, Sections] = {}
    for name, parts in found:
        study = whole_id(name)
        if study is None:
            continue
        if study in reports:
            raise BadInput(f"{path}: two reports for {study}; keep one")
        reports[study] = parts
    if not reports:
        raise BadInput(f"{path}: no report; looked for study ids such as UCSF-PDGM-0004 as file names or in a column")
    return reports


def _texts(folder: Path) -> Iterator[tuple[str, Sections]]:
    for path in sorted(folder.glob("*.txt")):
        try:
            yield path.stem, _flat(find_sections(path.read_text(encoding="utf-8-sig")))
        except (UnicodeDecodeError, OSError) as error:
            raise BadInput(f"{path}: not readable as UTF-8 text ({error})") from None


def _rows(path: Path) -> Iterator[tuple[str, Sections]]:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            table = csv.DictReader(file)
            columns = {name.strip().lower(): name for name in table.fieldnames or ()}
            key = next((columns[name] for name in ID_COLUMNS if name in columns), None)
            texts = [name for name in ("report", "findings", "impression") if name in columns]
            if key is None or not texts:
                raise BadInput(
                    f"{path}: needs a column {' or '.join(ID_COLUMNS)}, and report, or findings and impression; "
                    f"there are: {', '.join(columns) or 'none'}"
                )
            for row in table:
                if texts[0] == "report":
                    yield row[key], _flat(find_sections(row[columns["report"]] or ""))
                else:
                    parts = {name: row[columns[name]] or "" for name in texts}
                    problem = None if any(map(str.strip, parts.values())) else "Findings and Impression are empty"
                    yield row[key], _flat(Sections(problem=problem, **parts))
    except (UnicodeDecodeError, csv.Error, OSError) as error:
        raise BadInput(f"{path}: not readable as CSV ({error})") from None


def _flat(found: Sections) -> Sections:
    return replace(found, findings=" ".join(found.findings.split()), impression=" ".join(found.impression.split()))
