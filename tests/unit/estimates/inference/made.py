"""Swaps made by hand, and of readers whose behaviour is known."""

from __future__ import annotations

import numpy as np

from overread.estimates.inference.swap import Swap

YES, NO = 0, 1


def swap(
    *rows: tuple[int, str, str, str, str],
    partner: list[int] | None = None,
    topics: list[int] | None = None,
    **more: list[str],
) -> Swap:
    """A row a question: patient, what is true of the own and of the other picture (y or n, ? for not known), and the
    answers under both, one letter a run: y, n, r (refused), - (not asked)."""
    codes = {"y": YES, "n": NO, "?": -1, "r": -1, "u": -2, "-": -9}
    patient = np.array([row[0] for row in rows])
    own, shown = (np.array([[codes[c] for c in row[place]] for row in rows]) for place in (3, 4))
    truths = [np.array([codes[row[place]] for row in rows]) for place in (1, 2)]
    return Swap(
        patient=patient, partner=patient if partner is None else np.array(partner),
        topic=np.zeros(len(rows), dtype=np.int64) if topics is None else np.array(topics), own=own, shown=shown,
        truth_own=truths[0], truth_shown=truths[1], yes=np.full(len(rows), YES),
        **{name: np.array([[codes[c] for c in one] for one in value]) for name, value in more.items()},
    )  # fmt: skip


PREVALENCE = np.array([0.03, 0.05, 0.08, 0.1, 0.12, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.6])
"""Of thirteen findings."""


def study(reader: str, patients: int, seed: int, *, within: bool = True, reliance: float = 0.3, runs: int = 1) -> Swap:
    """Two studies a patient, thirteen findings; the substitute is the patient's other study, or any other patient's.

    reader   blind (each finding's prevalence, drawn once), sampled (drawn anew each time), pixels (drawn once per
             picture), drift (yes in 20 % under the own, in 50 % under the other picture), follows (the truth of the
             picture in `reliance` of the questions, else blind), rounding (blind, 0.5 % of the answers turn)
    """
    draw = np.random.default_rng([11, seed, patients])
    count, findings = 2 * patients, len(PREVALENCE)
    patient = np.repeat(np.arange(patients), 2)
    other = np.arange(count) ^ 1 if within else (np.arange(count) + 2 + draw.integers(0, count - 4, count)) % count
    other = np.where(patient[other] == patient, (other + 2) % count, other) if not within else other
    shape = (count, findings)
    tendency = draw.random((patients, findings))[patient] < PREVALENCE
    true = np.where(draw.random(shape) < 0.3, tendency, draw.random(shape) < PREVALENCE)
    once = draw.random(shape) < PREVALENCE
    use = draw.random(shape) < reliance

    def said(place: np.ndarray, *, first: bool) -> np.ndarray:
        if reader == "sampled":
            return draw.random(shape) < PREVALENCE
        if reader == "pixels":
            return once[place]
        if reader == "drift":
            return draw.random(shape) < (0.2 if first else 0.5)
        if reader == "follows":
            return np.where(use, true[place], once)
        return once ^ (draw.random(shape) < 0.005) if reader == "rounding" else once

    def columns(place: np.ndarray, *, first: bool) -> np.ndarray:
        return np.column_stack([np.where(said(place, first=first), YES, NO).ravel() for _ in range(runs)])

    own = np.arange(count)
    return Swap(
        patient=np.repeat(patient, findings), partner=np.repeat(patient[other], findings),
        topic=np.tile(np.arange(findings), count), own=columns(own, first=True), shown=columns(other, first=False),
        truth_own=np.where(true, YES, NO).ravel(), truth_shown=np.where(true[other], YES, NO).ravel(),
        yes=np.full(count * findings, YES), placebo=columns(own, first=True),
    )  # fmt: skip
