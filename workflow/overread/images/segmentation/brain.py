"""A brain mask where a study brings none: deepbet (Fisch et al. 2024), whose weights come with the package."""

from __future__ import annotations

import warnings
from functools import lru_cache
from typing import Any

import numpy as np

from overread.images.segmentation.grid import Grid, SingleArray
from overread.images.volume import BadFile, BoolArray


def extract_brain(t1: SingleArray, grid: Grid, *, gpu: bool = False) -> BoolArray:
    """The brain in a T1-weighted head or brain, on the grid of the image.

    t1      (x, y, z), any unit
    raises  BadFile if no brain is found
    """
    import nibabel as nib

    image = nib.Nifti1Image(t1, grid.affine)  # type: ignore[no-untyped-call]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about TorchScript, in which the weights are packed
            _, mask, _ = _extractor(gpu).run(image)
    except (AssertionError, ValueError, IndexError):
        # What deepbet raises where its first network marks nothing, or nearly nothing.
        raise BadFile("T1: deepbet found no brain in it") from None
    brain = np.asarray(mask.dataobj) > 0
    if not brain.any():
        raise BadFile("T1: deepbet found no brain in it")
    return np.asarray(brain)


@lru_cache(maxsize=2)
def _extractor(gpu: bool) -> Any:
    from deepbet import BrainExtraction

    return BrainExtraction(no_gpu=not gpu)
