"""Edits of a picture: what in the image is changed, on its values at native grid and before any window is laid over it.

A module per kind of edit, with its section of a setting; `base` has what they share and what they are given.

lesion     erase, erase_control, only, move      geometry   mirror, shift, rotate, crop
quality    blur, noise, downsample, bias_field, ghosting, window, contrast, jpeg
marks      mark                                  occlusion  occlude
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from overread.core.registry import Registry

if TYPE_CHECKING:
    from overread.edits.base import EditSection as EditSection

    Edit = EditSection

EDITS: Registry[EditSection] = Registry(
    "overread.edits", kind="kind of edit", by="kind", base="overread.edits.base:EditSection"
)


def __getattr__(name: str) -> Any:
    """`Edit`, a section that is one of all registered: made when it is asked for."""
    if name != "Edit":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found = EDITS.union()
    return found
