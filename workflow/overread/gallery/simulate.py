"""A simulated study: the frames that the project's tables are made of, filled by a reader of the gallery.

What does not depend on the answers is made once per cohort and arm, and shared by all readers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from overread.estimates.inference.swap import OUTCOMES, Swap
from overread.estimates.scored import CellKey
from overread.gallery.cohorts import Cohort, FloatArray, IntArray, _alike
from overread.gallery.readers import Asked, Given, Reader, Shown

DATASET = "gallery"
STATUS = pd.array(["refused", "answered"], dtype="str")
YES_NO = np.array(["yes", "no"], dtype=object)


@dataclass(frozen=True)
class Arm:
    """What a setting of the study shows, and in how many runs."""

    setting: str
    shown: Shown
    report: bool = False
    runs: int = 1


Answers = dict[str, list[Given]]
"""What a reader answered, by setting; one entry per run."""


class Study:
    """A cohort with its arms, ready to be put to readers."""

    def __init__(self, cohort: Cohort, arms: Sequence[Arm]) -> None:
        self.cohort = cohort
        self.arms = {arm.setting: arm for arm in arms}

    def answers(self, reader: Reader, seed: int | Sequence[int]) -> Answers:
        """The reader's answers to every arm and run; the same seed gives the same answers."""
        drawn = _Drawn(self.cohort, np.random.default_rng(seed))
        return {
            arm.setting: [reader.answer(self._asked(arm, run, drawn)) for run in range(1, arm.runs + 1)]
            for arm in self.arms.values()
        }

    def cells(self, answers: Answers, model: str) -> dict[CellKey, pd.DataFrame]:
        """The frame of each cell, as `scored.by_cell` gives it."""
        found = {}
        for setting, given in answers.items():
            arm = self.arms[setting]
            runs = [self._scored(arm, run, each, model) for run, each in enumerate(given, start=1)]
            whole = pd.concat(runs, ignore_index=True) if len(runs) > 1 else runs[0]
            found[DATASET, model, setting] = whole
        return found

    def outcomes(self, given: Sequence[Given]) -> IntArray:
        """(questions, runs) the option given as written; -1 where it refused."""
        return np.column_stack([np.where(each.answered, each.choice, OUTCOMES["refused"]) for each in given])

    def swap(self, answers: Answers, *, report: bool = False) -> Swap:
        """The image swap as arrays, with the placebo where that was asked."""
        cohort = self.cohort
        arms = {arm.shown: answers[arm.setting] for arm in self.arms.values() if arm.report == report}
        own, shown, placebo = arms["own"], arms["substitute"], arms.get("placebo")
        return Swap(
            patient=cohort.patient, partner=cohort.partner, topic=cohort.topic, own=self.outcomes(own),
            shown=self.outcomes(shown), truth_own=cohort.gold, truth_shown=cohort.substitute_truth,
            yes=np.where(cohort.n_options == 2, 0, -1), margin_own=self._leans(own),
            margin_shown=self._leans(shown), placebo=None if placebo is None else self.outcomes(placebo),
        )  # fmt: skip

    def _leans(self, given: Sequence[Given]) -> FloatArray:
        """(questions, runs) the margin as `scored` defines it."""
        return np.column_stack([self._margin(each) for each in given])

    @cached_property
    def _dress(self) -> dict[str, pd.DataFrame]:
        return {arm.setting: self._dressed(arm) for arm in self.arms.values()}

    def _margin(self, given: Given) -> FloatArray:
        correct = given.answered & (given.choice == self.cohort.gold)
        return np.where((self.cohort.n_options == 2) | correct, given.lean, -np.abs(given.lean))

    def _asked(self, arm: Arm, run: int, drawn: _Drawn) -> Asked:
        cohort = self.cohort
        none = np.full(len(cohort.study), -1)
        truth = {"own": cohort.gold, "placebo": cohort.gold, "substitute": cohort.substitute_truth}.get(arm.shown, none)
        return Asked(
            shown=arm.shown, run=run, topic=cohort.topic, prevalence=cohort.prevalence, n_options=cohort.n_options,
            yes_no=cohort.n_options == 2, truth=truth, own_truth=cohort.gold, told=cohort.gold if arm.report else none,
            first=np.zeros_like(none), draws=drawn.of(arm.shown),
        )  # fmt: skip

    def _dressed(self, arm: Arm) -> pd.DataFrame:
        """The columns of a frame that do not depend on the answers."""
        cohort = self.cohort
        study, topic, gold = cohort.study, cohort.topic, cohort.gold
        names = _Names.of(cohort)
        yes_no = cohort.n_options == 2
        question = names.question
        shown = {"own": study, "placebo": study, "substitute": cohort.substitute[study]}.get(arm.shown)
        truth = cohort.substitute_truth if arm.shown == "substitute" else gold
        frame = pd.DataFrame({
            "question": question, "topic": names.topic[topic], "study": names.study[study],
            "patient": names.patient[cohort.patient], "label": names.label(cohort, np.arange(cohort.studies)),
        })  # fmt: skip
        if shown is None:
            for column in ("image_study", "image_patient", "image_label"):
                frame[column] = pd.array([None] * len(study), dtype="str")
        else:
            frame["image_study"] = names.study[shown]
            frame["image_patient"] = names.patient[cohort.patient_of_study[shown]]
            whose = cohort.substitute if arm.shown == "substitute" else np.arange(cohort.studies)
            frame["image_label"] = names.label(cohort, whose)
        frame["readout"] = pd.array(np.where(yes_no, "yes-no", "choice"), dtype="str")
        frame["trial"] = f"{arm.shown}{'-report' if arm.report else ''}-" + frame["question"]
        frame["n_options"] = cohort.n_options
        frame["gold"] = gold
        frame["image_known"] = (truth >= 0) & (shown is not None)
        frame["image_choice"] = np.where(frame["image_known"], truth, -1)
        frame["yes_choice"] = np.where(yes_no, 0, -1)
        frame["yes_no"] = yes_no
        frame["gold_yes"] = yes_no & (gold == 0)
        frame["dataset"] = DATASET
        return frame

    def _scored(self, arm: Arm, run: int, given: Given, model: str) -> pd.DataFrame:
        cohort, dress = self.cohort, self._dress[arm.setting]
        yes_no = dress["yes_no"].to_numpy()
        choice = np.where(given.answered, given.choice, -1)
        truth = cohort.substitute_truth if arm.shown == "substitute" else cohort.gold
        right = given.answered & (choice == cohort.gold)
        return dress.assign(
            status=STATUS[given.answered.astype(np.int64)],
            answer=choice,
            choice=choice,
            right=right,
            right_for_image=given.answered & dress["image_known"].to_numpy() & (choice == truth),
            said_yes=yes_no & (choice == 0),
            margin=self._margin(given),
            model=model,
            setting=arm.setting,
            run=run,
        )


@dataclass(frozen=True)
class _Names:
    question: pd.api.extensions.ExtensionArray
    topic: pd.api.extensions.ExtensionArray
    study: pd.api.extensions.ExtensionArray
    patient: pd.api.extensions.ExtensionArray

    @classmethod
    def of(cls, cohort: Cohort) -> _Names:
        def named(kind: str, count: int) -> pd.api.extensions.ExtensionArray:
            return pd.array([f"{kind}{number:05d}" for number in range(count)], dtype="str")

        return cls(
            named("q", len(cohort.study)), named("finding ", cohort.topics), named("s", cohort.studies),
            named("p", cohort.design.patients),
        )  # fmt: skip

    @staticmethod
    def label(cohort: Cohort, whose: IntArray) -> pd.api.extensions.ExtensionArray:
        """The text of what is true of the studies `whose`, by question."""
        polar = YES_NO[cohort.yes_no[whose].ravel()]
        classes = np.array([f"class {each}" for each in cohort.classes[whose].ravel()], dtype=object)
        return pd.array(np.concatenate([polar, classes]), dtype="str")


class _Drawn:
    """The draws of one simulated study, kept by what they hang on."""

    def __init__(self, cohort: Cohort, rng: np.random.Generator) -> None:
        self.cohort, self.rng = cohort, rng
        self.questions: dict[str, FloatArray] = {}
        self.pictures: dict[str, FloatArray] = {}

    def of(self, shown: Shown) -> _DrawnFor:
        return _DrawnFor(self, shown)

    def question(self, what: str) -> FloatArray:
        if what not in self.questions:
            cohort, rng = self.cohort, self.rng
            shared = rng.random(cohort.design.patients)[cohort.patient]
            self.questions[what] = _alike(rng.random(len(shared)), shared, cohort.design.correlation, rng)
        return self.questions[what]

    def picture(self, what: str) -> FloatArray:
        """(pictures, topics): the studies', those shifted by a pixel, black, none. A picture's topics are alike."""
        if what not in self.pictures:
            cohort, rng = self.cohort, self.rng
            shape = (2 * cohort.studies + 2, cohort.topics)
            shared = np.broadcast_to(rng.random((shape[0], 1)), shape)
            self.pictures[what] = _alike(rng.random(shape), shared, cohort.design.correlation, rng)
        return self.pictures[what]


@dataclass(frozen=True)
class _DrawnFor:
    """`readers.Draws` of one arm."""

    drawn: _Drawn
    shown: Shown

    def question(self, what: str) -> FloatArray:
        return self.drawn.question(what)

    def picture(self, what: str, *, own: bool = False) -> FloatArray:
        cohort = self.drawn.cohort
        rows = cohort.study if own else self._rows
        found: FloatArray = self.drawn.picture(what)[rows, cohort.topic]
        return found

    def pixels(self, what: str) -> FloatArray:
        cohort = self.drawn.cohort
        rows = self._rows + (cohort.studies if self.shown == "placebo" else 0)
        found: FloatArray = self.drawn.picture(what)[rows, cohort.topic]
        return found

    def fresh(self, what: str) -> FloatArray:
        return self.drawn.rng.random(len(self.drawn.cohort.study))

    @cached_property
    def _rows(self) -> IntArray:
        cohort = self.drawn.cohort
        if self.shown == "substitute":
            return cohort.substitute[cohort.study]
        if self.shown in ("own", "placebo"):
            return cohort.study
        return np.full(len(cohort.study), 2 * cohort.studies + (self.shown == "none"))
