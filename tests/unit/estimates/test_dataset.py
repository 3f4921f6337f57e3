"""dataset.csv and blind_hits.csv, worked out by hand."""

from __future__ import annotations

from pathlib import Path

import nibabel
import numpy as np
import pytest

from data.handmade import Asked, read, write_cell
from overread.config import Setting
from overread.core.errors import BadInput
from overread.core.records import Modality, Question, Study, write_questions, write_studies
from overread.estimates.source import Source, read_source
from overread.estimates.tables.blind_hits import TABLE, blind_hits_table
from overread.estimates.tables.dataset import dataset_table

FOUR = ("left", "right", "in front", "behind")


def study(
    name: str, patient: str, images: dict[str, str], *, modality: Modality = "mri", restricted: bool = False
) -> Study:
    return Study(
        study=name, patient=patient, dataset="data", modality=modality, images=images, report={}, labels={},
        restricted=restricted,
    )  # fmt: skip


def question(of: str, stem: str, answer: str, options: tuple[str, ...] = FOUR) -> Question:
    return Question(study=of, patient="p", stem=stem, options=options, answer=answer, topic="t", origin="grammar")


def volume(path: Path, shape: tuple[int, ...]) -> str:
    nibabel.save(nibabel.Nifti1Image(np.zeros(shape, np.int16), np.eye(4)), path)
    return str(path)


def source(folder: Path, studies: list[Study], questions: list[Question], rejected: str = "") -> Source:
    folder.mkdir(exist_ok=True)
    write_studies(studies, folder / "studies.parquet")
    write_questions(questions, folder / "questions.jsonl")
    (folder / "studies_rejected.csv").write_text(f"study,patient,stage,reason\n{rejected}", encoding="utf-8")
    return read_source(folder)


def test_a_worked_example_with_volumes(tmp_path: Path):
    """Three series of 155, 155 and (4-D) 38 slices in one study, one of 12 in another: 90 slices a series."""
    files = {
        "FLAIR": volume(tmp_path / "flair.nii.gz", (4, 4, 155)),
        "T1": volume(tmp_path / "t1.nii", (4, 4, 155)),
        "DTI": volume(tmp_path / "dti.nii.gz", (4, 4, 38, 3)),
    }
    small = {"FLAIR": volume(tmp_path / "small.nii.gz", (4, 4, 12))}
    made = source(
        tmp_path / "data",
        [study("s1", "p1", files), study("s2", "p1", small), study("s3", "p2", files), study("s4", "p3", files)],
        [
            question("s1", "Where is it?", "left"),
            question("s1", "Where does it reach from there?", "right"),
            question("s2", "Where is it?", "left"),
            question("s3", "Where is it?", "left"),
        ],
        rejected="s3,p2,images,all zero\n",
    )
    row = dataset_table({"data": made}).iloc[0]
    assert row[["dataset", "questions", "studies", "patients"]].tolist() == ["data", 3, 2, 1]
    # Stems of 3, 6 and 3 words, options of 5 words together.
    assert row["words_per_question"] == pytest.approx((8 + 11 + 8) / 3)
    assert row["series_per_study"] == 2
    assert row["slices_per_series"] == pytest.approx((155 + 155 + 38 + 12) / 4)
    positions = [f"answer_position_{place}" for place in (1, 2, 3, 4)]
    assert row[positions].tolist() == pytest.approx([2 / 3, 1 / 3, 0, 0])


def test_an_x_ray_is_one_slice_and_two_options_have_two_positions(tmp_path: Path):
    made = source(
        tmp_path / "data",
        [study("s1", "p1", {"frontal": "a.jpg", "lateral": "b.jpg"}, modality="xray")],
        [question("s1", "Is there oedema?", "no", ("yes", "no"))],
    )
    row = dataset_table({"data": made}).iloc[0]
    assert row[["series_per_study", "slices_per_series"]].tolist() == [2, 1]
    assert row[["answer_position_1", "answer_position_2"]].tolist() == [0, 1]
    assert row[["answer_position_3", "answer_position_4"]].isna().all()


def test_more_than_four_options_add_columns(tmp_path: Path):
    five = (*FOUR, "nowhere")
    made = source(tmp_path / "data", [study("s1", "p1", {})], [question("s1", "Where?", "nowhere", five)])
    table = dataset_table({"data": made})
    assert list(table.columns[-2:]) == ["answer_position_4", "answer_position_5"]
    assert table.iloc[0, -1] == 1


@pytest.mark.parametrize("damage", ["gone", "cut", "text"])
def test_slices_are_blank_and_not_a_part_mean_when_a_volume_cannot_be_read(tmp_path: Path, damage: str):
    good = volume(tmp_path / "flair.nii.gz", (4, 4, 12))
    bad = tmp_path / "t1.nii.gz"
    if damage == "cut":
        bad.write_bytes((tmp_path / "flair.nii.gz").read_bytes()[:20])
    elif damage == "text":
        bad.write_text("not a volume")
    made = source(
        tmp_path / "data", [study("s1", "p1", {"FLAIR": good, "T1": str(bad)})], [question("s1", "Where?", "left")]
    )
    assert dataset_table({"data": made})["slices_per_series"].isna().all()


def test_a_dataset_of_which_every_study_was_rejected_has_a_row_of_zeros(tmp_path: Path):
    made = source(
        tmp_path / "data", [study("s1", "p1", {})], [question("s1", "Where?", "left")], "s1,p1,images,blank\n"
    )
    row = dataset_table({"data": made}).iloc[0]
    assert row[["questions", "studies", "patients"]].tolist() == [0, 0, 0]
    assert row.iloc[4:].isna().all()


def test_a_missing_list_of_rejected_studies_is_named(tmp_path: Path):
    source(tmp_path / "data", [study("s1", "p1", {})], [question("s1", "Where?", "left")])
    (tmp_path / "data" / "studies_rejected.csv").unlink()
    with pytest.raises(BadInput, match=r"studies_rejected\.csv: no such file"):
        read_source(tmp_path / "data")


@pytest.mark.parametrize(
    ("fields", "blind"),
    [
        ({}, True),
        ({"images": "flair", "source": "black"}, True),
        ({"images": "flair"}, False),
        ({"images": "flair", "source": "substitute"}, False),
        ({"report": "full"}, False),
        ({"images": "flair", "source": "black", "report": "boilerplate"}, False),
    ],
)
def test_blind_is_no_picture_of_a_study_and_no_report(fields: dict[str, object], blind: bool):
    assert Setting.model_validate(fields).shows_the_study != blind


def blind_hits(tmp_path: Path, *, restricted: bool = False):
    """Two models under two blind settings and one that is not.

    q1: both models right each time, q2: only the second model right each time, q3: right once of twice.
    """
    asked = [question("s1", stem, "left") for stem in ("First?", "Second?", "Third?")]
    names = [one.question for one in asked]

    def answers(*given: str | None) -> list[Asked]:
        return [Asked(name, "p", "left", text, options=FOUR) for name, text in zip(names, given, strict=True)]

    right, wrong = "left", "right"
    cells = read(
        tmp_path,
        write_cell(tmp_path, "black", answers(right, wrong, right), answers(right, right, wrong), model="one"),
        write_cell(tmp_path, "none", answers(right, right, right), answers(right, right, right), model="two"),
        write_cell(tmp_path, "black", answers(right, right, None), model="two"),
        write_cell(tmp_path, "own", answers(wrong, wrong, wrong), model="two"),
        write_cell(tmp_path, "own", answers(right, right, right), model="three"),
    )
    settings = {
        "black": Setting(images="flair", source="black"),
        "none": Setting(),
        "own": Setting(images="flair"),
    }
    sources = {"data": Source((study("s1", "p", {}, restricted=restricted),), tuple(asked))}
    return names, blind_hits_table(cells, settings, sources)


def test_a_blind_hit_is_right_in_every_blind_run_of_a_model(tmp_path: Path):
    names, table = blind_hits(tmp_path)
    assert tuple(table.columns) == TABLE.names
    by_question = {row["question"]: row for row in table.to_dict("records")}
    assert list(by_question) == sorted(names[:2])
    first, second = by_question[names[0]], by_question[names[1]]
    assert (first["stem"], first["topic"], first["settings"]) == ("First?", "topic", "black;none")
    assert (first["models"], first["share_of_models"]) == ("one;two", 1)
    assert (second["models"], second["share_of_models"]) == ("two", 0.5)


def test_stems_of_a_restricted_dataset_stay_blank(tmp_path: Path):
    _, table = blind_hits(tmp_path, restricted=True)
    assert table["stem"].tolist() == ["", ""]


def test_without_a_blind_setting_there_is_no_hit(tmp_path: Path):
    cells = read(tmp_path, write_cell(tmp_path, "own", [Asked("q1", "p", "left", "left", options=FOUR)]))
    assert blind_hits_table(cells, {"own": Setting(images="flair")}, {"data": Source((), ())}).empty
