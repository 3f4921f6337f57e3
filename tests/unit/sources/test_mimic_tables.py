"""The tables of MIMIC-CXR-JPG and its files: what contradicts itself, is odd or out of bounds, and what comes of it."""

from __future__ import annotations

import gzip
import os
import time
from pathlib import Path
from typing import Any

import pytest

from data.mimic_release import LABELS, Release
from overread.core.errors import BadInput
from overread.sources.mimic_cxr.reader import read
from overread.sources.mimic_cxr.tables import clock_time
from overread.sources.shared.remarks import Remarks


@pytest.fixture
def release(tmp_path: Path) -> Release:
    return Release(tmp_path)


# -- what the tables contradict ----------------------------------------------------------------------------------------


def told(remarks: Remarks) -> dict[str, str]:
    """The remarks by key."""
    return {row.key: row.remark for row in remarks.rows}


def test_an_image_that_is_listed_twice_is_counted_once_and_not_at_all_if_its_rows_differ(release: Release) -> None:
    release.whole(10000032, 50000001, "same")
    release.metadata.append(release.metadata[0])
    release.whole(10000032, 50000002, "differs")
    release.metadata.append(release.metadata[2].replace(",PA,", ",LATERAL,"))
    remarks = Remarks()
    studies = release.read(remarks=remarks)
    assert studies["s50000001"].problem is None
    assert studies["s50000002"].problem == "no frontal image (AP or PA)"
    assert told(remarks) == {
        "same": "listed twice, in rows that say the same: counted once",
        "differs": "listed twice, in rows that differ: the image is not used",
    }
    assert all(row.file.endswith("metadata.csv.gz") for row in remarks.rows)


def test_a_study_of_two_patients_belongs_to_none(release: Release) -> None:
    release.whole(10000032, 50000001, "a")
    release.image(10000033, 50000001, "b", view="LATERAL")
    release.whole(10000033, 50000002, "c")
    studies = release.read()
    assert studies["s50000001"].problem == "listed under two patients, p10000032 and p10000033"
    assert studies["s50000002"].problem is None


def test_labels_of_another_patient_or_that_contradict_each_other_are_not_used(release: Release) -> None:
    release.image(10000032, 50000001, "a")
    release.report(10000032, 50000001)
    release.label(10000099, 50000001, Edema="1.0")
    release.whole(10000032, 50000002, "b")
    release.label(10000032, 50000002, Edema="0.0")
    release.whole(10000032, 50000003, "c")
    release.label(10000032, 50000003, Edema="1.0")
    studies = release.read()
    assert studies["s50000001"].problem == "labelled under another patient, p10000099"
    assert studies["s50000002"].problem == "labelled twice, with labels that differ"
    assert studies["s50000002"].labels == {}
    assert studies["s50000003"].problem is None
    assert studies["s50000003"].labels == {"Edema": "positive"}


def test_a_study_in_two_splits_is_in_none_that_can_be_used(release: Release) -> None:
    release.whole(10000032, 50000001, "a")
    release.image(10000032, 50000001, "b", split="train")
    for split in ("test", "train"):
        assert release.read(split=split)["s50000001"].problem == "its images are in several splits: test, train"


def test_rows_that_are_none_are_told_with_file_and_key_and_the_others_go_on(release: Release) -> None:
    release.whole(10000032, 50000001, "good")
    release.metadata += [
        ",10000032,50000001,CHEST,PA,1,1,21800506,1.0",
        "no-study,10000032,,CHEST,PA,1,1,21800506,1.0",
        "../../../etc/x,10000032,50000001,CHEST,PA,1,1,21800506,1.0",
        "short,10000032,50000001",
        "odd-view,10000032,50000001,CHEST,SIDEWAYS,1,1,21800506,1.0",
        "odd-time,10000032,50000001,CHEST,LL,1,1,2180-05-06,996161",
    ]
    release.labels += ["10000032,x" + "," * 14, "10000032,50000001,1"]
    release.split += ["good,50000001,10000032,tset"]
    remarks = Remarks()
    study = release.read(remarks=remarks, split="test")["s50000001"]
    assert study.problem is None and study.attributes["dicom_id"] == "good"
    expected = {
        "row 2": "dicom_id, subject_id or study_id is missing",
        "no-study": "dicom_id, subject_id or study_id is missing",
        "../../../etc/x": "is missing or no id: left out",
        "short,10000032,50000001": "3 cells where the head has 9: left out",
        "odd-view": "ViewPosition is 'SIDEWAYS', which is none: the image is not frontal",
        "odd-time": "StudyDate is '2180-05-06', which is none: counted as unknown",
        "x": "subject_id or study_id is missing or no id: left out",
        "10000032,50000001,1": "3 cells where the head has 16: left out",
        "50000001": "the split 'tset' is none: left out",
    }
    found = told(remarks)
    assert set(found) == set(expected)
    for key, reason in expected.items():
        assert reason in found[key], (key, found[key])
    assert "StudyTime is '996161', which is none: counted as unknown" in {row.remark for row in remarks.rows}


@pytest.mark.parametrize("text", ["246000", "236060.0", "235960", "12:00:00", "-1", "1e5", "1234567"])
def test_what_is_no_time_of_day_is_none(text: str) -> None:
    assert clock_time(text) is None


# -- links, pipes, permissions ---------------------------------------------------------------------------------------


def test_a_link_out_of_the_folder_is_not_followed_unless_the_config_says_so(release: Release, tmp_path: Path) -> None:
    path = release.whole(10000032, 50000001, "a")
    outside = tmp_path / "outside" / "other.jpg"
    outside.parent.mkdir()
    path.rename(outside)
    path.symlink_to(outside)
    release.root = tmp_path / "release"
    release.root.mkdir()
    (tmp_path / "files").rename(release.root / "files")
    problem = release.read()["s50000001"].problem or ""
    assert f"a symbolic link leads outside the data set's folder, to {outside}" in problem
    assert "follow_links: true" in problem
    assert release.read(follow_links=True)["s50000001"].problem is None


def test_a_pipe_in_place_of_an_image_or_a_report_is_not_waited_for(release: Release) -> None:
    path = release.whole(10000032, 50000001, "a")
    path.unlink()
    os.mkfifo(path)
    report = release.report(10000032, 50000001)
    report.unlink()
    os.mkfifo(report)
    problem = release.read()["s50000001"].problem or ""
    assert problem.count("not a regular file") == 2


def test_a_file_that_may_not_be_read_is_told(release: Release, monkeypatch: pytest.MonkeyPatch) -> None:
    path = release.whole(10000032, 50000001, "a")
    true_open = Path.open

    def closed(self: Path, *arguments: Any, **more: Any) -> Any:
        if self == path:
            raise PermissionError(13, "Permission denied")
        return true_open(self, *arguments, **more)

    monkeypatch.setattr(Path, "open", closed)
    assert release.read()["s50000001"].problem == f"the image {path}: not readable: Permission denied"


def test_a_report_that_is_no_text_is_told(release: Release) -> None:
    release.whole(10000032, 50000001, "a")
    release.report(10000032, 50000001).write_bytes(b"FINDINGS: \xff\xfe")
    assert "not UTF-8 text" in (release.read()["s50000001"].problem or "")


# -- tables ----------------------------------------------------------------------------------------------------------


def test_a_missing_table_is_named_with_where_it_belongs(release: Release) -> None:
    release.whole(10000032, 50000001, "a")
    release.read()
    (release.root / "mimic-cxr-2.0.0-chexpert.csv.gz").unlink()
    with pytest.raises(BadInput, match=r"chexpert\.csv\.gz: no such file"):
        read("cxr", release.section(), release.root)


@pytest.mark.parametrize(
    "content",
    [
        b"subject_id,study_id\n1,2\n",
        b"",
        b"\x00\x01\x02",
        b"subject_id,study_id," + ",".join(LABELS).encode() + b"\nx,y" + b"," * 14,
    ],
)
def test_a_table_that_is_none_is_refused_in_one_line(release: Release, content: bytes) -> None:
    release.whole(10000032, 50000001, "a")
    release.read()
    (release.root / "mimic-cxr-2.0.0-chexpert.csv.gz").write_bytes(gzip.compress(content))
    with pytest.raises(BadInput, match="chexpert") as caught:
        read("cxr", release.section(), release.root)
    assert "\n" not in str(caught.value)


def test_a_truncated_table_is_refused(release: Release) -> None:
    release.whole(10000032, 50000001, "a")
    release.read()
    path = release.root / "mimic-cxr-2.0.0-metadata.csv.gz"
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(BadInput, match="metadata"):
        read("cxr", release.section(), release.root)


def test_the_tables_of_the_whole_release_are_read_in_seconds(release: Release) -> None:
    """227,835 studies; one of them is of the wanted split, so that tables alone are timed."""
    release.whole(10000032, 50000001, "a")
    count = 227_834
    release.metadata += [
        f"d{n},{11_000_000 + n // 3},{51_000_000 + n},CHEST,PA,64,48,21800506,{n % 235959}.5" for n in range(count)
    ]
    release.labels += [
        f"{11_000_000 + n // 3},{51_000_000 + n}" + ",1.0,,0.0,,,,,-1.0,,,,,,".ljust(15, ",") for n in range(count)
    ]
    release.split += [f"d{n},{51_000_000 + n},{11_000_000 + n // 3},train" for n in range(count)]
    started = time.process_time()
    assert set(release.read(packed=False, split="test")) == {"s50000001"}
    assert time.process_time() - started < 15
