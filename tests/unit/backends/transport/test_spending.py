"""The ledger: what is spent is known to every job, whatever became of the one that spent it."""

from __future__ import annotations

import json
import multiprocessing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.spender import spend
from overread.backends.transport.spending import Prices, Purse, Spent
from overread.core.errors import BadInput


def purse(path: Path, job: str = "one", **limits: float | int) -> Purse:
    return Purse(Prices(2.0, 8.0), path / "ledger.jsonl", job, **limits)  # type: ignore[arg-type]


def test_prices_are_by_the_million_and_cached_tokens_have_their_own() -> None:
    assert Prices(2.0, 8.0).of(1_000_000, 500_000) == 6.0
    assert Prices(2.0, 8.0, 0.5).of(1_000_000, 0, cached=400_000) == pytest.approx(1.2 + 0.2)
    assert Prices(2.0, 8.0).of(1_000_000, 0, cached=400_000) == 2.0


def test_a_reservation_holds_until_it_is_settled(tmp_path: Path) -> None:
    one = purse(tmp_path, tokens=100)
    name = one.reserve(Spent(60))
    assert name is not None
    assert one.reserve(Spent(60)) is None
    one.settle(name, Spent(20))
    assert one.spent.tokens == 20
    assert one.reserve(Spent(80)) is not None
    assert one.reserve(Spent(1)) is None


def test_two_jobs_see_each_others_spending_at_once(tmp_path: Path) -> None:
    one, two = purse(tmp_path, "one", dollars=1.0), purse(tmp_path, "two", dollars=1.0)
    name = one.reserve(Spent(10, 0.7))
    assert two.reserve(Spent(10, 0.5)) is None
    one.settle(name, Spent(10, 0.4))
    assert two.reserve(Spent(10, 0.5)) is not None
    assert two.left().dollars == pytest.approx(0.1)
    assert one.left() == two.left()


def test_a_killed_jobs_reservations_stay_spent_and_a_settled_request_does_not_double(tmp_path: Path) -> None:
    killed = purse(tmp_path, tokens=1000)
    killed.reserve(Spent(300))
    killed.settle(killed.reserve(Spent(300)), Spent(100))
    again = purse(tmp_path, tokens=1000)
    assert again.left().tokens == 600


def test_what_a_lost_answer_may_have_cost_stays_spent_but_nobody_waits_for_it(tmp_path: Path) -> None:
    one = purse(tmp_path, tokens=1000)
    name = one.reserve(Spent(300))
    assert name is not None
    one.lose(name)
    assert (one.held, one.left().tokens) == (set(), 700)


def test_kept_answers_that_the_ledger_does_not_know_are_written_into_it_once(tmp_path: Path) -> None:
    one = purse(tmp_path, dollars=1.0)
    one.recall([(1_000, 100), (2_000, 0)])
    assert one.spent == Spent(3_100, pytest.approx(0.0068))
    again = purse(tmp_path, dollars=1.0)
    again.recall([(1_000, 100), (2_000, 0)])
    assert again.spent.tokens == 3_100
    other = purse(tmp_path, "two", dollars=1.0)
    other.recall([(500, 0)])
    assert other.spent.tokens == 3_600


def test_a_torn_and_a_strange_line_are_passed_over_and_nothing_after_them_is_lost(tmp_path: Path) -> None:
    one = purse(tmp_path, tokens=1000)
    one.settle(None, Spent(10))
    with one.path.open("ab") as file:
        file.write(b'{"settle": null, "jo')
    one.settle(None, Spent(20))
    with one.path.open("ab") as file:
        file.write(b"[]\nnonsense\n")
    one.settle(None, Spent(40))
    assert one.spent.tokens == 70
    assert purse(tmp_path).left().tokens == 2**62
    again = purse(tmp_path, tokens=1000)
    assert again.left().tokens == 930


def test_a_ledger_that_can_not_be_opened_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "ledger.jsonl").mkdir()
    with pytest.raises(BadInput, match=r"ledger.jsonl: can't be used as the model's ledger"):
        purse(tmp_path, tokens=1).reserve(Spent(1))


def test_the_line_at_the_end_names_what_is_spent_and_what_to_raise(tmp_path: Path) -> None:
    one = purse(tmp_path, dollars=1.5, tokens=100)
    one.settle(None, Spent(90, 1.25))
    assert one.reserve(Spent(20)) is None
    assert one.exhausted() == (
        "the budget does not hold another request (1.5 dollars, of which 1.2500 are spent or set aside; 100 tokens, of "
        "which 90 are spent or set aside); raise budget_dollars or budget_tokens"
    )


def test_a_prompt_is_never_thought_smaller_than_replies_said(tmp_path: Path) -> None:
    one = purse(tmp_path, tokens=10)
    size = one.size(text_bytes=400, images=1, image_tokens=256)
    assert size == 400 + 256 + 50
    assert one.prompt_tokens(size) == size
    one.learn(size, 353)
    assert one.prompt_tokens(size) == int(1.1 * 353) + 1
    one.learn(size, 100)
    assert one.prompt_tokens(size) == int(1.1 * 353) + 1


@given(st.lists(st.tuples(st.sampled_from("rsl"), st.integers(1, 40)), max_size=25))
def test_the_budget_is_never_overdrawn_if_no_request_costs_more_than_was_set_aside(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int]]
) -> None:
    one = purse(tmp_path_factory.mktemp("ledger"), tokens=100)
    open_now: list[tuple[str, int]] = []
    for what, amount in steps:
        if what == "r":
            name = one.reserve(Spent(amount))
            if name is not None:
                open_now.append((name, amount))
        elif open_now:
            name, reserved = open_now.pop()
            if what == "s":
                one.settle(name, Spent(min(amount, reserved)))
            else:
                one.lose(name)
        assert one.spent.tokens <= 100
        assert one.spent.tokens >= sum(reserved for _, reserved in open_now)


def test_processes_that_spend_at_once_never_spend_more_than_there_is(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    jobs = [context.Process(target=spend, args=(tmp_path, count)) for count in (70, 71, 72)]
    for job in jobs:
        job.start()
    for job in jobs:
        job.join(600)
        assert job.exitcode == 0
    entries = [json.loads(line) for line in (tmp_path / "ledger.jsonl").read_text().splitlines()]
    assert sum(entry["tokens"] for entry in entries if "settle" in entry) == 120
