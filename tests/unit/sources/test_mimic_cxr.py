"""Reading MIMIC-CXR-JPG: the right image, the labels in words, the right sections, a reason for what can't be used."""

from __future__ import annotations

import gzip
import time
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from data.mimic_release import Release, Size, write_release
from overread.core.errors import BadInput
from overread.sources.mimic_cxr.reader import read
from overread.sources.mimic_cxr.section import MimicCxr
from overread.sources.mimic_cxr.tables import clock_time
from overread.sources.shared.marker import mark
from overread.sources.shared.remarks import Remarks


@pytest.fixture
def release(tmp_path: Path) -> Release:
    return Release(tmp_path)


# -- the whole study -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("packed", [True, False])
def test_a_whole_study_is_read(release: Release, packed: bool) -> None:
    path = release.image(10000032, 50414267, "02aa804e", view="AP", clock="81534.5")
    release.report(10000032, 50414267)
    release.label(10000032, 50414267, Edema="1.0", Pneumothorax="0.0", Pneumonia="-1.0")
    study = release.read(packed)["s50414267"]
    assert study.problem is None
    assert study.patient == "p10000032"
    assert study.images == {"frontal": str(path)}
    assert study.labels == {"Edema": "positive", "Pneumothorax": "negative", "Pneumonia": "uncertain"}
    assert study.report == {"findings": "The lungs are clear.", "impression": "Normal chest."}
    assert study.attributes["StudyTime"] == "081534.500"
    assert study.attributes["ViewPosition"] == "AP"
    assert study.restricted and not study.semi_synthetic


def test_no_finding_is_no_finding_of_the_study_but_is_kept(release: Release) -> None:
    release.image(10000032, 50414267, "a")
    release.report(10000032, 50414267)
    release.label(10000032, 50414267, No_Finding="1.0")
    study = release.read()["s50414267"]
    assert study.labels == {}
    assert study.attributes["No Finding"] == "positive"
    assert study.problem is None


# -- which image -----------------------------------------------------------------------------------------------------


def test_the_first_frontal_image_is_taken_although_times_lost_their_zeros(release: Release) -> None:
    """08:15:34 comes before 21:30:14; as text, or as 81534 beside 213014.5 cut to six letters, it would not."""
    release.image(10000032, 50000001, "evening", clock="213014.5")
    release.image(10000032, 50000001, "morning", clock="81534.0")
    release.image(10000032, 50000001, "midnight-side-view", view="LATERAL", clock="34.0")
    release.image(10000032, 50000001, "the-day-after", date="21800507", clock="10.0")
    release.report(10000032, 50000001)
    release.label(10000032, 50000001)
    assert release.read()["s50000001"].attributes["dicom_id"] == "morning"


def test_an_image_without_a_time_comes_last_and_a_view_without_a_name_is_not_frontal(release: Release) -> None:
    release.image(10000032, 50000001, "a-untimed", clock="")
    release.image(10000032, 50000001, "b-timed", clock="235959.0")
    release.image(10000032, 50000001, "c-nameless", view="", clock="1.0")
    release.report(10000032, 50000001)
    release.label(10000032, 50000001)
    assert release.read()["s50000001"].attributes["dicom_id"] == "b-timed"


@example(0, 0, 1, 118)
@example(16, 7, 41, 468)
@given(st.integers(0, 23), st.integers(0, 59), st.integers(0, 59), st.integers(0, 999))
def test_clock_times_sort_as_time_does(hour: int, minute: int, second: int, milli: int) -> None:
    """The release writes HHMMSS.fff as a number, without the zeros before and after it."""
    text = clock_time(str(hour * 10000 + minute * 100 + second + milli / 1000))
    assert text == f"{hour:02d}{minute:02d}{second:02d}.{milli:03d}"


# -- which studies ---------------------------------------------------------------------------------------------------


def test_only_the_wanted_split_is_read(release: Release) -> None:
    release.whole(10000032, 50000001, "a")
    release.image(10000033, 50000002, "b", split="train")
    release.report(10000033, 50000002)
    release.label(10000033, 50000002)
    assert set(release.read(split="test")) == {"s50000001"}
    assert set(release.read(split="train")) == {"s50000002"}
    assert set(release.read()) == {"s50000001", "s50000002"}
    with pytest.raises(BadInput, match="no study of the split 'validate'"):
        release.read(split="validate")


def test_reports_may_lie_in_another_folder(release: Release) -> None:
    release.image(10000032, 50000001, "a")
    release.label(10000032, 50000001)
    release.report(10000032, 50000001, under="elsewhere/files")
    assert release.read()["s50000001"].problem is not None
    assert release.read(reports=str(release.root / "elsewhere"))["s50000001"].problem is None
    assert release.read(reports=str(release.root / "elsewhere/files"))["s50000001"].problem is None


def test_the_marker_makes_studies_semi_synthetic(release: Release) -> None:
    release.whole(10000032, 50000001, "a")
    mark(release.root, "Made.")
    assert release.read()["s50000001"].semi_synthetic


def test_flawed_studies_are_kept_with_their_reason_and_the_others_go_on(release: Release) -> None:
    release.whole(10000032, 50000001, "good")
    truncated = release.whole(10000032, 50000002, "truncated")
    truncated.write_bytes(truncated.read_bytes()[:-200])
    release.whole(10000032, 50000003, "missing").unlink()
    release.whole(10000032, 50000004, "empty").write_bytes(b"")
    release.whole(10000032, 50000005, "text").write_text("this is no image")
    release.report(10000032, 50000006)
    release.label(10000032, 50000006)
    release.image(10000032, 50000006, "side", view="LATERAL")
    release.image(10000032, 50000007, "unlabelled")
    release.report(10000032, 50000007)
    release.image(10000032, 50000008, "unreported")
    release.label(10000032, 50000008)
    release.whole(10000032, 50000009, "blank")
    release.report(10000032, 50000009, "\n \n")
    release.image(10000032, 50000010, "strange")
    release.report(10000032, 50000010)
    release.label(10000032, 50000010, Edema="2.0")
    release.label(10000032, 50000011)  # no image anywhere
    release.report(10000032, 50000011)
    problems = {name: study.problem or "" for name, study in release.read().items()}
    expected = {
        "s50000002": "truncated", "s50000003": "missing", "s50000004": "empty", "s50000005": "not a JPEG",
        "s50000006": "no frontal image", "s50000007": "no labels", "s50000008": "no report", "s50000009": "is empty",
        "s50000010": "Edema 2", "s50000011": "no frontal image",
    }  # fmt: skip
    assert problems.pop("s50000001") == ""
    assert set(problems) == set(expected)
    for name, reason in expected.items():
        assert reason in problems[name], (name, problems[name])


def test_two_flaws_are_both_told(release: Release) -> None:
    release.image(10000032, 50000001, "a").unlink()
    problem = release.read()["s50000001"].problem or ""
    assert "missing" in problem and "no labels" in problem and "no report" in problem


# -- the rule of the frontal image, and the other labeller -----------------------------------------------------------


def test_the_rule_of_the_frontal_image_is_the_configs(release: Release) -> None:
    release.whole(10000032, 50000001, "first-pa")
    release.image(10000032, 50000001, "last-ap", view="AP", clock="220000.0")
    release.image(10000032, 50000001, "first-lateral", view="LATERAL", clock="100.0")

    def taken(**frontal: object) -> str:
        return release.read(frontal=frontal)["s50000001"].attributes["dicom_id"]

    assert taken() == "first-pa"
    assert taken(take="last") == "last-ap"
    assert taken(prefer="views") == "last-ap"
    assert taken(views=["PA", "AP"], prefer="views") == "first-pa"
    assert taken(views=["LATERAL"]) == "first-lateral"
    assert release.read(frontal={"views": ["LL"]})["s50000001"].problem == "no frontal image (LL)"


def test_negbio_labels_come_from_their_own_table(release: Release) -> None:
    release.whole(10000032, 50000001, "a")
    release.read()
    release.labels = []
    release.label(10000032, 50000001, Edema="-1.0")
    assert release.read(labels="negbio")["s50000001"].labels == {"Edema": "uncertain"}
    assert (release.root / "mimic-cxr-2.0.0-chexpert.csv.gz").is_file()


# -- the size of the test split ----------------------------------------------------------------------------------------


def test_the_test_split_is_counted_at_each_step_and_read_in_under_a_minute(tmp_path: Path) -> None:
    """293 patients, 3,269 studies, 5,159 images (3,653 frontal, 1,502 lateral, 4 other); 70 studies lack something."""
    size = write_release(tmp_path)
    assert (size.images, size.usable) == (5159, 3199)
    remarks = Remarks()
    section = MimicCxr(source="mimic-cxr", root=str(tmp_path), questions={"origin": "findings"}, split="test")
    started = time.perf_counter()
    studies = read("cxr", section, tmp_path, remarks)
    seconds = time.perf_counter() - started
    print(f"\n{len(studies)} studies of {size.patients} patients, {size.images} images listed: read in {seconds:.1f} s")
    remarks.count_studies(studies)
    assert remarks.counts == {
        "images listed": 5159,
        "frontal images (AP, PA)": 3653,
        "lateral images (LATERAL, LL)": 1502,
        "other images": 4,
        "studies without a frontal image": 0,
        "studies whose frontal image can't be read": 0,
        "studies without labels that can be used": 8,
        "studies without a report": 62,
        "studies with two patients or splits": 0,
        "studies": 3269,
        "patients": 293,
        "studies that can be used": 3199,
        "patients of those": 293,
    }
    assert remarks.rows == []
    assert seconds < 60


def test_what_is_read_does_not_depend_on_the_order_of_the_rows(tmp_path: Path, release: Release) -> None:
    write_release(tmp_path, Size(7, 40, 50, 20, 4, 3, 2))
    before = read("cxr", release.section(), tmp_path)
    for name in ("metadata", "split", "chexpert"):
        path = tmp_path / f"mimic-cxr-2.0.0-{name}.csv.gz"
        head, *lines = gzip.decompress(path.read_bytes()).decode().splitlines()
        path.write_bytes(gzip.compress("\n".join([head, *reversed(lines)]).encode()))
    assert read("cxr", release.section(), tmp_path) == before
