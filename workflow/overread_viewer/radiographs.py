"""A radiograph for the browser: the file's values at their full depth, so that any window shows what is there."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from overread_viewer.kept import Kept
from overread_viewer.volumes import tag_of

BUDGET = 128 * 2**20

STEPS = 65535


@dataclass(frozen=True)
class Pixels:
    """Whole numbers of 8 or 16 bits, little-endian, row after row.

    facts  width, height, bits, slope and intercept (a value is stored * slope + intercept), exact (whether no value was
           rounded), low, high and inverted (the file's own window), aspect (height of a pixel over its width), about
    """

    content: bytes
    facts: dict[str, Any]

    @cached_property
    def tag(self) -> str:
        return tag_of(self.content)


class Radiographs:
    """Radiographs that were asked for, kept while their files are what they were."""

    def __init__(self, budget: int = BUDGET) -> None:
        self._kept = Kept(budget)

    def pixels(self, path: Path) -> Pixels:
        """raises  BadFile with the file and the reason"""
        also = tuple(sorted(path.iterdir())) if path.is_dir() else ()
        found: Pixels = self._kept.get(path, lambda: pixels_of(path), also=also, size=lambda one: len(one.content))
        return found


def pixels_of(path: Path) -> Pixels:
    """The values of a radiograph in 8 bits if its file has them, else in 16.

    Whole values that span less than 65,536 steps are kept as they are; others are rounded to 65,536 steps from the
    least to the greatest.
    raises  BadFile with the file and the reason
    """
    import numpy as np

    from overread.images.radiograph import read_values

    read = read_values(path)
    values = read.values
    height, width = values.shape
    facts = {
        "width": width, "height": height, "low": read.low, "high": read.high, "inverted": read.inverted,
        "aspect": read.spacing[0] / read.spacing[1], "about": read.about,
    }  # fmt: skip
    if values.dtype == np.uint8:
        return Pixels(values.tobytes(), {**facts, "bits": 8, "slope": 1.0, "intercept": 0.0, "exact": True})
    least, most = float(values.min()), float(values.max())
    exact = most - least <= STEPS and bool((values == np.rint(values)).all())
    slope = 1.0 if exact else (most - least) / STEPS
    stored = np.rint((values.astype(np.float64) - least) / slope).astype("<u2")
    return Pixels(stored.tobytes(), {**facts, "bits": 16, "slope": slope, "intercept": least, "exact": exact})
