"""Layer curves: how often answers flip with the report hidden from a layer on, or in one layer, against two lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from overread.tables.axes import FLOOR, empty_page, legend, legend_height, page
from overread.tables.rows import COLUMNS, Row, number, where
from overread.tables.style import FAINT, Mark, save

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MODES = {"from": "Report hidden from a layer on", "only": "Report hidden in one layer"}
REFERENCES: Mapping[str, Literal["--", ":"]] = {"in_view": "--", "no_report": ":"}
"""Columns of layers.csv that name what a curve is read against, and how it is drawn."""
LINES: Mapping[str, Literal["--", ":"]] = {"Report in full view": "--", "No report": ":"}
"""The same in words."""
Panel = tuple[str, str, str, str, str]


def draw_layers(layers: Sequence[Row], flips: Sequence[Row], look: Mapping[str, Mark], out: Path) -> None:
    """`layers`: a panel a dataset, way of hiding and family of settings; a curve a model, in its interval.

    flips  where the two lines and the noise floors come from
    """
    if not layers:
        save(empty_page(), [], COLUMNS["layers"], out, "layers")
        return
    panels: dict[Panel, list[Row]] = {}
    for row in layers:
        panels.setdefault(_panel(row, layers), []).append(row)
    across = min(2, len(panels))
    down = -(-len(panels) // across)
    figure = page(2.6 * down + 0.35 + legend_height(look))
    axes = figure.subplots(down, across, sharey=True, squeeze=False)
    overall = {(row["dataset"], row["model"], row["comparison"]): row for row in where(flips, group="all")}
    for axis in axes.flat[len(panels) :]:
        axis.set_visible(False)
    found = []
    for axis, ((dataset, mode, _, _, stem), rows) in zip(axes.flat, sorted(panels.items()), strict=False):
        axis.set_title("\n".join(part for part in (dataset, MODES[mode], stem) if part), fontsize=7.5)
        found.append(_curves(axis, rows, overall, look))
    for axis in axes[:, 0]:
        axis.set_ylabel("Answers that flip (%)")
    axes.flat[0].set_ylim(bottom=0)
    legend(figure, look, {row["model"] for row in layers}, floor=any(found), lines=LINES)
    save(figure, layers, COLUMNS["layers"], out, "layers")


def _panel(row: Row, layers: Sequence[Row]) -> Panel:
    """Rows of one sweep: those read against the same; by name too, where a model has two of them for one layer."""
    key = (row["dataset"], row["mode"], row["in_view"], row["no_report"])
    alike = [one for one in layers if (one["dataset"], one["mode"], one["in_view"], one["no_report"]) == key]
    most = max(Counter((one["model"], one["layer"]) for one in alike).values())
    stem = row["comparison"].removesuffix(f"-{row['mode']}-{row['layer']}") if most > 1 else ""
    return (*key, stem)


def _curves(
    axis: Axes, rows: Sequence[Row], overall: Mapping[tuple[str, str, str], Row], look: Mapping[str, Mark]
) -> bool:
    """Draw the curves of a panel, their lines and floors; returns whether any noise floor is known."""
    known = False
    for model in sorted({row["model"] for row in rows}):
        own = sorted(where(rows, model=model), key=lambda row: int(row["layer"]))
        mark = look[model]
        at = [int(row["layer"]) for row in own]
        axis.plot(
            at, [_percent(row["flip_rate"]) for row in own], color=mark.colour, marker=mark.marker, markersize=3.2,
            linewidth=1.2, zorder=3,
        )  # fmt: skip
        ends = [row for row in own if number(row["low"]) is not None and number(row["high"]) is not None]
        axis.fill_between(
            [int(row["layer"]) for row in ends], [_percent(row["low"]) for row in ends],
            [_percent(row["high"]) for row in ends], color=mark.colour, alpha=0.15, linewidth=0, zorder=2,
        )  # fmt: skip
        for column, style in REFERENCES.items():
            other = overall.get((own[0]["dataset"], model, own[0][column]))
            if other is not None:
                axis.axhline(_percent(other["flip_rate"]), color=mark.colour, linewidth=1, linestyle=style, zorder=1.5)
        floor = overall.get((own[0]["dataset"], model, own[0]["in_view"])) or overall.get(
            (own[0]["dataset"], model, own[0]["comparison"])
        )
        if floor is not None and number(floor["floor"]) is not None:
            known = True
            low, high = floor["floor_low"] or floor["floor"], floor["floor_high"] or floor["floor"]
            axis.axhspan(_percent(low), _percent(high), color=FLOOR, alpha=0.6, linewidth=0, zorder=1)
            axis.axhline(_percent(floor["floor"]), color=FLOOR, linewidth=1, zorder=1)
    axis.set_xlabel("Layer, from 0")
    axis.locator_params(axis="x", integer=True)
    axis.grid(axis="y", color=FAINT, linewidth=0.6)
    return known


def _percent(text: str) -> float:
    value = number(text)
    return float("nan") if value is None else 100 * value
