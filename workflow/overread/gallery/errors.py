"""How often tests reject what is true, and intervals miss it, over readers of whom the truth is known to be nothing.

A reader whose answers do not depend on the picture's content follows it by 0 and has an AUC of 0.5. One that is blind
gains nothing against its own blind arm, and its answers change under a swap as they do anyway.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from overread.gallery.bounds import Bound
from overread.gallery.readers import GALLERY, Truth

SIZE = 0.05
"""Nominal size of each one-sided test here."""
MOST, LEAST = 0.055, 0.03
ENOUGH = 20
"""From so many patients with a difference on, on average, a test must not be much too careful either."""

NULLS: dict[str, tuple[float, tuple[str, ...]]] = {
    "following": (0.0, ("prior-sampled", "sampled", "rounding-0.5", "rounding-1", "drifts", "refuses-few", "pixels",
                        "raw-pixels", "worse-with-image")),
    "auc": (0.5, ("pixels", "raw-pixels", "worse-with-image", "margins-move")),
    "placebo": (0.0, ("prior-sampled", "sampled", "rounding-0.5", "rounding-1", "refuses-few")),
    "reruns": (0.0, ("prior-sampled", "sampled", "rounding-0.5", "rounding-1", "drifts", "refuses-few")),
    "no image": (0.0, ("prior-sampled", "sampled", "rounding-0.5", "rounding-1")),
    "black image": (0.0, ("prior-sampled", "sampled", "rounding-0.5", "rounding-1")),
}  # fmt: skip
"""What is tested -> its value under the null, and readers of whom that is true."""


@dataclass(frozen=True)
class Error:
    """How often a test rejected and an interval covered, with a reader of the null.

    moved     mean number of patients with a difference
    rejected  studies with p at most `SIZE`
    covered   studies whose interval covers the null value
    """

    test: str
    reader: str
    design: str
    studies: int
    moved: float
    rejected: int
    covered: int
    patients: int

    @property
    def size(self) -> Bound:
        return Bound(LEAST if self.moved >= ENOUGH else 0.0, MOST)

    @property
    def coverage(self) -> Bound:
        return Bound(0.92 if self.patients < 20 else 0.93)

    @property
    def broken(self) -> tuple[str, ...]:
        wrong = {"size": self.size.broken(self.rejected, self.studies)}
        wrong["coverage"] = self.coverage.broken(self.covered, self.studies)
        return tuple(name for name, holds in wrong.items() if holds)


def errors(tried: pd.DataFrame) -> list[Error]:
    """Of each test, reader of its null and design in what `verdicts.try_readers` gave."""
    found = []
    for test, (value, readers) in NULLS.items():
        for (design, reader), rows in tried[tried["reader"].isin(readers)].groupby(["design", "reader"], sort=False):
            if test not in rows:
                continue
            known = rows[rows[test].notna() & rows[f"{test} low"].notna()]
            if len(known):
                found.append(_error(test, value, str(reader), str(design), known))
    return found


def _error(test: str, value: float, reader: str, design: str, rows: pd.DataFrame) -> Error:
    covered = (rows[f"{test} low"] <= value + 1e-12) & (rows[f"{test} high"] >= value - 1e-12)
    return Error(
        test, reader, design, len(rows), float(rows[f"{test} moved"].mean()), int((rows[f"{test} p"] <= SIZE).sum()),
        int(covered.sum()), int(rows["patients"].iloc[0]),
    )  # fmt: skip


@dataclass(frozen=True)
class Recovered:
    """How often the interval of following covered a reading reader's true value."""

    reader: str
    design: str
    studies: int
    covered: int
    mean: float

    @property
    def broken(self) -> bool:
        return Bound(0.93).broken(self.covered, self.studies)


def recovered(tried: pd.DataFrame, readers: Sequence[str] | None = None) -> list[Recovered]:
    """Of each reader whose share of followed pictures is known, under each design of 20 patients or more."""
    names = readers or [
        name for name, one in GALLERY.items() if one.truth is Truth.READS and one.following and name.startswith("reads")
    ]
    found = []
    chosen = tried[tried["reader"].isin(names) & (tried["patients"] >= 20) & tried["following low"].notna()]
    for (design, reader), rows in chosen.groupby(["design", "reader"], sort=False):
        truth = GALLERY[str(reader)].following
        covered = (rows["following low"] <= truth + 1e-12) & (rows["following high"] >= truth - 1e-12)
        mean = float(rows["following"].mean())
        found.append(Recovered(str(reader), str(design), len(rows), int(covered.sum()), mean))
    return found
