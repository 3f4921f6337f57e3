"""What Med3DVLM is given: the same as from its authors' own steps, with the patient the right way round."""

from __future__ import annotations

from pathlib import Path

import nibabel as nib
import numpy as np
import pytest

from data.small_mri import mri_study
from overread.core.errors import BadInput
from overread.core.records import Study
from overread.images import render_study
from overread.images.model_arrays import MED3DVLM_SHAPE, med3dvlm_array
from overread.images.volume_file import VolumePicture, write_volume
from overread.views.volume.section import VolumeView


def volume_of(study: Study, folder: Path, series: str = "FLAIR") -> Path:
    [picture] = render_study(
        study, {"v": VolumeView(kind="volume", series=series)}, folder / "d" / "images" / study.study
    )
    return folder / "d" / picture.path


def test_it_is_what_monai_makes_of_the_release_as_simpleitk_reads_it(tmp_path: Path) -> None:
    """The steps of the model's training data: min-max, CropForeground, Resize; the file has the axes of UCSF-PDGM."""
    import SimpleITK
    from monai.transforms import Compose, CropForeground, Resize

    study = mri_study(tmp_path / "data", series=("FLAIR",), axes="LPS")
    values = SimpleITK.GetArrayFromImage(SimpleITK.ReadImage(study.images["FLAIR"])).astype(np.float32)[np.newaxis]
    values = (values - values.min()) / (values.max() - values.min())
    expected = Compose([CropForeground(), Resize(spatial_size=MED3DVLM_SHAPE, mode="trilinear")])(values).numpy()
    array = med3dvlm_array(volume_of(study, tmp_path))
    assert array.shape == expected.shape == (1, 128, 256, 256)
    assert np.abs(array - expected).max() < 1e-5


SPOTS = {60: (0.8, 0.5, 0.5), 80: (0.5, 0.8, 0.5), 100: (0.5, 0.5, 0.8)}
"""Values of cubes of 5 voxels to the right, in front and on top of the middle: where, as shares of the grid."""


@pytest.mark.parametrize("axes", ["RAS", "LPS", "SAR", "PIL"])
def test_slices_rise_to_the_head_rows_go_to_the_back_and_columns_to_the_left(tmp_path: Path, axes: str) -> None:
    """Of a scan along any axes each cube lies on its side of the array, and not on the other."""
    shape = (41, 51, 31)
    values = np.full(shape, 10, dtype=np.int16)
    for value, place in SPOTS.items():
        values[
            tuple(slice(round(share * n) - 2, round(share * n) + 3) for share, n in zip(place, shape, strict=True))
        ] = value
    turn = nib.orientations.axcodes2ornt(tuple(axes))
    turn = nib.orientations.ornt_transform(nib.orientations.axcodes2ornt("RAS"), turn)
    image = nib.Nifti1Image(values, np.eye(4)).as_reoriented(turn)
    assert nib.aff2axcodes(image.affine) == tuple(axes)
    study = mri_study(tmp_path / "data", series=("FLAIR",))
    nib.save(image, study.images["FLAIR"])
    [array] = med3dvlm_array(volume_of(study, tmp_path))

    def at(right: float, front: float, top: float) -> float:
        index = (top, 1 - front, 1 - right)
        return float(array[tuple(int(share * n) for share, n in zip(index, array.shape, strict=True))])

    for value, place in SPOTS.items():
        assert at(*place) == pytest.approx((value - 10) / 90, abs=0.01)
        assert at(*(1 - share for share in place)) == 0


def test_values_lie_between_0_and_1_and_the_border_is_cut_off(tmp_path: Path) -> None:
    stored = np.zeros((20, 24, 18), dtype="<i2")
    stored[5:15, 6:18, 4:14] = np.arange(1200).reshape(10, 12, 10) + 300
    write_volume(VolumePicture(stored, np.eye(4), 0.5, 0.0), tmp_path / "a.nii.gz")
    array = med3dvlm_array(tmp_path / "a.nii.gz")
    assert array.dtype == np.float32 and array.shape == (1, 128, 256, 256) and array.flags.c_contiguous
    assert array.min() == 0 and array.max() == 1
    assert array[0, 0, -1, -1] == 0, "the least value stands in the corner left, back, below"
    assert array[0, -1, 0, 0] == 1


def test_background_that_only_scaling_keeps_from_0_is_cut_off_too(tmp_path: Path) -> None:
    """A stored 307 stands for 0: 307 * 0.1 - 30.7 is 0 but for the last digit."""
    stored = np.full((20, 24, 18), 307, dtype="<i2")
    stored[5:15, 6:18, 4:14] = 900
    stored[5, 6, 4] = 500
    slope, intercept = float(np.float32(0.1)), float(np.float32(-30.7))
    write_volume(VolumePicture(stored, np.eye(4), slope, intercept), tmp_path / "a.nii.gz")
    array = med3dvlm_array(tmp_path / "a.nii.gz")
    assert array.max() == 1 and (array == 1).mean() > 0.9


def test_a_black_volume_is_all_0(tmp_path: Path) -> None:
    write_volume(VolumePicture(np.zeros((8, 9, 10), dtype="|u1"), np.eye(4)), tmp_path / "a.nii.gz")
    array = med3dvlm_array(tmp_path / "a.nii.gz")
    assert array.shape == (1, 128, 256, 256) and not array.any()


def test_a_volume_with_another_hash_is_refused(tmp_path: Path) -> None:
    volume = VolumePicture(np.arange(720, dtype="<i2").reshape(8, 9, 10), np.eye(4))
    write_volume(volume, tmp_path / "a.nii.gz")
    assert med3dvlm_array(tmp_path / "a.nii.gz", volume.pixels).max() == 1
    with pytest.raises(BadInput, match="its content has changed"):
        med3dvlm_array(tmp_path / "a.nii.gz", "0" * 64)
