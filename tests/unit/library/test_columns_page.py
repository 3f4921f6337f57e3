"""docs/tables.md, and that every CSV file goes through the one writer."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

from overread.library import columns_page
from overread.library.results import QUESTION_NAMES, RESPONSE_NAMES, TRIAL_NAMES

ROOT = Path(__file__).resolve().parents[3]
AGAIN = "python -m overread.library.columns_page > docs/tables.md"


def test_the_page_is_what_the_declarations_say():
    assert (ROOT / "docs" / "tables.md").read_text(encoding="utf-8") == columns_page.page(), f"write it anew: {AGAIN}"


def test_a_name_means_one_thing_in_all_files_or_is_another_in_frames():
    meanings: dict[str, set[str]] = defaultdict(set)
    for file in columns_page.declared().values():
        for column in (*file.columns, *file.more):
            meanings[column.name].add(column.meaning)
    for kind, _ in columns_page.RECORDS.values():
        renamed = columns_page.IN_FRAMES.get(kind, {})
        for column in columns_page.columns_of(kind):
            meanings[renamed.get(column.name, column.name)].add(column.meaning)
    several = {name: found for name, found in meanings.items() if len(found) > 1}
    assert not several, several


def test_what_frames_rename_is_a_column():
    for kind, names in columns_page.IN_FRAMES.items():
        assert set(names) <= set(kind.model_fields)
    assert QUESTION_NAMES["answer"] != TRIAL_NAMES["answer"] != RESPONSE_NAMES["answer"]


def test_every_csv_file_is_written_by_the_one_writer():
    for package in ("overread", "overread_viewer", "overread_phantom"):
        for path in sorted((ROOT / "workflow" / package).rglob("*.py")):
            if path.name != "csv_files.py":
                found = re.findall(r"csv\.writer|DictWriter|\.to_csv", path.read_text(encoding="utf-8"))
                assert not found, f"{path.relative_to(ROOT)}: {found[0]}: core/csv_files.py writes CSV"
