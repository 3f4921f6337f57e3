"""The design of a study as a pilot has it, and what a pilot cannot say.

A pilot's folder gives the prevalences, the studies per patient, how alike a patient's truths are, how far the answers
follow the picture, and how often they change when nothing does. What it cannot say is never filled in silently: it is
refused, or taken on the careful side with a warning.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from overread.core.errors import BadInput, unknown
from overread.core.inputs import regular
from overread.estimates.family import asked_by, rules_of, swap_of
from overread.estimates.inference.decide import Rules
from overread.estimates.inference.following import following_of
from overread.estimates.inference.reacting import reacting_of
from overread.estimates.inference.swap import Swap
from overread.estimates.primary import is_swap, primary_family
from overread.estimates.scored import by_cell, read_cells
from overread.estimates.spec import TablesSpec
from overread.gallery.cohorts import Design, FloatArray, IntArray

FEWEST = 10
"""Patients of a pilot that says anything."""
ENOUGH = 30
"""From so many patients on a pilot's correlation is believed; with fewer it is at least `USUAL`."""
USUAL = 0.2
"""Correlation where a pilot cannot say: that of cohorts in the gallery."""
UNEVEN = 0.3
"""From this coefficient of variation on the numbers of studies per patient are taken as uneven."""


@dataclass(frozen=True)
class Pilot:
    """What a pilot says of a study like it. Shares.

    reliance  estimate of following; None where nothing moved
    least     lower limit of its interval
    floor     share of answers that change when nothing does; None where it was not measured
    warnings  what was taken on the careful side, and why
    """

    name: str
    patients: int
    design: Design
    reliance: float | None
    least: float | None
    floor: float | None
    rules: Rules
    warnings: tuple[str, ...]


def pilot_of(results: Path, dataset: str | None, model: str | None, comparison: str | None) -> Pilot:
    """The design of a run's image swap.

    results  the run's folder with asked.json
    raises   BadInput for a run without it, a dataset, model or swap that is not there or not the only one, or a pilot
             of too few patients
    """
    path = results / "asked.json"
    try:
        spec = TablesSpec.model_validate_json(regular(path).read_text(encoding="utf-8"))
    except OSError:
        raise BadInput(f"{path}: no such file; name the folder of a run that has answers") from None
    settings = {(one.dataset, one.model): set[str]() for one in spec.cells}
    for one in spec.cells:
        settings[one.dataset, one.model].add(one.setting)
    found = [key for key in sorted(settings) if dataset in (None, key[0]) and model in (None, key[1])]
    found = [key for key in found if _swaps(spec, settings[key])]
    if len(found) != 1:
        listed = "; ".join(f"--dataset {one} --model {other}" for one, other in found or sorted(settings))
        raise BadInput(f"{path}: {'several have' if found else 'nothing has'} an image swap: choose of {listed}")
    names = _swaps(spec, settings[found[0]])
    if comparison is not None and comparison not in names:
        raise BadInput(f"{path}: {unknown('image swap', comparison, names)}")
    if comparison is None:
        family = primary_family(names, spec.statistics, spec.comparisons, spec.settings)
        # Several readouts may be primary: the plainest own setting stands for them, whatever the names are.
        own = {name: spec.settings[spec.comparisons[name].settings[0]].sort_key() for name in names}
        comparison = min([name for name in family if name in names] or names, key=lambda name: (own[name], name))
    floors = [one.settings[1] for one in spec.comparisons.values() if one.kind is not None]
    wanted = {*spec.comparisons[comparison].settings, *floors} & settings[found[0]]
    cells = [one for one in spec.cells if (one.dataset, one.model) == found[0] and one.setting in wanted]
    of_model = {key[2]: rows for key, rows in by_cell(read_cells(results, cells)).items()}
    swap = swap_of(of_model, spec.comparisons[comparison], spec.comparisons)
    if swap is None:
        raise BadInput(f"{path}: the settings of {comparison!r} have no question in common")
    study = of_model[spec.comparisons[comparison].settings[0]].drop_duplicates("question")
    codes = study.sort_values("question")["study"].astype("category").cat.codes.to_numpy().astype(np.int64)
    return design_of(swap, codes, rules_of(spec.statistics), name=f"{comparison} of {found[0][1]} on {found[0][0]}")


def _swaps(spec: TablesSpec, settings: set[str]) -> list[str]:
    names = asked_by(dict.fromkeys(settings), spec.comparisons)  # type: ignore[arg-type]
    return sorted(name for name in names if is_swap(spec.comparisons[name], spec.settings))


def design_of(swap: Swap, study: IntArray, rules: Rules, *, name: str = "pilot") -> Pilot:
    """What a swap says of a study like it.

    study   (n,) the study of each question, coded from 0
    raises  BadInput for fewer than `FEWEST` patients, or where no truth differs between the two pictures
    """
    patients = len(np.unique(swap.patient))
    if patients < FEWEST:
        raise BadInput(f"the pilot has {patients} patients; fewer than {FEWEST} cannot say how patients differ")
    following = following_of(swap, level=rules.level, smallest=rules.following)
    if following is None:
        raise BadInput("the pilot has no finding whose correct answer differs between two pictures in both directions")
    warnings = []
    correlation = max(0.0, _correlation(swap))
    if len(swap.patient) == patients:
        warnings.append(f"one trial per patient says nothing of how alike a patient's trials are: taken as {USUAL:g}")
        correlation = USUAL
    elif patients < ENOUGH and correlation < USUAL:
        warnings.append(
            f"{patients} patients hardly say how alike a patient's trials are ({correlation:.2f}): taken as {USUAL:g}"
        )
        correlation = USUAL
    reliance: float | None = following.estimate
    if following.towards == following.away == 0:
        warnings.append("no answer moved in the pilot, so it does not say how far the picture is followed")
        reliance = None
    elif following.towards + following.away >= 1 - 1e-9:
        warnings.append(
            "every answer moved in the pilot, so it does not say how patients differ: correlation at least 0.2"
        )
        correlation = max(correlation, USUAL)
    floors = [
        one.floor_rate for one in reacting_of(swap) if one.floor_rate is not None and one.floor != "label-matched"
    ]
    if not floors:
        warnings.append("the pilot measured no floor (reruns or placebo): taken as none unless --floor says it")
    studies = np.array([len(np.unique(study[swap.patient == one])) for one in np.unique(swap.patient)])
    design = Design(
        patients=patients, studies=float(studies.mean()), unequal=bool(studies.std() > UNEVEN * studies.mean()),
        prevalences=_prevalences(swap), four_option=_others(swap, study), correlation=min(correlation, 0.99),
        substitutes="same-if-possible" if bool(np.mean(swap.patient == swap.partner) > 0.5) else "another",
    )  # fmt: skip
    low = following.interval[0]
    return Pilot(name, patients, design, reliance, low, max(floors, default=None), rules, tuple(warnings))


def _prevalences(swap: Swap) -> tuple[float, ...]:
    """Share of yes among the known truths of each yes-no finding."""
    known = (swap.yes >= 0) & (swap.truth_own >= 0)
    topics = np.unique(swap.topic[known])
    each = [known & (swap.topic == topic) for topic in topics]
    return tuple(float((swap.truth_own[rows] == swap.yes[rows]).mean()) for rows in each)


def _others(swap: Swap, study: IntArray) -> int:
    """Questions per study whose options are not yes and no."""
    return round(float((swap.yes < 0).sum()) / len(np.unique(study)))


def _correlation(swap: Swap) -> float:
    """The larger of the intra-patient correlations of the truths and of what the answers do, within findings."""
    known = (swap.yes >= 0) & (swap.truth_own >= 0)
    truths = intraclass((swap.truth_own == swap.yes)[known].astype(np.float64), swap.patient[known], swap.topic[known])
    rows = swap.changed & swap.asked
    moved = (swap.own[:, 0] != swap.shown[:, 0])[rows].astype(np.float64)
    return max(truths, intraclass(moved, swap.patient[rows], np.zeros(int(rows.sum()), dtype=np.int64)))


def intraclass(values: FloatArray, clusters: IntArray, strata: IntArray) -> float:
    """Intra-cluster correlation about the means of the strata, by the products of pairs of one cluster and stratum.

    The mean product of two deviations of one cluster over their mean square; 0 where nothing varies or no cluster has
    two. Pairs of different strata do not count, since two findings need not go together.
    """
    if not len(values):
        return 0.0
    sizes = np.bincount(strata)
    means = np.bincount(strata, values) / np.maximum(sizes, 1)
    deviations = values - means[strata]
    _, codes = np.unique(clusters * (int(strata.max()) + 1) + strata, return_inverse=True)
    sums, squares = np.bincount(codes, deviations), np.bincount(codes, deviations**2)
    counts = np.bincount(codes)
    pairs, variance = float((counts * (counts - 1)).sum()), float((deviations**2).mean())
    return float((sums**2 - squares).sum()) / pairs / variance if pairs > 0 and variance > 0 else 0.0
