"""What power the verdict has in a study of a given design, by simulating that study.

A reader that follows the picture in a set share of the questions, and one that does not read, are put to cohorts of the
design; their answers go through the project's own inference, and the verdicts are counted. No formula stands between
the design and the verdict, so whatever the verdict asks for (a smallest effect, a floor, few clusters) is in the count.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from overread.estimates.inference.decide import Rules, decide, tested
from overread.gallery.bounds import interval
from overread.gallery.cohorts import Design
from overread.gallery.readers import Reader, reading
from overread.gallery.simulate import Arm, Study
from overread.gallery.verdicts import CHUNK, in_parallel

SIMULATED = 1000
"""Studies that a power is counted in: it is then known to 3 points."""
SEARCHED = 300
"""Studies per number of patients on the way to the one that is needed."""
FEWEST, MOST_PATIENTS = 10, 5000
MOST_TRIALS = 400_000
"""Questions of the largest study that is simulated."""


@dataclass(frozen=True)
class Plan:
    """A study to be.

    reliance  share of the questions in which the reader follows the picture
    floor     share of its answers that change when the same is asked again, below 0.5
    runs      of the own picture
    """

    design: Design
    reliance: float
    floor: float = 0.0
    rules: Rules = field(default_factory=Rules)
    runs: int = 2

    @property
    def arms(self) -> tuple[Arm, ...]:
        return Arm("own", "own", runs=self.runs), Arm("swapped", "substitute"), Arm("placebo", "placebo")

    @property
    def trials_per_patient(self) -> float:
        return self.design.studies * (len(self.design.prevalences) + self.design.four_option)


@dataclass(frozen=True)
class Power:
    """Of so many simulated studies of `patients` patients, how many came to the verdict that is true.

    uses      of the reader that reads, those that said "uses"
    wrong     of the reader that reads, those that said "does not use"
    does_not  of the one that does not read, those that said "does not use"
    """

    patients: int
    studies: int
    uses: int
    wrong: int
    does_not: int

    @property
    def power(self) -> float:
        return self.uses / self.studies

    def error(self, seen: int) -> tuple[float, float]:
        """95 % interval of a count as a share."""
        return interval(seen, self.studies)


def power_of(
    plan: Plan, patients: int, *, studies: int = SIMULATED, seed: int = 0, workers: int | None = None
) -> Power:
    """The power with so many patients. The same seed gives the same count, whatever the number of workers."""
    work = partial(_counted, plan=replace(plan, design=replace(plan.design, patients=patients)), seed=seed)
    jobs = [range(start, min(start + CHUNK, studies)) for start in range(0, studies, CHUNK)]
    counts = np.sum(list(in_parallel(work, jobs, workers)), axis=0)
    return Power(patients, studies, *(int(count) for count in counts))


def patients_needed(
    plan: Plan,
    power: float,
    *,
    studies: int = SIMULATED,
    seed: int = 0,
    workers: int | None = None,
    tried: Callable[[Power], None] = lambda one: None,
) -> Power | None:
    """The fewest patients, to a tenth, whose studies of a reading reader say "uses" with at least `power`.

    What is found on the way has few studies and was chosen for what it showed, so the power of the number that it
    leads to is counted anew, with other draws, and the number raised until that is at least `power`.

    returns  None where `MOST_PATIENTS`, or as many as `MOST_TRIALS` questions allow, are not enough
    """
    most = max(FEWEST, min(MOST_PATIENTS, int(MOST_TRIALS / plan.trials_per_patient)))
    low, high = FEWEST - 1, FEWEST
    while True:
        one = power_of(plan, high, studies=SEARCHED, seed=seed, workers=workers)
        tried(one)
        if one.power >= power:
            break
        if high >= most:
            return None
        low, high = high, min(most, 2 * high)
    while high - low > max(1, high // 10):
        middle = (low + high) // 2
        one = power_of(plan, middle, studies=SEARCHED, seed=seed, workers=workers)
        tried(one)
        low, high = (low, middle) if one.power >= power else (middle, high)
    while True:
        one = power_of(plan, high, studies=studies, seed=seed + 1, workers=workers)
        tried(one)
        if one.power >= power:
            return one
        if high >= most:
            return None
        high = min(most, max(high + 1, round(1.1 * high)))


def _counted(numbers: range, *, plan: Plan, seed: int) -> tuple[int, int, int]:
    readers = reading(plan.reliance, floor=plan.floor), reading(0.0, floor=plan.floor)
    uses = wrong = does_not = 0
    for number in numbers:
        study = Study(plan.design.draw(np.random.default_rng([seed, number])), plan.arms)
        of_reading, of_blind = (
            _verdict(study, reader, [seed, number, place], plan.rules) for place, reader in enumerate(readers)
        )
        uses += of_reading == "uses"
        wrong += of_reading == "does not use"
        does_not += of_blind == "does not use"
    return uses, wrong, does_not


def _verdict(study: Study, reader: Reader, seed: list[int], rules: Rules) -> str:
    one = tested(study.swap(study.answers(reader, seed)), rules)
    return decide({"swap": one}, rules, "sampled" if reader.temperature else "greedy").verdict
