"""Trials and responses written out by hand, for tests whose right result is worked out on paper."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from overread.core.records import Block, Response, Status, Trial, write_responses, write_trials
from overread.estimates.scored import by_cell, read_cells
from overread.estimates.spec import Cell

YES_NO = ("yes", "no")


@dataclass(frozen=True)
class Asked:
    """A question as shown, and what was answered. Options are named by their text."""

    question: str
    patient: str
    right: str
    given: str | None
    options: tuple[str, ...] = YES_NO
    shown: tuple[str, ...] | None = None
    status: Status = "answered"
    topic: str = "topic"
    image: tuple[str, str, str | None] | None = None
    """Study, patient and truth of the picture shown."""
    logprobs: tuple[float, ...] | None = None
    """By place shown."""

    def trial(self, dataset: str, setting: str, run: int) -> Trial:
        shown = self.shown or self.options
        study, patient, label = self.image or (None, None, None)
        return Trial(
            dataset=dataset, setting=setting, run=run, question=self.question, topic=self.topic,
            study=f"study of {self.question}", patient=self.patient, image_study=study, image_patient=patient,
            label=self.right, image_label=label, blocks=(Block(role="question", text=self.question),), options=shown,
            permutation=tuple(self.options.index(option) for option in shown), answer=shown.index(self.right),
            readout="choice", restricted=False,
        )  # fmt: skip

    def response(self, trial: Trial, model: str) -> Response:
        place = None if self.given is None else trial.options.index(self.given)
        status = self.status if self.given is not None or self.status != "answered" else "unparsed"
        return Response(
            request="key", trial=trial.trial, question=trial.question, dataset=trial.dataset, model=model,
            setting=trial.setting, run=trial.run, text=self.given or "", status=status, answer=place,
            choice=None if place is None else trial.permutation[place], logprobs=self.logprobs,
        )  # fmt: skip


def write_cell(
    results: Path, setting: str, *runs: Sequence[Asked], dataset: str = "data", model: str = "reader"
) -> dict[str, Any]:
    """The trials' and the responses' file of each run of a cell; returns the cell for a spec."""
    for run, asked in enumerate(runs, start=1):
        trials = [one.trial(dataset, setting, run) for one in asked]
        pairs = sorted(zip(trials, asked, strict=True), key=lambda pair: (pair[0].study, pair[0].question))
        write_trials(trials, results / dataset / "trials" / setting / f"run-{run}.parquet")
        responses = [one.response(trial, model) for trial, one in pairs]
        write_responses(responses, results / dataset / "responses" / model / setting / f"run-{run}.parquet")
    return {"dataset": dataset, "model": model, "setting": setting, "runs": len(runs)}


def read(results: Path, *cells: dict[str, Any]) -> dict[tuple[str, str, str], pd.DataFrame]:
    """The scored rows of cells that `write_cell` returned, by cell."""
    return by_cell(read_cells(results, [Cell.model_validate(cell) for cell in cells]))
