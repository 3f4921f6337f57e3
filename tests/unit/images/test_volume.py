"""Reading NIfTI: every way in which a file can be bad has its own reason."""

from __future__ import annotations

import gzip
import tracemalloc
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from overread.images.volume import BadFile, read_header, read_volume

AFFINE = np.diag([-1.0, -1.0, 1.0, 1.0])


def values(shape: tuple[int, ...] = (6, 5, 4)) -> np.ndarray:
    return np.random.default_rng(0).integers(1, 100, shape).astype(np.int16)


def saved(path: Path, data: np.ndarray, slope: float = 1.0, intercept: float = 0.0) -> Path:
    """Stored values `data`, written by nibabel."""
    image = nib.Nifti1Image(data, AFFINE)
    image.header.set_slope_inter(slope, intercept)
    path.parent.mkdir(parents=True, exist_ok=True)
    nib.save(image, path)
    if slope != 1.0 or intercept != 0.0:  # nibabel rescales on saving: put the wanted numbers into the header
        content = bytearray(gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes())
        content[112:120] = np.array([slope, intercept], dtype="<f4").tobytes()
        path.write_bytes(gzip.compress(bytes(content), mtime=0) if path.suffix == ".gz" else bytes(content))
    return path


@pytest.mark.parametrize("name", ["a.nii", "a.nii.gz"])
@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float32, np.float64, ">i2"])
def test_values_and_affine_are_those_that_nibabel_reads(tmp_path: Path, name: str, dtype: str) -> None:
    path = saved(tmp_path / name, values().astype(dtype))
    ours, theirs = read_volume(path), nib.load(path)
    assert np.array_equal(ours.part((slice(None),) * 3), theirs.get_fdata())
    assert np.array_equal(ours.affine, theirs.affine)


def test_slope_and_intercept_are_applied(tmp_path: Path) -> None:
    path = saved(tmp_path / "a.nii.gz", values(), slope=0.25, intercept=-7.5)
    volume = read_volume(path)
    assert np.array_equal(volume.slice(2, 3), values()[:, :, 3] * 0.25 - 7.5)
    assert np.array_equal(volume.slice(0, 1), nib.load(path).get_fdata()[1])


def test_labels_are_rounded(tmp_path: Path) -> None:
    """A mask whose 1 reads 0.9999999998, as some of UCSF-PDGM do."""
    labels = np.zeros((4, 4, 4))
    labels[1, 2, 3], labels[0, 0, 0] = 0.9999999998, 1e-9
    mask = read_volume(saved(tmp_path / "a.nii.gz", labels)).labelled
    assert np.argwhere(mask).tolist() == [[1, 2, 3]]


@pytest.mark.parametrize("slope", [0.5, -0.5])
def test_the_foreground_is_what_is_not_zero_after_scaling(tmp_path: Path, slope: float) -> None:
    data = np.full((4, 4, 4), 200, dtype=np.int16)
    data[1, 2, 3], data[2, 2, 2] = 201, 190
    volume = read_volume(saved(tmp_path / "a.nii.gz", data, slope=slope, intercept=-200 * slope))
    assert np.argwhere(volume.foreground).tolist() == [[1, 2, 3], [2, 2, 2]]


# -- bad files -------------------------------------------------------------------------------------------------------


def reason(path: Path) -> str:
    with pytest.raises(BadFile) as caught:
        read_volume(path)
    assert str(caught.value).startswith(f"{path.name}: ")
    assert "\n" not in str(caught.value)
    return str(caught.value).removeprefix(f"{path.name}: ")


def test_missing_and_empty(tmp_path: Path) -> None:
    assert reason(tmp_path / "a.nii.gz") == "missing"
    (tmp_path / "b.nii.gz").write_bytes(b"")
    assert reason(tmp_path / "b.nii.gz") == "empty file"


@pytest.mark.parametrize("share", [0.2, 0.5, 0.99])
def test_truncated(tmp_path: Path, share: float) -> None:
    path = saved(tmp_path / "a.nii.gz", np.random.default_rng(1).integers(1, 30000, (40, 40, 40)).astype(np.int16))
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])
    assert reason(path).startswith("truncated")


def test_truncated_without_gzip(tmp_path: Path) -> None:
    path = saved(tmp_path / "a.nii", values())
    path.write_bytes(path.read_bytes()[:-10])
    assert reason(path) == "truncated: at most 230 of 240 bytes of voxels"


def test_only_the_checksum_is_cut_off(tmp_path: Path) -> None:
    path = saved(tmp_path / "a.nii.gz", values())
    path.write_bytes(path.read_bytes()[:-6])
    assert reason(path).startswith("truncated")


def test_a_flipped_bit_in_the_gzip_stream_is_noticed(tmp_path: Path) -> None:
    path = saved(tmp_path / "a.nii.gz", np.random.default_rng(1).integers(1, 30000, (40, 40, 40)).astype(np.int16))
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(bytes(content))
    assert reason(path).startswith("damaged gzip stream")


def test_not_nifti(tmp_path: Path) -> None:
    (tmp_path / "a.nii.gz").write_bytes(b"<html>Please log in</html>" * 50)
    assert reason(tmp_path / "a.nii.gz") == "not gzip, which its name says"
    (tmp_path / "b.nii").write_bytes(b"<html>Please log in</html>" * 50)
    assert reason(tmp_path / "b.nii") == "not NIfTI: no header of 348 or 540 bytes"
    (tmp_path / "c.nii.gz").write_bytes(gzip.compress((348).to_bytes(4, "little") + bytes(500)))
    assert reason(tmp_path / "c.nii.gz") == "not NIfTI: no magic string"


def test_all_zero_or_all_alike(tmp_path: Path) -> None:
    zero = saved(tmp_path / "a.nii.gz", np.zeros((4, 4, 4), dtype=np.int16))
    assert reason(zero) == "all voxels are zero"
    assert not read_volume(zero, may_be_empty=True).labelled.any()
    alike = saved(tmp_path / "b.nii.gz", np.full((4, 4, 4), 3, dtype=np.int16), slope=0.5, intercept=1)
    assert reason(alike) == "all voxels are equal to 2.5"
    hidden = saved(tmp_path / "c.nii.gz", np.full((4, 4, 4), 3, dtype=np.int16), slope=0.5, intercept=-1.5)
    assert reason(hidden) == "all voxels are zero"


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_nan_and_infinity(tmp_path: Path, bad: float) -> None:
    data = values().astype(np.float32)
    data[1, 1, 1] = bad
    assert reason(saved(tmp_path / "a.nii.gz", data)) == "1 of 120 voxels are NaN or infinite"


def test_wrong_dimensions(tmp_path: Path) -> None:
    assert reason(saved(tmp_path / "a.nii.gz", values((6, 5, 4, 3)))) == "expected a 3-D volume, found 4-D (6x5x4x3)"
    assert reason(saved(tmp_path / "b.nii.gz", values((6, 5)))) == "expected a 3-D volume, found 2-D (6x5)"
    assert reason(saved(tmp_path / "c.nii.gz", values((6, 5, 1)))).startswith("wrong shape 6x5x1")


def edited(path: Path, place: int, new: bytes) -> Path:
    content = bytearray(gzip.decompress(saved(path, values()).read_bytes()))
    content[place : place + len(new)] = new
    path.write_bytes(gzip.compress(bytes(content)))
    return path


def test_a_header_that_asks_for_terabytes_is_refused_before_anything_is_allocated(tmp_path: Path) -> None:
    sizes = np.array([3, 4000, 4000, 4000, 1, 1, 1, 1], dtype="<i2").tobytes()
    path = edited(tmp_path / "a.nii.gz", 40, sizes)
    tracemalloc.start()
    assert reason(path).startswith("wrong shape 4000x4000x4000: more than 134217728 voxels")
    assert tracemalloc.get_traced_memory()[1] < 10_000_000
    tracemalloc.stop()


@pytest.mark.parametrize(
    ("place", "new", "expected"),
    [
        (40, np.array([3, -5, 4, 4], dtype="<i2").tobytes(), "unreadable header: a shape of -5x4x4"),
        (40, np.array([3, 0, 4, 4], dtype="<i2").tobytes(), "unreadable header: a shape of 0x4x4"),
        (70, np.array([999], dtype="<i2").tobytes(), "unreadable header"),
        (70, np.array([32], dtype="<i2").tobytes(), "voxels of type complex64, not plain numbers"),
        (108, np.array([10], dtype="<f4").tobytes(), "unreadable header: voxels begin at byte 10, inside the header"),
        (108, np.array([np.nan], dtype="<f4").tobytes(), "unreadable header"),
        (280, np.full(12, np.nan, dtype="<f4").tobytes(), "unreadable header: an affine that places no voxel"),
        (280, np.zeros(12, dtype="<f4").tobytes(), "unreadable header: an affine that places no voxel"),
        (112, np.array([1, np.inf], dtype="<f4").tobytes(), "unreadable header"),
    ],
)
def test_a_header_that_can_not_be_true(tmp_path: Path, place: int, new: bytes, expected: str) -> None:
    assert reason(edited(tmp_path / "a.nii.gz", place, new)).startswith(expected)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(noise=st.lists(st.tuples(st.integers(0, 351), st.integers(0, 255)), min_size=1, max_size=12))
def test_whatever_stands_in_the_header_it_is_read_or_refused(tmp_path: Path, noise: list[tuple[int, int]]) -> None:
    path = saved(tmp_path / "a.nii", values())
    content = bytearray(path.read_bytes())
    for place, byte in noise:
        content[place] = byte
    path.write_bytes(bytes(content))
    try:
        volume = read_volume(path)
    except BadFile:
        return
    assert len(volume.shape) == 3
    assert np.isfinite(volume.affine).all()
    assert read_header(path).shape == volume.shape
