"""The figures, from the tables alone: accuracy, answer positions, flip rates whole and by finding, differences,
margins, accuracy for the image shown, what image and report add, and layer curves.

Each is written as SVG and PNG with the rows that it shows as CSV beside it. What a table leaves blank is left out of a
figure: a point without an interval is drawn hollow, and a missing cell leaves its place empty.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from overread.reporting.axes import (
    BASELINES,
    Bands,
    band_axis,
    banded_pages,
    bands_of,
    draw_floors,
    empty_page,
    is_measured,
    legend,
    limits_of,
    outer_labels,
    percent_axis,
    point,
    small_panels,
)
from overread.reporting.curves import draw_curves, draw_layers
from overread.reporting.forest import draw_by_finding, draw_findings
from overread.reporting.occlusion import draw_occlusion
from overread.reporting.rows import Row, declared, number, ordered, read, where
from overread.reporting.style import FAINT, GREY, Mark, drawing, marks, save_pages

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FIGURES = (
    "accuracy", "positions", "flips", "effects", "findings", "flips_by_finding", "margins", "own_label", "modality",
    "layers", "curves", "occlusion",
)  # fmt: skip
"""Every figure, in the order of a report. Each is there after `draw`, if only to say that it has no rows."""

SHOWN = {"question": "Question alone", "report": "Report", "image": "Image", "both": "Image and report"}
"""What a row of modality.csv shows, if it is no difference."""


def draw(tables: Path, labels: dict[str, str], out: Path) -> None:
    """Draw every figure of the tables in the folder `tables` into the folder `out`.

    labels  model id -> how it is called; a model that is not in it goes by its id
    raises  BadInput if a table is missing or lacks a column
    """
    accuracy, flips, findings, layers, curves, modality, effects, positions, margins, own_label, occlusion = (
        read(tables, name)
        for name in (
            "accuracy",
            "flips",
            "findings",
            "layers",
            "curves",
            "modality",
            "effects",
            "positions",
            "margins",
            "own_label",
            "occlusion",
        )
    )
    models = {row["model"] for table in (accuracy, flips, effects, positions) for row in table}
    look = marks(sorted(models), labels)
    # A sweep over layers has a figure of its own, and would fill the others.
    hidden = {(row["dataset"], row["comparison"]) for row in layers}
    swaps = [row for row in flips if (row["dataset"], row["comparison"]) not in hidden]
    shows = {row["setting"]: row["shown"] for row in modality}
    plain = {(row["dataset"], row["model"], row["setting"]): row for row in modality if row["shown"] in SHOWN}
    arms = [
        {**row, "shown": f"{row['comparison']}: {row['setting']}"}
        for row in own_label
        if row["arm"] != "difference" and (row["dataset"], row["comparison"]) not in hidden
    ]
    with drawing():
        _dots(accuracy, look, out, "accuracy", "setting", "accuracy", "Accuracy (%)", baselines=True)
        _dots(
            list(plain.values()), look, out, "modality", "setting", "balanced_accuracy", "Balanced accuracy (%)",
            names=lambda setting: f"{SHOWN[shows[setting]]}: {setting}",
        )  # fmt: skip
        overall = where(swaps, group="all")
        _dots(overall, look, out, "flips", "comparison", "flip_rate", "Answers that flip (%)", floors=True)
        draw_findings(findings, look, out)
        draw_by_finding(swaps, look, out)
        draw_layers(layers, flips, look, out)
        draw_curves(curves, layers, look, out)
        draw_occlusion(occlusion, look, out)
        _dots(effects, look, out, "effects", "effect", "estimate", "Difference (percentage points)")
        _dots(
            margins, look, out, "margins", "effect", "moves_more", "Margin moves further in the first comparison (%)",
            whole=True,
        )  # fmt: skip
        _dots(
            arms, look, out, "own_label", "shown", "accuracy_for_image", "Correct for the image shown (%)", whole=True
        )  # fmt: skip
        _positions(positions, look, out)


# -- dot plots: a panel a dataset, a band a setting or comparison, a row in the band a model -------------------------


def _dots(
    rows: Sequence[Row], look: Mapping[str, Mark], out: Path, name: str,
    item: str, value: str, axis_label: str, *, baselines: bool = False, floors: bool = False, whole: bool = False,
    names: Callable[[str], str] = str,
) -> None:  # fmt: skip
    """One figure of points with intervals, `item` down the page and `value` (a share, drawn in per cent) across.

    floors  draw the noise floor of each row
    whole   the axis goes from 0 to 100, as it does with baselines
    names   how an item is called
    """
    shown = [row for row in rows if number(row[value]) is not None]
    if not shown:
        save_pages([empty_page()], [], declared(name), out, name)
        return
    ends = (value, "low", "high", *(("floor", "floor_high") if floors else ()))
    limits = (0.0, 100.0) if baselines or whole else limits_of(shown, *ends)
    measured = is_measured(shown) if floors else None
    strips = [(dataset, bands_of(where(shown, dataset=dataset), item)) for dataset in ordered(shown, "dataset")]
    figures = []
    for figure, strips_here in banded_pages(strips, look):
        for dataset, panel, (axis,) in strips_here:
            axis.set_title(dataset)
            band_axis(axis, panel, names)
            own = [row for row in where(shown, dataset=dataset) if row[item] in panel.items]
            placed = [(row, panel.at(row[item], row["model"])) for row in own]
            if floors:
                draw_floors(axis, placed, measured=is_measured(shown))
            for row, place in placed:
                point(axis, row, value, place, look[row["model"]])
            if baselines:
                _draw_baselines(axis, own, item, panel)
            percent_axis(axis, limits)
        strips_here[-1][2][0].set_xlabel(axis_label)
        legend(figure, look, {row["model"] for row in shown}, baselines=baselines, floor=measured)
        figures.append(figure)
    save_pages(figures, shown, declared(name) if name == "own_label" else list(shown[0]), out, name)


def _draw_baselines(axis: Axes, rows: Sequence[Row], item: str, panel: Bands) -> None:
    """Chance and always-first across each band; more than one line where models were asked different questions."""
    for band in panel.items:
        for column, style in BASELINES.items():
            values = {value for row in where(rows, **{item: band}) if (value := number(row[column])) is not None}
            for value in sorted(values):
                axis.plot([100 * value] * 2, panel.edges(band), color=GREY, linewidth=1.1, linestyle=style, zorder=1.5)


# -- answer positions ------------------------------------------------------------------------------------------------


def _positions(rows: Sequence[Row], look: Mapping[str, Mark], out: Path) -> None:
    """For each dataset and setting, bars where the correct answers stand and markers where a model's answers do."""
    shown = [row for row in rows if number(row["chosen_share"]) is not None or number(row["gold_share"]) is not None]
    if not shown:
        save_pages([empty_page()], [], declared("positions"), out, "positions")
        return
    panels = list(dict.fromkeys((row["dataset"], row["setting"]) for row in shown))
    figures = []
    for figure, placed in small_panels(panels, look, across=4, inches=1.4):
        for (dataset, setting), axis in placed:
            _position_panel(axis, where(shown, dataset=dataset, setting=setting), look)
            axis.set_title(f"{dataset}\n{setting}", fontsize=7)
        outer_labels(placed, "Place of the option", "Answers (%)")
        legend(figure, look, {row["model"] for row in shown}, gold=True)
        figures.append(figure)
    save_pages(figures, shown, list(shown[0]), out, "positions")


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
