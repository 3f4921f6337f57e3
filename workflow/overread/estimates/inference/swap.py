"""One image swap of one model, as arrays: a row is a question, a column a run.

Outcomes are the option given, by its place as written, or one of the ways not to give one. They are outcomes of their
own: a change between an answer and a refusal is a change.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from overread.estimates.inference.clusters import BoolArray, Clusters, FloatArray, IntArray

OUTCOMES = {"refused": -1, "unparsed": -2, "truncated": -3}
"""What a trial that was not answered came to; `ABSENT` for one that failed or was not asked."""
ABSENT = -9


@dataclass(frozen=True, eq=False)
class Swap:
    """Questions under a study's own picture and under another's.

    patient, partner         (n,) codes from 0: who is asked about, and whose picture is shown instead
    topic                    (n,) code of the finding or kind of question
    own, shown               (n, runs) outcome under the own and under the other picture
    truth_own, truth_shown   (n,) option that is true of the study whose picture that is; -1 unknown or no option
    yes                      (n,) option that is "yes"; -1 where the options are others
    margin_own, margin_shown (n, runs) log p(yes) - log p(no), or log p of the correct option less the largest
                             of the others; NaN unknown
    placebo, matched         (n, runs) outcome under the own picture with a change that changes nothing of matter, and
                             under another study's picture of which the same is true: floors
    """

    patient: IntArray
    partner: IntArray
    topic: IntArray
    own: IntArray
    shown: IntArray
    truth_own: IntArray
    truth_shown: IntArray
    yes: IntArray
    margin_own: FloatArray | None = None
    margin_shown: FloatArray | None = None
    placebo: IntArray | None = None
    matched: IntArray | None = None

    @property
    def clusters(self) -> Clusters:
        return Clusters(self.patient, self.partner)

    @property
    def changed(self) -> BoolArray:
        """(n,) whether what is true differs between the two pictures, both known."""
        known: BoolArray = (self.truth_own >= 0) & (self.truth_shown >= 0)
        differ: BoolArray = self.truth_own != self.truth_shown
        return known & differ

    @property
    def asked(self) -> BoolArray:
        """(n,) whether there is an outcome under both pictures."""
        found: BoolArray = (self.own != ABSENT).any(axis=1) & (self.shown != ABSENT).any(axis=1)
        return found

    @property
    def lost(self) -> float:
        """The share of pairs that an arm is lost of: refused, unreadable, cut off, failed or not asked."""
        if not len(self.own):
            return 0.0
        return float((1 - (1 - unanswered(self.own)) * (1 - unanswered(self.shown))).mean())


def unanswered(outcomes: IntArray) -> FloatArray:
    """(n,) the share of a question's runs without an answer; 1 for one that was not asked at all."""
    asked = outcomes != ABSENT
    answered = (outcomes >= 0).sum(axis=1)
    found: FloatArray = 1 - answered / np.maximum(asked.sum(axis=1), 1)
    return found


def share_of(outcomes: IntArray, option: IntArray) -> FloatArray:
    """(n,) the share of a question's runs that gave the `option`, (n,). A run without an answer did not."""
    given = ((outcomes == option[:, None]) & (outcomes >= 0)).sum(axis=1)
    found: FloatArray = given / np.maximum((outcomes != ABSENT).sum(axis=1), 1)
    return found
