"""The MRI phantom with all 23 files of a UCSF-PDGM study: what each is, and that the seven main ones stay the same."""

from __future__ import annotations

import gzip
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest
from pydantic import ValidationError
from scipy.ndimage import center_of_mass, map_coordinates

from overread import config
from overread.core.records import Study
from overread.images import render_study
from overread.sources.shared.remarks import Remarks
from overread.views.slice.section import SliceView
from overread_phantom import mri
from overread_phantom.source import Phantom

THE_23 = {
    *(f"{name}{bias}" for name in ("T1", "T1c", "T2", "FLAIR", "DWI", "SWI") for bias in ("", "_bias")),
    "ADC", "ASL", *(f"DTI_eddy_{name}" for name in ("FA", "MD", "L1", "L2", "L3", "noreg")),
    "brain_segmentation", "brain_parenchyma_segmentation", "tumor_segmentation",
}  # fmt: skip
NAME = "UCSF-PDGM-0001"


def section(series: str) -> Phantom:
    return Phantom(
        source="phantom",
        modality="mri",
        studies=1,
        series=series,  # type: ignore[arg-type]
        questions=config.GrammarQuestions(origin="grammar"),
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("all") / "source"
    mri.make(section("all"), folder)
    return folder


@pytest.fixture(scope="module")
def study(folder: Path) -> Study:
    [one] = section("all").read("phantom", folder, Remarks())
    return one


def values(study: Study, series: str) -> np.ndarray:
    return np.asarray(nib.load(study.images[series]).dataobj, dtype=np.float32)


def test_a_study_has_all_23_files_and_the_directions(folder: Path, study: Study) -> None:
    assert set(study.images) == THE_23
    assert study.problem is None
    home = folder / "UCSF-PDGM-v5" / f"{NAME}_nifti"
    others = {path.name for path in home.iterdir()} - {f"{NAME}_{series}.nii.gz" for series in THE_23}
    assert others == {f"{NAME}_DTI_eddy.eddy_rotated_bvecs"}
    directions = np.loadtxt(home / others.pop())
    assert directions.shape == (3, nib.load(study.images["DTI_eddy_noreg"]).shape[3])
    lengths = np.linalg.norm(directions, axis=0)
    assert lengths[0] == 0
    assert lengths[1:] == pytest.approx(1, abs=1e-5)


def test_the_main_series_are_those_of_the_small_phantom_to_the_byte(folder: Path, tmp_path: Path) -> None:
    mri.make(section("main"), tmp_path / "source")
    main = sorted((tmp_path / "source").rglob("*.nii.gz"))
    assert len(main) == 9
    for path in main:
        other = folder / path.relative_to(tmp_path / "source")
        assert gzip.decompress(other.read_bytes()) == gzip.decompress(path.read_bytes()), path.name
        assert other.read_bytes() == path.read_bytes(), path.name
    for name in ("truth.csv", "questions.jsonl"):
        assert (folder / name).read_bytes() == (tmp_path / "source" / name).read_bytes()


def test_all_but_the_diffusion_series_lie_on_the_lps_grid_as_scaled_int16(study: Study) -> None:
    for series in THE_23 - {"DTI_eddy_noreg"}:
        image = nib.load(study.images[series])
        assert image.shape == (240, 240, 155), series
        assert image.get_data_dtype() == np.int16
        assert nib.aff2axcodes(image.affine) == ("L", "P", "S")
        assert image.dataobj[0, 0, 0] == 0.0


def test_the_diffusion_series_lies_elsewhere_but_shows_the_same_brain(study: Study) -> None:
    """Looked up by its affine, its first volume is the T2; read by index it is not."""
    image = nib.load(study.images["DTI_eddy_noreg"])
    assert nib.aff2axcodes(image.affine) == ("L", "A", "S")
    assert image.shape[:3] == (256, 256, 48)
    assert image.header.get_zooms()[:3] == pytest.approx((0.9375, 0.9375, 3.0))
    t2 = nib.load(study.images["T2"])
    first = np.asarray(image.dataobj[..., 0], dtype=np.float32)
    k = 70
    i, j = np.meshgrid(np.arange(60, 180, 3), np.arange(50, 200, 3), indexing="ij")
    own = np.stack([i.ravel(), j.ravel(), np.full(i.size, k), np.ones(i.size)])
    at = (np.linalg.inv(image.affine) @ t2.affine @ own)[:3]
    here = map_coordinates(np.asarray(t2.dataobj, dtype=np.float32), own[:3], order=1)
    assert np.corrcoef(here, map_coordinates(first, at, order=1))[0, 1] > 0.9
    assert np.corrcoef(here, first[own[0].astype(int), own[1].astype(int), 20])[0, 1] < 0.7


def test_bias_is_what_the_coil_added(study: Study) -> None:
    """Scan over corrected scan is a smooth factor near 1; for DWI, whose coil is even, it is nearer still."""
    inside = values(study, "brain_parenchyma_segmentation") > 0.5
    spread = {}
    for series in ("T1", "FLAIR", "DWI"):
        scan, corrected = values(study, series), values(study, f"{series}_bias")
        shown = inside & (corrected > 100)
        ratio = scan[shown] / corrected[shown]
        assert 0.9 < ratio.min() < ratio.max() < 1.1
        spread[series] = ratio.std()
    assert spread["DWI"] < spread["T1"]
    assert spread["T1"] == pytest.approx(spread["FLAIR"], rel=0.1)


def test_maps_are_signed_and_their_tissues_differ_as_they_should(study: Study) -> None:
    slab = (slice(None), slice(None), slice(60, 90))
    brain = values(study, "brain_segmentation")[slab] > 0.5
    healthy = brain & (values(study, "tumor_segmentation")[slab] < 0.5)
    t1 = values(study, "T1")[slab]
    white, fluid = healthy & (t1 > np.percentile(t1[healthy], 80)), healthy & (t1 < np.percentile(t1[healthy], 3))
    grey = healthy & (np.abs(t1 - np.percentile(t1[healthy], 35)) < 20)
    mean = {
        series: {name: float(values(study, series)[slab][where].mean()) for name, where in tissues.items()}
        for tissues in [{"white": white, "grey": grey, "fluid": fluid}]
        for series in ("ASL", "ADC", *(f"DTI_eddy_{name}" for name in ("FA", "MD", "L1", "L2", "L3")))
    }
    assert mean["DTI_eddy_FA"]["white"] > 2 * mean["DTI_eddy_FA"]["grey"]
    assert mean["DTI_eddy_L1"]["white"] > 1.5 * mean["DTI_eddy_L2"]["white"] > 1.5 * mean["DTI_eddy_L3"]["white"]
    assert mean["DTI_eddy_MD"]["fluid"] > 2 * mean["DTI_eddy_MD"]["white"]
    assert mean["DTI_eddy_MD"]["white"] == pytest.approx(mean["ADC"]["white"], rel=0.15)
    assert mean["ASL"]["grey"] > 1.5 * mean["ASL"]["white"]
    for series in ("ASL", "DTI_eddy_FA"):
        assert (values(study, series) < 0).sum() > 100


def test_the_parenchyma_is_brain_without_fluid(study: Study) -> None:
    brain, parenchyma = (values(study, f"brain{part}_segmentation") > 0.5 for part in ("", "_parenchyma"))
    assert not (parenchyma & ~brain).any()
    adc = values(study, "ADC")
    assert adc[brain & ~parenchyma].mean() > 2 * adc[parenchyma].mean()


@pytest.mark.parametrize("plane", ["axial", "coronal", "sagittal"])
def test_every_series_shows_the_tumour_in_the_same_place(study: Study, tmp_path: Path, plane: str) -> None:
    """Where oedema or enhancing tumour shines, the centre of what is bright is that of the mask's label."""
    from PIL import Image

    pictures = render_study(study, {"v": SliceView(series="all", plane=plane)}, tmp_path / "images" / NAME)
    pixels = {one.series: np.asarray(Image.open(tmp_path / one.path)).astype(float) for one in pictures}
    assert set(pixels) == THE_23
    labels = pixels["tumor_segmentation"]
    tumour, enhancing = labels > 0, labels == 255
    bright = {"FLAIR": tumour, "FLAIR_bias": tumour, "T1c": enhancing, "T1c_bias": enhancing, "ASL": enhancing}
    for series, where in bright.items():
        shown = pixels[series] >= np.percentile(pixels[series][pixels["brain_segmentation"] > 0], 97)
        assert np.linalg.norm(np.subtract(center_of_mass(shown), center_of_mass(where))) < 9, series
    for series in THE_23 - {"tumor_segmentation"}:
        shown = pixels[series] > 40
        middle = np.subtract(center_of_mass(shown), center_of_mass(pixels["brain_segmentation"]))
        assert np.linalg.norm(middle) < 8, series


def test_a_radiograph_has_no_series_to_choose() -> None:
    with pytest.raises(ValidationError, match="a phantom of modality xray takes no 'series'"):
        Phantom(
            source="phantom",
            modality="xray",
            patients=2,
            series="all",
            questions=config.FindingQuestions(origin="findings"),
        )
