"""The semi-synthetic MRI source: gliomas planted in a real brain, imaged in seven series, reported and asked about.

With `series: all` a study has all 23 files of the release. `make` writes a data set in the layout of UCSF-PDGM.
`draw_study` with `flair_picture` gives one study's facts, texts and picture without its volumes, for training.
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from overread.core.records import Question
from overread.images.render import grey_picture
from overread.images.slices import layout
from overread_phantom.anatomy import AFFINE, GRID, load_anatomy, patient_box
from overread_phantom.contrast import brain_slice, series_slices
from overread_phantom.folder import begin, finish, write_study
from overread_phantom.quantise import Scale
from overread_phantom.tumour import PlantedTumour, draw_study

if TYPE_CHECKING:
    from PIL import Image

    from overread_phantom.source import Phantom

__all__ = ["draw_study", "flair_picture", "make"]


def make(section: Phantom, folder: Path, workers: int = 1) -> None:
    """The data set of `section` written to `folder` (see `folder.py`). Study number n is the same in every size.

    raises  BadInput if the anatomy's package is missing, or `folder` holds something else
    """
    load_anatomy()
    begin(folder)
    job = partial(_make_one, seed=section.seed, folder=folder, everything=section.series == "all")
    indices = range(section.studies or 0)
    if workers > 1:
        with ProcessPoolExecutor(max_workers=min(workers, len(indices))) as pool:
            made = list(pool.map(job, indices))
    else:
        made = [job(index) for index in indices]
    finish(folder, [planted for planted, _ in made], [question for _, asked in made for question in asked])


def _make_one(index: int, seed: int, folder: Path, everything: bool) -> tuple[PlantedTumour, list[Question]]:
    planted = draw_study(seed, index)
    return planted, write_study(planted, folder, everything=everything)


def flair_picture(planted: PlantedTumour, size: int | None = None) -> Image.Image:
    """The axial FLAIR slice with the most tumour, as the images stage renders it from the written study, to the bit.

    size  longer edge in pixels; else 240
    """
    k = planted.slice_index
    signal = series_slices(planted, k, ("FLAIR",))["FLAIR"]
    scale = Scale.draw(planted.seed, planted.index, "FLAIR")
    low, high = patient_box(load_anatomy(), planted.stretch)
    place = (slice(low[0], high[0]), slice(low[1], high[1]))
    stored = np.full(GRID[:2], scale.zero, dtype=np.int16)
    stored[place] = scale.stored(signal)
    brain = np.zeros(GRID[:2], dtype=np.bool_)
    brain[place] = brain_slice(planted, k)
    axes = layout(AFFINE, "axial")
    values = stored.astype(np.float64) * scale.slope + scale.intercept
    return grey_picture(axes.place(values), axes.place(brain), size=size)
