"""All that is found of one model on one data set: what the tables of verdicts and of their estimates lay out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from overread.estimates.bootstrap import FloatArray
from overread.estimates.family import OfModel, asked_by, rules_of, swap_of
from overread.estimates.inference.decide import Rules, Tested, Verdict, decide, tested
from overread.estimates.inference.gain import Gain, gain_of, majority, mean_correct
from overread.estimates.inference.swap import Swap
from overread.estimates.primary import is_swap, primary_family
from overread.estimates.scored import CellKey
from overread.estimates.spec import TablesSpec
from overread.settings.attention import Hiding
from overread.settings.image import Image
from overread.settings.report import Report
from overread.settings.setting import Setting

OPPONENTS = ("no image", "black image", "blind arm", "majority of the finding")


@dataclass(frozen=True)
class Found:
    """All that was found of one model on one data set.

    swaps, tested   of the image swaps, and of all comparisons of the family
    topics          the names of a swap's topics, by code
    family          the comparisons that the verdict rests on
    """

    dataset: str
    model: str
    topics: Mapping[str, tuple[str, ...]]
    swaps: Mapping[str, Swap]
    tested: Mapping[str, Tested]
    family: tuple[str, ...]
    gains: tuple[Row, ...]
    verdict: Verdict


def all_found(cells: Mapping[CellKey, pd.DataFrame], spec: TablesSpec) -> list[Found]:
    """What is found of each data set and model, sorted."""
    return [
        found_of(dataset, model, {key[2]: rows for key, rows in cells.items() if key[:2] == (dataset, model)}, spec)
        for dataset, model in sorted({key[:2] for key in cells})
    ]


def found_of(dataset: str, model: str, of_model: OfModel, spec: TablesSpec) -> Found:
    """What the cells of one model say."""
    rules, comparisons = rules_of(spec.statistics), spec.comparisons
    names = asked_by(of_model, comparisons)
    family = primary_family(names, spec.statistics, comparisons, spec.settings)
    wanted = [name for name in sorted(names) if comparisons[name].flips and (
        name in family or is_swap(comparisons[name], spec.settings)
    )]  # fmt: skip
    swaps = {name: swap for name in wanted if (swap := swap_of(of_model, comparisons[name], comparisons)) is not None}
    each = {name: tested(swap, rules) for name, swap in swaps.items()}
    topics = {name: tuple(sorted(of_model[comparisons[name].settings[0]]["topic"].unique())) for name in swaps}
    chosen = {name: each[name] for name in family if name in each}
    if not chosen:
        pairs = {name: comparisons[name].settings for name in family}
        over = {name: gain_between(of_model[first], of_model[second], rules) for name, (first, second) in pairs.items()}
        chosen = {name: Tested(gain=gain, lost=gain.lost) for name, gain in over.items() if gain is not None}
    verdict = decide(chosen, rules, spec.decoding.get(model, "unknown"))
    gains = tuple(gains_of(of_model, spec.settings, rules))
    return Found(dataset, model, topics, swaps, {**each, **chosen}, tuple(chosen), gains, verdict)


class Row(NamedTuple):
    """A gain with whose it is."""

    setting: str
    report: str
    opponent: str
    against: str
    gain: Gain


def gains_of(of_model: OfModel, settings: Mapping[str, Setting], rules: Rules) -> list[Row]:
    """The gains of one model, by setting and in the order of `OPPONENTS`."""
    found = []
    for name in sorted(of_model):
        setting = settings[name]
        if not setting[Image].own or setting[Hiding].attention != "none":
            continue
        own = _Questions(of_model[name])
        for opponent, against in _opponents(name, settings, of_model).items():
            other = None if against is None else _Questions(of_model[against]).correct_of(own.names)
            gain = own.gain(own.majority() if other is None else other, rules)
            if gain is not None:
                found.append(Row(name, setting[Report].report, opponent, against or "", gain))
    return found


def gain_between(first: pd.DataFrame, second: pd.DataFrame, rules: Rules) -> Gain | None:
    """The gain of one cell over another."""
    own = _Questions(first)
    return own.gain(_Questions(second).correct_of(own.names), rules)


def _opponents(name: str, settings: Mapping[str, Setting], of_model: OfModel) -> dict[str, str | None]:
    own = settings[name].effective()
    wanted = {
        "no image": own | {"images": "none"},
        "black image": own | {"source": "black"},
        "blind arm": own | {"images": "none", "report": "none", "warning": False},
    }
    if wanted["blind arm"] == wanted["no image"]:
        del wanted["blind arm"]
    found: dict[str, str | None] = {}
    for opponent, fields in wanted.items():
        # Without an image there is no order of image and text.
        free = {"order": fields["order"]} if fields["images"] == "none" else {}
        alike = [other for other in sorted(of_model) if settings[other].effective() | free == fields]
        if alike:
            found[opponent] = alike[0]
    return {**found, "majority of the finding": None}


class _Questions:
    """A cell by question: how often it was answered correctly, and what is correct."""

    def __init__(self, rows: pd.DataFrame) -> None:
        codes, self.names = pd.factorize(rows["question"], sort=True)
        self.code = codes.astype(np.int64)
        self.rows = rows
        answered = (rows["status"] == "answered").to_numpy()
        self.correct = mean_correct(answered, rows["right"].to_numpy(bool), self.code, len(self.names))
        self.patient, self.topic = (self._codes(column) for column in ("patient", "topic"))
        self.options = self._first(rows["n_options"].to_numpy(np.int64))
        texts = rows["label"] if "label" in rows else pd.Series(None, index=rows.index, dtype=object)
        polar = np.where(rows["gold_yes"], "yes", "no")
        places = rows["gold_choice"].astype(str) if "gold_choice" in rows else rows["gold"].astype(str)
        correct = np.where(rows["yes_no"], polar, np.where(texts.notna(), texts.astype(str), places))
        self.truth = self._first(pd.factorize(correct, sort=True)[0].astype(np.int64))

    def correct_of(self, names: pd.Index[str]) -> FloatArray:
        """How often each of these questions was answered correctly; NaN where it was not asked or not answered."""
        found = np.full(len(names), np.nan)
        place = self.names.get_indexer(names)
        found[place >= 0] = self.correct[place[place >= 0]]
        return found

    def majority(self) -> FloatArray:
        return majority(self.topic, self.truth, self.patient, self.options)

    def gain(self, opponent: FloatArray, rules: Rules) -> Gain | None:
        return gain_of(
            self.correct, opponent, self.patient, self.topic, self.truth, level=rules.level, smallest=rules.gain
        )

    def _codes(self, column: str) -> npt.NDArray[Any]:
        return self._first(pd.factorize(self.rows[column], sort=True)[0].astype(np.int64))

    def _first(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        found = np.empty(len(self.names), dtype=values.dtype)
        found[self.code] = values
        return found
