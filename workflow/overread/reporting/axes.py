"""The parts of a figure: pages, bands down the page, points with intervals, the noise floor, and the legend.

A figure that would not be legible on one printed page goes over several, each of which stands by itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, TypeVar

from overread.reporting.rows import Row, number, ordered, where
from overread.reporting.style import FAINT, GREY, INK, WIDTH, Mark

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Key = TypeVar("Key")
ROOMY, LEGIBLE = 0.14, 0.1
"""Inches a row, where there is room for it and where there is not."""
PAGE = 8.6
"""Inches of panels on a page: what A4 and Letter hold beside margins, legend and caption."""

BASELINES: Mapping[str, Literal["-"] | tuple[float, tuple[float, float]]] = {
    "chance": "-",
    "always_first": (0, (2, 1.2)),
}
"""Columns of accuracy.csv drawn as lines, and how."""

FLOOR = "#BDBDBD"
"""The noise floor's grey."""
UNMEASURED = "noise floor not measured: one run"
UNMEASURED_MARK = "?"


class Bands:
    """Places down the page, in rows: each item is a band with one row a model, and a gap between bands."""

    def __init__(self, items: Sequence[str], models: Sequence[str], gap: float = 1.0) -> None:
        self.items, self.models, self.gap = list(items), list(models), gap
        self.height = len(self.items) * (len(self.models) + gap)

    def edges(self, item: str) -> tuple[float, float]:
        top = self.items.index(item) * (len(self.models) + self.gap) + self.gap / 2
        return top, top + len(self.models)

    def at(self, item: str, model: str) -> float:
        return self.edges(item)[0] + self.models.index(model) + 0.5

    def middle(self, item: str) -> float:
        return sum(self.edges(item)) / 2


def bands_of(rows: Sequence[Row], item: str) -> Bands:
    models = sorted({row["model"] for row in rows})
    return Bands(
        _merged([ordered(where(rows, model=model), item) for model in models]),
        models,
        gap=1.0 if len(models) > 1 else 0.6,
    )


def _merged(sequences: Sequence[Sequence[str]]) -> list[str]:
    """One order of all items: what a sequence adds comes right after the item that it follows there."""
    whole: list[str] = []
    for sequence in sequences:
        at = 0
        for item in sequence:
            if item not in whole:
                whole.insert(at, item)
            at = whole.index(item) + 1
    return whole


def band_axis(axis: Axes, panel: Bands, names: Callable[[str], str] = str) -> None:
    axis.set_ylim(panel.height, 0)
    axis.set_yticks([panel.middle(item) for item in panel.items], [names(item) for item in panel.items])
    axis.tick_params(axis="y", length=0)
    axis.spines["left"].set_visible(False)
    for place, item in enumerate(panel.items):
        if place % 2 == 0:
            top, bottom = panel.edges(item)
            axis.axhspan(top - panel.gap / 2, bottom + panel.gap / 2, color="#F5F5F5", zorder=0, linewidth=0)


def limits_of(rows: Sequence[Row], *columns: str) -> tuple[float, float]:
    """From 0 to the farthest end of an interval either way, in per cent, rounded outwards to tens."""
    ends = [100 * end for row in rows for end in (number(row[name]) for name in columns) if end is not None]
    low, high = min(0.0, *ends), max(10.0, *ends)
    return 10 * math.floor(low / 10 + 1e-9), 10 * math.ceil(high / 10 - 1e-9)


def percent_axis(axis: Axes, limits: tuple[float, float]) -> None:
    """An axis across, between `limits` in per cent, whose numbers stand under each panel."""
    low, high = limits
    axis.grid(axis="x", color=FAINT, linewidth=0.6)
    axis.set_xlim(low - 0.015 * (high - low), high + 0.015 * (high - low))
    axis.locator_params(axis="x", nbins=6, steps=[1, 2, 5, 10])
    axis.tick_params(labelbottom=True)
    if low < 0:
        axis.axvline(0, color=INK, linewidth=0.8, zorder=1.5)


def point(
    axis: Axes, row: Row, value: str, place: float, mark: Mark, size: float = 5.0,
    ends: tuple[str, str] = ("low", "high"),
) -> None:  # fmt: skip
    """A marker with its interval; hollow where the table has no interval, nothing where it has no value."""
    estimate, low, high = (number(row[column]) for column in (value, *ends))
    if estimate is None:
        return
    known = low is not None and high is not None
    if low is not None and high is not None:
        axis.plot(
            [100 * low, 100 * high], [place, place], color=mark.colour, linewidth=1.2, solid_capstyle="butt", zorder=2
        )
    axis.plot(
        [100 * estimate], [place], mark.marker, markersize=size, color=mark.colour, zorder=3, clip_on=False,
        markerfacecolor=mark.colour if known else "white", markeredgecolor=mark.colour,
        markeredgewidth=0.8,
    )  # fmt: skip


def draw_floors(axis: Axes, rows: Sequence[tuple[Row, float]], *, measured: bool) -> None:
    """The noise floor behind each row, its interval as a band and its rate as a line; a mark at the edge for none.

    rows      each with its place down the page, one row high
    measured  whether the figure has any; where it has none, its legend says so, and no row needs a mark
    """
    from matplotlib.patches import Rectangle

    for row, place in rows:
        floor, low, high = (number(row[name]) for name in ("floor", "floor_low", "floor_high"))
        if floor is None:
            if measured:
                axis.text(
                    0.99, place, UNMEASURED_MARK, transform=axis.get_yaxis_transform(), fontsize=6, color=GREY,
                    ha="right", va="center", zorder=1,
                )  # fmt: skip
            continue
        if low is not None and high is not None:
            corner = (100 * low, place - 0.5)
            axis.add_patch(Rectangle(corner, 100 * (high - low), 1, color=FLOOR, linewidth=0, zorder=1.2))
        axis.plot([100 * floor] * 2, [place - 0.5, place + 0.5], color=GREY, linewidth=1.4, zorder=1.4)


def is_measured(rows: Sequence[Row]) -> bool:
    """Whether any row has a noise floor."""
    return any(number(row["floor"]) is not None for row in rows)


# -- a figure and its legend -----------------------------------------------------------------------------------------


def page(height: float) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    figure.get_layout_engine().set(h_pad=0.06, w_pad=0.06)  # type: ignore[union-attr,call-arg]
    return figure


def empty_page() -> Figure:
    figure = page(0.8)
    figure.text(0.5, 0.5, "The table has no rows to draw.", ha="center", va="center", color=GREY)
    return figure


def banded_pages(
    strips: Sequence[tuple[Key, Bands]], look: Mapping[str, Mark], *, across: int = 1, head: float = 0.55,
    roomy: float = ROOMY, sharex: bool | Literal["col"] = True, sharey: bool | Literal["row"] = False,
) -> Iterator[tuple[Figure, list[tuple[Key, Bands, list[Axes]]]]]:  # fmt: skip
    """Pages of strips of panels, one strip under the other; yields each page with its strips' panels.

    strips  each with the bands that its panels share; one that is longer than a page goes on on the next
    across  panels a strip
    head    inches above and below a strip's bands
    roomy   inches a row, if all fits on one page
    """
    parts = [(key, part) for key, panel in strips for part in _cut(panel, head)]
    pages: list[list[tuple[Key, Bands]]] = [[]]
    for key, panel in parts:
        if pages[-1] and sum(one.height * LEGIBLE + head for _, one in [*pages[-1], (key, panel)]) > PAGE:
            pages.append([])
        pages[-1].append((key, panel))
    for on_page in pages:
        rows = sum(panel.height for _, panel in on_page)
        step = min(roomy, max(LEGIBLE, (PAGE - head * len(on_page)) / rows))
        heights = [panel.height * step + head for _, panel in on_page]
        figure = page(sum(heights) + 0.35 + legend_height(look))
        grid = figure.subplots(
            len(on_page), across, sharex=sharex, sharey=sharey, squeeze=False, height_ratios=heights
        )  # fmt: skip
        yield figure, [(key, panel, list(line)) for (key, panel), line in zip(on_page, grid, strict=True)]


def _cut(panel: Bands, head: float) -> list[Bands]:
    """The bands in parts that a page holds, of about equal length; an item is never cut."""
    most = max(1, int((PAGE - head) / LEGIBLE / (len(panel.models) + panel.gap)))
    count = -(-len(panel.items) // most)
    size = -(-len(panel.items) // count)
    return [
        Bands(panel.items[start : start + size], panel.models, panel.gap) for start in range(0, len(panel.items), size)
    ]


def small_panels(
    panels: Sequence[Key], look: Mapping[str, Mark], *, across: int, inches: float
) -> Iterator[tuple[Figure, list[tuple[Key, Axes]]]]:
    """Pages of small panels of one height in `inches`, row by row; yields each page with its panels.

    Labels that panels of a row or a column share stand at the left and at the lowest.
    """
    a_page = across * max(1, int(PAGE / inches))
    for start in range(0, len(panels), a_page):
        on_page = panels[start : start + a_page]
        wide = min(across, len(panels))
        down = -(-len(on_page) // wide)
        figure = page(inches * down + 0.35 + legend_height(look))
        axes = list(figure.subplots(down, wide, sharey=True, squeeze=False).flat)
        for axis in axes[len(on_page) :]:
            axis.set_visible(False)
        yield figure, list(zip(on_page, axes, strict=False))


def outer_labels(placed: Sequence[tuple[object, Axes]], across: str, up: str) -> None:
    """Name the axes of small panels once a row and once a column."""
    for _, axis in placed:
        spec = axis.get_subplotspec()
        assert spec is not None
        if spec.is_first_col():
            axis.set_ylabel(up)
        if spec.rowspan.stop * spec.get_gridspec().ncols + spec.colspan.start >= len(placed):
            axis.set_xlabel(across)


def _columns(look: Mapping[str, Mark]) -> int:
    widest = max((len(mark.label) for mark in look.values()), default=0)
    return max(1, min(4, int(105 / (widest + 6))))


def legend_height(look: Mapping[str, Mark]) -> float:
    """Inches that the legend takes, with three entries for lines and floors."""
    return 0.17 * -(-(len(look) + 3) // _columns(look)) + 0.1


def legend(
    figure: Figure, look: Mapping[str, Mark], present: set[str], *, baselines: bool = False, gold: bool = False,
    floor: bool | None = None, lines: Mapping[str, Literal["--", ":"]] | None = None,
) -> None:  # fmt: skip
    """Above the figure.

    floor   whether a noise floor is drawn; none where the figure is of no flips
    lines   by name, how each is drawn
    """
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Line2D | Patch] = [
        Line2D([], [], color=mark.colour, marker=mark.marker, markersize=5, linewidth=0, label=mark.label)
        for model, mark in look.items()
        if model in present
    ]
    if baselines:
        handles.append(Line2D([], [], color=GREY, linewidth=1.1, label="Chance"))
        handles.append(
            Line2D(
                [], [], color=GREY, linewidth=1.1, linestyle=BASELINES["always_first"], label="Always the first option"
            )
        )
    for name, style in (lines or {}).items():
        handles.append(Line2D([], [], color=GREY, linewidth=1.1, linestyle=style, label=name))
    if gold:
        handles.append(Patch(color="#D2D2D2", label="Where the correct answer stands"))
    if floor is not None:
        words = "Noise floor (the same asked again; ?: one run)" if floor else UNMEASURED.capitalize()
        handles.append(Patch(color=FLOOR if floor else "none", label=words))
    figure.legend(handles=handles, loc="outside upper left", ncols=_columns(look), handletextpad=0.4, columnspacing=1.4)
