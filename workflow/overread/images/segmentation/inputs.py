"""The four series of a study as a network was trained to see them: one grid, one orientation, each on its own scale.

Networks were trained on BraTS: brains without skull, voxels of 1 mm, nothing but 0 outside. Where a study differs it is
brought there and the result says so, or it is refused with the reason.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from overread.images.files import BRAIN, StudyFiles
from overread.images.segmentation.grid import Grid, SingleArray, mask_on, series_on, values_of
from overread.images.volume import BadFile, BoolArray

REFERENCE = "FLAIR"
"""The series whose grid the mask has."""

SPACING_MM = (0.9, 1.1)
"""Voxel sizes that count as the 1 mm of the training data."""

OUTSIDE = 0.25
"""Signal outside of the brain, as a share of the brain's voxels, above which a series has its skull or a background.

What two brain masks differ by is a few per cent; the scalp alone is as large as a third of the brain.
"""


@dataclass(frozen=True)
class Inputs:
    """What a network is given, and where that came from."""

    channels: SingleArray  # (4, x, y, z) in the network's order of series and orientation, normalised
    grid: Grid  # of the study's FLAIR, as stored
    brain: BoolArray | None  # on that grid
    brain_made: bool  # by `make_brain`, because the study brings none
    resampled: tuple[str, ...]
    background_removed: tuple[str, ...]


def read_inputs(
    files: StudyFiles, order: tuple[str, ...], make_brain: Callable[[SingleArray, Grid], BoolArray] | None
) -> Inputs:
    """The series of `order`, stacked in that order.

    make_brain  makes a brain mask from T1 on the grid where the study brings none; without it there is none
    raises      BadFile: a series that is missing, can't be used, lies elsewhere, or has voxels that are not 1 mm
    """
    reference = files.volume(REFERENCE)
    grid = Grid.of(reference)
    if not all(SPACING_MM[0] <= size <= SPACING_MM[1] for size in grid.spacing_mm):
        sizes = " x ".join(f"{size:.3g}" for size in grid.spacing_mm)
        raise BadFile(f"{reference.path.name}: voxels of {sizes} mm; the network takes 1 mm: resample the study first")
    values: dict[str, SingleArray] = {}
    resampled = []
    for name in order:
        volume = files.volume(name)
        values[name], moved = series_on(volume, grid, reference.foreground)
        resampled += [name] if moved else []
    brain, made = _brain(files, grid, values["T1"], make_brain)
    removed = []
    for name in order:
        if brain is not None and np.count_nonzero(values[name][~brain]) > OUTSIDE * np.count_nonzero(brain):
            values[name][~brain] = 0
            removed.append(name)
        if not np.count_nonzero(values[name]):
            raise BadFile(f"{files.volume(name).path.name}: nothing in it lies inside of the brain mask")
    channels = normalised(np.asarray(grid.turned(np.stack([values[name] for name in order])), dtype=np.float32))
    return Inputs(channels, grid, brain, made, tuple(resampled), tuple(removed))


def read_brain(files: StudyFiles, make_brain: Callable[[SingleArray, Grid], BoolArray]) -> tuple[BoolArray, Grid, bool]:
    """The study's own brain mask on its own grid, else one made from T1; and whether it was made."""
    if files.has(BRAIN):
        mask = files.volume(BRAIN)
        return mask.labelled, Grid.of(mask), False
    t1 = files.volume("T1")
    return make_brain(values_of(t1), Grid.of(t1)), Grid.of(t1), True


def normalised(channels: SingleArray) -> SingleArray:
    """Each channel to mean 0 and standard deviation 1 over what is not 0, which stays 0 (MONAI's NormalizeIntensity).

    channels  (4, x, y, z)
    """
    from monai.transforms.intensity.array import NormalizeIntensity

    return np.asarray(NormalizeIntensity(nonzero=True, channel_wise=True)(channels), dtype=np.float32)


def _brain(
    files: StudyFiles, grid: Grid, t1: SingleArray, make_brain: Callable[[SingleArray, Grid], BoolArray] | None
) -> tuple[BoolArray | None, bool]:
    if files.has(BRAIN):
        mask = files.volume(BRAIN)
        brain = mask_on(mask, grid)
        if not brain.any():
            raise BadFile(f"{mask.path.name}: holds no brain where FLAIR lies")
        return brain, False
    return (None, False) if make_brain is None else (make_brain(t1, grid), True)
