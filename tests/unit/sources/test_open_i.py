"""Reading Open-I: the frontal image that a table names, the labels that an indexer wrote, and nothing guessed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from data.open_i_release import OpenIRelease
from overread.config import FINDINGS
from overread.core.errors import BadInput
from overread.core.records import Study
from overread.sources.open_i.reader import image_key, read
from overread.sources.open_i.section import OpenI
from overread.sources.shared.remarks import Remarks


@pytest.fixture
def release(tmp_path: Path) -> OpenIRelease:
    return OpenIRelease(tmp_path / "open-i")


def section(release: OpenIRelease, **more: Any) -> OpenI:
    content = {
        "source": "open-i",
        "root": str(release.root),
        "projections": str(release.write_projections()),
        "mesh": "own",
        "questions": {"origin": "findings", "not_mentioned": "leave-out"},
        **more,
    }
    return OpenI.model_validate(content)


def studies(release: OpenIRelease, remarks: Remarks | None = None, **more: Any) -> dict[str, Study]:
    return {study.study: study for study in read("oi", section(release, **more), release.root, remarks)}


# -- the whole study -------------------------------------------------------------------------------------------------


def test_a_whole_study_is_read(release: OpenIRelease) -> None:
    path = release.study(7, findings="The heart is\n   large.", major=("Cardiomegaly/mild", "Opacity/lung/base/left"))
    study = studies(release)["CXR7"]
    assert study.problem is None
    assert study.images == {"frontal": str(path)}
    assert study.patient == "CXR7"
    assert study.report == {"findings": "The heart is large.", "impression": "Normal chest."}
    assert study.labels == {"Cardiomegaly": "positive", "Lung Opacity": "positive"}
    assert study.attributes == {"MeSH major": "Cardiomegaly/mild; Opacity/lung/base/left"}
    assert not study.restricted


def test_studies_come_in_the_order_of_their_numbers_whatever_the_files_are_called(release: OpenIRelease) -> None:
    for number in (10, 9, 100):
        release.study(number)
    assert list(studies(release)) == ["CXR9", "CXR10", "CXR100"]


@pytest.mark.parametrize(
    "name",
    [
        "CXR1_1_IM-0001-3001",
        "CXR1_1_IM-0001-3001.png",
        "1_IM-0001-3001.dcm.png",
        "1_IM-0001-3001.DCM",
        "x/1_IM-0001-3001",
    ],
)
def test_an_image_has_one_key_under_all_its_names(name: str) -> None:
    assert image_key(name) == "1_IM-0001-3001"


def test_keys_of_different_images_differ() -> None:
    """Study 1's images are prefixed twice, study 10's once: a blunter rule would drop the number of the second."""
    names = ["CXR1_1_IM-0001-3001", "CXR10_IM-0001-3001", "CXR11_IM-0001-3001", "CXR1_1_IM-0001-4001"]
    assert len({image_key(name) for name in names}) == 4


# -- which image is frontal ------------------------------------------------------------------------------------------


def test_the_frontal_image_is_the_one_that_the_table_names_and_not_the_first(release: OpenIRelease) -> None:
    path = release.study(3)
    assert studies(release)["CXR3"].images["frontal"] == str(path)
    assert path.stem.endswith("2001")


def test_a_table_may_use_other_columns_and_words(release: OpenIRelease) -> None:
    path = release.study(3)
    table = release.root / "views.csv"
    table.write_text("imageid,view\nCXR3_IM-0003-1001,L\nCXR3_IM-0003-2001,pa\n")
    columns = {"image": "imageid", "view": "view"}
    study = studies(release, projections=str(table), projection_columns=columns)["CXR3"]
    assert study.images["frontal"] == str(path)
    lateral = studies(release, projections=str(table), projection_columns=columns, frontal_values=["L"])["CXR3"]
    assert lateral.images["frontal"].endswith("1001.png")


def test_without_a_table_of_projections_the_section_is_refused(release: OpenIRelease) -> None:
    with pytest.raises(ValidationError, match="projections"):
        OpenI.model_validate({"source": "open-i", "root": "x", "questions": {"origin": "file", "path": "q"}})


def test_flawed_studies_are_kept_with_their_reason_and_the_others_go_on(release: OpenIRelease) -> None:
    release.study(1)
    release.report(2, [])
    release.report(3, ["CXR3_IM-0003-1001"])
    release.image("CXR3_IM-0003-1001", "Lateral")
    release.report(4, ["CXR4_IM-0004-1001"])
    release.image("CXR4_IM-0004-1001", view=None)
    release.study(5).unlink()
    truncated = release.study(6)
    truncated.write_bytes(truncated.read_bytes()[:-30])
    release.study(7).write_text("this is no image")
    release.study(8).write_bytes(b"")
    release.study(9, findings=" ", impression="")
    release.study(10, major=("No Indexing",))
    release.study(11, major=())
    release.study(12)
    release.report(12, [], name="12-again", uid="CXR12")
    release.study(13)
    release.image("CXR13_IM-0013-2001", view=None, folder="more")
    found = studies(release)
    problems = {name[3:]: study.problem or "" for name, study in found.items()}
    expected = {
        "1": "", "2": "the report names no image", "3": "no frontal image: 1 images, 1 of them in the projections",
        "4": "no frontal image: 1 images, 0 of them in the projections", "5": "the image 5_IM-0005-2001: missing",
        "6": "truncated", "7": "not a PNG", "8": "an empty file", "9": "the report has no findings and no impression",
        "10": "no labels: the report was not indexed", "11": "no labels: the report was not indexed",
        "12": "2 reports with this id; keep one", "13": "the image 13_IM-0013-2001: there 2 times",
    }  # fmt: skip
    assert set(problems) == set(expected)
    for number, reason in expected.items():
        assert reason in problems[number] and bool(reason) == bool(problems[number]), (number, problems[number])


def test_an_image_that_is_called_two_things_is_called_neither(release: OpenIRelease) -> None:
    release.study(1)
    release.study(2)
    release.projections += ["2_IM-0002-2001.dcm.png,Lateral", ",Frontal", "9_IM-0009-1001.dcm.png,"]
    remarks = Remarks()
    found = studies(release, remarks)
    assert found["CXR1"].problem is None
    assert "no frontal image" in (found["CXR2"].problem or "")
    assert [(row.key, row.remark) for row in remarks.rows] == [
        ("2_IM-0002-2001", "row 5: conflicting projections (frontal, lateral): ignored"),
        ("row 6", "row 6: no image or no view: left out"),
        ("9_IM-0009-1001", "row 7: no image or no view: left out"),
    ]


def test_a_link_out_of_the_folder_is_refused(release: OpenIRelease, tmp_path: Path) -> None:
    path = release.study(1)
    path.rename(tmp_path / "a.png")
    path.symlink_to(tmp_path / "a.png")
    assert "leads outside the data set's folder" in (studies(release)["CXR1"].problem or "")
    assert studies(release, follow_links=True)["CXR1"].problem is None


# -- reports that are none ---------------------------------------------------------------------------------------------


def test_files_that_are_no_report_are_told_and_the_others_go_on(release: OpenIRelease) -> None:
    release.study(1)
    folder = release.root / "ecgen-radiology"
    whole = release.report(2).read_text()
    (folder / "cut.xml").write_text(whole[: len(whole) // 2])
    (folder / "empty.xml").write_text("")
    (folder / "no-id.xml").write_text(whole.replace('id="CXR2"', 'id="../CXR2"'))
    (folder / "bomb.xml").write_text('<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]><x>&b;</x>')
    (folder / "bomb-16.xml").write_text(
        '<?xml version="1.0" encoding="UTF-16"?><!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">]><x>&a;</x>', encoding="utf-16"
    )
    (folder / "large.xml").write_text(whole + " " * 1_000_000)
    remarks = Remarks()
    assert set(studies(release, remarks)) == {"CXR1", "CXR2"}
    found = {row.key: row.remark for row in remarks.rows}
    reasons = {
        "cut": "not readable as XML", "empty": "an empty file",
        "no-id": "its uId is '../CXR2', which is not a valid id",
        "bomb": "XML with a document type of its own",
        "bomb-16": "XML with a document type of its own", "large": "more than 1000000 bytes are no report",
    }  # fmt: skip
    assert set(found) == set(reasons)
    for key, reason in reasons.items():
        assert reason in found[key]


def test_a_folder_without_reports_says_what_was_looked_for(release: OpenIRelease, tmp_path: Path) -> None:
    release.image("CXR1_1_IM-0001-3001")
    with pytest.raises(BadInput, match=r"no report; looked for ecgen-radiology/\*\.xml"):
        studies(release)
    (release.root / "ecgen-radiology" / "1.xml").write_text("<x/>")
    with pytest.raises(BadInput, match="none of 1 files is a report; the first: its uId is ''"):
        studies(release)
    with pytest.raises(BadInput, match="no such folder"):
        read("oi", section(release), tmp_path / "absent")


# -- labels ----------------------------------------------------------------------------------------------------------


def test_labels_may_come_from_a_table(release: OpenIRelease) -> None:
    for number in (1, 2, 3, 4):
        release.study(number)
    table = release.root / "labels.csv"
    blank = "," * (len(FINDINGS) - 1)
    table.write_text(
        f"study,{','.join(FINDINGS)}\nCXR1,1{blank}\n2,0{blank}\n3,2{blank}\n5,1{blank}\n1,1{blank}\nx,1{blank}\n"
    )
    remarks = Remarks()
    found = studies(release, remarks, labels=str(table), mesh=None)
    assert found["CXR1"].labels == {FINDINGS[0]: "positive"}
    assert found["CXR2"].labels == {FINDINGS[0]: "negative"}
    assert found["CXR3"].problem == f"labels other than 1, 0, -1 and blank: {FINDINGS[0]} 2"
    assert found["CXR4"].problem == "no labels"
    assert [row.key for row in remarks.rows] == ["x"]


def test_a_table_without_a_column_for_each_finding_is_refused(release: OpenIRelease) -> None:
    """Otherwise the findings without a column would all be answered no."""
    release.study(1)
    table = release.root / "labels.csv"
    table.write_text("study,Edema\nCXR1,1\n")
    with pytest.raises(BadInput, match="no column 'Atelectasis'"):
        studies(release, labels=str(table), mesh=None)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"mesh": None}, "questions of origin 'findings' need labels: name 'mesh'"),
        ({"labels": "l.csv"}, "both say what a study shows"),
        (
            {"questions": {"origin": "findings"}},
            "nothing says that a finding without a label is absent; set not_mentioned",
        ),
    ],
)
def test_questions_about_findings_need_one_source_of_labels_and_a_word_about_blank_ones(
    release: OpenIRelease, change: dict[str, Any], reason: str
) -> None:
    with pytest.raises(ValidationError, match=reason):
        section(release, **change)


def test_without_labels_other_questions_can_be_asked(release: OpenIRelease) -> None:
    release.study(1)
    study = studies(release, mesh=None, questions={"origin": "file", "path": "q.jsonl"})["CXR1"]
    assert study.problem is None and study.labels == {}
