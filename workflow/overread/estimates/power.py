"""How many patients a difference of two flip rates needs.

Both rates are of the same trials, so a trial's difference is +1, 0 or -1. For independent trials the number that a
two-sided test of level alpha needs to find a mean difference d with power 1 - b is Connor's (Biometrics 43, 1987, 207):

    n = (z[1 - alpha/2] sqrt(psi) + z[1 - b] sqrt(psi - d^2))^2 / d^2

where psi, the discordance, is the share of trials that flip in one comparison and not in the other. Trials of one
patient are alike, so the number grows by the design effect for patients of unequal size (Eldridge, Ashby and Kerry,
International Journal of Epidemiology 35, 2006, 1292):

    1 + ((1 + cv^2) m - 1) rho

with m the mean number of trials a patient, cv the coefficient of variation of that number, and rho the intra-patient
correlation of the trials' differences. The patients needed are n times that, over m. A pilot gives all four; rho is
estimated from an analysis of variance (Donner, International Statistical Review 54, 1986, 67), and taken as 0 where
that comes out below it. The formula is for many patients: below some 30 it is too hopeful.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist
from typing import TYPE_CHECKING

from overread.core.errors import BadInput, unknown
from overread.core.inputs import regular

if TYPE_CHECKING:
    from overread.estimates.bootstrap import FloatArray, IntArray

FEW = 30
"""Below so many patients the formula is too hopeful."""


@dataclass(frozen=True)
class Design:
    """What a study's trials are like.

    discordance         share of trials that flip in one comparison only, above 0 and at most 1
    correlation         of the differences of two trials of one patient, 0 to 1
    trials_per_patient  mean
    variation           standard deviation of that number over its mean
    """

    discordance: float
    correlation: float
    trials_per_patient: float
    variation: float = 0.0

    @property
    def design_effect(self) -> float:
        return 1 + ((1 + self.variation**2) * self.trials_per_patient - 1) * self.correlation


@dataclass(frozen=True)
class Pilot:
    """A design as a pilot has it, with the pilot's size and difference."""

    design: Design
    difference: float
    trials: int
    patients: int


def patients_needed(difference: float, design: Design, *, power: float = 0.8, level: float = 0.95) -> int:
    """The patients that a two-sided test needs to find `difference` (a share: 0.05 is 5 points).

    raises  BadInput for numbers that can't be: a difference larger than the discordance, a share outside 0 to 1
    """
    for name, value, low, high in (
        ("power", power, 0.5, 1.0), ("level", level, 0.5, 1.0), ("discordance", design.discordance, 0.0, 1.0 + 1e-12),
    ):  # fmt: skip
        if not low < value < high:
            raise BadInput(f"{name} {value:g}: must lie above {low:g} and {'at most' if high > 1 else 'below'} 1")
    if not 0 <= design.correlation <= 1:
        raise BadInput(f"correlation {design.correlation:g}: must lie from 0 to 1")
    if design.trials_per_patient < 1 or design.variation < 0:
        raise BadInput("a patient has at least 1 trial, and the variation of that number is at least 0")
    size = abs(difference)
    if not 0 < size <= design.discordance:
        raise BadInput(
            f"a difference of {100 * size:g} points needs a discordance of at least as much, and above 0: "
            f"it is {100 * design.discordance:g} %"
        )
    normal = NormalDist()
    spread = normal.inv_cdf((1 + level) / 2) * math.sqrt(design.discordance)
    spread += normal.inv_cdf(power) * math.sqrt(design.discordance - size**2)
    trials = spread**2 / size**2 * design.design_effect
    return max(2, math.ceil(trials / design.trials_per_patient - 1e-9))


def design_of(differences: FloatArray, patients: IntArray) -> Pilot:
    """The design of a pilot.

    differences  (n,) whether each trial flipped in the first comparison less whether it did in the second: -1, 0 or 1
    patients     (n,) its patient, coded from 0
    raises       BadInput for fewer than two patients, or as many patients as trials
    """
    import numpy as np

    sizes = np.bincount(patients)
    sums = np.bincount(patients, differences)[sizes > 0]
    sizes = sizes[sizes > 0].astype(np.float64)
    trials, count = float(sizes.sum()), len(sizes)
    if count < 2:
        raise BadInput("a pilot needs at least two patients")
    mean = float(differences.mean())
    total = float(((differences - mean) ** 2).sum())
    between = float((sizes * (sums / sizes - mean) ** 2).sum())
    correlation = 0.0
    if trials > count and total > 0:
        among, within = between / (count - 1), (total - between) / (trials - count)
        typical = (trials - float((sizes**2).sum()) / trials) / (count - 1)
        spread = among + (typical - 1) * within
        correlation = min(1.0, max(0.0, (among - within) / spread)) if spread > 0 else 0.0
    design = Design(
        discordance=float((differences != 0).mean()),
        correlation=correlation,
        trials_per_patient=trials / count,
        variation=float(sizes.std() / sizes.mean()),
    )
    return Pilot(design, mean, int(trials), count)


def pilot_of(results: Path, effect: str, dataset: str | None, model: str | None) -> Pilot:
    """The design of a run's effect of two flip comparisons, over the trials of both that were answered.

    results  the run's folder with asked.json
    raises   BadInput for a run without it, or an effect, dataset or model that is not there or not the only one
    """
    from overread.estimates.scored import by_cell, code_patients, read_cells
    from overread.estimates.spec import TablesSpec
    from overread.estimates.tables.flips import compared

    path = results / "asked.json"
    try:
        spec = TablesSpec.model_validate_json(regular(path).read_text(encoding="utf-8"))
    except OSError:
        raise BadInput(f"{path}: no such file; name the folder of a run that has answers") from None
    usable = {
        name: one.minus
        for name, one in spec.effects.items()
        if set(one.minus) <= set(spec.comparisons) and all(spec.comparisons[each].flips for each in one.minus)
    }
    if effect not in usable:
        raise BadInput(f"{path}: {unknown('effect of two flip comparisons', effect, usable)}")
    pair = [spec.comparisons[name] for name in usable[effect]]
    needed = {setting for one in pair for setting in one.settings}
    of_both: dict[tuple[str, str], set[str]] = {}
    for cell in spec.cells:
        of_both.setdefault((cell.dataset, cell.model), set()).add(cell.setting)
    found = sorted(
        key
        for key, settings in of_both.items()
        if needed <= settings and dataset in (None, key[0]) and model in (None, key[1])
    )
    if len(found) != 1:
        listed = "; ".join(f"--dataset {one} --model {other}" for one, other in found or sorted(of_both))
        raise BadInput(
            f"{path}: {'several have' if found else 'nothing has'} the effect {effect!r}: choose of {listed}"
        )
    wanted = [one for one in spec.cells if (one.dataset, one.model) == found[0] and one.setting in needed]
    cells = {key[2]: rows for key, rows in by_cell(read_cells(results, wanted)).items()}
    first, second = (compared(cells, one) for one in pair)
    if first is None or second is None:
        raise BadInput(f"{path}: the effect {effect!r} compares a setting with itself, which was run once")
    both = first[first["both"]].merge(second[second["both"]], on=["question", "run"], suffixes=("_1", "_2"))
    if not len(both):
        raise BadInput(f"{path}: no trial was answered in both comparisons of {effect!r}")
    (patients,) = code_patients(both["patient_1"])
    return design_of(both["flipped_1"].to_numpy(float) - both["flipped_2"].to_numpy(float), patients)
