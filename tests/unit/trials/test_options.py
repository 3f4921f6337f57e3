from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overread.core.records import Question
from overread.settings.options import permutation
from overread.trials.options import balanced


def question(number: int = 0, options: tuple[str, ...] = ("a", "b", "c", "d"), answer: str = "a") -> Question:
    return Question(
        study="s", patient="p", stem=f"stem {number}", options=options, answer=answer, topic="t", origin="test"
    )


def test_as_written_leaves_the_options_alone():
    assert permutation(question(), "as-written", seed=0) == (0, 1, 2, 3)


def test_a_rotation_moves_the_first_options_to_the_end():
    assert permutation(question(), "rotated-1", seed=0) == (1, 2, 3, 0)
    assert permutation(question(), "rotated-4", seed=0) == (0, 1, 2, 3)


@given(st.integers(0, 10_000), st.integers(2, 8), st.integers(0, 5))
def test_a_shuffle_keeps_every_option_once(number, count, seed):
    options = tuple(f"option {place}" for place in range(count))
    order = permutation(question(number, options, options[-1]), "shuffled", seed)
    assert sorted(order) == list(range(count))


def test_a_shuffle_puts_the_right_option_everywhere_equally_often():
    """2,400 questions whose answer is always written first: 600 a place, within four standard deviations (85)."""
    places = Counter(permutation(question(number), "shuffled", seed=1).index(0) for number in range(2_400))
    assert all(abs(places[place] - 600) < 85 for place in range(4)), places


def test_a_shuffle_mixes_the_wrong_options_too():
    orders = {tuple(place for place in permutation(question(n), "shuffled", 0) if place != 0) for n in range(200)}
    assert len(orders) == 6


def test_a_shuffle_depends_on_seed_and_question_alone():
    assert permutation(question(3), "shuffled", 1) == permutation(question(3), "shuffled", 1)
    assert {permutation(question(3), "shuffled", seed) for seed in range(20)} != {
        permutation(question(3), "shuffled", 0)
    }


def test_an_unknown_order_is_refused():
    with pytest.raises(ValueError, match="sorted"):
        permutation(question(), "sorted", 0)


def shares(orders, questions):
    places = Counter(orders[one.question].index(one.answer_index) for one in questions)
    return [places[place] / len(questions) for place in range(4)]


def first_written(count, start=0):
    return [question(number) for number in range(start, start + count)]


@given(st.integers(1, 300), st.integers(0, 3))
def test_balanced_places_differ_by_one_question_at_most(count, seed):
    questions = first_written(count)
    orders = balanced(questions, seed)
    places = Counter(orders[one.question].index(0) for one in questions)
    assert max(places.values()) - min(places[place] for place in range(4)) <= 1
    assert all(sorted(orders[one.question]) == [0, 1, 2, 3] for one in questions)


def test_a_dataset_of_the_published_size_is_balanced_within_two_per_cent():
    assert all(abs(share - 0.25) < 0.0005 for share in shares(balanced(first_written(2_387), 1), first_written(2_387)))


def test_balance_depends_on_no_order_of_the_questions():
    questions = first_written(101)
    assert balanced(questions, 4) == balanced(questions[::-1], 4)


@pytest.mark.parametrize("size", [40, 200, 2_387])
def test_a_changed_question_moves_no_other_that_an_earlier_release_holds(size):
    questions = first_written(size)
    before = balanced(questions, 1)
    for place in range(0, size, max(size // 4, 5)):
        changed = [*questions[:place], question(10_000 + place), *questions[place + 1 :]]
        after = balanced(changed, 1, before)
        assert all(after[one.question] == before[one.question] for one in changed if one.question in before)
        assert all(abs(share - 0.25) <= max(0.0201, 1 / size) for share in shares(after, changed))


@given(st.integers(0, 199), st.integers(0, 50))
def test_without_an_earlier_release_a_changed_question_moves_a_handful(place, seed):
    questions = first_written(200)
    before = balanced(questions, seed)
    changed = [*questions[:place], question(10_000), *questions[place + 1 :]]
    after = balanced(changed, seed)
    assert sum(after[one.question] != before[one.question] for one in questions if one is not questions[place]) <= 8


def test_earlier_orders_are_given_up_only_as_far_as_the_balance_needs():
    """Of 100 earlier questions all have the answer first: 27 may stay there, and no more."""
    questions = first_written(100)
    after = balanced(questions, 1, {one.question: (0, 1, 2, 3) for one in questions})
    assert sum(after[one.question] == (0, 1, 2, 3) for one in questions) == 27
    assert all(abs(share - 0.25) < 0.0201 for share in shares(after, questions))


def test_questions_with_other_numbers_of_options_are_balanced_apart():
    yes_no = [question(number, ("yes", "no"), "yes") for number in range(30)]
    four = first_written(40, start=100)
    orders = balanced([*yes_no, *four], 1)
    assert Counter(orders[one.question].index(0) for one in yes_no) == {0: 15, 1: 15}
    assert shares(orders, four) == [0.25] * 4


def test_an_earlier_order_that_does_not_fit_is_not_used():
    one = question(1)
    assert sorted(balanced([one], 1, {one.question: (0, 1)})[one.question]) == [0, 1, 2, 3]
