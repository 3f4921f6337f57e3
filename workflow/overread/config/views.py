"""What every view has. A view is a way of rendering a study; each kind is a module or folder of `overread.views`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field, FiniteFloat

from overread.config.base import Section
from overread.core.errors import unknown
from overread.core.records import Modality

if TYPE_CHECKING:
    from PIL import Image

    from overread.core.records import Study
    from overread.images.files import StudyFiles
    from overread.images.volume_file import VolumePicture

Plane = Literal["axial", "coronal", "sagittal"]
SliceChoice = Annotated[
    Literal["largest-tumour", "middle", "largest-label-1", "largest-label-2", "largest-label-4"],
    Field(description="which slice: with the most tumour, or of a label (1 necrotic core, 2 oedema, 4 enhancing)"),
]


def _rising(window: tuple[float, float]) -> tuple[float, float]:
    if window[0] >= window[1]:
        raise ValueError(f"{list(window)}: the value shown black must be below the one shown white")
    return window


CaptionPlace = Annotated[
    Literal["before", "after"], Field(description="of several pictures, where each one's name stands in the prompt")
]

Window = Annotated[tuple[FiniteFloat, FiniteFloat], AfterValidator(_rising)]
Windows = Annotated[
    dict[str, Window],
    Field(description="by series, the values that are shown black and white; else the brain's percentiles"),
]


def windows_of_shown(windows: Windows, series: str | tuple[str, ...]) -> None:
    """A window of a series that the view does not show would be a slip of the pen."""
    if series != "all":
        named = (series,) if isinstance(series, str) else series
        for name in windows:
            if name not in named:
                raise ValueError(f"windows: {unknown('series', name, named)}")


class ViewSection(Section):
    """A kind of view: its keys, how it is drawn, and what the rest of the program asks of it."""

    modality: ClassVar[Modality]
    gives: ClassVar[str]
    """What a study gives under it, in a few words, for the docs."""

    if TYPE_CHECKING:

        @property
        @abstractmethod
        def kind(self) -> str: ...

    @property
    @abstractmethod
    def pictures(self) -> int:
        """How many pictures it gives at most."""

    @abstractmethod
    def render(
        self, study: Study, files: StudyFiles
    ) -> Iterator[tuple[Image.Image | VolumePicture, dict[str, object]]]:
        """The pictures in their order, each with what a `records.Picture` says about it.

        files   the study's files: each is opened once, whatever number of views takes it
        raises  BadFile if a file that is needed can't be used
        """

    @abstractmethod
    def words(self) -> str:
        """What it shows, as the end of a sentence of the methods: `the axial slice of FLAIR`."""

    @property
    def is_volume(self) -> bool:
        """Whether it gives a volume, which not every model takes, and not pictures."""
        return False

    @property
    def single(self) -> int:
        """How many of its pictures are one slice of one series each."""
        return 0

    @property
    def gathered(self) -> int:
        """How many of its pictures gather what single slices show, one each."""
        return 0

    @property
    def levels(self) -> tuple[tuple[Plane, SliceChoice], ...]:
        """The slices that it shows, so that a file is cut for all views in one go."""
        return ()

    @property
    def takes_tumour(self) -> bool:
        """Whether the tumour mask chooses what it shows."""
        return any(choice != "middle" for _, choice in self.levels)

    @property
    def whole(self) -> frozenset[str]:
        """The series that it wants whole."""
        return frozenset()


def series_in_words(series: str | tuple[str, ...]) -> str:
    """`every series`, `FLAIR`, `T1, T1c and FLAIR`."""
    if series == "all":
        return "every series"
    names = [series] if isinstance(series, str) else list(series)
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
