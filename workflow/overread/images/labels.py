"""What the numbers in a tumour mask mean: 1 necrotic core, 2 oedema, 4 enhancing tumour (UCSF-PDGM, BraTS 2021).

Masks of other schemes are read as the config says (`segmentation.labels`), and are these numbers from there on.
Networks give three nested regions instead: tumour core (necrotic and enhancing), whole tumour, enhancing tumour.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from overread.images.header import BadFile

if TYPE_CHECKING:
    from overread.images.volume import BoolArray, FloatArray, Volume

LabelArray = npt.NDArray[np.uint8]

CORE, OEDEMA, ENHANCING = 1, 2, 4
LABELS = (CORE, OEDEMA, ENHANCING)
NUMBERS = {"core": CORE, "oedema": OEDEMA, "enhancing": ENHANCING, "other": 0}
"""By what the config calls them."""
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


LARGEST_TUMOUR = 500.0
"""Millilitres with its oedema: a third of a brain. What is more is no glioma."""

CORE_TO_OEDEMA = 2.0
LEAST_CORE = 5.0
"""Of a glioma the necrotic core is nearly always the smaller part. Much more of it than of oedema, in a core of some
millilitres, is what a mask of another scheme looks like."""


def meanings_of(reading: Mapping[str, str]) -> dict[int, int] | None:
    """From `Study.reading`: the number here of each number in the mask; None where the config does not say."""
    found = {
        int(name.removeprefix("label ")): NUMBERS[text] for name, text in reading.items() if name.startswith("label ")
    }
    return found or None


def read_labels(volume: Volume) -> tuple[LabelArray, dict[str, int]]:
    """The labels of a mask file, rounded; and which of the file's numbers stand for others here.

    What a number means is `volume.meanings`. Where nobody said so, it is as in BraTS 2021, and a 3 is read as enhancing
    tumour if the mask has no 4: so BraTS numbers it since 2023.
    raises  BadFile for values that are no labels, and for a mask with both 3 and 4, whose 3 could be anything
    """
    known = (*LABELS, ENHANCING_2023) if volume.meanings is None else tuple(volume.meanings)
    held = volume.beyond(ROUNDING)
    # Only what is not 0 is looked at, in the order of the file: a mask is mostly 0.
    values = volume.stored.T[held.T].astype(np.float64) * volume.slope + volume.intercept
    whole = np.rint(values)
    strange = np.unique(values[(np.abs(values - whole) > ROUNDING) | ~np.isin(whole, (0, *known))])
    if strange.size:
        some = ", ".join(f"{value:g}" for value in strange[:5])
        raise BadFile(f"{volume.path.name}: values that are no labels ({some}); {_listed(volume)} are")
    relabelled: dict[str, int] = {}
    if volume.meanings is not None:
        numbers = np.zeros(256, dtype=np.uint8)
        numbers[list(volume.meanings)] = list(volume.meanings.values())
        there = {int(number) for number in np.unique(whole)} - {0}
        relabelled = {
            str(theirs): ours for theirs, ours in sorted(volume.meanings.items()) if theirs in there and theirs != ours
        }
        whole = numbers[whole.astype(np.int64)]
    elif (whole == ENHANCING_2023).any():
        if (whole == ENHANCING).any():
            raise BadFile(
                f"{volume.path.name}: labels 3 and 4 in one mask: which of them is enhancing tumour is not said"
            )
        whole[whole == ENHANCING_2023] = ENHANCING
        relabelled[str(ENHANCING_2023)] = ENHANCING
    labels = np.zeros(volume.shape, dtype=np.uint8, order="F")
    labels.T[held.T] = whole
    return labels, relabelled


def _listed(volume: Volume) -> str:
    numbers = [0, *sorted(volume.meanings or LABELS)]
    return f"{', '.join(map(str, numbers[:-1]))} and {numbers[-1]}"


def doubts(volume: Volume) -> tuple[str, ...]:
    """Why the meaning of a mask's numbers should be looked at by a person; empty if nothing speaks against it."""
    labels, relabelled = volume.labels
    found = []
    if volume.meanings is None and relabelled:
        found.append(
            "label 3 of the tumour mask was read as enhancing, 1 as necrotic core and 2 as oedema; in the Decathlon "
            "1 is oedema and 2 core: segmentation.labels says which"
        )
    ml = volumes_ml(labels, volume.affine)
    core, oedema, whole = ml[str(CORE)], ml[str(OEDEMA)], sum(ml.values())
    if core >= LEAST_CORE and oedema > 0 and core > CORE_TO_OEDEMA * oedema:
        found.append(
            f"{core:.0f} ml of necrotic core and {oedema:.0f} ml of oedema by the tumour mask: are its labels those of "
            "another scheme (segmentation.labels)?"
        )
    if whole > LARGEST_TUMOUR:
        found.append(f"a tumour of {whole:.0f} ml by its mask")
    return tuple(found)


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
