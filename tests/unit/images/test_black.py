"""Black pictures: as large as what they replace, known by their hash before they are made."""

from __future__ import annotations

from pathlib import Path

import nibabel as nib
import numpy as np
import pytest
from PIL import Image

from data.small_mri import mri_study
from overread.config import View
from overread.core.records import Picture, Study, read_pictures
from overread.images.black import black_twin, is_black
from overread.images.index import index_images, write_views
from overread.images.render import pixel_hash
from overread.views.montage.section import MontageView
from overread.views.slice.section import SliceView
from overread.views.volume.drawing import volume_hash
from overread.views.volume.section import VolumeView

VIEWS: dict[str, View] = {
    "slice": SliceView(series="FLAIR"),
    "montages": MontageView(kind="montage", planes=("axial", "coronal"), size=512),
    "volume": VolumeView(kind="volume"),
    "stack": VolumeView(kind="volume", slices=9),
}


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two studies, the second of which lies elsewhere in its scanner."""
    root = tmp_path_factory.mktemp("black")
    studies = [mri_study(root / "data", name, series=("T1", "FLAIR")) for name in "AB"]
    for path in studies[1].images.values():
        image = nib.load(path)
        moved = image.affine.copy()
        moved[:3, 3] += (3.5, -2.25, 10)
        nib.save(nib.Nifti1Image(np.asarray(image.dataobj), moved), path)
    folder = root / "results" / "d"
    for study in studies:
        assert write_views(study, VIEWS, folder / "images" / study.study / "views.json") is None
    index_images(studies, folder / "images", folder / "images.parquet", folder / "studies_rejected.csv")
    return folder


def test_every_picture_has_a_black_twin_of_its_size_whose_hash_is_known(dataset: Path) -> None:
    pictures = read_pictures(dataset / "images.parquet")
    assert len(pictures) == 2 * (1 + 2 + 1 + 9)
    for picture in pictures:
        twin = black_twin(picture)
        changed = {name for name, value in twin.model_dump().items() if value != picture.model_dump()[name]}
        assert changed <= {"path", "pixels"}
        if picture.depth is None:
            with Image.open(dataset / twin.path) as file:
                assert file.size == (picture.width, picture.height) and file.getextrema() == (0, 0)
                assert pixel_hash(file) == twin.pixels
        else:
            black, own = nib.load(dataset / twin.path), nib.load(dataset / picture.path)
            assert black.shape == own.shape == (picture.width, picture.height, picture.depth)
            assert np.array_equal(black.affine, own.affine) and not np.asarray(black.dataobj).any()
            assert volume_hash(dataset / twin.path) == twin.pixels


def test_each_size_and_place_has_one_file(dataset: Path) -> None:
    names = sorted(path.name for path in (dataset / "images" / "black").iterdir() if not path.name.startswith("."))
    flat = [name for name in names if name.endswith(".png")]
    assert flat == ["32x30.png", "512x512.png"]
    assert len(names) == 4 and all(name.startswith("32x30x20-") for name in names if name not in flat)


def test_black_volumes_are_the_same_bytes_whenever_they_are_made(dataset: Path, tmp_path: Path) -> None:
    from overread.images.black import write_black

    write_black(read_pictures(dataset / "images.parquet"), tmp_path)
    for path in tmp_path.iterdir():
        assert path.read_bytes() == (dataset / "images" / "black" / path.name).read_bytes()
    assert len(list(tmp_path.iterdir())) == 4


def test_a_picture_is_black_only_if_nothing_is_on_it(dataset: Path) -> None:
    pictures = read_pictures(dataset / "images.parquet")
    last = max(picture.order for picture in pictures if picture.view == "stack")
    black = {(one.view, one.order) for one in pictures if is_black(one)}
    assert black == {("stack", last)}, "the slice above the head"
    assert all(is_black(black_twin(one)) for one in pictures)


def test_a_study_of_black_slices_and_others_is_still_told_from_another(dataset: Path) -> None:
    """Slices above the head are alike in all studies: they keep no study from being a substitute."""
    from overread.trials.substitutes import choose_substitutes

    pictures = read_pictures(dataset / "images.parquet")
    studies = [
        Study(study=name, patient=name, dataset="d", modality="mri", images={}, report={}, labels={}, restricted=False)
        for name in "AB"
    ]
    chosen = choose_substitutes(studies, pictures, seed=0)
    assert [(one.study, one.substitute) for one in chosen] == [("A", "B"), ("B", "A")]


def test_a_study_with_the_same_volume_is_no_substitute(dataset: Path) -> None:
    from overread.trials.substitutes import choose_substitutes

    def twin(one: Picture) -> Picture:
        return one.model_copy(update={"study": "C"})

    pictures = [one for one in read_pictures(dataset / "images.parquet") if one.view == "volume"]
    pictures += [twin(one) for one in pictures if one.study == "A"]
    studies = [
        Study(study=name, patient=name, dataset="d", modality="mri", images={}, report={}, labels={}, restricted=False)
        for name in "ABC"
    ]
    chosen = {one.study: one.substitute for one in choose_substitutes(studies, pictures, seed=0)}
    assert chosen["A"] == chosen["C"] == "B" and chosen["B"] in ("A", "C")
