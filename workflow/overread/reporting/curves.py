"""Curves: accuracy and flips by dose; of layers from which the report is hidden, flips against two lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from overread.reporting.axes import FLOOR, empty_page, is_measured, legend, outer_labels, small_panels
from overread.reporting.rows import Row, declared, number, where
from overread.reporting.style import FAINT, Mark, save_pages

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MODES = {"from": "Report hidden from a layer on", "only": "Report hidden in one layer"}
MEASURES = {"accuracy": "Accuracy (%)", "flip_rate": "Answers that flip (%)"}
REFERENCES: Mapping[str, Literal["--", ":"]] = {"in_view_rate": "--", "no_report_rate": ":"}
"""What a curve is read against, and how it is drawn."""
BESIDE = (*REFERENCES, "floor", "floor_low", "floor_high")
"""What the figure's data have beside the columns of layers.csv."""
LINES: Mapping[str, Literal["--", ":"]] = {"Report in full view": "--", "No report": ":"}
"""The same in words."""
Panel = tuple[str, str, str, str, str]


def draw_layers(layers: Sequence[Row], flips: Sequence[Row], look: Mapping[str, Mark], out: Path) -> None:
    """`layers`: a panel a dataset, way of hiding and family of settings; a curve a model, in its interval.

    flips  where the two lines and the noise floors come from; they are written beside the rows of layers.csv
    """
    if not layers:
        save_pages([empty_page()], [], [*declared("layers"), *BESIDE], out, "layers")
        return
    overall = {(row["dataset"], row["model"], row["comparison"]): row for row in where(flips, group="all")}
    rows = [{**row, **_beside(row, overall)} for row in layers]
    panels: dict[Panel, list[Row]] = {}
    for row in rows:
        panels.setdefault(_panel(row, rows), []).append(row)
    figures = []
    for figure, placed in small_panels(sorted(panels), look, across=2, inches=2.6):
        for panel, axis in placed:
            dataset, mode, _, _, stem = panel
            axis.set_title("\n".join(part for part in (dataset, MODES[mode], stem) if part), fontsize=7.5)
            _curves(axis, panels[panel], look, at="layer", rate="flip_rate")
        outer_labels(placed, "Layer, from 0", "Answers that flip (%)")
        placed[0][1].set_ylim(bottom=0)
        legend(figure, look, {row["model"] for row in rows}, floor=is_measured(rows), lines=LINES)
        figures.append(figure)
    save_pages(figures, rows, list(rows[0]), out, "layers")


def _beside(row: Row, overall: Mapping[tuple[str, str, str], Row]) -> Row:
    """What a row is read against: the rates with the report in full view and without one, and the noise floor."""
    in_view, no_report, own = (
        overall.get((row["dataset"], row["model"], row[name]), {}) for name in ("in_view", "no_report", "comparison")
    )
    floors = in_view or own
    return {
        "in_view_rate": in_view.get("flip_rate", ""),
        "no_report_rate": no_report.get("flip_rate", ""),
        **{name: floors.get(name, "") for name in ("floor", "floor_low", "floor_high")},
    }


def _panel(row: Row, layers: Sequence[Row]) -> Panel:
    """Rows of one sweep: those read against the same; by name too, where a model has two of them for one layer."""
    key = (row["dataset"], row["mode"], row["in_view"], row["no_report"])
    alike = [one for one in layers if (one["dataset"], one["mode"], one["in_view"], one["no_report"]) == key]
    most = max(Counter((one["model"], one["layer"]) for one in alike).values())
    stem = row["comparison"].removesuffix(f"-{row['mode']}-{row['layer']}") if most > 1 else ""
    return (*key, stem)


def draw_curves(curves: Sequence[Row], layers: Sequence[Row], look: Mapping[str, Mark], out: Path) -> None:
    """`curves`: a panel a dataset, measure and curve of curves.csv; a curve a model, in its interval.

    layers  rows of layers.csv, whose flips have a figure of their own
    """
    own = {row["comparison"] for row in layers}
    rows = [row for row in curves if row["measure"] != "flip_rate" or row["about"] not in own]
    if not rows:
        save_pages([empty_page()], [], [*declared("curves")], out, "curves")
        return
    panels: dict[Panel, list[Row]] = {}
    for row in rows:
        panels.setdefault((row["dataset"], row["measure"], row["dose"], row["curve"], ""), []).append(row)
    figures = []
    for figure, placed in small_panels(sorted(panels), look, across=2, inches=2.6):
        for panel, axis in placed:
            dataset, measure, dose, curve, _ = panel
            axis.set_title(f"{dataset}\n{curve}", fontsize=7.5)
            _curves(axis, panels[panel], look, at="amount", rate="rate")
            axis.set_xlabel(dose.replace("-", " "))
            axis.set_ylabel(MEASURES[measure])
            axis.set_ylim(bottom=0)
        legend(figure, look, {row["model"] for row in rows})
        figures.append(figure)
    save_pages(figures, rows, list(rows[0]), out, "curves")


def _curves(axis: Axes, rows: Sequence[Row], look: Mapping[str, Mark], *, at: str, rate: str) -> None:
    """Draw the curves of a panel, column `rate` over column `at`, with the lines and floors that the rows have."""
    for model in sorted({row["model"] for row in rows}):
        own = sorted(where(rows, model=model), key=lambda row: float(row[at]))
        mark = look[model]
        axis.plot(
            [float(row[at]) for row in own], [_percent(row[rate]) for row in own], color=mark.colour,
            marker=mark.marker, markersize=3.2, linewidth=1.2, zorder=3,
        )  # fmt: skip
        ends = [row for row in own if number(row["low"]) is not None and number(row["high"]) is not None]
        axis.fill_between(
            [float(row[at]) for row in ends], [_percent(row["low"]) for row in ends],
            [_percent(row["high"]) for row in ends], color=mark.colour, alpha=0.15, linewidth=0, zorder=2,
        )  # fmt: skip
        for column, style in REFERENCES.items():
            if own[0].get(column):
                axis.axhline(_percent(own[0][column]), color=mark.colour, linewidth=1, linestyle=style, zorder=1.5)
        if own[0].get("floor"):
            low, high = own[0]["floor_low"] or own[0]["floor"], own[0]["floor_high"] or own[0]["floor"]
            axis.axhspan(_percent(low), _percent(high), color=FLOOR, alpha=0.6, linewidth=0, zorder=1)
            axis.axhline(_percent(own[0]["floor"]), color=FLOOR, linewidth=1, zorder=1)
    axis.locator_params(axis="x", integer=all(float(row[at]).is_integer() for row in rows))
    axis.grid(axis="y", color=FAINT, linewidth=0.6)


def _percent(text: str) -> float:
    value = number(text)
    return float("nan") if value is None else 100 * value
