"""Gain of the image: balanced accuracy with the own picture less that of an opponent who does not see it.

Balanced within each finding (the mean over what may be correct there of the share answered correctly), then averaged
over findings, so that neither a usual answer nor a common finding carries it: an answer that is the same whatever is
true scores 1/K, whatever is prevalent. Over the questions that both sides answered, each once, with the mean over the
runs that did. A finding of which one answer alone is ever correct has no balance, and is left out.

Opponents are the reader itself without the image, with a black one or with nothing of the study, and the majority of
the finding: the answer that is correct most often among all other patients. Where leaving a single patient out changes
which that is, there is no majority, and it guesses; it never scores less than guessing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from overread.estimates.inference.clusters import Clusters, FloatArray, IntArray
from overread.estimates.inference.limits import Combined, signed


@dataclass(frozen=True)
class Gain:
    """A gain with what it is made of. Shares.

    pairs      questions that count; `lost` is the share of those asked of both that one of them did not answer
    balanced, opponent              balanced accuracy of both
    accuracy, opponent_accuracy     the share of these questions answered correctly, findings pooled
    """

    combined: Combined
    level: float
    smallest: float
    pairs: int
    findings: int
    balanced: float
    opponent: float
    accuracy: float
    opponent_accuracy: float
    lost: float

    @property
    def estimate(self) -> float:
        return self.combined.estimate

    @property
    def interval(self) -> tuple[float | None, float | None]:
        return self.combined.limits(self.level)

    @property
    def p(self) -> float:
        return self.combined.p_above(0.0)

    @property
    def p_equivalent(self) -> float:
        """p that it is within the smallest effect, whatever the lost pairs hide."""
        left = self.smallest - self.lost
        return self.combined.p_within(left) if left > 0 else 1.0


def gain_of(
    own: FloatArray, opponent: FloatArray, patient: IntArray, topic: IntArray, truth: IntArray, *,
    level: float = 0.95, smallest: float = 0.05,
) -> Gain | None:  # fmt: skip
    """The gain over questions; None where no finding has two answers that may be correct.

    own, opponent   (n,) share of the runs answered correctly; NaN where no run was answered
    patient, topic  (n,) codes from 0
    truth           (n,) code of the correct answer, alike within a topic
    """
    both = np.isfinite(own) & np.isfinite(opponent)
    weights = balance(topic, truth, both)
    rows = np.flatnonzero(weights > 0)
    if not len(rows):
        return None
    share = weights[rows]
    combined = signed((own[rows] - opponent[rows]) * share, share, Clusters(patient[rows]))
    return Gain(
        combined=combined, level=level, smallest=smallest, pairs=len(rows), findings=len(np.unique(topic[rows])),
        balanced=float(own[rows] @ share), opponent=float(opponent[rows] @ share), accuracy=float(own[rows].mean()),
        opponent_accuracy=float(opponent[rows].mean()), lost=float(1 - both.mean()),
    )  # fmt: skip


def balance(topic: IntArray, truth: IntArray, usable: npt.NDArray[np.bool_]) -> FloatArray:
    """(n,) weights that sum to 1: each finding the same, each correct answer within it the same."""
    weights = np.zeros(len(topic))
    if not usable.any():
        return weights
    topics, answers = topic[usable], truth[usable]
    span = int(answers.max()) + 1
    kinds, kind, counts = np.unique(topics * span + answers, return_inverse=True, return_counts=True)
    of_topic = np.bincount(kinds // span)
    several = of_topic[topics] > 1
    findings = int((of_topic > 1).sum())
    if findings:
        weights[usable] = several / (findings * of_topic[topics] * counts[kind])
    return weights


def majority(topic: IntArray, truth: IntArray, patient: IntArray, options: IntArray) -> FloatArray:
    """(n,) what the majority of the finding scores on each question: 1 or 0, or a guess's 1/options.

    options  (n,) how many options each question has
    """
    scores = 1 / options
    for each in np.unique(topic):
        rows = np.flatnonzero(topic == each)
        answers, answer = np.unique(truth[rows], return_inverse=True)
        people, person = np.unique(patient[rows], return_inverse=True)
        counts = np.zeros((len(people), len(answers)))
        np.add.at(counts, (person, answer), 1)
        without = counts.sum(axis=0) - counts
        best = np.argmax(without, axis=1)
        tied = (without == without.max(axis=1, keepdims=True)).sum(axis=1) > 1
        if tied.any() or len(np.unique(best)) > 1:
            continue
        given = (answer == best[0]).astype(np.float64)
        shares = [
            float(values[answer == one].mean()) for values in (given, scores[rows]) for one in range(len(answers))
        ]
        if sum(shares[: len(answers)]) >= sum(shares[len(answers) :]):
            scores[rows] = given
    return scores


def mean_correct(
    answered: npt.NDArray[np.bool_], correct: npt.NDArray[np.bool_], question: IntArray, size: int
) -> FloatArray:
    """(size,) the share of each question's answered runs that are correct; NaN without one. Arrays by trial."""
    runs = np.bincount(question[answered], minlength=size)
    hits = np.bincount(question[answered & correct], minlength=size)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(runs > 0, hits / runs, np.nan)
