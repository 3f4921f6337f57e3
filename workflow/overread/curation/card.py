"""The data card of a release: a page of Markdown with the dataset in numbers, how it was made and how to use it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from overread.config.curation import Release
from overread.core.records import Study
from overread.curation.exports import task_name, template
from overread.curation.released import Released, positions

if TYPE_CHECKING:
    from overread.curation.filter import Count

FIELDS = {
    "question": "id, the hash of the question's content",
    "study": "which examination it is about",
    "patient": "whose it is: questions of one patient are not independent",
    "topic": "what it asks about",
    "stem": "the question",
    "options": "the options, shuffled",
    "answer": "the text of the right option",
    "answer_position": "its place among `options`, from 1",
    "options_as_written": "the options in the order they were written",
    "answer_position_as_written": "the right option's place there, from 1",
    "permutation": "for each of `options` its place among `options_as_written`, from 1",
    "pictures": "files of the pictures, relative to the release",
    "origin": "what wrote the question",
    "evidence": "the sentences of the report that it came from",
}
ORIGINS = {
    "grammar": "the grammar that wrote the reports",
    "findings": "a list of findings and the labels of the studies",
    "file": "whoever wrote the file they came in",
}
FILES = {
    "questions.jsonl": "the questions, one JSON object a line",
    "questions.csv": "the same, a column an option",
    "questions.parquet": "the same as Parquet",
    "positions.csv": "how often the right option stands at each place, in both orders",
    "funnel.csv": "how many questions were written, dropped by which rule, and kept",
    "reports.jsonl": "Findings and Impression of the studies",
    "pictures": "a folder a study",
    "croissant.json": "description for programs (MLCommons Croissant)",
    "for-lmms-eval": "tasks for lmms-eval",
    "for-vlmevalkit": "tables for VLMEvalKit",
    "for-inspect-ai": "a task for inspect_ai",
}


def write_card(
    section: Release, released: Sequence[Released], studies: Sequence[Study], funnel: Sequence[Count], folder: Path
) -> None:
    shares: dict[str, list[float]] = {}
    for order, _, _, share in positions(released):
        shares.setdefault(order, []).append(share)
    topics = Counter(one.question.topic for one in released)
    absent = {"funnel.csv": not funnel, "reports.jsonl": not section.with_report, "pictures": section.view is None}
    text = template(
        "card.md.j2",
        **section.model_dump(),
        task=task_name(section),
        numbers=_numbers(released, studies),
        positions=shares,
        places=len(shares["shuffled"]),
        topics=sorted(topics.items(), key=lambda one: (-one[1], one[0])),
        origins=[ORIGINS.get(name, name) for name in sorted({one.question.origin for one in released})],
        funnel=[one for one in funnel if one.dropped],
        written=funnel[0].came if funnel else 0,
        kept=funnel[-1].left if funnel else 0,
        restricted=any(one.restricted for one in studies),
        semi_synthetic=any(one.semi_synthetic for one in studies),
        files=[(name, content) for name, content in FILES.items() if not absent.get(name, False)],
        fields=[(name, meaning) for name, meaning in FIELDS.items() if name != "evidence" or section.with_report],
        pictures=section.view is not None,
    )
    (folder / "README.md").write_text(text, encoding="utf-8")


def _numbers(released: Sequence[Released], studies: Sequence[Study]) -> dict[str, object]:
    """The published table's statistics, from the function that makes `tables/dataset.csv`."""
    from overread.estimates.source import Source
    from overread.estimates.tables.dataset import dataset_table

    questions = tuple(one.question for one in released)
    row = dataset_table({"release": Source(tuple(studies), questions)}).iloc[0]
    characters = sum(len(" ".join([one.stem, *one.options])) for one in questions) / len(questions)
    return {
        "questions": int(row["questions"]),
        "studies": int(row["studies"]),
        "patients": int(row["patients"]),
        "words": f"{row['words_per_question']:.2f}",
        "characters": f"{characters:.2f}",
        "series": _mean(row["series_per_study"]),
        "slices": _mean(row["slices_per_series"]),
    }


def _mean(value: object) -> str:
    """Two decimals; a dash where the files can't be read any more."""
    number = float(value) if isinstance(value, (int, float)) else float("nan")
    return "-" if number != number else f"{number:.2f}"
