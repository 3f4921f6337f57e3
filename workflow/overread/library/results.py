"""A finished run as data frames. What `overread.open` gives.

Columns are those of the files (docs/tables.md), but for names that mean one thing in one file and another in the next:

    answer   questions: `correct_answer`, its text; trials: `correct_place`, from 0 as shown;
             responses: `given_place`, from 0 as shown
    choice   responses: `given_as_written`, the same option's place as written
    options  questions: `options_as_written`; trials: `options_shown`
    dropped  trials: `dropped_sentences`, of the report
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from overread.core.errors import BadInput, unknown
from overread.core.inputs import regular
from overread.core.records import Picture, Record, Response, Study, Trial, read_columns, read_questions
from overread.estimates import tables

if TYPE_CHECKING:
    import pandas as pd

    from overread.settings.setting import Setting

QUESTION_NAMES = {"answer": "correct_answer", "options": "options_as_written"}
TRIAL_NAMES = {"answer": "correct_place", "options": "options_shown", "dropped": "dropped_sentences"}
RESPONSE_NAMES = {"answer": "given_place", "choice": "given_as_written"}
KEY = ["dataset", "setting", "run", "question"]
"""What tells one trial of a run from all others. Its id does not: trials of two runs or settings that show the same
have the same id."""


class Results:
    """A run in `folder`, results/<name>. Every frame is read when it is first asked for, and kept."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.cells = _cells(self.folder)

    def __repr__(self) -> str:
        return f"<overread results of {len(self.cells)} cells in {self.folder}>"

    @property
    def datasets(self) -> list[str]:
        return sorted({cell["dataset"] for cell in self.cells})

    @cached_property
    def studies(self) -> pd.DataFrame:
        """One row per study, also those that could not be used: `problem` says why."""
        return self._of_datasets(lambda dataset: _frame(self.folder / dataset / "studies.parquet", Study))

    @cached_property
    def pictures(self) -> pd.DataFrame:
        """One row per picture of a view of a study."""

        def of_dataset(dataset: str) -> pd.DataFrame:
            return _frame(self.folder / dataset / "images.parquet", Picture).assign(dataset=dataset)

        return self._of_datasets(of_dataset)

    @cached_property
    def questions(self) -> pd.DataFrame:
        """One row per question: of the data set, and those about marks that settings ask instead (origin `marks`)."""
        import pandas as pd

        from overread.settings.edit import control_questions

        def of_dataset(dataset: str) -> pd.DataFrame:
            questions = read_questions(self.folder / dataset / "questions.jsonl")
            named = {cell["setting"] for cell in self.cells if cell["dataset"] == dataset}
            asked = [one for name, one in self._settings.items() if name in named]
            rows = [one.model_dump() for one in (*questions, *control_questions(asked, questions))]
            return pd.DataFrame(rows).rename(columns=QUESTION_NAMES).assign(dataset=dataset)

        return self._of_datasets(of_dataset)

    @cached_property
    def _settings(self) -> dict[str, Setting]:
        from overread.settings.setting import read_settings

        return read_settings(_described(self.folder)["settings"])

    @cached_property
    def trials(self) -> pd.DataFrame:
        """One row per trial: a question under a setting in a run. All models are put the same ones."""
        import pandas as pd

        runs: dict[tuple[str, str], int] = {}
        for cell in self.cells:
            key = (cell["dataset"], cell["setting"])
            runs[key] = max(cell["runs"], runs.get(key, 0))
        return pd.concat(
            [
                _frame(self.folder / dataset / "trials" / setting / f"run-{run}.parquet", Trial)
                for (dataset, setting), count in sorted(runs.items())
                for run in range(1, count + 1)
            ],
            ignore_index=True,
        ).rename(columns=TRIAL_NAMES)

    @cached_property
    def answers(self) -> pd.DataFrame:
        """One row per answer: a model's response to a trial, beside what the trial asked and showed.

        `given` is the text of the option that was given; `correct` says whether it is the correct one: no where none
        was given, and missing where the request failed, which counts in no accuracy.

        raises  BadInput for responses that are not those of their trials
        """
        import pandas as pd

        responses = pd.concat(
            [
                _frame(self.folder / dataset / "responses" / model / setting / f"run-{run}.parquet", Response)
                for dataset, model, setting, count in sorted(
                    (cell["dataset"], cell["model"], cell["setting"], cell["runs"]) for cell in self.cells
                )
                for run in range(1, count + 1)
            ],
            ignore_index=True,
        ).rename(columns=RESPONSE_NAMES)
        trials = self.trials.rename(columns={"trial": "trial_asked"})
        joined = responses.merge(trials, on=KEY, how="left", validate="many_to_one")
        strange = joined[joined["trial"] != joined["trial_asked"]]
        if len(strange):
            first = strange.iloc[0]
            place = " / ".join(str(first[name]) for name in ("dataset", "model", "setting"))
            raise BadInput(
                f"{self.folder}: {len(strange)} responses answer other trials than those that are there; the first: "
                f"{place}, run {first['run']}, question {first['question']}; run the study again"
            )
        answers = joined.drop(columns="trial_asked")
        places = answers[["options_shown", "given_place"]].itertuples(index=False, name=None)
        answers["correct_answer"] = [
            options[place] for options, place in zip(answers["options_shown"], answers["correct_place"], strict=True)
        ]
        answers["given"] = [None if pd.isna(place) else options[int(place)] for options, place in places]
        correct = (answers["given_place"] == answers["correct_place"]).fillna(False).astype("boolean")
        answers["correct"] = correct.mask(answers["status"] == "failed")
        order = [
            "dataset",
            "model",
            "setting",
            "run",
            "question",
            "study",
            "patient",
            "topic",
            "status",
            "given",
            "correct",
        ]
        return answers[[*order, *(name for name in answers.columns if name not in order)]]

    @cached_property
    def tables(self) -> Mapping[str, pd.DataFrame]:
        """The tables by name, each as a frame: `tables["accuracy"]`."""
        return _Tables(self.folder / "tables")

    def _of_datasets(self, read: Callable[[str], pd.DataFrame]) -> pd.DataFrame:
        import pandas as pd

        whole = pd.concat([read(dataset) for dataset in self.datasets], ignore_index=True)
        return whole[["dataset", *(name for name in whole.columns if name != "dataset")]]


class _Tables(Mapping[str, "pd.DataFrame"]):
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._read: dict[str, pd.DataFrame] = {}

    def __getitem__(self, name: str) -> pd.DataFrame:
        if name not in list(self):
            raise KeyError(unknown("table", name, list(self)))
        if name not in self._read:
            self._read[name] = _typed(tables.table(name), self.folder)
        return self._read[name]

    def __iter__(self) -> Iterator[str]:
        known = (*tables.names(), *tables.names(readers=True))
        return iter([name for name in known if (self.folder / f"{name}.csv").exists()])

    def __len__(self) -> int:
        return len(list(iter(self)))


def _typed(table: tables.Table, folder: Path) -> pd.DataFrame:
    """A table's rows with the types that its columns declare; a blank number is missing."""
    import pandas as pd

    path = folder / f"{table.name}.csv"
    table.read(path)  # refuses what does not fit
    frame = pd.read_csv(path, dtype=str, keep_default_na=False)
    kinds = {column.name: column.kind for column in table.columns}
    for name in frame.columns:
        kind = kinds.get(name) or (table.more[0].kind if table.more else "text")
        if kind in ("whole", "number"):
            values = pd.to_numeric(frame[name].replace("", None))
            frame[name] = values.astype("Int64" if kind == "whole" else "float64")
    return frame


def _frame(path: Path, kind: type[Record]) -> pd.DataFrame:
    """A Parquet file of records; whole numbers stay whole beside missing ones, maps are dictionaries."""
    import pandas as pd
    import pyarrow as pa

    whole = {pa.int16(): pd.Int16Dtype(), pa.int32(): pd.Int32Dtype()}
    frame: pd.DataFrame = read_columns(path, kind).to_pandas(types_mapper=whole.get, maps_as_pydicts="strict")
    return frame


def _cells(folder: Path) -> list[dict[str, Any]]:
    """The cells of the run as its tables count them: leftovers of an earlier config are none."""
    cells: list[dict[str, Any]] = _described(folder)["cells"]
    return cells


def _described(folder: Path) -> dict[str, Any]:
    for name in ("asked.json", "study.json"):
        path = folder / name
        if path.exists():
            content: dict[str, Any] = json.loads(regular(path).read_text(encoding="utf-8"))
            return content
    raise BadInput(f"{folder}: not the folder of a run: no asked.json; it should be results/<name>")
