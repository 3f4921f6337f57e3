"""Reading the user's own table: whatever its columns are called, and whatever its images are."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image
from pydantic import ValidationError

from data.dicom_files import write_radiograph, write_slices
from overread.core.errors import BadInput
from overread.core.records import Study
from overread.images import render_study
from overread.images.render import pixel_hash
from overread.sources.shared.remarks import Remarks
from overread.sources.table.reader import read
from overread.sources.table.section import Table

GREY = np.arange(40 * 60, dtype=np.uint16).reshape(40, 60)


class Own:
    """A table of X-rays with images beside it."""

    modality = "xray"
    images: dict[str, str] = {"frontal": "image"}  # noqa: RUF012

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.rows: list[dict[str, str]] = []

    def row(self, study: str, patient: str = "p1", image: str | None = None, **cells: str) -> None:
        if image is None:
            image = f"images/{study}.png"
            (self.folder / "images").mkdir(exist_ok=True)
            Image.fromarray((GREY % 256).astype(np.uint8)).save(self.folder / image)
        self.rows.append({"study": study, "patient": patient, "image": image, **cells})

    @property
    def columns(self) -> list[str]:
        return list(dict.fromkeys(name for row in self.rows for name in row))

    def write(self, ending: str = "csv") -> Path:
        path = self.folder / f"own.{ending}"
        if ending == "parquet":
            pq.write_table(pa.table({name: [row.get(name) for row in self.rows] for name in self.columns}), path)
            return path
        with path.open("w", newline="") as file:
            table = csv.DictWriter(file, self.columns, restval="")
            table.writeheader()
            table.writerows(self.rows)
        return path

    def section(self, path: Path, **more: Any) -> Table:
        content = {
            "source": "table", "path": str(path), "modality": self.modality, "images": self.images,
            "questions": {"origin": "file", "path": "q.jsonl"}, **more,
        }  # fmt: skip
        return Table.model_validate(content)

    def read(self, remarks: Remarks | None = None, ending: str = "csv", **more: Any) -> dict[str, Study]:
        path = self.write(ending)
        return {study.study: study for study in read("own", self.section(path, **more), path, remarks)}


class OwnMri(Own):
    modality = "mri"
    images: dict[str, str] = {"FLAIR": "flair", "T1": "t1"}  # noqa: RUF012


@pytest.fixture
def own(tmp_path: Path) -> Own:
    return Own(tmp_path)


@pytest.fixture
def mri(tmp_path: Path) -> OwnMri:
    return OwnMri(tmp_path)


LABELS = {"Edema": "oedema", "Fracture": "broken"}


# -- columns -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_whole_study_is_read_from_csv_and_parquet(own: Own, ending: str) -> None:
    own.row(
        "a-1", "x7", oedema="1", broken="", findings="Clear\n lungs.", impression="Normal.", scanner="CR 5", age="60"
    )
    study = own.read(ending=ending, labels=LABELS, columns={"findings": "findings", "impression": "impression"})["a-1"]
    assert study.problem is None
    assert (study.patient, study.dataset, study.modality) == ("x7", "own", "xray")
    assert study.images == {"frontal": str(own.folder / "images/a-1.png")}
    assert study.report == {"findings": "Clear lungs.", "impression": "Normal."}
    assert study.labels == {"Edema": "positive"}
    assert study.attributes == {"scanner": "CR 5", "age": "60"}
    assert study.restricted


def test_data_are_restricted_unless_the_config_says_otherwise(own: Own) -> None:
    own.row("a")
    assert own.read()["a"].restricted
    assert not own.read(restricted=False)["a"].restricted


def test_all_columns_may_be_called_otherwise(own: Own) -> None:
    own.row("a", scan="s1", who="w1", text="FINDINGS: Clear.\nIMPRESSION: Normal.\nBILLING: x")
    study = own.read(columns={"study": "scan", "patient": "who", "report": "text"})["s1"]
    assert (study.patient, study.report) == ("w1", {"findings": "Clear.", "impression": "Normal."})


def test_the_studys_own_column_makes_it_its_own_cluster(own: Own) -> None:
    own.row("a")
    own.row("b")
    assert {study.patient for study in own.read(columns={"patient": "study"}).values()} == {"a", "b"}


def test_a_report_that_can_not_be_cut_is_said_and_the_study_stays(own: Own) -> None:
    own.row("a", text="Just a sentence.")
    own.row("b", text="")
    studies = own.read(columns={"report": "text"})
    assert studies["a"].report == {} and studies["a"].problem is None
    assert studies["a"].attributes["unusable report"] == "the report has no Findings or Impression heading"
    assert studies["b"].attributes["unusable report"] == "the report is blank"


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"columns": {"study": "scan"}}, r"no column 'scan'; there are: image, patient, study"),
        ({"images": {"frontal": "imge"}}, r"no column 'imge'; .*Did you mean image\?"),
        ({"labels": {"Edema": "edema"}}, "no column 'edema'"),
    ],
)
def test_a_column_that_is_not_there_is_named_with_those_that_are(own: Own, more: dict[str, Any], reason: str) -> None:
    own.row("a")
    with pytest.raises(BadInput, match=reason):
        own.read(**more)


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"images": {}}, "images"),
        ({"images": {"FLAIR": "image"}}, "a chest X-ray is shown by its 'frontal' image"),
        ({"images": {"a/b": "image"}}, "a slash in it"),
        ({"columns": {"report": "r", "findings": "f"}}, "is cut into its sections"),
        ({"columns": {"sudy": "s"}}, "no key 'sudy'"),
        ({"questions": {"origin": "findings"}}, "need labels: name 'labels'"),
        (
            {"questions": {"origin": "findings"}, "labels": {"Edema": "e"}},
            "set not_mentioned to leave-out, or to negative",
        ),
        (
            {"questions": {"origin": "findings", "not_mentioned": "negative"}, "labels": {"Edema": "e"}},
            "the questions ask about Atelectasis",
        ),
        ({"questions": {"origin": "grammar"}}, "phantom of modality mri only"),
    ],
)
def test_a_section_that_can_not_be_is_refused(own: Own, more: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValidationError) as caught:
        own.section(own.folder / "own.csv", **more)
    assert reason in str(caught.value)


def test_questions_about_the_labelled_findings_are_allowed(own: Own) -> None:
    questions = {
        "origin": "findings", "findings": ["Edema"], "composite": ["Fracture"], "not_mentioned": "leave-out"
    }  # fmt: skip
    assert own.section(own.folder / "own.csv", labels=LABELS, questions=questions).has_labels


# -- rows --------------------------------------------------------------------------------------------------------------


def test_rows_without_a_study_that_can_be_named_are_told_and_the_others_go_on(own: Own) -> None:
    own.row("good")
    for name in ("", "a/b", "..", "x" * 101, "späť", ".hidden", "a b"):
        own.row(name, image="images/good.png")
    path = own.write()
    path.write_text(path.read_text() + "short,p1\n")
    remarks = Remarks()
    studies = read("own", own.section(path), path, remarks)
    assert [study.study for study in studies] == ["good"]
    assert remarks.counts["rows left out"] == 8
    assert [row.key for row in remarks.rows] == ["row 2", "a/b", "..", "x" * 101, "späť", ".hidden", "a b", "short"]
    assert remarks.rows[0].remark.startswith("row 2: '' is not a valid id of a study")
    assert remarks.rows[-1].remark == "row 9: 2 cells where the head has 3: left out"
    assert all(row.file == str(path) for row in remarks.rows)


def test_a_study_on_two_rows_that_differ_is_not_used(own: Own) -> None:
    own.row("a")
    own.row("a", "p2")
    own.row("b")
    own.row("b")
    own.row("c", patient="")
    remarks = Remarks()
    studies = own.read(remarks)
    assert studies["a"].problem == "rows 1, 2 say different things; keep one"
    assert studies["b"].problem is None
    assert studies["c"].problem == "no patient"
    assert [(row.key, row.remark) for row in remarks.rows] == [
        ("a", "row 2: another row of this study, which differs"),
        ("b", "row 4: the same row as before: counted once"),
    ]


def test_rows_of_the_other_modality_belong_to_another_data_set(own: Own) -> None:
    own.row("a", kind="xray")
    own.row("b", kind="MRI")
    own.row("c", kind="CT")
    remarks = Remarks()
    assert set(own.read(remarks, columns={"modality": "kind"})) == {"a"}
    assert remarks.counts["rows of the other modality"] == 1
    assert remarks.rows[0].remark == "row 3: the modality is 'ct'; there are: mri, xray: left out"
    own.rows = own.rows[1:2]
    with pytest.raises(BadInput, match="no row of a study of modality xray"):
        own.read(columns={"modality": "kind"})


@pytest.mark.parametrize("value", ["1", "1.0", "positive", "Positive"])
def test_labels_are_read_as_numbers_and_as_words(own: Own, value: str) -> None:
    own.row("a", oedema=value, broken="-1")
    assert own.read(labels=LABELS)["a"].labels == {"Edema": "positive", "Fracture": "uncertain"}


def test_a_label_that_is_none_spoils_its_study_only(own: Own) -> None:
    own.row("a", oedema="maybe", broken="1")
    own.row("b", oedema="0", broken="")
    studies = own.read(labels=LABELS)
    assert studies["a"].problem == "labels other than 1, 0, -1 and blank: Edema maybe" and studies["a"].labels == {}
    assert studies["b"].labels == {"Edema": "negative"}


# -- X-rays ------------------------------------------------------------------------------------------------------------


def test_flawed_images_are_told_and_the_others_go_on(own: Own, tmp_path: Path) -> None:
    secret = tmp_path.parent / f"{tmp_path.name}-secret.png"
    Image.fromarray((GREY % 256).astype(np.uint8)).save(secret)
    own.row("good")
    (own.folder / "images/out.png").symlink_to(secret)
    (own.folder / "images/empty.png").write_bytes(b"")
    (own.folder / "images/text.jpg").write_text("no image")
    (own.folder / "images/nii.png").write_bytes(b"\x5c\x01\x00\x00" + bytes(348))
    (own.folder / "images/cut.png").write_bytes((own.folder / "images/good.png").read_bytes()[:-9])
    cells = {
        "blank": ("", "the cell is blank"),
        "climbs": (f"../{secret.name}", "lies outside the data set's folder"),
        "absolute": (str(secret), "lies outside the data set's folder"),
        "linked": ("images/out.png", "a symbolic link leads outside"),
        "missing": ("images/none.png", "missing"),
        "empty": ("images/empty.png", "an empty file"),
        "text": ("images/text.jpg", "not a DICOM, JPEG or PNG"),
        "nifti": ("images/nii.png", "not a DICOM, JPEG or PNG"),
        "cut": ("images/cut.png", "truncated"),
        "nul": ("images/\x07.png", "is no path"),
    }
    for study, (image, _) in cells.items():
        own.row(study, image=image)
    studies = own.read()
    assert studies["good"].problem is None
    for study, (_, reason) in cells.items():
        assert reason in (studies[study].problem or ""), (study, studies[study].problem)
        assert studies[study].images == {}
    assert own.read(follow_links=True)["linked"].problem is None


def test_paths_start_from_the_folder_that_the_config_names(own: Own) -> None:
    own.row("a", image="a.png")
    (own.folder / "elsewhere").mkdir()
    Image.fromarray((GREY % 256).astype(np.uint8)).save(own.folder / "elsewhere" / "a.png")
    assert "missing" in (own.read()["a"].problem or "")
    assert own.read(root=str(own.folder / "elsewhere"))["a"].problem is None


@pytest.mark.parametrize("place", ["a.dcm", "folder/a.dcm", "folder"])
def test_a_dicom_file_or_a_folder_with_one_is_read_and_rendered(own: Own, place: str) -> None:
    write_radiograph(own.folder / ("folder/a.dcm" if place != "a.dcm" else place), GREY)
    own.row("a", image=place)
    study = own.read()["a"]
    assert study.problem is None
    (picture,) = render_study(study, {"frontal": _view({"kind": "frontal"})}, own.folder / "out" / "a")
    assert (picture.width, picture.height) == (60, 40)
    assert (
        picture.scaling
        == "DICOM, rescale slope 1, intercept 0 (the file has none), no window: 0 to 2399 (its extremes)"
    )
    expected = Image.fromarray(np.rint(GREY / 2399 * 255).astype(np.uint8))
    assert picture.pixels == pixel_hash(expected)


def _view(content: dict[str, Any]) -> Any:
    from pydantic import TypeAdapter

    from overread.config import View

    return TypeAdapter[Any](View).validate_python(content)


# -- MRI ---------------------------------------------------------------------------------------------------------------


def write_nifti(path: Path, values: np.ndarray) -> None:
    image = nib.Nifti1Image(values.astype(np.int16), np.diag([-1.0, -1.0, 1.0, 1.0]))
    nib.save(image, path)


VOXELS = np.random.default_rng(0).integers(1, 500, (20, 24, 6))


def test_series_are_nifti_files_or_dicom_folders_and_show_the_same(mri: OwnMri) -> None:
    write_nifti(mri.folder / "a.nii.gz", VOXELS)
    write_slices(mri.folder / "b", VOXELS)
    mri.row("a", image="", flair="a.nii.gz", t1="", location="left frontal lobe")
    mri.row("b", image="", flair="b", t1="", location="")
    studies = mri.read(labels={"location": "location"})
    assert studies["a"].problem is None and studies["b"].problem is None
    assert studies["b"].images == {"FLAIR": str(mri.folder / "b")}
    assert studies["a"].labels == {"location": "left frontal lobe"} and studies["b"].labels == {}
    view = {"flair": _view({"kind": "slice", "series": "FLAIR", "slice": "middle"})}
    pictures = [render_study(studies[name], view, mri.folder / "out" / name)[0] for name in ("a", "b")]
    assert pictures[0].pixels == pictures[1].pixels
    assert pictures[0].slice_index == pictures[1].slice_index


def test_a_series_that_can_not_be_used_is_left_out_with_the_reason(mri: OwnMri) -> None:
    write_nifti(mri.folder / "a.nii.gz", VOXELS)
    (mri.folder / "bad.nii.gz").write_bytes(b"no gzip")
    gap = write_slices(mri.folder / "gap", VOXELS)
    (gap / "0002.dcm").unlink()
    out = write_slices(mri.folder / "out", VOXELS)
    (out / "0003.dcm").rename(mri.folder.parent / f"{mri.folder.name}.dcm")
    (out / "0003.dcm").symlink_to(mri.folder.parent / f"{mri.folder.name}.dcm")
    (mri.folder / "nothing").mkdir()
    for study, t1 in {
        "bad": "bad.nii.gz",
        "gap": "gap",
        "out": "out",
        "nothing": "nothing",
        "none": "none.nii",
    }.items():
        mri.row(study, image="", flair="a.nii.gz", t1=t1)
    mri.row("all", image="", flair="gap", t1="../x.nii.gz")
    mri.row("blank", image="", flair="", t1="")
    studies = mri.read()
    reasons = {
        "bad": "bad.nii.gz: not gzip, which its name says", "gap": "gap: a gap of 2 mm between",
        "out": "a symbolic link leads outside", "nothing": "nothing: no DICOM file in the folder",
        "none": "none.nii: missing",
    }  # fmt: skip
    for study, reason in reasons.items():
        assert studies[study].problem is None
        assert set(studies[study].images) == {"FLAIR"}
        assert reason in studies[study].attributes["unusable T1"]
    assert "a gap of 2 mm" in (studies["all"].problem or "") and "lies outside" in (studies["all"].problem or "")
    assert studies["blank"].problem == "no image: all cells are blank"
