"""The studies of a run that pass some filters: what the list of studies shows, sorted and counted.

Filters are compared as values with what the records hold; a value that none has finds nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, get_args

import numpy as np

from overread.core.records import Question, Study
from overread_viewer.catalogue import Catalogue
from overread_viewer.errors import BadRequest
from overread_viewer.ignoring import ranking

State = Literal["all", "usable", "rejected"]
Outcome = Literal["any", "wrong", "right", "unreadable", "flips", "stays"]
Order = Literal["study", "patient", "questions", "wrong", "flips"]

OUTCOMES: dict[str, str] = {
    "any": "Any answers",
    "wrong": "Has wrong answers",
    "right": "All answers correct",
    "unreadable": "Has answers that could not be used",
    "flips": "Has answers that changed with the image",
    "stays": "Has answers, none changed with the image",
}
ORDERS: dict[str, str] = {
    "study": "Study",
    "patient": "Patient",
    "questions": "Questions, most first",
    "wrong": "Wrong answers, most first",
    "flips": "Changed answers, most first",
}
STATES: dict[str, str] = {"all": "All", "usable": "Usable", "rejected": "Rejected"}
LONGEST = 200
"""Letters of a filter; more is no search."""


@dataclass(frozen=True)
class Filters:
    """What the list is filtered and sorted by; empty texts filter nothing.

    text   stands in the name, the report or a question, whatever its case
    label  `topic: value`, as `labels_of` gives them
    model  whose answers `outcome` looks at; empty for those of any model
    """

    dataset: str = ""
    text: str = ""
    patient: str = ""
    label: str = ""
    modality: str = ""
    state: State = "all"
    model: str = ""
    outcome: Outcome = "any"
    order: Order = "study"

    def __post_init__(self) -> None:
        for name, kinds in (("state", State), ("outcome", Outcome), ("order", Order)):
            if getattr(self, name) not in get_args(kinds):
                raise BadRequest(f"{name}: {getattr(self, name)[:80]!r} is none of {', '.join(get_args(kinds))}")
        for name in ("dataset", "text", "patient", "label", "modality", "model"):
            if len(getattr(self, name)) > LONGEST:
                raise BadRequest(f"{name}: longer than {LONGEST} letters")


@dataclass(frozen=True)
class Counts:
    """A study's answers under the setting with its own image, and how many changed when the image was swapped."""

    asked: int = 0
    wrong: int = 0
    unreadable: int = 0
    pairs: int = 0
    flips: int = 0

    def plus(self, other: Counts) -> Counts:
        return Counts(*(a + b for a, b in zip(vars(self).values(), vars(other).values(), strict=True)))


@dataclass(frozen=True)
class Line:
    """A study in the list."""

    study: Study
    questions: int
    counts: Counts


def found(catalogue: Catalogue, filters: Filters) -> list[Line]:
    """The studies that pass, in order."""
    datasets = [filters.dataset] if filters.dataset else catalogue.datasets
    lines = [line for dataset in datasets for line in _lines(catalogue, dataset, filters)]
    keys = {
        "study": lambda line: (0, line.study.dataset, line.study.study),
        "patient": lambda line: (0, line.study.patient, line.study.study),
        "questions": lambda line: (-line.questions, line.study.dataset, line.study.study),
        "wrong": lambda line: (-line.counts.wrong, line.study.dataset, line.study.study),
        "flips": lambda line: (-line.counts.flips, line.study.dataset, line.study.study),
    }
    return sorted(lines, key=keys[filters.order])


def labels_of(catalogue: Catalogue, datasets: Iterable[str]) -> dict[str, list[str]]:
    """The values of each topic that some study has."""
    topics: dict[str, set[str]] = {}
    for dataset in datasets:
        for study in catalogue.studies(dataset).values():
            for topic, value in study.labels.items():
                topics.setdefault(topic, set()).add(value)
    return {topic: sorted(values) for topic, values in sorted(topics.items())}


def own_setting(catalogue: Catalogue, dataset: str) -> str:
    """The setting whose answers the list counts: that of the image swap, else the first that was run."""
    pair = ranking(catalogue, dataset).pair
    return pair[0] if pair is not None else catalogue.settings(dataset)[0]


def _lines(catalogue: Catalogue, dataset: str, filters: Filters) -> Iterable[Line]:
    counts = _counts(catalogue, dataset, filters.model)
    questions = catalogue.questions_by_study(dataset)
    wanted = filters.text.strip().casefold()
    for study in catalogue.studies(dataset).values():
        own = counts.get(study.study, Counts())
        if (
            (filters.modality and study.modality != filters.modality)
            or (filters.patient and study.patient != filters.patient.strip())
            or (filters.state != "all" and (study.problem is None) != (filters.state == "usable"))
            or (
                filters.label and not any(f"{topic}: {value}" == filters.label for topic, value in study.labels.items())
            )
            or not _answered(own, filters.outcome)
            or (wanted and not _says(study, questions.get(study.study, ()), wanted))
        ):
            continue
        yield Line(study, len(questions.get(study.study, ())), own)


def _answered(counts: Counts, outcome: Outcome) -> bool:
    return {
        "any": True,
        "wrong": counts.wrong > 0,
        "right": counts.asked > 0 and counts.wrong == 0 and counts.unreadable == 0,
        "unreadable": counts.unreadable > 0,
        "flips": counts.flips > 0,
        "stays": counts.pairs > 0 and counts.flips == 0,
    }[outcome]


def _says(study: Study, questions: Sequence[Question], wanted: str) -> bool:
    if wanted in study.study.casefold() or any(wanted in text.casefold() for text in study.report.values()):
        return True
    return any(wanted in one.stem.casefold() for one in questions)


# -- counted by study ------------------------------------------------------------------------------------------------


def _counts(catalogue: Catalogue, dataset: str, model: str) -> dict[str, Counts]:
    """By study: of one model, or of all together."""
    models = [model] if model else list(catalogue.models(dataset))
    total: dict[str, Counts] = {}
    for one in models:
        if one not in catalogue.models(dataset):
            continue
        own: dict[str, Counts] = catalogue.from_tables(
            f"studies of {dataset} by {one}", partial(_counted, catalogue, dataset, one)
        )
        for study, counts in own.items():
            total[study] = total[study].plus(counts) if study in total else counts
    return total


def _counted(catalogue: Catalogue, dataset: str, model: str) -> dict[str, Counts]:
    pair = ranking(catalogue, dataset).pair
    own = own_setting(catalogue, dataset)
    if not catalogue.runs(dataset, model, own):
        return {}
    one = catalogue.answers(dataset, model, own, 1)
    names, places = np.unique(one.study.astype(str), return_inverse=True)
    answered = one.status == "answered"
    columns = {
        "asked": np.ones(len(places), bool), "wrong": answered & ~one.correct, "unreadable": ~answered,
    }  # fmt: skip
    if pair is not None and catalogue.runs(dataset, model, pair[1]):
        other = catalogue.answers(dataset, model, pair[1], 1)
        rows = np.array([other.rows.get(question, -1) for question in one.question], dtype=np.int64)
        choice = np.where(rows >= 0, other.choice[rows], -1) if len(other.choice) else np.full(len(rows), -1)
        columns["pairs"] = (one.choice >= 0) & (choice >= 0)
        columns["flips"] = columns["pairs"] & (one.choice != choice)
    sums = {name: np.bincount(places, weights=values, minlength=len(names)) for name, values in columns.items()}
    return {
        str(study): Counts(**{name: int(values[place]) for name, values in sums.items()})
        for place, study in enumerate(names)
    }
