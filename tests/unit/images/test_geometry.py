"""NIfTI headers whose parts disagree: refused by name, or read as the config says; never one of them in silence."""

from __future__ import annotations

import gzip
import tempfile
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from overread.core.records import Geometry
from overread.images.volume import BadFile, read_volume

RAS = np.diag([1.5, 1.5, 2.0, 1.0])
SHAPE = (12, 10, 8)


def saved(path: Path, sform: np.ndarray, qform: np.ndarray, pixdim: tuple[float, ...] | None = None) -> Path:
    """By nibabel, sform and qform of code 1; `pixdim` is written over what the qform gave."""
    image = nib.Nifti1Image(np.arange(np.prod(SHAPE), dtype=np.int16).reshape(SHAPE), None)
    image.header.set_qform(qform, code=1)
    image.header.set_sform(sform, code=1)
    if pixdim is not None:
        image.header["pixdim"][1:4] = pixdim
    path.write_bytes(image.to_bytes())
    return path


def moved(**how: float) -> np.ndarray:
    affine = RAS.copy()
    affine[:3, 3] += [how.get("x", 0), how.get("y", 0), how.get("z", 0)]
    affine[:3, :3] = Rotation.from_euler("z", how.get("turn", 0), degrees=True).as_matrix() @ affine[:3, :3]
    return affine


@pytest.mark.parametrize(
    ("sform", "why"),
    [
        (np.diag([-1.5, -1.5, 2, 1]), r"how the patient lies \(turned by 180.0 degrees\), by up to"),  # LPS for RAS
        (np.diag([-1.5, 1.5, 2, 1]), "which side is left, by up to 33 mm"),
        (moved(x=1), "where the patient lies, by up to 1 mm"),
        (moved(turn=3), r"how the patient lies \(turned by 3.0 degrees\), by up to"),
        (RAS[:, [1, 0, 2, 3]], "which side is left, by up to"),
    ],
)
def test_a_sform_that_places_the_grid_elsewhere_than_the_qform_is_refused_by_name(
    tmp_path: Path, sform: np.ndarray, why: str
) -> None:
    path = saved(tmp_path / "a.nii", sform, RAS)
    with pytest.raises(BadFile, match=f"^a.nii: unreadable header: sform and qform disagree on {why}") as caught:
        read_volume(path)
    assert "set geometry: sform or qform" in str(caught.value)


@pytest.mark.parametrize(("geometry", "wanted"), [("sform", np.diag([-1.5, -1.5, 2, 1])), ("qform", RAS)])
def test_the_config_settles_it(tmp_path: Path, geometry: Geometry, wanted: np.ndarray) -> None:
    path = saved(tmp_path / "a.nii", np.diag([-1.5, -1.5, 2, 1]), RAS)
    assert np.allclose(read_volume(path, geometry=geometry).affine, wanted, atol=1e-6)


def test_voxel_edges_that_differ_from_pixdim_are_refused_or_settled(tmp_path: Path) -> None:
    path = saved(tmp_path / "a.nii", RAS, RAS, pixdim=(1, 1, 1))
    image = nib.load(path)
    image.header["qform_code"] = 0  # with it, pixdim would be the qform's own
    path.write_bytes(nib.Nifti1Image(np.asarray(image.dataobj), None, image.header).to_bytes())
    assert int(nib.load(path).header["qform_code"]) == 0
    with pytest.raises(BadFile, match=r"voxels of 1\.5x1\.5x2 mm by the sform and 1x1x1 mm by pixdim"):
        read_volume(path)
    assert np.allclose(read_volume(path, geometry="sform").affine, RAS)
    with pytest.raises(BadFile, match="no qform, which 'geometry' names: its code is 0"):
        read_volume(path, geometry="qform")


@pytest.mark.parametrize(("unit", "name"), [("meter", "metres"), ("micron", "micrometres")])
def test_other_lengths_than_millimetres_are_refused(tmp_path: Path, unit: str, name: str) -> None:
    image = nib.load(saved(tmp_path / "a.nii", RAS, RAS))
    image.header.set_xyzt_units(unit)
    (tmp_path / "b.nii").write_bytes(image.to_bytes())
    with pytest.raises(BadFile, match=f"lengths are in {name}; expected millimetres"):
        read_volume(tmp_path / "b.nii")


ANGLES = st.tuples(*[st.floats(-180, 180)] * 3)
NUMBERS = st.floats(-300, 300)


@settings(deadline=None, max_examples=60)
@given(
    first=ANGLES, second=ANGLES, zooms=st.tuples(*[st.floats(0.3, 6)] * 3), flip=st.booleans(),
    shift=st.tuples(NUMBERS, NUMBERS, NUMBERS), same=st.booleans(),
    dtype=st.sampled_from(["u1", "i2", "i4", "f4", "f8"]),
)  # fmt: skip
def test_any_affine_is_as_nibabel_and_simpleitk_read_it_or_is_refused(
    first: tuple[float, ...], second: tuple[float, ...], zooms: tuple[float, ...], flip: bool,
    shift: tuple[float, ...], same: bool, dtype: str,
) -> None:  # fmt: skip
    import SimpleITK

    def affine(angles: tuple[float, ...]) -> np.ndarray:
        made = np.eye(4)
        turned = Rotation.from_euler("xyz", angles, degrees=True).as_matrix() @ np.diag([-1.0 if flip else 1.0, 1, 1])
        made[:3, :3], made[:3, 3] = turned * zooms, shift
        return made

    sform, qform = affine(first), affine(first if same else second)
    values = np.random.default_rng(0).integers(0, 200, SHAPE).astype(dtype)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.nii"
        image = nib.Nifti1Image(values, None)
        image.header.set_qform(qform, code=1)
        image.header.set_sform(sform, code=1)
        path.write_bytes(image.to_bytes())
        corners = np.array([[x, y, z, 1] for x in (0, 11) for y in (0, 9) for z in (0, 7)])
        apart = np.linalg.norm(corners @ (sform - qform).T, axis=1).max()
        if apart > 0.11 * min(zooms):
            with pytest.raises(BadFile, match="sform and qform disagree"):
                read_volume(path)
            return
        volume, read = read_volume(path), SimpleITK.ReadImage(str(path))
        loaded = nib.load(path)
        assert np.allclose(volume.affine, loaded.affine, atol=1e-3)
        assert np.array_equal(volume.part((slice(None),) * 3), np.asarray(loaded.dataobj, dtype=np.float64))
    for corner in ((0, 0, 0), (11, 9, 7), (11, 0, 3)):  # both are independent readings of where a voxel lies
        lps = np.array(read.TransformIndexToPhysicalPoint(corner)) * [-1, -1, 1]
        assert np.allclose(lps, (volume.affine @ [*corner, 1])[:3], atol=0.2 * min(zooms))


def test_the_viewer_places_a_series_as_its_study_was_read(tmp_path: Path) -> None:
    from overread.core.records import Study
    from overread_viewer.volumes import Volumes, geometry_of

    path = tmp_path / "a.nii.gz"
    path.write_bytes(gzip.compress(saved(tmp_path / "a.nii", np.diag([-1.5, -1.5, 2, 1]), RAS).read_bytes()))
    scans = Volumes()
    for geometry, wanted in (("sform", np.diag([-1.5, -1.5, 2, 1])), ("qform", RAS)):
        study = Study(
            study="s", patient="p", dataset="d", modality="mri", images={"T1": str(path)}, report={}, labels={},
            restricted=False, reading={"geometry": geometry},
        )  # fmt: skip
        scan = scans.scan(path, geometry_of(study))
        there = np.asarray(scan.facts["affine"]) @ [0, 0, 0, 1]
        corners = {tuple(np.round(wanted @ [x, y, z, 1], 3)) for x in (0, 11) for y in (0, 9) for z in (0, 7)}
        assert tuple(np.round(there, 3)) in corners
    with pytest.raises(BadFile, match="sform and qform disagree"):
        scans.scan(path)
