"""Reading CheXpert Plus: a study of several rows, its frontal image, its report, and labels of their own table."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from pydantic import ValidationError

from overread.config import FINDINGS
from overread.core.errors import BadInput
from overread.core.records import Study
from overread.sources.chexpert_plus.reader import read
from overread.sources.chexpert_plus.section import ChexpertPlus
from overread.sources.shared.remarks import Remarks

HEAD = (
    "path_to_image", "path_to_dcm", "frontal_lateral", "ap_pa", "deid_patient_id", "patient_report_date_order",
    "report", "section_narrative", "section_findings", "section_impression", "age", "sex", "split",
)  # fmt: skip


class Release:
    """The table, built row by row, and its images."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.rows: list[dict[str, str]] = []
        self.labels: dict[str, dict[str, Any]] = {}

    def image(self, patient: int, study: int, view: int = 1, shown: str = "frontal", **cells: str) -> Path:
        split = cells.get("split", "train")
        name = f"{split}/patient{patient:05d}/study{study}/view{view}_{shown}.jpg"
        row = {
            "path_to_image": name, "frontal_lateral": shown.capitalize(), "ap_pa": "AP" if shown == "frontal" else "",
            "deid_patient_id": f"patient{patient:05d}", "patient_report_date_order": f"{study}.0",
            "report": "NARRATIVE: ...", "section_findings": f"Findings of\n {patient}/{study}.",
            "section_impression": "Impression.", "age": "60", "sex": "F", "split": split, **cells,
        }  # fmt: skip
        self.rows.append(row)
        self.labels[row["path_to_image"]] = {"Edema": 1.0}
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.linear_gradient("L").save(path, quality=90)
        return path

    def write(self) -> None:
        with (self.root / "df_chexpert_plus_240401.csv").open("w", newline="") as file:
            table = csv.DictWriter(file, HEAD, restval="")
            table.writeheader()
            table.writerows(self.rows)

    def label_csv(self) -> Path:
        path = self.root / "labels.csv"
        with path.open("w", newline="") as file:
            table = csv.DictWriter(file, ("path_to_image", *FINDINGS, "No Finding"), restval="")
            table.writeheader()
            table.writerows({"path_to_image": name, **values} for name, values in self.labels.items())
        return path

    def label_json(self) -> Path:
        path = self.root / "labels.json"
        rows = [
            {"path_to_image": name, **{finding: values.get(finding) for finding in FINDINGS}}
            for name, values in self.labels.items()
        ]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return path

    def read(self, remarks: Remarks | None = None, **more: Any) -> dict[str, Study]:
        self.write()
        questions = {"origin": "file", "path": "q.jsonl"}
        content = {"source": "chexpert-plus", "root": str(self.root), "questions": questions, **more}
        found = read("cp", ChexpertPlus.model_validate(content), self.root, remarks)
        return {study.study: study for study in found}


@pytest.fixture
def release(tmp_path: Path) -> Release:
    return Release(tmp_path)


def test_a_whole_study_is_read(release: Release) -> None:
    path = release.image(3, 5, view=1)
    release.image(3, 5, view=2, shown="lateral")
    study = release.read(labels=str(release.label_csv()))["patient00003-study5"]
    assert study.problem is None
    assert study.patient == "patient00003"
    assert study.images == {"frontal": str(path)}
    assert study.report == {"findings": "Findings of 3/5.", "impression": "Impression."}
    assert study.labels == {"Edema": "positive"}
    assert study.attributes == {
        "split": "train", "patient_report_date_order": "5.0", "ap_pa": "AP",
        "path_to_image": "train/patient00003/study5/view1_frontal.jpg",
    }  # fmt: skip
    assert study.restricted


def test_the_first_of_several_frontal_images_is_taken_by_number_and_not_by_letters(release: Release) -> None:
    for view in (10, 2, 3):
        release.image(1, 1, view=view, ap_pa="PA" if view == 3 else "AP")

    def taken(**frontal: Any) -> str:
        return Path(release.read(frontal=frontal)["patient00001-study1"].images["frontal"]).name

    assert taken() == "view2_frontal.jpg"
    assert taken(take="last") == "view10_frontal.jpg"
    assert taken(views=["PA"]) == "view3_frontal.jpg"


def test_the_images_may_be_png_and_lie_elsewhere(release: Release, tmp_path: Path) -> None:
    path = release.image(1, 1)
    png = tmp_path / "PNG" / path.relative_to(release.root).with_suffix(".png")
    png.parent.mkdir(parents=True)
    Image.linear_gradient("L").save(png)
    path.unlink()
    study = release.read(images=str(tmp_path / "PNG"))["patient00001-study1"]
    assert study.problem is None and study.images == {"frontal": str(png)}
    assert "missing" in (release.read()["patient00001-study1"].problem or "")


def test_only_the_wanted_split_is_read_and_another_is_named(release: Release) -> None:
    release.image(1, 1)
    release.image(2, 1, split="valid")
    assert set(release.read(split="valid")) == {"patient00002-study1"}
    with pytest.raises(BadInput, match=r"no study of the split 'test'; there are: train, valid"):
        release.read(split="test")


def test_flawed_studies_are_kept_with_their_reason_and_the_others_go_on(release: Release) -> None:
    release.image(1, 1)
    release.image(2, 1, shown="lateral")
    release.image(3, 1, section_findings=" ", section_impression="")
    release.image(4, 1).write_bytes(b"")
    release.image(5, 1)
    release.image(5, 1, view=2, deid_patient_id="patient00006")
    release.image(6, 1)
    release.image(6, 1, view=2, section_findings="Other findings.")
    release.image(7, 1)
    release.rows.append({**release.rows[-1], "ap_pa": "PA"})
    release.image(8, 1)
    release.rows.append(dict(release.rows[-1]))
    problems = {name[7:12].lstrip("0"): study.problem or "" for name, study in release.read().items()}
    expected = {
        "1": "", "2": "no frontal image (AP or PA)", "3": "no report: findings and impression are blank",
        "4": "an empty file", "5": "lies with another patient than patient00006",
        "6": "its rows name different patients, splits, dates or reports", "7": "view1_frontal.jpg is listed twice",
        "8": "",
    }  # fmt: skip
    assert set(problems) == set(expected)
    for number, reason in expected.items():
        assert reason in problems[number] and bool(reason) == bool(problems[number]), (number, problems[number])


def test_odd_rows_are_told_with_their_keys(release: Release) -> None:
    release.image(1, 1)
    for cells in (
        {"path_to_image": "../../patient00001/study1/view2_frontal.jpg"},
        {"path_to_image": "train/patient00001/view2_frontal.jpg"},
        {"path_to_image": "train/patient00001/study1/view3_frontal.jpg", "deid_patient_id": ""},
        {"path_to_image": "train/patient00001/study1/view4_lateral.jpg"},
        {"path_to_image": "train/patient00001/study1/view5_frontal.jpg", "frontal_lateral": "Oblique"},
    ):
        release.rows.append({**release.rows[0], **cells})
    remarks = Remarks()
    assert release.read(remarks)["patient00001-study1"].problem is None
    assert [(row.key, row.remark) for row in remarks.rows] == [
        ("../../patient00001/study1/view2_frontal.jpg", "row 2: path_to_image names no study: left out"),
        ("train/patient00001/view2_frontal.jpg", "row 3: path_to_image names no study: left out"),
        ("train/patient00001/study1/view3_frontal.jpg", "row 4: no deid_patient_id: left out"),
        ("train/patient00001/study1/view4_lateral.jpg",
         "row 5: called lateral by its name and Frontal by the table: not used"),
        ("train/patient00001/study1/view5_frontal.jpg", "row 6: frontal_lateral is 'Oblique': not used"),
    ]  # fmt: skip
    assert remarks.counts["images listed"] == 3


def test_labels_of_csv_and_of_json_lines_are_the_same(release: Release) -> None:
    release.image(1, 1)
    release.image(2, 1)
    release.labels["train/patient00002/study1/view1_frontal.jpg"] = {"Edema": -1.0, "Fracture": 0.0}
    by_csv = {name: study.labels for name, study in release.read(labels=str(release.label_csv())).items()}
    by_json = {name: study.labels for name, study in release.read(labels=str(release.label_json())).items()}
    assert by_csv == by_json
    assert by_csv["patient00002-study1"] == {"Edema": "uncertain", "Fracture": "negative"}


def test_labels_that_are_missing_odd_or_contradictory_spoil_their_study_only(release: Release) -> None:
    for patient in (1, 2, 3, 4):
        release.image(patient, 1)
    release.image(4, 1, view=2)
    release.labels.pop("train/patient00002/study1/view1_frontal.jpg")
    release.labels["train/patient00003/study1/view1_frontal.jpg"] = {"Edema": "perhaps"}
    release.labels["train/patient00004/study1/view2_frontal.jpg"] = {"Edema": 0.0}
    problems = {name[11]: study.problem for name, study in release.read(labels=str(release.label_csv())).items()}
    assert problems == {
        "1": None,
        "2": "no labels",
        "3": "labels other than 1, 0, -1 and blank: Edema perhaps",
        "4": "its images are labelled differently",
    }


def test_tables_that_are_wrong_are_named(release: Release) -> None:
    release.image(1, 1)
    with pytest.raises(BadInput, match=r"labels\.json: no such file"):
        release.read(labels=str(release.root / "labels.json"))
    (release.root / "labels.json").write_text('{"path_to_image": "x"}\n')
    with pytest.raises(BadInput, match=r"labels\.json:1: no key Atelectasis"):
        release.read(labels=str(release.root / "labels.json"))
    (release.root / "labels.json").write_text("[")
    with pytest.raises(BadInput, match="not readable as JSON lines"):
        release.read(labels=str(release.root / "labels.json"))
    (release.root / "df_chexpert_plus_240402.csv").write_text("x")
    with pytest.raises(BadInput, match="needs one table"):
        release.read()
    with pytest.raises(ValidationError, match="need labels: name 'labels'"):
        release.read(questions={"origin": "findings"})
