"""A reader study at work: its file, its run and its database brought together.

The first start draws the questions and stores them. Later starts go on with what is stored; where the file or the run
has changed meanwhile, `remarks` says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Protocol

from overread.core.errors import BadInput, unknown
from overread.core.records import Picture, Question, Study
from overread.images.files import MASKS
from overread.views.slice.drawing import USUAL_ORDER
from overread_viewer.errors import NotThere
from overread_viewer.readers.database import Asked, Database, Rater, utc_now
from overread_viewer.readers.readers_file import Fixed, ReadersFile, differences, load
from overread_viewer.readers.sampling import assignments, chosen_questions, option_orders


class Run(Protocol):
    """What is read of a run; `web.catalogue.Catalogue` is one."""

    def studies(self, dataset: str) -> Mapping[str, Study]: ...
    def questions(self, dataset: str) -> Mapping[str, Question]: ...
    def pictures(self, dataset: str, study: str) -> list[Picture]: ...
    def folder(self, dataset: str) -> Path: ...
    def restricted(self, dataset: str) -> bool: ...


@dataclass
class ReaderStudy:
    """An opened study. `fixed` is what it began with, whatever the file says now."""

    file: Path
    readers: ReadersFile
    fixed: Fixed
    run: Run
    database: Database
    remarks: list[str] = field(default_factory=list)

    @property
    def dataset(self) -> str:
        return self.fixed.dataset

    @cached_property
    def restricted(self) -> bool:
        return self.run.restricted(self.dataset)

    def pictures(self, study: str) -> list[Picture]:
        """The pictures that a rater sees of a study, in their order."""
        return pictures_of(self.run, self.fixed, study)

    def series(self, study: str) -> list[str]:
        """The names of the whole series that a rater may scroll through."""
        return series_of(self.run, self.fixed, study)

    def links(self, address: str) -> list[tuple[Rater, str]]:
        """The open links, by rater. address   as in http://127.0.0.1:8008"""
        return [(one, f"{address}/read/{one.token}") for one in self.database.raters() if one.open]

    def organiser_link(self, address: str) -> str:
        return f"{address}/read/{self.database.organiser()}"


def open_study(file: Path, run: Run, clock: Callable[[], datetime] = utc_now) -> ReaderStudy:
    """Open the study of a readers.yaml; it begins if it has not.

    raises   BadConfig or BadInput for a file, a run or a database that does not fit
    """
    readers = load(file)
    database = Database(Path(readers.database), clock)
    try:
        if (began := database.begun()) is None:
            database.begin(readers.name, readers.dataset, readers.fixed().model_dump(), _asked(file, readers, run))
            began = database.begun()
            assert began is not None
        name, dataset, stored = began
        if (name, dataset) != (readers.name, readers.dataset):
            raise BadInput(
                f"{file}: database: {readers.database} holds study {name} of dataset {dataset}, not {readers.name} of "
                f"{readers.dataset}; name another database"
            )
        fixed = Fixed.model_validate(stored)
        study = ReaderStudy(file, readers, fixed, run, database)
        questions = database.questions()
        for rater, display in readers.raters.items():
            database.add_rater(rater, display, assignments(fixed, rater, questions))
        closed = database.keep_open(list(readers.raters))
        study.remarks += _remarks(study, questions, closed)
    except BaseException:
        database.close()
        raise
    return study


def stored_study(file: Path) -> tuple[ReadersFile, Database]:
    """The file and the database of a study that has begun, without its run: for exports and progress."""
    readers = load(file)
    path = Path(readers.database)
    if not path.exists():
        raise BadInput(
            f"{file}: database: there is no {path} yet; `overread serve RUN --study {file}` begins the study"
        )
    database = Database(path)
    if database.begun() is None:
        raise BadInput(f"{path}: holds no study yet; `overread serve RUN --study {file}` begins it")
    return readers, database


def pictures_of(run: Run, fixed: Fixed, study: str) -> list[Picture]:
    if fixed.view is None:
        return []
    found = [one for one in run.pictures(fixed.dataset, study) if one.view == fixed.view and one.depth is None]
    return sorted(found, key=lambda one: one.order)


def series_of(run: Run, fixed: Fixed, study: str) -> list[str]:
    """`all` leaves the masks out: they tell a rater where the tumour is. Named one by one they are shown."""
    images = run.studies(fixed.dataset)[study].images
    if fixed.series == "none":
        return []
    if fixed.series == "all":
        places = {name: place for place, name in enumerate(USUAL_ORDER)}
        return sorted(set(images) - MASKS, key=lambda name: (places.get(name, len(places)), name))
    return [name for name in fixed.series if name in images]


def _asked(file: Path, readers: ReadersFile, run: Run) -> list[Asked]:
    """The questions of a study that begins, in the order listed, with those for practice after them."""
    try:
        usable = _usable(file, readers, run)
        counted, practice = chosen_questions(readers, usable)
        orders = option_orders(readers, [*counted, *practice])
    except NotThere as error:
        raise BadInput(f"{file}: dataset: {error}") from None
    except BadInput as error:
        text = str(error)
        raise BadInput(text if text.startswith((f"{file}:", "/")) else f"{file}: {text}") from None
    fixed = readers.fixed()
    return [
        Asked(
            question=one.question,
            study=one.study,
            patient=one.patient,
            stem=one.stem,
            options=one.options,
            answer=one.answer_index,
            shown=orders[one.question],
            practice=number >= len(counted),
            pictures=tuple(picture.pixels for picture in pictures_of(run, fixed, one.study)),
        )
        for number, one in enumerate([*counted, *practice])
    ]


def _usable(file: Path, readers: ReadersFile, run: Run) -> list[Question]:
    """The questions of studies of which all that is to be shown is there."""
    fixed, dataset = readers.fixed(), readers.dataset
    studies = {name: study for name, study in run.studies(dataset).items() if study.problem is None}
    views = {one.view: one.depth for study in studies for one in run.pictures(dataset, study)}
    if readers.view is not None and readers.view not in views:
        raise BadInput(
            f"view: {unknown('view', readers.view, (name for name, depth in views.items() if depth is None))}"
        )
    if readers.view is not None and views[readers.view] is not None:
        raise BadInput(f"view: {readers.view} is a volume; let `series` name the series to scroll through")
    if not isinstance(readers.series, str):
        there = {name for study in studies.values() for name in study.images}
        for name in readers.series:
            if name not in there:
                raise BadInput(f"series: {unknown('series', name, there)}")

    def whole(study: str) -> bool:
        if study not in studies or (readers.view is not None and not pictures_of(run, fixed, study)):
            return False
        series = series_of(run, fixed, study)
        return len(series) == len(readers.series) if isinstance(readers.series, tuple) else (
            bool(series) or readers.series == "none"
        )  # fmt: skip

    fits = {study: whole(study) for study in {one.study for one in run.questions(dataset).values()}}
    return [one for one in run.questions(dataset).values() if fits[one.study]]


def _remarks(study: ReaderStudy, questions: Sequence[Asked], closed: Sequence[Rater]) -> list[str]:
    file, found = study.file, []
    for key in differences(study.fixed, study.readers.fixed()):
        found.append(f"{file}: {key} is not what the study began with; it goes on with what it began with")
    there, studies = study.run.questions(study.dataset), study.run.studies(study.dataset)
    gone, missing, changed = [], [], []
    for one in questions:
        if one.question not in there:
            gone.append(one.question)
        if one.study not in studies or not (study.pictures(one.study) or study.series(one.study)):
            missing.append(one.question)
        elif tuple(picture.pixels for picture in study.pictures(one.study)) != one.pictures:
            changed.append(one.question)
    for names, what in (
        (gone, "are no longer in the run: the study goes on with the questions that it began with"),
        (missing, "have no images in the run any more: raters can't go on past them; restore the run"),
        (changed, "have other pictures than when the study began: what was read before and after can't be pooled"),
    ):
        if names:
            found.append(f"{len(names)} of {len(questions)} questions (the first: {names[0]}) {what}")
    for rater in closed:
        found.append(f"{file}: rater {rater.rater} is no longer named: the link is closed, the ratings are kept")
    return found
