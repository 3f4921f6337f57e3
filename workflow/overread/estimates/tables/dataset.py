"""The datasets in numbers: how much is asked, of whom, and where the right options stand as written.

Studies that were rejected are not counted, nor are their questions: they reach no model. `words_per_question` counts
the words of the stem and its options. `series_per_study` counts a study's files, segmentations among them.
`slices_per_series` is the mean length of the volumes' third axis (4-D volumes too), from the headers alone, or 1 for
X-rays; it is blank if a volume can't be read any more. `answer_position_k` is the share of the questions whose right
option is the k-th as written, blank if no question has k options; questions with more than four options add columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from overread.core.columns import DATASET, FROM_0, PATIENTS, QUESTIONS, STUDIES, number, share
from overread.core.records import Study
from overread.estimates.source import Source
from overread.estimates.tables import Table

NO_QUESTIONS = "the data set has no question"
TABLE = Table(
    __name__,
    __doc__,
    (
        DATASET, QUESTIONS, STUDIES, PATIENTS,
        number("words_per_question", "words of the stem and its options, on average", range=FROM_0, blank=NO_QUESTIONS),
        number("series_per_study", "files per study, segmentations among them", range=FROM_0, blank=NO_QUESTIONS),
        number(
            "slices_per_series", "length of the volumes' third axis, on average; 1 for X-rays", range=FROM_0,
            blank="a volume cannot be read any more",
        ),
    ),
    lambda run: dataset_table(run.sources),
    more=(
        share(
            "answer_position_<k>", "share of the questions whose correct option is the k-th as written, k from 1",
            blank="no question has k options",
        ),
    ),
)  # fmt: skip


def dataset_table(sources: Mapping[str, Source]) -> pd.DataFrame:
    """A row a dataset, sorted by name."""
    places = max([4, *(len(question.options) for one in sources.values() for question in one.questions)])
    rows = [[name, *_measures(sources[name], places)] for name in sorted(sources)]
    return TABLE.frame(rows, [f"answer_position_{place + 1}" for place in range(places)])


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
