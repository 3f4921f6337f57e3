"""Montages: every panel is the slice's own picture, stands where it always stands, and carries its name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from pydantic import ValidationError

from data.small_mri import ALL, MASKS, mri_study, without
from overread.config import View
from overread.core.records import Picture, Study
from overread.images import render_study
from overread.images.volume import BadFile
from overread.views.montage import drawing as montage
from overread.views.montage.drawing import compose, fit, visible
from overread.views.montage.section import MontageView
from overread.views.slice.section import SliceView

FEW = ("T1", "T1c", "FLAIR", "SWI")


def rendered(
    study: Study, folder: Path, left_out: list[dict[str, str]] | None = None, **fields: object
) -> list[Picture]:
    views: dict[str, View] = {"montage": MontageView.model_validate({"kind": "montage", **fields})}
    return render_study(study, views, folder / "d" / "images" / study.study, left_out)


def pixels(folder: Path, picture: Picture) -> np.ndarray:
    with Image.open(folder / "d" / picture.path) as file:
        return np.asarray(file)


def slices(study: Study, folder: Path, **fields: object) -> dict[str, Image.Image]:
    """The pictures of the view `slice`, by series."""
    views: dict[str, View] = {"slices": SliceView.model_validate({"series": "all", **fields})}
    found = render_study(study, views, folder / "s" / "images" / study.study)
    return {picture.series: Image.open(folder / "s" / picture.path) for picture in found}


def place_of(part: np.ndarray, whole: np.ndarray) -> tuple[int, int]:
    """Row and column at which `part` is found in `whole`, which must be once."""
    view = np.lib.stride_tricks.sliding_window_view(whole, part.shape)
    rows, columns = (np.linspace(0, n - 1, 7).astype(int) for n in part.shape)
    likely = np.all([view[:, :, y, x] == part[y, x] for y in rows for x in columns], axis=0)
    found = [(int(row), int(column)) for row, column in np.argwhere(likely) if np.array_equal(view[row, column], part)]
    assert len(found) == 1
    return found[0]


# -- the panels ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("plane", ["axial", "sagittal", "coronal"])
def test_each_panel_is_the_slices_picture_resized_and_all_stand_in_the_usual_order(tmp_path: Path, plane: str) -> None:
    """23 panels, found pixel by pixel. What they are resized from and to is worked out here."""
    study = mri_study(tmp_path / "data")
    [picture] = rendered(study, tmp_path, planes=(plane,))
    whole, originals = pixels(tmp_path, picture), slices(study, tmp_path, plane=plane)
    assert whole.shape == (896, 896) and list(originals) == list(ALL)
    rows, columns = np.nonzero(np.max([np.asarray(one) for one in originals.values()], axis=0))
    box = (int(columns.min()), int(rows.min()), int(columns.max()) + 1, int(rows.max()) + 1)
    cells = {"axial": (5, 5), "sagittal": (4, 6), "coronal": (4, 6)}[plane]
    factor = min((896 // cells[0] - 6) / (box[2] - box[0]), (896 // cells[1] - 18 - 6) / (box[3] - box[1]))
    size = (int((box[2] - box[0]) * factor), int((box[3] - box[1]) * factor))
    places = []
    for name, original in originals.items():
        if not name.startswith("brain_"):  # the masks of brain and parenchyma are alike in these studies
            way = Image.Resampling.NEAREST if name in MASKS else Image.Resampling.BICUBIC
            places.append(place_of(np.asarray(original.crop(box).resize(size, way)), whole))
    order = [(row * cells[1] // 896, column * cells[0] // 896) for row, column in places]
    assert order == sorted(order) and len(set(order)) == len(places) == 21


def test_brain_and_tumour_masks_are_panels_and_keep_their_grey_levels(tmp_path: Path) -> None:
    study = mri_study(tmp_path / "data", series=FEW)
    [picture] = rendered(study, tmp_path, series=("T1", "brain_segmentation", "tumor_segmentation"))
    whole = pixels(tmp_path, picture)
    layout = fit(3, (32, 30), (32, 30), 896)
    assert (layout.columns, layout.rows) == (2, 2)
    brain, tumour = whole[24:448, 448:], whole[448 + 24 :, :448]
    assert set(np.unique(brain)) == {0, 255}
    assert {85, 170, 255} <= set(np.unique(tumour)) <= {0, 85, 170, 255}
    assert np.count_nonzero(tumour) < np.count_nonzero(brain) / 4


def test_the_order_does_not_depend_on_the_order_of_the_files(tmp_path: Path) -> None:
    study = mri_study(tmp_path / "data", series=FEW)
    turned = study.model_copy(update={"images": dict(reversed(study.images.items()))})
    one, two = rendered(study, tmp_path / "1"), rendered(turned, tmp_path / "2")
    assert one == two
    assert (tmp_path / "1/d" / one[0].path).read_bytes() == (tmp_path / "2/d" / two[0].path).read_bytes()


def test_three_planes_are_three_pictures_at_the_levels_of_the_slices(tmp_path: Path) -> None:
    study = mri_study(tmp_path / "data", series=FEW)
    planes = ("axial", "sagittal", "coronal")
    pictures = rendered(study, tmp_path, planes=planes)
    assert [(one.order, one.name, one.plane) for one in pictures] == [
        (0, "montage, axial", "axial"), (1, "montage, sagittal", "sagittal"), (2, "montage, coronal", "coronal"),
    ]  # fmt: skip
    for one, plane in zip(pictures, planes, strict=True):
        views: dict[str, View] = {"slice": SliceView(series="T1", plane=plane)}
        [alone] = render_study(study, views, tmp_path / "s" / "images" / plane)
        fields = ("plane", "slice_index", "position_mm", "chosen_by", "orientation")
        assert {name: getattr(one, name) for name in fields} == {name: getattr(alone, name) for name in fields}
    assert pictures[0].slice_index == 12 and pictures[0].position_mm == -28.0


def test_a_window_of_the_config_reaches_its_panel_and_no_other(tmp_path: Path) -> None:
    study = mri_study(tmp_path / "data", series=FEW)
    [plain], [windowed] = (
        rendered(study, tmp_path / str(n), series=FEW, windows=windows)
        for n, windows in enumerate([{}, {"T1c": (0, 9000)}])
    )
    one, two = pixels(tmp_path / "0", plain), pixels(tmp_path / "1", windowed)
    differs = [bool((a != b).any()) for a, b in zip(quarters(one), quarters(two), strict=True)]
    assert differs == [False, True, False, False]
    assert windowed.scaling is not None and "T1c 0 to 9000: as configured" in windowed.scaling


def quarters(whole: np.ndarray) -> list[np.ndarray]:
    half = whole.shape[0] // 2
    return [whole[:half, :half], whole[:half, half:], whole[half:, :half], whole[half:, half:]]


# -- names -----------------------------------------------------------------------------------------------------------


def test_every_panel_has_its_name_above_it_and_another_name_changes_nothing_else() -> None:
    grey = Image.fromarray(np.full((30, 32), 128, dtype=np.uint8))
    one = np.asarray(compose([("T1", grey), ("T2", grey), ("FLAIR", grey), ("ADC", grey)], 512))
    two = np.asarray(compose([("T1", grey), ("T2", grey), ("FLAIR", grey), ("SWI", grey)], 512))
    strip = 10  # of 512 pixels
    for quarter in quarters(one):
        assert quarter[:strip].max() > 200, "no letters"
    differs = np.argwhere(one != two)
    assert len(differs) > 0
    assert (differs[:, 0] >= 256).all() and (differs[:, 0] < 256 + strip + 2).all() and (differs[:, 1] >= 256).all()


def test_names_of_all_23_series_are_legible_at_896_pixels(tmp_path: Path) -> None:
    """At least 13 points, each within its own cell; panels of a real study's size have an edge of 150 pixels."""
    layout = fit(23, (240, 240), (240, 240), 896)
    texts = [montage.LABELS.get(name, name) for name in ALL]
    font = montage._font(texts, layout)
    assert font.size >= 13
    assert max(font.getlength(text) for text in texts) <= 896 / layout.columns - 6
    assert max(layout.panel) >= 150


def test_a_name_that_is_too_long_for_its_panel_is_set_smaller() -> None:
    layout = fit(23, (240, 240), (240, 240), 896)
    long = "a_series_with_a_very_long_name"
    assert montage._font(["T1"], layout).size > montage._font(["T1", long], layout).size
    assert montage._font([long], layout).getlength(long) <= 896 / 5


# -- what is not there -----------------------------------------------------------------------------------------------


def test_a_listed_series_that_the_study_lacks_keeps_its_place_empty_and_is_named(tmp_path: Path) -> None:
    study = mri_study(tmp_path / "data", series=FEW)
    left_out: list[dict[str, str]] = []
    [whole] = rendered(study, tmp_path / "1", series=FEW)
    [lacking] = rendered(without(study, "T1c"), tmp_path / "2", left_out, series=FEW)
    assert lacking.name == "montage, axial (without T1c)"
    assert left_out == [{"view": "montage", "series": "T1c", "reason": "missing: the study has no such series"}]
    one, two = quarters(pixels(tmp_path / "1", whole)), quarters(pixels(tmp_path / "2", lacking))
    assert [np.array_equal(a, b) for a, b in zip(one, two, strict=True)] == [True, False, True, True]
    assert np.array_equal(one[1][:18], two[1][:18]), "its name stays"
    assert two[1][24:].max() < 100 and np.count_nonzero(two[1][24:]) < 5_000, "a frame and a word"


def test_under_all_a_series_that_can_t_be_used_keeps_its_place_and_one_that_never_was_has_none(tmp_path: Path) -> None:
    study = mri_study(tmp_path / "data", series=FEW)
    unusable = without(study, "T1c").model_copy(update={"attributes": {"unusable T1c": "A_T1c.nii.gz: empty file"}})
    left_out: list[dict[str, str]] = []
    [one], [two], [three] = (
        rendered(each, tmp_path / str(n), left_out) for n, each in enumerate([study, unusable, without(study, "T1c")])
    )
    assert [each.name for each in (one, two, three)] == [
        "montage, axial",
        "montage, axial (without T1c)",
        "montage, axial",
    ]
    assert [each["reason"] for each in left_out] == ["A_T1c.nii.gz: empty file"]
    first, second = pixels(tmp_path / "0", one), pixels(tmp_path / "1", two)
    layout = fit(7, (32, 30), (32, 30), 896)
    left, top, right, bottom = layout.cell(1)
    elsewhere = np.ones(first.shape, dtype=bool)
    elsewhere[top:bottom, left:right] = False
    assert np.array_equal(first[elsewhere], second[elsewhere]) and not np.array_equal(first, second)


def test_a_series_that_lies_elsewhere_has_an_empty_panel(tmp_path: Path) -> None:
    import nibabel as nib

    study = mri_study(tmp_path / "data", series=FEW)
    image = nib.load(study.images["SWI"])
    far = image.affine.copy()
    far[2, 3] += 500
    nib.save(nib.Nifti1Image(np.asarray(image.dataobj), far), study.images["SWI"])
    left_out: list[dict[str, str]] = []
    [picture] = rendered(study, tmp_path, left_out)
    assert picture.name == "montage, axial (without SWI)"
    assert [(each["series"], "does not reach" in each["reason"]) for each in left_out] == [("SWI", True)]


def test_a_damaged_file_refuses_the_study_and_names_it(tmp_path: Path) -> None:
    study = mri_study(tmp_path / "data", series=FEW)
    path = Path(study.images["SWI"])
    path.write_bytes(path.read_bytes()[:2000])
    with pytest.raises(BadFile, match=r"^A_SWI\.nii\.gz: truncated"):
        rendered(study, tmp_path)


def test_masks_alone_are_no_montage(tmp_path: Path) -> None:
    study = without(mri_study(tmp_path / "data", series=FEW), *FEW)
    with pytest.raises(BadFile, match="missing: there is nothing to make a montage of"):
        rendered(study, tmp_path, series=FEW)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"planes": ()}, "the list is empty"),
        ({"planes": ("axial", "axial")}, "duplicate 'axial'"),
        ({"series": ("T1", "T2"), "windows": {"T3": (0, 1)}}, "no series 'T3'"),
        ({"size": 100}, "greater than or equal to 256"),
    ],
)
def test_what_a_montage_can_t_be_is_refused_by_the_config(fields: dict[str, object], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        MontageView.model_validate({"kind": "montage", **fields})


# -- the grid --------------------------------------------------------------------------------------------------------


@given(count=st.integers(1, 40), width=st.integers(20, 300), height=st.integers(20, 300), size=st.integers(256, 1200))
def test_panels_lie_in_cells_of_their_own_below_their_names(count: int, width: int, height: int, size: int) -> None:
    layout = fit(count, (width, height), (width, height), size)
    taken = np.zeros((size, size), dtype=bool)
    for place in range(count):
        left, top, right, bottom = layout.cell(place)
        x, y = layout.corner(place)
        assert left <= x and x + layout.panel[0] <= right
        assert top + layout.strip <= y and y + layout.panel[1] <= bottom
        assert not taken[top:bottom, left:right].any()
        taken[top:bottom, left:right] = True
    assert layout.columns * (layout.rows - 1) < count <= layout.columns * layout.rows


def test_the_grid_does_not_change_with_what_is_cropped() -> None:
    full, narrow = fit(23, (240, 240), (240, 240), 896), fit(23, (240, 240), (60, 150), 896)
    assert (full.columns, full.rows) == (narrow.columns, narrow.rows) == (5, 5)
    assert narrow.panel[1] == full.panel[1] and narrow.panel[0] * 150 == pytest.approx(narrow.panel[1] * 60, abs=150)


@given(st.lists(st.tuples(st.integers(0, 19), st.integers(0, 15)), min_size=1, max_size=6))
def test_cropping_leaves_out_nothing_that_is_to_be_seen(lit: list[tuple[int, int]]) -> None:
    """Each picture has one pixel that is not black, of the least grey."""
    pictures = []
    for column, row in lit:
        values = np.zeros((16, 20), dtype=np.uint8)
        values[row, column] = 1
        pictures.append(Image.fromarray(values))
    left, top, right, bottom = visible(pictures) or (0, 0, 0, 0)
    columns, rows = zip(*lit, strict=True)
    assert (left, top, right, bottom) == (min(columns), min(rows), max(columns) + 1, max(rows) + 1)


def test_without_cropping_a_panel_is_the_whole_slice(tmp_path: Path) -> None:
    study = mri_study(tmp_path / "data", series=FEW)
    [picture] = rendered(study, tmp_path, series=FEW, crop=False)
    original = slices(study, tmp_path, series=FEW)["T1"]
    factor = min((448 - 6) / 32, (448 - 18 - 6) / 30)
    size = (int(32 * factor), int(30 * factor))
    assert place_of(np.asarray(original.resize(size, Image.Resampling.BICUBIC)), pixels(tmp_path, picture)) == (
        18 + (448 - 18 - size[1]) // 2, (448 - size[0]) // 2,
    )  # fmt: skip
