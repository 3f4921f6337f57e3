"""The order of options in a release, which is read whole: the correct options stand at each place equally often.

A trial's order depends on its question alone (`settings.options.permutation`), which can't be balanced to the question.
It takes the orders of the release before as they are and fits new questions in between, so a question keeps its order
from release to release. Without an earlier release, one question more or less moves a handful of others at most.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from overread.core.records import Question, content_hash
from overread.settings.options import Permutation, permutation

TOLERANCE = 0.02
"""How far from its even share a place may be before an order of an earlier release is given up."""


def balanced(
    questions: Iterable[Question], seed: int, earlier: Mapping[str, Permutation] | None = None
) -> dict[str, Permutation]:
    """An order for each question, by its id, in which the right options stand at each place equally often.

    A question starts from its shuffled `permutation`; the fewest that must are moved to another place, those that a
    draw from their content names first. Questions with unequal numbers of options are balanced apart.

    earlier   the orders of an earlier release by question id. They are kept as they are; one is given up only where a
              place would otherwise be further than `TOLERANCE` from its even share.
    """
    kept = earlier or {}
    groups: dict[int, list[Question]] = {}
    for question in questions:
        groups.setdefault(len(question.options), []).append(question)
    orders: dict[str, Permutation] = {}
    for count, group in groups.items():
        orders |= _balanced(count, group, seed, kept)
    return orders


def _balanced(
    count: int, questions: list[Question], seed: int, kept: Mapping[str, Permutation]
) -> dict[str, Permutation]:
    by_draw = sorted(questions, key=lambda one: content_hash(["option place", seed, one.question]))
    fixed = [one for one in by_draw if sorted(kept.get(one.question, ())) == list(range(count))]
    known = {one.question for one in fixed}
    orders = {
        one.question: kept[one.question] if one.question in known else permutation(one, "shuffled", seed)
        for one in by_draw
    }
    places = {one.question: orders[one.question].index(one.answer_index) for one in by_draw}
    new = [one for one in by_draw if one.question not in known]
    homes = Counter(places[one.question] for one in new)
    moves = _level(Counter(places[name] for name in known), homes, count)
    places |= _moved(new, places, homes, moves)
    places |= _mended(fixed, places, count)
    return {
        one.question: _with_answer_at(orders[one.question], one.answer_index, places[one.question]) for one in by_draw
    }


def _level(fixed: Counter[int], homes: Counter[int], count: int) -> list[int]:
    """How many new questions each place takes, so that with the fixed ones all are as level as can be.

    Where one question is left over, it goes where most of the new ones would be anyway.
    """
    takes = [0] * count
    for _ in range(homes.total()):
        lowest = min(range(count), key=lambda place: (fixed[place] + takes[place], takes[place] - homes[place], place))
        takes[lowest] += 1
    return takes


def _moved(new: list[Question], places: Mapping[str, int], homes: Counter[int], takes: list[int]) -> dict[str, int]:
    """Where the new questions go that can't stay: the first of each place that has too many, to those with too few."""
    leaving = {place: max(homes[place] - take, 0) for place, take in enumerate(takes)}
    free = [place for place, take in enumerate(takes) for _ in range(max(take - homes[place], 0))]
    moved: dict[str, int] = {}
    for question in new:
        home = places[question.question]
        if leaving[home]:
            leaving[home] -= 1
            moved[question.question] = free[len(moved)]
    return moved


def _mended(fixed: list[Question], places: Mapping[str, int], count: int) -> dict[str, int]:
    """New places of earlier questions: from the fullest place to the emptiest while one of them is out of bounds."""
    counts = Counter(places.values())
    whole = counts.total()
    moved: dict[str, int] = {}
    for question in fixed:
        full = max(range(count), key=lambda place: (counts[place], -place))
        empty = min(range(count), key=lambda place: (counts[place], place))
        apart = max(counts[full] * count - whole, whole - counts[empty] * count)
        if apart <= TOLERANCE * whole * count or counts[full] - counts[empty] < 2:
            break
        if places[question.question] == full:
            moved[question.question] = empty
            counts[full] -= 1
            counts[empty] += 1
    return moved


def _with_answer_at(order: Permutation, answer: int, place: int) -> Permutation:
    """The same order with the right option at `place`; the others stay in their sequence."""
    others = [written for written in order if written != answer]
    return (*others[:place], answer, *others[place:])
