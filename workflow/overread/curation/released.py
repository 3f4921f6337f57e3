"""A question of a release: its shuffled options, its pictures, where its answer stands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from overread.core.records import Question
from overread.settings.options import Permutation


@dataclass(frozen=True)
class Released:
    """A question with its released order and its pictures, relative to the release's folder."""

    question: Question
    order: Permutation
    pictures: tuple[str, ...] = ()

    @property
    def options(self) -> tuple[str, ...]:
        """As shown by default: shuffled."""
        return tuple(self.question.options[place] for place in self.order)

    @property
    def answer_index(self) -> int:
        """Place of the right option among the shuffled ones, from 0."""
        return self.order.index(self.question.answer_index)

    def row(self, *, with_report: bool) -> dict[str, Any]:
        """What is released of the question. Positions and permutation are from 1, as people count."""
        one = self.question
        row: dict[str, Any] = {
            "question": one.question,
            "study": one.study,
            "patient": one.patient,
            "topic": one.topic,
            "stem": one.stem,
            "options": list(self.options),
            "answer": one.answer,
            "answer_position": self.answer_index + 1,
            "options_as_written": list(one.options),
            "answer_position_as_written": one.answer_index + 1,
            "permutation": [place + 1 for place in self.order],
            "pictures": list(self.pictures),
            "origin": one.origin,
        }
        return row | ({"evidence": one.evidence} if with_report else {})


def positions(released: Sequence[Released]) -> list[tuple[str, int, int, float]]:
    """Order, place from 1, questions whose right option stands there, and their share."""
    most = max(len(one.question.options) for one in released)
    places = {
        "as-written": [one.question.answer_index for one in released],
        "shuffled": [one.answer_index for one in released],
    }
    return [
        (order, place + 1, found.count(place), found.count(place) / len(released))
        for order, found in places.items()
        for place in range(most)
    ]
