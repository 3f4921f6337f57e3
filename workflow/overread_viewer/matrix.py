"""Every model's answer to every question of a study under every setting, as a table that stays small.

Columns come in groups, by model or by setting. A closed group is one column that says under how many of its settings
(or by how many of its models) the answer was right; an open one has a column for each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import quote

from markupsafe import Markup, escape

from overread.core.records import Question
from overread_viewer.catalogue import Catalogue

By = Literal["model", "setting"]

SIGNS = {
    "right": "✓", "wrong": "✗", "unparsed": "?", "refused": "∅", "truncated": "…", "failed": "!", "mixed": "±",
    "none": "·",
}  # fmt: skip
WORDS = {
    "right": "correct", "wrong": "wrong", "unparsed": "unparsed: no option could be read from the answer",
    "refused": "refused", "truncated": "truncated: the answer ended before it named an option",
    "failed": "failed: the request could not be put", "mixed": "correct in some, not in all", "none": "not asked",
}  # fmt: skip

FEW = 30
"""Columns that are shown without being asked for: so many fit beside the questions on a wide screen."""


@dataclass(frozen=True)
class Cell:
    """state  a key of `SIGNS`; of a closed group right, wrong (none right), mixed or none (none asked)."""

    state: str
    text: str
    words: str
    href: str | None = None


@dataclass(frozen=True)
class Column:
    model: str
    setting: str
    label: str
    chosen: bool = False


@dataclass(frozen=True)
class Group:
    name: str
    label: str
    columns: tuple[Column, ...]
    is_open: bool
    chosen: bool = False


@dataclass(frozen=True)
class Row:
    """One cell a column, those of a closed group in one; `firsts` are the places where a group begins."""

    question: Question
    cells: tuple[Cell, ...]
    firsts: frozenset[int]
    chosen: frozenset[int]

    @property
    def html(self) -> Markup:
        """The cells as HTML. Made here: a template would take ten times as long for thousands of them."""
        return Markup("".join(self._html(place, cell) for place, cell in enumerate(self.cells)))

    def _html(self, place: int, cell: Cell) -> str:
        kind = cell.state + (" first" if place in self.firsts else "") + (" chosen" if place in self.chosen else "")
        words, text = escape(cell.words), escape(cell.text)
        if cell.href is None:
            return f'<td class="{kind}" title="{words}">{text}</td>'
        return f'<td class="{kind}"><a href="{escape(cell.href)}" aria-label="{words}">{text}</a></td>'


@dataclass(frozen=True)
class Matrix:
    by: By
    groups: tuple[Group, ...]
    rows: tuple[Row, ...]
    states: tuple[str, ...] = field(default=())
    """Those that occur, in the order of `SIGNS`: the legend."""

    @property
    def width(self) -> int:
        return sum(len(group.columns) if group.is_open else 1 for group in self.groups)


def matrix(
    catalogue: Catalogue,
    dataset: str,
    questions: Sequence[Question],
    *,
    by: By = "model",
    opened: Sequence[str] = (),
    model: str | None = None,
    setting: str | None = None,
) -> Matrix:
    """The matrix of a study's questions.

    by      what the columns are grouped by
    opened  names of the groups that are open, or `all`, or `none`; if there are none, the first, as many as fit
    model, setting  what is highlighted
    """
    groups = _groups(catalogue, dataset, by, opened, model, setting)
    firsts, chosen = _places(groups)
    rows = tuple(
        Row(
            question,
            tuple(cell for group in groups for cell in _cells(catalogue, dataset, question, group)),
            firsts,
            chosen,
        )
        for question in questions
    )
    there = {cell.state for row in rows for cell in row.cells}
    return Matrix(by, groups, rows, tuple(state for state in SIGNS if state in there))


def _groups(
    catalogue: Catalogue, dataset: str, by: By, opened: Sequence[str], model: str | None, setting: str | None
) -> tuple[Group, ...]:
    pairs = [
        (one, two)
        for one in catalogue.models(dataset)
        for two in catalogue.settings(dataset)
        if catalogue.runs(dataset, one, two)
    ]
    names = catalogue.models(dataset) if by == "model" else catalogue.settings(dataset)
    width = 0
    groups = []
    for name in names:
        of_group = [(one, two) for one, two in pairs if name == (one if by == "model" else two)]
        columns = tuple(
            Column(
                one, two, two if by == "model" else catalogue.label(one),
                chosen=(model in (None, one)) and (setting in (None, two)) and (model, setting) != (None, None),
            )
            for one, two in of_group
        )  # fmt: skip
        label = catalogue.label(name) if by == "model" else name
        chosen = any(column.chosen for column in columns) and name == (model if by == "model" else setting)
        width += len(columns)
        is_open = "all" in opened or name in opened or (not opened and width <= FEW)
        groups.append(Group(name, label, columns, is_open=is_open, chosen=chosen))
    return tuple(groups)


def _places(groups: Sequence[Group]) -> tuple[frozenset[int], frozenset[int]]:
    """The places in a row where groups begin, and those that are highlighted."""
    firsts, chosen, place = [], [], 0
    for group in groups:
        firsts.append(place)
        for is_chosen in [column.chosen for column in group.columns] if group.is_open else [group.chosen]:
            if is_chosen:
                chosen.append(place)
            place += 1
    return frozenset(firsts), frozenset(chosen)


def _cells(catalogue: Catalogue, dataset: str, question: Question, group: Group) -> list[Cell]:
    cells = [_cell(catalogue, dataset, question.question, column) for column in group.columns]
    if group.is_open:
        return cells
    asked = [cell for cell in cells if cell.state != "none"]
    right = sum(cell.state == "right" for cell in asked)
    if not asked:
        return [Cell("none", SIGNS["none"], "not asked")]
    state = "right" if right == len(asked) else "mixed" if right else "wrong"
    return [Cell(state, f"{right}/{len(asked)}", f"correct in {right} of {len(asked)}")]


def _cell(catalogue: Catalogue, dataset: str, question: str, column: Column) -> Cell:
    """One answer, or how many of several runs were right. It leads to the first run that was not, else to the first."""
    runs = range(1, catalogue.runs(dataset, column.model, column.setting) + 1)
    every = {run: state_of(catalogue, dataset, column.model, column.setting, run, question) for run in runs}
    states = {run: state for run, state in every.items() if state is not None}
    if not states:
        return Cell("none", SIGNS["none"], WORDS["none"])
    counts = Counter(states.values())
    run = next((run for run, state in states.items() if state != "right"), min(states))
    href = trial_url(dataset, column.setting, run, question, column.model)
    if len(states) == 1:
        return Cell(states[run], SIGNS[states[run]], WORDS[states[run]], href)
    state = states[run] if len(counts) == 1 else "mixed"
    words = ", ".join(f"{name} in {counts[name]}" for name in SIGNS if counts[name])
    return Cell(state, f"{counts['right']}/{len(states)}", f"{words} of {len(states)} runs", href)


def state_of(catalogue: Catalogue, dataset: str, model: str, setting: str, run: int, question: str) -> str | None:
    """right, wrong, or the status of an answer that was none; None if the question was not asked."""
    answers = catalogue.answers(dataset, model, setting, run)
    row = answers.rows.get(question)
    if row is None:
        return None
    status = str(answers.status[row])
    if status != "answered":
        return status
    return "right" if answers.correct[row] else "wrong"


def trial_url(dataset: str, setting: str, run: int, question: str, model: str | None = None) -> str:
    parts = "/".join(quote(str(part), safe="") for part in (dataset, setting, run, question))
    return f"/trial/{parts}" + (f"?model={quote(model, safe='')}" if model is not None else "")
