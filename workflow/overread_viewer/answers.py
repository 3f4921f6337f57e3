"""What pages need of every trial and every answer: narrow columns, in the order of their files.

A run of a dozen models has a million answers; as records they would fill the memory, as columns they take a few dozen
megabytes. Models that were asked the same trials share what these say.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from overread.core.errors import BadInput
from overread.core.records import Response, Trial, read_columns

Texts = NDArray[np.object_]


@dataclass(frozen=True)
class Asked:
    """The trials of a setting and run.

    question, study, patient, topic, image_study, label, image_label  (n,) texts; the last three may be none
    permutation  (n, k) place as written of each place shown, -1 beyond the last
    gold         (n,) place as written of the right option
    images       the paths of all pictures that the trials show
    rows         the row of each question
    """

    question: Texts
    study: Texts
    patient: Texts
    topic: Texts
    image_study: Texts
    label: Texts
    image_label: Texts
    permutation: NDArray[np.int8]
    gold: NDArray[np.int8]
    images: frozenset[str]
    rows: Mapping[str, int]


@dataclass(frozen=True)
class Answers:
    """The answers of a model to the trials of a setting and run.

    question, study, patient  (n,) texts
    status    (n,) answered, unparsed, refused, truncated or failed
    choice    (n,) place as written of the option given, -1 for none
    correct   (n,) whether it is the right one
    logprobs  (n, k) log-probability by place as written, NaN where there is none; None if the model gives none
    rows      the row of each question
    """

    question: Texts
    study: Texts
    patient: Texts
    status: Texts
    choice: NDArray[np.int8]
    correct: NDArray[np.bool_]
    logprobs: NDArray[np.float64] | None
    rows: Mapping[str, int]


def asked_of(path: Path) -> Asked:
    """The columns of a file of trials."""
    import pyarrow.compute as pc

    names = ["question", "study", "patient", "topic", "image_study", "label", "image_label"]
    table = read_columns(path, Trial, [*names, "permutation", "answer", "blocks"])
    texts = {name: _texts(table.column(name)) for name in names}
    permutation = _matrix(table.column("permutation"), -1).astype(np.int8)
    answer = table.column("answer").to_numpy()
    gold = permutation[np.arange(len(answer)), answer] if len(answer) else np.zeros(0, np.int8)
    blocks = table.column("blocks").combine_chunks().flatten()
    images = pc.unique(pc.struct_field(blocks, "image")).to_pylist()
    shown = frozenset(one for one in images if one is not None)
    rows = {question: row for row, question in enumerate(texts["question"])}
    return Asked(**texts, permutation=permutation, gold=gold, images=shown, rows=rows)


def answers_of(path: Path, asked: Asked) -> Answers:
    """The columns of a file of responses to `asked`.

    raises  BadInput if it answers a question that was not asked
    """
    table = read_columns(path, Response, ["question", "status", "choice", "logprobs"])
    question = _texts(table.column("question"))
    rows: Mapping[str, int]
    if len(question) == len(asked.question) and bool(np.all(question == asked.question)):
        take: Any = slice(None)
        question, rows = asked.question, asked.rows
    else:
        unknown = [one for one in question if one not in asked.rows]
        if unknown:
            raise BadInput(
                f"{path}: answers question {unknown[0]}, which its trials do not ask; run the workflow again"
            )
        take = np.array([asked.rows[one] for one in question], dtype=np.int64)
        rows = {one: row for row, one in enumerate(question)}
    choice = table.column("choice").fill_null(-1).to_numpy().astype(np.int8)
    return Answers(
        question=question,
        study=asked.study[take],
        patient=asked.patient[take],
        status=_texts(table.column("status")),
        choice=choice,
        correct=choice == asked.gold[take],
        logprobs=_written(_matrix(table.column("logprobs"), np.nan), asked.permutation[take]),
        rows=rows,
    )


def _written(shown: NDArray[Any], permutation: NDArray[np.int8]) -> NDArray[np.float64] | None:
    """Log-probabilities by place as written, of those by place shown."""
    if shown.size == 0 or bool(np.all(np.isnan(shown))):
        return None
    written = np.full(permutation.shape, np.nan)
    row, place = np.nonzero(permutation >= 0)
    kept = place < shown.shape[1]
    row, place = row[kept], place[kept]
    written[row, permutation[row, place]] = shown[row, place]
    return written


def _texts(column: Any) -> Texts:
    """A column of text as objects, of which equal ones are one object."""
    encoded = column.combine_chunks().dictionary_encode()
    words = np.array([*(sys.intern(word) for word in encoded.dictionary.to_pylist()), None], dtype=object)
    places = encoded.indices.fill_null(len(words) - 1).to_numpy(zero_copy_only=False)
    found: Texts = words[places]
    return found


def _matrix(column: Any, fill: float) -> NDArray[Any]:
    """A column of lists as a matrix, filled up on the right. A null is an empty list."""
    lists = column.combine_chunks()
    lengths = lists.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    flat = lists.flatten().to_numpy(zero_copy_only=False)
    widest = int(lengths.max()) if len(lengths) else 0
    matrix = np.full((len(lengths), widest), fill, dtype=np.result_type(flat.dtype, type(fill)))
    matrix[np.arange(widest) < lengths[:, None]] = flat
    return matrix
