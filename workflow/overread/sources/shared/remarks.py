"""What a reader has to tell besides its studies: rows that it could not use, and how many of what there was."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path

from overread.core.records import Study, replacing


@dataclass(frozen=True)
class Remark:
    """A row or a file that is not as it should be, and what became of it."""

    file: str
    key: str  # the study or image, or `row 7` where it has no name
    remark: str


@dataclass
class Remarks:
    """Filled while a data set is read."""

    rows: list[Remark] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)

    def add(self, file: Path, key: str, remark: str) -> None:
        self.rows.append(Remark(str(file), key, remark))

    def count(self, what: str, number: int = 1) -> None:
        self.counts[what] = self.counts.get(what, 0) + number

    def count_studies(self, studies: Iterable[Study]) -> None:
        """How many studies and patients there are, and how many of them can be used."""
        read = list(studies)
        usable = [study for study in read if study.problem is None]
        self.count("studies", len(read))
        self.count("patients", len({study.patient for study in read}))
        self.count("studies that can be used", len(usable))
        self.count("patients of those", len({study.patient for study in usable}))

    def write(self, remarks: Path | None, counts: Path | None) -> None:
        """Both as CSV; the remarks sorted by file and key, the counts in the order in which they were made."""
        if remarks is not None:
            ordered = sorted((asdict(row) for row in self.rows), key=lambda row: tuple(row.values()))
            _write(remarks, ["file", "key", "remark"], ordered)
        if counts is not None:
            _write(counts, ["what", "count"], [{"what": what, "count": number} for what, number in self.counts.items()])


def _write(path: Path, columns: list[str], rows: Iterable[dict[str, object]]) -> None:
    with replacing(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, fieldnames=columns, lineterminator="\n")
        table.writeheader()
        table.writerows(rows)
