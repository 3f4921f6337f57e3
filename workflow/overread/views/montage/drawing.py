"""The view `montage`: all series at the chosen level in one square grid, each panel under its name.

A panel is the picture that the view `slice` shows of that series, resized. The border in which every panel is black is
left out, the same in all of them, so that the brain is as large as the grid allows. Panels always stand in one order.
A series that can't be shown is never replaced: its panel keeps its place and stays empty, and the picture's name says
so. That holds for one that lies elsewhere than the level, one that the reader found unusable, and one that the view
lists and the study lacks. Under `series: all` what a study never had has no panel.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from overread.config.views import Plane
from overread.core.records import Study
from overread.images.files import BRAIN, MASKS, TUMOUR, StudyFiles
from overread.images.volume import BadFile
from overread.views.montage.section import MontageView
from overread.views.slice.drawing import render_slices, series_of
from overread.views.slice.section import SliceView

if TYPE_CHECKING:
    from PIL import Image, ImageDraw, ImageFont

LABELS = {
    BRAIN: "brain segmentation",
    "brain_parenchyma_segmentation": "parenchyma segmentation",
    TUMOUR: "tumor segmentation",
}
"""What stands over a panel, where it is not the series' own name."""

UNUSABLE = "unusable "
"""How the readers name an attribute that says why a series can't be used."""

LEVEL = ("plane", "slice_index", "position_mm", "chosen_by", "orientation")
"""What all panels of a picture have in common."""

GAP = 6
"""Pixels between panels."""

TEXT, FRAME = 255, 96
SMALLEST_FONT = 8


@dataclass(frozen=True)
class Grid:
    """Square cells of a square picture; in each a name above a panel of `panel` (width, height) pixels."""

    size: int
    columns: int
    rows: int
    strip: int
    panel: tuple[int, int]

    def cell(self, place: int) -> tuple[int, int, int, int]:
        """Left, top, right and bottom of cell number `place`, in reading order."""
        row, column = divmod(place, self.columns)
        edges = (column, row, column + 1, row + 1)
        return tuple(n * self.size // (self.rows if i % 2 else self.columns) for i, n in enumerate(edges))  # type: ignore[return-value]

    def corner(self, place: int) -> tuple[int, int]:
        """Left and top of the panel in cell number `place`."""
        left, top, right, bottom = self.cell(place)
        width, height = self.panel
        return left + (right - left - width) // 2, top + self.strip + (bottom - top - self.strip - height) // 2


def render_montages(
    study: Study, view: MontageView, files: StudyFiles
) -> Iterator[tuple[Image.Image, dict[str, object]]]:
    """A picture a plane, in the view's order, each at that plane's own level.

    raises  BadFile if a file that is needed can't be used, or no series can be shown
    """
    names = panels_of(study, view)
    there = tuple(name for name in names if files.has(name))
    if not set(there) - MASKS:
        raise BadFile(f"{', '.join(names) or 'no series'}: missing: there is nothing to make a montage of")
    for plane in view.planes:
        rendered = list(render_slices(study, _slice_view(view, plane, there), files, may_lack=True))
        pictures = {str(about["series"]): picture for picture, about in rendered}
        lacking = [name for name in names if name not in pictures]
        yield (
            compose([(name, pictures.get(name)) for name in names], view.size, crop=view.crop),
            {
                **{key: rendered[0][1][key] for key in LEVEL},
                "name": f"montage, {plane}" + (f" (without {', '.join(lacking)})" if lacking else ""),
                "series": "montage",
                "scaling": "; ".join(f"{about['series']} {about['scaling']}" for _, about in rendered),
                "caption": view.caption,
            },
        )
    files.left_out.extend(
        (name, study.attributes.get(f"{UNUSABLE}{name}", "missing: the study has no such series"))
        for name in names
        if name not in there
    )


def _slice_view(view: MontageView, plane: Plane, there: tuple[str, ...]) -> SliceView:
    """The view whose pictures become the panels."""
    if view.series == "all":
        return SliceView(plane=plane, slice=view.slice, series="all", windows=view.windows)
    windows = {name: window for name, window in view.windows.items() if name in there}
    return SliceView(plane=plane, slice=view.slice, series=there, windows=windows)


def panels_of(study: Study, view: MontageView) -> tuple[str, ...]:
    """The series of the panels, in order.

    `all` means what the study has and what the reader found but could not use; a list means itself.
    """
    if view.series != "all":
        return (view.series,) if isinstance(view.series, str) else tuple(view.series)
    unusable = {name.removeprefix(UNUSABLE) for name in study.attributes if name.startswith(UNUSABLE)} - {"report"}
    whole = study.model_copy(update={"images": dict.fromkeys([*study.images, *unusable], "")})
    return series_of(whole, SliceView(series="all"))


def compose(panels: Sequence[tuple[str, Image.Image | None]], size: int, *, crop: bool = True) -> Image.Image:
    """A grey picture of size x size pixels with the panels in reading order.

    panels  name and slice picture; None for a panel that stays empty. All pictures have one size, which alone decides
            the grid: it does not change with what is cropped.
    raises  ValueError for no picture, pictures of several sizes, or too little room
    """
    from PIL import Image, ImageDraw

    pictures = [picture for _, picture in panels if picture is not None]
    shapes = {picture.size for picture in pictures}
    if len(shapes) != 1:
        raise ValueError(f"panels of one picture have one size, not {sorted(shapes)}")
    width, height = shapes.pop()
    box = (visible(pictures) if crop else None) or (0, 0, width, height)
    layout = fit(len(panels), (width, height), (box[2] - box[0], box[3] - box[1]), size)
    texts = [LABELS.get(name, name) for name, _ in panels]
    whole = Image.new("L", (size, size))
    draw = ImageDraw.Draw(whole)
    font = _font(texts, layout)
    for place, ((name, picture), text) in enumerate(zip(panels, texts, strict=True)):
        left, top, right, _ = layout.cell(place)
        draw.text(((left + right) // 2, top + layout.strip // 2), text, fill=TEXT, font=font, anchor="mm")
        if picture is not None:
            whole.paste(panel(name, picture, box, layout), layout.corner(place))
        else:
            _empty(draw, layout.corner(place), layout.panel, font)
    return whole


def visible(pictures: Sequence[Image.Image]) -> tuple[int, int, int, int] | None:
    """The smallest box (left, top, right, bottom) outside of which all pictures are black; None if all are black."""
    from PIL import ImageChops

    lightest = pictures[0]
    for picture in pictures[1:]:
        lightest = ImageChops.lighter(lightest, picture)
    return lightest.getbbox()


def panel(name: str, picture: Image.Image, box: tuple[int, int, int, int], layout: Grid) -> Image.Image:
    """The box of a slice picture at the size of the grid's panels. A mask keeps its grey levels: none is in between."""
    from PIL import Image

    way = Image.Resampling.NEAREST if name in MASKS else Image.Resampling.BICUBIC
    return picture.crop(box).resize(layout.panel, way)


def fit(count: int, whole: tuple[int, int], shown: tuple[int, int], size: int) -> Grid:
    """The grid that shows `count` pictures of the size `whole` largest; of several the widest one.

    whole   width and height of a slice picture, which decide the grid
    shown   of the part of it that is shown, which fills the cells
    raises  ValueError if there is no room
    """
    strip = max(SMALLEST_FONT + 2, round(size * 18 / 896))

    def scale(columns: int, shape: tuple[int, int]) -> float:
        rows = -(-count // columns)
        return min((size // columns - GAP) / shape[0], (size // rows - strip - GAP) / shape[1])

    columns = max(range(1, count + 1), key=lambda columns: (scale(columns, whole), columns))
    factor = scale(columns, shown)
    if factor * min(shown) < 1:
        raise ValueError(f"{count} panels find no room on {size} x {size} pixels")
    return Grid(size, columns, -(-count // columns), strip, (int(shown[0] * factor), int(shown[1] * factor)))


def _font(texts: Sequence[str], layout: Grid) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    """The font that comes with Pillow, as large as the strip allows and the longest name fits over its panel."""
    from PIL import ImageFont

    left, _, right, _ = layout.cell(0)
    for points in range(layout.strip - 4, SMALLEST_FONT, -1):
        font = ImageFont.load_default(points)
        if max(font.getlength(text) for text in texts) <= right - left - GAP:
            return font
    return ImageFont.load_default(SMALLEST_FONT)


def _empty(
    draw: ImageDraw.ImageDraw,
    corner: tuple[int, int],
    panel_size: tuple[int, int],
    font: ImageFont.FreeTypeFont | ImageFont.ImageFont,
) -> None:
    left, top = corner
    right, bottom = left + panel_size[0] - 1, top + panel_size[1] - 1
    draw.rectangle((left, top, right, bottom), outline=FRAME)
    draw.text(((left + right) // 2, (top + bottom) // 2), "not shown", fill=FRAME, font=font, anchor="mm")
