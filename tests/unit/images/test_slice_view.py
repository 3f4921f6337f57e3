"""The view of all series at one level: which, in which order, in which greys, and what is left out."""

from __future__ import annotations

import json
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest
from PIL import Image
from pydantic import ValidationError

from overread.core.errors import BadInput
from overread.core.records import Picture, Study
from overread.images import render_study
from overread.images.index import read_views, write_views
from overread.images.volume import BadFile
from overread.views.slice.section import SliceView

SHAPE = (32, 30, 20)
AFFINE = np.array([[-1.0, 0, 0, 0], [0, -1, 0, 29], [0, 0, 1, 0], [0, 0, 0, 1]])

THE_23 = (
    "T1", "T1_bias", "T1c", "T1c_bias", "T2", "T2_bias", "FLAIR", "FLAIR_bias", "DWI", "DWI_bias", "SWI", "SWI_bias",
    "ADC", "ASL", "DTI_eddy_FA", "DTI_eddy_MD", "DTI_eddy_L1", "DTI_eddy_L2", "DTI_eddy_L3", "DTI_eddy_noreg",
    "brain_segmentation", "brain_parenchyma_segmentation", "tumor_segmentation",
)  # fmt: skip
MASKS = THE_23[-3:]


def save(path: Path, data: np.ndarray, affine: np.ndarray = AFFINE) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    nib.save(nib.Nifti1Image(data, affine), path)
    return str(path)


def brain() -> np.ndarray:
    inside = np.zeros(SHAPE, dtype=np.int16)
    inside[4:28, 4:26, 2:18] = 1
    return inside


def tumour() -> np.ndarray:
    """All three labels in slice 12, which has the most."""
    labels = np.zeros(SHAPE, dtype=np.int16)
    labels[8:12, 8:12, 10:15] = 2
    labels[6:14, 6:14, 12] = 2
    labels[8:12, 8:12, 12] = 4
    labels[9:11, 9:11, 12] = 1
    return labels


def values(seed: int, mean: float = 500, spread: float = 90) -> np.ndarray:
    return np.random.default_rng(seed).normal(mean, spread, SHAPE) * brain()


@pytest.fixture
def study(tmp_path: Path) -> Study:
    """All 23 series. Diffusion and perfusion maps are signed, the 4-D series lies on another grid."""
    images: dict[str, np.ndarray] = {}
    for seed, name in enumerate(THE_23[:-3]):
        signed = name.startswith(("ADC", "ASL", "DTI"))
        images[name] = values(seed, 100 if signed else 500).astype(np.float32 if signed else np.int16)
    images |= {"brain_segmentation": brain(), "tumor_segmentation": tumour()}
    images["brain_parenchyma_segmentation"] = brain() * (np.indices(SHAPE).sum(axis=0) % 5 > 0).astype(np.int16)
    paths = {name: save(tmp_path / "data" / f"{name}.nii.gz", data) for name, data in images.items()}
    paths["DTI_eddy_noreg"] = other_grid(tmp_path / "data" / "DTI_eddy_noreg.nii.gz")
    return Study(
        study="A", patient="p", dataset="d", modality="mri", images=paths, report={}, labels={}, restricted=False
    )


def other_grid(path: Path, shift: tuple[float, float, float] = (0, 0, 0)) -> str:
    """Two volumes in LAS, voxels of 0.8 x 0.8 x 2 mm; the first is 3 i + 2 j + k of the brain's grid, mirrored back."""
    shape, spacing = (44, 42, 12), np.array([0.8, 0.8, 2.0])
    affine = np.diag([-0.8, 0.8, 2.0, 1.0])
    affine[:3, 3] = np.array([1.0, -2.0, -1.0]) + shift
    i, j, k = np.indices(shape)
    x, y, z = (affine[:3, 3].reshape(3, 1, 1, 1) + np.stack([-i * spacing[0], j * spacing[1], k * spacing[2]])) - (
        np.array(shift).reshape(3, 1, 1, 1)
    )
    first = 3 * -x + 2 * (29 - y) + z + 50
    return save(path, np.stack([first, first[::-1]], axis=-1).astype(np.float32), affine)


def without(study: Study, *series: str) -> Study:
    return study.model_copy(update={"images": {name: p for name, p in study.images.items() if name not in series}})


def render(study: Study, folder: Path, **view: object) -> dict[str, tuple[Picture, np.ndarray]]:
    """Pictures and their pixels by series."""
    home = folder / "d" / "images" / study.study
    pictures = render_study(study, {"v": SliceView.model_validate({"series": "all", **view})}, home)
    return {one.series: (one, np.asarray(Image.open(folder / "d" / one.path))) for one in pictures}


# -- all of them -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("plane", ["axial", "coronal", "sagittal"])
def test_all_23_series_come_in_a_fixed_order_each_with_its_name(study: Study, tmp_path: Path, plane: str) -> None:
    pictures = render(study, tmp_path, plane=plane)
    assert tuple(pictures) == THE_23
    assert [one.order for one, _ in pictures.values()] == list(range(23))
    assert [one.name for one, _ in pictures.values()] == [f"{name}, {plane}" for name in THE_23]
    assert (
        len({(one.slice_index, one.position_mm, one.chosen_by, one.orientation) for one, _ in pictures.values()}) == 1
    )
    shape = {"axial": (30, 32), "coronal": (20, 32), "sagittal": (20, 30)}[plane]
    assert {pixels.shape for _, pixels in pictures.values()} == {shape}
    assert len({one.pixels for one, _ in pictures.values()}) == 23
    turned = study.model_copy(update={"images": dict(reversed(study.images.items()))})
    assert [one for one, _ in render(turned, tmp_path, plane=plane).values()] == [one for one, _ in pictures.values()]


def test_the_calibration_scan_of_follow_up_studies_is_no_series_of_all_but_has_a_picture(
    study: Study, tmp_path: Path
) -> None:
    more = study.model_copy(
        update={"images": {**study.images, "ASL_M0": study.images["T2"], "mine": study.images["T1"]}}
    )
    assert tuple(render(more, tmp_path)) == (*THE_23, "mine")
    assert tuple(render(more, tmp_path, series="ASL_M0")) == ("ASL_M0",)


def test_the_first_volume_of_the_diffusion_series_is_shown_where_the_brain_is(study: Study, tmp_path: Path) -> None:
    """By hand: 3 i + 2 j + 12 + 50 at voxel (i, j) of slice 12, black at 0 and white at the percentile."""
    picture, pixels = render(study, tmp_path)["DTI_eddy_noreg"]
    assert picture.scaling.endswith("of the brain in the slice; volume 1 of 2")
    expected = (3 * np.arange(32)[None, :] + 2 * np.arange(30)[:, None] + 62).astype(float)
    white = np.percentile(expected[brain()[:, :, 12].T == 1], 99.5)
    inner = (slice(2, 28), slice(2, 30))
    assert np.abs(pixels - np.clip(expected / white, 0, 1) * 255)[inner].max() <= 1


# -- greys -------------------------------------------------------------------------------------------------------------


def test_labels_of_the_tumour_are_grey_levels_of_their_own_and_never_blend(study: Study, tmp_path: Path) -> None:
    picture, pixels = render(study, tmp_path)["tumor_segmentation"]
    labels = tumour()[:, :, 12].T
    assert [set(pixels[labels == label].tolist()) for label in (0, 2, 1, 4)] == [{0}, {85}, {170}, {255}]
    assert picture.scaling == "labels as greys: 2 oedema 85, 1 necrotic core 170, 4 enhancing 255"
    for size in (16, 100, 333):
        _, resized = render(study, tmp_path, size=size)["tumor_segmentation"]
        assert set(np.unique(resized)) <= {0, 85, 170, 255}


def test_label_3_is_drawn_and_named_as_enhancing(study: Study, tmp_path: Path) -> None:
    labels = tumour()
    save(Path(study.images["tumor_segmentation"]), np.where(labels == 4, 3, labels))
    pictures = render(study, tmp_path)
    picture, pixels = pictures["tumor_segmentation"]
    assert (pixels == render_of(labels)).all()
    assert picture.scaling == "labels as greys: 2 oedema 85, 1 necrotic core 170, 3 enhancing 255"
    assert {one.chosen_by for one, _ in pictures.values()} == {"most tumour voxels; label 3 of the mask read as 4"}


def render_of(labels: np.ndarray) -> np.ndarray:
    return np.vectorize({0: 0, 2: 85, 1: 170, 4: 255}.get)(labels[:, :, 12].T)


def test_other_masks_are_white(study: Study, tmp_path: Path) -> None:
    nearly = brain() * 0.9999999998
    save(Path(study.images["brain_segmentation"]), nearly)
    pictures = render(study, tmp_path)
    for name in MASKS[:2]:
        mask = np.rint(nib.load(study.images[name]).get_fdata())[:, :, 12].T
        assert np.array_equal(pictures[name][1], mask * 255)
        assert pictures[name][0].scaling == "0 black, mask white"


@pytest.mark.parametrize("series", ["ADC", "ASL", "DTI_eddy_FA", "DTI_eddy_MD", "DTI_eddy_L1", "DTI_eddy_L3"])
def test_negative_values_of_a_map_are_noise_and_black(study: Study, tmp_path: Path, series: str) -> None:
    data = nib.load(study.images[series]).get_fdata()
    assert (data[:, :, 12] < 0).sum() > 20
    picture, pixels = render(study, tmp_path)[series]
    white = np.percentile(data[:, :, 12][brain()[:, :, 12] == 1], 99.5)
    assert picture.scaling == f"0 to {white:g}: 0 and 99.5th percentile of the brain in the slice"
    assert (pixels[data[:, :, 12].T <= 0] == 0).all()
    assert (pixels[brain()[:, :, 12].T == 0] == 0).all()


def test_a_magnitude_image_that_goes_below_0_keeps_what_is_there(study: Study, tmp_path: Path) -> None:
    data = values(3, mean=300, spread=200).astype(np.float32)
    save(Path(study.images["T2_bias"]), data)
    picture, _ = render(study, tmp_path)["T2_bias"]
    low, high = np.percentile(data[:, :, 12][brain()[:, :, 12] == 1], [0.5, 99.5])
    assert low < 0
    assert picture.scaling == f"{low:g} to {high:g}: 0.5th and 99.5th percentile of the brain in the slice"


def test_every_series_has_a_window_of_its_own_from_the_brain_alone(study: Study, tmp_path: Path) -> None:
    before = render(study, tmp_path)
    data = nib.load(study.images["FLAIR"]).get_fdata()
    data[brain() == 0] = 30_000  # a skull, or a background that is not 0
    save(Path(study.images["FLAIR"]), data.astype(np.int16))
    after = render(study, tmp_path)
    inside = brain()[:, :, 12].T == 1
    assert np.array_equal(before["FLAIR"][1][inside], after["FLAIR"][1][inside])
    assert before["FLAIR"][0].scaling == after["FLAIR"][0].scaling
    assert (after["FLAIR"][1][~inside] == 255).all()
    assert all(before[name][0] == after[name][0] for name in THE_23 if name != "FLAIR")


def test_a_window_of_the_config_is_taken(study: Study, tmp_path: Path) -> None:
    picture, pixels = render(study, tmp_path, windows={"T1": [400, 600]})["T1"]
    data = nib.load(study.images["T1"]).get_fdata()[:, :, 12].T
    assert np.array_equal(pixels, np.rint(np.clip((data - 400) / 200, 0, 1) * 255))
    assert picture.scaling == "400 to 600: as configured"


def test_a_window_that_shows_nothing_is_refused(study: Study, tmp_path: Path) -> None:
    """A map in mm2/s against a window in 10^-6 mm2/s would be a black picture."""
    data = nib.load(study.images["ADC"]).get_fdata() * 1e-6
    save(Path(study.images["ADC"]), data.astype(np.float32))
    with pytest.raises(BadFile, match=r"ADC\.nii\.gz: windows: 1 to 3000 shows nothing of it: the brain's values are"):
        render(study, tmp_path, windows={"ADC": [1, 3000]})


def test_a_window_of_no_series_is_a_mistake_of_the_config(study: Study, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="windows: no series 'ACD'"):
        render(study, tmp_path, windows={"ACD": [0, 3000]})
    with pytest.raises(ValidationError, match="windows: no series 'ADC'; there are: T1"):
        SliceView(series="T1", windows={"ADC": (0, 3000)})
    for window in ((5, 5), (9, 1), (0, float("inf")), (float("nan"), 1)):
        with pytest.raises(ValidationError):
            SliceView(series="T1", windows={"T1": window})
    assert "ADC" not in render(without(study, "ADC"), tmp_path, windows={"ADC": [0, 3000]})


# -- what is left out, and what is refused ----------------------------------------------------------------------------


def test_a_series_that_lies_elsewhere_is_left_out_of_all_with_its_reason(study: Study, tmp_path: Path) -> None:
    """By the scanner's coordinates, not the atlas's: the affine puts it 20 mm to the side, or 90 mm below.

    Its voxels then reach from x = 21.4 to -13.8 mm: of the 24 columns 4 .. 27 of the brain the first 10.
    """
    path = tmp_path / "d" / "images" / "A" / "views.json"
    reasons = {
        (20, 0, 0): r"DTI_eddy_noreg.nii.gz: reaches only 42 % of the brain in the axial slice 12 \(12 mm\): by its "
        "affine it lies elsewhere than the mask",
        (0, 0, -90): r"DTI_eddy_noreg.nii.gz: does not reach the slice at 12 mm \(axial\)",
    }
    for shift, reason in reasons.items():
        other_grid(Path(study.images["DTI_eddy_noreg"]), shift)
        assert write_views(study, {"v": SliceView(series="all")}, path) is None
        [entry] = json.loads(path.read_text())["left_out"]
        assert (entry["view"], entry["series"]) == ("v", "DTI_eddy_noreg")
        with pytest.raises(BadFile, match=f"^{reason}$"):
            raise BadFile(entry["reason"])
        assert [one.series for one in read_views(path)[1]] == [name for name in THE_23 if name != "DTI_eddy_noreg"]
        with pytest.raises(BadFile, match=reason):
            render(study, tmp_path, series=["FLAIR", "DTI_eddy_noreg"])


def test_a_map_that_was_not_measured_at_the_level_is_left_out_of_all(study: Study, tmp_path: Path) -> None:
    data = nib.load(study.images["ASL"]).get_fdata()
    data[:, :, 11:] = 0
    save(Path(study.images["ASL"]), data.astype(np.float32))
    left_out: list[dict[str, str]] = []
    home = tmp_path / "d" / "images" / "A"
    pictures = render_study(study, {"v": SliceView(series="all")}, home, left_out)
    assert len(pictures) == 22
    assert left_out == [
        {
            "view": "v",
            "series": "ASL",
            "reason": "ASL.nii.gz: no contrast in the slice: axial slice 12 (12 mm)",
        }
    ]


def test_a_broken_file_is_never_just_left_out(study: Study, tmp_path: Path) -> None:
    path = Path(study.images["DTI_eddy_L2"])
    path.write_bytes(path.read_bytes()[:2000])
    with pytest.raises(BadFile, match=r"DTI_eddy_L2\.nii\.gz: truncated"):
        render(study, tmp_path)


def test_a_missing_tumour_mask_is_a_reason_and_the_middle_needs_none(study: Study, tmp_path: Path) -> None:
    bare = without(study, "tumor_segmentation")
    with pytest.raises(BadFile, match=r"^tumor_segmentation: missing: the study has no such series$"):
        render(bare, tmp_path, series="FLAIR")
    picture, _ = render(bare, tmp_path, series="FLAIR", slice="middle")["FLAIR"]
    assert (picture.slice_index, picture.chosen_by) == (9, "middle of the brain")


def test_without_a_brain_mask_what_is_not_0_is_the_brain(study: Study, tmp_path: Path) -> None:
    bare = without(study, "brain_segmentation", "DTI_eddy_noreg")
    assert render(bare, tmp_path)["FLAIR"][0].pixels == render(study, tmp_path)["FLAIR"][0].pixels
    alone = render(bare, tmp_path, series="FLAIR", slice="middle")["FLAIR"][0]
    assert (alone.slice_index, alone.chosen_by) == (9, "middle of the brain")
    save(Path(study.images["tumor_segmentation"]), np.zeros(SHAPE, dtype=np.int16))
    with pytest.raises(BadFile, match="holds no tumour, and there is no brain mask to choose the slice by"):
        render(bare, tmp_path, series="FLAIR")


def test_a_mask_on_another_grid_chooses_by_place_and_not_by_index(study: Study, tmp_path: Path) -> None:
    """The same tumour in a box of its own, mirrored: its slice 2 lies at z = 12 mm, where FLAIR has slice 12."""
    box = tumour()[4:20, 4:20, 10:15][::-1, ::-1]
    affine = np.array([[1.0, 0, 0, -19], [0, 1, 0, 10], [0, 0, 1, 10], [0, 0, 0, 1]])
    own = render(study, tmp_path, series=["FLAIR", "tumor_segmentation"])
    save(Path(study.images["tumor_segmentation"]), np.ascontiguousarray(box), affine)
    other = render(study, tmp_path, series=["FLAIR", "tumor_segmentation"])
    for name in ("FLAIR", "tumor_segmentation"):
        assert (other[name][0].slice_index, other[name][0].position_mm) == (2, 12.0)
        assert other[name][1].shape == (16, 16)
    assert np.array_equal(other["tumor_segmentation"][1], own["tumor_segmentation"][1][4:20, 4:20])
    data = nib.load(study.images["FLAIR"]).get_fdata()[4:20, 4:20, 12].T
    white = np.percentile(data[brain()[4:20, 4:20, 12].T == 1], 99.5)
    assert np.abs(other["FLAIR"][1] - np.clip(data / white, 0, 1) * 255).max() <= 1


@pytest.mark.parametrize("masks", [("brain_segmentation",), ("tumor_segmentation", "brain_segmentation")])
def test_a_mask_far_from_the_series_is_a_reason(study: Study, tmp_path: Path, masks: tuple[str, ...]) -> None:
    far = AFFINE.copy()
    far[:3, 3] += 500
    for name in masks:
        save(Path(study.images[name]), {"brain_segmentation": brain, "tumor_segmentation": tumour}[name](), far)
    with pytest.raises(BadFile, match=r"does not reach the slice at (512|12) mm \(axial\)$"):
        render(study, tmp_path, series="FLAIR")
