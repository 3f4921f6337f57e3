"""Accuracy in the layout of a paper's main table: a row a model and input, a column a condition, in per cent.

The input is the view, or `no image`. The condition is what else the setting says: `own image`, `black image`,
`swapped image`, `reshuffled`, `with report`, and so on, several joined by a comma. `own image` (and `text only`
without an image) is left out where something else is said, so that `reshuffled` stands for the own image with its
options reshuffled.
"""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from overread.config import Setting
from overread.core.columns import DATASET, MODEL, number, text
from overread.estimates.tables import Table
from overread.settings.image import Image

TABLE = Table(
    __name__,
    __doc__,
    (DATASET, MODEL, text("input", "the view, or `no image`")),
    lambda run: accuracy_wide_table(run.table("accuracy"), run.spec.settings),
    more=(
        number(
            "<condition>", "accuracy under that condition, such as `black image` or `with report`", unit="per cent",
            range=(0, 100), blank="not run",
        ),
    ),
    decimals=2,
)  # fmt: skip


def accuracy_wide_table(accuracy: pd.DataFrame, settings: Mapping[str, Setting]) -> pd.DataFrame:
    """The accuracy table with conditions as columns, in per cent; blank where not run. Rows are sorted by name.

    accuracy  as `accuracy.accuracy_table` makes it
    """
    names = sorted(accuracy["setting"].unique())
    columns = _columns(accuracy, {name: settings[name] for name in names})
    by_rank = sorted(names, key=lambda name: (settings[name].sort_key(), name))
    order = list(dict.fromkeys(columns[name] for name in by_rank))
    cells: dict[tuple[str, str, str], dict[str, float]] = {}
    for row in accuracy.to_dict("records"):
        key = (row["dataset"], row["model"], _input(settings[row["setting"]]))
        value = row["accuracy"]
        cells.setdefault(key, {})[columns[row["setting"]]] = 100 * value if value is not None else float("nan")
    rows = [[*key, *(cells[key].get(column) for column in order)] for key in sorted(cells)]
    return TABLE.frame(rows, order)


def condition(setting: Setting) -> str:
    """What a setting does, apart from its view."""
    return ", ".join(setting.short()) or ("own image" if setting[Image].shown else "text only")


def _input(setting: Setting) -> str:
    return setting.view(setting[Image].images) if setting[Image].shown else "no image"


def _columns(accuracy: pd.DataFrame, settings: Mapping[str, Setting]) -> dict[str, str]:
    """The column of each setting; with its name added where another setting has the same input and condition."""
    places: dict[tuple[str, str, str], set[str]] = {}
    for dataset, name in accuracy[["dataset", "setting"]].drop_duplicates().itertuples(index=False):
        places.setdefault((dataset, _input(settings[name]), condition(settings[name])), set()).add(name)
    shared = {name for names in places.values() if len(names) > 1 for name in names}
    return {name: condition(one) + (f" ({name})" if name in shared else "") for name, one in settings.items()}
