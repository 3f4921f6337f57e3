"""Radiology reports from a folder of text files or a CSV, cut into findings and impression."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from overread.errors import BadInput

ID_COLUMNS = ("study", "id", "study_id", "patient")
KEPT = {"findings": "findings", "finding": "findings", "impression": "impression", "conclusion": "impression"}

OTHER = (
    "addendum", "clinical history", "clinical indication", "clinical information", "comparison", "exam", "examination",
    "history", "indication", "procedure", "reason for exam", "recommendation", "recommendations", "technique",
)  # fmt: skip
"""Headings that end a section too. A list, as findings have headings of their own inside ("Ventricles: normal.")."""

_HEADING = re.compile(rf"^[ \t]*({'|'.join((*KEPT, *OTHER))})[ \t]*:", re.MULTILINE | re.IGNORECASE)


def read_reports(path: Path, whole_id: Callable[[str], str | None]) -> dict[str, dict[str, str]]:
    """Sections by study. Files are named by the study's id; a CSV has a column with it, and `report` or the sections.

    whole_id  the study that a name or a cell stands for, or None if it is no id
    raises    BadInput if there is no such file or folder, no report in it, or two for one study
    """
    if path.is_dir():
        found = _texts(path)
    elif path.is_file():
        found = _rows(path)
    else:
        raise BadInput(f"{path}: no such file or folder of reports")
    reports: dict[str, dict[str, str]] = {}
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


def sections(text: str) -> dict[str, str]:
    """Findings and impression of a report; other sections are left out. Without any heading all of it is findings.

    Of a section that stands twice the last one is kept: an addendum stands on top of what it was added to.
    """
    heads = list(_HEADING.finditer(text))
    if not heads:
        return {"findings": _tidy(text)} if text.strip() else {}
    ends = [*(head.start() for head in heads[1:]), len(text)]
    parts: dict[str, str] = {}
    for head, end in zip(heads, ends, strict=True):
        name, body = KEPT.get(head[1].lower()), _tidy(text[head.end() : end])
        if name is not None and body:
            parts[name] = body
    return parts


def _texts(folder: Path) -> Iterator[tuple[str, dict[str, str]]]:
    for path in sorted(folder.glob("*.txt")):
        try:
            yield path.stem, sections(path.read_text(encoding="utf-8-sig"))
        except (UnicodeDecodeError, OSError) as error:
            raise BadInput(f"{path}: not readable as UTF-8 text ({error})") from None


def _rows(path: Path) -> Iterator[tuple[str, dict[str, str]]]:
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
                    yield row[key], sections(row[columns["report"]] or "")
                else:
                    yield row[key], {name: _tidy(row[columns[name]]) for name in texts if row[columns[name]]}
    except (UnicodeDecodeError, csv.Error, OSError) as error:
        raise BadInput(f"{path}: not readable as CSV ({error})") from None


def _tidy(text: str) -> str:
    return " ".join(text.split())
