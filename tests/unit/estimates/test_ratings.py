"""ratings.csv, as a reader study exports it and as it is read: what is refused, and how it is said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from data.configs import config_of
from data.rated import QUESTIONS, frame, three_raters, write
from overread import plan
from overread.core.errors import BadConfig, BadInput
from overread.estimates.ratings import COLUMNS, ratings_frame


def test_the_order_of_lines_and_files_changes_nothing(tmp_path: Path):
    rows = three_raters()
    split = [write(tmp_path / "one.csv", rows[6:]), write(tmp_path / "two.csv", rows[:6][::-1])]
    assert ratings_frame("fellows", "data", split, QUESTIONS).equals(frame(tmp_path, rows))


def test_the_export_of_a_reader_study_has_the_columns_that_are_read():
    from overread_viewer.readers.ratings import COLUMNS as EXPORTED

    assert EXPORTED == COLUMNS


def test_what_a_reader_study_exports_is_read_without_its_practice_questions(tmp_path: Path):
    """Options are shown in another order than written; the rater picks the right one, then can't tell."""
    from overread_viewer.readers import database
    from overread_viewer.readers.ratings import export

    base = database.Database(tmp_path / "readers.sqlite")
    practice, first, second = QUESTIONS[:3]
    stored = [
        database.Asked(
            one.question, one.study, one.patient, one.stem, one.options, one.answer_index, (3, 2, 1, 0),
            one is practice, (),
        )
        for one in (practice, first, second)
    ]  # fmt: skip
    base.begin("fellows", "data", {}, stored)
    places = [(practice, True, 1), (first, False, 1), (second, False, 2)]
    base.add_rater("A", "Dr A", [database.Assigned(one.question, test, at, (3, 2, 1, 0)) for one, test, at in places])
    for one, chosen in ((practice, 2), (first, first.answer_index), (second, None)):
        base.seen("A", one.question)
        base.store_reading("A", one.question, database.Reading(chosen, 3, True, 0.0))
        base.store_judgement("A", one.question, database.Judgement(True, False, 'a "comment", with\nlines'))
    assert export(base, tmp_path / "ratings.csv") == 2
    base.close()
    own = ratings_frame("fellows", "data", [tmp_path / "ratings.csv"], QUESTIONS).set_index("question")
    assert set(own.index) == {first.question, second.question}
    assert own["right"].to_dict() == {first.question: True, second.question: False}
    assert own.loc[second.question, "choice"] == -1
    assert own[["agrees", "relevant", "answerable"]].to_numpy().tolist() == [[True, False, True]] * 2


def test_time_in_view_may_be_left_out_altogether(tmp_path: Path):
    path = write(tmp_path / "r.csv", three_raters()[:4], [name for name in COLUMNS if name != "seconds_in_view"])
    assert ratings_frame("fellows", "data", [path], QUESTIONS)["seconds_in_view"].isna().all()


# -- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"question": "0123456789abcdef"}, "question: no '0123456789abcdef' among the questions of data"),
        ({"chosen": "left"}, "chosen: 'left' is no option of question"),
        ({"study": "s9"}, "study: 's9', but question"),
        ({"patient": "p9"}, "patient: 'p9', but question"),
        ({"subset": "residents"}, "subset: 'residents', but the config lists the file under human.fellows"),
        ({"dataset": "xray"}, "dataset: 'xray', but human.fellows.dataset is 'data'"),
        ({"confidence": "6"}, "confidence:"),
        ({"confidence": ""}, "confidence:"),
        ({"agrees": "maybe"}, "agrees:"),
        ({"relevant": ""}, "relevant:"),
        ({"rater": ""}, "rater:"),
        ({"seconds": "-1"}, "seconds:"),
        ({"seconds": "nan"}, "seconds:"),
        ({"place": "0"}, "place:"),
    ],
)
def test_a_line_that_is_no_rating_is_named_with_its_file(tmp_path: Path, changes: dict[str, Any], said: str):
    rows = three_raters()
    rows[4].update(changes)
    with pytest.raises(BadInput) as error:
        frame(tmp_path, rows)
    assert str(error.value).startswith(f"{tmp_path / 'ratings.csv'}:6: {said}")
    assert "\n" not in str(error.value)


def test_two_ratings_of_a_question_by_one_rater_are_refused_with_both_places(tmp_path: Path):
    rows = [*three_raters(), three_raters()[1]]
    with pytest.raises(BadInput, match=r"ratings\.csv:14: A has rated question \w+ before, at \S+ratings\.csv:3$"):
        frame(tmp_path, rows)


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ([name for name in COLUMNS if name != "chosen"], "no column 'chosen'"),
        ([*COLUMNS, "mood"], "the column 'mood' is not known"),
    ],
)
def test_a_file_with_other_columns_is_refused(tmp_path: Path, columns: list[str], said: str):
    rows = [{name: {"seconds_in_view": "", **one, "mood": "good"}[name] for name in columns} for one in three_raters()]
    path = write(tmp_path / "ratings.csv", rows, columns)
    with pytest.raises(BadInput, match=f"ratings.csv:1: {said}"):
        ratings_frame("fellows", "data", [path], QUESTIONS)


def test_a_file_without_a_rating_and_one_that_is_not_there_are_refused(tmp_path: Path):
    with pytest.raises(BadInput, match="no rating"):
        frame(tmp_path, [])
    with pytest.raises(BadInput, match="no such file"):
        ratings_frame("fellows", "data", [tmp_path / "none.csv"], QUESTIONS)
    (tmp_path / "cut.csv").write_text(",".join(COLUMNS) + "\nA,fellows\n", encoding="utf-8")
    with pytest.raises(BadInput, match=r"cut\.csv:2: not as many cells as there are columns"):
        ratings_frame("fellows", "data", [tmp_path / "cut.csv"], QUESTIONS)


# -- in the config ----------------------------------------------------------------------------------------------------


def test_ratings_that_are_named_and_not_there_are_an_error_before_the_first_job(tmp_path: Path):
    config = config_of(tmp_path, human={"fellows": {"dataset": "mri", "ratings": ["sheets/ratings.csv"]}})
    errors, _ = plan.check(config)
    assert [one for one in errors if one.startswith("human")] == [
        f"human.fellows.ratings: no file at {tmp_path / 'sheets/ratings.csv'}; export it from the reader study, or "
        "leave it out until then"
    ]
    write(tmp_path / "ratings.csv", three_raters())
    there = config_of(tmp_path, human={"fellows": {"dataset": "mri", "ratings": ["ratings.csv"]}})
    assert not [one for one in plan.check(there)[0] if one.startswith("human")]


def test_a_dataset_that_there_is_not_and_a_file_named_twice_are_refused(tmp_path: Path):
    with pytest.raises(BadConfig, match=r"human\.fellows\.dataset: no dataset 'mr'; there are: mri, xray"):
        config_of(tmp_path, human={"fellows": {"dataset": "mr"}})
    with pytest.raises(BadConfig, match=r"human\.fellows\.ratings: .*duplicate"):
        config_of(tmp_path, human={"fellows": {"dataset": "mri", "ratings": ["a.csv", "./a.csv"]}})


def test_what_people_answered_is_no_part_of_the_study_s_identity(tmp_path: Path):
    plain = config_of(tmp_path).identity()
    rated = config_of(tmp_path, human={"fellows": {"dataset": "mri", "ratings": ["ratings.csv"]}}).identity()
    assert rated == plain
