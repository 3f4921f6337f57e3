"""What the numbers in a tumour mask mean: 1 necrotic core, 2 oedema, 4 enhancing tumour (UCSF-PDGM, BraTS 2021).

Networks give three nested regions instead: tumour core (necrotic and enhancing), whole tumour, enhancing tumour.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from overread.images.header import BadFile

if TYPE_CHECKING:
    from overread.images.volume import BoolArray, FloatArray, Volume

LabelArray = npt.NDArray[np.uint8]

CORE, OEDEMA, ENHANCING = 1, 2, 4
LABELS = (CORE, OEDEMA, ENHANCING)
TC, WT, ET = 0, 1, 2
"""Places of tumour core, whole tumour and enhancing tumour among a network's outputs."""

ENHANCING_2023 = 3
"""BraTS numbers enhancing tumour 3 since 2023."""

ROUNDING = 0.01
"""How far a stored label may be from its whole number. UCSF-PDGM holds 0.9999999998; an interpolated mask holds 0.4."""


def from_regions(regions: BoolArray) -> LabelArray:
    """Labels of nested regions. What is written later covers what was before: whole tumour, its core, what enhances.

    regions  (3, x, y, z) in the order TC, WT, ET
    """
    labels = np.zeros(regions.shape[1:], dtype=np.uint8)
    labels[regions[WT]] = OEDEMA
    labels[regions[TC]] = CORE
    labels[regions[ET]] = ENHANCING
    return labels


def to_regions(labels: LabelArray) -> BoolArray:
    """The regions (3, x, y, z) in the order TC, WT, ET of labels: what a network is trained to give."""
    return np.stack([(labels == CORE) | (labels == ENHANCING), labels > 0, labels == ENHANCING])


def read_labels(volume: Volume) -> tuple[LabelArray, dict[str, int]]:
    """The labels of a mask file, rounded; and which of the file's numbers stand for others here.

    A 3 is read as enhancing tumour if the mask has no 4: so BraTS numbers it since 2023.
    raises  BadFile for values that are no labels, and for a mask with both 3 and 4, whose 3 could be anything
    """
    held = volume.beyond(ROUNDING)
    # Only what is not 0 is looked at, in the order of the file: a mask is mostly 0.
    values = volume.stored.T[held.T].astype(np.float64) * volume.slope + volume.intercept
    whole = np.rint(values)
    strange = np.unique(values[(np.abs(values - whole) > ROUNDING) | ~np.isin(whole, (0, *LABELS, ENHANCING_2023))])
    if strange.size:
        some = ", ".join(f"{value:g}" for value in strange[:5])
        raise BadFile(f"{volume.path.name}: values that are no labels ({some}); 0, 1, 2 and 4 are")
    relabelled: dict[str, int] = {}
    if (whole == ENHANCING_2023).any():
        if (whole == ENHANCING).any():
            raise BadFile(
                f"{volume.path.name}: labels 3 and 4 in one mask: which of them is enhancing tumour is not said"
            )
        whole[whole == ENHANCING_2023] = ENHANCING
        relabelled[str(ENHANCING_2023)] = ENHANCING
    labels = np.zeros(volume.shape, dtype=np.uint8, order="F")
    labels.T[held.T] = whole
    return labels, relabelled


def volumes_ml(labels: LabelArray, affine: FloatArray) -> dict[str, float]:
    """Millilitres by label.

    affine  (4, 4) voxel to world, mm
    """
    voxel = abs(float(np.linalg.det(affine[:3, :3]))) / 1000
    return {str(label): round(int(np.count_nonzero(labels == label)) * voxel, 4) for label in LABELS}


def dice(one: BoolArray, other: BoolArray) -> float:
    """Overlap of two regions, 0 to 1 (Dice 1945); 1 if both are empty."""
    total = int(np.count_nonzero(one)) + int(np.count_nonzero(other))
    return 2 * int(np.count_nonzero(one & other)) / total if total else 1.0
