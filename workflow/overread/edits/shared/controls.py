"""Questions about marks: the positive control. What was drawn by chance is known, so every answer is.

By design what is drawn does not depend on the study: each option of a question is correct equally often, whatever a
reader that does not see the picture answers. Its correct answers are therefore independent draws of chance 1/options.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from overread.core.records import Question
from overread.edits.base import seeded

if TYPE_CHECKING:
    import numpy as np

ORIGIN = "marks"
"""What stands as the origin of a question about a mark."""
LETTERS = "ACEHKSTX"
"""No L and no R, which radiographs bear as side markers, and none that looks like a digit."""
SHAPES = ("disc", "square", "triangle", "cross")
SIDES = ("left", "right")
NUMBERS = ("one", "two", "three")
APART = 2.6
"""From the middle of one mark to that of the next, in radii."""
EDGE = 0.03
"""Room that is left at the edges and at the middle of the picture, in shares of it."""
LARGEST = 0.25
"""Size up to which three marks fit below each other, with room to be elsewhere."""
YES_NO = ("yes", "no")
PER_STUDY = 2.5
"""Questions per study on average: every other study has a mark, of which three more things are asked."""


class Drawing(NamedTuple):
    """What is drawn on a study's picture: `number` marks below each other.

    letter, shape   one of them
    side            half of the picture, as one looks at it
    across, down    0 to 1: where in the room that there is
    """

    letter: str | None
    shape: str | None
    side: str
    number: int
    across: float
    down: float

    def middles(self, size: float) -> list[tuple[float, float]]:
        """Of each mark, in shares of the picture from its left and its top, for marks of `size`."""
        radius = size / 2  # of the shorter edge, so that along the longer one there is more room than is used
        room = 0.5 - 2 * EDGE - size
        x = EDGE + radius + self.across * max(0.0, room) + (0.5 if self.side == "right" else 0.0)
        tall = APART * radius * (self.number - 1)
        y = EDGE + radius + self.down * max(0.0, 1 - 2 * EDGE - size - tall)
        return [(x, y + APART * radius * place) for place in range(self.number)]


def drawing(study: str, seed: int) -> Drawing | None:
    """What is drawn for a study, the same on every machine and in every size; None: nothing is."""
    draw = seeded("mark", study, seed)
    if draw.random() < 0.5:
        return None
    lettered = draw.random() < 0.5
    letter, shape = _one(LETTERS, draw), _one(SHAPES, draw)
    side, number = _one(SIDES, draw), int(draw.integers(len(NUMBERS))) + 1
    return Drawing(
        letter if lettered else None, None if lettered else shape, side, number, float(draw.random()),
        float(draw.random()),
    )  # fmt: skip


def _one(of: tuple[str, ...] | str, draw: np.random.Generator) -> str:
    return of[int(draw.integers(len(of)))]


def questions(study: str, patient: str, seed: int, colour: str, *, yes_no: bool) -> list[Question]:
    """Whether there is a mark, and of a mark its letter or shape, its side and how many there are.

    colour  of the marks: white or black
    yes_no  whether all are asked so that yes or no is the answer
    """
    drawn = drawing(study, seed)

    def question(topic: str, stem: str, options: tuple[str, ...], answer: str) -> Question:
        return Question(
            study=study, patient=patient, stem=stem, options=options, answer=answer, topic=f"mark: {topic}",
            origin=ORIGIN,
        )  # fmt: skip

    plate = "black" if colour == "white" else "white"
    thing = f"a {colour} shape or letter on a {plate} plate"
    present = question(
        "present", f"Has {thing} been drawn over this image?", YES_NO, "no" if drawn is None else "yes"
    )  # fmt: skip
    if drawn is None:
        return [present]
    draw = seeded("mark question", study, seed)
    asked = [present]
    for topic, stem, name, options, answer in _asked(drawn, colour, draw):
        if not yes_no:
            asked.append(question(topic, stem, options, answer))
            continue
        others = [option for option in options if option != answer]
        true = draw.random() < 0.5
        claimed = answer if true else others[int(draw.integers(len(others)))]
        asked.append(question(topic, name.format(claimed), YES_NO, "yes" if true else "no"))
    return asked


def _asked(drawn: Drawing, colour: str, draw: np.random.Generator) -> list[tuple[str, str, str, tuple[str, ...], str]]:
    """By topic: as a question with options, as one of yes and no, the options and the answer."""
    marks = f"{colour} shapes or letters"
    if drawn.letter is not None:
        others = draw.permutation([letter for letter in LETTERS if letter != drawn.letter])[:3]
        options = tuple(str(one) for one in draw.permutation([drawn.letter, *others]))
        what = (
            "letter",
            "Which letter has been drawn over this image?",
            "Has the letter {} been drawn over this image?",
        )
        first = (*what, options, drawn.letter)
    else:
        assert drawn.shape is not None
        names = tuple(f"a {shape}" for shape in SHAPES)
        what = ("shape", "Which shape has been drawn over this image?", "Has {} been drawn over this image?")
        first = (*what, names, f"a {drawn.shape}")
    return [
        first,
        ("side", f"In which half of the picture, as you look at it, are the {marks} drawn over it?",
         f"Are the {marks} drawn over this image in the {{}} half of the picture, as you look at it?",
         SIDES, drawn.side),
        ("number", f"How many {marks} have been drawn over this image?",
         f"Is the number of {marks} drawn over this image {{}}?", NUMBERS, NUMBERS[drawn.number - 1]),
    ]  # fmt: skip
