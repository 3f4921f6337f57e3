"""The forest plot: for each difference of two flip rates, both rates side by side and their difference, by finding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from overread.tables.axes import (
    Bands,
    band_axis,
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
from overread.tables.rows import COLUMNS, Row, ordered, where
from overread.tables.style import GREY, Mark, save

GROUPS = {
    "all": "All pairs",
    "label-changed": "Correct answer differs",
    "label-unchanged": "Correct answer is the same",
    "within-patient": "Image of the same patient",
    "across-patients": "Image of another patient",
}
"""Groups of flips.csv that are not findings, in the order shown."""


def in_order(groups: Sequence[str]) -> list[str]:
    """All pairs and their kinds first, then the findings by name."""
    return [group for group in GROUPS if group in groups] + sorted(set(groups) - set(GROUPS))


def draw_findings(rows: Sequence[Row], look: Mapping[str, Mark], out: Path) -> None:
    """`findings`: a strip of three panels a dataset and effect. The noise floor stands behind both rates: it is that of
    the first comparison's questions, asked again as they were.
    """
    if not rows:
        save(empty_page(), [], COLUMNS["findings"], out, "findings")
        return
    strips: list[tuple[str, str, Bands]] = []
    for dataset, effect in dict.fromkeys((row["dataset"], row["effect"]) for row in rows):
        own = where(rows, dataset=dataset, effect=effect)
        panel = Bands(in_order(ordered(own, "group")), sorted({row["model"] for row in own}))
        strips.append((dataset, effect, panel))
    rates = ("rate_first", "low_first", "high_first", "rate_second", "low_second", "high_second", "floor", "floor_high")
    limits = [limits_of(rows, *rates)] * 2 + [limits_of(rows, "difference", "low", "high")]
    step = min(0.13, step_of(sum(panel.height for _, _, panel in strips)))
    heights = [panel.height * step + 0.65 for _, _, panel in strips]
    figure = page(sum(heights) + 0.35 + legend_height(look))
    axes = figure.subplots(len(strips), 3, sharex="col", sharey="row", squeeze=False, height_ratios=heights)
    for line, (dataset, effect, panel) in zip(axes, strips, strict=True):
        own = where(rows, dataset=dataset, effect=effect)
        titles = (f"{dataset}\n{own[0]['first']}", f"\n{own[0]['second']}", f"\n{effect}")
        placed = [(row, panel.at(row["group"], row["model"])) for row in own]
        for part, axis in enumerate(line):
            axis.set_title(titles[part], fontsize=7.5)
            band_axis(axis, panel, lambda group: GROUPS.get(group, group))
            for label in axis.get_yticklabels():
                label.set_fontweight("bold" if label.get_text() == GROUPS["all"] else "normal")
            rule = sum(item in GROUPS for item in panel.items) * (len(panel.models) + panel.gap)
            axis.axhline(rule, color=GREY, linewidth=0.7, zorder=1)
            value = ("rate_first", "rate_second", "difference")[part]
            ends = (("low_first", "high_first"), ("low_second", "high_second"), ("low", "high"))[part]
            if part < 2:
                draw_floors(axis, placed, measured=is_measured(rows))
            for row, place in placed:
                point(axis, row, value, place, look[row["model"]], size=4.2, ends=ends)
            percent_axis(axis, limits[part])
            axis.tick_params(labelbottom=True)
    for part, words in enumerate(("Answers that flip (%)", "Answers that flip (%)", "Difference (points)")):
        axes[-1, part].set_xlabel(words)
    legend(figure, look, {row["model"] for row in rows}, floor=is_measured(rows))
    save(figure, rows, COLUMNS["findings"], out, "findings")
