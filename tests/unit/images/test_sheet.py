"""Contact sheets: the very pictures with what is known of them, and nothing that does not fit its hash."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from data.small_mri import SHAPE, mri_study, series_values
from overread.config import View
from overread.core.errors import BadInput
from overread.core.records import read_pictures, write_studies
from overread.images.commands import app
from overread.images.index import index_images, write_views
from overread.images.sheet import FIGURE, caption, left_out, preview, sheet, spread, title
from overread.views.montage.section import MontageView
from overread.views.slice.section import SliceView
from overread.views.volume.section import VolumeView

VIEWS: dict[str, View] = {
    "flair": SliceView(series="FLAIR"),
    "four": SliceView(series=("T1", "FLAIR", "brain_segmentation", "tumor_segmentation"), plane="coronal"),
    "montage": MontageView(kind="montage", size=600),
    "stack": VolumeView(kind="volume", slices=20),
    "volume": VolumeView(kind="volume"),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("sheet")
    studies = [mri_study(root / "data", name, series=("T1", "FLAIR"), semi_synthetic=True) for name in "AB"]
    folder = root / "results" / "d"
    write_studies(studies, folder / "studies.parquet")
    for study in studies:
        write_views(study, VIEWS, folder / "images" / study.study / "views.json")
    index_images(studies, folder / "images", folder / "images.parquet", folder / "studies_rejected.csv")
    return folder


def run(*arguments: object) -> str:
    result = CliRunner().invoke(app, ["sheet", *(str(argument) for argument in arguments)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


def page(path: Path) -> np.ndarray:
    with Image.open(path) as file:
        assert file.mode == "L"
        return np.asarray(file)


def times(part: np.ndarray, whole: np.ndarray) -> int:
    """How often `part` stands in `whole`, pixel by pixel."""
    view = np.lib.stride_tricks.sliding_window_view(whole, part.shape)
    rows, columns = (np.linspace(0, n - 1, 6).astype(int) for n in part.shape)
    likely = np.all([view[:, :, y, x] == part[y, x] for y in rows for x in columns], axis=0)
    return sum(np.array_equal(view[row, column], part) for row, column in np.argwhere(likely))


def test_a_page_shows_every_picture_of_the_study_and_none_of_another(made: Path, tmp_path: Path) -> None:
    """Small pictures are not made smaller, so they are found on the page as they are."""
    assert run(made, "--out", tmp_path) == f"2 pages in {tmp_path}\n"
    pages = {name: page(tmp_path / f"{name}.png") for name in "AB"}
    small = [one for one in read_pictures(made / "images.parquet") if one.view in ("flair", "four") and one.width < 100]
    assert len(small) == 2 * 5
    for picture in small:
        part = page(made / picture.path)
        if "segmentation" not in picture.series:
            assert times(part, pages[picture.study]) == 1
            assert times(part, pages["B" if picture.study == "A" else "A"]) == 0


def test_one_study_can_be_asked_for(made: Path, tmp_path: Path) -> None:
    assert run(made, "--out", tmp_path, "--study", "B") == f"1 page in {tmp_path}\n"
    assert [path.name for path in tmp_path.glob("[!.]*")] == ["B.png"]
    with pytest.raises(BadInput, match=r"images\.parquet: no study 'C'; there are: A, B"):
        run(made, "--out", tmp_path, "--study", "C")


def test_the_same_pictures_give_the_same_bytes(made: Path, tmp_path: Path) -> None:
    for place in ("1", "2"):
        run(made, "--out", tmp_path / place, "--study", "A")
    assert (tmp_path / "1/A.png").read_bytes() == (tmp_path / "2/A.png").read_bytes()


def test_a_caption_holds_name_slice_position_reason_size_and_hash(made: Path) -> None:
    pictures = {(one.view, one.order): one for one in read_pictures(made / "images.parquet") if one.study == "A"}
    flair, volume = pictures["flair", 0], pictures["volume", 0]
    facing = "left to right: R to L; top to bottom: A to P"
    assert caption(flair) == [
        "FLAIR, axial", "slice 12, -28 mm", "most tumour voxels", facing, "32 x 30 pixels", flair.pixels[:12],
    ]  # fmt: skip
    assert caption(volume) == ["FLAIR, volume", "32 x 30 x 20 voxels", volume.pixels[:12]]
    assert caption(flair, shared=["most tumour voxels", facing, "32 x 30 pixels"]) == [
        "FLAIR, axial", "slice 12, -28 mm", flair.pixels[:12],
    ]  # fmt: skip


def test_another_name_changes_the_page_and_only_where_the_name_stands(made: Path) -> None:
    pictures = [one for one in read_pictures(made / "images.parquet") if (one.study, one.view) == ("A", "flair")]
    renamed = [pictures[0].model_copy(update={"name": "FLAIR, arial"})]
    one, two = (np.asarray(sheet(made, each, "Title")) for each in (pictures, renamed))
    assert one.shape == two.shape
    differs = np.argwhere(one != two)
    assert len(differs) > 0 and np.ptp(differs[:, 0]) < 20 and np.ptp(differs[:, 1]) < 60


def test_what_a_view_had_to_go_without_stands_below_its_name(made: Path, tmp_path: Path) -> None:
    pictures = [one for one in read_pictures(made / "images.parquet") if (one.study, one.view) == ("A", "flair")]
    plain, said = (
        np.asarray(sheet(made, pictures, None, left_out=each)) for each in ({}, {"flair": ["left out: SWI"]})
    )
    assert said.shape[0] > plain.shape[0] and said.shape[1] == plain.shape[1]
    assert np.array_equal(plain[-120:], said[-120:])
    study = mri_study(tmp_path / "data", series=("T1", "FLAIR"))
    lacking = study.model_copy(update={"attributes": {"unusable SWI": "A_SWI.nii.gz: empty file"}})
    write_views(lacking, VIEWS, tmp_path / "views.json")
    assert left_out(tmp_path / "views.json") == {"montage": ["left out: SWI: A_SWI.nii.gz: empty file"]}


def test_the_title_says_whose_pictures_they_are_and_what_they_may_be_used_for(tmp_path: Path) -> None:
    study = mri_study(tmp_path, series=(), semi_synthetic=True)
    assert title(study) == "d, study A, patient pA   semi-synthetic data"
    real = study.model_copy(update={"semi_synthetic": False, "restricted": True})
    assert title(real) == "d, study A, patient pA   restricted: not to be passed on"


def test_a_picture_that_is_not_the_one_rendered_is_refused(made: Path) -> None:
    for picture in read_pictures(made / "images.parquet")[:1] + read_pictures(made / "images.parquet")[-1:]:
        changed = picture.model_copy(update={"pixels": "0" * 64})
        with pytest.raises(BadInput, match=r"other pixels than images|its content has changed"):
            sheet(made, [changed], None)
    gone = picture.model_copy(update={"path": "images/gone.png"})
    with pytest.raises(BadInput, match=r"gone\.png: no such file; render the images of this dataset again"):
        sheet(made, [gone], None)


def test_a_volume_is_previewed_by_its_middle_slices_the_patients_right_on_the_left(made: Path) -> None:
    """Axial, sagittal and coronal, worked out from the values in patient space."""
    [volume] = [one for one in read_pictures(made / "images.parquet") if (one.study, one.view) == ("A", "volume")]
    values = series_values("FLAIR", 66).astype(float)
    high = np.percentile(values[values != 0], 99.5)
    right, front, top = (n // 2 for n in SHAPE)
    axial, sagittal, coronal = values[:, :, top], values[right], values[:, front]
    expected = np.zeros((30, 32 + 30 + 32))
    expected[:, :32] = axial[::-1, ::-1].T
    expected[5:25, 32:62] = sagittal[::-1, ::-1].T
    expected[5:25, 62:] = coronal[::-1, ::-1].T
    shown = np.asarray(preview(made / volume.path, volume.pixels))
    assert np.abs(shown - np.clip(expected / high, 0, 1) * 255).max() <= 0.51


def test_a_figure_shows_some_pictures_of_a_view_with_many(made: Path) -> None:
    pictures = [one for one in read_pictures(made / "images.parquet") if (one.study, one.view) == ("A", "stack")]
    whole, few = (np.asarray(sheet(made, pictures, None, given)) for given in (None, FIGURE))
    parts = [page(made / one.path) for one in pictures]
    lit = [place for place, part in enumerate(parts) if part.any()]
    assert [place for place in lit if times(parts[place], whole) == 1] == lit
    assert [place for place in lit if times(parts[place], few) == 1] == [
        place for place in spread(20, 6) if place in lit
    ]


def test_things_are_spread_evenly_and_not_from_the_very_ends() -> None:
    assert spread(85, 6) == [7, 21, 35, 49, 63, 77]  # 7.08, 21.25, 35.4, 49.6, 63.75, 77.9
    assert spread(3, 6) == [0, 1, 2]
