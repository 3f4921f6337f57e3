"""What a study must be brought to before a network sees it: one grid, nothing outside of the brain, scaled values."""

from __future__ import annotations

from pathlib import Path

import nibabel as nib
import numpy as np
import pytest
import SimpleITK as sitk  # noqa: N813
from scipy.ndimage import binary_erosion

from data.small_brain import LPS, SHAPE, brain, save, series, study, without
from overread.core.records import Study
from overread.images.files import StudyFiles
from overread.images.segmentation.grid import Grid
from overread.images.segmentation.inputs import Inputs, read_inputs
from overread.images.volume import BadFile, read_volume

ORDER = ("FLAIR", "T1c", "T1", "T2")


def inputs_of(one: Study, **more: object) -> Inputs:
    return read_inputs(StudyFiles(one), ORDER, more.get("make_brain"))  # type: ignore[arg-type]


def smooth(shape: tuple[int, ...], affine: np.ndarray) -> np.ndarray:
    """Waves in space, brighter than 0 everywhere in the brain of the small study and 0 far outside."""
    index = np.stack([*np.indices(shape), np.ones(shape)]).reshape(4, -1)
    x, y, z = (affine @ index)[:3]
    values = 500 + 120 * np.sin(x / 7) + 90 * np.cos(y / 6 + z / 8)
    centre = (LPS @ [*((np.array(SHAPE) - 1) / 2), 1])[:3]
    away = np.sqrt(sum(((a - c) / n) ** 2 for a, c, n in zip((x, y, z), centre, SHAPE, strict=True)))
    return np.asarray(np.where(away < 0.4, values, 0), dtype=np.float32).reshape(shape)


def tilted(degrees: float) -> np.ndarray:
    """Another grid over the same brain: turned about the body's axis, 1.5 x 1.5 x 2 mm, right to left."""
    turn = np.deg2rad(degrees)
    matrix = np.array([[np.cos(turn), -np.sin(turn), 0], [np.sin(turn), np.cos(turn), 0], [0, 0, 1]])
    matrix = matrix @ np.diag([1.5, -1.5, 2.0])
    affine = np.eye(4)
    affine[:3, :3] = matrix
    affine[:3, 3] = (LPS @ [*((np.array(SHAPE) - 1) / 2), 1])[:3] - matrix @ ((np.array((44, 42, 24)) - 1) / 2)
    return affine


@pytest.mark.parametrize("degrees", [0.0, 12.0])
def test_a_series_on_another_grid_is_resampled_where_it_lies_in_space(tmp_path: Path, degrees: float) -> None:
    """By SimpleITK, which reads the two files and resamples by itself, the same values come out."""
    one = study(tmp_path, volumes={"FLAIR": smooth(SHAPE, LPS)})
    affine = tilted(degrees)
    save(Path(one.images["T1c"]), smooth((44, 42, 24), affine), affine)
    found = inputs_of(one)
    assert found.resampled == ("T1c",)
    moving, fixed = (sitk.ReadImage(one.images[name], sitk.sitkFloat32) for name in ("T1c", "FLAIR"))
    theirs = sitk.GetArrayFromImage(sitk.Resample(moving, fixed, sitk.Transform(), sitk.sitkLinear, 0.0)).T
    inside = theirs != 0
    theirs[inside] = (theirs[inside] - theirs[inside].mean()) / theirs[inside].std()
    ours = found.channels[1]
    both = inside & (ours != 0)
    assert both.sum() > 0.999 * max(inside.sum(), (ours != 0).sum())
    assert np.abs(ours - theirs)[both].max() < 1e-3
    inner = binary_erosion(ours != 0, iterations=3)
    assert np.corrcoef(found.channels[0][inner], ours[inner])[0, 1] > 0.98


def test_an_index_would_have_been_wrong(tmp_path: Path) -> None:
    """T1c shifted by 2 voxels and written with the affine that says so is, in space, the same T1c."""
    one = study(tmp_path)
    wanted = inputs_of(one).channels
    shifted = LPS.copy()
    shifted[:3, 3] = (LPS @ [2, 0, 0, 1])[:3]
    save(Path(one.images["T1c"]), np.roll(series()["T1c"], -2, axis=0), shifted)
    found = inputs_of(one)
    assert found.resampled == ("T1c",)
    assert np.abs(found.channels - wanted).max() < 1e-5


def test_a_brain_mask_on_another_grid_is_looked_up_in_space(tmp_path: Path) -> None:
    one = study(tmp_path)
    shifted = LPS.copy()
    shifted[:3, 3] = (LPS @ [0, 2, 0, 1])[:3]
    save(Path(one.images["brain_segmentation"]), np.roll(brain(), -2, axis=1).astype(np.int16), shifted)
    found = inputs_of(one)
    assert found.brain is not None and np.array_equal(found.brain, brain())


def test_rounding_errors_of_the_scaling_are_no_signal(tmp_path: Path) -> None:
    """A stored -1000 that stands for 0 with a slope of 0.1 and an intercept of 100 leaves 1e-6 or so outside."""
    one = study(tmp_path)
    wanted = inputs_of(one).channels[3]
    path = Path(one.images["T2"]).with_name("T2.nii")
    save(path, (series()["T2"].astype(np.int32) * 10 - 1000).astype(np.int16))
    content = bytearray(path.read_bytes())
    content[112:120] = np.array([0.1, 100.0], dtype="<f4").tobytes()
    path.write_bytes(bytes(content))
    changed = one.model_copy(update={"images": {**one.images, "T2": str(path)}})
    assert nib.load(changed.images["T2"]).get_fdata()[0, 0, 0] != 0
    found = inputs_of(changed).channels[3]
    assert found[0, 0, 0] == 0
    assert np.abs(found - wanted).max() < 1e-4


def test_a_series_with_a_background_is_cut_to_the_brain_and_that_is_said(tmp_path: Path) -> None:
    one = study(tmp_path)
    wanted = inputs_of(one)
    assert wanted.background_removed == ()
    save(Path(one.images["T1"]), np.where(brain(), series()["T1"], 37).astype(np.int16))
    found = inputs_of(one)
    assert found.background_removed == ("T1",)
    assert np.array_equal(found.channels, wanted.channels)


def test_a_brain_mask_that_is_a_little_smaller_cuts_nothing_off(tmp_path: Path) -> None:
    one = study(tmp_path)
    wanted = inputs_of(one).channels
    smaller = brain().copy()
    smaller[:8] = False
    save(Path(one.images["brain_segmentation"]), smaller.astype(np.int16))
    found = inputs_of(one)
    assert found.background_removed == ()
    assert np.array_equal(found.channels, wanted)


def test_a_brain_mask_is_made_from_t1_where_there_is_none(tmp_path: Path) -> None:
    one = study(tmp_path)
    seen = []

    def make(t1: np.ndarray, grid: Grid) -> np.ndarray:
        seen.append((t1, grid))
        return brain()

    assert not inputs_of(one, make_brain=make).brain_made
    assert seen == []
    found = inputs_of(without(one, "brain_segmentation"), make_brain=make)
    assert found.brain_made and np.array_equal(found.brain, brain())
    [(t1, grid)] = seen
    assert np.array_equal(t1, nib.load(one.images["T1"]).get_fdata())
    assert np.array_equal(grid.affine, LPS)
    assert inputs_of(without(one, "brain_segmentation")).brain is None


def test_a_brain_mask_that_lies_elsewhere_is_a_reason(tmp_path: Path) -> None:
    one = study(tmp_path)
    away = LPS.copy()
    away[2, 3] += 100
    save(Path(one.images["brain_segmentation"]), brain().astype(np.int16), away)
    with pytest.raises(BadFile, match=r"A_brain_segmentation\.nii\.gz: holds no brain where FLAIR lies"):
        inputs_of(one)


def test_no_file_is_read_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from overread.images import files

    reads: list[str] = []

    def counted(path: Path, **more: bool) -> object:
        reads.append(path.name)
        return read_volume(path, **more)

    monkeypatch.setattr(files, "read_volume", counted)
    inputs_of(study(tmp_path))
    assert sorted(reads) == sorted(f"A_{name}.nii.gz" for name in (*ORDER, "brain_segmentation"))
