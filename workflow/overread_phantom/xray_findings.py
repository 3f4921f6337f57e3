"""Findings planted as pixels on the chest radiograph.

Each finding is a small function that paints one `Plan` on a `Canvas`. What a finding adds is mixed in, never pasted:
`v + opacity * (tone - v)` leaves ribs and vessels visible through it. All lengths are film units (see `xray_base`), so
that a plan looks the same at every size.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from PIL import Image, ImageDraw
from scipy import ndimage

from overread_phantom import xray_base
from overread_phantom.xray_base import CROP, FULL, Double, Float

TISSUE = 208.0
"""Grey level of unaerated lung and of fluid."""
METAL = 250.0


@dataclass(frozen=True)
class Plan:
    """One planted finding: what it is, where, and the numbers it is drawn from."""

    finding: str
    kind: str
    side: str
    zone: str
    numbers: dict[str, float] = field(default_factory=dict)
    seed: int = 0


class Canvas:
    """Grey levels at one size, with the film coordinates of their pixels."""

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self.unit = FULL[0] / width
        self.grey = xray_base.base(width, height).copy()
        self.x = (CROP[0] + (np.arange(width, dtype=np.float32) + 0.5) * np.float32(FULL[0] / width) - 0.5)[None, :]
        self.y = (CROP[1] + (np.arange(height, dtype=np.float32) + 0.5) * np.float32(FULL[1] / height) - 0.5)[:, None]

    def box(self, left: float, top: float, right: float, bottom: float) -> tuple[slice, slice]:
        """The pixels between four film coordinates."""
        columns = np.searchsorted(self.x[0], [left, right])
        rows = np.searchsorted(self.y[:, 0], [top, bottom])
        return slice(int(rows[0]), max(int(rows[1]), int(rows[0]) + 1)), slice(
            int(columns[0]), max(int(columns[1]), int(columns[0]) + 1)
        )

    def at(self, box: tuple[slice, slice]) -> tuple[Float, Float]:
        return self.x[:, box[1]], self.y[box[0]]

    def lung(self, side: str, box: tuple[slice, slice]) -> Float:
        return xray_base.lung(side, self.width, self.height)[box]

    def wall(self, side: str, box: tuple[slice, slice]) -> Float:
        return xray_base.wall_distance(side, self.width, self.height)[box]

    def mix(self, box: tuple[slice, slice], opacity: Float, tone: float = TISSUE) -> None:
        """Bring the grey levels towards `tone`, never away from it to the dark side."""
        view = self.grey[box]
        view += opacity * np.maximum(tone - view, 0)

    def noise(self, box: tuple[slice, slice], seed: int, spacing: float) -> Float:
        """Smooth noise of about unit spread whose blobs are `spacing` film units wide, the same at every size."""
        width, height = int(FULL[0] / spacing) + 2, int(FULL[1] / spacing) + 2
        coarse = np.random.default_rng(seed).standard_normal((height, width)).astype(np.float32)
        scale = self.unit / spacing
        rows, columns = box
        part = (columns.start * scale, rows.start * scale, columns.stop * scale, rows.stop * scale)
        size = (columns.stop - columns.start, rows.stop - rows.start)
        return np.asarray(Image.fromarray(coarse).resize(size, Image.Resampling.BICUBIC, box=part), dtype=np.float32)

    def strokes(self, lines: list[tuple[list[tuple[float, float]], float]]) -> Float:
        """Lines of given widths, 0..1, drawn at full size and reduced, so that thin ones stay thin."""
        sheet = Image.new("L", (FULL[0] * 2, FULL[1] * 2))
        pen = ImageDraw.Draw(sheet)
        for points, width in lines:
            at = [(2 * (x - CROP[0] + 0.5), 2 * (y - CROP[1] + 0.5)) for x, y in points]
            pen.line(at, fill=255, width=max(1, round(2 * width)), joint="curve")
        small = sheet.resize((self.width, self.height), Image.Resampling.BOX)
        return np.asarray(small, dtype=np.float32) / np.float32(255)

    def shift(self, displacement: Float, box: tuple[slice, slice]) -> None:
        """Move pixels outward along x: the new value at x is the old one at x - `displacement` (film units)."""
        view = self.grey[box]
        columns = np.arange(view.shape[1], dtype=np.float32)[None, :] - displacement / self.unit
        rows = np.broadcast_to(np.arange(view.shape[0], dtype=np.float32)[:, None], view.shape)
        self.grey[box] = ndimage.map_coordinates(view, (rows, columns), order=1, mode="nearest")


def _ramp(value: Float | Double, start: float, end: float) -> Float:
    """0 before `start`, 1 after `end`, smooth between; `start` may be the larger one."""
    t: Float = np.clip((value - start) / (end - start), 0, 1).astype(np.float32)
    return t * t * (np.float32(3) - np.float32(2) * t)


def _tent(value: Float, start: float, peak: float, end: float) -> Float:
    return _ramp(value, start, peak) * _ramp(value, end, peak)


# -- heart and mediastinum -------------------------------------------------------------------------------------------


def heart(canvas: Canvas, left: float, right: float) -> None:
    """Move the heart's left and right borders outward by `left` and `right` film units; negative makes it smaller."""
    box = canvas.box(90, 380, 870, 800)
    x, y = canvas.at(box)
    lower = _tent(y, 385, 640, 795) ** 0.8
    outward = left * _tent(x, 500, 715, 862) * lower - right * _tent(x, 445, 345, 105) * lower
    canvas.shift(outward.astype(np.float32), box)


def cardiomegaly(canvas: Canvas, plan: Plan) -> None:
    heart(canvas, plan.numbers["left"], plan.numbers["right"])


def wide_mediastinum(canvas: Canvas, plan: Plan) -> None:
    """The upper mediastinum's borders moved outward, and its density filled up to them."""
    wide = plan.numbers["wide"]
    box = canvas.box(150, 90, 820, 470)
    x, y = canvas.at(box)
    upper = _tent(y, 95, 270, 460) ** 0.7
    canvas.shift(
        (wide * _tent(x, 480, 548, 780) * upper - wide * _tent(x, 455, 402, 190) * upper).astype(np.float32), box
    )
    bulge = wide * upper
    wavy = 6 * canvas.noise(box, plan.seed, 60)
    inside = _ramp(x - 546 - bulge * 0.95 + wavy, 8, -14) * _ramp(x - 408 + bulge * 0.95 + wavy, -8, 14)
    canvas.mix(box, (0.62 * inside * _tent(y, 110, 260, 440)).astype(np.float32), 200.0)


# -- lung ------------------------------------------------------------------------------------------------------------

CENTRES = {
    ("right", "upper"): (262.0, 235.0), ("right", "middle"): (215.0, 420.0), ("right", "lower"): (215.0, 610.0),
    ("left", "upper"): (680.0, 235.0), ("left", "middle"): (735.0, 420.0), ("left", "lower"): (775.0, 610.0),
}  # fmt: skip
HILUM = {"right": (345.0, 440.0), "left": (600.0, 420.0)}


def consolidation(canvas: Canvas, plan: Plan) -> None:
    """Dense, patchy airspace filling with dark branching air bronchograms that come from the hilum."""
    n = plan.numbers
    cx, cy, radius = n["x"], n["y"], n["radius"]
    box = canvas.box(cx - 1.7 * radius, cy - 1.5 * radius, cx + 1.7 * radius, cy + 1.5 * radius)
    x, y = canvas.at(box)
    reach = np.hypot((x - cx) / 1.05, (y - cy) / 0.9) / radius
    reach = reach + 0.14 * canvas.noise(box, plan.seed, 42) + 0.05 * canvas.noise(box, plan.seed + 1, 14)
    patchy = 1 + 0.12 * canvas.noise(box, plan.seed + 2, 30) + 0.05 * canvas.noise(box, plan.seed + 4, 10)
    filled = np.clip(0.8 * _ramp(reach, 1.22, 0.45) * patchy, 0, 0.9)
    rng = np.random.default_rng(plan.seed + 3)
    hx, hy = HILUM[plan.side]
    toward = np.arctan2(cy - hy, cx - hx)
    bronchi: list[tuple[list[tuple[float, float]], float]] = []
    for spread in (-0.5, -0.15, 0.2, 0.55):
        angle, at = (
            toward + spread + rng.normal(0, 0.08),
            [(cx - 0.55 * radius * np.cos(toward), cy - 0.55 * radius * np.sin(toward))],
        )
        for _ in range(6):
            angle += rng.normal(0, 0.12)
            at.append((at[-1][0] + 0.19 * radius * np.cos(angle), at[-1][1] + 0.19 * radius * np.sin(angle)))
        bronchi.append(([(float(a), float(b)) for a, b in at[:4]], 5.5))
        bronchi.append(([(float(a), float(b)) for a, b in at[3:]], 3.5))
    air = ndimage.gaussian_filter(canvas.strokes(bronchi)[box], 2.6 / canvas.unit)
    canvas.mix(box, (filled * (1 - 0.24 * air) * canvas.lung(plan.side, box)).astype(np.float32), 205.0)


def haze(canvas: Canvas, plan: Plan) -> None:
    """A faint, ill-defined opacity through which the vessels still show."""
    n = plan.numbers
    cx, cy, radius = n["x"], n["y"], n["radius"]
    box = canvas.box(cx - 1.6 * radius, cy - 1.6 * radius, cx + 1.6 * radius, cy + 1.6 * radius)
    x, y = canvas.at(box)
    reach = np.hypot(x - cx, y - cy) / radius + 0.1 * canvas.noise(box, plan.seed, 60)
    cloud = 0.5 * _ramp(reach, 1.35, 0.25) * (1 + 0.1 * canvas.noise(box, plan.seed + 1, 18))
    canvas.mix(box, (np.clip(cloud, 0, 0.7) * canvas.lung(plan.side, box)).astype(np.float32), 190.0)


def edema(canvas: Canvas, plan: Plan) -> None:
    """Bilateral perihilar haze with blurred vessels, and short septal lines at the periphery of the bases."""
    strength = plan.numbers["strength"]
    whole = canvas.box(60, 60, 900, 840)
    x, y = canvas.at(whole)
    cotton = 1 + 0.16 * canvas.noise(whole, plan.seed, 26)
    rng = np.random.default_rng(plan.seed + 1)
    for side, (hx, hy) in HILUM.items():
        outward = -1.0 if side == "right" else 1.0
        wing = np.exp(-(((x - hx - outward * 45) / 118) ** 2) - ((y - hy - 30) / 165) ** 2)
        cloud = strength * (0.95 * wing + 0.2 * _ramp(y, 250, 640)) * cotton
        canvas.mix(whole, (np.clip(cloud, 0, 0.85) * canvas.lung(side, whole)).astype(np.float32), 196.0)
    septa: list[tuple[list[tuple[float, float]], float]] = []
    for edge, outward in ((104.0, 1.0), (856.0, -1.0)):
        for number in range(9):
            top = 560 + 17 * number + float(rng.normal(0, 3))
            start = edge + outward * (4 + number)
            septa.append(
                ([(start, top), (start + outward * float(rng.uniform(16, 30)), top + float(rng.normal(0, 2)))], 1.5)
            )
    lines = 0.28 * ndimage.gaussian_filter(canvas.strokes(septa), 0.6 / canvas.unit)
    canvas.mix((slice(0, canvas.height), slice(0, canvas.width)), lines.astype(np.float32), 215.0)


def lesion(canvas: Canvas, plan: Plan) -> None:
    """A round, slightly lobulated mass with the density of a sphere."""
    n = plan.numbers
    cx, cy, radius = n["x"], n["y"], n["radius"]
    box = canvas.box(cx - 1.5 * radius, cy - 1.5 * radius, cx + 1.5 * radius, cy + 1.5 * radius)
    x, y = canvas.at(box)
    angle = np.arctan2(y - cy, x - cx)
    lobes = 1 + 0.05 * np.cos(3 * angle + n["turn"]) + 0.03 * np.cos(5 * angle - 2 * n["turn"])
    reach = np.hypot(x - cx, (y - cy) * 1.06) / (radius * lobes)
    sphere = np.sqrt(np.clip(1.04 - reach**2, 0, 1)) ** 0.85
    grain = 1 + 0.05 * canvas.noise(box, plan.seed, 9)
    canvas.mix(box, (0.72 * sphere * grain * _ramp(reach, 1.04, 0.86)).clip(0, 0.9).astype(np.float32), 212.0)


def atelectasis(canvas: Canvas, plan: Plan) -> None:
    """Plate-like bands across a base, thickest in the middle."""
    n = plan.numbers
    cx, cy, length = n["x"], n["y"], n["length"]
    box = canvas.box(cx - length, cy - 110, cx + length, cy + 110)
    x, y = canvas.at(box)
    slope = n["slope"]
    uneven = 1 + 0.2 * canvas.noise(box, plan.seed, 34)
    grain = np.clip(1 + 0.1 * canvas.noise(box, plan.seed + 1, 12), 0, 1.15)
    y = y + 5 * canvas.noise(box, plan.seed + 2, 70)
    bands = np.zeros(np.broadcast_shapes(x.shape, y.shape), dtype=np.float32)
    for offset, share in ((0.0, 1.0), (n["gap"], 0.7)):
        along = (x - cx) / (length * share * 0.62)
        centre = cy + offset + slope * (x - cx) + 12 * along**2 * n["bend"]
        half = n["thickness"] / 2 * np.sqrt(np.clip(1 - along**2, 0, 1)) * (0.75 + 0.25 * share) * uneven
        bands = np.maximum(
            bands, share**0.3 * _ramp(np.abs(y - centre) - half, 7.0, -7.0) * _ramp(np.abs(along), 1.0, 0.5)
        )
    canvas.mix(box, (0.6 * grain * bands * canvas.lung(plan.side, box)).astype(np.float32), 212.0)


# -- pleura ----------------------------------------------------------------------------------------------------------


def effusion(canvas: Canvas, plan: Plan) -> None:
    """Fluid at a base: it hides the diaphragm and the angle, and its upper border climbs along the chest wall."""
    n = plan.numbers
    box = canvas.box(55, 380, 385, 860) if plan.side == "right" else canvas.box(560, 380, 890, 860)
    _, y = canvas.at(box)
    wall = canvas.wall(plan.side, box)
    surface = n["level"] - n["rise"] * np.exp(-wall / 48) + 0.05 * wall
    fluid = _ramp(y - surface, -22, 20) * (0.62 + 0.3 * _ramp(y - surface, 0, 110))
    cavity = np.clip(ndimage.gaussian_filter(canvas.lung(plan.side, box), 8 / canvas.unit) * 3, 0, 1)
    canvas.mix(box, (fluid * cavity).astype(np.float32), 216.0)


def pneumothorax(canvas: Canvas, plan: Plan) -> None:
    """Air over the apex and along the wall: a dark crescent without lung markings, bounded by a thin pleural line."""
    n = plan.numbers
    box = canvas.box(60, 60, 470, n["end"]) if plan.side == "right" else canvas.box(500, 60, 900, n["end"])
    _, y = canvas.at(box)
    wall = canvas.wall(plan.side, box)
    depth = n["depth"] * np.clip((n["end"] - y) / (n["end"] - 85), 0, 1) ** 0.6 + 3 * canvas.noise(box, plan.seed, 130)
    lung = canvas.lung(plan.side, box)
    view = canvas.grey[box]
    air = _ramp(wall - depth, 2.5, -2.5) * lung
    plain = ndimage.gaussian_filter(view, 2.5 / canvas.unit)
    view += air * (0.54 * plain - 6 - view)
    pleura = np.exp(-(((wall - depth) / 2.4) ** 2)) * lung * _ramp(depth, 3, 14)
    view += 46 * pleura
    # The lung that has come away from the wall is a little denser.
    collapsed = _ramp(wall - depth, 2, 30) * _ramp(wall - depth, 200, 60) * lung * _ramp(depth, 3, 30)
    view += 0.07 * collapsed * np.maximum(TISSUE - view, 0)


def pleural_thickening(canvas: Canvas, plan: Plan) -> None:
    """A lobulated rind along the chest wall, with a few denser plaques."""
    n = plan.numbers
    box = canvas.box(55, 180, 330, 790) if plan.side == "right" else canvas.box(640, 180, 905, 790)
    _, y = canvas.at(box)
    wall = canvas.wall(plan.side, box)
    extent = _ramp(y, n["top"] - 40, n["top"] + 110) * _ramp(y, n["bottom"] + 40, n["bottom"] - 110)
    thick = n["thickness"] * extent * (1 + 0.16 * canvas.noise(box, plan.seed, 75))
    rind = _ramp(wall - thick, 7.0, -9.0) * _ramp(thick, 2, 20)
    plaque = 0.12 * _ramp(canvas.noise(box, plan.seed + 1, 34), 0.6, 1.4)
    inside = np.clip(ndimage.gaussian_filter(canvas.lung(plan.side, box), 3 / canvas.unit) * 1.6, 0, 1)
    canvas.mix(box, ((0.7 + plaque) * rind * inside).astype(np.float32), 222.0)


# -- devices ---------------------------------------------------------------------------------------------------------


def _curve(*points: tuple[float, float]) -> list[tuple[float, float]]:
    """A smooth line through points (Catmull-Rom)."""
    p = np.array([points[0], *points, points[-1]])
    t = np.linspace(0, 1, 12, endpoint=False)[:, None]
    parts = [
        0.5 * (2 * b + (c - a) * t + (2 * a - 5 * b + 4 * c - d) * t**2 + (3 * b - a - 3 * c + d) * t**3)
        for a, b, c, d in zip(p, p[1:], p[2:], p[3:], strict=False)
    ]
    return [(float(x), float(y)) for x, y in np.concatenate([*parts, p[-1:]])]


def devices(canvas: Canvas, plan: Plan) -> None:
    """A pacemaker with two leads, an implanted port, or the tubes, line and electrodes of intensive care."""
    n = plan.numbers
    dx, dy = n["dx"], n["dy"]
    whole = (slice(0, canvas.height), slice(0, canvas.width))
    lines: list[tuple[list[tuple[float, float]], float]] = []
    if plan.kind == "pacemaker":
        cx, cy = 752 + dx, 232 + dy
        vein = ((cx - 40, cy - 26), (680 + dx, 172 + dy), (600, 178), (520, 205), (442, 240), (424, 330))
        lines.append((_curve(*vein, (424, 470), (470, 590), (560, 690), (628, 716)), 3.6))
        lines.append((_curve(*vein, (412, 440), (398, 520), (428, 560), (440, 520)), 3.6))
        lines.append(([(600, 708), (628, 716)], 7.0))
        box = canvas.box(cx - 60, cy - 55, cx + 60, cy + 55)
        x, y = canvas.at(box)
        can = (np.abs((x - cx) / 46) ** 3.2 + np.abs((y - cy) / 38) ** 3.2) ** (1 / 3.2)
        header = np.maximum(np.abs((x - cx + 16) / 26), np.abs((y - cy + 38) / 12))
        shape = np.maximum(_ramp(can, 1.04, 0.96), 0.75 * _ramp(header, 1.06, 0.94))
        battery = 0.10 * _ramp(np.maximum(np.abs((x - cx - 10) / 26), np.abs((y - cy - 8) / 22)), 1.05, 0.95)
        canvas.mix(box, (np.clip((0.86 + battery) * shape, 0, 1)).astype(np.float32), METAL)
    elif plan.kind == "port":
        cx, cy = 238 + dx, 262 + dy
        lines.append(
            (_curve((cx + 26, cy - 8), (310, 205), (352, 160), (392, 168), (420, 230), (428, 330), (426, 410)), 4.6)
        )
        box = canvas.box(cx - 45, cy - 45, cx + 45, cy + 45)
        x, y = canvas.at(box)
        reach = np.hypot(x - cx, y - cy)
        disc = 0.78 * _ramp(reach, 35, 31) + 0.2 * _ramp(np.abs(reach - 27), 6, 3)
        canvas.mix(box, np.clip(disc - 0.22 * _ramp(reach, 19, 15), 0, 1).astype(np.float32), METAL)
    else:
        lines.append((_curve((470, 30), (469 + dx / 3, 150), (467, 250), (468, 312 + dy)), 5.0))
        lines.append((_curve((478, 30), (480, 200), (478, 400), (490, 600), (530, 730), (590, 800), (650, 830)), 4.6))
        lines.append((_curve((385, 30), (398, 120), (416, 220), (426, 340), (426, 420 + dy)), 4.0))
        for at in ((262 + dx, 190 + dy), (712 + dx, 188 + dy), (150 + dx, 560 + dy), (806 + dx, 560 + dy)):
            box = canvas.box(at[0] - 30, at[1] - 30, at[0] + 30, at[1] + 30)
            x, y = canvas.at(box)
            reach = np.hypot(x - at[0], y - at[1])
            snap = 0.45 * _ramp(reach, 23, 20) + 0.5 * _ramp(reach, 11, 9)
            canvas.mix(box, snap.astype(np.float32), METAL)
        lines.append((_curve((262 + dx, 190 + dy), (170, 260), (60, 420), (10, 640)), 2.2))
        lines.append((_curve((150 + dx, 560 + dy), (90, 640), (10, 760)), 2.2))
        lines.append((_curve((712 + dx, 188 + dy), (800, 230), (890, 400), (945, 640)), 2.2))
        lines.append((_curve((806 + dx, 560 + dy), (880, 640), (945, 780)), 2.2))
    canvas.mix(whole, (0.72 * canvas.strokes(lines)).astype(np.float32), METAL)


PAINTERS: dict[str, Callable[[Canvas, Plan], None]] = {
    "Cardiomegaly": cardiomegaly,
    "Enlarged Cardiomediastinum": wide_mediastinum,
    "Edema": edema,
    "Lung Opacity": haze,
    "Consolidation": consolidation,
    "Lung Lesion": lesion,
    "Atelectasis": atelectasis,
    "Pneumothorax": pneumothorax,
    "Pleural Other": pleural_thickening,
    "Pleural Effusion": effusion,
    "Support Devices": devices,
}
"""What can be planted, in the order of painting: from the depth of the chest outward."""
