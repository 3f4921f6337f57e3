"""What an edit is: a section of a setting with its strength, and a function of the values below it.

Edits lie one above the other: each is asked for a part of the array, and asks the one below for as much as it needs.
So a slice costs what its neighbourhood costs, and never the whole volume.
"""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, TypeVar

from overread.core.section import Section

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from overread.core.records import Question

    FloatArray = npt.NDArray[np.float64]
    BoolArray = npt.NDArray[np.bool_]
    Below = Callable[["Place"], FloatArray]
    """Gives the values of a part of the array as the edits before this one left them."""
    T = TypeVar("T", bound=np.generic)

Expected = Literal["stay", "swap-sides", "no-finding"] | None
"""The answer stays; the side in it becomes the other; whether the finding is there that is gone is answered no."""
Place = tuple[slice, ...]
"""A box of an array: a slice with whole numbers per axis."""


def seeded(*parts: object) -> np.random.Generator:
    """The same numbers for the same parts, on any machine."""
    import numpy as np

    text = "\x1f".join(map(str, parts))
    return np.random.default_rng(list(hashlib.sha256(text.encode()).digest()))


class NotEdited(Exception):
    """An edit that can't be made of a study; its message says why."""


class Strength(NamedTuple):
    """A number of an edit on the axis of a curve: `value` of the field `name`; `what` is it, with its unit."""

    name: str
    value: float
    what: str


@dataclass(frozen=True)
class Scene:
    """What an edit is told of the array that it changes: a volume, or the pixels of a radiograph.

    shape     of the array: (x, y, z) in the file's order, or (rows, columns)
    spacing   between the centres of neighbouring elements, per axis
    unit      of the spacing: mm, or pixels where the file does not say how large a pixel is
    world     which of the patient's axes each of the array's runs along: 0 across, 1 front to back, 2 along the body
    reversed  whether it runs to the patient's left, back or feet; however an array is stored, an edit is the same
    down, right, flip_down, flip_right
              how the array lies on the picture: which axes are its rows and columns, and whether they are reversed
    low, high what the unedited picture shows black and white
    plain     the unedited values of a part; of this one the slices may have steps
    find      the lesion's mask on this grid, of one label or of all of them (None). NotEdited where there is none
    organ     the brain, where a mask or the background tells it; None for a radiograph
    key       what random edits depend on beside their own seed: the study and the series
    """

    shape: tuple[int, ...]
    spacing: tuple[float, ...]
    unit: str
    world: tuple[int, ...]
    reversed: tuple[bool, ...]
    down: int
    right: int
    flip_down: bool
    flip_right: bool
    low: float
    high: float
    plain: Below
    find: Callable[[str | None], BoolArray]
    organ: BoolArray | None
    key: tuple[str, ...]
    shared: dict[Any, Any] = field(default_factory=dict, compare=False)
    """What holds for the array in whatever plane and window it is shown, worked out once."""
    kept: dict[Any, Any] = field(default_factory=dict, compare=False)
    """What edits have worked out for this plane and window."""

    @property
    def range(self) -> float:
        """From black to white."""
        return self.high - self.low

    @cached_property
    def everything(self) -> Place:
        return tuple(slice(0, n) for n in self.shape)

    @property
    def side(self) -> int:
        """The array's axis that runs across the patient, from one side to the other."""
        return self.world.index(0)

    def flipped(self, axis: int) -> bool:
        """Whether an axis of the picture runs against the array's."""
        return self.flip_down if axis == self.down else self.flip_right

    @property
    def height(self) -> int:
        """Rows of the picture, before it is brought to its size."""
        return self.shape[self.down]

    @property
    def width(self) -> int:
        return self.shape[self.right]

    def random(self, *more: object) -> np.random.Generator:
        """The same numbers for the same study, series and `more`, on any machine."""
        return seeded(*self.key, *more)

    def on_array(self, drawn: npt.NDArray[T]) -> npt.NDArray[T]:
        """A picture (rows, columns) turned as the array lies: its axes in the array's order."""
        turned = drawn[::-1] if self.flip_down else drawn
        turned = turned[:, ::-1] if self.flip_right else turned
        return turned.T if self.right < self.down else turned

    def across(self, drawn: npt.NDArray[T], place: Place) -> npt.NDArray[T]:
        """A picture (rows, columns) laid through all slices, and cut to a part of the array."""
        import numpy as np

        turned = self.on_array(drawn)
        if len(self.shape) == 3:
            normal = ({0, 1, 2} - {self.down, self.right}).pop()
            turned = np.expand_dims(turned, normal)
            place = tuple(slice(0, 1) if axis == normal else one for axis, one in enumerate(place))
        return turned[place]

    def in_plane(self, place: Place) -> Place:
        """The same slices with all their rows and columns."""
        return tuple(
            slice(0, n) if axis in (self.down, self.right) else one
            for axis, (one, n) in enumerate(zip(place, self.shape, strict=True))
        )

    def steps(self, length: float) -> tuple[float, ...]:
        """How many elements per axis a length in `unit` is."""
        return tuple(length / one for one in self.spacing)

    def needs_mm(self, what: str) -> None:
        if self.unit != "mm":
            raise NotEdited(f"{what} is given in mm, and the file does not say how large a pixel is")


class EditSection(Section):
    """A kind of edit: its keys, and what it makes of an array. A strength of nothing leaves every byte as it is."""

    gives: ClassVar[str]
    """What it does, in a few words, for the docs."""
    family: ClassVar[str]
    """lesion, geometry, quality, marks or occlusion."""
    expects: ClassVar[Expected] = None
    """What must happen to a correct reader's answers; None where it may be either way."""

    if TYPE_CHECKING:

        @property
        @abstractmethod
        def kind(self) -> str: ...

    @property
    @abstractmethod
    def nothing(self) -> bool:
        """Whether its strength is none, so that it changes nothing."""

    @abstractmethod
    def words(self) -> str:
        """What is done to the image, as a participle: `blurred by 2 mm`."""

    def short(self) -> str:
        """The same for the head of a column."""
        return self.words()

    @abstractmethod
    def part(self, below: Below, place: Place, scene: Scene) -> FloatArray:
        """The edited values of a part of the array.

        raises  NotEdited where it can't be done to this study
        """

    def labels(self, below: Below, place: Place, scene: Scene) -> FloatArray:
        """The same for an array of labels, a mask that is shown. What changes no shape leaves them alone."""
        return below(place)

    @property
    def expected(self) -> Expected:
        """What must happen to a correct reader's answers, of this very edit."""
        return self.expects

    @property
    def asks(self) -> bool:
        """Whether questions of its own are asked, in place of the data set's."""
        return False

    def questions(self, study: str, patient: str, *, yes_no: bool) -> list[Question]:
        """What is asked of a study's edited picture; what is correct follows from what was done to it."""
        return []

    def covered(self, height: int, width: int) -> BoolArray | None:
        """(rows, columns) of the picture that it covers altogether; None for what covers no part."""
        return None

    def strengths(self) -> tuple[Strength, ...]:
        """Its numbers: settings that differ in one of them are a curve."""
        return ()


def widened(place: Place, margins: tuple[int, ...], shape: tuple[int, ...]) -> Place:
    """`place` with a margin on either side of each axis, as far as the array reaches."""
    return tuple(
        slice(max(0, one.start - margin), min(n, one.stop + margin))
        for one, margin, n in zip(place, margins, shape, strict=True)
    )


def within(place: Place, whole: Place) -> Place:
    """Where `place` lies in an array that holds the part `whole`."""
    return tuple(slice(one.start - all_.start, one.stop - all_.start) for one, all_ in zip(place, whole, strict=True))
