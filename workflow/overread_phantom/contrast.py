"""What each MRI series shows of the anatomy and of a planted tumour.

A series is a mixture of what its tissues look like. The values are typical of 3 T protocols in relation to white matter
(apparent diffusion coefficients in 10^-3 mm2/s); they are set for the eye, not for measurement. Everything is made
slice by slice, so that a slice alone is the same to the bit as in its volume.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from overread_phantom.anatomy import (
    BoolArray,
    FloatArray,
    TissueSlice,
    load_anatomy,
    patient_box,
    smooth,
    tissue_slice,
)
from overread_phantom.tumour import CORE, ENHANCING, OEDEMA, PlantedTumour, generator


@dataclass(frozen=True)
class Contrast:
    """Signal of fluid, grey and white matter, of oedema, necrotic core, solid tumour, and what contrast agent adds."""

    fluid: float
    grey: float
    white: float
    oedema: float
    core: float
    solid: float
    agent: float = 0.0
    noise: float = 0.03  # standard deviation
    sag: float = 0.05  # how far the receive coil's sensitivity falls off
    unit: float = 600.0  # stored value of white matter at 1; ADC is in 10^-6 mm2/s
    rim_loss: float = 0.0  # signal lost to blood products at the edge of the core
    blur: int = 1  # width of a running mean in the slice, and slices of one noise: ASL is measured in large voxels
    bundled: float = 0.0  # how far white matter differs with the direction of its fibres
    step: float = 1.0  # of the stored numbers, a power of 2: fractional anisotropy lies between 0 and 1


SERIES: dict[str, Contrast] = {
    "T1": Contrast(0.0, 0.0, 0.0, 0.62, 0.38, 0.62, noise=0.018),
    "T1c": Contrast(0.0, 0.0, 0.0, 0.62, 0.36, 0.66, agent=0.75, noise=0.02),
    "T2": Contrast(2.3, 1.32, 0.95, 1.95, 2.15, 1.5, noise=0.04),
    "FLAIR": Contrast(0.16, 1.02, 0.78, 1.75, 0.5, 1.2, noise=0.035),
    "DWI": Contrast(0.28, 1.08, 0.92, 1.12, 0.62, 1.42, noise=0.05, sag=0.02),
    "SWI": Contrast(0.62, 0.82, 1.0, 1.0, 0.95, 0.8, noise=0.03, rim_loss=0.55),
    "ADC": Contrast(2.9, 0.86, 0.74, 1.42, 2.0, 0.98, noise=0.05, sag=0.0, unit=1000.0),
    # ml/100 g/min over 100; the diffusivities in 10^-6 mm2/s, their mean is MD
    "ASL": Contrast(0.02, 0.62, 0.24, 0.18, 0.03, 0.9, noise=0.25, sag=0.0, unit=100.0, blur=5),
    "DTI_eddy_FA": Contrast(0.06, 0.14, 0.48, 0.2, 0.07, 0.13, noise=0.03, sag=0.0, unit=1.0, bundled=0.6, step=2**-13),
    "DTI_eddy_MD": Contrast(2.95, 0.86, 0.76, 1.4, 2.0, 1.0, noise=0.04, sag=0.0, unit=1000.0),
    "DTI_eddy_L1": Contrast(3.1, 0.96, 1.22, 1.65, 2.12, 1.1, noise=0.06, sag=0.0, unit=1000.0, bundled=0.2),
    "DTI_eddy_L2": Contrast(2.95, 0.86, 0.62, 1.35, 2.0, 1.0, noise=0.06, sag=0.0, unit=1000.0, bundled=-0.15),
    "DTI_eddy_L3": Contrast(2.8, 0.76, 0.44, 1.2, 1.88, 0.9, noise=0.06, sag=0.0, unit=1000.0, bundled=-0.2),
}
"""T1 and T1c take healthy tissue from the atlas itself, so its shares have no value there."""

MAIN = ("T1", "T1c", "T2", "FLAIR", "DWI", "SWI", "ADC")
CORRECTED = ("T1_bias", "T1c_bias", "T2_bias", "FLAIR_bias", "DWI_bias", "SWI_bias")
"""The same scans without the coil's unevenness, as the release has them."""

ALL = (*SERIES, *CORRECTED)
"""Every series on the brain's grid. The order seeds their random numbers: append only."""

FROM_ATLAS = frozenset({"T1", "T1c"})
SIGNED = frozenset(SERIES) - {"T1", "T1c", "T2", "FLAIR", "DWI", "SWI"}
"""Computed maps, whose noise goes below 0."""


@dataclass(frozen=True)
class TumourSlice:
    """Shares of a voxel (0..1) on the patient's box, with soft edges."""

    oedema: FloatArray
    core: FloatArray
    solid: FloatArray
    enhancing: FloatArray
    edge: FloatArray  # of the core
    texture: FloatArray  # unevenness of the mass, about -0.2 .. 0.2


def series_slices(planted: PlantedTumour, k: int, names: tuple[str, ...]) -> dict[str, FloatArray]:
    """Axial slice `k` of each series (of `ALL`) on the patient's box, in stored units, 0 outside the brain.

    The dictionary is empty where the slice holds no brain.
    """
    anatomy = load_anatomy()
    tissue = tissue_slice(anatomy, planted.stretch, k)
    if tissue is None:
        return {}
    return signals(planted, k, names, tissue, tumour_slice(planted, k, tissue.brain.shape))


def signals(
    planted: PlantedTumour, k: int, names: tuple[str, ...], tissue: TissueSlice, tumour: TumourSlice | None
) -> dict[str, FloatArray]:
    """The same from tissue and tumour already cut at slice `k`."""
    return {name: _signal(planted, k, name, tissue, tumour) for name in names}


def brain_slice(planted: PlantedTumour, k: int) -> BoolArray | None:
    """The brain mask of axial slice `k` on the patient's box; None where there is none."""
    tissue = tissue_slice(load_anatomy(), planted.stretch, k)
    return None if tissue is None else tissue.brain


def tumour_slice(planted: PlantedTumour, k: int, shape: tuple[int, ...]) -> TumourSlice | None:
    """The tumour in slice `k`, or None where there is none."""
    at = k - planted.origin[2]
    if not 0 <= at < planted.labels.shape[2]:
        return None
    labels, solid = planted.labels[:, :, at], planted.solid[:, :, at]
    if not labels.any():
        return None
    low, _ = patient_box(load_anatomy(), planted.stretch)
    first, second = planted.origin[0] - low[0], planted.origin[1] - low[1]
    masks = np.zeros((4, *shape), dtype=np.float32)
    place = (slice(None), slice(first, first + labels.shape[0]), slice(second, second + labels.shape[1]))
    masks[place] = np.stack([(labels == OEDEMA) & (solid == 0), labels == CORE, solid == 1, labels == ENHANCING])
    oedema, core, tumour, enhancing = _soften(masks)
    texture = _texture(planted, k, shape, (int(low[0]), int(low[1])))
    return TumourSlice(oedema, core, tumour, enhancing, 4 * core * (1 - core), texture)


def _texture(planted: PlantedTumour, k: int, shape: tuple[int, ...], low: tuple[int, int]) -> FloatArray:
    """Smooth oblique waves of about 1 cm, continuous through the slices."""
    rng = generator(planted.seed, planted.index, 31)
    i = np.arange(low[0], low[0] + shape[0], dtype=np.float32)[:, None]
    j = np.arange(low[1], low[1] + shape[1], dtype=np.float32)[None, :]
    total = np.zeros(shape, dtype=np.float32)
    for _ in range(6):
        direction = rng.standard_normal(3)
        x, y, z = (direction * rng.uniform(0.5, 0.9) / np.linalg.norm(direction)).astype(np.float32)
        total += np.float32(0.022) * np.sin(x * i + y * j + (z * k + np.float32(rng.uniform(0, 2 * np.pi))))
    return total


def _signal(planted: PlantedTumour, k: int, name: str, tissue: TissueSlice, tumour: TumourSlice | None) -> FloatArray:
    scan = name.removesuffix("_bias")
    contrast = SERIES[scan]
    if scan in FROM_ATLAS:
        signal = tissue.t1.copy()
    else:
        white = tissue.white * _bundles(planted, k, tissue.white.shape, contrast.bundled)
        signal = contrast.fluid * tissue.csf + contrast.grey * tissue.grey + contrast.white * white
    rng = generator(planted.seed, planted.index, 40, list(SERIES).index(scan), k // contrast.blur)
    noise = rng.standard_normal(signal.shape, dtype=np.float32)
    if tumour is not None:
        # Oedema soaks tissue that stays visible; core and solid tumour replace it.
        rest = np.maximum(1 - tumour.solid - tumour.core, np.float32(0.05))
        soaked = np.float32(0.8) * np.minimum(tumour.oedema / rest, 1)
        signal += soaked * (contrast.oedema - signal)
        replaced = tumour.solid + tumour.core
        signal *= 1 - replaced
        signal += (tumour.solid * contrast.solid + tumour.core * contrast.core) * (1 + tumour.texture)
        signal += contrast.agent * tumour.enhancing
        signal -= contrast.rim_loss * tumour.edge
    signal += contrast.noise * noise
    if contrast.blur > 1:
        signal = smooth(signal, contrast.blur)
    signal *= contrast.unit * _sensitivity(planted, k, signal.shape, contrast.sag if scan == name else 0.0)
    signal *= tissue.brain
    return np.asarray(signal if scan in SIGNED else np.maximum(signal, 0), dtype=np.float32)


def _bundles(planted: PlantedTumour, k: int, shape: tuple[int, ...], strength: float) -> FloatArray:
    """Smooth factor about 1 for white matter, 1 - strength .. 1 + strength: fibres that run this way and that."""
    if strength == 0:
        return np.ones(shape, dtype=np.float32)
    rng = generator(planted.seed, planted.index, 32)
    i, j = (np.arange(n, dtype=np.float32) for n in shape)
    total = np.zeros(shape, dtype=np.float32)
    for _ in range(4):
        x, y, z = rng.uniform(0.1, 0.3, 3).astype(np.float32)
        one, two = rng.uniform(0, 2 * np.pi, 2).astype(np.float32)
        total += np.sin(x * i + z * k + one)[:, None] * np.sin(y * j - z * k + two)[None, :]
    return np.asarray(1 + np.float32(strength) * total / 4, dtype=np.float32)


def _sensitivity(planted: PlantedTumour, k: int, shape: tuple[int, ...], sag: float) -> FloatArray:
    """Smooth gain of the receive coil, 1 - sag .. 1 + sag about."""
    rng = generator(planted.seed, planted.index, 30)
    phases, gain = rng.uniform(0, 2 * np.pi, 3), rng.uniform(0.85, 1.15)
    waves = [np.sin(np.arange(n) / 60 + phase).astype(np.float32) for n, phase in zip(shape, phases, strict=False)]
    along = np.float32(np.sin(k / 60 + phases[2]))
    return np.asarray(np.float32(gain) * (1 + np.float32(sag) * (waves[0][:, None] * waves[1][None, :] + along) / 2))


def _soften(masks: FloatArray) -> FloatArray:
    """Binomial (1, 2, 1) / 4 filter along the last two axes."""
    for axis in (1, 2):
        padded = np.pad(masks, [(1, 1) if a == axis else (0, 0) for a in range(3)])
        n = masks.shape[axis]
        masks = (padded.take(range(n), axis) + 2 * masks + padded.take(range(2, n + 2), axis)) / np.float32(4)
    return masks
