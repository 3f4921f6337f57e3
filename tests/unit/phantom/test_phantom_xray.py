"""Semi-synthetic chest X-rays: the truth is in the pixels and in the report, and the seed decides everything."""

from __future__ import annotations

import csv
import dataclasses
import gzip
import importlib.util
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from overread.config import FINDINGS, FindingQuestions
from overread.core.errors import BadInput
from overread.core.records import Study
from overread.questions import truth
from overread_phantom import xray_base, xray_folder
from overread_phantom.source import Phantom
from overread_phantom.xray import (
    IMPLIES,
    PLANTED,
    PREVALENCE,
    PlantedStudy,
    draw_study,
    radiograph,
    study_count,
)
from overread_phantom.xray_base import FULL
from overread_phantom.xray_folder import make
from overread_phantom.xray_grammar import IMPRESSION, NEGATIVE, POSITIVE, UNCERTAIN


def section(patients: int, seed: int = 1) -> Phantom:
    return Phantom.model_validate(
        {
            "source": "phantom",
            "modality": "xray",
            "patients": patients,
            "seed": seed,
            "questions": {"origin": "findings"},
        }
    )


def grey(planted: PlantedStudy, size: int) -> np.ndarray:
    return np.asarray(radiograph(planted, size), dtype=np.float64)


def some_study_with(finding: str) -> PlantedStudy:
    return next(study for study in (draw_study(3, index) for index in range(200)) if study.truth[finding])


# -- truth -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("finding", PLANTED)
def test_what_is_planted_is_in_the_pixels(finding: str) -> None:
    """The same study with and without the finding's plan differs by more than the noise; all else equal, not at all."""
    study = next(
        study
        for study in (draw_study(3, index) for index in range(200))
        if any(p.finding == finding for p in study.plans)
    )
    without = dataclasses.replace(study, plans=tuple(plan for plan in study.plans if plan.finding != finding))
    difference = np.abs(grey(study, 64) - grey(without, 64))
    assert (difference >= 12).sum() >= 3
    assert np.array_equal(grey(study, 64), grey(dataclasses.replace(study), 64))


def test_air_is_darker_and_fluid_brighter_than_the_lung_before() -> None:
    study = next(
        s for s in (draw_study(3, i) for i in range(200)) if s.truth["Pneumothorax"] and s.truth["Pleural Effusion"]
    )
    bare = dataclasses.replace(study, plans=())
    for finding, sign in (("Pneumothorax", -1), ("Pleural Effusion", 1)):
        alone = dataclasses.replace(study, plans=tuple(plan for plan in study.plans if plan.finding == finding))
        change = grey(alone, 128) - grey(bare, 128)
        where = np.abs(change) > 15
        assert where.any()
        assert np.sign(change[where].mean()) == sign


def test_a_large_heart_whitens_the_lung_beside_it_and_leaves_the_spine() -> None:
    """The left heart border moves outward: in the heart's rows the columns beside it become brighter."""
    study = some_study_with("Cardiomegaly")
    large = dataclasses.replace(study, plans=tuple(plan for plan in study.plans if plan.finding == "Cardiomegaly"))
    small = dataclasses.replace(study, plans=())
    rows = slice(int(0.58 * 128), int(0.72 * 128))
    gain = (grey(large, 128) - grey(small, 128))[rows].mean(axis=0)
    middle = gain.shape[0] // 2
    assert gain[middle + 20 : middle + 45].max() > 15
    assert abs(gain[middle - 3 : middle + 3]).max() < 4


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(0, 10_000), st.integers(0, 3))
def test_the_hierarchy_holds_and_labels_never_contradict_the_truth(seed: int, index: int, number: int) -> None:
    study = draw_study(seed, index, number)
    planted = {plan.finding for plan in study.plans}
    assert set(study.truth) == set(PLANTED) <= set(FINDINGS)
    for finding in PLANTED:
        implied = any(study.truth[child] for child in IMPLIES.get(finding, ()))
        assert study.truth[finding] == (finding in planted or implied)
        assert (study.labels.get(finding) == 1) == study.truth[finding]
        assert study.labels.get(finding) in (None, 0, 1, -1)


def test_each_finding_is_about_as_frequent_as_said_and_tells_nothing_about_the_others() -> None:
    """4,000 studies: the standard error of a share is under 0.008, of a correlation 0.016."""
    studies = [draw_study(11, index) for index in range(4000)]
    table = np.array([[study.truth[finding] for finding in PLANTED] for study in studies], dtype=float)
    shares = dict(zip(PLANTED, table.mean(axis=0), strict=True))
    for finding in set(PLANTED) - set(IMPLIES):
        assert shares[finding] == pytest.approx(PREVALENCE[finding], abs=0.03)
    # 1 - 0.95 * 0.84 * 0.84 * 0.85 * 0.84 and 1 - 0.78 * 0.72, by hand
    assert shares["Lung Opacity"] == pytest.approx(0.521, abs=0.03)
    assert shares["Enlarged Cardiomediastinum"] == pytest.approx(0.438, abs=0.03)
    correlation = np.corrcoef(table.T)
    for row, one in enumerate(PLANTED):
        for column, two in enumerate(PLANTED):
            if row != column and two not in IMPLIES.get(one, ()) and one not in IMPLIES.get(two, ()):
                assert abs(correlation[row, column]) < 0.07, (one, two)


def test_the_answers_of_the_default_questions_are_what_the_pixels_show() -> None:
    """Blank and hedged labels count as no, and only what is absent is left blank or hedged."""
    asked = FindingQuestions(origin="findings", findings=PLANTED)
    words = {1: "positive", 0: "negative", -1: "uncertain"}
    for index in range(300):
        planted = draw_study(9, index)
        labels = {finding: words[label] for finding, label in planted.labels.items()}
        study = Study(
            study="s",
            patient="p",
            dataset="cxr",
            modality="xray",
            images={},
            report={},
            labels=labels,
            restricted=False,
        )
        assert all(truth(asked, study, name) == ("yes" if planted.truth[name] else "no") for name in PLANTED)


# -- reports ---------------------------------------------------------------------------------------------------------


def matches(template: str, text: str) -> bool:
    """Whether `text` holds the template's longest fixed part."""
    import re

    parts = re.split(r"\{\w+\}", template)
    return max(parts, key=len).strip(" .,").lower() in text.lower()


def test_the_report_says_what_was_planted_and_denies_nothing_that_is_there() -> None:
    for index in range(150):
        study = draw_study(4, index)
        findings, impression = study.report["findings"], study.report["impression"]
        for plan in study.plans:
            assert any(matches(template, findings) for template in POSITIVE[plan.kind]), (plan, findings)
            assert any(matches(template, impression) for template in IMPRESSION[plan.kind]), (plan, impression)
            if plan.side in ("right", "left"):
                assert plan.side in findings.lower()
        for finding in PLANTED:
            denied = any(sentence in findings for sentence in NEGATIVE[finding])
            hedged = any(sentence in findings for sentence in UNCERTAIN[finding])
            together = finding in ("Pleural Effusion", "Pneumothorax") and (
                "effusion or pneumothorax" in findings or "effusion nor pneumothorax" in findings
            )
            assert (denied or together) == (study.labels.get(finding) == 0), (finding, findings)
            assert hedged == (study.labels.get(finding) == -1)


def test_a_study_with_nothing_planted_reads_as_normal() -> None:
    study = next(study for study in (draw_study(4, index) for index in range(500)) if not study.plans)
    assert not any(study.truth.values())
    assert study.report["impression"].startswith(("No acute", "Normal"))


# -- determinism and sizes -------------------------------------------------------------------------------------------


def test_a_study_depends_only_on_seed_patient_and_number() -> None:
    assert draw_study(5, 7, 1) == draw_study(5, 7, 1)
    assert draw_study(5, 7, 1) != draw_study(5, 7, 2)
    assert draw_study(5, 7, 1) != draw_study(6, 7, 1)
    assert radiograph(draw_study(5, 7), 96).tobytes() == radiograph(draw_study(5, 7), 96).tobytes()


def test_no_two_pictures_are_equal() -> None:
    assert len({radiograph(draw_study(5, index), 64).tobytes() for index in range(40)}) == 40


def test_patients_have_one_to_four_studies_that_differ() -> None:
    counts = [study_count(1, index) for index in range(400)]
    assert set(counts) == {1, 2, 3, 4}
    differ = [draw_study(1, index, 0).truth != draw_study(1, index, 1).truth for index in range(50)]
    assert sum(differ) >= 45


@pytest.mark.parametrize("size", [64, 128, 400])
def test_a_small_picture_is_the_large_one_shrunk(size: int) -> None:
    for index in range(4):
        study = draw_study(8, index)
        small = radiograph(study, size)
        large = radiograph(study).resize(small.size, Image.Resampling.LANCZOS)
        assert max(small.size) == size
        difference = np.abs(np.asarray(small, dtype=float) - np.asarray(large, dtype=float))
        assert difference.mean() < 1.5
        assert np.percentile(difference, 99) < 8


def test_the_base_is_the_real_radiograph_inverted_where_nothing_was_removed() -> None:
    """MONOCHROME1: the largest stored value is air. Below the lungs the base falls where the stored value rises."""
    import pydicom

    stored = pydicom.dcmread(xray_base.base_file()).pixel_array.astype(np.float32)
    small = np.asarray(Image.fromarray(stored).resize(xray_base.FILM, Image.Resampling.BOX))
    left, top, right, bottom = xray_base.CROP
    there = small[top:bottom, left:right]
    here = xray_base.base(*FULL)
    abdomen = (slice(820, 900, 7), slice(100, 800, 7))
    order = np.argsort(there[abdomen].ravel())
    assert (np.diff(here[abdomen].ravel()[order]) <= 1e-3).all()
    assert here[: FULL[1] // 30, :40].mean() < 10  # air above the shoulder is black


def test_without_the_package_the_error_says_which_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(BadInput, match=r"pip install pydicom-data==1\.0\.0"):
        make(section(1), tmp_path)
    assert list(tmp_path.iterdir()) == []


# -- the folder ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("xray")
    make(section(3), root)
    return root


def rows(path: Path) -> list[dict[str, str]]:
    text = gzip.decompress(path.read_bytes()).decode() if path.suffix == ".gz" else path.read_text()
    return list(csv.DictReader(text.splitlines()))


def test_the_folder_has_the_names_and_columns_of_the_release(folder: Path) -> None:
    metadata = rows(folder / "mimic-cxr-2.0.0-metadata.csv.gz")
    assert list(metadata[0])[:9] == [
        "dicom_id", "subject_id", "study_id", "PerformedProcedureStepDescription", "ViewPosition", "Rows", "Columns",
        "StudyDate", "StudyTime",
    ]  # fmt: skip
    labels = rows(folder / "mimic-cxr-2.0.0-chexpert.csv.gz")
    assert list(labels[0]) == ["subject_id", "study_id", *sorted([*FINDINGS, "No Finding"])]
    assert labels == rows(folder / "mimic-cxr-2.0.0-negbio.csv.gz")
    assert list(rows(folder / "mimic-cxr-2.0.0-split.csv.gz")[0]) == ["dicom_id", "study_id", "subject_id", "split"]
    assert "semi-synthetic" in (folder / "SEMI-SYNTHETIC.txt").read_text().lower()
    for row in metadata:
        home = folder / "files" / f"p{row['subject_id'][:2]}" / f"p{row['subject_id']}"
        with Image.open(home / f"s{row['study_id']}" / f"{row['dicom_id']}.jpg") as image:
            assert (image.mode, image.format, image.height, image.width) == (
                "L",
                "JPEG",
                int(row["Rows"]),
                int(row["Columns"]),
            )
        report = (home / f"s{row['study_id']}.txt").read_text()
        assert "\n FINDINGS: \n" in report and "\n IMPRESSION: \n" in report
        assert max(map(len, report.splitlines())) <= 80


def test_no_number_can_be_a_real_patients(folder: Path) -> None:
    """The release's subjects begin with 1 and its studies with 5; all have 8 digits."""
    for row in rows(folder / "mimic-cxr-2.0.0-metadata.csv.gz"):
        assert row["subject_id"].startswith("9") and row["study_id"].startswith("9")


def test_labels_and_truth_say_the_same(folder: Path) -> None:
    truth = {row["study_id"]: row for row in rows(folder / "truth.csv")}
    for row in rows(folder / "mimic-cxr-2.0.0-chexpert.csv.gz"):
        for finding in FINDINGS:
            if finding in PLANTED:
                assert (row[finding] == "1.0") == (truth[row["study_id"]][finding] == "1")
            else:
                assert row[finding] == ""
        positive = [name for name in FINDINGS if row[name] in ("1.0", "-1.0") and name != "Support Devices"]
        assert row["No Finding"] == ("" if positive else "1.0")


def test_fewer_patients_are_the_first_ones_and_workers_change_nothing(folder: Path, tmp_path: Path) -> None:
    make(section(1), tmp_path, workers=2)
    images = sorted(tmp_path.rglob("*.jpg"))
    assert len(images) == study_count(1, 0)
    for path in [*images, *tmp_path.rglob("s*.txt")]:
        assert path.read_bytes() == (folder / path.relative_to(tmp_path)).read_bytes()


def test_tables_hold_no_date_of_writing(folder: Path, tmp_path: Path) -> None:
    """Bytes 4 to 8 of a gzip file are the time of writing: 0 is none."""
    xray_folder.write_folder(1, 1, tmp_path)
    for path in tmp_path.glob("*.gz"):
        assert path.read_bytes()[4:8] == b"\0\0\0\0"


def test_a_new_run_leaves_nothing_of_the_old_one_and_touches_no_other_folder(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.txt").write_text("precious")
    with pytest.raises(BadInput, match=r"`overread studies make` did not write, .*: thesis\.txt"):
        make(section(1), mine)
    assert (mine / "thesis.txt").read_text() == "precious"
    make(section(2), tmp_path / "made")
    make(section(1), tmp_path / "made")
    assert len(list((tmp_path / "made" / "files" / "p90").iterdir())) == 1
