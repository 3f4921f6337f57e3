"""The datasets in numbers: how much is asked, of whom, and where the right options stand as written.

Studies that were rejected are not counted, nor are their questions: they reach no model. `words_per_question` counts
the words of the stem and its options. `series_per_study` counts a study's files, segmentations among them.
`slices_per_series` is the mean length of the volumes' third axis (4-D volumes too), from the headers alone, or 1 for
X-rays; it is blank if a volume can't be read any more. `answer_position_k` is the share of the questions whose right
option is the k-th as written, blank if no question has k options; questions with more than four options add columns.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from overread.core.errors import BadInput
from overread.core.records import Question, Study, read_questions, read_studies

COLUMNS = ("dataset", "questions", "studies", "patients", "words_per_question", "series_per_study", "slices_per_series")


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


def dataset_table(sources: Mapping[str, Source]) -> pd.DataFrame:
    """A row a dataset, sorted by name."""
    places = max([4, *(len(question.options) for one in sources.values() for question in one.questions)])
    rows = [[name, *_measures(sources[name], places)] for name in sorted(sources)]
    return pd.DataFrame(rows, columns=[*COLUMNS, *(f"answer_position_{place + 1}" for place in range(places))])


def _measures(source: Source, places: int) -> list[object]:
    if not source.questions:
        return [0, 0, 0, *([None] * (3 + places))]
    words = [len(" ".join([one.stem, *one.options]).split()) for one in source.questions]
    series = [len(study.images) for study in source.studies]
    answers = np.bincount([one.answer_index for one in source.questions], minlength=places) / len(source.questions)
    most = max(len(one.options) for one in source.questions)
    patients = {study.patient for study in source.studies}
    counts = [len(source.questions), len(source.studies), len(patients)]
    means = [float(np.mean(words)), float(np.mean(series)), _slices_per_series(source.studies)]
    return [*counts, *means, *(float(answers[place]) if place < most else None for place in range(places))]


def _slices_per_series(studies: tuple[Study, ...]) -> float | None:
    depths: list[int] = []
    for study in studies:
        for path in study.images.values():
            depth = 1 if study.modality == "xray" else _depth(Path(path))
            if depth is None:
                return None
            depths.append(depth)
    return float(np.mean(depths)) if depths else None


def _depth(path: Path) -> int | None:
    """The length of a volume's third axis, from its header; none if it can't be read."""
    import nibabel
    from nibabel.filebasedimages import ImageFileError

    try:
        return int(nibabel.load(path).shape[2])  # type: ignore[attr-defined]
    except (OSError, EOFError, ImageFileError, IndexError):
        return None


def _rejected(path: Path) -> set[str]:
    try:
        with path.open(newline="", encoding="utf-8") as file:
            return {row["study"] for row in csv.DictReader(file)}
    except FileNotFoundError:
        raise BadInput(f"{path}: no such file; index the images of this dataset first") from None
    except KeyError:
        raise BadInput(f"{path}: no column 'study'; index the images of this dataset again") from None
