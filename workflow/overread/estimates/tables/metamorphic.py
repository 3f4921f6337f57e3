"""Metamorphic relations: what an edit of the picture must do to answers, and how often it does.

An edit says what must happen: `stay` (a picture moved by a pixel, seen through a slightly other window, turned, with a
mark beside the anatomy, or with a region erased that has no lesion), `swap-sides` (mirrored, or the lesion moved to the
other side: an answer that names a side must name the other one, any other stays), or `no-finding` (the boxes of a
finding erased from a radiograph: a question about that very finding, yes or no, must be answered no). Where the other
side is not among the options, or the question is about something else, nothing is expected. Edits that may change an
answer either way, such as the erasure of the lesion or a strong blur, have no relation: grounding.csv and curves.csv
are about them.

The placebo is the setting that the comparisons name as one (`kind: placebo`), else the mildest edit here: a shift of
one pixel or a window of at most 1 %.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd

from overread.config import Comparison, Setting, Statistics
from overread.core.columns import DATASET, HIGH, LOW, MODEL, PATIENTS, SETTING, count, difference, number, share, text
from overread.core.records import Question
from overread.edits.base import EditSection
from overread.estimates.inference.limits import Combined
from overread.estimates.scored import CellKey
from overread.estimates.tables import Table
from overread.estimates.tables.grounding import mean_difference, side_by_side
from overread.settings.edit import Edits

TABLE = Table(
    __name__,
    __doc__,
    (
        DATASET, MODEL, SETTING, text("edited", "the setting whose picture is edited"),
        text("relation", "what must happen", values=("stay", "swap-sides", "no-finding")),
        count("expected", "answers to a question in one run, given in both settings, of which something is expected"),
        PATIENTS, share("kept", "share of them that are as expected"), LOW, HIGH,
        share("broken", "share of them that are not"),
        share("unreadable", "share of the answers asked for that one of the two settings lacks"),
        count("not_expected", "answers of which nothing is expected: the other side is no option"),
        text("placebo", "the setting that is the placebo", blank="none was asked"),
        share("placebo_kept", "share of the same answers kept under the placebo", blank="none was asked"),
        difference("beyond_placebo", "kept less what is kept under the placebo", blank="none was asked"),
        number("beyond_low", "lower end of its interval", blank="none was asked, or one patient"),
        number("beyond_high", "upper end of its interval", blank="none was asked, or one patient"),
    ),
    lambda run: metamorphic_table(
        run.cells, run.spec.settings, run.spec.comparisons, run.spec.statistics,
        {name: source.questions for name, source in run.sources.items()},
    ),
)  # fmt: skip
SIDES = re.compile(r"\b(left|right)\b", re.IGNORECASE)
OTHER = {"left": "right", "right": "left", "Left": "Right", "Right": "Left", "LEFT": "RIGHT", "RIGHT": "LEFT"}


def relation(edits: Sequence[EditSection]) -> str | None:
    """What several edits together must do; None where one of them may change an answer either way."""
    if not edits or any(one.expected is None for one in edits):
        return None
    if any(one.expected == "no-finding" for one in edits):
        return "no-finding"
    swaps = sum(one.expected == "swap-sides" for one in edits)
    return "swap-sides" if swaps % 2 else "stay"


def denied(questions: Iterable[Question], edits: Sequence[EditSection]) -> dict[str, int]:
    """By question about a finding that the edits erase: the place of "no" among its options, yes and no."""
    erased = {str(getattr(one, "label", None)).casefold() for one in edits if one.expected == "no-finding"}
    return {
        one.question: one.options.index("no")
        for one in questions
        if sorted(one.options) == ["no", "yes"] and one.topic.casefold() in erased
    }


def swapped(options: Sequence[str]) -> list[int]:
    """Of each option the place of the one that it becomes when the sides change; -1 where that is no option."""
    others = [SIDES.sub(lambda found: OTHER.get(found[0], OTHER[found[0].lower()]), one) for one in options]
    return [list(options).index(one) if one in options else -1 for one in others]


def metamorphic_table(
    cells: Mapping[CellKey, pd.DataFrame],
    settings: Mapping[str, Setting],
    comparisons: Mapping[str, Comparison],
    statistics: Statistics,
    questions: Mapping[str, Iterable[Question]],
) -> pd.DataFrame:
    """A row a dataset, model, setting and edited setting that must do something to its answers."""
    questions = {dataset: list(asked) for dataset, asked in questions.items()}
    becomes = {
        dataset: {one.question: swapped(one.options) for one in asked if any(map(SIDES.search, one.options))}
        for dataset, asked in questions.items()
    }
    rows: list[list[object]] = []
    for dataset, model in sorted({key[:2] for key in cells}):
        of_model = {key[2]: frame for key, frame in cells.items() if key[:2] == (dataset, model)}
        for own in sorted(of_model):
            if settings[own][Edits].effective_edits:
                continue
            edited = [name for name in sorted(of_model) if settings[own].difference(settings[name]).keys() == {"edit"}]
            still = _placebo(own, edited, settings, comparisons)
            for name in edited:
                kind = relation(settings[name][Edits].effective_edits)
                if kind is None:
                    continue
                frames = [of_model[own], of_model[name], *([of_model[still]] if still not in (None, name) else [])]
                gone = denied(questions[dataset], settings[name][Edits].effective_edits)
                measures = _measures(frames, kind, becomes[dataset], gone, statistics)
                if measures is not None:
                    placebo = [still if len(frames) == 3 else None, *measures[-4:]]
                    rows.append([dataset, model, own, name, kind, *measures[:-4], *placebo])
    return TABLE.frame(rows)


def _placebo(
    own: str, edited: Sequence[str], settings: Mapping[str, Setting], comparisons: Mapping[str, Comparison]
) -> str | None:
    """The setting that changes the own picture in nothing of matter."""
    named = [one.settings[1] for one in comparisons.values() if one.kind == "placebo" and one.settings[0] == own]
    found = [name for name in named if name in edited]
    found += [name for name in edited if _is_mild(settings[name][Edits].effective_edits)]
    return found[0] if found else None


def _is_mild(edits: Sequence[EditSection]) -> bool:
    numbers = {name: abs(value) for one in edits for name, value, _ in one.strengths()}
    return [one.kind for one in edits] in (["shift"], ["window"]) and max(numbers.values()) <= 1


def _measures(
    frames: list[pd.DataFrame],
    kind: str,
    becomes: Mapping[str, list[int]],
    gone: Mapping[str, int],
    statistics: Statistics,
) -> list[object] | None:
    rows = side_by_side(frames[:2])
    wanted = _expected(rows, kind, becomes, gone)
    known = rows["answered"].to_numpy() & (wanted >= 0)
    if not known.any():
        return None
    told = rows[known]
    kept = (told["choice_1"].to_numpy() == wanted[known]).astype(np.float64)
    share = mean_difference(kept, told)
    measures: list[object] = [len(told), share.patients, share.estimate, *_within(share, statistics.level)]
    measures += [1 - share.estimate, float(1 - rows["answered"].mean())]
    measures.append(int((rows["answered"].to_numpy() & (wanted < 0)).sum()))
    if len(frames) < 3:
        return [*measures, None, None, None, None]
    three = side_by_side(frames)
    wanted = _expected(three, kind, becomes, gone)
    known = three["answered"].to_numpy() & (wanted >= 0)
    told = three[known]
    if not len(told):
        return [*measures, None, None, None, None]
    still = (told["choice_2"] == told["choice_0"]).to_numpy(dtype=np.float64)
    beyond = mean_difference((told["choice_1"].to_numpy() == wanted[known]) - still, told)
    return [*measures, float(still.mean()), beyond.estimate, *beyond.limits(statistics.level)]


def _expected(rows: pd.DataFrame, kind: str, becomes: Mapping[str, list[int]], gone: Mapping[str, int]) -> np.ndarray:
    """The place as written of the option that must be given, by the one given without the edit; -1 for none."""
    if kind == "no-finding":
        return np.array([gone.get(name, -1) for name in rows["question"]])
    given = rows["choice_0"].to_numpy()
    if kind == "stay":
        return given
    pairs = zip(rows["question"], given, strict=True)
    return np.array([becomes[name][place] if name in becomes and place >= 0 else place for name, place in pairs])


def _within(share: Combined, level: float) -> tuple[float | None, float | None]:
    """Limits of a share: never below 0."""
    low, high = share.limits(level)
    return (None if low is None else max(0.0, low)), high
