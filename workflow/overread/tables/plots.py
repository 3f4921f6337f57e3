"""The figures, from the tables alone: accuracy, what image and report add, flip rates whole and by finding, layer
curves, differences and answer positions.

Each is written as SVG and PNG with the rows that it shows as CSV beside it. What a table leaves blank is left out of a
figure: a point without an interval is drawn hollow, and a missing cell leaves its place empty.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from overread.tables.axes import (
    BASELINES,
    Bands,
    band_axis,
    bands_of,
    draw_floors,
    empty_page,
    is_measured,
    legend,
    legend_height,
    limits_of,
    page,
    percent_axis,
    point,
    step_of,
)
from overread.tables.forest import GROUPS, draw_findings, in_order
from overread.tables.layer_curves import draw_layers
from overread.tables.rows import COLUMNS, Row, number, ordered, read, where
from overread.tables.style import FAINT, GREY, Mark, drawing, marks, save

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FIGURES = (
    "accuracy", "modality", "flips", "findings", "flips_by_finding", "layers", "effects", "positions",
)  # fmt: skip
"""Every figure, in the order of a report. Each is there after `draw`, if only to say that it has no rows."""


PLAIN = {"question": "Question alone", "report": "Report", "image": "Image", "both": "Image and report"}
"""What a row of modality.csv shows, if it is no difference."""


def draw(tables: Path, labels: dict[str, str], out: Path) -> None:
    """Draw every figure of the tables in the folder `tables` into the folder `out`.

    labels  model id -> how it is called; a model that is not in it goes by its id
    raises  BadInput if a table is missing or lacks a column
    """
    accuracy, flips, findings, layers, modality, effects, positions = (
        read(tables, name) for name in ("accuracy", "flips", "findings", "layers", "modality", "effects", "positions")
    )
    models = {row["model"] for table in (accuracy, flips, effects, positions) for row in table}
    look = marks(sorted(models), labels)
    # A sweep over layers has a figure of its own, and would fill the others.
    hidden = {(row["dataset"], row["comparison"]) for row in layers}
    swaps = [row for row in flips if (row["dataset"], row["comparison"]) not in hidden]
    overall = where(swaps, group="all")
    shows = {row["setting"]: row["shown"] for row in modality}
    plain = {(row["dataset"], row["model"], row["setting"]): row for row in modality if row["shown"] in PLAIN}
    with drawing():
        _dots(accuracy, look, out, "accuracy", "setting", "accuracy", "Accuracy (%)", baselines=True)
        _dots(
            list(plain.values()), look, out, "modality", "setting", "balanced_accuracy", "Balanced accuracy (%)",
            names=lambda setting: f"{PLAIN[shows[setting]]}: {setting}",
        )  # fmt: skip
        _dots(overall, look, out, "flips", "comparison", "flip_rate", "Answers that flip (%)", floors=True)
        draw_findings(findings, look, out)
        _by_finding(swaps, look, out)
        draw_layers(layers, flips, look, out)
        _dots(effects, look, out, "effects", "effect", "estimate", "Difference (percentage points)")
        _positions(positions, look, out)


# -- dot plots: a panel a dataset, a band a setting or comparison, a row in the band a model -------------------------


def _dots(
    rows: Sequence[Row], look: Mapping[str, Mark], out: Path, name: str,
    item: str, value: str, axis_label: str, *, baselines: bool = False, floors: bool = False,
    names: Callable[[str], str] = str,
) -> None:  # fmt: skip
    """One figure of points with intervals, `item` down the page and `value` (a share, drawn in per cent) across.

    floors  draw the noise floor of each row
    names   how an item is called
    """
    shown = [row for row in rows if number(row[value]) is not None]
    if not shown:
        save(empty_page(), [], COLUMNS[name], out, name)
        return
    datasets = ordered(shown, "dataset")
    panels = {dataset: bands_of(where(shown, dataset=dataset), item) for dataset in datasets}
    ends = (value, "low", "high", *(("floor", "floor_high") if floors else ()))
    limits = (0.0, 100.0) if baselines else limits_of(shown, *ends)
    step = step_of(sum(panel.height for panel in panels.values()))
    heights = [panel.height * step + 0.55 for panel in panels.values()]
    figure = page(sum(heights) + 0.35 + legend_height(look))
    axes = figure.subplots(len(datasets), 1, sharex=True, squeeze=False, height_ratios=heights)[:, 0]
    for axis, (dataset, panel) in zip(axes, panels.items(), strict=True):
        axis.set_title(dataset)
        band_axis(axis, panel, names)
        placed = [(row, panel.at(row[item], row["model"])) for row in where(shown, dataset=dataset)]
        if floors:
            draw_floors(axis, placed, measured=is_measured(shown))
        for row, place in placed:
            point(axis, row, value, place, look[row["model"]])
        if baselines:
            _draw_baselines(axis, where(shown, dataset=dataset), item, panel)
        percent_axis(axis, limits)
        axis.tick_params(labelbottom=True)
    axes[-1].set_xlabel(axis_label)
    measured = is_measured(shown) if floors else None
    legend(figure, look, {row["model"] for row in shown}, baselines=baselines, floor=measured)
    save(figure, shown, list(shown[0]), out, name)


def _draw_baselines(axis: Axes, rows: Sequence[Row], item: str, panel: Bands) -> None:
    """Chance and always-first across each band; more than one line where models were asked different questions."""
    for band in panel.items:
        for column, style in BASELINES.items():
            values = {value for row in where(rows, **{item: band}) if (value := number(row[column])) is not None}
            for value in sorted(values):
                axis.plot([100 * value] * 2, panel.edges(band), color=GREY, linewidth=1.1, linestyle=style, zorder=1.5)


# -- flips by finding ------------------------------------------------------------------------------------------------


def _by_finding(flips: Sequence[Row], look: Mapping[str, Mark], out: Path) -> None:
    """A forest plot: the comparisons of a dataset side by side, all pairs and their kinds on top, then each finding."""
    shown = [row for row in flips if number(row["flip_rate"]) is not None]
    if not shown:
        save(empty_page(), [], COLUMNS["flips"], out, "flips_by_finding")
        return
    strips: list[tuple[str, list[str], Bands]] = []
    for dataset in ordered(shown, "dataset"):
        rows = where(shown, dataset=dataset)
        panel = Bands(in_order(ordered(rows, "group")), sorted({row["model"] for row in rows}), gap=1.0)
        comparisons = ordered(rows, "comparison")
        strips += [(dataset, comparisons[start : start + 2], panel) for start in range(0, len(comparisons), 2)]
    limits = limits_of(shown, "flip_rate", "low", "high", "floor", "floor_high")
    step = min(0.13, step_of(sum(panel.height for _, _, panel in strips)))
    heights = [panel.height * step + 0.55 for _, _, panel in strips]
    figure = page(sum(heights) + 0.35 + legend_height(look))
    axes = figure.subplots(len(strips), 2, sharex=True, sharey="row", squeeze=False, height_ratios=heights)
    for line, (dataset, comparisons, panel) in zip(axes, strips, strict=True):
        for axis, comparison in zip(line, comparisons, strict=False):
            axis.set_title(f"{dataset}\n{comparison}")
            band_axis(axis, panel, lambda group: GROUPS.get(group, group))
            for label in axis.get_yticklabels():
                label.set_fontweight("bold" if label.get_text() == GROUPS["all"] else "normal")
            rule = sum(item in GROUPS for item in panel.items) * (len(panel.models) + panel.gap)
            axis.axhline(rule, color=GREY, linewidth=0.7, zorder=1)
            rows = where(shown, dataset=dataset, comparison=comparison)
            placed = [(row, panel.at(row["group"], row["model"])) for row in rows]
            draw_floors(axis, placed, measured=is_measured(shown))
            for row, place in placed:
                point(axis, row, "flip_rate", place, look[row["model"]], size=4.4)
            percent_axis(axis, limits)
            axis.tick_params(labelbottom=True)
        for axis in line[len(comparisons) :]:
            axis.set_visible(False)
    figure.supxlabel("Answers that flip (%)", fontsize=8)
    legend(figure, look, {row["model"] for row in shown}, floor=is_measured(shown))
    save(figure, shown, list(shown[0]), out, "flips_by_finding")


# -- answer positions ------------------------------------------------------------------------------------------------


def _positions(rows: Sequence[Row], look: Mapping[str, Mark], out: Path) -> None:
    """For each dataset and setting, bars where the correct answers stand and markers where a model's answers do."""
    shown = [row for row in rows if number(row["chosen_share"]) is not None or number(row["gold_share"]) is not None]
    if not shown:
        save(empty_page(), [], COLUMNS["positions"], out, "positions")
        return
    panels = list(dict.fromkeys((row["dataset"], row["setting"]) for row in shown))
    across = 3
    down = -(-len(panels) // across)
    figure = page(1.75 * down + 0.35 + legend_height(look))
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
    legend(figure, look, {row["model"] for row in shown}, gold=True)
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
