"""The order in which a question's options are shown.

It depends on the seed and the question alone: adding a question to a dataset never reorders another one's, since a new
order is a new request. Its balance is that of independent draws: of 2,387 questions each place holds the correct option
25 +- 0.9 % of the time, and no more can be had from a question alone. (`trials.options.balanced` is for a release.)
"""

from __future__ import annotations

import random
from typing import Annotated

from pydantic import Field

from overread.core.records import Question, content_hash
from overread.settings.base import Aspect, Dose, Draft, Worded

Permutation = tuple[int, ...]
"""Place shown -> place as written."""
OptionOrder = Annotated[
    str, Worded(r"(as-written|shuffled|rotated-[1-9])", "as-written, shuffled or rotated-1 to rotated-9")
]


class Options(Aspect):
    """In which order the options stand."""

    name = "options"
    title = "the order of the options"
    rank = 50
    weight = 5
    always = True

    options: OptionOrder = Field(default="as-written", description="as-written, shuffled or rotated-k")

    @property
    def rotation(self) -> int | None:
        number = self.options.removeprefix("rotated-")
        return int(number) if number != self.options else None

    def shows_the_study(self) -> bool:
        return False

    def words(self) -> str:
        if self.rotation is not None:
            return f"options rotated by {self.rotation}"
        return "options in a shuffled order" if self.options == "shuffled" else "options as written"

    def short(self) -> str:
        if self.rotation is not None:
            return f"rotated by {self.rotation}"
        return "reshuffled" if self.options == "shuffled" else ""

    def doses(self) -> tuple[Dose, ...]:
        return () if self.rotation is None else (Dose("options-rotated", "options", self.rotation, "rotation"),)

    def tell(self, draft: Draft) -> None:
        draft.permutation = permutation(draft.question, self.options, draft.materials.seed)
        draft.options = tuple(draft.question.options[place] for place in draft.permutation)


def permutation(question: Question, order: str, seed: int) -> Permutation:
    """Place shown -> place as written.

    order    `as-written`; `rotated-k`: the first k options go to the end; `shuffled`: the correct option's place is
             uniform over the places, and the others follow in random order
    raises   ValueError for another order
    """
    count = len(question.options)
    if order == "as-written":
        return tuple(range(count))
    if order.startswith("rotated-"):
        shift = int(order.removeprefix("rotated-"))
        return tuple((place + shift) % count for place in range(count))
    if order != "shuffled":
        raise ValueError(f"no option order {order!r}")
    draw = random.Random(content_hash(["option order", seed, question.question]))
    others = [place for place in range(count) if place != question.answer_index]
    draw.shuffle(others)
    others.insert(draw.randrange(count), question.answer_index)
    return tuple(others)
