"""The view `slice`: one slice of one or more series at the same level."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from overread.config import SliceView
from overread.images.files import BRAIN, TUMOUR, StudyFiles
from overread.images.render import grey_picture
from overread.images.slices import Level, cut, largest_tumour, middle
from overread.images.volume import BadFile, BoolArray, FloatArray
from overread.records import Study

if TYPE_CHECKING:
    from PIL import Image

USUAL_ORDER = (
    "T1", "T1_bias", "T1c", "T1c_bias", "T2", "T2_bias", "FLAIR", "FLAIR_bias", "DWI", "DWI_bias", "SWI", "SWI_bias",
    "ADC", "ASL", "DTI_eddy_FA", "DTI_eddy_MD", "DTI_eddy_L1", "DTI_eddy_L2", "DTI_eddy_L3",
)  # fmt: skip
"""Series of UCSF-PDGM that are 3-D and no masks, in the order in which `all` shows them; others follow by name."""

NO_PICTURE = frozenset({BRAIN, TUMOUR, "brain_parenchyma_segmentation", "DTI_eddy_noreg", "ASL_M0"})


def render_slices(study: Study, view: SliceView, files: StudyFiles) -> Iterator[tuple[Image.Image, dict[str, object]]]:
    """A picture a series with what it shows. BadFile if a file that is needed can't be used."""
    names = series_of(study, view)
    brain = files.volume(BRAIN) if files.has(BRAIN) else None
    if view.slice == "largest-tumour":
        level = largest_tumour(files.volume(TUMOUR), brain, view.plane)
    else:
        level = middle(brain or files.volume(names[0]), view.plane, is_mask=brain is not None)
    for name in names:
        volume = files.volume(name)
        values = cut(volume, level)
        inside = _inside(values, level, cut(brain, level) if brain is not None else None)
        try:
            picture = grey_picture(values, inside, level.spacing_mm, view.size)
        except ValueError as error:
            where = f"{view.plane} slice {level.index} ({level.position_mm:g} mm)"
            raise BadFile(f"{volume.path.name}: {error}: {where}") from None
        yield (
            picture,
            {
                "name": f"{name}, {view.plane}",
                "series": name,
                "plane": view.plane,
                "slice_index": level.index,
                "position_mm": level.position_mm,
                "chosen_by": level.chosen_by,
            },
        )


def series_of(study: Study, view: SliceView) -> tuple[str, ...]:
    """The names that a view's `series` stands for."""
    if view.series == "all":
        there = set(study.images) - NO_PICTURE
        usual = [name for name in USUAL_ORDER if name in there]
        return (*usual, *sorted(there - set(usual)))
    return (view.series,) if isinstance(view.series, str) else tuple(view.series)


def _inside(values: FloatArray, level: Level, brain: FloatArray | None) -> BoolArray:
    """The brain in the slice: by its mask, or without one whatever is not 0."""
    reached = np.isfinite(values)
    if brain is not None:
        return np.asarray(reached & (np.nan_to_num(brain) >= 0.5))
    extent = np.abs(values[reached]).max(initial=0.0)
    return np.asarray(reached & (np.abs(np.nan_to_num(values)) > 1e-6 * extent))
