"""Which questions a reader study asks, and in which orders."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overread.core.errors import BadInput
from overread.core.records import Question
from overread.curation.review import sample, write_reader_sheet
from overread.trials.options import balanced
from overread_viewer.readers.database import Asked
from overread_viewer.readers.readers_file import Fixed, QuestionChoice, ReadersFile
from overread_viewer.readers.sampling import assignments, chosen_questions, largest_remainders, option_orders


def question(number: int, topic: str = "size") -> Question:
    return Question(
        study=f"s{number:03}", patient=f"p{number:03}", stem=f"How large is mass {number}?",
        options=("under 2 cm", "2 to 4 cm", "4 to 6 cm", "over 6 cm"), answer="under 2 cm", topic=topic,
        origin="grammar",
    )  # fmt: skip


QUESTIONS = [question(k, "size" if k % 4 else "location") for k in range(200)]


def study(tmp_path: Path, **changes: Any) -> ReadersFile:
    content = {
        "name": "fellows", "dataset": "mri", "questions": QuestionChoice(sample=40), "raters": {"a": "A", "b": "B"},
        "view": "flair-axial", "seed": 3, "database": str(tmp_path / "d"), "ratings": str(tmp_path / "r"),
    }  # fmt: skip
    return ReadersFile.model_validate(content | changes)


def asked(questions: list[Question], practice: int = 0) -> list[Asked]:
    return [
        Asked(one.question, one.study, one.patient, one.stem, one.options, one.answer_index, (0, 1, 2, 3),
              number < practice, ())
        for number, one in enumerate(questions)
    ]  # fmt: skip


def fixed(tmp_path: Path, **changes: Any) -> Fixed:
    return study(tmp_path, **changes).fixed()


def test_the_draw_is_that_of_the_readers_sheet(tmp_path):
    counted, practice = chosen_questions(study(tmp_path), QUESTIONS)
    assert counted == sample(QUESTIONS, 40, 3, "readers") and practice == []


def test_practice_questions_are_none_of_those_that_count(tmp_path):
    counted, practice = chosen_questions(study(tmp_path, practice=5), QUESTIONS)
    assert len(practice) == 5
    assert not {one.question for one in practice} & {one.question for one in counted}


def test_practice_does_not_change_the_draw(tmp_path):
    assert (
        chosen_questions(study(tmp_path, practice=5), QUESTIONS)[0] == chosen_questions(study(tmp_path), QUESTIONS)[0]
    )


def test_by_topic_each_topic_has_its_share(tmp_path):
    counted, _ = chosen_questions(study(tmp_path, questions=QuestionChoice(sample=40, by="topic")), QUESTIONS)
    assert Counter(one.topic for one in counted) == {"size": 30, "location": 10}


@given(st.dictionaries(st.text(min_size=1), st.integers(1, 500), min_size=1, max_size=12), st.integers(0, 500))
def test_shares_add_up_and_are_less_than_one_from_even(sizes, count):
    count = min(count, sum(sizes.values()))
    shares = largest_remainders(sizes, count)
    assert sum(shares.values()) == count
    assert all(abs(shares[name] - count * size / sum(sizes.values())) < 1 for name, size in sizes.items())
    assert all(shares[name] <= size for name, size in sizes.items())


def test_too_few_questions_are_refused_with_the_number_there_are(tmp_path):
    with pytest.raises(BadInput, match="dataset mri has 200 that can be shown"):
        chosen_questions(study(tmp_path, questions=QuestionChoice(sample=199), practice=2), QUESTIONS)


def test_listed_questions_are_taken_in_their_order(tmp_path):
    wanted = [QUESTIONS[7], QUESTIONS[3], QUESTIONS[90]]
    path = tmp_path / "ids.txt"
    path.write_text("# the pilot\n\n" + "\n".join(one.question for one in wanted) + "\n", encoding="utf-8")
    listed = study(tmp_path, questions=QuestionChoice(ids=str(path)), order="as-listed")
    counted, _ = chosen_questions(listed, QUESTIONS)
    assert counted == wanted
    places = assignments(listed.fixed(), "a", asked(counted))
    assert [one.question for one in places] == [one.question for one in wanted]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("0000000000000000\n", ":1: no question '0000000000000000'"),
        ("", "names no question"),
        ("{0}\n{0}\n", ":2: question"),
    ],
)
def test_a_list_that_does_not_fit_is_refused_by_its_line(tmp_path, text, problem):
    path = tmp_path / "ids.txt"
    path.write_text(text.format(QUESTIONS[0].question), encoding="utf-8")
    with pytest.raises(BadInput, match=problem):
        chosen_questions(study(tmp_path, questions=QuestionChoice(ids=str(path))), QUESTIONS)


def test_a_readers_sheet_gives_its_questions_and_its_option_orders(tmp_path):
    drawn, orders = sample(QUESTIONS, 6, 9, "readers"), balanced(QUESTIONS, 9)
    path = tmp_path / "readers.csv"
    write_reader_sheet(drawn, orders, path)
    by_sheet = study(tmp_path, questions=QuestionChoice(sheet=str(path)), options="sheet", practice=1)
    counted, practice = chosen_questions(by_sheet, QUESTIONS)
    assert counted == drawn
    found = option_orders(by_sheet, [*counted, *practice])
    assert {one.question: found[one.question] for one in counted} == {
        one.question: orders[one.question] for one in drawn
    }
    assert sorted(found[practice[0].question]) == [0, 1, 2, 3]


def test_a_sheet_with_other_options_is_refused(tmp_path):
    path = tmp_path / "readers.csv"
    write_reader_sheet(QUESTIONS[:1], balanced(QUESTIONS[:1], 0), path)
    path.write_text(path.read_text(encoding="utf-8").replace("over 6 cm", "over 7 cm"), encoding="utf-8")
    by_sheet = study(tmp_path, questions=QuestionChoice(sheet=str(path)), options="sheet")
    with pytest.raises(BadInput, match=r"readers.csv:2: question .* has other options"):
        option_orders(by_sheet, QUESTIONS[:1])


def test_shuffled_options_put_the_right_one_at_each_place_equally_often(tmp_path):
    counted, _ = chosen_questions(study(tmp_path), QUESTIONS)
    orders = option_orders(study(tmp_path), counted)
    assert Counter(orders[one.question].index(one.answer_index) for one in counted) == {0: 10, 1: 10, 2: 10, 3: 10}


def test_options_as_written_stay_as_written(tmp_path):
    assert set(option_orders(study(tmp_path, options="as-written"), QUESTIONS).values()) == {(0, 1, 2, 3)}


def test_raters_have_orders_of_their_own_and_the_same_options(tmp_path):
    questions = asked(QUESTIONS[:30])
    one, other = (assignments(fixed(tmp_path), rater, questions) for rater in ("a", "b"))
    assert {each.question for each in one} == {each.question for each in other}
    assert [each.question for each in one] != [each.question for each in other]
    assert {each.question: each.shown for each in one} == {each.question: each.shown for each in other}


def test_an_order_hangs_on_seed_and_rater_alone(tmp_path):
    questions = asked(QUESTIONS[:30])
    first = assignments(fixed(tmp_path), "a", questions)
    assert assignments(fixed(tmp_path), "a", questions[::-1]) == first
    assert assignments(fixed(tmp_path, seed=4), "a", questions) != first


def test_one_order_for_all_is_one_order_for_all(tmp_path):
    questions = asked(QUESTIONS[:30])
    one, other = (assignments(fixed(tmp_path, order="same"), rater, questions) for rater in ("a", "b"))
    assert one == other


def test_options_shuffled_by_rater_differ_between_raters(tmp_path):
    questions = asked(QUESTIONS[:30])
    by_rater = fixed(tmp_path, options="shuffled-by-rater")
    one, other = ({each.question: each.shown for each in assignments(by_rater, r, questions)} for r in ("a", "b"))
    assert all(sorted(order) == [0, 1, 2, 3] for order in [*one.values(), *other.values()])
    assert sum(one[name] == other[name] for name in one) < 10  # 1 in 24 by chance


def test_practice_comes_first_and_is_counted_apart(tmp_path):
    places = assignments(fixed(tmp_path), "a", asked(QUESTIONS[:10], practice=3))
    assert [(one.practice, one.place) for one in places] == [(True, k) for k in (1, 2, 3)] + [
        (False, k) for k in range(1, 8)
    ]
