"""Layers: how often answers flip while the report is hidden from some of a model's layers.

The curves of one field, `attention`: a flip comparison of two settings that hide the report in the same way is a point,
`from` a layer on, or `only` in one. What the curve is read against, the same comparison with the report in full view
and without any report, is found by what its settings are.
"""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from overread.config import Comparison, Setting
from overread.core.columns import COMPARISON, DATASET, FLIP_RATE, HIGH, LOW, MODEL, PAIRS, PATIENTS, count, text
from overread.estimates.tables import Table
from overread.estimates.tables.curves import points_of

TABLE = Table(
    __name__,
    __doc__,
    (
        DATASET, MODEL,
        text("mode", "where the report is hidden: from the layer on, or in it only", values=("from", "only")),
        count("layer", "the layer, from 0"), FLIP_RATE, LOW, HIGH, PAIRS, PATIENTS, COMPARISON,
        text("in_view", "the same comparison with the report in full view", blank="the study has none"),
        text("no_report", "the same comparison without a report", blank="the study has none"),
    ),
    lambda run: layers_table(run.table("flips"), run.spec.comparisons, run.spec.settings),
)  # fmt: skip


def layers_table(
    flips: pd.DataFrame, comparisons: Mapping[str, Comparison], settings: Mapping[str, Setting]
) -> pd.DataFrame:
    """A row a dataset, model and comparison under hiding, sorted by mode and layer.

    `in_view` and `no_report` are the comparisons that it is read against, blank where the study has none.

    flips   as `flips_table` gives it
    """
    hidden = {name: place for name, one in comparisons.items() if (place := hidden_in(one, settings)) is not None}
    whole = flips[(flips["group"] == "all") & flips["comparison"].isin(list(hidden))].copy()
    whole["mode"] = [hidden[name][0] for name in whole["comparison"]]
    whole["layer"] = [hidden[name][1] for name in whole["comparison"]]
    read_against = {name: references(name, comparisons, settings) for name in hidden}
    for column in ("in_view", "no_report"):
        whole[column] = [read_against[name].get(column) for name in whole["comparison"]]
    whole = whole.sort_values(["dataset", "model", "mode", "layer", "comparison"])
    return whole[list(TABLE.names)].reset_index(drop=True)


def hidden_in(comparison: Comparison, settings: Mapping[str, Setting]) -> tuple[str, int] | None:
    """Mode and layer of a flip comparison whose two settings hide the report alike; else None."""
    for point in points_of(comparison, settings):
        if point.dose.field == "attention" and point.arms == "both":
            return point.dose.name.removeprefix("attention-"), int(point.dose.value)
    return None


def references(name: str, comparisons: Mapping[str, Comparison], settings: Mapping[str, Setting]) -> dict[str, str]:
    """The comparisons that a point of a curve is read against: `in_view` and `no_report`, where the study has them."""

    def like(changes: dict[str, object]) -> str | None:
        wanted = [settings[each].model_copy(update=changes) for each in comparisons[name].settings]
        for other in sorted(comparisons):
            pair = [settings.get(each) for each in comparisons[other].settings]
            if comparisons[other].flips is not None and pair == wanted:
                return other
        return None

    without = {"attention": "none", "report": "none", "warning": False}
    found = {"in_view": like({"attention": "none"}), "no_report": like(without)}
    return {column: other for column, other in found.items() if other is not None}
