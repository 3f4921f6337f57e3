"""NIfTI files as they should not be: each is refused with a reason of its own, or read as the standard says."""

from __future__ import annotations

import gzip
import os
import resource
import tempfile
import tracemalloc
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest

from overread.images.labels import read_labels, volumes_ml
from overread.images.volume import BadFile, Volume, read_header, read_volume

AFFINE = np.array([[-1.0, 0, 0, 4], [0, -1, 0, -7], [0, 0, 1, 9], [0, 0, 0, 1]])


def values(shape: tuple[int, ...] = (6, 5, 4)) -> np.ndarray:
    return np.random.default_rng(0).integers(1, 100, shape).astype(np.int16)


def saved(path: Path, data: np.ndarray, *edits: tuple[int, np.ndarray]) -> Path:
    """A file by nibabel, with numbers put into its header at given bytes."""
    image = nib.Nifti1Image(data, AFFINE)
    image.set_qform(AFFINE, code=1)
    image.set_sform(AFFINE, code=1)
    content = bytearray(image.to_bytes())
    for place, numbers in edits:
        content[place : place + numbers.nbytes] = numbers.tobytes()
    path.write_bytes(gzip.compress(bytes(content), mtime=0) if path.suffix == ".gz" else bytes(content))
    return path


def f4(*numbers: float) -> np.ndarray:
    return np.array(numbers, dtype="<f4")


def i2(*numbers: int) -> np.ndarray:
    return np.array(numbers, dtype="<i2")


# Bytes of the header (nifti1.h): dim, pixdim, vox_offset, scl_slope, qform_code and sform_code, qoffset_x, srow_x.
DIM, PIXDIM, OFFSET, SLOPE, CODES, QUATERN, SROW = 40, 76, 108, 112, 252, 256, 280


def reason(path: Path, **more: bool) -> str:
    with pytest.raises(BadFile) as caught:
        read_volume(path, **more)
    assert str(caught.value).startswith(f"{path.name}: ")
    assert "\n" not in str(caught.value)
    return str(caught.value).removeprefix(f"{path.name}: ")


# -- the grid ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("spacing", [(1, -1, 1), (1, 0, 1), (np.nan, 1, 1), (1, 1, np.inf)])
def test_a_spacing_that_is_no_length(tmp_path: Path, spacing: tuple[float, float, float]) -> None:
    why = reason(saved(tmp_path / "a.nii.gz", values(), (PIXDIM, f4(1, *spacing))))
    assert why == "unreadable header: a voxel spacing of " + "x".join(f"{size:g}" for size in spacing) + " mm"


def test_a_sheared_affine(tmp_path: Path) -> None:
    """(1, 0.1, 0) and (0, 1, 0): the cosine of their angle is 0.1 / sqrt(1.01), which is 5.7 degrees off."""
    rows = f4(1, 0, 0, 0, 0.1, 1, 0, 0, 0, 0, 1, 0)
    why = reason(saved(tmp_path / "a.nii.gz", values(), (SROW, rows)))
    assert why == "unreadable header: an affine whose axes are not perpendicular (5.7 degrees off)"
    slight = f4(1, 0, 0, 0, 0.001, 1, 0, 0, 0, 0, 1, 0)
    assert read_volume(saved(tmp_path / "b.nii.gz", values(), (SROW, slight), (CODES, i2(0, 1)))).shape == (6, 5, 4)


def test_no_word_about_where_the_patient_lies(tmp_path: Path) -> None:
    why = reason(saved(tmp_path / "a.nii.gz", values(), (CODES, i2(0, 0))))
    assert why == "unreadable header: neither sform nor qform says how the patient lies"


def test_two_words_about_where_the_patients_left_is(tmp_path: Path) -> None:
    mirrored = f4(1, 0, 0, 0, 0, -1, 0, 0, 0, 0, 1, 0)
    why = reason(saved(tmp_path / "a.nii.gz", values(), (SROW, mirrored)))
    assert why.startswith("unreadable header: sform and qform disagree on which side is left, by up to 12.88 mm; set ")
    alone = saved(tmp_path / "b.nii.gz", values(), (SROW, mirrored), (CODES, i2(0, 1)))
    assert np.array_equal(read_volume(alone).affine, np.diag([1.0, -1, 1, 1]))


def test_the_qform_alone_is_enough(tmp_path: Path) -> None:
    path = saved(tmp_path / "a.nii.gz", values(), (CODES, i2(1, 0)), (SROW, f4(*[0] * 12)))
    assert np.allclose(read_volume(path).affine, AFFINE, atol=1e-6)
    broken = saved(tmp_path / "b.nii.gz", values(), (CODES, i2(1, 0)), (QUATERN, f4(0.9, 0.9, 0.9)))
    assert reason(broken).startswith("unreadable header")


# -- the shape ---------------------------------------------------------------------------------------------------------


def test_of_a_series_of_volumes_the_first_is_taken_where_that_is_asked_for(tmp_path: Path) -> None:
    data = values((6, 5, 4, 3))
    path = saved(tmp_path / "a.nii.gz", data)
    assert reason(path) == "expected a 3-D volume, found 4-D (6x5x4x3)"
    first = read_volume(path, first=True)
    assert (first.shape, first.of) == ((6, 5, 4), 3)
    assert np.array_equal(first.stored, data[..., 0])
    assert read_header(path).shape == (6, 5, 4, 3)
    whole = read_volume(saved(tmp_path / "b.nii.gz", values()), first=True)
    assert (whole.shape, whole.of) == ((6, 5, 4), 1)
    assert reason(saved(tmp_path / "c.nii.gz", values((6, 5, 4, 3, 2))), first=True).startswith(
        "expected a 3-D volume, found 5-D"
    )


def test_the_other_volumes_are_not_read(tmp_path: Path) -> None:
    """The stream ends after the first volume, and nobody notices; within the first it is noticed."""
    data = np.random.default_rng(1).integers(0, 30_000, (40, 40, 40, 5)).astype(np.int16)
    path = saved(tmp_path / "a.nii.gz", data)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    assert np.array_equal(read_volume(path, first=True).stored, data[..., 0])
    path.write_bytes(content[: len(content) // 10])
    assert reason(path, first=True).startswith("truncated")


def test_further_axes_of_length_one_are_no_axes(tmp_path: Path) -> None:
    path = saved(tmp_path / "a.nii.gz", values((6, 5, 4, 1)))
    assert read_volume(path).shape == (6, 5, 4)
    assert read_header(path).shape == (6, 5, 4)


def test_huge_dimensions_ask_for_no_memory(tmp_path: Path) -> None:
    """512 x 512 x 500 voxels would be allowed, but no file of 300 bytes unpacks to them."""
    for name in ("a.nii.gz", "b.nii"):
        path = saved(tmp_path / name, values(), (DIM, i2(3, 512, 512, 500)))
        tracemalloc.start()
        assert reason(path).startswith("truncated: at most ")
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
        tracemalloc.stop()
    assert reason(saved(tmp_path / "c.nii.gz", values(), (DIM, i2(3, 4000, 4000, 4000)))).startswith("wrong shape")
    assert reason(saved(tmp_path / "d.nii.gz", values(), (OFFSET, f4(1e9)))).startswith("unreadable header: voxels")


def test_a_bomb_is_not_unpacked(tmp_path: Path) -> None:
    """2 GB of zeros in 2 MB: of a volume of 240 bytes no more than that is taken from it."""
    path = tmp_path / "a.nii.gz"
    pieces = gzip.compress(bytes(2**24), 1)
    path.write_bytes(saved(tmp_path / "b.nii.gz", values()).read_bytes() + pieces * 128)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert np.array_equal(read_volume(path).stored, values())
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000


# -- the values --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("slope", [0.0, np.nan])
def test_a_slope_of_0_means_as_stored(tmp_path: Path, slope: float) -> None:
    """NIfTI: where scl_slope is 0 the values are not scaled, and scl_inter is not looked at."""
    path = saved(tmp_path / "a.nii.gz", values(), (SLOPE, f4(slope, 55)))
    assert np.array_equal(read_volume(path).slice(2, 1), values()[:, :, 1])
    assert np.array_equal(nib.load(path).get_fdata()[:, :, 1], values()[:, :, 1])


def test_values_that_scaling_makes_infinite(tmp_path: Path) -> None:
    data = np.linspace(-1e300, 1e300, 120).reshape(6, 5, 4)
    assert reason(saved(tmp_path / "a.nii.gz", data, (SLOPE, f4(1e30, 0)))).startswith("values beyond what a number")


@pytest.mark.parametrize("dtype", [np.int16, np.float32, np.uint8])
def test_one_voxel_that_differs_is_enough(tmp_path: Path, dtype: type) -> None:
    data = np.full((50, 50, 50), 3, dtype=dtype)
    assert reason(saved(tmp_path / "a.nii.gz", data)) == "all voxels are equal to 3"
    data[17, 23, 31] = 4
    assert read_volume(saved(tmp_path / "b.nii.gz", data)).stored[17, 23, 31] == 4


# -- the file ----------------------------------------------------------------------------------------------------------


def test_a_file_that_may_not_be_read() -> None:
    """Root may read everything, so the test becomes somebody else for a moment."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        path = saved(folder / "a.nii.gz", values())
        path.chmod(0)
        user = os.geteuid()
        if user == 0:
            read_volume(path)
            os.seteuid(65534)
        try:
            assert reason(path) == "not readable (Permission denied)"
        finally:
            os.seteuid(user)


def test_links(tmp_path: Path) -> None:
    """What lies outside is read here as anything else: the readers of studies say where a link may lead."""
    saved(tmp_path / "real.nii.gz", values())
    (tmp_path / "inside").mkdir()
    for name, target in (("good", "../real.nii.gz"), ("dangling", "../none.nii.gz"), ("round", "round.nii.gz")):
        (tmp_path / "inside" / f"{name}.nii.gz").symlink_to(target)
    assert np.array_equal(read_volume(tmp_path / "inside" / "good.nii.gz").stored, values())
    assert reason(tmp_path / "inside" / "dangling.nii.gz") == "missing"
    assert reason(tmp_path / "inside" / "round.nii.gz") == "not readable (Too many levels of symbolic links)"
    (tmp_path / "folder.nii.gz").mkdir()
    assert reason(tmp_path / "folder.nii.gz") == "not readable (is a folder, not a file)"


# -- masks -------------------------------------------------------------------------------------------------------------


def mask() -> np.ndarray:
    labels = np.zeros((40, 44, 36), dtype=np.int16)
    labels[8:30, 10:31, 6:25] = 2
    labels[12:24, 14:26, 10:20] = 4
    labels[15:20, 17:22, 12:17] = 1
    return labels


def test_a_mask_that_went_through_other_hands_keeps_its_volumes(tmp_path: Path) -> None:
    """In ml by hand: 5^3 = 125 voxels of core, 12 x 12 x 10 - 125 enhancing, the rest of 22 x 21 x 19 is oedema."""
    by_hand = {"1": 0.125, "2": 22 * 21 * 19 / 1000 - 1.44, "4": 1.44 - 0.125}

    def volumes(volume: Volume) -> dict[str, float]:
        return volumes_ml(read_labels(volume)[0], volume.affine)

    provided = read_volume(saved(tmp_path / "provided.nii.gz", mask()))
    thirds = read_volume(saved(tmp_path / "thirds.nii.gz", 3 * mask(), (SLOPE, f4(1 / 3, 0))))
    nearly = read_volume(saved(tmp_path / "nearly.nii.gz", mask() * 0.9999999998))
    turned = nib.as_closest_canonical(nib.load(tmp_path / "provided.nii.gz"))
    nib.save(turned, tmp_path / "turned.nii.gz")
    written = {
        "provided": provided,
        "thirds": thirds,
        "nearly": nearly,
        "turned": read_volume(tmp_path / "turned.nii.gz"),
        "itk": _through_itk(tmp_path),
    }
    for name, volume in written.items():
        assert volumes(volume) == pytest.approx(by_hand, rel=1e-3), name


def _through_itk(folder: Path) -> Volume:
    """Resampled to an oblique grid of 0.25 mm, nearest neighbour, and written by ITK: near, not equal, volumes."""
    import SimpleITK as sitk  # noqa: N813

    image = sitk.ReadImage(str(folder / "provided.nii.gz"))
    turn = sitk.Euler3DTransform((0, 0, 0), 0.1, -0.2, 0.3)
    axes = np.array(turn.GetMatrix()).reshape(3, 3)
    size, spacing = (200, 200, 200), 0.25
    middle = image.TransformContinuousIndexToPhysicalPoint([18.5, 20, 15])
    grid = sitk.Image(*size, sitk.sitkUInt8)
    grid.SetSpacing([spacing] * 3)
    grid.SetDirection(axes.ravel().tolist())
    grid.SetOrigin((np.array(middle) - axes @ (spacing * (np.array(size) - 1) / 2)).tolist())
    there = sitk.Resample(image, grid, sitk.Transform(), sitk.sitkNearestNeighbor, 0, sitk.sitkUInt8)
    sitk.WriteImage(there, str(folder / "itk.nii.gz"))
    return read_volume(folder / "itk.nii.gz")
