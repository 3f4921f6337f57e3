"""Which of a study's images is its frontal one, by the rule of the config."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

from overread.config.columns import FrontalChoice


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
