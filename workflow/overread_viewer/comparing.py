"""Two arms of a run, trial by trial: what flipped, and how far the log-probabilities moved.

An arm is a model under a setting. Two arms are two settings of one model, two models under one setting, or one arm
twice, which are its reruns. What a pair, a flip, a group and a margin are is the tables' own: `tables.scored` pairs
the trials, `tables.flips` judges them, so the numbers here are those of `tables/flips.csv`.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, Literal, Self, get_args

import numpy as np

from overread.config import Statistics
from overread.core.errors import BadInput
from overread.estimates.spec import Cell
from overread_viewer.errors import BadRequest, NotThere

if TYPE_CHECKING:
    import numpy.typing as npt
    import pandas as pd

Show = Literal["flipped", "kept", "unpaired", "all"]
Direction = Literal["any", "right-wrong", "wrong-right", "wrong-wrong"]
Order = Literal["margin", "study"]
Group = Literal["all", "label-changed", "label-unchanged", "within-patient", "across-patients"]

_ARM = re.compile(r"([a-z0-9.-]+):([a-z0-9.-]+)")
KEPT_CELLS = 24
"""How many cells' answers are held for the next page: about 2 MB each with 2,387 questions in 3 runs."""
KEPT_PAIRS = 8


@dataclass(frozen=True)
class Arm:
    """A model under a setting."""

    model: str
    setting: str

    @classmethod
    def read(cls, text: str) -> Self:
        """From `model:setting`. BadRequest for anything else."""
        found = _ARM.fullmatch(text)
        if found is None:
            raise BadRequest(f"{text[:80]!r} is no arm: it should look like model:setting")
        return cls(found[1], found[2])

    def __str__(self) -> str:
        return f"{self.model}:{self.setting}"


@dataclass(frozen=True)
class Filters:
    """Which pairs are listed, and in what order.

    topic      of the question; empty: any
    group      a group of the flip table
    show       flipped; kept: answered in both arms alike; unpaired: an arm gave no readable answer
    direction  what became of the answer
    order      by how far the margin moved, furthest first, and last the pairs without log-probabilities; or by study
    """

    topic: str = ""
    group: Group = "all"
    show: Show = "flipped"
    direction: Direction = "any"
    order: Order = "margin"

    @classmethod
    def read(cls, query: Mapping[str, str]) -> Self:
        """From a query string; what is not given has its default. BadRequest for a value that is none."""
        chosen: dict[str, Any] = {"topic": query.get("topic", "")}
        for name, values in (("group", Group), ("show", Show), ("direction", Direction), ("order", Order)):
            value = query.get(name) or str(getattr(cls, name))
            if value not in get_args(values):
                raise BadRequest(f"{name}: {value[:80]!r} is none of {', '.join(get_args(values))}")
            chosen[name] = value
        return cls(**chosen)


@dataclass(frozen=True)
class Summary:
    """A group of pairs in numbers: a row of the flip table, with the counts beside the rate.

    pairs     questions and runs answered in both arms
    flips     of these, how many answers differ
    rate      flips / pairs, with its interval over patients; none without a pair, low and high none with one patient
    moved     mean absolute change of the margin, over the `margins` pairs that have one in both arms
    unpaired  pairs of which an arm was not answered
    floor     the rate at which answers to these questions change between runs of the first arm; none without reruns
    """

    pairs: int
    patients: int
    flips: int
    rate: float | None
    low: float | None
    high: float | None
    moved: float | None
    margins: int
    unpaired: int
    floor: tuple[float, float | None, float | None] | None = None


@dataclass
class Pairs:
    """All pairs of two arms.

    frame   as `tables.flips.pairs_of` makes it, with `move` and `change`: how far the margin moved, absolute and
            signed (second less first); NaN where it is not known
    first   the answers of the first arm, of whose reruns the noise floor is
    rows    by group, the rows of `tables/flips.csv` for these arms: their intervals need not be drawn again
    """

    frame: pd.DataFrame
    first: pd.DataFrame
    statistics: Statistics
    rows: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    _members: dict[str, npt.NDArray[np.bool_]] = field(default_factory=dict)
    _summaries: dict[tuple[str, str], Summary] = field(default_factory=dict)
    _lock: RLock = field(default_factory=RLock)

    @cached_property
    def again(self) -> pd.DataFrame | None:
        """The reruns of the first arm, in the form of `frame`; None where there are none."""
        from overread.estimates.tables.flips import reruns_of

        return reruns_of(self.first)

    @property
    def topics(self) -> list[str]:
        return sorted(self.frame["topic"].unique())

    @property
    def runs(self) -> int:
        return int(self.frame["run"].nunique())

    def members(self, group: str) -> npt.NDArray[np.bool_]:
        """(n,) which pairs are in a group of the flip table."""
        from overread.estimates.tables.flips import GROUPS, groups

        with self._lock:
            if not self._members:
                found = groups(self.frame)
                for name in GROUPS:
                    inside = np.zeros(len(self.frame), dtype=bool)
                    inside[found[name].index.to_numpy()] = True
                    self._members[name] = inside
            return self._members[group]

    def _chosen(self, topic: str, group: str) -> npt.NDArray[np.bool_]:
        chosen = self.members(group)
        return chosen & (self.frame["topic"] == topic).to_numpy() if topic else chosen

    def summary(self, topic: str = "", group: str = "all") -> Summary:
        """The numbers of a topic within a group."""
        from overread.estimates.tables.flips import flip_interval

        with self._lock:
            if (topic, group) in self._summaries:
                return self._summaries[topic, group]
        pairs = self.frame[self._chosen(topic, group)]
        both = pairs[pairs["both"]]
        known = both["move"].dropna()
        made = self._from_table(topic, group, pairs, both)
        if made is None:
            interval = flip_interval(pairs, self.statistics) if len(both) else None
            made = Summary(
                pairs=len(both),
                patients=interval.patients if interval else 0,
                flips=int(both["flipped"].sum()),
                rate=interval.estimate if interval else None,
                low=interval.low if interval else None,
                high=interval.high if interval else None,
                moved=float(known.mean()) if len(known) else None,
                margins=len(known),
                unpaired=len(pairs) - len(both),
                floor=self._floor(pairs) if len(both) else None,
            )
        with self._lock:
            self._summaries[topic, group] = made
        return made

    def _from_table(self, topic: str, group: str, pairs: pd.DataFrame, both: pd.DataFrame) -> Summary | None:
        """The row of the flip table, if there is one and it is of these pairs: not one of earlier answers."""
        from overread.estimates.tables.flips import GROUPS

        if topic and group != "all":
            return None
        row = self.rows.get((f"{topic} (topic)" if topic in GROUPS else topic) or group)
        if row is None or not len(both):
            return None
        counted = [len(both), len(pairs) - len(both), f"{float(both['flipped'].mean()):.6f}"]
        if counted != [int(row["pairs"]), int(row["unpaired"]), row["flip_rate"]]:
            return None
        low, high, moved, floor, floor_low, floor_high = (
            float(row[name]) if row[name] else None
            for name in ("low", "high", "mean_abs_margin_change", "floor", "floor_low", "floor_high")
        )
        return Summary(
            pairs=len(both),
            patients=int(row["patients"]),
            flips=int(both["flipped"].sum()),
            rate=float(row["flip_rate"]),
            low=low,
            high=high,
            moved=moved,
            margins=int(both["move"].notna().sum()),
            unpaired=len(pairs) - len(both),
            floor=None if floor is None else (floor, floor_low, floor_high),
        )

    def _floor(self, pairs: pd.DataFrame) -> tuple[float, float | None, float | None] | None:
        from overread.estimates.tables.flips import flip_interval

        if self.again is None:
            return None
        again = self.again[self.again["question"].isin(pairs["question"])]
        if not again["both"].any():
            return None
        one = flip_interval(again, self.statistics)
        return one.estimate, one.low, one.high

    def select(self, filters: Filters) -> npt.NDArray[np.int64]:
        """Places in `frame` of the pairs that the filters let through, in their order."""
        frame = self.frame
        chosen = self._chosen(filters.topic, filters.group)
        both, flipped = frame["both"].to_numpy(), frame["flipped"].to_numpy()
        chosen = chosen & {"flipped": flipped, "kept": both & ~flipped, "unpaired": ~both}.get(filters.show, True)
        if filters.direction != "any":
            right_a, right_b = frame["right_a"].to_numpy(), frame["right_b"].to_numpy()
            before, after = filters.direction.split("-")
            chosen = chosen & both & (right_a == (before == "right")) & (right_b == (after == "right"))
        places = np.flatnonzero(chosen)
        dress = frame.iloc[places]
        keys: list[Any] = [dress["run"].to_numpy(), dress["question"].to_numpy(str), dress["study"].to_numpy(str)]
        if filters.order == "margin":
            keys.append(-dress["move"].to_numpy())  # NaN comes last
        return places[np.lexsort(keys)]

    def counts(self, topic: str, group: str) -> dict[str, int]:
        """How many pairs each choice of `show` and of `direction` among the flipped lists."""
        frame = self.frame[self._chosen(topic, group)]
        both, flipped = frame["both"].to_numpy(), frame["flipped"].to_numpy()
        a, b = frame["right_a"].to_numpy(), frame["right_b"].to_numpy()
        return {
            "all": len(frame),
            "flipped": int(flipped.sum()),
            "kept": int((both & ~flipped).sum()),
            "unpaired": int((~both).sum()),
            "right-wrong": int((flipped & a & ~b).sum()),
            "wrong-right": int((flipped & ~a & b).sum()),
            "wrong-wrong": int((flipped & ~a & ~b).sum()),
        }


class Comparing:
    """The pairs of a run's arms, read when they are asked for and kept while the files are what they were.

    results   the run's folder
    spec      its study.json: cells, comparisons and statistics
    flips     gives the rows of tables/flips.csv; none: every interval is drawn here
    """

    def __init__(
        self,
        results: Path,
        spec: Mapping[str, Any],
        flips: Callable[[], Sequence[Mapping[str, str]]] = tuple,
    ) -> None:
        self.results, self.flips = results, flips
        self.comparisons: Mapping[str, Any] = spec.get("comparisons", {})
        self.statistics = Statistics.model_validate(spec["statistics"])
        self.cells = {(one["dataset"], one["model"], one["setting"]): Cell.model_validate(one) for one in spec["cells"]}
        self._frames: OrderedDict[tuple[str, Arm], tuple[object, pd.DataFrame]] = OrderedDict()
        self._pairs: OrderedDict[tuple[str, Arm, Arm], tuple[object, Pairs]] = OrderedDict()
        self._lock = RLock()

    def arms(self, dataset: str) -> list[Arm]:
        """All that was run on a dataset, by model, then setting."""
        return sorted((Arm(m, s) for d, m, s in self.cells if d == dataset), key=lambda arm: (arm.model, arm.setting))

    def pairs(self, dataset: str, a: Arm, b: Arm) -> Pairs:
        """The pairs of two arms.

        raises   NotThere for an arm that was not run on the dataset; BadRequest for two arms that differ in both
                 model and setting, for two that ask no question in common, and for reruns of an arm that has none
        """
        for arm in (a, b):
            if (dataset, arm.model, arm.setting) not in self.cells:
                raise NotThere(f"{arm.model} under {arm.setting} was not run on {dataset}")
        if a.model != b.model and a.setting != b.setting:
            raise BadRequest(
                f"{a} and {b} differ in model and in setting: a difference would say nothing of either. "
                "Choose two settings of one model, or two models under one setting"
            )
        with self._lock:
            stamp = (self._stamp(dataset, a), self._stamp(dataset, b))
            kept = self._pairs.get((dataset, a, b))
            if kept is None or kept[0] != stamp:
                kept = stamp, self._make(dataset, a, b)
                self._pairs[dataset, a, b] = kept
            _shorten(self._pairs, (dataset, a, b), KEPT_PAIRS)
            return kept[1]

    def _make(self, dataset: str, a: Arm, b: Arm) -> Pairs:
        from overread.estimates.tables.flips import pairs_of, reruns_of

        first, second = self._frame(dataset, a), self._frame(dataset, b)
        frame = reruns_of(first) if a == b else pairs_of(first, second)
        if frame is None:
            raise BadRequest(f"{a.model} has no rerun of {a.setting} on {dataset} that puts the same request")
        if not len(frame):
            raise BadRequest(f"{a} and {b} ask no question in common on {dataset}")
        frame = frame.copy()
        frame["change"] = frame["margin_b"] - frame["margin_a"]
        frame["move"] = frame["change"].abs()
        return Pairs(frame, first, self.statistics, self._rows(dataset, a, b))

    def _rows(self, dataset: str, a: Arm, b: Arm) -> dict[str, Mapping[str, str]]:
        """The flip table's rows of two settings of one model, by group."""
        names = {name for name, one in self.comparisons.items() if one.get("flips") == [a.setting, b.setting]}
        if a.model != b.model or not names:
            return {}
        name = min(names)
        return {
            row["group"]: row
            for row in self.flips()
            if (row["dataset"], row["model"], row["comparison"]) == (dataset, a.model, name)
        }

    def _frame(self, dataset: str, arm: Arm) -> pd.DataFrame:
        from overread.estimates.scored import read_cells

        key, stamp = (dataset, arm), self._stamp(dataset, arm)
        kept = self._frames.get(key)
        if kept is None or kept[0] != stamp:
            kept = stamp, read_cells(self.results, [self.cells[dataset, arm.model, arm.setting]])
            self._frames[key] = kept
        _shorten(self._frames, key, KEPT_CELLS)
        return kept[1]

    def _stamp(self, dataset: str, arm: Arm) -> object:
        """Time and size of the files that an arm is read from. BadInput where one is not there yet."""
        folder, runs = self.results / dataset, self.cells[dataset, arm.model, arm.setting].runs
        stamps = []
        for run in range(1, runs + 1):
            for place in (f"trials/{arm.setting}", f"responses/{arm.model}/{arm.setting}"):
                path = folder / place / f"run-{run}.parquet"
                try:
                    state = path.stat()
                except OSError:
                    raise BadInput(f"{path}: not there yet; wait until the run has answered it") from None
                stamps.append((state.st_mtime_ns, state.st_size))
        return tuple(stamps)


def _shorten(kept: OrderedDict[Any, Any], used: object, most: int) -> None:
    """What was used last stays."""
    kept.move_to_end(used)
    while len(kept) > most:
        kept.popitem(last=False)
