"""What the first jobs would die of: looked for in the user's own tables and files of questions before any job runs."""

from __future__ import annotations

import json
from pathlib import Path

from overread.config import Config
from overread.config.datasets import FileQuestions, FindingQuestions
from overread.core.errors import BadInput, shown
from overread.core.inputs import regular
from overread.sources.shared.rows import read_rows
from overread.sources.table.section import Table

ASKED = ("study", "stem", "options", "answer", "topic")
"""What a question of a file can't do without."""


def problems(config: Config, name: str) -> list[str]:
    """What is wrong with the content of a data set's table and of its file of questions, a line each with its key.

    A file that is not there is no matter of its content: its cells wait for it.
    """
    section = config.datasets[name]
    found: list[str] = []
    if isinstance(section, Table) and Path(section.path).is_file():
        found.extend(f"datasets.{name}.{why}" for why in _of_table(section))
    questions = section.questions
    if isinstance(questions, FileQuestions) and Path(questions.path).is_file():
        found.extend(f"datasets.{name}.questions.path: {why}" for why in _of_questions(Path(questions.path)))
    return found


def no_substitute(config: Config, name: str) -> str | None:
    """Why no study of a data set can take another's place, as far as its table tells; None if one can, or who knows."""
    section = config.datasets[name]
    if not isinstance(section, Table) or not Path(section.path).is_file():
        return None
    study, patient = section.columns.study, section.columns.patient
    try:
        rows = {(row.cells[study], row.cells[patient]) for row in read_rows(Path(section.path), [study, patient])}
    except (BadInput, OSError):
        return None  # `problems` says why
    if len({one for one, _ in rows}) == 1:
        return f"{name} holds one study"
    if section.substitutes.patient == "another" and len({one for _, one in rows}) == 1:
        return f"{name} holds one patient"
    return None


def _of_table(section: Table) -> list[str]:
    path, place = Path(section.path), shown(section.path)
    columns = dict(section.labels)
    try:
        rows = list(read_rows(path, [section.columns.study, section.columns.patient, *columns.values()]))
    except (BadInput, OSError) as error:
        return [f"path: {error}"]
    if not rows:
        return [f"path: {place} has a head and no row; give the table that holds the studies"]
    if columns and not any(row.cells[column].strip() for row in rows for column in columns.values()):
        asked = "; no finding can be asked about" if isinstance(section.questions, FindingQuestions) else ""
        return [f"labels: all labels of {place} are blank ({', '.join(sorted(columns.values()))}){asked}"]
    return []


def _of_questions(path: Path) -> list[str]:
    """The first line that is no question, and how many more there are."""
    bad: list[str] = []
    count = 0
    try:
        for number, line in enumerate(regular(path).read_text(encoding="utf-8").split("\n"), start=1):
            if not line.strip():
                continue
            count += 1
            try:
                content = json.loads(line)
                lacking = [key for key in ASKED if not (isinstance(content, dict) and content.get(key))]
            except (ValueError, RecursionError):
                lacking = ["JSON"]
            if lacking:
                bad.append(f"{shown(str(path))}:{number}: no {lacking[0]}")
    except (OSError, UnicodeDecodeError) as error:
        return [f"{shown(str(path))}: not readable as UTF-8 text: {error}"]
    if not count:
        return [f"{shown(str(path))} holds no question"]
    more = f", and {len(bad) - 1} lines more" if len(bad) > 1 else ""
    return [f"{bad[0]}{more}"] if bad else []
