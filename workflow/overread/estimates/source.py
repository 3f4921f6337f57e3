"""Studies and questions of a data set, as the tables count them: less what reaches no model."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

from overread.core.errors import BadInput
from overread.core.inputs import regular
from overread.core.records import Question, Study, read_questions, read_studies


@dataclass(frozen=True)
class Source:
    """The studies of a dataset that could be asked about, and their questions."""

    studies: tuple[Study, ...]
    questions: tuple[Question, ...]

    @property
    def restricted(self) -> bool:
        return any(study.restricted for study in self.studies)


def read_source(folder: Path) -> Source:
    """A dataset's studies less the rejected ones, those with questions only, and their questions.

    raises    BadInput for a file that is missing or damaged
    """
    rejected = _rejected(folder / "studies_rejected.csv")
    usable = {study.study: study for study in read_studies(folder / "studies.parquet") if study.study not in rejected}
    questions = tuple(one for one in read_questions(folder / "questions.jsonl") if one.study in usable)
    asked = sorted({question.study for question in questions})
    return Source(tuple(usable[study] for study in asked), questions)


def _rejected(path: Path) -> set[str]:
    try:
        with regular(path).open(newline="", encoding="utf-8") as file:
            return {row["study"] for row in csv.DictReader(file)}
    except FileNotFoundError:
        raise BadInput(f"{path}: no such file; index the images of this dataset first") from None
    except KeyError:
        raise BadInput(f"{path}: no column 'study'; index the images of this dataset again") from None
