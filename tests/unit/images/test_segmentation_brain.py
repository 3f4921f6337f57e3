"""deepbet on a real head whose brain is known: the SRI24 atlas with and without its skull."""

from __future__ import annotations

from pathlib import Path

import nibabel as nib
import numpy as np
import pytest

from data.small_brain import LPS, SHAPE, save, study
from overread.config import Provided
from overread.core.records import Study
from overread.images.labels import dice
from overread.images.segmentation.brain import extract_brain
from overread.images.segmentation.grid import Grid
from overread.images.segmentation.study import segment
from overread.images.volume import BadFile
from overread_phantom.anatomy import atlas_path


def head() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """T1 with skull, the brain in it, and the affine of both."""
    names = atlas_path().name, atlas_path().name.replace("_skullstripped", "")
    stripped, whole = (nib.as_closest_canonical(nib.load(atlas_path().with_name(name))) for name in names)
    assert np.array_equal(stripped.affine, whole.affine)
    return np.squeeze(whole.get_fdata()), np.squeeze(stripped.get_fdata()) > 0, whole.affine


def test_the_brain_of_a_study_that_brings_no_mask_is_found_in_its_head(tmp_path: Path) -> None:
    t1, truth, affine = head()
    paths = {
        "T1": save(tmp_path / "T1.nii.gz", t1.astype(np.int16), affine),
        "tumor_segmentation": save(tmp_path / "tumour.nii.gz", np.zeros(t1.shape, np.int16), affine),
    }
    one = Study.model_validate({**study(tmp_path / "other").model_dump(), "images": paths})
    result = segment(one, Provided(brain="deepbet"), tmp_path / "mask.nii.gz")
    mask = nib.load(tmp_path / "mask_brain.nii.gz")
    found = np.asarray(mask.dataobj) > 0
    assert np.allclose(mask.affine, affine)
    assert dice(found, truth) >= 0.95
    assert (result.brain, result.brain_ml) == ("deepbet", pytest.approx(found.sum() / 1000, abs=0.1))
    # Upside down it would overlap as well: the mask's centre of mass must be the brain's.
    middles = [np.argwhere(one).mean(axis=0) for one in (found, truth)]
    assert np.abs(middles[0] - middles[1]).max() < 2


def test_a_study_that_brings_a_brain_mask_keeps_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("overread.images.segmentation.brain.extract_brain", None)
    result = segment(study(tmp_path), Provided(brain="deepbet"), tmp_path / "mask.nii.gz")
    assert (result.problem, result.brain) == (None, "provided")
    assert not (tmp_path / "mask_brain.nii.gz").exists()


def test_where_there_is_no_brain_that_is_the_reason() -> None:
    with pytest.raises(BadFile, match="T1: deepbet found no brain in it"):
        extract_brain(np.zeros(SHAPE, dtype=np.float32), Grid(SHAPE, LPS))
