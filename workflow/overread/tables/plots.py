"""The figures, from the tables alone: accuracy, flip rates, flips by finding, differences and answer positions.

Each is written as SVG and PNG with the rows that it shows as CSV beside it. What a table leaves blank is left out of a
figure: a point without an interval is drawn hollow, and a missing cell leaves its place empty.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from overread.tables.rows import COLUMNS, Row, number, ordered, read, where
from overread.tables.style import FAINT, GREY, INK, WIDTH, Mark, drawing, marks, save

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FIGURES = ("accuracy", "flips", "flips_by_finding", "effects", "positions")
"""Every figure, in the order of a report. Each is there after `draw`, if only to say that it has no rows."""

BASELINES: Mapping[str, Literal["-"] | tuple[float, tuple[float, float]]] = {
    "chance": "-",
    "always_first": (0, (2, 1.2)),
}
"""Columns of accuracy.csv drawn as lines, and how."""

GROUPS = {
    "all": "All pairs",
    "label-changed": "Correct answer differs",
    "label-unchanged": "Correct answer is the same",
    "within-patient": "Image of the same patient",
    "across-patients": "Image of another patient",
}
"""Groups of flips.csv that are not findings, in the order shown."""


def draw(tables: Path, labels: dict[str, str], out: Path) -> None:
    """Draw every figure of the tables in the folder `tables` into the folder `out`.

    labels  model id -> how it is called; a model that is not in it goes by its id
    raises  BadInput if a table is missing or lacks a column
    """
    accuracy, flips = read(tables, "accuracy"), read(tables, "flips")
    effects, positions = read(tables, "effects"), read(tables, "positions")
    models = {row["model"] for table in (accuracy, flips, effects, positions) for row in table}
    look = marks(sorted(models), labels)
    overall = where(flips, group="all")
    with drawing():
        _dots(accuracy, look, out, "accuracy", "setting", "accuracy", "Accuracy (%)", baselines=True)
        _dots(overall, look, out, "flips", "comparison", "flip_rate", "Answers that flip (%)")
        _by_finding(flips, look, out)
        _dots(effects, look, out, "effects", "effect", "estimate", "Difference (percentage points)")
        _positions(positions, look, out)


# -- dot plots: a panel a dataset, a band a setting or comparison, a row in the band a model -------------------------


def _dots(
    rows: Sequence[Row], look: Mapping[str, Mark], out: Path, name: str,
    item: str, value: str, axis_label: str, *, baselines: bool = False,
) -> None:  # fmt: skip
    """One figure of points with intervals, `item` down the page and `value` (a share, drawn in per cent) across."""
    shown = [row for row in rows if number(row[value]) is not None]
    if not shown:
        save(_empty(), [], COLUMNS[name], out, name)
        return
    datasets = ordered(shown, "dataset")
    panels = {dataset: _bands(where(shown, dataset=dataset), item) for dataset in datasets}
    limits = (0.0, 100.0) if baselines else _limits(shown, value)
    step = _step(sum(panel.height for panel in panels.values()))
    heights = [panel.height * step + 0.55 for panel in panels.values()]
    figure = _figure(sum(heights) + 0.35 + _legend_height(look))
    axes = figure.subplots(len(datasets), 1, sharex=True, squeeze=False, height_ratios=heights)[:, 0]
    for axis, (dataset, panel) in zip(axes, panels.items(), strict=True):
        axis.set_title(dataset)
        _band_axis(axis, panel)
        for row in where(shown, dataset=dataset):
            _point(axis, row, value, panel.at(row[item], row["model"]), look[row["model"]])
        if baselines:
            _draw_baselines(axis, where(shown, dataset=dataset), item, panel)
        _percent_axis(axis, limits)
        axis.tick_params(labelbottom=True)
    axes[-1].set_xlabel(axis_label)
    _legend(figure, look, {row["model"] for row in shown}, baselines=baselines)
    save(figure, shown, list(shown[0]), out, name)


def _draw_baselines(axis: Axes, rows: Sequence[Row], item: str, panel: _Bands) -> None:
    """Chance and always-first across each band; more than one line where models were asked different questions."""
    for band in panel.items:
        for column, style in BASELINES.items():
            values = {value for row in where(rows, **{item: band}) if (value := number(row[column])) is not None}
            for value in sorted(values):
                axis.plot([100 * value] * 2, panel.edges(band), color=GREY, linewidth=1.1, linestyle=style, zorder=1.5)


class _Bands:
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


def _bands(rows: Sequence[Row], item: str) -> _Bands:
    models = sorted({row["model"] for row in rows})
    return _Bands(
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


def _step(rows: float) -> float:
    """Inches a row: roomy for a few, and never so many inches that a page of 22 would not hold them, if legible."""
    return min(0.17, max(0.075, 22 / max(rows, 1)))


def _band_axis(axis: Axes, panel: _Bands, names: Callable[[str], str] = str) -> None:
    axis.set_ylim(panel.height, 0)
    axis.set_yticks([panel.middle(item) for item in panel.items], [names(item) for item in panel.items])
    axis.tick_params(axis="y", length=0)
    axis.spines["left"].set_visible(False)
    for place, item in enumerate(panel.items):
        if place % 2 == 0:
            top, bottom = panel.edges(item)
            axis.axhspan(top - panel.gap / 2, bottom + panel.gap / 2, color="#F5F5F5", zorder=0, linewidth=0)


def _limits(rows: Sequence[Row], value: str) -> tuple[float, float]:
    """From 0 to the farthest end of an interval either way, in per cent, rounded outwards to tens."""
    ends = [
        100 * end for row in rows for end in (number(row[name]) for name in (value, "low", "high")) if end is not None
    ]
    low, high = min(0.0, *ends), max(10.0, *ends)
    return 10 * math.floor(low / 10 + 1e-9), 10 * math.ceil(high / 10 - 1e-9)


def _percent_axis(axis: Axes, limits: tuple[float, float]) -> None:
    low, high = limits
    axis.grid(axis="x", color=FAINT, linewidth=0.6)
    axis.set_xlim(low - 0.015 * (high - low), high + 0.015 * (high - low))
    axis.locator_params(axis="x", nbins=6, steps=[1, 2, 5, 10])
    if low < 0:
        axis.axvline(0, color=INK, linewidth=0.8, zorder=1.5)


def _point(axis: Axes, row: Row, value: str, place: float, mark: Mark, size: float = 5.0) -> None:
    """A marker with its interval; hollow where the table has no interval."""
    estimate, low, high = (number(row[column]) for column in (value, "low", "high"))
    assert estimate is not None
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


# -- flips by finding ------------------------------------------------------------------------------------------------


def _by_finding(flips: Sequence[Row], look: Mapping[str, Mark], out: Path) -> None:
    """A forest plot: the comparisons of a dataset side by side, all pairs and their kinds on top, then each finding."""
    shown = [row for row in flips if number(row["flip_rate"]) is not None]
    if not shown:
        save(_empty(), [], COLUMNS["flips"], out, "flips_by_finding")
        return
    strips: list[tuple[str, list[str], _Bands]] = []
    for dataset in ordered(shown, "dataset"):
        rows = where(shown, dataset=dataset)
        groups = set(ordered(rows, "group"))
        items = [group for group in GROUPS if group in groups] + sorted(groups - set(GROUPS))
        panel = _Bands(items, sorted({row["model"] for row in rows}), gap=1.0)
        comparisons = ordered(rows, "comparison")
        strips += [(dataset, comparisons[start : start + 2], panel) for start in range(0, len(comparisons), 2)]
    limits = _limits(shown, "flip_rate")
    step = min(0.13, _step(sum(panel.height for _, _, panel in strips)))
    heights = [panel.height * step + 0.55 for _, _, panel in strips]
    figure = _figure(sum(heights) + 0.35 + _legend_height(look))
    axes = figure.subplots(len(strips), 2, sharex=True, sharey="row", squeeze=False, height_ratios=heights)
    for line, (dataset, comparisons, panel) in zip(axes, strips, strict=True):
        for axis, comparison in zip(line, comparisons, strict=False):
            axis.set_title(f"{dataset}\n{comparison}")
            _band_axis(axis, panel, lambda group: GROUPS.get(group, group))
            for label in axis.get_yticklabels():
                label.set_fontweight("bold" if label.get_text() == GROUPS["all"] else "normal")
            rule = sum(item in GROUPS for item in panel.items) * (len(panel.models) + panel.gap)
            axis.axhline(rule, color=GREY, linewidth=0.7, zorder=1)
            for row in where(shown, dataset=dataset, comparison=comparison):
                _point(axis, row, "flip_rate", panel.at(row["group"], row["model"]), look[row["model"]], size=4.4)
            _percent_axis(axis, limits)
            axis.tick_params(labelbottom=True)
        for axis in line[len(comparisons) :]:
            axis.set_visible(False)
    figure.supxlabel("Answers that flip (%)", fontsize=8)
    _legend(figure, look, {row["model"] for row in shown})
    save(figure, shown, list(shown[0]), out, "flips_by_finding")


# -- answer positions ------------------------------------------------------------------------------------------------


def _positions(rows: Sequence[Row], look: Mapping[str, Mark], out: Path) -> None:
    """For each dataset and setting, bars where the correct answers stand and markers where a model's answers do."""
    shown = [row for row in rows if number(row["chosen_share"]) is not None or number(row["gold_share"]) is not None]
    if not shown:
        save(_empty(), [], COLUMNS["positions"], out, "positions")
        return
    panels = list(dict.fromkeys((row["dataset"], row["setting"]) for row in shown))
    across = 3
    down = -(-len(panels) // across)
    figure = _figure(1.75 * down + 0.35 + _legend_height(look))
    axes = figure.subplots(down, across, sharey=True, squeeze=False)
    for place, axis in enumerate(axes.flat):
        if place >= len(panels):
            axis.set_visible(False)
            continue
        dataset, setting = panels[place]
        _position_panel(axis, where(shown, dataset=dataset, setting=setting), look)
        axis.set_title(f"{dataset}\n{setting}", fontsize=7.5)
        if place % across == 0:
            axis.set_ylabel("Share of answers (%)")
        if place + across >= len(panels):
            axis.set_xlabel("Place of the option")
    _legend(figure, look, {row["model"] for row in shown}, gold=True)
    save(figure, shown, list(shown[0]), out, "positions")


def _position_panel(axis: Axes, rows: Sequence[Row], look: Mapping[str, Mark]) -> None:
    models = sorted({row["model"] for row in rows})
    places = sorted({row["position"] for row in rows}, key=float)
    slot = 0.8 / len(models)
    for row in rows:
        at = places.index(row["position"]) - 0.4 + slot * (models.index(row["model"]) + 0.5)
        gold, chosen = number(row["gold_share"]), number(row["chosen_share"])
        if gold is not None:
            axis.bar(at, 100 * gold, slot, color="#D2D2D2", edgecolor="#D2D2D2", linewidth=0.3, zorder=1)
        if chosen is not None:
            mark = look[row["model"]]
            axis.plot(
                [at], [100 * chosen], mark.marker, color=mark.colour, markersize=5.0, zorder=3, clip_on=False,
                markeredgewidth=0.4,
            )  # fmt: skip
    axis.set_xticks(range(len(places)), places)
    axis.set_xlim(-0.6, len(places) - 0.4)
    axis.set_ylim(0, 102)
    axis.set_yticks(range(0, 101, 25))
    axis.grid(axis="y", color=FAINT, linewidth=0.6)
    axis.tick_params(axis="x", length=0)


# -- a figure and its legend -----------------------------------------------------------------------------------------


def _figure(height: float) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    figure.get_layout_engine().set(h_pad=0.06, w_pad=0.06)  # type: ignore[union-attr,call-arg]
    return figure


def _empty() -> Figure:
    figure = _figure(0.8)
    figure.text(0.5, 0.5, "The table has no rows to draw.", ha="center", va="center", color=GREY)
    return figure


def _columns(look: Mapping[str, Mark]) -> int:
    widest = max((len(mark.label) for mark in look.values()), default=0)
    return max(1, min(4, int(105 / (widest + 6))))


def _legend_height(look: Mapping[str, Mark]) -> float:
    """Inches that the legend takes, with two entries for baselines."""
    return 0.17 * -(-(len(look) + 2) // _columns(look)) + 0.1


def _legend(
    figure: Figure, look: Mapping[str, Mark], present: set[str], *, baselines: bool = False, gold: bool = False
) -> None:
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
    if gold:
        handles.append(Patch(color="#D2D2D2", label="Where the correct answer stands"))
    figure.legend(handles=handles, loc="outside upper left", ncols=_columns(look), handletextpad=0.4, columnspacing=1.4)
