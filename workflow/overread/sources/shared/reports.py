"""Radiology reports from a folder of text files or a CSV, cut into findings and impression.

Line breaks inside a section are those of the file's width, and go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from overread.core.errors import BadInput, unknown
from overread.core.inputs import regular
from overread.images.kinds import file_problem
from overread.sources.shared.columns import ReportColumns
from overread.sources.shared.paths import DataRoot
from overread.sources.shared.remarks import Remarks
from overread.sources.shared.rows import read_head, read_rows
from overread.sources.shared.sections import Sections, find_sections

ID_COLUMNS = ("study", "id", "study_id", "patient")
LARGEST_REPORT = 1_000_000
"""Bytes. The longest reports have some thousands."""


def read_reports(
    path: Path,
    whole_id: Callable[[str], str | None],
    remarks: Remarks,
    columns: ReportColumns | None = None,
    *,
    follow_links: bool = False,
) -> dict[str, Sections]:
    """Sections by study. Files are named by the study's id; a CSV has a column with it, and `report` or the sections.

    A report that can't be used comes with its `problem` and no text: one without Findings and Impression (no other
    section is ever taken), one that is not UTF-8, and one of two for the same study that say different things.

    whole_id  the study that a name or a cell stands for, or None if it is no id: that row gets a remark
    columns   of a CSV, where they are not called as usual
    raises    BadInput if there is no such file or folder, or no report in it
    """
    if path.is_dir():
        found = _texts(path, remarks, follow_links)
    elif path.is_file():
        found = _rows(path, columns or ReportColumns(), remarks)
    else:
        raise BadInput(f"{path}: no such file or folder of reports")
    reports: dict[str, Sections] = {}
    for file, key, name, parts in found:
        study = whole_id(name)
        if study is None:
            remarks.add(file, key, f"{name!r} is no study's id: left out")
        elif study not in reports:
            reports[study] = parts
        elif reports[study] == parts:
            remarks.add(file, key, f"the report of {study} is there twice, with the same text: counted once")
        else:
            remarks.add(file, key, f"another report of {study}, with other text: none of them is used")
            reports[study] = Sections(problem=f"{path}: two reports that differ; keep one")
    if not reports:
        raise BadInput(f"{path}: no report; looked for study ids such as UCSF-PDGM-0004 as file names or in a column")
    return reports


def _texts(folder: Path, remarks: Remarks, follow_links: bool) -> Iterator[tuple[Path, str, str, Sections]]:
    root = DataRoot(folder, follow_links=follow_links)
    for path in sorted(folder.glob("*.txt")):
        text, problem = read_text(path, root)
        if problem is not None:
            remarks.add(path, path.stem, problem)
        yield path, path.stem, path.stem, Sections(problem=problem) if problem else _flat(find_sections(text))


def read_text(path: Path, root: DataRoot) -> tuple[str, str | None]:
    """A report's file, and why it can't be read, if so: it leaves the folder, is no file, too large or not UTF-8."""
    problem = root.problem(path) or file_problem(path)
    if problem is None and path.stat().st_size > LARGEST_REPORT:
        problem = f"{path}: {path.stat().st_size} bytes are no report"
    if problem is not None:
        return "", problem
    try:
        return regular(path).read_text(encoding="utf-8-sig"), None
    except UnicodeDecodeError as error:
        return "", f"{path}: not UTF-8 text ({error.reason} at byte {error.start})"
    except OSError as error:
        return "", f"{path}: not readable: {error.strerror or error}"


def _rows(path: Path, columns: ReportColumns, remarks: Remarks) -> Iterator[tuple[Path, str, str, Sections]]:
    key, texts = _placed(path, columns)
    for row in read_rows(path, [key, *texts.values()]):
        if row.problem is not None:
            remarks.add(path, row.place, f"{row.problem}: left out")
        elif "report" in texts:
            yield path, row.place, row.cells[key], _flat(find_sections(row.cells[texts["report"]]))
        else:
            parts = {name: row.cells[column] for name, column in texts.items()}
            problem = None if any(parts.values()) else "the report's Findings and Impression are empty"
            yield path, row.place, row.cells[key], _flat(Sections(problem=problem, **parts))


def _placed(path: Path, columns: ReportColumns) -> tuple[str, dict[str, str]]:
    """The column of the id, and those of `report`, or of `findings` and `impression`: as named, else as usual."""
    there = read_head(path)
    usual = {name.lower(): name for name in there}
    for name in (columns.study, columns.report, columns.findings, columns.impression):
        if name is not None and name not in there:
            raise BadInput(f"{path}: {unknown('column', name, there)} (report_columns)")
    key = columns.study or next((usual[name] for name in ID_COLUMNS if name in usual), None)
    parts = {"findings": columns.findings, "impression": columns.impression}
    sections = {name: column for name, column in parts.items() if column is not None}
    whole = columns.report or (usual.get("report") if not sections else None)
    texts = {"report": whole} if whole else sections or {name: usual[name] for name in parts if name in usual}
    if key is None or not texts:
        raise BadInput(
            f"{path}: needs a column {' or '.join(ID_COLUMNS)}, and report, or findings and impression; "
            f"there are: {', '.join(there) or 'none'}; report_columns names others"
        )
    return key, texts


def _flat(found: Sections) -> Sections:
    return replace(found, findings=" ".join(found.findings.split()), impression=" ".join(found.impression.split()))
