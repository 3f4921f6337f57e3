"""The UCSF-PDGM reader: what the release looks like, and what can be wrong with it."""

from __future__ import annotations

import gzip
import os
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from data.ucsf_release import CORE, header_file, read, scans, section
from overread.core.errors import BadInput
from overread.core.records import read_studies
from overread.sources.commands import app
from overread.sources.shared.marker import mark
from overread.sources.shared.remarks import Remarks
from overread.sources.ucsf_pdgm import reader as ucsf_pdgm

# -- what is there ---------------------------------------------------------------------------------------------------


def test_series_are_found_by_their_suffix(tmp_path: Path) -> None:
    folder = scans(tmp_path, "UCSF-PDGM-0004", (*CORE, "T1_bias", "ADC", "brain_segmentation"))
    (folder / "UCSF-PDGM-0004_DTI_eddy.eddy_rotated_bvecs").write_text("0 0 1\n")
    (folder / ".DS_Store").write_bytes(b"x")
    study = read(tmp_path)["UCSF-PDGM-0004"]
    assert set(study.images) == {*CORE, "T1_bias", "ADC", "brain_segmentation"}
    assert study.images["T1c"] == str(folder / "UCSF-PDGM-0004_T1c.nii.gz")
    assert (study.dataset, study.modality, study.patient) == ("pdgm", "mri", "UCSF-PDGM-0004")
    assert study.restricted
    assert not study.semi_synthetic
    assert study.problem is None


def test_scan_folders_may_lie_in_the_root(tmp_path: Path) -> None:
    scans(tmp_path, "UCSF-PDGM-0004")
    assert set(read(tmp_path / "UCSF-PDGM-v5")) == {"UCSF-PDGM-0004"}


def test_metadata_ids_of_three_and_four_digits_name_the_same_scans(tmp_path: Path) -> None:
    for study in ("UCSF-PDGM-0004", "UCSF-PDGM-0391", "UCSF-PDGM-0391_FU016d"):
        scans(tmp_path, study)
    (tmp_path / "UCSF-PDGM-metadata_v5.csv").write_text(
        "ID,Sex,Age at MRI,MGMT status,1p/19q,BraTS21 ID\n"
        "UCSF-PDGM-004,M,66,unknown,,BraTS2021_00097\n"
        "UCSF-PDGM-391,F,50,positive,intact,\n"
        "UCSF-PDGM-0391_FU016d,F,51,positive,Unknown,\n"
    )
    studies = read(tmp_path)
    assert studies["UCSF-PDGM-0004"].attributes == {"Sex": "M", "Age at MRI": "66", "BraTS21 ID": "BraTS2021_00097"}
    assert studies["UCSF-PDGM-0391"].attributes["Age at MRI"] == "50"
    assert studies["UCSF-PDGM-0391_FU016d"].attributes == {"Sex": "F", "Age at MRI": "51", "MGMT status": "positive"}


def test_follow_up_scans_belong_to_their_base_patient(tmp_path: Path) -> None:
    """Today's names and those of older releases, by the list of the release notes."""
    for study in ("UCSF-PDGM-0391", "UCSF-PDGM-0391_FU016d", "UCSF-PDGM-0429_FU003d", "UCSF-PDGM-0138"):
        scans(tmp_path, study)
    assert {name: study.patient for name, study in read(tmp_path).items()} == {
        "UCSF-PDGM-0391": "UCSF-PDGM-0391",
        "UCSF-PDGM-0391_FU016d": "UCSF-PDGM-0391",
        "UCSF-PDGM-0429_FU003d": "UCSF-PDGM-0429",
        "UCSF-PDGM-0138": "UCSF-PDGM-0429",
    }


def test_the_order_of_files_does_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(1, 8):
        scans(tmp_path, f"UCSF-PDGM-{number:04d}")
    usual = read(tmp_path)
    true_glob, true_list = Path.glob, Path.iterdir

    def shuffled(entries: object) -> list[Path]:
        listed = list(entries)  # type: ignore[call-overload]
        random.Random(7).shuffle(listed)
        return listed

    monkeypatch.setattr(Path, "glob", lambda self, pattern: shuffled(true_glob(self, pattern)))
    monkeypatch.setattr(Path, "iterdir", lambda self: shuffled(true_list(self)))
    assert read(tmp_path) == usual


# -- what can be wrong -----------------------------------------------------------------------------------------------


def test_a_bad_file_is_named_with_its_reason_and_the_others_go_on(tmp_path: Path) -> None:
    good = scans(tmp_path, "UCSF-PDGM-0001")
    (scans(tmp_path, "UCSF-PDGM-0002") / "UCSF-PDGM-0002_FLAIR.nii.gz").unlink()
    (scans(tmp_path, "UCSF-PDGM-0003") / "UCSF-PDGM-0003_T1c.nii.gz").write_bytes(b"")
    (scans(tmp_path, "UCSF-PDGM-0004") / "UCSF-PDGM-0004_T2.nii.gz").write_bytes(gzip.compress(b"no header" * 100))
    header_file(scans(tmp_path, "UCSF-PDGM-0005") / "UCSF-PDGM-0005_T1.nii.gz", (240, 240, 100))
    header_file(scans(tmp_path, "UCSF-PDGM-0006") / "UCSF-PDGM-0006_tumor_segmentation.nii.gz", (240, 240, 155, 2))
    problems = {name: study.problem for name, study in read(tmp_path).items()}
    assert problems == {
        good.name.removesuffix("_nifti"): None,
        "UCSF-PDGM-0002": "FLAIR: missing",
        "UCSF-PDGM-0003": "UCSF-PDGM-0003_T1c.nii.gz: empty file",
        "UCSF-PDGM-0004": "UCSF-PDGM-0004_T2.nii.gz: not NIfTI: no header of 348 or 540 bytes",
        "UCSF-PDGM-0005": "UCSF-PDGM-0005_T1.nii.gz: wrong shape 240x240x100; "
        "on this data set's grid it is 240x240x155",
        "UCSF-PDGM-0006": "UCSF-PDGM-0006_tumor_segmentation.nii.gz: wrong shape 240x240x155x2; "
        "on this data set's grid it is 240x240x155",
    }


def test_a_series_that_not_every_view_needs_is_left_out_with_the_reason(tmp_path: Path) -> None:
    folder = scans(tmp_path, "UCSF-PDGM-0001", (*CORE, "ASL", "SWI"))
    (folder / "UCSF-PDGM-0001_ASL.nii.gz").write_bytes(b"")
    study = read(tmp_path)["UCSF-PDGM-0001"]
    assert study.problem is None
    assert set(study.images) == {*CORE, "SWI"}
    assert study.attributes == {"unusable ASL": "UCSF-PDGM-0001_ASL.nii.gz: empty file"}


def test_the_scanners_own_grid_is_allowed_where_the_release_has_it(tmp_path: Path) -> None:
    folder = scans(tmp_path, "UCSF-PDGM-0001")
    header_file(folder / "UCSF-PDGM-0001_DTI_eddy_noreg.nii.gz", (256, 256, 64, 56))
    assert "DTI_eddy_noreg" in read(tmp_path)["UCSF-PDGM-0001"].images


def test_a_tumour_mask_is_not_needed_where_a_network_makes_it(tmp_path: Path) -> None:
    scans(tmp_path, "UCSF-PDGM-0001", ("T1", "T1c", "T2", "FLAIR"))
    assert read(tmp_path)["UCSF-PDGM-0001"].problem == "tumor_segmentation: missing"
    made = read(tmp_path, segmentation={"method": "swin-unetr", "checkpoint": "/models/model.pt"})
    assert made["UCSF-PDGM-0001"].problem is None


@pytest.mark.parametrize("inside", [(), ("notes.txt",), ("UCSF-PDGM-v5/readme.txt",)])
def test_a_folder_without_a_study_says_what_was_looked_for(tmp_path: Path, inside: tuple[str, ...]) -> None:
    for name in inside:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    with pytest.raises(BadInput, match="no study; looked for folders like UCSF-PDGM-0004_nifti"):
        read(tmp_path)


def test_a_missing_folder_or_table_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no such folder"):
        read(tmp_path / "absent")
    scans(tmp_path, "UCSF-PDGM-0001")
    with pytest.raises(BadInput, match=r"absent\.csv: no such file"):
        read(tmp_path, metadata=str(tmp_path / "absent.csv"))
    with pytest.raises(BadInput, match="no such file or folder of reports"):
        read(tmp_path, reports=str(tmp_path / "absent"))


def test_a_study_that_is_there_twice_is_not_used_and_the_others_are(tmp_path: Path) -> None:
    scans(tmp_path, "UCSF-PDGM-0004")
    scans(tmp_path, "UCSF-PDGM-0005")
    header_file(tmp_path / "older" / "UCSF-PDGM-004_nifti" / "UCSF-PDGM-004_T1.nii.gz")
    studies = read(tmp_path)
    assert "there twice" in (studies["UCSF-PDGM-0004"].problem or "")
    assert studies["UCSF-PDGM-0005"].problem is None


def test_a_scan_under_both_of_its_ids_is_counted_once(tmp_path: Path) -> None:
    """Older releases call the follow-up scan 0391_FU016d 0289: both folders hold the same scan of patient 0391."""
    for study in ("UCSF-PDGM-0289", "UCSF-PDGM-0391", "UCSF-PDGM-0391_FU016d", "UCSF-PDGM-0175"):
        scans(tmp_path, study)
    remarks = Remarks()
    studies = {study.study: study for study in ucsf_pdgm.read("pdgm", section(tmp_path), tmp_path, remarks)}
    assert studies["UCSF-PDGM-0289"].problem == (
        "the same scan as UCSF-PDGM-0391_FU016d, under the id of older releases: not counted twice"
    )
    usable = {name: study.patient for name, study in studies.items() if study.problem is None}
    assert usable == {
        "UCSF-PDGM-0175": "UCSF-PDGM-0396",
        "UCSF-PDGM-0391": "UCSF-PDGM-0391",
        "UCSF-PDGM-0391_FU016d": "UCSF-PDGM-0391",
    }
    remarks.count_studies(studies.values())
    assert remarks.counts["studies that can be used"] == 3 and remarks.counts["patients of those"] == 2


@pytest.mark.parametrize(
    ("former", "now"),
    [
        ("0289", "0391_FU016d"), ("0175", "0396_FU175d"), ("0181", "0409_FU001d"),
        ("0138", "0429_FU003d"), ("0278", "0431_FU001d"), ("0315", "0433_FU007d"),
    ],
)  # fmt: skip
def test_rows_and_reports_under_the_former_id_belong_to_the_same_scan(tmp_path: Path, former: str, now: str) -> None:
    scans(tmp_path, f"UCSF-PDGM-{now}")
    (tmp_path / "UCSF-PDGM-metadata_v1.csv").write_text(f"ID,Sex\nUCSF-PDGM-{former},F\n")
    (tmp_path / "reports.csv").write_text(f"study,findings\nUCSF-PDGM-{int(former):03d},A mass.\n")
    study = read(tmp_path, reports=str(tmp_path / "reports.csv"))[f"UCSF-PDGM-{now}"]
    assert study.attributes == {"Sex": "F"}
    assert study.report == {"findings": "A mass."}
    assert study.patient == f"UCSF-PDGM-{now[:4]}"


def test_all_files_of_a_follow_up_scan_are_found_by_their_suffix(tmp_path: Path) -> None:
    folder = scans(tmp_path, "UCSF-PDGM-0396_FU175d", ucsf_pdgm.SERIES)
    header_file(folder / "UCSF-PDGM-0396_FU175d_DTI_eddy_noreg.nii.gz", (256, 256, 64, 56))
    header_file(folder / "UCSF-PDGM-0396_FU175d_ASL_M0.nii.gz", (128, 128, 40))
    study = read(tmp_path)["UCSF-PDGM-0396_FU175d"]
    assert len(study.images) == 24 and set(study.images) == set(ucsf_pdgm.SERIES)
    assert all(Path(path).name == f"UCSF-PDGM-0396_FU175d_{name}.nii.gz" for name, path in study.images.items())


@given(st.integers(1, 9999), st.one_of(st.none(), st.integers(0, 999)))
def test_an_id_of_any_number_of_digits_names_one_scan(number: int, days: int | None) -> None:
    ending = "" if days is None else f"_FU{days:03d}d"
    for digits in range(len(str(number)), 5):
        for text in (f"UCSF-PDGM-{number:0{digits}d}", f"  UCSF-PDGM-{number:0{digits}d}"):
            assert ucsf_pdgm.whole_id(text + ending) == f"UCSF-PDGM-{number:04d}{ending}"
    assert ucsf_pdgm.whole_id(f"UCSF-PDGM-{number:04d}{ending}x") is None


@given(st.text(max_size=30))
def test_what_is_no_id_is_none_and_an_id_is_its_own(text: str) -> None:
    """No id is made out of other text, and reading an id again changes nothing."""
    found = ucsf_pdgm.whole_id(text)
    if found is None:
        return
    assert text.strip().startswith("UCSF-PDGM-")
    assert ucsf_pdgm.whole_id(found) == found


@pytest.mark.parametrize(
    "text", ["004", "ucsf-pdgm-0004", "UCSF-PDGM-00004", "UCSF-PDGM-0004_FU", "UCSF-PDGM-", "UCSF-PDGM-٠٠٠٤", ""]
)
def test_no_id_is_guessed(text: str) -> None:
    assert ucsf_pdgm.whole_id(text) is None


def test_odd_files_and_rows_are_told_with_their_keys(tmp_path: Path) -> None:
    folder = scans(tmp_path, "UCSF-PDGM-0004", (*CORE, "ASL", "SWI"))
    header_file(folder / "UCSF-PDGM-0004_PET.nii.gz")
    header_file(folder / "UCSF-PDGM-0005_ADC.nii.gz")
    header_file(folder / "UCSF-PDGM-0004_SWI.nii")
    (tmp_path / "UCSF-PDGM-v5" / "UCSF-PDGM-4b_nifti").mkdir()
    (tmp_path / "UCSF-PDGM-metadata_v5.csv").write_text(
        "ID,Sex,Age at MRI\nUCSF-PDGM-004,M,sixty\nPDGM-5,F,50\nUCSF-PDGM-006,F\n"
        "UCSF-PDGM-007,F,1\nUCSF-PDGM-0007,F,2\n"
    )
    remarks = Remarks()
    (study,) = ucsf_pdgm.read("pdgm", section(tmp_path), tmp_path, remarks)
    assert study.problem is None
    assert study.attributes == {
        "Sex": "M",
        "Age at MRI": "sixty",
        "unusable ADC": "UCSF-PDGM-0005_ADC.nii.gz: another study's name",
        "unusable SWI": "SWI: two files: UCSF-PDGM-0004_SWI.nii, UCSF-PDGM-0004_SWI.nii.gz; keep one",
    }
    assert sorted((Path(row.file).name, row.key, row.remark) for row in remarks.rows) == [
        ("UCSF-PDGM-0004_PET.nii.gz", "UCSF-PDGM-0004", "no series of this data set: left out"),
        ("UCSF-PDGM-0004_SWI.nii", "UCSF-PDGM-0004", study.attributes["unusable SWI"]),
        ("UCSF-PDGM-0005_ADC.nii.gz", "UCSF-PDGM-0004", study.attributes["unusable ADC"]),
        ("UCSF-PDGM-4b_nifti", "UCSF-PDGM-4b_nifti", "no folder of a study: its name is not a valid id"),
        ("UCSF-PDGM-metadata_v5.csv", "PDGM-5", "row 2: no id of a study: left out"),
        (
            "UCSF-PDGM-metadata_v5.csv",
            "UCSF-PDGM-0007",
            "row 5: UCSF-PDGM-0007 has rows that differ: none of them is used",
        ),
        ("UCSF-PDGM-metadata_v5.csv", "UCSF-PDGM-004", "row 1: Age at MRI is 'sixty': kept as it stands"),
        ("UCSF-PDGM-metadata_v5.csv", "UCSF-PDGM-006", "row 3: 2 cells where the head has 3: left out"),
    ]


def test_the_overlap_with_brats_is_an_attribute_and_counted(tmp_path: Path) -> None:
    for study in ("UCSF-PDGM-0004", "UCSF-PDGM-0005", "UCSF-PDGM-0006"):
        scans(tmp_path, study)
    (tmp_path / "UCSF-PDGM-metadata_v5.csv").write_text(
        "ID,BraTS21 ID,BraTS21 Segmentation Cohort\nUCSF-PDGM-004,BraTS2021_00097,Training\nUCSF-PDGM-005,,\n"
        "UCSF-PDGM-006,unknown,Unknown\nUCSF-PDGM-541,BraTS2021_00098,Training\n"
    )
    remarks = Remarks()
    studies = ucsf_pdgm.read("pdgm", section(tmp_path), tmp_path, remarks)
    assert [study.attributes for study in studies] == [
        {"BraTS21 ID": "BraTS2021_00097", "BraTS21 Segmentation Cohort": "Training"},
        {},
        {},
    ]
    assert remarks.counts["usable studies in the training data of BraTS 2021"] == 1
    assert remarks.counts["rows of metadata without scans"] == 1


def test_links_out_of_the_folder_and_pipes_are_not_opened(tmp_path: Path) -> None:
    folder = scans(tmp_path / "data", "UCSF-PDGM-0004", (*CORE, "ADC"))
    outside = tmp_path / "elsewhere.nii.gz"
    (folder / "UCSF-PDGM-0004_T1.nii.gz").rename(outside)
    (folder / "UCSF-PDGM-0004_T1.nii.gz").symlink_to(outside)
    (folder / "UCSF-PDGM-0004_ADC.nii.gz").unlink()
    os.mkfifo(folder / "UCSF-PDGM-0004_ADC.nii.gz")
    (folder / "UCSF-PDGM-0004_SWI.nii.gz").symlink_to(folder / "UCSF-PDGM-0004_T2.nii.gz")
    study = read(tmp_path / "data")["UCSF-PDGM-0004"]
    assert f"a symbolic link leads outside the data set's folder, to {outside}" in (study.problem or "")
    assert study.attributes["unusable ADC"] == "UCSF-PDGM-0004_ADC.nii.gz: not a regular file"
    assert "SWI" in study.images
    assert read(tmp_path / "data", follow_links=True)["UCSF-PDGM-0004"].problem is None


# -- truth ----------------------------------------------------------------------------------------------------------


def test_truth_is_taken_only_from_a_folder_that_is_marked_as_made(tmp_path: Path) -> None:
    scans(tmp_path, "UCSF-PDGM-0138")
    (tmp_path / "truth.csv").write_text("study,patient,location,fact_side\nUCSF-PDGM-0138,x,Left frontal lobe,left\n")
    study = read(tmp_path)["UCSF-PDGM-0138"]
    assert (study.labels, study.semi_synthetic) == ({}, False)
    mark(tmp_path, "Made.")
    study = read(tmp_path)["UCSF-PDGM-0138"]
    assert (study.labels, study.semi_synthetic) == ({"location": "Left frontal lobe"}, True)
    assert study.attributes == {"fact_side": "left"}
    assert study.patient == "UCSF-PDGM-0138"
    (tmp_path / "truth.csv").unlink()
    with pytest.raises(BadInput, match="was not finished; make it again"):
        read(tmp_path)


# -- the commands ----------------------------------------------------------------------------------------------------


def test_the_command_reads_whatever_is_asked_of_the_studies(tmp_path: Path) -> None:
    """The section's `questions` are not looked at: what is asked does not change what is read."""
    scans(tmp_path / "data", "UCSF-PDGM-0001")
    (scans(tmp_path / "data", "UCSF-PDGM-0002") / "UCSF-PDGM-0002_T1.nii.gz").unlink()
    text = '{"source": "ucsf-pdgm", "root": "data", "questions": {"origin": "grammar"}}'
    arguments = [
        "read",
        str(tmp_path / "data"),
        "--dataset",
        "d",
        "--section",
        text,
        "--out",
        str(tmp_path / "s.parquet"),
    ]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert "2 studies, 1 of them can't be used" in result.output
    assert [study.study for study in read_studies(tmp_path / "s.parquet")] == ["UCSF-PDGM-0001"]
    assert len(read_studies(tmp_path / "s.parquet", with_problems=True)) == 2


def test_a_data_set_of_which_nothing_can_be_used_is_an_error(tmp_path: Path) -> None:
    (scans(tmp_path / "data", "UCSF-PDGM-0002") / "UCSF-PDGM-0002_T1.nii.gz").unlink()
    text = '{"source": "ucsf-pdgm", "root": "data"}'
    arguments = [
        "read",
        str(tmp_path / "data"),
        "--dataset",
        "d",
        "--section",
        text,
        "--out",
        str(tmp_path / "s.parquet"),
    ]
    result = CliRunner().invoke(app, arguments)
    assert isinstance(result.exception, BadInput)
    assert "none of 1 studies can be used; the first: UCSF-PDGM-0002: T1: missing" in str(result.exception)


@pytest.mark.parametrize("text", ["[]", "{", '{"source": "ucsf-pdgm", "rot": "x"}', '{"source": "atlas"}'])
def test_a_bad_section_is_one_line(tmp_path: Path, text: str) -> None:
    arguments = ["read", str(tmp_path), "--dataset", "d", "--section", text, "--out", str(tmp_path / "s.parquet")]
    result = CliRunner().invoke(app, arguments)
    assert isinstance(result.exception, BadInput)
    assert str(result.exception).startswith("--section: ")
    assert "\n" not in str(result.exception)
