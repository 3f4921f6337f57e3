"""Curves: accuracy and flips by dose, wherever settings differ in one numeric value alone.

Any field is an axis: the layer from which a report is hidden, the places by which options are rotated, how strongly a
picture is edited. A curve is found by what its settings are, not by their names: all of them are the same once the dose
is set back to its plain value.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Literal, NamedTuple

import pandas as pd

from overread.config import Comparison, Setting
from overread.core.columns import DATASET, HIGH, LOW, MODEL, PATIENTS, count, number, share, text
from overread.core.records import content_hash
from overread.estimates.scored import CellKey
from overread.estimates.tables import Table
from overread.settings.base import Dose
from overread.settings.setting import plain_value

TABLE = Table(
    __name__,
    __doc__,
    (
        DATASET, MODEL, text("curve", "what the names of its settings or comparisons have in common"),
        text("measure", "what is drawn over the dose", values=("accuracy", "flip_rate")),
        text("dose", "what its settings differ in: a field of a setting, or a part of one, such as `attention-from`"),
        number("amount", "how much of it"),
        share("rate", "the accuracy of the setting, or the flip rate of the comparison", blank="no answer counted"),
        *(column.but(blank="no answer counted") for column in (LOW, HIGH)),
        count("observations", "questions (accuracy) or pairs (flip rate)"), PATIENTS,
        text("about", "the setting or the comparison of this row"),
        number("mean_margin", "mean margin of the setting's answers (log odds)", blank="not known, or a flip rate"),
    ),
    lambda run: curves_table(
        run.table("accuracy"), run.table("flips"), run.spec.comparisons, run.spec.settings, mean_margins(run.cells),
    ),
)  # fmt: skip


class Point(NamedTuple):
    """What a setting or a comparison is on one axis.

    arms  which of a comparison's settings have the dose; both, if it is the same
    rest  all that the points of one curve share
    """

    dose: Dose
    arms: Literal["both", "first", "second"]
    rest: str


def curves_table(
    accuracy: pd.DataFrame,
    flips: pd.DataFrame,
    comparisons: Mapping[str, Comparison],
    settings: Mapping[str, Setting],
    margins: Mapping[CellKey, float],
) -> pd.DataFrame:
    """A row per dataset, model, curve and amount of its dose, of curves with two amounts or more on a dataset; sorted.

    accuracy, flips   as their tables are
    margins           `mean_margins`
    """
    measures = (
        (accuracy, "setting", "accuracy", "questions", {name: points(one) for name, one in settings.items()}),
        (
            flips[flips["group"] == "all"], "comparison", "flip_rate", "pairs",
            {name: points_of(one, settings) for name, one in comparisons.items()},
        ),
    )  # fmt: skip
    rows: list[list[object]] = []
    for table, of, measure, n, found in measures:
        here = {name: found[name] for name in table[of].unique()}
        names = _named(here)
        for row in table.to_dict("records"):
            for point in here[row[of]]:
                about = [row["dataset"], row["model"], names[point.dose.name, point.arms, point.rest], measure]
                margin = margins.get((row["dataset"], row["model"], row[of])) if of == "setting" else None
                values = [row[measure], row["low"], row["high"], row[n], row["patients"], row[of], margin]
                rows.append([*about, point.dose.name, point.dose.value, *values])
    whole = TABLE.frame(rows)
    # A whole number stays one, whatever stands beside it: layer 3 is not 3.000000.
    whole["amount"] = pd.Series([row[TABLE.names.index("amount")] for row in rows], dtype=object)
    doses: pd.Series[int] = whole.groupby(["dataset", "curve", "measure", "dose"])["amount"].transform("nunique")
    by = ["dataset", "measure", "dose", "curve", "model", "amount", "about"]
    return whole[doses > 1].sort_values(by).reset_index(drop=True)


def mean_margins(cells: Mapping[CellKey, pd.DataFrame]) -> dict[CellKey, float]:
    """Of each cell whose model gives log-probabilities: the mean margin (`scored`) over its answers."""
    found = {key: rows["margin"].mean() for key, rows in cells.items()}
    return {key: float(mean) for key, mean in found.items() if pd.notna(mean)}


def points(setting: Setting) -> list[Point]:
    """What a setting is on each axis that it has."""
    return [Point(dose, "both", _content(setting.without(dose))) for dose in setting.doses()]


def points_of(comparison: Comparison, settings: Mapping[str, Setting]) -> list[Point]:
    """What a comparison of flips is on each axis: of both its settings, or of one where the other is plain."""
    a, b = (settings.get(name) for name in comparison.settings)
    if comparison.flips is None or a is None or b is None or comparison.settings[0] == comparison.settings[1]:
        return []
    first, second = ({dose.name: dose for dose in one.doses()} for one in (a, b))
    changed = a.changed().keys(), b.changed().keys()
    found: list[Point] = []
    for name in sorted({*first, *second}):
        one, other = first.get(name), second.get(name)
        if one is not None and other is not None and one.value == other.value:
            found.append(Point(one, "both", _content(a.without(one), b.without(other))))
        elif one is not None and one.field not in changed[1]:
            found.append(Point(one, "first", _content(a.without(one), b)))
        elif other is not None and other.field not in changed[0]:
            found.append(Point(other, "second", _content(a, b.without(other))))
    return found


def _content(*settings: Setting) -> str:
    return content_hash([one.model_dump(mode="json") for one in settings])


def _named(found: Mapping[str, list[Point]]) -> dict[tuple[str, str, str], str]:
    """What each curve is called: by dose, arms and rest."""
    members: dict[tuple[str, str, str], list[str]] = {}
    for name in sorted(found):
        for point in found[name]:
            own = members.setdefault((point.dose.name, point.arms, point.rest), [])
            if point.dose.value != plain_value(point.dose.field):
                own.append(name)
    # Where nothing has more of it than a plain setting has, there is no curve.
    names = dict.fromkeys((key for key, own in members.items() if not own), "")
    for key, own in ((key, own) for key, own in members.items() if own):
        shared = itertools.takewhile(lambda letters: len(set(letters)) == 1, zip(*own, strict=False))
        stem = "".join(letters[0] for letters in shared).rstrip("-._0123456789") or own[-1]
        taken = any(other[0] == key[0] and name == stem for other, name in names.items())
        names[key] = f"{stem} ({own[-1]})" if taken else stem
    return names
