"""What a reader has to tell besides its studies: rows that it could not use, and how many of what there was."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path

from overread.core.columns import count, text
from overread.core.csv_files import CsvFile
from overread.core.records import Study

REMARKS = CsvFile(
    "<dataset>/studies_remarks.csv",
    "What is odd in a data set's files, and what became of it.",
    (
        text("file", "the file that it is about"),
        text("key", "the study or image, or `row 7` where it has no name"),
        text("remark", "what is odd, and what became of it"),
    ),
)
COUNTS = CsvFile(
    "<dataset>/studies_counts.csv",
    "How many images, studies and patients there are at each step of reading a data set.",
    (text("what", "what is counted"), count("count", "how many there are")),
)


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
            REMARKS.write(remarks, ordered)
        if counts is not None:
            COUNTS.write(counts, self.counts.items())
