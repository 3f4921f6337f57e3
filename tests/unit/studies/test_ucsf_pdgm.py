"""The UCSF-PDGM reader: what the release looks like, and what can be wrong with it."""

from __future__ import annotations

import gzip
import random
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest
from typer.testing import CliRunner

from overread.config import FileQuestions, UcsfPdgm
from overread.errors import BadInput
from overread.records import Study, read_studies
from overread.studies import ucsf_pdgm
from overread.studies.commands import app
from overread.studies.phantom.marker import mark

CORE = ("T1", "T1c", "T2", "FLAIR", "tumor_segmentation")
GRID = (240, 240, 155)


def header_file(path: Path, shape: tuple[int, ...] = GRID) -> None:
    """A NIfTI file's beginning: the reader looks no further."""
    header = nib.Nifti1Header()
    header.set_data_dtype(np.int16)
    header.set_data_shape(shape)
    header.set_sform(np.diag([-1, -1, 1, 1]), code=1)
    header["vox_offset"], header["magic"] = 352, b"n+1"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(header.binaryblock + bytes(4 + 1000), mtime=0))


def scans(root: Path, study: str, series: tuple[str, ...] = CORE) -> Path:
    folder = root / "UCSF-PDGM-v5" / f"{study}_nifti"
    for name in series:
        header_file(folder / f"{study}_{name}.nii.gz")
    return folder


def section(root: Path, **more: object) -> UcsfPdgm:
    questions = FileQuestions(origin="file", path="questions.jsonl")
    return UcsfPdgm(source="ucsf-pdgm", root=str(root), questions=questions, **more)


def read(root: Path, **more: object) -> dict[str, Study]:
    studies = ucsf_pdgm.read("pdgm", section(root, **more), root)
    assert [study.study for study in studies] == sorted(study.study for study in studies)
    return {study.study: study for study in studies}


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
    made = read(tmp_path, segmentation="swin-unetr", checkpoint="/models/model.pt")
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


def test_a_study_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    scans(tmp_path, "UCSF-PDGM-0004")
    header_file(tmp_path / "older" / "UCSF-PDGM-004_nifti" / "UCSF-PDGM-004_T1.nii.gz")
    with pytest.raises(BadInput, match="there twice"):
        read(tmp_path)


# -- reports, truth --------------------------------------------------------------------------------------------------

REPORT = """MRI BRAIN WITH AND WITHOUT CONTRAST

CLINICAL HISTORY: Seizure.

Findings: A mass lies in the
left frontal lobe.
Ventricles: normal.

IMPRESSION:
1. Glioma.
2. No bleed.
"""


def test_findings_and_impression_are_cut_from_a_report_and_nothing_else_is(tmp_path: Path) -> None:
    texts = {"UCSF-PDGM-0001": REPORT, "UCSF-PDGM-0002": "Just a sentence.", "UCSF-PDGM-0003": "HISTORY: Seizure."}
    (tmp_path / "texts").mkdir()
    for study, text in texts.items():
        scans(tmp_path, study)
        (tmp_path / "texts" / f"{study}.txt").write_text(text)
    studies = read(tmp_path, reports=str(tmp_path / "texts"))
    assert studies["UCSF-PDGM-0001"].report == {
        "findings": "A mass lies in the left frontal lobe. Ventricles: normal.",
        "impression": "1. Glioma. 2. No bleed.",
    }
    for study in ("UCSF-PDGM-0002", "UCSF-PDGM-0003"):
        assert studies[study].report == {}
        assert studies[study].attributes["unusable report"] == "the report has no Findings or Impression heading"
    assert "unusable report" not in studies["UCSF-PDGM-0001"].attributes


def test_reports_come_from_a_folder_or_a_table(tmp_path: Path) -> None:
    for study in ("UCSF-PDGM-0004", "UCSF-PDGM-0005"):
        scans(tmp_path, study)
    texts = tmp_path / "texts"
    texts.mkdir()
    (texts / "UCSF-PDGM-004.txt").write_text(REPORT)
    (tmp_path / "whole.csv").write_text('study,report\nUCSF-PDGM-0004,"' + REPORT + '"\n')
    (tmp_path / "parts.csv").write_text("ID,Findings,Impression\nUCSF-PDGM-004,A mass lies.,Glioma.\n")
    for source in (texts, tmp_path / "whole.csv"):
        studies = read(tmp_path, reports=str(source))
        assert studies["UCSF-PDGM-0004"].report["impression"] == "1. Glioma. 2. No bleed."
        assert studies["UCSF-PDGM-0005"].report == {}
    parts = read(tmp_path, reports=str(tmp_path / "parts.csv"))
    assert parts["UCSF-PDGM-0004"].report == {"findings": "A mass lies.", "impression": "Glioma."}
    (tmp_path / "other.csv").write_text("name,text\n1,2\n")
    with pytest.raises(BadInput, match="needs a column study or id"):
        read(tmp_path, reports=str(tmp_path / "other.csv"))


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
