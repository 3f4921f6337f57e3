"""What a page says when it can't be shown."""

from __future__ import annotations

from collections.abc import Collection

from overread.core.errors import MOST_NAMES, OverreadError, unknown


class NotThere(OverreadError):
    """A dataset, study, question, setting, model, run or file that the run does not have. The app answers 404."""

    @classmethod
    def named(cls, kind: str, name: str, known: Collection[str] = ()) -> NotThere:
        """`no study 'x'`; with the names there are where they are few enough to help."""
        return cls(unknown(kind, name, known) if 0 < len(known) <= MOST_NAMES else f"no {kind} {name!r}")


class BadRequest(OverreadError):
    """A parameter or a form field that can't be used. The app answers 400."""
