"""Contact sheets: all that a study's views show on one page, for a person to check.

A page shows the very files that models are shown, made smaller. Each picture is held against its hash first: what the
page shows is what the trials name.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from overread.core.errors import BadInput, unknown
from overread.core.inputs import regular
from overread.core.records import Picture, Study

if TYPE_CHECKING:
    from PIL import Image, ImageDraw

LARGE, FEW = 500, 3
"""A picture with an edge of so many pixels has writing or fine detail; it is shown larger, and so are few pictures."""

MANY = 30
"""A view with more pictures than this is shown with smaller ones."""

PAPER, INK, SOFT, RULE = 255, 0, 96, 190


@dataclass(frozen=True)
class Page:
    """Widths in pixels: of the page, of pictures with fine detail, of the others, and of those of a view with many."""

    width: int = 1800
    large: int = 570
    small: int = 176
    tiny: int = 112
    margin: int = 24
    gap: int = 12
    points: int = 13
    most: int | None = None  # pictures a view; the rest is counted

    @property
    def line(self) -> int:
        return round(self.points * 1.35)


FIGURE = Page(width=1104, large=360, small=173, margin=6, gap=10, points=15, most=6)
"""For a report: a few pictures of each view."""


def write_sheets(folder: Path, out: Path, studies: Iterable[str] = ()) -> list[Path]:
    """A page `<study>.png` in `out` for each study of a dataset's folder that has pictures.

    studies  ids; none for all
    raises   BadInput for an unknown study, and for a picture that is missing, damaged or not the one that was rendered
    """
    from overread.core.records import read_pictures, read_studies
    from overread.images.render import write_png

    pictures = _by_study(read_pictures(folder / "images.parquet"))
    known = {study.study: study for study in read_studies(folder / "studies.parquet")}
    wanted = list(studies) or sorted(pictures)
    for name in wanted:
        if name not in pictures:
            raise BadInput(f"{folder / 'images.parquet'}: {unknown('study', name, pictures)}")
    written = []
    for name in wanted:
        path = out / f"{name}.png"
        heading, lacking = title(known[name]), left_out(folder / "images" / name / "views.json")
        write_png(sheet(folder, pictures[name], heading, left_out=lacking), path)
        written.append(path)
    return written


def left_out(path: Path) -> dict[str, list[str]]:
    """By view, the series that a study's `views.json` says could not be shown, each with the reason."""
    lines: dict[str, list[str]] = {}
    for one in json.loads(regular(path).read_text(encoding="utf-8"))["left_out"]:
        lines.setdefault(one["view"], []).append(f"left out: {one['series']}: {one['reason']}")
    return lines


def title(study: Study) -> str:
    """What stands on top of a study's page."""
    words = [f"{study.dataset}, study {study.study}, patient {study.patient}"]
    words += ["semi-synthetic data"] * study.semi_synthetic + ["restricted: not to be passed on"] * study.restricted
    return "   ".join(words)


def sheet(
    folder: Path,
    pictures: Sequence[Picture],
    heading: str | None,
    page: Page | None = None,
    left_out: Mapping[str, Sequence[str]] | None = None,
) -> Image.Image:
    """A grey page with a block a view.

    folder    the dataset's, which the pictures' paths are relative to
    pictures  of one study
    heading   what stands on top; None for nothing
    left_out  by view, lines that stand below its name
    raises    BadInput for a picture that is missing, damaged or not the one that was rendered
    """
    from PIL import Image, ImageDraw

    page = page or Page()
    ordered = sorted(pictures, key=lambda one: (one.view, one.order))
    blocks = [
        _block(folder, view, list(those), page, (left_out or {}).get(view, ()))
        for view, those in groupby(ordered, key=lambda one: one.view)
    ]
    top = page.margin + (round(page.line * 1.8) if heading else 0)
    height = top + sum(block.height + page.gap for block in blocks) + page.margin - page.gap
    whole = Image.new("L", (page.width, height), PAPER)
    if heading:
        draw = ImageDraw.Draw(whole)
        draw.text((page.margin, page.margin), heading, fill=INK, font=_font(page.points + 4))
    for block in blocks:
        whole.paste(block, (0, top))
        top += block.height + page.gap
    return whole


def preview(path: Path, pixels: str | None = None) -> Image.Image:
    """A picture's file as something flat: a PNG as it is, a volume as its three middle slices side by side.

    pixels  the hash that it must have, if that is known
    raises  BadInput for a file that is missing, damaged or has another hash
    """
    from PIL import Image

    from overread.images.render import pixel_hash
    from overread.images.volume_file import SUFFIX, read_volume_picture

    if path.name.endswith(SUFFIX):
        return _middles(read_volume_picture(path, pixels).values)
    again = "render the images of this dataset again"
    try:
        with Image.open(regular(path)) as file:
            file.load()
            image = file.copy()
    except FileNotFoundError:
        raise BadInput(f"{path}: no such file; {again}") from None
    except (OSError, SyntaxError, ValueError) as error:  # Pillow reports a broken PNG as a SyntaxError
        raise BadInput(f"{path}: not readable as a picture ({' '.join(str(error).split())}); {again}") from None
    if pixels is not None and pixel_hash(image) != pixels:
        raise BadInput(f"{path}: shows other pixels than images.parquet says; {again}")
    return image


def caption(picture: Picture, *, shared: Sequence[str] = ()) -> list[str]:
    """The lines under a picture: name, slice, how it was chosen, size, and the first digits of its hash.

    shared  lines that stand in the view's heading already
    """
    lines = [picture.name, *(line for line in _facts(picture) if line not in shared)]
    if picture.slice_index is not None:
        lines.insert(1, f"slice {picture.slice_index}, {picture.position_mm:g} mm")
    if picture.doubt is not None:
        lines.append(f"look at it: {picture.doubt}")
    return [*lines, picture.pixels[:12]]


def spread(many: int, most: int) -> list[int]:
    """Places of at most `most` of `many` things: all if they are no more, else the middles of as many equal parts."""
    if many <= most:
        return list(range(many))
    return [(2 * part + 1) * many // (2 * most) for part in range(most)]


def _facts(picture: Picture) -> list[str]:
    """What all pictures of a view may have in common."""
    sizes = [picture.width, picture.height] + ([picture.depth] if picture.depth is not None else [])
    told = [line for line in (picture.chosen_by, picture.orientation) if line]
    return [*told, f"{' x '.join(map(str, sizes))} {'voxels' if picture.depth is not None else 'pixels'}"]


def _block(folder: Path, view: str, pictures: list[Picture], page: Page, lacking: Sequence[str]) -> Image.Image:
    """A view's heading, what it lacks, and its pictures in rows with their captions."""
    from PIL import Image, ImageDraw

    facts = [set(_facts(picture)) for picture in pictures]
    shared = [line for line in _facts(pictures[0]) if len(pictures) > 1 and all(line in each for each in facts)]
    count = f"{len(pictures)} picture{'s' * (len(pictures) > 1)}"
    shown = [pictures[place] for place in spread(len(pictures), page.most or len(pictures))]
    more = [f"{len(shown)} of them shown"] if len(shown) < len(pictures) else []
    heading = ", ".join([f"{view}: {count}", *more, *shared])

    font, edge = _font(page.points), _edge(pictures, page)
    columns = max(1, (page.width - 2 * page.margin + page.gap) // (edge + page.gap))
    cells = []
    for picture in shown:
        image = preview(folder / picture.path, picture.pixels).convert("L")
        wide = image.width > 2 * image.height  # a volume's three slices
        image.thumbnail((edge * 3 + 2 * page.gap if wide else edge, edge), Image.Resampling.LANCZOS)
        lines = [
            part for line in caption(picture, shared=shared) for part in _wrapped(line, font, max(edge, image.width))
        ]
        cells.append((image, lines))

    rows = [cells[start : start + columns] for start in range(0, len(cells), columns)]
    heights = [max(image.height + 4 + len(lines) * page.line for image, lines in row) for row in rows]
    lacking = [part for line in lacking for part in _wrapped(line, font, page.width - 2 * page.margin)]
    top = round(page.line * 1.6) + len(lacking) * page.line
    whole = Image.new("L", (page.width, top + sum(heights) + page.gap * len(rows)), PAPER)
    draw = ImageDraw.Draw(whole)
    draw.line((page.margin, 0, page.width - page.margin, 0), fill=RULE)
    draw.text((page.margin, page.line // 4), heading, fill=INK, font=_font(page.points + 1))
    for number, line in enumerate(lacking):
        draw.text((page.margin, round(page.line * 1.5) + number * page.line), line, fill=INK, font=font)
    for row, height in zip(rows, heights, strict=True):
        for place, (image, lines) in enumerate(row):
            left = page.margin + place * (edge + page.gap)
            whole.paste(image, (left, top))
            _write(draw, (left, top + image.height + 4), lines, page)
        top += height + page.gap
    return whole


def _edge(pictures: Sequence[Picture], page: Page) -> int:
    if len(pictures) > MANY and page.most is None:
        return page.tiny
    fine = max(max(one.width, one.height) for one in pictures) >= LARGE
    return page.large if fine or len(pictures) <= FEW else page.small


def _write(draw: ImageDraw.ImageDraw, corner: tuple[int, int], lines: Sequence[str], page: Page) -> None:
    font = _font(page.points)
    for number, line in enumerate(lines):
        draw.text((corner[0], corner[1] + number * page.line), line, fill=INK if number == 0 else SOFT, font=font)


def _wrapped(text: str, font: Any, width: int) -> list[str]:
    """`text` in lines of at most `width` pixels, broken between words, and within a word that is too long for one."""
    lines: list[str] = []
    for word in text.split():
        if lines and font.getlength(f"{lines[-1]} {word}") <= width:
            lines[-1] += f" {word}"
            continue
        lines.append("")
        for letter in word:
            if lines[-1] and font.getlength(lines[-1] + letter) > width:
                lines.append("")
            lines[-1] += letter
    return lines


def _middles(values: np.ndarray[Any, np.dtype[np.float32]]) -> Image.Image:
    """Axial, sagittal and coronal middle slices of an array whose axes are RAS+, as a radiologist sees them."""
    from PIL import Image

    right, front, top = (n // 2 for n in values.shape)
    planes = (values[:, :, top].T[::-1, ::-1], values[right].T[::-1, ::-1], values[:, front].T[::-1, ::-1])
    shown = values[np.abs(values) > 1e-6 * np.abs(values).max(initial=0.0)]
    low, high = np.percentile(shown, (0.5, 99.5)) if shown.size else (0.0, 1.0)
    low = min(float(low), 0.0)
    grey = [
        np.rint(np.clip((each - low) / max(float(high) - low, 1e-12), 0, 1) * 255).astype(np.uint8) for each in planes
    ]
    whole = Image.new("L", (sum(each.shape[1] for each in grey), max(each.shape[0] for each in grey)))
    left = 0
    for each in grey:
        whole.paste(Image.fromarray(np.ascontiguousarray(each)), (left, (whole.height - each.shape[0]) // 2))
        left += each.shape[1]
    return whole


def _by_study(pictures: Iterable[Picture]) -> dict[str, list[Picture]]:
    found: dict[str, list[Picture]] = {}
    for picture in pictures:
        found.setdefault(picture.study, []).append(picture)
    return found


def _font(points: int) -> Any:
    """The font that comes with Pillow."""
    from PIL import ImageFont

    return ImageFont.load_default(points)
