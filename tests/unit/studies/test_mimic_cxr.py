"""Reading MIMIC-CXR-JPG: the right image, the labels in words, the right sections, a reason for what can't be used."""

from __future__ import annotations

import gzip
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from overread.config import FINDINGS, MimicCxr
from overread.errors import BadInput
from overread.records import Study
from overread.studies.mimic_cxr import clock_time, read, sections
from overread.studies.phantom.marker import mark

LABELS = sorted([*FINDINGS, "No Finding"])
REPORT = " " * 33 + "FINAL REPORT\n \n FINDINGS: \n \n The lungs are\n clear.\n \n IMPRESSION: \n \n Normal chest.\n"


class Release:
    """A folder in the layout of the release, built row by row."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.metadata: list[str] = []
        self.labels: list[str] = []
        self.split: list[str] = []

    def image(
        self,
        patient: int,
        study: int,
        dicom: str,
        view: str = "PA",
        date: str = "21800506",
        clock: str = "213014.5",
        split: str = "test",
    ) -> Path:
        self.metadata.append(f"{dicom},{patient},{study},CHEST (PA AND LAT),{view},64,48,{date},{clock}")
        self.split.append(f"{dicom},{study},{patient},{split}")
        path = self.root / f"files/p{str(patient)[:2]}/p{patient}/s{study}/{dicom}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.linear_gradient("L").save(path, quality=90)
        return path

    def report(self, patient: int, study: int, text: str = REPORT, under: str = "files") -> Path:
        path = self.root / f"{under}/p{str(patient)[:2]}/p{patient}/s{study}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def label(self, patient: int, study: int, **values: str) -> None:
        named = {name.replace("_", " "): value for name, value in values.items()}
        self.labels.append(f"{patient},{study}," + ",".join(named.get(name, "") for name in LABELS))

    def whole(self, patient: int, study: int, dicom: str) -> Path:
        """A study without a flaw."""
        self.report(patient, study)
        self.label(patient, study, Edema="1.0")
        return self.image(patient, study, dicom)

    def read(self, packed: bool = True, **section: object) -> dict[str, Study]:
        tables = {
            "metadata": (
                "dicom_id,subject_id,study_id,PerformedProcedureStepDescription,ViewPosition,Rows,Columns,StudyDate,StudyTime",
                self.metadata,
            ),
            "split": ("dicom_id,study_id,subject_id,split", self.split),
            "chexpert": ("subject_id,study_id," + ",".join(LABELS), self.labels),
        }
        for name, (head, lines) in tables.items():
            text = "\n".join([head, *lines]) + "\n"
            path = self.root / f"mimic-cxr-2.0.0-{name}.csv"
            if packed:
                path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(text.encode()))
            else:
                path.write_text(text)
        config = {"source": "mimic-cxr", "root": str(self.root), "questions": {"origin": "findings"}, **section}
        return {study.study: study for study in read("cxr", MimicCxr.model_validate(config), self.root)}


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


@given(st.integers(0, 23), st.integers(0, 59), st.integers(0, 59), st.integers(0, 999))
def test_clock_times_sort_as_time_does(hour: int, minute: int, second: int, milli: int) -> None:
    """The release writes HHMMSS.fff as a number."""
    text = clock_time(hour * 10000 + minute * 100 + second + milli / 1000)
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


# -- tables ----------------------------------------------------------------------------------------------------------


def test_a_missing_table_is_named_with_where_it_belongs(release: Release) -> None:
    release.whole(10000032, 50000001, "a")
    release.read()
    (release.root / "mimic-cxr-2.0.0-chexpert.csv.gz").unlink()
    config = {"source": "mimic-cxr", "root": str(release.root), "questions": {"origin": "findings"}}
    with pytest.raises(BadInput, match=r"chexpert\.csv\.gz: no such file"):
        read("cxr", MimicCxr.model_validate(config), release.root)


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
    config = {"source": "mimic-cxr", "root": str(release.root), "questions": {"origin": "findings"}}
    with pytest.raises(BadInput, match="chexpert") as caught:
        read("cxr", MimicCxr.model_validate(config), release.root)
    assert "\n" not in str(caught.value)


def test_a_truncated_table_is_refused(release: Release) -> None:
    release.whole(10000032, 50000001, "a")
    release.read()
    path = release.root / "mimic-cxr-2.0.0-metadata.csv.gz"
    path.write_bytes(path.read_bytes()[:-9])
    config = {"source": "mimic-cxr", "root": str(release.root), "questions": {"origin": "findings"}}
    with pytest.raises(BadInput, match="metadata"):
        read("cxr", MimicCxr.model_validate(config), release.root)


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


# -- sections --------------------------------------------------------------------------------------------------------


def test_the_last_section_of_a_name_wins_over_an_addendum_and_a_preliminary_reading() -> None:
    text = (
        "                 FINAL ADDENDUM\n ADDENDUM:  The IMPRESSION was changed.\n \n IMPRESSION:  Effusion.\n \n"
        "                 FINAL REPORT\n EXAMINATION:  CHEST (PA AND LAT)\n \n INDICATION:  ___ year old man\n \n"
        " FINDINGS: \n \n No effusion.  Dr. ___ was\n called.\n \n IMPRESSION: \n \n Normal.\n"
    )
    assert sections(text) == {"findings": "No effusion. Dr. ___ was called.", "impression": "Normal."}


def test_an_empty_last_section_does_not_erase_an_earlier_one() -> None:
    assert sections(" FINDINGS:  Clear lungs.\n \n IMPRESSION:  Normal.\n IMPRESSION: \n")["impression"] == "Normal."


def test_other_sections_end_the_one_before_and_are_left_out() -> None:
    text = " FINDINGS:  Clear.\n RECOMMENDATION(S):  None.\n IMPRESSION:  Normal.\n NOTIFICATION:  Dr. ___ at 9:15.\n"
    assert sections(text) == {"findings": "Clear.", "impression": "Normal."}


def test_findings_under_the_name_of_the_views() -> None:
    text = (
        " HISTORY:  Cough.\n \n PA AND LATERAL VIEWS OF THE CHEST:  The heart is large and both lungs are clear.\n \n"
        " IMPRESSION:  Large heart.\n"
    )
    assert sections(text) == {
        "findings": "The heart is large and both lungs are clear.",
        "impression": "Large heart.",
    }


def test_without_sections_the_body_is_the_findings() -> None:
    assert sections(" " * 33 + "FINAL REPORT\n \n AP chest on ___: lungs\n clear.\n") == {
        "findings": "AP chest on ___: lungs clear."
    }
    assert sections(" \n") == {}


def test_only_impression_is_no_findings() -> None:
    assert sections(" IMPRESSION:  Normal.\r\n") == {"impression": "Normal."}


def test_a_colon_inside_a_sentence_is_no_header() -> None:
    assert sections(" FINDINGS:  Compared with ___: no change.\n NG tube: in the stomach.\n") == {
        "findings": "Compared with ___: no change. NG tube: in the stomach."
    }
