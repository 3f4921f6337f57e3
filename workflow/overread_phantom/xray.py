"""Semi-synthetic chest X-rays: the real radiograph of `xray_base` with planted findings, as a MIMIC-CXR-JPG folder.

A study is a handful of numbers drawn from (seed, patient, study); the picture and the report both follow from them, so
the truth is known to the pixel. Patients share the base's anatomy and differ in build, heart size and findings.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from PIL import Image

from overread_phantom import xray_findings, xray_grammar
from overread_phantom.xray_base import FULL, Float, resized
from overread_phantom.xray_findings import CENTRES, PAINTERS, Canvas, Plan

PLANTED = (
    "Atelectasis", "Cardiomegaly", "Consolidation", "Edema", "Enlarged Cardiomediastinum", "Lung Lesion",
    "Lung Opacity", "Pleural Effusion", "Pleural Other", "Pneumothorax", "Support Devices",
)  # fmt: skip
"""The findings whose truth the pixels carry. Fracture (a rib step is smaller than a pixel at 64 x 64) and Pneumonia
(the same pixels as Consolidation) are never planted, never mentioned and must not be asked."""

PREVALENCE = {
    "Atelectasis": 0.16, "Cardiomegaly": 0.28, "Consolidation": 0.16, "Edema": 0.15, "Enlarged Cardiomediastinum": 0.22,
    "Lung Lesion": 0.16, "Lung Opacity": 0.05, "Pleural Effusion": 0.30, "Pleural Other": 0.25, "Pneumothorax": 0.25,
    "Support Devices": 0.40,
}  # fmt: skip
"""How often each is planted by itself. With `IMPLIES` Lung Opacity comes to about 0.5, Enlarged Cardiomediastinum to
0.44."""

IMPLIES = {
    "Lung Opacity": ("Atelectasis", "Consolidation", "Edema", "Lung Lesion"),
    "Enlarged Cardiomediastinum": ("Cardiomegaly",),
}
"""The CheXpert hierarchy: a parent is present with any of its children."""

STUDIES_PER_PATIENT = (0.25, 0.30, 0.25, 0.20)
"""How often a patient has 1, 2, 3 or 4 studies."""


@dataclass(frozen=True)
class Frame:
    """How the patient stands and the film is exposed."""

    wide: float
    tall: float
    turn: float
    dx: float
    dy: float
    gain: float
    offset: float
    gamma: float
    heart: float


@dataclass(frozen=True)
class PlantedStudy:
    """The whole truth about one semi-synthetic study.

    truth    every planted finding: is it in the pixels
    labels   what its report says, as the CheXpert labeller writes it: 1, 0, -1; not mentioned is absent
    report   text by section: findings, impression
    """

    seed: int
    index: int
    number: int
    plans: tuple[Plan, ...]
    frame: Frame
    truth: dict[str, bool]
    labels: dict[str, int] = field(default_factory=dict)
    report: dict[str, str] = field(default_factory=dict)


def study_count(seed: int, index: int) -> int:
    """How many studies patient `index` has, 1 to 4."""
    rng = np.random.default_rng([seed, index, 1])
    return int(rng.choice(4, p=STUDIES_PER_PATIENT)) + 1


def draw_study(seed: int, index: int, number: int = 0) -> PlantedStudy:
    """Study `number` (from 0) of patient `index`: a pure function of its three arguments."""
    patient = np.random.default_rng([seed, index, 0])
    wide, tall, heart = (float(patient.uniform(*span)) for span in ((1.02, 1.08), (1.01, 1.07), (-34, -14)))
    rng = np.random.default_rng([seed, index, 2, number])
    present = {finding: bool(rng.random() < PREVALENCE[finding]) for finding in PLANTED}
    plans = _plans(present, rng)
    truth = {
        finding: present[finding] or any(present[child] for child in IMPLIES.get(finding, ())) for finding in PLANTED
    }
    frame = Frame(
        wide=wide,
        tall=tall,
        turn=float(rng.uniform(-1.5, 1.5)),
        dx=float(rng.uniform(-9, 9)),
        dy=float(rng.uniform(-9, 9)),
        gain=float(rng.uniform(0.95, 1.05)),
        offset=float(rng.uniform(-5, 5)),
        gamma=float(rng.uniform(0.93, 1.07)),
        heart=heart,
    )
    report, labels = xray_grammar.write(plans, truth, rng)
    return PlantedStudy(seed, index, number, plans, frame, truth, labels, report)


def radiograph(planted: PlantedStudy, size: int = FULL[1]) -> Image.Image:
    """The study's picture, mode L, with a longer edge of `size` pixels.

    A small one is painted at up to three times its size and reduced, so that it equals the full one reduced.
    """
    final = (max(1, round(size * FULL[0] / FULL[1])), size)
    inner = FULL if size * 3 >= FULL[1] else (final[0] * 3, final[1] * 3)
    canvas = Canvas(*inner)
    frame = planted.frame
    if not any(plan.finding == "Cardiomegaly" for plan in planted.plans):
        xray_findings.heart(canvas, frame.heart, frame.heart * 0.3)
    for plan in planted.plans:
        PAINTERS[plan.finding](canvas, plan)
    grey = _framed(canvas.grey, frame)
    exposed = np.float32(255) * np.clip(grey / np.float32(255), 0, 1) ** np.float32(frame.gamma)
    grey = (exposed * np.float32(frame.gain) + np.float32(frame.offset)).astype(np.float32)
    if inner != final:
        grey = resized(grey, *final)
    rng = np.random.default_rng([planted.seed, planted.index, 3, planted.number])
    # Quantum mottle: averaging over a pixel makes it smaller in proportion to the size.
    grey = grey + np.float32(2.0 * min(1.0, size / FULL[1])) * rng.standard_normal(grey.shape, dtype=np.float32)
    return Image.fromarray(np.clip(np.rint(grey), 0, 255).astype(np.uint8))


def _framed(grey: Float, frame: Frame) -> Float:
    """The chest scaled, turned about the film's centre and shifted."""
    margin = 24 * grey.shape[1] // FULL[0] + 2
    grey = np.pad(grey, margin, mode="edge")  # where the film's edge comes into view
    height, width = grey.shape
    unit = FULL[0] / (width - 2 * margin)
    angle = np.deg2rad(frame.turn)
    cos, sin = np.cos(angle), np.sin(angle)
    a, b, d, e = cos / frame.wide, sin / frame.wide, -sin / frame.tall, cos / frame.tall
    cx, cy = width / 2, height / 2
    ox, oy = cx + frame.dx / unit, cy + frame.dy / unit
    matrix = (a, b, cx - a * ox - b * oy, d, e, cy - d * ox - e * oy)
    film = Image.fromarray(grey).transform((width, height), Image.Transform.AFFINE, matrix, Image.Resampling.BILINEAR)
    return np.asarray(film)[margin:-margin, margin:-margin]


# -- planning --------------------------------------------------------------------------------------------------------


def _plans(present: dict[str, bool], rng: np.random.Generator) -> tuple[Plan, ...]:
    """Where the present findings lie. Places are shared out so that none hides another.

    Every number is drawn whether it is needed or not: a finding's place does not depend on how many others there are.
    """
    fluid_side = _side(rng)
    other = "left" if fluid_side == "right" else "right"
    air_side, rind_side = _side(rng), _side(rng)
    zones = [(side, zone) for side in ("right", "left") for zone in ("upper", "middle", "lower")]
    order = [zones[place] for place in rng.permutation(len(zones))]
    if present["Pleural Effusion"]:  # the fluid's own base has no room for an opacity that must stay visible
        order = [zone for zone in order if zone != (fluid_side, "lower")]
    band_side = other
    if present["Atelectasis"]:
        order = [zone for zone in order if zone != (band_side, "lower")]
    if present["Pneumothorax"]:
        order = [zone for zone in order if zone != (air_side, "upper")]
        if present["Pleural Other"]:
            rind_side = "left" if air_side == "right" else "right"
    dense, round_one, faint = order[0], order[1], order[2]
    plans = [
        Plan("Cardiomegaly", "heart", "", "", {"left": _u(rng, 48, 76), "right": _u(rng, 16, 30)}),
        Plan("Enlarged Cardiomediastinum", "upper", "", "", {"wide": _u(rng, 34, 50)}, _seed(rng)),
        Plan("Edema", "edema", "both", "", {"strength": _u(rng, 0.52, 0.70)}, _seed(rng)),
        Plan("Lung Opacity", "haze", faint[0], faint[1], _place(faint, rng, 70, 95), _seed(rng)),
        Plan("Consolidation", "consolidation", dense[0], dense[1], _place(dense, rng, 78, 102), _seed(rng)),
        Plan(
            "Lung Lesion",
            "mass",
            round_one[0],
            round_one[1],
            _place(round_one, rng, 30, 46) | {"turn": _u(rng, 0, 6.28)},
            _seed(rng),
        ),
        Plan("Atelectasis", "bands", band_side, "lower", _band(band_side, rng), _seed(rng)),
        Plan(
            "Pneumothorax",
            "apical",
            air_side,
            "upper",
            {"depth": _u(rng, 62, 98), "end": _u(rng, 430, 600)},
            _seed(rng),
        ),
        Plan(
            "Pleural Other",
            "thickening",
            rind_side,
            "",
            {"thickness": _u(rng, 27, 38), "top": _u(rng, 260, 340), "bottom": _u(rng, 600, 700)},
            _seed(rng),
        ),
        Plan("Pleural Effusion", "fluid", fluid_side, "lower", {"level": _u(rng, 600, 690), "rise": _u(rng, 60, 110)}),
        Plan(
            "Support Devices",
            ("pacemaker", "port", "tubes")[int(rng.integers(3))],
            "",
            "",
            {"dx": _u(rng, -10, 10), "dy": _u(rng, -10, 10)},
        ),
    ]
    return tuple(
        sorted((plan for plan in plans if present[plan.finding]), key=lambda plan: list(PAINTERS).index(plan.finding))
    )


def _u(rng: np.random.Generator, low: float, high: float) -> float:
    return float(rng.uniform(low, high))


def _seed(rng: np.random.Generator) -> int:
    return int(rng.integers(2**31))


def _side(rng: np.random.Generator) -> str:
    return "right" if rng.random() < 0.5 else "left"


def _place(where: tuple[str, str], rng: np.random.Generator, low: float, high: float) -> dict[str, float]:
    x, y = CENTRES[where]
    return {"x": x + _u(rng, -22, 22), "y": y + _u(rng, -26, 26), "radius": _u(rng, low, high)}


def _band(side: str, rng: np.random.Generator) -> dict[str, float]:
    outward = -1 if side == "right" else 1
    return {
        "x": (235 if side == "right" else 765) + _u(rng, -10, 10),
        "y": 630 + _u(rng, -30, 25),
        "length": _u(rng, 150, 190),
        "thickness": _u(rng, 17, 25),
        "slope": outward * _u(rng, 0.02, 0.2),
        "gap": _u(rng, 42, 60),
        "bend": _u(rng, -1, 1),
    }
