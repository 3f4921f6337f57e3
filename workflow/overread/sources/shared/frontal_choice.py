"""Which of a study's images is its frontal one, by the rule of the config."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal, Protocol, TypeVar, get_args

from pydantic import Field

from overread.config.base import Distinct, NotEmpty, Section

ViewPosition = Literal[
    "AP", "PA", "LATERAL", "LL", "LPO", "RAO", "RPO", "LAO", "AP AXIAL", "XTABLE LATERAL", "AP LLD", "PA LLD",
    "AP RLD", "PA RLD", "L5 S1", "SWIMMERS",
]  # fmt: skip
"""All that MIMIC-CXR-JPG's metadata say, besides blank."""

VIEW_POSITIONS: tuple[str, ...] = get_args(ViewPosition)


class FrontalChoice(Section):
    """Which of a study's images is shown as its frontal one."""

    views: Annotated[tuple[ViewPosition, ...], NotEmpty, Distinct] = Field(
        default=("AP", "PA"), description="view positions that count as frontal"
    )
    take: Literal["first", "last"] = Field(default="first", description="by date and time")
    prefer: Literal["time", "views"] = Field(
        default="time", description="time: of all of `views`; views: of the first of `views` that the study has"
    )


class Shot(Protocol):
    """An image of a study. Shots are ordered by time, and by name where times are equal or unknown."""

    @property
    def view(self) -> str: ...

    @property
    def timed(self) -> bool: ...

    def __lt__(self, other: Any, /) -> bool: ...


S = TypeVar("S", bound=Shot)


def frontal_image(images: Sequence[S], choice: FrontalChoice) -> S | None:
    """The image that is shown; None if none has a wanted view. One whose time is unknown comes after all others."""
    views: tuple[str, ...] = choice.views
    candidates = [image for image in images if image.view in views]
    if choice.prefer == "views":
        best = min((views.index(image.view) for image in candidates), default=None)
        candidates = [image for image in candidates if best is not None and image.view == views[best]]
    candidates = sorted([image for image in candidates if image.timed] or candidates)
    if not candidates:
        return None
    return candidates[0] if choice.take == "first" else candidates[-1]
