"""The forest plots: flip rates by finding, and of each difference of two flip rates both rates and the difference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from overread.reporting.axes import (
    Bands,
    band_axis,
    banded_pages,
    draw_floors,
    empty_page,
    is_measured,
    legend,
    limits_of,
    percent_axis,
    point,
)
from overread.reporting.rows import Row, declared, number, ordered, where
from overread.reporting.style import GREY, Mark, save_pages

if TYPE_CHECKING:
    from matplotlib.axes import Axes

GROUPS = {
    "all": "All pairs",
    "label-changed": "Correct answer differs",
    "label-unchanged": "Correct answer is the same",
    "within-patient": "Image of the same patient",
    "across-patients": "Image of another patient",
}
"""Groups of flips.csv that are not findings, in the order shown."""
STEP = 0.13
"""Inches a row at most."""


def in_order(groups: Sequence[str]) -> list[str]:
    """All pairs and their kinds first, then the findings by name."""
    return [group for group in GROUPS if group in groups] + sorted(set(groups) - set(GROUPS))


def draw_findings(rows: Sequence[Row], look: Mapping[str, Mark], out: Path) -> None:
    """`findings`: a strip of three panels a dataset and effect. The noise floor stands behind both rates: it is that of
    the first comparison's questions, asked again as they were.
    """
    if not rows:
        save_pages([empty_page()], [], declared("findings"), out, "findings")
        return
    strips = [
        ((dataset, effect), _bands(where(rows, dataset=dataset, effect=effect)))
        for dataset, effect in dict.fromkeys((row["dataset"], row["effect"]) for row in rows)
    ]
    ends = (("low_first", "high_first"), ("low_second", "high_second"), ("low", "high"))
    values = ("rate_first", "rate_second", "difference")
    rates = (*values[:2], *ends[0], *ends[1], "floor", "floor_high")
    limits = [limits_of(rows, *rates)] * 2 + [limits_of(rows, values[2], *ends[2])]
    labels = ("Answers that flip (%)", "Answers that flip (%)", "Difference (points)")
    figures = []
    for figure, strips_here in banded_pages(
        strips, look, across=3, head=0.65, roomy=STEP, sharex="col", sharey="row"
    ):  # fmt: skip
        for (dataset, effect), panel, line in strips_here:
            own = where(rows, dataset=dataset, effect=effect)
            titles = (f"{dataset}\n{own[0]['first']}", f"\n{own[0]['second']}", f"\n{effect}")
            placed = _placed(own, panel)
            for part, axis in enumerate(line):
                axis.set_title(titles[part], fontsize=7.5)
                _group_axis(axis, panel)
                if part < 2:
                    draw_floors(axis, placed, measured=is_measured(rows))
                for row, place in placed:
                    point(axis, row, values[part], place, look[row["model"]], size=4.2, ends=ends[part])
                percent_axis(axis, limits[part])
        for axis, words in zip(strips_here[-1][2], labels, strict=True):
            axis.set_xlabel(words)
        legend(figure, look, {row["model"] for row in rows}, floor=is_measured(rows))
        figures.append(figure)
    save_pages(figures, rows, declared("findings"), out, "findings")


def draw_by_finding(flips: Sequence[Row], look: Mapping[str, Mark], out: Path) -> None:
    """`flips_by_finding`: the comparisons of a dataset two by two, all pairs and their kinds on top, then findings."""
    shown = [row for row in flips if number(row["flip_rate"]) is not None]
    if not shown:
        save_pages([empty_page()], [], declared("flips"), out, "flips_by_finding")
        return
    strips = []
    for dataset in ordered(shown, "dataset"):
        rows = where(shown, dataset=dataset)
        comparisons = ordered(rows, "comparison")
        strips += [((dataset, comparisons[start : start + 2]), _bands(rows)) for start in range(0, len(comparisons), 2)]
    limits = limits_of(shown, "flip_rate", "low", "high", "floor", "floor_high")
    figures = []
    for figure, strips_here in banded_pages(strips, look, across=2, roomy=STEP, sharey="row"):
        for (dataset, comparisons), panel, line in strips_here:
            for axis, comparison in zip(line, comparisons, strict=False):
                axis.set_title(f"{dataset}\n{comparison}")
                _group_axis(axis, panel)
                placed = _placed(where(shown, dataset=dataset, comparison=comparison), panel)
                draw_floors(axis, placed, measured=is_measured(shown))
                for row, place in placed:
                    point(axis, row, "flip_rate", place, look[row["model"]], size=4.4)
                percent_axis(axis, limits)
            for axis in line[len(comparisons) :]:
                axis.set_visible(False)
        figure.supxlabel("Answers that flip (%)", fontsize=8)
        legend(figure, look, {row["model"] for row in shown}, floor=is_measured(shown))
        figures.append(figure)
    save_pages(figures, shown, list(shown[0]), out, "flips_by_finding")


def _bands(rows: Sequence[Row]) -> Bands:
    return Bands(in_order(ordered(rows, "group")), sorted({row["model"] for row in rows}))


def _placed(rows: Sequence[Row], panel: Bands) -> list[tuple[Row, float]]:
    """The rows of a panel's groups, each with its place down the page."""
    return [(row, panel.at(row["group"], row["model"])) for row in rows if row["group"] in panel.items]


def _group_axis(axis: Axes, panel: Bands) -> None:
    """Bands of groups, with a rule between the kinds of pairs and the findings."""
    band_axis(axis, panel, lambda group: GROUPS.get(group, group))
    for label in axis.get_yticklabels():
        label.set_fontweight("bold" if label.get_text() == GROUPS["all"] else "normal")
    kinds = sum(item in GROUPS for item in panel.items)
    if 0 < kinds < len(panel.items):
        axis.axhline(kinds * (len(panel.models) + panel.gap), color=GREY, linewidth=0.7, zorder=1)
