"""A run's results to be looked at: studies, questions, pictures, trials and answers by name. Nothing is written.

The one place of the viewer that knows how results/<name> is laid out. A file is read when it is first needed and again
when it changed; what pages need of every answer is kept as narrow columns (`answers.py`), and of trials and responses
whole files are kept as Arrow tables up to a budget, from which a row is made a record when a page asks for it.
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn, TypeVar

from overread.config.datasets import DatasetSection
from overread.config.kinds import SOURCES
from overread.core.errors import BadInput
from overread.core.inputs import regular
from overread.core.records import (
    Picture,
    Question,
    Response,
    Study,
    Substitute,
    Trial,
    read_columns,
    read_pictures,
    read_questions,
    read_studies,
    read_substitutes,
)
from overread.settings.edit import control_questions
from overread.settings.setting import read_settings
from overread_viewer.answers import Answers, Asked, answers_of, asked_of
from overread_viewer.errors import NotThere
from overread_viewer.kept import Kept

T = TypeVar("T")

KEYS = ("name", "cells", "settings", "comparisons", "statistics", "models", "datasets")
"""What the viewer reads of study.json."""

LARGE_BYTES = 384 * 2**20
"""What the Arrow tables of trials and responses may take together; the least recently used are dropped."""

COLUMNS = ("question", "status", "answer", "choice", "logprobs")


class Catalogue:
    """Read-only view of a finished run.

    results  results/<name>
    raises   BadInput if that is no run's folder, or one that is not finished, naming what it lacks
    """

    def __init__(self, results: Path) -> None:
        self.results = results
        self.spec: dict[str, Any] = _spec(results)
        self.name = str(self.spec["name"])
        self._cells: dict[str, dict[tuple[str, str], int]] = {}
        for cell in self.spec["cells"]:
            self._cells.setdefault(cell["dataset"], {})[cell["model"], cell["setting"]] = int(cell["runs"])
        self.datasets: tuple[str, ...] = tuple(sorted(self._cells))
        self._models = {name: tuple(sorted({model for model, _ in cells})) for name, cells in self._cells.items()}
        self._most_runs: dict[tuple[str, str], int] = {}
        for dataset, cells in self._cells.items():
            for (_, setting), runs in cells.items():
                self._most_runs[dataset, setting] = max(runs, self._most_runs.get((dataset, setting), 0))
        self._trials_paths = {
            (dataset, setting, run): results / dataset / "trials" / setting / f"run-{run}.parquet"
            for (dataset, setting), runs in self._most_runs.items()
            for run in range(1, runs + 1)
        }
        self._responses_paths = {
            (dataset, model, setting, run): results / dataset / "responses" / model / setting / f"run-{run}.parquet"
            for dataset, cells in self._cells.items()
            for (model, setting), runs in cells.items()
            for run in range(1, runs + 1)
        }
        self._small: Kept = Kept()
        self._large: Kept = Kept(LARGE_BYTES)
        self._require()

    def _require(self) -> None:
        """BadInput for a run that is not finished."""
        _require(self.results, self.datasets)

    # -- what there is -----------------------------------------------------------------------------------------------

    def folder(self, dataset: str) -> Path:
        """results/<name>/<dataset>."""
        self._known(dataset)
        return self.results / dataset

    def models(self, dataset: str) -> tuple[str, ...]:
        """The models that were asked, sorted."""
        self._known(dataset)
        return self._models[dataset]

    def settings(self, dataset: str, model: str | None = None) -> tuple[str, ...]:
        """The settings that were run, of one model or of any, in the order of the config."""
        self._known(dataset)
        there = {setting for one, setting in self._cells[dataset] if model in (None, one)}
        return tuple(name for name in self.spec["settings"] if name in there)

    def runs(self, dataset: str, model: str, setting: str) -> int:
        """How many runs a model has under a setting; 0 if it was not asked under it."""
        self._known(dataset)
        return self._cells[dataset].get((model, setting), 0)

    def label(self, model: str) -> str:
        """How a model is called on a page."""
        return str(self.spec["models"].get(model, {}).get("label", model))

    def section(self, dataset: str) -> DatasetSection:
        """The dataset's section of the config. BadInput for a source whose package is not installed here."""
        self._known(dataset)
        section = self.spec["datasets"][dataset]
        return SOURCES[section["source"]].model_validate(section)

    def restricted(self, dataset: str) -> bool:
        """Whether the dataset's studies may not leave this machine: by the config, or by any of its studies."""
        self._known(dataset)
        section = self.spec["datasets"].get(dataset, {})
        path = self.folder(dataset) / "studies.parquet"

        def any_is() -> bool:
            return any(one.restricted for one in self.studies(dataset).values())

        return bool(section.get("restricted", True)) or self._small.get(path, any_is, part="restricted")

    @property
    def restricted_datasets(self) -> tuple[str, ...]:
        return tuple(name for name in self.datasets if self.restricted(name))

    # -- the nouns ---------------------------------------------------------------------------------------------------

    def studies(self, dataset: str) -> Mapping[str, Study]:
        """By name, also those that can't be used: `problem` says why."""
        path = self.folder(dataset) / "studies.parquet"
        rejected = self.folder(dataset) / "studies_rejected.csv"
        return self._small.get(path, lambda: _studies(path, rejected), also=(rejected,))

    def study(self, dataset: str, study: str) -> Study:
        return _of(self.studies(dataset), "study", study)

    def questions(self, dataset: str) -> Mapping[str, Question]:
        """By id, in the order of study and id."""
        path = self.folder(dataset) / "questions.jsonl"
        return self._small.get(path, lambda: MappingProxyType({one.question: one for one in read_questions(path)}))

    def controls(self, dataset: str) -> Mapping[str, Question]:
        """Questions that settings ask instead of those of the data set, by id: about marks drawn on the pictures."""

        def made() -> Mapping[str, Question]:
            asked = [self.spec["settings"][name] for name in self.settings(dataset)]
            controls = control_questions(asked, self.questions(dataset).values())
            return MappingProxyType({one.question: one for one in controls})

        return self._small.get(self.folder(dataset) / "questions.jsonl", made, part="controls")

    def question(self, dataset: str, question: str) -> Question:
        """One of the data set's questions, or of those that settings ask instead."""
        controls = self.controls(dataset)
        return controls[question] if question in controls else _of(self.questions(dataset), "question", question)

    def asked_of(self, dataset: str, study: str) -> list[Question]:
        """A study's questions in the order of their topics, and those that settings ask instead."""
        controls = [one for one in self.controls(dataset).values() if one.study == study]
        return [*self.questions_of(dataset, study), *sorted(controls, key=lambda one: (one.topic, one.question))]

    def questions_of(self, dataset: str, study: str) -> list[Question]:
        """A study's questions, in the order of their topics."""
        self.study(dataset, study)
        return list(self.questions_by_study(dataset).get(study, ()))

    def questions_by_study(self, dataset: str) -> Mapping[str, Sequence[Question]]:
        """The questions of each study that has some, in the order of their topics."""
        path = self.folder(dataset) / "questions.jsonl"

        def grouped() -> dict[str, list[Question]]:
            found: dict[str, list[Question]] = {}
            for one in sorted(self.questions(dataset).values(), key=lambda one: (one.topic, one.question)):
                found.setdefault(one.study, []).append(one)
            return found

        return self._small.get(path, grouped, part="by study")

    def pictures(self, dataset: str, study: str) -> list[Picture]:
        """A study's rendered pictures, by view and order."""
        self.study(dataset, study)
        return list(self._pictures_by_study(dataset).get(study, ()))

    def unedited(self, dataset: str, picture: Picture) -> Picture | None:
        """The same picture without its edits; None if it has none, or no setting asked for it without."""
        if picture.edit is None:
            return None
        same = [
            one
            for one in self.pictures(dataset, picture.study)
            if one.edit is None and one.order == picture.order and picture.view.startswith(f"{one.view}.")
        ]
        return max(same, key=lambda one: len(one.view), default=None)

    def file(self, path: str) -> Path:
        """A file of the run's folder, by a path that is not a request's own.

        raises  NotThere if it is none, or a symbolic link leads out of the folder
        """
        found = self.results / path
        real = os.path.realpath(found)
        if not os.path.isfile(real) or not Path(real).is_relative_to(os.path.realpath(self.results)):
            raise NotThere(f"{path} is no file of this run")
        return found

    def picture_at(self, dataset: str, path: str) -> Path | None:
        """The file of a picture that a Picture or a trial's Block names; None for any other path.

        raises  NotThere if a symbolic link leads it out of the run's folder
        """
        return self.file(f"{dataset}/{path}") if path in self._picture_paths(dataset) else None

    def substitutes(self, dataset: str) -> list[Substitute]:
        path = self.folder(dataset) / "substitutes.csv"
        return self._small.get(path, lambda: read_substitutes(path)) if path.exists() else []

    def trial(self, dataset: str, setting: str, run: int, question: str) -> Trial | None:
        """The trial of a question; None if the setting does not ask it."""
        asked = self.asked(dataset, setting, run)
        row = asked.rows.get(question)
        if row is None:
            self.question(dataset, question)
            return None
        return Trial.model_validate(self._row(self._trials_path(dataset, setting, run), Trial, row, question))

    def response(self, dataset: str, model: str, setting: str, run: int, question: str) -> Response | None:
        """What a model gave; None if it was not asked this question."""
        answers = self.answers(dataset, model, setting, run)
        row = answers.rows.get(question)
        if row is None:
            self.question(dataset, question)
            return None
        path = self._responses_path(dataset, model, setting, run)
        return Response.model_validate(self._row(path, Response, row, question))

    def asked(self, dataset: str, setting: str, run: int) -> Asked:
        """What the trials of a setting and run ask, as columns in the file's order."""
        path = self._trials_path(dataset, setting, run)
        return self._small.get(path, lambda: asked_of(path))

    def answers(self, dataset: str, model: str, setting: str, run: int) -> Answers:
        """All answers of a model under a setting in a run, as columns in the order of its file."""
        path, trials = self._responses_path(dataset, model, setting, run), self._trials_path(dataset, setting, run)
        asked = self.asked(dataset, setting, run)
        return self._small.get(path, lambda: answers_of(path, asked), also=(trials,))

    def table(self, name: str) -> list[dict[str, str]]:
        """The rows of tables/<name>.csv."""
        path = self.results / "tables" / f"{name}.csv"
        if name not in self.tables():
            raise NotThere.named("table", name, self.tables())
        return self._small.get(path, lambda: _table(name, path))

    def tables(self) -> list[str]:
        """The names of the tables there are."""
        return sorted(path.stem for path in (self.results / "tables").glob("*.csv"))

    def from_tables(self, name: str, make: Callable[[], Any]) -> Any:
        """What `make` draws from the tables and answers, under `name`, kept until a table changes."""
        paths = [self.results / "tables" / f"{one}.csv" for one in self.tables()]
        return self._small.get(self.results / "tables", make, part=name, also=tuple(paths))

    def load(self) -> None:
        """Read all that pages need of every answer, so that no page waits for it."""
        for dataset in self.datasets:
            self.questions_by_study(dataset)
            self._picture_paths(dataset)
            for (model, setting), runs in self._cells[dataset].items():
                for run in range(1, runs + 1):
                    self.answers(dataset, model, setting, run)
        for name in self.tables():
            self.table(name)

    # -- inside ------------------------------------------------------------------------------------------------------

    def _known(self, dataset: str) -> None:
        if dataset not in self._cells:
            raise NotThere.named("dataset", dataset, self.datasets)

    def _trials_path(self, dataset: str, setting: str, run: int) -> Path:
        path = self._trials_paths.get((dataset, setting, run))
        return path if path is not None else self._no_cell(dataset, setting, run)

    def _responses_path(self, dataset: str, model: str, setting: str, run: int) -> Path:
        path = self._responses_paths.get((dataset, model, setting, run))
        return path if path is not None else self._no_cell(dataset, setting, run, model)

    def _no_cell(self, dataset: str, setting: str, run: int, model: str | None = None) -> NoReturn:
        """Names that come from an address are looked up, and never become a path: which of them is none?"""
        self._known(dataset)
        if model is not None and model not in self._models[dataset]:
            raise NotThere.named("model", model, self._models[dataset])
        if setting not in self.settings(dataset, model):
            raise NotThere.named("setting", setting, self.settings(dataset, model))
        raise NotThere(f"no run {run} of setting {setting!r}")

    def _row(self, path: Path, kind: type[Trial] | type[Response], row: int, question: str) -> dict[str, Any]:
        """A row of a file, of which the columns said that it is the question's."""
        table = self._large.get(path, lambda: read_columns(path, kind), size=lambda table: int(table.nbytes))
        found: list[dict[str, Any]] = table.slice(row, 1).to_pylist(maps_as_pydicts="strict")
        if not found or found[0]["question"] != question:
            raise BadInput(f"{path}: changed while it was read; open the page again")
        return found[0]

    def _pictures_by_study(self, dataset: str) -> Mapping[str, Sequence[Picture]]:
        path = self.folder(dataset) / "images.parquet"

        def grouped() -> dict[str, list[Picture]]:
            found: dict[str, list[Picture]] = {}
            for one in read_pictures(path):
                found.setdefault(one.study, []).append(one)
            return found

        return self._small.get(path, grouped)

    def _picture_paths(self, dataset: str) -> frozenset[str]:
        """The paths that pictures and the trials' image blocks name."""
        path = self.folder(dataset) / "images.parquet"
        runs = [(setting, run) for name, setting, run in self._trials_paths if name == dataset]
        named = {one.path for many in self._pictures_by_study(dataset).values() for one in many}
        shown = [self.asked(dataset, setting, run).images for setting, run in sorted(runs)]
        trials = [self._trials_path(dataset, setting, run) for setting, run in sorted(runs)]
        return self._small.get(path, lambda: frozenset(named.union(*shown)), part="paths", also=tuple(trials))


# -- reading ---------------------------------------------------------------------------------------------------------


def _of(there: Mapping[str, T], kind: str, name: str) -> T:
    try:
        return there[name]
    except KeyError:
        raise NotThere.named(kind, name) from None


def _spec(results: Path) -> dict[str, Any]:
    path = results / "study.json"
    if not results.is_dir():
        raise BadInput(f"{results}: no such folder; give the folder of a run, results/<name>")
    try:
        content = json.loads(regular(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise BadInput(f"{results}: not the folder of a run: it has no study.json; give results/<name>") from None
    except (OSError, ValueError) as error:
        raise BadInput(f"{path}: can't be read: {error}; run the workflow again") from None
    missing = [key for key in KEYS if key not in content]
    if missing:
        raise BadInput(f"{path}: lacks {', '.join(missing)}; run the workflow again")
    return {**content, "settings": read_settings(content["settings"])}


def _require(results: Path, datasets: Sequence[str]) -> None:
    """BadInput naming what an unfinished run lacks."""
    parts = [f"{name}/{file}" for name in datasets for file in ("studies.parquet", "questions.jsonl", "images.parquet")]
    parts += [f"tables/{name}.csv" for name in ("dataset", "accuracy", "flips", "effects")] + ["report.html"]
    missing = [part for part in parts if not (results / part).is_file()]
    if missing:
        more = f" and {len(missing) - 4} more" if len(missing) > 4 else ""
        raise BadInput(
            f"{results}: not finished: it lacks {', '.join(missing[:4])}{more}; run snakemake to its end, then serve it"
        )


def _studies(path: Path, rejected: Path) -> Mapping[str, Study]:
    """With the reason of those that the images stage could not use: their own file says only what the source knew."""
    found = {one.study: one for one in read_studies(path, with_problems=True)}
    for row in _rows(rejected) if rejected.exists() else ():
        study = found.get(row["study"])
        if study is not None and study.problem is None:
            found[study.study] = study.model_copy(update={"problem": row["reason"]})
    return MappingProxyType(found)


def _table(name: str, path: Path) -> list[dict[str, str]]:
    """A table as its module declares it: one that lacks a column, or holds what is none of it, is damaged."""
    from overread.estimates import tables

    regular(path)
    return tables.table(name).read(path) if name in {*tables.names(), *tables.names(readers=True)} else _rows(path)


def _rows(path: Path) -> list[dict[str, str]]:
    try:
        with regular(path).open(newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}; make the tables again") from None
    except (csv.Error, UnicodeDecodeError) as error:
        raise BadInput(f"{path}: not readable as CSV: {error}; make the tables again") from None
