"""The view `volume`: a whole series, as one file or as a stack of axial slices.

A stack follows the convention of MedGemma 1.5: up to 85 slices at even distances, each followed by the text `SLICE n`.
All slices of a stack share one window, so that the same grey means the same value in each.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from overread.config.views import Plane
from overread.core.records import Study
from overread.images.files import StudyFiles
from overread.images.render import grey_picture, window
from overread.images.slices import Level, cut, layout
from overread.images.volume import BadFile, BoolArray, FloatArray, Volume
from overread.images.volume_file import VolumePicture, canonical, volume_hash
from overread.views.slice.drawing import POSITIVE
from overread.views.volume.section import VolumeView

if TYPE_CHECKING:
    from PIL import Image

__all__ = ["evenly", "render_volume", "volume_hash"]

PLANE: Plane = "axial"


def render_volume(
    study: Study, view: VolumeView, files: StudyFiles
) -> Iterator[tuple[Image.Image | VolumePicture, dict[str, object]]]:
    """The whole series as one volume, or as `view.slices` pictures from the feet to the head.

    raises  BadFile if a file that is needed can't be used, or the series shows nothing
    """
    volume = files.volume(view.series)
    several = f", volume 1 of {volume.of}" if volume.of > 1 else ""
    if view.slices is None:
        axes = layout(volume.affine, PLANE)
        yield (
            canonical(files.edited_volume(view.series, axes, _range(volume, files.brain))),
            {"name": f"{view.series}, volume", "series": view.series, "scaling": f"as scanned{several}"},
        )
        return
    levels, chosen_by = _levels(volume, files.brain, view)
    values = [cut(volume, level) for level in levels]
    (low, high), how = _window(volume, files.brain, view, list(zip(levels, values, strict=True)))
    for number, level in enumerate(levels, start=1):
        each = files.edited(view.series, level, (low, high))
        yield (
            grey_picture(each, np.isfinite(each), level.spacing_mm, seen=(low, high)),
            {
                "name": f"SLICE {number}",
                "series": view.series,
                "plane": PLANE,
                "slice_index": level.index,
                "position_mm": level.position_mm,
                "chosen_by": chosen_by,
                "scaling": f"{low:g} to {high:g}: {how}{several}",
                "orientation": level.orientation,
                "caption": view.caption,
            },
        )


def evenly(many: int, most: int) -> list[int]:
    """Places of at most `most` of `many` slices at even distances, the last one among them; all if they are no more.

    Place k of n is round(k / n * (many - 1)) for k = 1 .. n, as in the example notebook of MedGemma 1.5.
    """
    if many <= most:
        return list(range(many))
    return [round(place / most * (many - 1)) for place in range(1, most + 1)]


def _levels(volume: Volume, brain: Volume | None, view: VolumeView) -> tuple[list[Level], str]:
    """The slices that are shown, from the feet to the head, and how they were chosen."""
    axes = layout(volume.affine, PLANE)
    extent = "whole volume" if view.extent == "volume" else "brain"
    chosen_by = f"evenly spaced through the {extent}"
    every = [Level(axes, i, volume.affine, volume.shape, chosen_by) for i in range(volume.shape[axes.normal])]
    every.sort(key=lambda level: level.position_mm)
    if view.extent == "brain":
        held = [place for place, level in enumerate(every) if _inside(cut(volume, level), level, brain).any()]
        if not held:
            raise BadFile(f"{volume.path.name}: no brain in any axial slice")
        every = every[held[0] : held[-1] + 1]
    assert view.slices is not None
    return [every[place] for place in evenly(len(every), view.slices)], chosen_by


def _window(
    volume: Volume, brain: Volume | None, view: VolumeView, slices: list[tuple[Level, FloatArray]]
) -> tuple[tuple[float, float], str]:
    """What is black and white in all slices, and how that was set."""
    if view.window is not None:
        return view.window, "as configured"
    values = np.concatenate([each[_inside(each, level, brain)] for level, each in slices])
    try:
        low, high = window(values, positive=view.series in POSITIVE)
    except ValueError as error:
        raise BadFile(f"{volume.path.name}: {str(error).replace('the slice', f'{len(slices)} axial slices')}") from None
    return (low, high), f"{'0' if low == 0 else '0.5th'} and 99.5th percentile of the brain in all slices"


def _range(volume: Volume, brain: Volume | None) -> tuple[float, float]:
    """Black and white for edits of a volume that is given as it was scanned: the brain's percentiles."""
    where = volume.foreground if brain is None or brain.shape != volume.shape else brain.labelled
    try:
        return window(volume.part((slice(None),) * 3)[where])
    except ValueError as error:
        raise BadFile(f"{volume.path.name}: {str(error).replace('the slice', 'the volume')}") from None


def _inside(values: FloatArray, level: Level, brain: Volume | None) -> BoolArray:
    """The brain in a slice: by its mask, or without one whatever is not 0."""
    if brain is None:
        return np.asarray(np.abs(values) > 0)
    try:
        return np.asarray(np.nan_to_num(cut(brain, level, nearest=True)) >= 0.5)
    except BadFile:  # the mask does not reach this slice
        return np.zeros(values.shape, dtype=np.bool_)
