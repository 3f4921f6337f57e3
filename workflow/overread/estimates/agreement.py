"""How far people agree beyond chance: Cohen's and Fleiss' kappa and Krippendorff's alpha, from libraries.

Cohen's kappa is for two raters and the items both rated (statsmodels); Fleiss' kappa for the items that all raters
rated (statsmodels); Krippendorff's alpha takes whatever was rated (krippendorff). A statistic that is not defined,
because everybody always gave one and the same value or there is nothing to compare, is blank and says why.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Literal

from overread.core.columns import count, number, text
from overread.core.csv_files import CsvFile

Ratings = Mapping[str, Mapping[str, str]]
"""rater -> item -> value; an item that a rater did not rate is absent."""

Level = Literal["nominal", "ordinal"]
STATISTIC = text("statistic", "the measure of agreement")
RATED_BY = text("rated_by", "which raters: two names, or all of them")
ITEMS = count("items", "how many items they were compared on")
VALUE = number("value", "the statistic's value", range=(-1, 1), blank="not defined, as `note` says")
NOTE = text("note", "why the value is blank", blank="it is not")
COLUMNS = (STATISTIC, RATED_BY, ITEMS, VALUE, NOTE)
AGREEMENT = CsvFile(
    "agreement.csv", "How far the people agree who looked through questions: `overread questions agreement`.", COLUMNS
)


@dataclass(frozen=True)
class Agreement:
    statistic: str
    rated_by: str
    items: int
    value: float | None
    note: str = ""


def agreement(ratings: Ratings, *, values: Sequence[str] | None = None, level: Level = "nominal") -> list[Agreement]:
    """Share of equal values, kappas and alpha.

    values   all values there are, in their order where `level` is ordinal; else those that occur, sorted
    raises   ValueError for a value that is not among `values`
    """
    known = (
        list(values) if values is not None else sorted({value for one in ratings.values() for value in one.values()})
    )
    strange = {value for one in ratings.values() for value in one.values()} - set(known)
    if strange:
        raise ValueError(f"no value {sorted(strange)[0]!r}; there are: {', '.join(known)}")
    raters = sorted(ratings)
    rows = [row for pair in combinations(raters, 2) for row in _pair(ratings, *pair, known)]
    return [*rows, _fleiss(ratings, raters, known), _krippendorff(ratings, raters, known, level)]


def write_agreement(rows: Sequence[Agreement], path: Path) -> None:
    AGREEMENT.write(path, [vars(row) for row in rows])


def _pair(ratings: Ratings, one: str, two: str, known: Sequence[str]) -> list[Agreement]:
    import numpy as np
    from statsmodels.stats.inter_rater import cohens_kappa  # type: ignore[import-untyped]

    items = sorted(set(ratings[one]) & set(ratings[two]))
    names = f"{one}, {two}"
    if not items:
        return [
            Agreement("share equal", names, 0, None, "no item in common"),
            Agreement("Cohen's kappa", names, 0, None, "no item in common"),
        ]
    table = np.zeros((len(known), len(known)))
    for item in items:
        table[known.index(ratings[one][item]), known.index(ratings[two][item])] += 1
    equal = Agreement("share equal", names, len(items), float(np.trace(table)) / len(items))
    if np.count_nonzero(table.sum(axis=0) + table.sum(axis=1)) < 2:
        return [
            equal,
            Agreement("Cohen's kappa", names, len(items), None, "both gave one and the same value throughout"),
        ]
    kappa = float(cohens_kappa(table, return_results=False))
    return [equal, Agreement("Cohen's kappa", names, len(items), kappa)]


def _fleiss(ratings: Ratings, raters: Sequence[str], known: Sequence[str]) -> Agreement:
    import numpy as np
    from statsmodels.stats.inter_rater import fleiss_kappa

    names = f"all {len(raters)}"
    items = sorted(set.intersection(*(set(ratings[rater]) for rater in raters))) if raters else []
    if len(raters) < 2 or not items:
        return Agreement(
            "Fleiss' kappa", names, len(items), None, "fewer than two raters" if items else "no item that all rated"
        )
    table = np.array([[sum(ratings[rater][item] == value for rater in raters) for value in known] for item in items])
    if np.count_nonzero(table.sum(axis=0)) < 2:
        return Agreement("Fleiss' kappa", names, len(items), None, "all gave one and the same value throughout")
    return Agreement("Fleiss' kappa", names, len(items), float(fleiss_kappa(table)))


def _krippendorff(ratings: Ratings, raters: Sequence[str], known: Sequence[str], level: Level) -> Agreement:
    import krippendorff
    import numpy as np

    names = f"all {len(raters)}"
    items = sorted({item for one in ratings.values() for item in one})
    compared = [item for item in items if sum(item in one for one in ratings.values()) > 1]
    statistic = f"Krippendorff's alpha ({level})"
    if not compared:
        return Agreement(statistic, names, 0, None, "no item that two rated")
    data = np.array(
        [
            [known.index(ratings[rater][item]) if item in ratings[rater] else math.nan for item in compared]
            for rater in raters
        ]
    )
    if len(np.unique(data[~np.isnan(data)])) < 2:
        return Agreement(statistic, names, len(compared), None, "all gave one and the same value throughout")
    # The values are coded 0, 1, ... : for ordinal data their order is that of `known`.
    alpha = krippendorff.alpha(reliability_data=data, level_of_measurement=level, value_domain=list(range(len(known))))
    return Agreement(statistic, names, len(compared), float(alpha))
