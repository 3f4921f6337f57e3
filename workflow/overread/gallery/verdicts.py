"""The verdicts, estimates and tests that readers of the gallery get from the project's own inference."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from overread.estimates.inference.decide import Rules, decide, tested
from overread.estimates.inference.gain import gain_of
from overread.estimates.inference.limits import Combined
from overread.gallery.bounds import Bound
from overread.gallery.cohorts import RARE, Design, FloatArray
from overread.gallery.readers import GALLERY, Given, Reader, Truth
from overread.gallery.simulate import Answers, Arm, Study

ARMS = (
    Arm("own", "own", runs=2), Arm("swapped", "substitute"), Arm("placebo", "placebo"), Arm("no image", "none"),
    Arm("black image", "black"),
)  # fmt: skip
"""What a study asks here: an image swap without a report, one rerun, the placebo, and what has no picture to read."""
OPPONENTS = ("no image", "black image")

DESIGNS: dict[str, Design] = {
    "10 patients": Design(patients=10),
    "30 patients": Design(patients=30),
    "60 patients": Design(patients=60),
    "150 patients": Design(patients=150),
    "300 patients": Design(patients=300),
    "60, correlation 0": Design(patients=60, correlation=0.0),
    "60, correlation 0.4, unequal": Design(patients=60, correlation=0.4, unequal=True),
    "60, shared substitutes": Design(patients=60, substitutes="shared"),
    "60, own other study": Design(patients=60, substitutes="same-if-possible"),
    "60, prevalence 1 to 30 %": Design(patients=60, prevalences=RARE),
    "60, one study each": Design(patients=60, studies=1),
    "60, four options": Design(patients=60, prevalences=(), four_option=5),
    "150, four options": Design(patients=150, prevalences=(), four_option=5),
}
"""The cohorts that `make gallery` goes through."""
VERDICTS = ("uses", "does not use", "cannot tell")
CHUNK = 10
"""Studies of a job."""

WRONG = 0.025
"""How often a verdict may be wrong: one side of a level of 0.95."""
NEVER = 1e-4
"""A verdict that is never to be given: what a binomial of this share allows."""


def try_readers(
    designs: Mapping[str, Design],
    readers: Sequence[str],
    studies: int,
    *,
    seed: int = 0,
    rules: Rules | None = None,
    workers: int | None = None,
    done: Callable[[], None] = lambda: None,
) -> pd.DataFrame:
    """A row per design, reader and simulated study.

    verdict and subclass; then of each estimate, `name`, `name low`, `name high`, `name p` (one-sided, that it is above
    0, or 0.5 of the AUC) and `name moved` (patients with a difference), where name is following, auc, surplus over a
    floor (`placebo`, `reruns`), or an opponent of the gain. All readers are put to the same cohorts. The result does
    not depend on the number of workers.

    done  called `jobs(designs, studies)` times
    """
    work = partial(_chunk, readers=tuple(readers), seed=seed, rules=rules or Rules())
    rows: list[dict[str, Any]] = []
    for found in in_parallel(work, jobs(designs, studies), workers):
        rows += found
        done()
    return pd.DataFrame(rows)


def jobs(designs: Mapping[str, Design], studies: int) -> list[tuple[str, Design, range]]:
    """Design and numbers of the studies of each job."""
    return [
        (name, design, range(start, min(start + CHUNK, studies)))
        for name, design in designs.items()
        for start in range(0, studies, CHUNK)
    ]


def in_parallel(work: Callable[[Any], Any], jobs: Sequence[Any], workers: int | None = None) -> Iterator[Any]:
    """What `work` makes of each job, in their order, in as many processes as there are processors."""
    workers = workers or len(os.sched_getaffinity(0))
    if workers == 1:
        yield from map(work, jobs)
        return
    with ProcessPoolExecutor(workers) as pool:
        yield from pool.map(work, jobs)


def _chunk(
    job: tuple[str, Design, range], *, readers: tuple[str, ...], seed: int, rules: Rules
) -> list[dict[str, Any]]:
    name, design, numbers = job
    rows = []
    for number in numbers:
        study = Study(design.draw(np.random.default_rng([seed, number])), ARMS)
        for reader in readers:
            found = outcome(study, GALLERY[reader], [seed, number, *reader.encode()], rules)
            rows.append({"design": name, "patients": design.patients, "reader": reader, "study": number, **found})
    return rows


def outcome(study: Study, reader: Reader, seed: Sequence[int], rules: Rules) -> dict[str, Any]:
    """Verdict, subclass and estimates of one simulated study of one reader."""
    answers = study.answers(reader, seed)
    one = tested(study.swap(answers), rules)
    found = decide({"swap": one}, rules, "sampled" if reader.temperature else "greedy")
    row: dict[str, Any] = {"verdict": found.verdict, "subclass": found.subclass}
    if one.following is not None:
        row |= _estimate("following", one.following.combined, one.following.p, rules)
    if one.below is not None and one.below.auc is not None:
        row |= _estimate("auc", one.below.auc, one.below.auc.p_above(0.5), rules)
    for each in one.reacting:
        row |= _estimate(each.floor, each.surplus, each.p, rules)
    for opponent in OPPONENTS:
        if opponent in answers:
            row |= _gain(study, answers, opponent, rules)
    return row


def _gain(study: Study, answers: Answers, opponent: str, rules: Rules) -> dict[str, Any]:
    cohort = study.cohort
    own, other = (_correct(study, answers[setting]) for setting in ("own", opponent))
    gain = gain_of(own, other, cohort.patient, cohort.topic, cohort.gold, level=rules.level, smallest=rules.gain)
    return {} if gain is None else _estimate(opponent, gain.combined, gain.p, rules)


def _correct(study: Study, given: Sequence[Given]) -> FloatArray:
    """(questions,) the share of the answered runs that are correct; NaN without one."""
    answered = np.sum([each.answered for each in given], axis=0)
    hits = np.sum([each.answered & (each.choice == study.cohort.gold) for each in given], axis=0)
    return np.where(answered > 0, hits / np.maximum(answered, 1), np.nan)


def _estimate(name: str, combined: Combined, p: float, rules: Rules) -> dict[str, Any]:
    low, high = combined.limits(rules.level)
    values = {"": combined.estimate, " low": low, " high": high, " p": p, " moved": combined.shown}
    return {f"{name}{what}": value for what, value in values.items()}


# -- what the verdicts should be ---------------------------------------------------------------------------------------


def expected(reader: Reader, patients: int) -> dict[str, Bound]:
    """How often each verdict may or must be given in a study of so many patients; a verdict left out is open.

    Below 30 patients only wrong verdicts are bounded.
    """
    if reader.truth in (Truth.BELOW, Truth.UNTOLD):
        return {"uses": Bound(most=WRONG), "does not use": Bound(most=NEVER)}
    if reader.following == 0 and reader.name != "one-finding":
        bounds = {"uses": Bound(most=WRONG)}
        if patients >= 150 and reader.truth is not Truth.READS:
            bounds["cannot tell"] = Bound(most=0.2)
        return bounds
    if reader.name == "refuses-flips":
        return {"does not use": Bound(most=NEVER)}
    if reader.following < 0.1 or reader.name == "one-finding":
        return {}  # within the smallest effect: every verdict has a case
    bounds = {"does not use": Bound(most=WRONG)}
    if reader.following >= 0.3 and patients >= 60:
        bounds["uses"] = Bound(least=0.95)
    return bounds


@dataclass(frozen=True)
class Tally:
    """How often a reader, or all of one truth, got each verdict under a design, or under all.

    broken  verdicts whose share breaks its bound
    """

    reader: str
    truth: str
    design: str
    studies: int
    seen: Mapping[str, int]
    bounds: Mapping[str, Bound]

    @property
    def broken(self) -> tuple[str, ...]:
        return tuple(name for name, bound in self.bounds.items() if bound.broken(self.seen[name], self.studies))

    def share(self, verdict: str) -> float:
        return self.seen[verdict] / self.studies


def tallies(tried: pd.DataFrame) -> list[Tally]:
    """Of each reader under each design; of each reader under all designs; of each truth under all."""
    found = []
    for (design, reader), rows in tried.groupby(["design", "reader"], sort=False):
        one, patients = GALLERY[str(reader)], int(rows["patients"].iloc[0])
        found.append(_tally(one.name, one.truth, str(design), rows, expected(one, patients)))
    wrong = {name: {"uses": Bound(most=WRONG)} for name in (Truth.BLIND, Truth.REACTS, Truth.BELOW, Truth.UNTOLD)}
    for reader, rows in tried.groupby("reader", sort=False):
        one = GALLERY[str(reader)]
        bounds = {name: bound for name, bound in expected(one, 30).items() if bound.most < 1}
        found.append(_tally(one.name, one.truth, "all", rows, bounds))
    truths = tried["reader"].map({name: str(one.truth) for name, one in GALLERY.items()})
    for truth, rows in tried.groupby(truths, sort=False):
        found.append(_tally("all", str(truth), "all", rows, wrong.get(Truth(str(truth)), {})))
    return found


def _tally(reader: str, truth: str, design: str, rows: pd.DataFrame, bounds: Mapping[str, Bound]) -> Tally:
    seen = {name: int((rows["verdict"] == name).sum()) for name in VERDICTS}
    return Tally(reader, str(truth), design, len(rows), seen, bounds)
