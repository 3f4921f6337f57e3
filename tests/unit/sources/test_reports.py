"""Reports from a folder or a table: the right sections for the right study, and no study spoilt by another."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from data.ucsf_release import read, scans, section
from overread.core.errors import BadInput
from overread.sources.shared.remarks import Remarks
from overread.sources.ucsf_pdgm import reader as ucsf_pdgm

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


def test_the_columns_of_the_reports_are_the_configs(tmp_path: Path) -> None:
    scans(tmp_path, "UCSF-PDGM-0004")
    path = tmp_path / "r.csv"
    path.write_text("accession,text,report\nUCSF-PDGM-0004,Findings: A mass.,not this\n")
    columns = {"study": "accession", "report": "text"}
    study = read(tmp_path, reports=str(path), report_columns=columns)["UCSF-PDGM-0004"]
    assert study.report == {"findings": "A mass."}
    with pytest.raises(BadInput, match=r"r\.csv: no column 'txt'; .*Did you mean text\?.*\(report_columns\)"):
        read(tmp_path, reports=str(path), report_columns={"study": "accession", "report": "txt"})
    with pytest.raises(ValueError, match="is cut into its sections"):
        section(tmp_path, report_columns={"report": "text", "findings": "text"})


def test_two_reports_that_differ_spoil_their_study_and_no_other(tmp_path: Path) -> None:
    for study in ("UCSF-PDGM-0004", "UCSF-PDGM-0005", "UCSF-PDGM-0006"):
        scans(tmp_path, study)
    path = tmp_path / "r.csv"
    path.write_text(
        "study,findings\nUCSF-PDGM-0004,One.\nUCSF-PDGM-004,Two.\nUCSF-PDGM-0005,Same.\nUCSF-PDGM-005,Same.\n"
        "patient 6,Six.\nUCSF-PDGM-0006,\n"
    )
    remarks = Remarks()
    found = ucsf_pdgm.read("pdgm", section(tmp_path, reports=str(path)), tmp_path, remarks)
    studies = {study.study[-1]: study for study in found}
    assert studies["4"].report == {} and "two reports that differ" in studies["4"].attributes["unusable report"]
    assert studies["5"].report == {"findings": "Same."}
    assert studies["6"].attributes["unusable report"] == "the report's Findings and Impression are empty"
    assert [(row.key, row.remark) for row in remarks.rows] == [
        ("row 2", "another report of UCSF-PDGM-0004, with other text: none of them is used"),
        ("row 4", "the report of UCSF-PDGM-0005 is there twice, with the same text: counted once"),
        ("row 5", "'patient 6' is no study's id: left out"),
    ]
    assert remarks.counts["usable studies without a report"] == 2


def test_a_report_that_is_no_text_spoils_its_study_and_no_other(tmp_path: Path) -> None:
    texts = tmp_path / "texts"
    texts.mkdir()
    for number, content in enumerate((b"Findings: A m\xe4ss.", b"", b"Findings: A mass.", b"x" * 1_000_001), start=4):
        scans(tmp_path, f"UCSF-PDGM-000{number}")
        (texts / f"UCSF-PDGM-000{number}.txt").write_bytes(content)
    scans(tmp_path, "UCSF-PDGM-0008")
    os.mkfifo(texts / "UCSF-PDGM-0008.txt")
    studies = {study[-1]: row for study, row in read(tmp_path, reports=str(texts)).items()}
    assert studies["6"].report == {"findings": "A mass."}
    reasons = {"4": "not UTF-8 text", "5": "an empty file", "7": "bytes are no report", "8": "not a regular file"}
    for number, reason in reasons.items():
        assert studies[number].report == {} and reason in studies[number].attributes["unusable report"]
        assert studies[number].problem is None
