"""Which slice is shown and how it lies: proven with a phantom that is different on every side."""

from __future__ import annotations

from pathlib import Path

import nibabel as nib
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from overread.images.slices import cut, largest_tumour, layout, middle, most
from overread.images.volume import BadFile, Volume

# World (RAS+, mm): the phantom's centre, and points of known brightness to the patient's left, right, front, top.
CENTRE = np.array([4.0, -12.0, 30.0])
MARKS = {"left": (-20, 0, 0, 40.0), "right": (20, 0, 0, 60.0), "front": (0, 20, 0, 80.0), "top": (0, 0, 16, 100.0)}


def turned(degrees: tuple[float, float, float]) -> np.ndarray:
    """Rotation about x, then y, then z."""
    matrix = np.eye(3)
    for axis, angle in enumerate(np.deg2rad(degrees)):
        one, two = [a for a in range(3) if a != axis]
        step = np.eye(3)
        step[one, one] = step[two, two] = np.cos(angle)
        step[one, two], step[two, one] = -np.sin(angle), np.sin(angle)
        matrix = step @ matrix
    return matrix


def affine_of(codes: str, shape: tuple[int, int, int], spacing: float = 1.0, tilt: float = 0.0) -> np.ndarray:
    """An affine with axes `codes`, tilted by `tilt` degrees about each axis, whose grid is centred on CENTRE."""
    ornt = nib.orientations.axcodes2ornt(tuple(codes))
    matrix = np.zeros((3, 3))
    for voxel, (world, direction) in enumerate(ornt):
        matrix[int(world), voxel] = direction * spacing
    matrix = turned((tilt, tilt, tilt)) @ matrix
    affine = np.eye(4)
    affine[:3, :3] = matrix
    affine[:3, 3] = CENTRE - matrix @ ((np.array(shape) - 1) / 2)
    return affine


def phantom(affine: np.ndarray, shape: tuple[int, int, int]) -> Volume:
    """Balls of 5 mm at MARKS on a field of 10, by world coordinates alone."""
    index = np.stack([*np.indices(shape), np.ones(shape)]).reshape(4, -1)
    world = (affine @ index)[:3].T
    values = np.full(len(world), 10.0)
    for x, y, z, value in MARKS.values():
        values[np.linalg.norm(world - CENTRE - (x, y, z), axis=1) <= 5] = value
    return Volume(Path("phantom.nii.gz"), values.reshape(shape), affine, 1.0, 0.0)


def mask(affine: np.ndarray, shape: tuple[int, int, int], around: tuple[float, float, float]) -> Volume:
    """A ball of 4 mm at `around`, in mm from CENTRE."""
    index = np.stack([*np.indices(shape), np.ones(shape)]).reshape(4, -1)
    world = (affine @ index)[:3].T
    inside = np.linalg.norm(world - CENTRE - around, axis=1) <= 4
    return Volume(Path("mask.nii.gz"), inside.astype(np.int16).reshape(shape), affine, 1.0, 0.0)


def place(picture: np.ndarray, value: float) -> tuple[float, float]:
    """Row and column of a mark, from the picture's middle."""
    row, column = np.argwhere(np.abs(picture - value) < 1).mean(axis=0)
    return row - (picture.shape[0] - 1) / 2, column - (picture.shape[1] - 1) / 2


GRIDS = [
    ("LPS", 0.0), ("RAS", 0.0), ("RPI", 0.0), ("PSR", 0.0), ("SLA", 0.0),
    ("LPS", 12.0), ("RAS", 12.0), ("ASL", 12.0),
]  # fmt: skip
SHAPE = (64, 60, 50)


@pytest.mark.parametrize(("codes", "tilt"), GRIDS)
def test_the_patients_left_is_on_the_pictures_right_whatever_the_affine(codes: str, tilt: float) -> None:
    affine = affine_of(codes, SHAPE, tilt=tilt)
    level = largest_tumour(mask(affine, SHAPE, (0, 0, 0)), None, "axial")
    picture = cut(phantom(affine, SHAPE), level)
    # A tilt of 12 degrees about each axis moves a mark 20 mm away by less than 8 mm in the picture.
    for name, row, column in (("left", 0, 20), ("right", 0, -20), ("front", -20, 0)):
        if tilt and not (np.abs(picture - MARKS[name][3]) < 1).any():
            continue  # the tilted slice leaves this ball
        assert place(picture, MARKS[name][3]) == pytest.approx((row, column), abs=8 if tilt else 0.6)


@pytest.mark.parametrize(("codes", "tilt"), GRIDS)
def test_coronal_pictures_have_the_top_on_top_and_left_on_the_right(codes: str, tilt: float) -> None:
    affine = affine_of(codes, SHAPE, tilt=tilt)
    picture = cut(phantom(affine, SHAPE), largest_tumour(mask(affine, SHAPE, (0, 0, 0)), None, "coronal"))
    for name, row, column in (("left", 0, 20), ("right", 0, -20), ("top", -16, 0)):
        if tilt and not (np.abs(picture - MARKS[name][3]) < 1).any():
            continue
        assert place(picture, MARKS[name][3]) == pytest.approx((row, column), abs=8 if tilt else 0.6)


@pytest.mark.parametrize(("codes", "tilt"), GRIDS)
def test_sagittal_pictures_have_the_front_on_the_left(codes: str, tilt: float) -> None:
    affine = affine_of(codes, SHAPE, tilt=tilt)
    picture = cut(phantom(affine, SHAPE), largest_tumour(mask(affine, SHAPE, (0, 0, 0)), None, "sagittal"))
    for name, row, column in (("front", 0, -20), ("top", -16, 0)):
        if tilt and not (np.abs(picture - MARKS[name][3]) < 1).any():
            continue
        assert place(picture, MARKS[name][3]) == pytest.approx((row, column), abs=8 if tilt else 0.6)


@pytest.mark.parametrize("tilt", [0.0, 12.0])
def test_some_mark_is_seen_on_every_tilted_picture(tilt: float) -> None:
    """So that the tests above can't pass by seeing nothing."""
    for codes, _ in GRIDS:
        affine = affine_of(codes, SHAPE, tilt=tilt)
        for plane, names in (
            ("axial", ("left", "right")),
            ("coronal", ("left", "top")),
            ("sagittal", ("front", "top")),
        ):
            picture = cut(phantom(affine, SHAPE), largest_tumour(mask(affine, SHAPE, (0, 0, 0)), None, plane))
            assert any((np.abs(picture - MARKS[name][3]) < 1).any() for name in names)


@pytest.mark.parametrize("codes", ["LPS", "RAS", "PSR", "ILA"])
def test_pictures_equal_those_of_nibabels_own_reorientation(codes: str) -> None:
    """In RAS+ order the axial picture is array[:, :, k], transposed, with both axes turned round."""
    shape = (65, 61, 51)
    affine = affine_of(codes, shape)
    volume, tumour = phantom(affine, shape), mask(affine, shape, (3, -5, 8))
    canonical = nib.as_closest_canonical(nib.Nifti1Image(volume.stored, affine)).get_fdata()
    marked = nib.as_closest_canonical(nib.Nifti1Image(tumour.stored, affine)).get_fdata()
    k = int(np.argmax(marked.sum(axis=(0, 1))))
    expected = canonical[:, :, k].T[::-1, ::-1]
    assert np.array_equal(cut(volume, largest_tumour(tumour, None, "axial")), expected)


@pytest.mark.parametrize("plane", ["axial", "coronal", "sagittal"])
@pytest.mark.parametrize("codes", ["LPS", "RAS"])
def test_the_position_is_that_of_the_slice_in_patient_coordinates(codes: str, plane: str) -> None:
    """LPS: x to the patient's left, y to the back, z up."""
    affine = affine_of(codes, (65, 61, 51))
    level = largest_tumour(mask(affine, (65, 61, 51), (7, -9, 11)), None, plane)
    ras = CENTRE + np.array([7, -9, 11])
    assert level.position_mm == {"sagittal": -ras[0], "coronal": -ras[1], "axial": ras[2]}[plane]


# -- the choice ------------------------------------------------------------------------------------------------------


def test_the_slice_with_the_most_tumour_is_chosen_and_ties_go_to_the_middle() -> None:
    assert most(np.array([0, 3, 1, 0])) == 1
    assert most(np.array([0, 3, 3, 3, 0])) == 2
    assert most(np.array([0, 3, 3, 0])) == 1
    assert most(np.array([5, 0, 5, 0, 5, 0, 0])) == 2


@given(counts=st.lists(st.integers(0, 5), min_size=1, max_size=40))
def test_the_chosen_slice_has_the_most_and_as_many_equals_before_as_after(counts: list[int]) -> None:
    chosen = most(np.array(counts))
    equals = [place for place, count in enumerate(counts) if count == max(counts)]
    before, after = sum(place < chosen for place in equals), sum(place > chosen for place in equals)
    assert counts[chosen] == max(counts)
    assert after - before in (0, 1)


@pytest.mark.parametrize("plane", ["axial", "coronal", "sagittal"])
def test_which_of_two_middle_slices_is_taken_does_not_depend_on_how_the_array_is_stored(plane: str) -> None:
    shape = (64, 60, 50)
    cube = np.zeros(shape, dtype=np.int16)
    cube[20:30, 20:30, 20:30] = 1
    own = Volume(Path("mask.nii.gz"), cube, affine_of("LPS", shape), 1.0, 0.0)
    turned = nib.as_closest_canonical(nib.Nifti1Image(cube, own.affine))
    other = Volume(Path("mask.nii.gz"), np.asarray(turned.dataobj), turned.affine, 1.0, 0.0)
    assert not np.allclose(own.affine, other.affine)
    assert largest_tumour(own, None, plane).position_mm == largest_tumour(other, None, plane).position_mm
    middles = [middle(one, plane, is_mask=True).position_mm for one in (own, other)]
    assert middles[0] == middles[1]


def labelled(values: np.ndarray) -> Volume:
    return Volume(Path("tumor.nii.gz"), values, affine_of("LPS", values.shape), 1.0, 0.0)


def test_a_label_can_choose_the_slice_and_where_it_is_absent_the_whole_tumour_does() -> None:
    values = np.zeros(SHAPE, dtype=np.int16)
    values[20:40, 20:40, 10:20] = 2
    values[25:30, 25:30, 14] = 4
    values[25:28, 25:28, 12] = 1
    values[20:45, 20:40, 17] = 2
    tumour = labelled(values)
    chosen = {label: largest_tumour(tumour, None, "axial", label) for label in (None, 1, 2, 4)}
    assert {label: level.index for label, level in chosen.items()} == {None: 17, 1: 12, 2: 17, 4: 14}
    assert chosen[4].chosen_by == "most voxels of label 4"
    assert chosen[None].chosen_by == "most tumour voxels"
    without = largest_tumour(labelled(np.where(values == 4, 2, values)), None, "axial", 4)
    assert (without.index, without.chosen_by) == (17, "no label 4: most tumour voxels")
    empty = largest_tumour(labelled(np.zeros(SHAPE, dtype=np.int16)), tumour, "axial", 4)
    assert (empty.index, empty.chosen_by) == (17, "no tumour: most brain voxels")


def test_label_3_of_brats_2023_counts_as_enhancing_and_the_index_says_so() -> None:
    values = np.zeros(SHAPE, dtype=np.int16)
    values[20:40, 20:40, 10:20] = 2
    values[25:30, 25:30, 14] = 3
    level = largest_tumour(labelled(values), None, "axial", 4)
    assert (level.index, level.chosen_by) == (14, "most voxels of label 4; label 3 of the mask read as 4")
    assert "label 3 of the mask read as 4" in largest_tumour(labelled(values), None, "axial").chosen_by
    values[25:30, 25:30, 15] = 4
    with pytest.raises(BadFile, match=r"tumor\.nii\.gz: labels 3 and 4 in one mask"):
        largest_tumour(labelled(values), None, "axial")


@pytest.mark.parametrize("bad", [0.5, 7, -1, 255])
def test_a_mask_with_values_that_are_no_labels_is_refused(bad: float) -> None:
    values = np.zeros(SHAPE)
    values[20:40, 20:40, 10:20] = 0.9999999998
    assert largest_tumour(labelled(values), None, "axial", 1).chosen_by == "most voxels of label 1"
    values[0, 0, 0] = bad
    with pytest.raises(BadFile, match=rf"tumor\.nii\.gz: values that are no labels \({bad:g}\)"):
        largest_tumour(labelled(values), None, "axial")


@pytest.mark.parametrize(("codes", "tilt"), GRIDS)
def test_the_orientation_is_said_and_how_oblique_it_is(codes: str, tilt: float) -> None:
    affine = affine_of(codes, SHAPE, tilt=tilt)
    said = {
        plane: largest_tumour(mask(affine, SHAPE, (0, 0, 0)), None, plane).orientation
        for plane in ("axial", "coronal", "sagittal")
    }
    plain = {
        "axial": "left to right: R to L; top to bottom: A to P",
        "coronal": "left to right: R to L; top to bottom: S to I",
        "sagittal": "left to right: A to P; top to bottom: S to I",
    }
    for plane, text in said.items():
        assert text.startswith(plain[plane])
        assert text.endswith("degrees oblique") == bool(tilt)


def test_without_tumour_the_slice_with_most_brain_is_taken_and_said() -> None:
    affine = affine_of("LPS", SHAPE)
    empty = Volume(Path("tumor.nii.gz"), np.zeros(SHAPE, dtype=np.int16), affine, 1.0, 0.0)
    brain = mask(affine, SHAPE, (0, 0, 10))
    level = largest_tumour(empty, brain, "axial")
    assert level.chosen_by == "no tumour: most brain voxels"
    assert level.index == int(np.argmax([np.count_nonzero(brain.stored[:, :, k]) for k in range(50)]))
    with pytest.raises(BadFile, match=r"tumor\.nii\.gz: holds no tumour"):
        largest_tumour(empty, None, "axial")


def test_the_middle_is_that_of_the_brain_not_of_the_grid() -> None:
    affine = affine_of("LPS", SHAPE)
    stored = np.zeros(SHAPE, dtype=np.int16)
    stored[10:20, 30:40, 5:16] = 1
    level = middle(Volume(Path("brain.nii.gz"), stored, affine, 1.0, 0.0), "axial", is_mask=True)
    assert (level.index, level.chosen_by) == (10, "middle of the brain")


# -- another grid ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("codes", "spacing", "tilt"), [("RAS", 1.0, 0.0), ("PSR", 1.0, 0.0), ("LPS", 0.8, 9.0)])
def test_a_series_on_another_grid_is_looked_up_by_its_affine(codes: str, spacing: float, tilt: float) -> None:
    """The same world seen on two grids gives the same picture, edges of the balls aside."""
    affine = affine_of("LPS", SHAPE)
    level = largest_tumour(mask(affine, SHAPE, (0, 0, 0)), None, "axial")
    own = cut(phantom(affine, SHAPE), level)
    large = (110, 110, 110)
    other = cut(phantom(affine_of(codes, large, spacing, tilt), large), level)
    assert other.shape == own.shape
    for name in ("left", "right", "front"):
        assert place(other, MARKS[name][3]) == pytest.approx(place(own, MARKS[name][3]), abs=1)
    assert np.mean(np.abs(other - own) > 1) < 0.03


def test_a_shifted_copy_is_not_read_by_array_index() -> None:
    """The same array with an origin 10 mm higher: the slice at the level is 10 indices lower."""
    affine = affine_of("LPS", SHAPE)
    ramp = np.broadcast_to(np.arange(50.0), SHAPE)
    level = largest_tumour(mask(affine, SHAPE, (0, 0, 0)), None, "axial")
    shifted = affine.copy()
    shifted[2, 3] += 10
    assert np.allclose(cut(Volume(Path("a.nii"), ramp, affine, 1.0, 0.0), level), level.index)
    assert np.allclose(cut(Volume(Path("a.nii"), ramp, shifted, 2.0, 1.0), level), 2 * (level.index - 10) + 1)


def test_labels_on_another_grid_stay_labels() -> None:
    """Between 0 and 4 there is no 2."""
    affine = affine_of("LPS", SHAPE)
    level = largest_tumour(mask(affine, SHAPE, (0, 0, 0)), None, "axial")
    coarse = (24, 22, 18)
    other = mask(affine_of("RAS", coarse, spacing=2.7, tilt=9.0), coarse, (0, 0, 0))
    fours = Volume(other.path, other.stored * 4, other.affine, 1.0, 0.0)
    assert set(np.unique(cut(fours, level, nearest=True)[8:-8, 8:-8])) == {0.0, 4.0}
    assert len(np.unique(cut(fours, level))) > 10


def test_what_a_series_does_not_reach_is_nan_and_nothing_at_all_is_an_error() -> None:
    affine = affine_of("LPS", SHAPE)
    level = largest_tumour(mask(affine, SHAPE, (0, 0, 0)), None, "axial")
    half = Volume(Path("half.nii.gz"), np.ones((32, 60, 50)), affine, 1.0, 0.0)
    picture = cut(half, level)
    assert np.isfinite(picture[:, :32]).all()
    assert np.isnan(picture[:, 32:]).all()
    low = Volume(Path("low.nii.gz"), np.ones((64, 60, 10)), affine, 1.0, 0.0)
    with pytest.raises(BadFile, match=r"low\.nii\.gz: does not reach the slice at .* mm \(axial\)"):
        cut(low, level)


def test_axes_follow_the_nearest_world_axis() -> None:
    one = layout(affine_of("PSR", SHAPE, tilt=12), "axial")
    assert (one.normal, one.down, one.right) == (1, 0, 2)
