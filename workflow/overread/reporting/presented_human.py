"""People beside models as the report shows them: a table a reader study, the differences, and how far raters agree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from overread.reporting.presented import (
    DASH,
    Cell,
    Column,
    Presented,
    Writer,
    make,
    percent,
    plain,
    signed,
    text,
    whole,
)
from overread.reporting.rows import Row, number, ordered, read, where
from overread.reporting.words import interval

TABLES = ("human", "human_differences", "human_agreement")
"""The tables that are shown, in the run's folder of tables."""


@dataclass(frozen=True)
class Readers:
    """What a report says of its readers: each list has a table a reader study."""

    accuracy: list[Presented]
    views: list[Presented]
    differences: list[Presented]
    agreement: list[Presented]


def readers(folder: Path, labels: Mapping[str, str], level: str) -> Readers:
    """The tables of readers in a run's folder of tables.

    raises  BadInput if one is missing or damaged
    """
    rows = {name: read(folder, name) for name in TABLES}
    return Readers(
        accuracy(rows["human"], labels, level), views(rows["human"], level),
        differences(rows["human_differences"], labels, level), agreement(rows["human_agreement"], level),
    )  # fmt: skip


def accuracy(rows: Sequence[Row], labels: Mapping[str, str], level: str) -> list[Presented]:
    """Raters, their consensus and the models on the same questions: Table 5 of UCSF-PDGM-VQA."""
    parts = [
        (Column("Reader or model", False), lambda row: Cell(_who(row, labels), numeric=False)),
        (Column("Setting", False), text("setting")),
        (Column("Accuracy %"), percent("accuracy")),
        (Column(f"{level} interval"), _interval("low", "high")),
        (Column("Can't tell"), whole("cant_tell", marked=True)),
        (Column("No consensus"), whole("no_consensus", marked=True)),
        (Column("No answer read"), _no_answer),
        (Column("Failed"), whole("failed", marked=True)),
        (Column("Chance %"), percent("chance")),
        (Column("Always first %"), percent("always_first")),
        (Column("Questions"), whole("questions")),
        (Column("Patients"), whole("patients")),
        (Column("Runs"), whole("runs")),
    ]
    return [_table("Readers and models on the questions of", parts, where(rows, subset=one)) for one in _subsets(rows)]


def views(rows: Sequence[Row], level: str) -> list[Presented]:
    """What the readers say of the questions, and how long they took."""
    own = [row for row in rows if row["kind"] != "model"]
    parts: list[tuple[Column, Writer]] = [(Column("Reader", False), _reader)]
    for heading, name in (("Agrees", "agreement"), ("Relevant", "relevance"), ("Answerable", "answerable")):
        parts += [
            (Column(f"{heading} %"), percent(name)),
            (Column(f"{level} interval"), _interval(f"{name}_low", f"{name}_high")),
        ]
    parts += [
        (Column("Confidence, 1 to 5"), plain("confidence", 2)),
        (Column("Seconds, median"), plain("seconds_median", 0)),
        (Column("Questions"), whole("questions")),
        (Column("Patients"), whole("patients")),
    ]
    return [_table("What readers say of the questions of", parts, where(own, subset=one)) for one in _subsets(own)]


def differences(rows: Sequence[Row], labels: Mapping[str, str], level: str) -> list[Presented]:
    """Human less model, of the consensus where there is one, else of each rater."""
    parts = [
        (Column("Model", False), text("model", labels)),
        (Column("Setting", False), text("setting")),
        (Column("Reader", False), _reader),
        (Column("Reader %"), percent("human")),
        (Column("Model %"), percent("model_accuracy")),
        (Column("Points"), signed("difference")),
        (Column(f"{level} interval"), _interval("low", "high")),
        (Column("Questions"), whole("questions")),
        (Column("Patients"), whole("patients")),
    ]
    tables = []
    for subset in _subsets(rows):
        own = where(rows, subset=subset)
        own = where(own, kind="consensus") or own
        own = sorted(own, key=lambda row: (row["model"], row["setting"]))
        tables.append(_table("Reader minus model on the questions of", parts, own))
    return tables


def agreement(rows: Sequence[Row], level: str) -> list[Presented]:
    """Beyond chance, over all raters of a study; pairs of raters stand in the file alone."""
    parts = [
        (Column("Of", False), lambda row: Cell(_OF.get(row["of"], row["of"]), numeric=False)),
        (Column("Statistic", False), text("statistic")),
        (Column("Raters", False), text("rated_by")),
        (Column("Questions"), whole("items")),
        (Column("Value"), plain("value", 2)),
        (Column(f"{level} interval"), _plain_interval),
        (Column("Note", False), text("note")),
    ]
    tables = []
    for subset in _subsets(rows):
        own = [row for row in where(rows, subset=subset) if row["statistic"].startswith("Krippendorff")]
        tables.append(make(f"Agreement between the raters of {subset}", parts, own))
    return tables


_OF = {
    "answer": "The own answer",
    "agreement": "Agreement with the given answer",
    "relevance": "Clinical relevance",
    "confidence": "Confidence",
    "answerable": "Answerable from the images",
}


def _subsets(rows: Sequence[Row]) -> list[str]:
    return ordered(rows, "subset")


def _table(start: str, parts: Sequence[tuple[Column, Writer]], rows: Sequence[Row]) -> Presented:
    subset, dataset = rows[0]["subset"], rows[0]["dataset"]
    return make(f"{start} {subset} ({dataset})", parts, rows, dataset=dataset)


def _who(row: Row, labels: Mapping[str, str]) -> str:
    if row["kind"] == "model":
        return labels.get(row["model"], row["model"])
    if row["kind"] == "consensus":
        raters = row.get("raters")
        return f"Consensus of {raters} readers" if raters else "Consensus"
    return f"Reader {row['rater']}"


def _reader(row: Row) -> Cell:
    return Cell(_who(row, {}), numeric=False)


def _no_answer(row: Row) -> Cell:
    """Unparsed, refused and truncated together; none of a person's."""
    if row["kind"] != "model":
        return Cell(DASH)
    count = sum(int(number(row[status]) or 0) for status in ("unparsed", "refused", "truncated"))
    return Cell(f"{count:,}", marked=bool(count))


def _interval(low: str, high: str) -> Writer:
    return lambda row: Cell(interval(number(row[low]), number(row[high])) or DASH)


def _plain_interval(row: Row) -> Cell:
    low, high = number(row["low"]), number(row["high"])
    return Cell(DASH if low is None or high is None else f"[{plain('low', 2)(row).text}, {plain('high', 2)(row).text}]")
