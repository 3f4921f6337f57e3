"""Occlusion maps: where on the picture answers depend, a panel a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from overread.reporting.axes import empty_page, small_panels
from overread.reporting.rows import Row, declared, number
from overread.reporting.style import INK, Mark, save_pages

Panel = tuple[str, str, str, str]


def draw_occlusion(rows: Sequence[Row], look: Mapping[str, Mark], out: Path) -> None:
    """`rows`: of occlusion.csv. In each cell how many answers change when it is covered, below how much of the lesion
    it hides; a cell that was not covered is left white.
    """
    if not rows:
        save_pages([empty_page()], [], [*declared("occlusion")], out, "occlusion")
        return
    panels: dict[Panel, list[Row]] = {}
    for row in rows:
        panels.setdefault((row["dataset"], row["setting"], row["grid"], row["model"]), []).append(row)
    most = max(number(row["changed"]) or 0.0 for row in rows) or 1.0
    figures = []
    for figure, placed in small_panels(sorted(panels), look, across=3, inches=2.4):
        for (dataset, setting, grid, model), axis in placed:
            size = int(grid)
            map_ = np.full((size, size), np.nan)
            for row in panels[dataset, setting, grid, model]:
                map_[divmod(int(row["cell"]), size)] = number(row["changed"]) or 0.0
            axis.imshow(map_, cmap="Blues", vmin=0, vmax=most, aspect="equal", zorder=1)
            for row in panels[dataset, setting, grid, model]:
                down, across = divmod(int(row["cell"]), size)
                changed, lesion = number(row["changed"]) or 0.0, number(row["lesion_share"])
                text = f"{100 * changed:.0f}" + ("" if lesion is None else f"\n({100 * lesion:.0f})")
                colour = "white" if changed > 0.6 * most else INK
                axis.text(across, down, text, ha="center", va="center", fontsize=6, color=colour, zorder=2)
            axis.set_title(f"{look[model].label}\n{dataset}, {setting}", fontsize=7)
            axis.set_xticks([])
            axis.set_yticks([])
        figures.append(figure)
    save_pages(figures, rows, list(rows[0]), out, "occlusion")
