"""A table of outputs as models write them, each with the verdict that a person gives it; and no answer from nothing."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data.rule_cases import cases
from overread.responses.parsing import parse

CASES: list[Any] = cases("model_outputs")
LOBES = ("Left frontal lobe", "Right frontal lobe", "Left temporal lobe", "Right parietal lobe")
YES_NO = ("yes", "no")

_WORDS = """the answer is final correct option choice best answer: ans boxed: therefore so i would say choose think not
    but or and if cannot see any image sorry <think> </think> <answer> </answer> ```json { } {"answer": "choice":
    \\boxed{ } $ ** # > - , . : ; ? ! ( ) [ ] " ' 答案是 选项 选择 不是 而是 正确 mass lesion notice nothing 5 9 22 e z
    left lobe parietal yesterday nose none image t2 3.5 mm 0.9 % wrong likely 答案: ， 。"""
WORDS = [*_WORDS.split(), "\n"]


def pieces(*names: str) -> st.SearchStrategy[str]:
    """Texts of words that models write around an answer, with and without spaces, and of the names."""
    word = st.sampled_from([*WORDS, *names * 8])
    return st.lists(st.tuples(word, st.sampled_from(["", " ", " ", " ", "\n"])), max_size=25).map(
        lambda parts: "".join(piece + gap for piece, gap in parts)
    )


@pytest.mark.parametrize("row", CASES)
def test_an_output_is_read_as_a_person_reads_it(row: dict[str, str]) -> None:
    place = int(row["place"]) - 1 if row["place"] else None
    found = parse(
        row["text"], row["options"].split("|"), listed=row["listed"] == "yes", finish_reason=row["finish_reason"]
    )
    assert found == (row["status"], place)


def test_the_table_is_large_and_holds_every_verdict() -> None:
    verdicts = Counter(case.values[0]["status"] for case in CASES)
    assert len(CASES) >= 200
    assert min(verdicts[status] for status in ("answered", "unparsed", "refused", "truncated")) >= 15


def _squeezed(text: str) -> str:
    return re.sub(r"\s+", "", unicodedata.normalize("NFKC", text).casefold())


@settings(max_examples=400)
@given(
    text=st.one_of(
        st.text(max_size=60),
        st.text("12345ABCDabcd .():\n一二三四第项是答案", max_size=30),
        pieces(*"1234abcd", *LOBES),
    ),
    finish=st.sampled_from(["stop", "length", None]),
)
def test_no_text_is_read_as_an_option_whose_name_is_not_in_it(text: str, finish: str | None) -> None:
    """Its text, its number, its letter, or the word for its number."""
    status, place = parse(text, LOBES, listed=True, finish_reason=finish)
    assert (status == "answered") == (place is not None)
    if place is not None:
        names = [LOBES[place], str(place + 1), "abcd"[place], ("one", "two", "three", "four")[place]]
        names += [("first", "second", "third", "fourth")[place], "一二三四"[place]]
        assert any(_squeezed(name) in _squeezed(text) for name in names)


@settings(max_examples=400)
@given(text=st.one_of(st.text(max_size=60), pieces("yes", "no")), finish=st.sampled_from(["stop", "length", None]))
def test_no_text_is_read_as_yes_or_no_without_the_word(text: str, finish: str | None) -> None:
    place = parse(text, YES_NO, listed=False, finish_reason=finish)[1]
    words = {0: ("yes", "是", "有"), 1: ("no", "否", "不", "没", "无")}
    if place is not None:
        assert any(word in _squeezed(text) for word in words[place])


@settings(max_examples=400)
@given(text=pieces("2", "b", "Right frontal lobe", "right frontal lobe", "option 2", "(2)", "2)", "B."))
def test_a_text_that_names_one_option_gives_that_or_none(text: str) -> None:
    """Whatever phrases stand around it: another option is never made of them."""
    assert parse(text, LOBES, listed=True)[1] in (None, 1)


@settings(max_examples=400)
@given(text=pieces())
def test_a_text_that_names_no_option_gives_none(text: str) -> None:
    assert parse(text, LOBES, listed=True)[1] is None
    if "不是" not in text:  # alone it says no
        assert parse(text, YES_NO, listed=False)[1] is None


@given(text=pieces("1", "2", "yes"))
def test_what_a_model_thinks_is_no_answer(text: str) -> None:
    """A thought changes nothing; nor does what stands before its end, where its beginning was in the prompt."""
    text = text.replace("<think>", "").replace("</think>", "")
    for wrapped in (f"<think>{text}</think>3", f"{text}</think>3", f"<unused94>{text}<unused95>3"):
        assert parse(wrapped, LOBES, listed=True) == ("answered", 2)


@given(
    options=st.permutations(LOBES),
    place=st.integers(0, 3),
    style=st.sampled_from(["{t}", "The answer is {t}.", "{n}) {t}"]),
)
def test_an_answer_follows_its_text_through_every_order_of_the_options(
    options: list[str], place: int, style: str
) -> None:
    text = style.format(t=options[place], n=place + 1)
    assert parse(text, options, listed=True) == ("answered", place)


@pytest.mark.parametrize(
    "text", ["1, " * 3000, "the answer is " * 1000, "\\boxed{" * 1000, ")" * 9000, '{"a' * 2000, "yes. " * 1500]
)
def test_a_model_in_a_loop_is_read_in_no_time(text: str) -> None:
    """A regular expression that backtracks would take hours over these, not seconds."""
    parse(text, LOBES, listed=True)
    parse(text, YES_NO, listed=False, finish_reason="length")
