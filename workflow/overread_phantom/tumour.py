"""A planted glioma: its facts, and the voxels that show them.

Each study depends on the seed and its own index alone. What varies is drawn from shuffled blocks, so that every run
of studies holds all lobes, sizes and label sets in fair shares; label sets in about those of UCSF-PDGM.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

from overread.images.slices import most
from overread_phantom.anatomy import (
    GRID,
    MIDLINE,
    Anatomy,
    BoolArray,
    FloatArray,
    IntArray,
    Stretch,
    load_anatomy,
    nearest_box,
    patient_box,
)

Side = Literal["left", "right"]
Lobe = Literal["frontal", "temporal", "parietal", "occipital"]
Oedema = Literal["minimal", "mild", "moderate", "extensive"]
Necrosis = Literal["none", "small", "large", "eccentric"]
Enhancement = Literal["none", "thin rim", "thick rim", "solid"]
LabelArray = npt.NDArray[np.uint8]

CORE, OEDEMA, ENHANCING = 1, 2, 4

LOCATIONS: tuple[tuple[Side, Lobe], ...] = (
    ("right", "frontal"), ("left", "frontal"), ("right", "temporal"), ("left", "temporal"),
    ("right", "parietal"), ("left", "parietal"), ("right", "occipital"), ("left", "occipital"),
)  # fmt: skip
SIZES_CM = (2, 3, 4, 5)
MARGIN_MM: dict[Oedema, float] = {"minimal": 2.4, "mild": 10.0, "moderate": 20.0, "extensive": 30.0}
LABEL_SETS = ((1, 2, 4),) * 8 + ((2,), (2,), (2, 4), (1, 2))
"""Twelve in the shares of UCSF-PDGM (82, 10, 7 and 1 %), the rare ones raised so that a small demo has each."""

CENTRES: dict[Lobe, tuple[float, float, float]] = {
    "frontal": (89, 80, 93), "temporal": (74, 124, 53), "parietal": (87, 158, 103), "occipital": (95, 186, 72),
}  # fmt: skip
"""Middle of each right lobe of the atlas, in voxels of the grid (read off its slices)."""

TOLERANCE_CM = 0.25
"""How far the measured diameter may be from the whole number of centimetres that the label names."""

TRIES = 60


@dataclass(frozen=True)
class Facts:
    """What is true of a planted tumour. Reports, questions and `truth.csv` say nothing else."""

    side: Side
    lobe: Lobe
    size_cm: int  # greatest axial diameter of the mass without oedema, to the nearest centimetre
    diameters_mm: tuple[int, int, int]  # greatest axial, perpendicular axial, craniocaudal
    oedema: Oedema
    margin_mm: float
    necrosis: Necrosis
    enhancement: Enhancement


@dataclass(frozen=True)
class PlantedTumour:
    """A study before it is imaged: the patient's anatomy, the facts and the label map of the tumour's box."""

    seed: int
    index: int
    stretch: Stretch
    facts: Facts
    origin: tuple[int, int, int]  # first voxel of the box on the grid
    labels: LabelArray  # 0 none, 1 necrotic core, 2 oedema, 4 enhancing
    solid: LabelArray  # share of solid tumour tissue, 0 or 1: also where the label set calls it 2

    @property
    def study(self) -> str:
        return study_id(self.index)

    @cached_property
    def slice_index(self) -> int:
        """The axial slice with the most tumour."""
        counts = np.zeros(GRID[2], dtype=np.int64)
        counts[self.origin[2] : self.origin[2] + self.labels.shape[2]] = np.count_nonzero(self.labels, axis=(0, 1))
        return most(counts)


def study_id(index: int) -> str:
    return f"UCSF-PDGM-{index + 1:04d}"


def generator(seed: int, *key: int) -> np.random.Generator:
    """The random numbers of one thing of one study, independent of all others."""
    return np.random.default_rng([seed, *key])


def draw_study(seed: int, index: int) -> PlantedTumour:
    """The study number `index` of the phantom with `seed`. The same whatever others are drawn."""
    anatomy = load_anatomy()
    side, lobe = LOCATIONS[_from_block(seed, index, 0, len(LOCATIONS))]
    size_cm = SIZES_CM[_from_block(seed, index, 1, len(SIZES_CM))]
    oedema = tuple(MARGIN_MM)[_from_block(seed, index, 2, len(MARGIN_MM))]
    label_set = LABEL_SETS[_from_block(seed, index, 3, len(LABEL_SETS))]
    for attempt in range(TRIES):
        rng = generator(seed, index, 10, attempt)
        shape = _Shape.draw(rng, anatomy, side, lobe, size_cm, oedema, label_set)
        planted = _plant(shape, anatomy, seed, index)
        if planted is not None:
            return planted
    raise RuntimeError(f"no {size_cm} cm tumour fits into the {side} {lobe} lobe (seed {seed}, study {index})")


def _from_block(seed: int, index: int, topic: int, size: int) -> int:
    """Item `index` of an endless sequence of shuffled blocks 0..size-1."""
    return int(generator(seed, index // size, 20 + topic).permutation(size)[index % size])


@dataclass(frozen=True)
class _Shape:
    """A lobulated ellipsoid with a core, and oedema around it."""

    side: Side
    lobe: Lobe
    size_cm: int
    target_mm: float
    oedema: Oedema
    margin_mm: float
    necrosis: Necrosis
    enhancement: Enhancement
    label_set: tuple[int, ...]
    stretch: Stretch
    centre: FloatArray  # voxels of the grid
    ratios: tuple[float, float]  # second axial and craniocaudal axis over the greatest
    turn: float  # of the greatest axis against the sagittal direction, radians
    waves: npt.NDArray[np.float64]  # (3, 3, 2) by surface of mass, oedema, core, and axis: wave number (1/mm), phase
    core: tuple[float, float, float]  # centre of the core in units of the semi-axes

    @classmethod
    def draw(
        cls,
        rng: np.random.Generator,
        anatomy: Anatomy,
        side: Side,
        lobe: Lobe,
        size_cm: int,
        oedema: Oedema,
        label_set: tuple[int, ...],
    ) -> _Shape:
        scale, shift = rng.uniform(0.95, 1.04, 3), rng.uniform(-3, 3, 3) * (1, 1, 0.5)
        stretch = Stretch((scale[0], scale[1], scale[2]), (shift[0], shift[1], shift[2]))
        centre = np.array(CENTRES[lobe]) + rng.uniform(-4, 4, 3)
        if side == "left":
            centre[0] = 2 * MIDLINE - centre[0]
        necrosis: Necrosis = "none"
        if CORE in label_set:
            necrosis = ("small", "large", "eccentric")[rng.integers(3)]
        enhancement: Enhancement = "none"
        if ENHANCING in label_set:
            enhancement = {"none": "solid", "large": "thin rim"}.get(necrosis, "thick rim")  # type: ignore[assignment]
        angle = rng.uniform(0, 2 * np.pi)
        offset = 0.42 if necrosis == "eccentric" else 0.05
        turn = rng.uniform(-0.5, 0.5)
        return cls(
            side=side,
            lobe=lobe,
            size_cm=size_cm,
            target_mm=10 * (size_cm + rng.uniform(-0.2, 0.2)),
            oedema=oedema,
            margin_mm=MARGIN_MM[oedema] * rng.uniform(0.92, 1.08),
            necrosis=necrosis,
            enhancement=enhancement,
            label_set=label_set,
            stretch=stretch,
            centre=stretch.to_patient(centre.astype(np.float32), anatomy),
            ratios=(rng.uniform(0.68, 0.85), rng.uniform(0.7, 0.9)),
            turn=turn,
            waves=np.stack([rng.uniform(0.16, 0.3, (3, 3)), rng.uniform(0, 2 * np.pi, (3, 3))], axis=-1),
            core=(offset * np.cos(angle), offset * np.sin(angle), 0.0),
        )


def _plant(shape: _Shape, anatomy: Anatomy, seed: int, index: int) -> PlantedTumour | None:
    """The tumour of `shape`, or None if the anatomy cuts it so that it would not show what its facts say."""
    semi = shape.target_mm / 2
    room = semi * 1.25 + 3
    for _ in range(2):  # the lobes of the surface change the diameter: measure it and scale once
        low, high = _box(shape, anatomy, room, room)
        cerebrum = nearest_box(anatomy.cerebrum, anatomy, shape.stretch, low, high).astype(np.bool_)
        radius, _ = _radius(shape, low, high, semi)
        mass = (radius < 1) & cerebrum & _own_side(shape, anatomy, low, high)
        if not mass.any():
            return None
        greatest, _, _ = diameters(mass)
        semi *= shape.target_mm / greatest
    if mass.sum() < 0.9 * np.count_nonzero(radius < 1):
        return None
    low, high = _box(shape, anatomy, room + shape.margin_mm, room + 0.6 * shape.margin_mm)
    own_side = _own_side(shape, anatomy, low, high)
    cerebrum = nearest_box(anatomy.cerebrum, anatomy, shape.stretch, low, high).astype(np.bool_)
    tissue = nearest_box(anatomy.tissue, anatomy, shape.stretch, low, high).astype(np.bool_)
    spread = nearest_box(anatomy.spread, anatomy, shape.stretch, low, high).astype(np.float32)
    radius, distance = _radius(shape, low, high, semi)
    mass = (radius < 1) & cerebrum & own_side
    core = np.zeros_like(mass)
    if shape.necrosis != "none":
        core = mass & (_core_radius(shape, low, high, semi) < (0.74 if shape.necrosis == "large" else 0.46))
    beyond = distance * (1 - 1 / np.maximum(radius, np.float32(1e-3)))
    x, y, z = _offsets(shape, low, high)
    uneven = 1 + np.float32(0.3) * _wave(shape, x, y, z, 1)
    swollen = tissue & own_side & ~mass & (beyond < shape.margin_mm * uneven * (0.65 + 0.35 * spread))
    labels = np.zeros(mass.shape, dtype=np.uint8)
    labels[_touching(swollen, mass)] = OEDEMA
    labels[mass] = ENHANCING if ENHANCING in shape.label_set else OEDEMA
    if CORE in shape.label_set:
        labels[core] = CORE
    measured = diameters(mass)
    facts = Facts(
        side=shape.side,
        lobe=shape.lobe,
        size_cm=shape.size_cm,
        diameters_mm=measured,
        oedema=shape.oedema,
        margin_mm=round(float(shape.margin_mm), 1),
        necrosis=shape.necrosis,
        enhancement=shape.enhancement,
    )
    solid = (mass & ~core).astype(np.uint8)
    origin = (int(low[0]), int(low[1]), int(low[2]))
    planted = PlantedTumour(seed, index, shape.stretch, facts, origin, labels, solid)
    shown = mass[:, :, planted.slice_index - origin[2]]
    if abs(measured[0] / 10 - shape.size_cm) > TOLERANCE_CM or not shown.any():
        return None
    if greatest_diameter(np.argwhere(shown))[0] < 0.9 * measured[0]:
        return None  # the slice with the most tumour, oedema included, would not show the mass in its full size
    return planted


def _touching(swollen: BoolArray, mass: BoolArray) -> BoolArray:
    """The oedema that is joined to the mass: no islands, which would pass for further lesions."""
    from scipy.ndimage import label

    parts, _ = label(swollen | mass)
    kept = np.zeros(parts.max() + 1, dtype=np.bool_)
    kept[parts[mass]] = True
    return np.asarray(kept[parts] & swollen)


def _box(shape: _Shape, anatomy: Anatomy, in_plane: float, along: float) -> tuple[IntArray, IntArray]:
    """Voxels within `in_plane` mm (first, second axis) and `along` mm (third) of the centre, inside the brain's box."""
    first, last = patient_box(anatomy, shape.stretch)
    room = np.array([in_plane, in_plane, along])
    low = np.floor(shape.centre - room).astype(np.int64)
    high = np.ceil(shape.centre + room).astype(np.int64) + 1
    return np.maximum(low, first), np.minimum(high, last)


def _own_side(shape: _Shape, anatomy: Anatomy, low: IntArray, high: IntArray) -> BoolArray:
    """The tumour's hemisphere, as the falx bounds it: (first axis, 1, 1)."""
    midline = shape.stretch.to_patient(np.array([MIDLINE, 0, 0], dtype=np.float32), anatomy)[0]
    lateral = np.arange(low[0], high[0]) - midline
    own = lateral > 1 if shape.side == "left" else lateral < -1
    return np.asarray(own[:, None, None])


def _offsets(shape: _Shape, low: IntArray, high: IntArray) -> list[FloatArray]:
    """Distance from the centre along each axis (mm), ready to broadcast."""
    axes = [np.arange(low[a], high[a], dtype=np.float32) - shape.centre[a] for a in range(3)]
    return [axes[0][:, None, None], axes[1][None, :, None], axes[2][None, None, :]]


def _ellipsoid(
    shape: _Shape, x: FloatArray, y: FloatArray, z: FloatArray, semi: float, at: tuple[float, float, float]
) -> FloatArray:
    """Squared distance from the centre `at` in units of the semi-axes; the longest lies near the sagittal direction."""
    sine, cosine = np.float32(np.sin(shape.turn)), np.float32(np.cos(shape.turn))
    second, third = (np.float32(semi * ratio) for ratio in shape.ratios)
    long = (x * sine + y * cosine) / np.float32(semi) - np.float32(at[0])
    short = (x * cosine - y * sine) / second - np.float32(at[1])
    return np.asarray(long * long + short * short + (z / third - np.float32(at[2])) ** 2)


def _radius(shape: _Shape, low: IntArray, high: IntArray, semi: float) -> tuple[FloatArray, FloatArray]:
    """Distance from the centre over that of the mass's lobulated surface in the same direction, and in mm."""
    x, y, z = _offsets(shape, low, high)
    radius = np.sqrt(_ellipsoid(shape, x, y, z, semi, (0.0, 0.0, 0.0)))
    radius *= 1 + np.float32(0.18) * _wave(shape, x, y, z, 0)
    distance = np.sqrt(x * x + y * y + (np.float32(1.7) * z) ** 2)  # oedema spreads less along the body's axis
    return radius, distance


def _core_radius(shape: _Shape, low: IntArray, high: IntArray, semi: float) -> FloatArray:
    """Distance from the core's centre in units of the semi-axes, made uneven."""
    x, y, z = _offsets(shape, low, high)
    radius = np.sqrt(_ellipsoid(shape, x, y, z, semi, shape.core))
    return np.asarray(radius * (1 + np.float32(0.2) * _wave(shape, 2 * x, 2 * y, 2 * z, 2)))


def _wave(shape: _Shape, x: FloatArray, y: FloatArray, z: FloatArray, which: int) -> FloatArray:
    """-1 .. 1, smooth."""
    (kx, px), (ky, py), (kz, pz) = shape.waves[which].astype(np.float32)
    return np.asarray(np.sin(kx * x + px) * np.sin(ky * y + py) * np.sin(kz * z + pz))


def diameters(mass: BoolArray) -> tuple[int, int, int]:
    """Greatest axial diameter, the one perpendicular to it in the same slice, and the craniocaudal extent, in mm.

    mass  (first, second, third axis), 1 mm voxels
    """
    levels = np.flatnonzero(mass.any(axis=(0, 1)))
    areas = np.count_nonzero(mass, axis=(0, 1))
    candidates = levels[areas[levels] >= 0.7 * areas.max()]
    best = max((greatest_diameter(np.argwhere(mass[:, :, k])) for k in candidates), key=lambda pair: pair[0])
    return round(best[0]), round(best[1]), int(levels[-1] - levels[0] + 1)


def greatest_diameter(points: IntArray, directions: int = 36) -> tuple[float, float]:
    """Greatest width (mm) over all directions, and the width perpendicular to it. Voxels are 1 mm wide.

    points  (n, 2) voxels of a region
    """
    angles = np.arange(directions) * np.pi / directions
    along = points @ np.stack([np.cos(angles), np.sin(angles)])
    widths = along.max(axis=0) - along.min(axis=0) + 1
    best = int(widths.argmax())
    return float(widths[best]), float(widths[(best + directions // 2) % directions])
