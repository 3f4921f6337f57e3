"""A reader of the gallery in a real study: a trial as the reader sees it, with draws that are hashes of the trial.

The draws hang on the same things as in a simulation, so they are the same in every batch, on every machine and when a
job is killed; a draw that hangs on nothing differs by setting and run.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from overread.core.records import Trial
from overread.gallery.cohorts import FloatArray
from overread.gallery.readers import ONE_FINDING, Asked, Shown

Looked = Literal["question", "picture", "pixels", "fresh"]


def hashed(content: list[object]) -> int:
    """The first 64 bits of the SHA-256 of `content` as JSON."""
    return int.from_bytes(hashlib.sha256(json.dumps(content).encode()).digest()[:8], "big")


@dataclass(frozen=True)
class HashedDraws:
    """`readers.Draws` of one trial, as arrays of one."""

    trial: Trial
    seed: int

    def question(self, what: str) -> FloatArray:
        return self._draw("question", what, self.trial.question)

    def picture(self, what: str, *, own: bool = False) -> FloatArray:
        trial = self.trial
        shown = trial.study if own else trial.image_study or ("black" if trial.images else "none")
        return self._draw("picture", what, trial.topic, shown)

    def pixels(self, what: str) -> FloatArray:
        return self._draw("pixels", what, self.trial.topic, *(block.pixels for block in self.trial.images))

    def fresh(self, what: str) -> FloatArray:
        trial = self.trial
        return self._draw("fresh", what, trial.question, trial.trial, trial.setting, trial.run)

    def _draw(self, *content: object) -> FloatArray:
        return np.array([hashed([self.seed, *content]) / 2**64])


def asked(trial: Trial, *, seed: int, prevalence: Mapping[str, float], usual: float, finding: str | None) -> Asked:
    """The trial as an arm of one question, in places as written.

    prevalence  share of yes by topic; `usual` for a topic that it does not name
    finding     the topic that a reader of one finding reads
    """
    shown_as = {place: at for at, place in enumerate(trial.permutation)}
    written = [trial.options[shown_as[place]] for place in range(len(trial.options))]
    yes_no = [option.casefold() for option in written] == ["yes", "no"]
    report = trial.report_label if trial.has_report else None

    def place(text: str | None) -> np.ndarray:
        return np.array([written.index(text) if text in written else -1])

    return Asked(
        shown=_shown(trial), run=trial.run, topic=np.array([ONE_FINDING if trial.topic == finding else -1]),
        prevalence=np.array([prevalence.get(trial.topic, usual) if yes_no else 1 / len(written)]),
        n_options=np.array([len(written)]), yes_no=np.array([yes_no]),
        truth=place(trial.image_label if trial.image_study is not None else None), own_truth=place(trial.label),
        told=place(report), first=np.array([trial.permutation[0]]), draws=HashedDraws(trial, seed),
    )  # fmt: skip


def _shown(trial: Trial) -> Shown:
    """An edited picture of the question's own study is its own: what was edited shows in the pixels alone."""
    if not trial.images:
        return "none"
    if trial.image_study is None:
        return "black"
    return "own" if trial.image_study == trial.study else "substitute"
