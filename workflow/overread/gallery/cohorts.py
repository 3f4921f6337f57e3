"""Cohorts that readers are tried on: patients, studies, questions, truths, and whose picture takes another's place.

A design says what a cohort is like; a cohort is one draw from it. Trials of one patient are alike: with the design's
correlation a truth is the patient's and not the study's own, which makes that the intra-patient correlation of the
truths of a finding, whatever its prevalence.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

FINDINGS = tuple(float(share) for share in np.linspace(0.03, 0.60, 13))
"""Prevalences of thirteen findings, from 3 to 60 %: the spread of a chest X-ray data set."""
RARE = tuple(float(share) for share in np.linspace(0.01, 0.30, 13))
CLASSES = 6
"""What may be true of a four-option question's topic; four of them are shown as its options."""


@dataclass(frozen=True)
class Design:
    """What a cohort is like.

    patients     how many
    studies      per patient, on average
    unequal      whether most patients have one study and a few have many (geometric) or all have the same number
    prevalences  share of yes for each yes-no finding, each asked once per study
    four_option  topics with four options each, asked once per study; the correct place is uniform
    correlation  of the truths, and of what a reader does, within a patient
    substitutes  whose picture replaces a study's own: another patient's, the same patient's where there is one, or
                 those of a tenth of the studies alone, shared by all others
    """

    patients: int = 60
    studies: float = 2.0
    unequal: bool = False
    prevalences: tuple[float, ...] = FINDINGS
    four_option: int = 0
    correlation: float = 0.2
    substitutes: Literal["another", "same-if-possible", "shared"] = "another"

    def draw(self, rng: np.random.Generator) -> Cohort:
        """A cohort of this design."""
        if self.unequal:
            sizes = rng.geometric(1 / max(1.0, self.studies), self.patients)
        else:
            whole = int(self.studies)
            sizes = np.full(self.patients, whole) + (rng.random(self.patients) < self.studies - whole)
        patient_of_study = np.repeat(np.arange(self.patients), sizes)
        yes_no, classes = self._yes_no(patient_of_study, rng), self._classes(patient_of_study, rng)
        return Cohort(self, patient_of_study, yes_no, classes, self._substitutes(patient_of_study, rng), rng)

    def _yes_no(self, patients: IntArray, rng: np.random.Generator) -> IntArray:
        """0 for yes, 1 for no, (studies, findings)."""
        shape = (len(patients), len(self.prevalences))
        draws = _alike(rng.random(shape), rng.random((self.patients, shape[1]))[patients], self.correlation, rng)
        return np.where(draws < np.asarray(self.prevalences), 0, 1)

    def _classes(self, patients: IntArray, rng: np.random.Generator) -> IntArray:
        shape = (len(patients), self.four_option)
        draws = _alike(rng.random(shape), rng.random((self.patients, shape[1]))[patients], self.correlation, rng)
        return (draws * CLASSES).astype(np.int64)

    def _substitutes(self, patients: IntArray, rng: np.random.Generator) -> IntArray:
        """The study whose picture each study is shown instead; of another patient unless the design says otherwise."""
        count = len(patients)
        pool = np.arange(count)
        if self.substitutes == "shared":
            pool = rng.choice(count, size=max(2, count // 10), replace=False)
        chosen = rng.choice(pool, size=count)
        for _ in range(60):
            clash = patients[chosen] == patients
            if not clash.any():
                break
            chosen[clash] = rng.choice(pool, size=int(clash.sum()))
        clash = np.flatnonzero(patients[chosen] == patients)  # a pool of one patient's studies alone
        for study in clash:
            others = np.flatnonzero(patients != patients[study])
            chosen[study] = rng.choice(others)
        if self.substitutes == "same-if-possible":
            following = np.roll(np.arange(count), -1)
            first = np.searchsorted(patients, patients)
            following = np.where(patients[following] == patients, following, first)
            chosen = np.where(following != np.arange(count), following, chosen)
        return chosen


def _alike(own: FloatArray, shared: FloatArray, correlation: float, rng: np.random.Generator) -> FloatArray:
    """Uniform draws of which two of one cluster agree with probability `correlation` and are independent else.

    Each is the cluster's with the root of `correlation`; so is the correlation of any event that a threshold makes.
    """
    if correlation <= 0:
        return own
    return np.where(rng.random(own.shape) < np.sqrt(correlation), shared, own)


@dataclass
class Cohort:
    """One draw of a design, with the arrays that its readers share: a row per question, in the order of the trials.

    yes_no, classes  truth by study and finding: a place (0 yes, 1 no), or a class
    substitute       (studies,) the study whose picture replaces its own
    """

    design: Design
    patient_of_study: IntArray
    yes_no: IntArray
    classes: IntArray
    substitute: IntArray
    rng: np.random.Generator
    options: IntArray = field(init=False)
    """(four-option questions, 4) the classes shown."""

    def __post_init__(self) -> None:
        count = self.classes.size
        classes = self.classes.ravel()
        others = self.rng.random((count, CLASSES))
        others[np.arange(count), classes] = -1.0  # the true one is among the options
        shown = np.argsort(others, axis=1)[:, :4]
        self.options = self.rng.permuted(shown, axis=1)

    @property
    def studies(self) -> int:
        return len(self.patient_of_study)

    @property
    def findings(self) -> int:
        return len(self.design.prevalences)

    @property
    def topics(self) -> int:
        return self.findings + self.design.four_option

    @cached_property
    def study(self) -> IntArray:
        """(questions,) yes-no questions come first, study by study, then those of four options."""
        studies = np.arange(self.studies)
        return np.concatenate([np.repeat(studies, self.findings), np.repeat(studies, self.design.four_option)])

    @cached_property
    def topic(self) -> IntArray:
        first = np.tile(np.arange(self.findings), self.studies)
        return np.concatenate([first, self.findings + np.tile(np.arange(self.design.four_option), self.studies)])

    @cached_property
    def patient(self) -> IntArray:
        return self.patient_of_study[self.study]

    @cached_property
    def partner(self) -> IntArray:
        """(questions,) the patient whose picture is shown instead."""
        return self.patient_of_study[self.substitute][self.study]

    @cached_property
    def n_options(self) -> IntArray:
        return np.where(self.topic < self.findings, 2, 4)

    @cached_property
    def prevalence(self) -> FloatArray:
        """(questions,) share of yes of a yes-no finding; one in four for each option else."""
        shares = np.concatenate([np.asarray(self.design.prevalences), np.full(self.design.four_option, 0.25)])
        return shares[self.topic]

    @cached_property
    def gold(self) -> IntArray:
        return self.truth_of(np.arange(self.studies))

    @cached_property
    def substitute_truth(self) -> IntArray:
        return self.truth_of(self.substitute)

    def truth_of(self, shown: IntArray) -> IntArray:
        """The place, among each question's options, of what is true of the study `shown[study]`; -1 if not among them.

        shown  (studies,)
        """
        polar = self.yes_no[shown].ravel()
        classes = self.classes[shown].ravel()
        same = self.options == classes[:, None]
        return np.concatenate([polar, np.where(same.any(axis=1), same.argmax(axis=1), -1)])
