"""From text to an option: what is said is found, and nothing is ever made up."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overread.responses.parsing import parse
from overread.responses.parsing.named import _SAID

YES_NO = ("yes", "no")
LOBES = ("Left frontal lobe", "Right frontal lobe", "Left temporal lobe", "Right parietal lobe")
SIZES = ("2 cm", "3 cm", "4 cm", "12 cm")
COUNTS = ("2", "1", "3", "4")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("Yes", 0),
        ("no", 1),
        ("NO.", 1),
        ("**No**", 1),
        (' "Yes" ', 0),
        ("Yes!", 0),
        ("\n\nno\n", 1),
        ("Yes, there is an effusion.", 0),
        ("No, the lungs are clear.", 1),
        ("No. There is no effusion.", 1),
        ("Yes: a small one", 0),
        ("No - the angle is sharp", 1),
        ("Yes\nThe left angle is blunted.", 0),
        ("The answer is no.", 1),
        ("The correct answer is: Yes", 0),
        ("Final answer: **no**", 1),
        ("Answer: Yes.", 0),
        ("\\boxed{no}", 1),
        ("<answer>yes</answer>", 0),
        ('{"answer": "no"}', 1),
        ("{'answer': 'yes'}", 0),
        ("Yes at first sight. On reflection, the answer is no.", 1),
        ("The answer is yes. No: my answer is no.", 1),
        ("<think>The answer is no, or not?</think>Yes", 0),
        ("<unused94>thought\nAnswer: no<unused95>Yes", 0),
        ("The answer is no because the angle is sharp.", 1),
        ("The answer is most likely yes.", 0),
        ("I would choose no.", 1),
    ],
)
def test_yes_and_no_are_found_where_they_are_the_answer(text: str, place: int) -> None:
    assert parse(text, YES_NO, listed=False) == ("answered", place)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "Notice the left angle.",
        "No effusion is seen.",
        "There is no effusion.",
        "None",
        "No-one can tell.",
        "yes or no",
        "Yes and no",
        "Answer: yes or no",
        "Reply with one word, Yes or No.",
        "The answer is not yes.",
        "Is the answer yes?",
        "If the answer is yes, an effusion is present.",
        "I don't think the answer is yes.",
        "Yes\nNo",
        "nose",
        "eyes",
        "1",
        "A",
        "The heart is enlarged.",
        "<think>The answer is no",
        "The answer could be no.",
        "The wrong answer is yes.",
        "Maybe",
        "y",
        "n",
        "Normal study, no acute process",
        "yesterday",
        "No acute findings; unchanged from yesterday",
    ],
)
def test_what_is_no_plain_yes_or_no_is_unparsed(text: str) -> None:
    assert parse(text, YES_NO, listed=False) == ("unparsed", None)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("2", 1),
        ("2.", 1),
        ("(2)", 1),
        ("[3]", 2),
        ("2)", 1),
        ("B", 1),
        ("b)", 1),
        ("(C)", 2),
        ("Option 4", 3),
        ("option B.", 1),
        ("2. Right frontal lobe", 1),
        ("B: right frontal lobe", 1),
        ("2 - Right frontal lobe", 1),
        ("right  frontal\nlobe", 1),
        ("Left temporal lobe.", 2),
        ("The answer is 3.", 2),
        ("The answer is (D) Right parietal lobe.", 3),
        ("Answer: 3 because of its site", 2),
        ("The answer is option 2: right frontal lobe", 1),
        ("Option 4 is correct.", 3),
        ("Answer:\n\n2", 1),
        ("#### 1", 0),
        ("1. Left frontal lobe\n2. Right frontal lobe\n3. Left temporal lobe\n4. Right parietal lobe\nAnswer: 2", 1),
        ("At first the answer is 1. But the answer is 4.", 3),
        ("I choose left temporal lobe", 2),
        ("**3**", 2),
        ("Ｂ", 1),
    ],
)
def test_options_are_found_by_number_letter_and_text(text: str, place: int) -> None:
    assert parse(text, LOBES, listed=True) == ("answered", place)


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("5", LOBES),
        ("0", LOBES),
        ("22", LOBES),
        ("E", LOBES),
        ("Answer: 7", LOBES),
        ("A mass is seen.", LOBES),
        ("The answer is A mass.", LOBES),
        ("2. Left frontal lobe", LOBES),
        ("1 or 2", LOBES),
        ("The answer is 1 or 2.", LOBES),
        ("The answer is 1, 3", LOBES),
        ("1/2", LOBES),
        ("1. Left frontal lobe\n2. Right frontal lobe\n3. Left temporal lobe\n4. Right parietal lobe", LOBES),
        ("1. The mass is large.\n2. There is oedema.", LOBES),
        ("It lies in the left temporal lobe.", LOBES),
        ("frontal lobe", LOBES),
        ("I see 2 lesions", LOBES),
        ("2.5", SIZES),
        ("2 to 3 cm", SIZES),
        ("5 cm", SIZES),
        ("The answer is 2 cm or 3 cm", SIZES),
        ("2 mm", SIZES),
        ("2", COUNTS),
        ("The answer is 1.", COUNTS),
    ],
)
def test_a_text_that_names_no_option_or_several_is_unparsed(text: str, options: tuple[str, ...]) -> None:
    assert parse(text, options, listed=True) == ("unparsed", None)


def test_a_number_in_the_option_text_is_not_taken_for_the_options_number() -> None:
    assert parse("2 cm", SIZES, listed=True) == ("answered", 0)
    assert parse("The answer is 12 cm.", SIZES, listed=True) == ("answered", 3)
    assert parse("3. 4 cm", SIZES, listed=True) == ("answered", 2)
    assert parse("1. 2", COUNTS, listed=True) == ("answered", 0)


@pytest.mark.parametrize(
    "text",
    [
        "I'm sorry, but I can't interpret medical images.",
        "I cannot determine this from the image.",
        "As an AI, I do not diagnose.",
        "Unable to determine.",
        "No, I cannot answer that.",
        "It cannot be determined. Please consult a radiologist.",
    ],
)
def test_a_refusal_is_told_from_a_text_without_answer(text: str) -> None:
    assert parse(text, YES_NO, listed=False) == ("refused", None)


def test_a_finish_reason_names_refusals_and_cut_off_texts() -> None:
    assert parse("", YES_NO, listed=False, finish_reason="content_filter") == ("refused", None)
    assert parse("The heart is", YES_NO, listed=False, finish_reason="length") == ("truncated", None)
    assert parse("Yes", YES_NO, listed=False, finish_reason="length") == ("answered", 0)
    assert parse("<think>The answer is no", YES_NO, listed=False, finish_reason="length") == ("truncated", None)


def test_a_cut_off_text_is_not_taken_for_a_shorter_option() -> None:
    options = ("Left frontal", "Left frontal and insular")
    assert parse("Answer: left frontal", options, listed=False, finish_reason="length") == ("truncated", None)
    assert parse("Answer: left frontal", options, listed=False, finish_reason="stop") == ("answered", 0)


words = st.sampled_from(
    """the answer is there a mass lesion effusion of lung heart notice nothing seen option maybe it and or in correct
    not yesterday""".split()  # noqa: SIM905
)
marks = st.sampled_from([" ", " ", " ", ". ", ", ", ": ", "\n", "? ", " - ", "** ", "("])


@given(st.lists(st.tuples(words, marks), max_size=30))
def test_a_text_without_any_option_is_never_answered(parts: list[tuple[str, str]]) -> None:
    """None of the words is an option, a number, or a letter that stands for one; "a" is one in a list of options."""
    text = "".join(word + mark for word, mark in parts)
    assert parse(text, YES_NO, listed=False)[1] is None
    if all(word != "a" for word, _ in parts):
        assert parse(text, LOBES, listed=True)[1] is None


@given(st.text(max_size=80))
def test_whatever_is_answered_stands_in_the_text(text: str) -> None:
    status, place = parse(text, YES_NO, listed=False)
    assert (status == "answered") == (place is not None)
    if place is not None:
        assert any(word in text.casefold() for word in (YES_NO[place], *_SAID[YES_NO[place]]))


@given(
    place=st.integers(0, 3),
    before=st.lists(words, max_size=6),
    style=st.sampled_from(["{n}", "({n})", "{n}. {t}", "{t}", "{n}) {t}", "option {n}"]),
)
def test_an_explicit_answer_is_found_after_any_words(place: int, before: list[str], style: str) -> None:
    """Unless a word of doubt stands in its own sentence, a final phrase wins over whatever came before."""
    said = style.format(n=place + 1, t=LOBES[place])
    assert parse(f"{' '.join(before)}.\nFinal answer: {said}.", LOBES, listed=True) == ("answered", place)


TAKEN_BACK = [
    ("Yes. Actually, no.", None), ("No. Sorry, yes.", None), ("Yes, on second thought, no.", None),
    ("The answer is yes. Wait, no.", None), ("Yes... I mean no", None), ("No. I change my answer to yes.", None),
    ("Yes. On closer inspection, it is no.", None), ("No. Let me reconsider that: yes.", None),
    ("Yes, actually.", 0), ("Yes. Actually, yes.", 0), ("No, actually there is no effusion.", 1),
    ("Yes, in fact a large one.", 0), ("Actually, no: the answer is yes.", 0), ("I was wrong before. Yes.", 0),
]  # fmt: skip


@pytest.mark.parametrize(("text", "place"), TAKEN_BACK)
def test_an_answer_that_is_taken_back_is_none(text: str, place: int | None) -> None:
    assert parse(text, ["yes", "no"], listed=False) == (("unparsed", None) if place is None else ("answered", place))


@pytest.mark.parametrize(
    ("text", "place"),
    [("2. Actually, 3.", None), ("1 or rather 2", None), ("The answer is 1. Sorry, the answer is 4.", 3)],
)  # fmt: skip
def test_a_number_that_is_taken_back_is_none(text: str, place: int | None) -> None:
    found = parse(text, ["left", "right", "both", "none"], listed=True)
    assert found == (("unparsed", None) if place is None else ("answered", place))
