"""Stored values: int16 with a slope and an intercept per volume, as the scans of UCSF-PDGM are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from overread_phantom.anatomy import FloatArray
from overread_phantom.contrast import ALL, SERIES
from overread_phantom.tumour import generator


@dataclass(frozen=True)
class Scale:
    """value = slope * stored + intercept. The numbers are exact in binary, so that 0 can be stored as `zero`."""

    slope: float
    intercept: float
    zero: int

    @classmethod
    def draw(cls, seed: int, index: int, series: str) -> Scale:
        """A scale for a series of a study. With a slope of at least 0.5, values from -14,000 to 14,000 fit."""
        rng = generator(seed, index, 41, ALL.index(series))
        slope = int(rng.integers(128, 320)) / 256 * SERIES[series.removesuffix("_bias")].step
        zero = int(rng.integers(-2000, 2001))
        return cls(slope, -slope * zero, zero)

    def stored(self, values: FloatArray) -> npt.NDArray[np.int16]:
        scaled = (values - np.float32(self.intercept)) / np.float32(self.slope)
        return np.asarray(np.rint(scaled), dtype=np.int16)
