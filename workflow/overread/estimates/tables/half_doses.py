"""Half doses: how much of an edit takes half of what the picture adds.

Of each curve over the strength of an edit: the amount at which the accuracy has first fallen half way from that of the
picture as it is to that of the model's strongest blind arm (no image, or a black one, all else the same), between two
amounts by a straight line. The interval holds the amounts at which the limits of the accuracy's interval have fallen so
low. It is blank where the picture adds nothing, and where the accuracy never falls so low.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from overread.config import Setting
from overread.core.columns import DATASET, MODEL, SETTING, number, share, text
from overread.estimates.tables import Table
from overread.settings.edit import Edits
from overread.settings.image import Image

NEVER = "it never falls so low, or the picture adds nothing"
TABLE = Table(
    __name__,
    __doc__,
    (
        DATASET, MODEL, SETTING, text("curve", "what the names of its settings or comparisons have in common"),
        text("dose", "what its settings differ in: a field of a setting, or a part of one, such as `attention-from`"),
        share("accuracy_as_is", "accuracy with the picture as it is"),
        text("blind_setting", "the setting without an image, or with a black one, that does best"),
        share("accuracy_blind", "its accuracy"), share("half", "the accuracy half way between the two"),
        number("half_dose", "the amount at which the accuracy has fallen so low", blank=NEVER),
        number("half_low", "lower end of its interval", blank=NEVER),
        number("half_high", "upper end of its interval", blank=NEVER),
    ),
    lambda run: half_doses_table(run.table("curves"), run.table("accuracy"), run.spec.settings),
)  # fmt: skip


def half_doses_table(curves: pd.DataFrame, accuracy: pd.DataFrame, settings: Mapping[str, Setting]) -> pd.DataFrame:
    """A row a dataset, model and curve of an edit, where the plain setting and a blind one were run.

    curves, accuracy   as their tables are
    """
    answered = accuracy[accuracy["accuracy"].notna()]
    of_cells = {(row["dataset"], row["model"], row["setting"]): row for row in answered.to_dict("records")}
    rows: list[list[object]] = []
    curves = curves[(curves["measure"] == "accuracy") & curves["rate"].notna()]
    for (dataset, model, curve, dose), points in curves.groupby(["dataset", "model", "curve", "dose"], sort=True):
        there = {name: row for (of, who, name), row in of_cells.items() if (of, who) == (dataset, model)}
        own = _plain(settings, points["about"].iloc[0], there)
        blind = _blind(settings, own, there) if own is not None else None
        edit = settings[points["about"].iloc[0]][Edits].edit
        if own is None or blind is None or len(edit) != 1:
            continue
        null = type(edit[0]).model_fields[str(dose).removeprefix(f"{edit[0].kind} ")].default
        half = (there[own]["accuracy"] + there[blind]["accuracy"]) / 2
        gains = there[own]["accuracy"] > there[blind]["accuracy"]
        amounts = [null, *points["amount"]]
        ends = [
            _falls([there[own][limit], *points[column]], amounts, null, half) if gains else None
            for limit, column in (("accuracy", "rate"), ("low", "low"), ("high", "high"))
        ]
        as_is = [there[own]["accuracy"], blind, there[blind]["accuracy"], half]
        rows.append([dataset, model, own, curve, dose, *as_is, *ends])
    return TABLE.frame(rows)


def _plain(settings: Mapping[str, Setting], edited: str, there: Mapping[str, object]) -> str | None:
    """The setting that was run and differs in the edit alone, in that it has none."""
    return next(
        (
            name
            for name in sorted(there)
            if not settings[name][Edits].effective_edits
            and settings[edited].difference(settings[name]).keys() == {"edit"}
        ),
        None,
    )


def _blind(settings: Mapping[str, Setting], own: str, there: Mapping[str, Mapping[Any, Any]]) -> str | None:
    """The best of the settings without the image, or with a black one, all else the same."""
    found = [
        name
        for name in sorted(there)
        if not settings[name][Image].shows_the_study()
        and settings[own].difference(settings[name]).keys() <= {"images", "source"}
    ]
    return max(found, key=lambda name: there[name]["accuracy"], default=None)


def _falls(rates: Sequence[float], amounts: Sequence[float], null: float, half: float) -> float | None:
    """The amount, going away from `null`, at which a line through the points first comes down to `half`.

    None where it never does, or rates on both sides of `null` leave open which way is away.
    """
    points = sorted(zip(amounts, rates, strict=True), key=lambda point: abs(point[0] - null))
    if any(amount < null for amount in amounts) and any(amount > null for amount in amounts):
        return None
    if points[0][1] <= half:
        return float(points[0][0])
    for (before, high), (after, low) in itertools.pairwise(points):
        if low <= half:
            return float(before + (after - before) * (high - half) / (high - low))
    return None
