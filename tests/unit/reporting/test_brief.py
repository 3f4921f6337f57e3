"""The verdicts in brief: who uses the image least stands first, on numbers with what stands behind them."""

from __future__ import annotations

from overread.reporting.brief import in_brief
from overread.reporting.contrasts import Statement, Tables
from overread.reporting.evidence import Answer
from overread.reporting.rows import Row
from overread.reporting.verdict import NO_USE, REACTS, UNTESTED, UNTOLD, USED, Judgement


def judgement(model: str, headline: str, *statements: Statement) -> Judgement:
    return Judgement("xray", model, headline, "", statements)


def swap(answer: Answer = Answer.MORE, about: str = "swap", number: str = "20.9 %") -> Statement:
    return Statement("image", about, answer, "Its answers follow the image", "", number=number)


def flip(model: str, rate: float, group: str = "all") -> Row:
    names = {"dataset": "xray", "model": model, "comparison": "swap", "group": group}
    return {**names, "flip_rate": str(rate), "pairs": "1212", "patients": "40"}


def tables(*flips: Row, effects: tuple[Row, ...] = (), significance: tuple[Row, ...] = ()) -> Tables:
    return Tables((), flips, effects, (), significance)


def test_models_go_from_the_least_use_of_the_image_to_the_most() -> None:
    given = [judgement(model, f"{words}; and more") for model, words in
             (("e", USED), ("d", REACTS), ("a", NO_USE), ("b", UNTOLD), ("c", UNTESTED))]  # fmt: skip
    found = in_brief(given, tables(), {})
    assert [one.model for one in found] == ["a", "b", "c", "d", "e"]
    assert [one.answer for one in found] == [
        Answer.NONE, Answer.CANNOT_TELL, Answer.DESCRIPTION, Answer.MORE, Answer.MORE,
    ]  # fmt: skip


def test_among_equals_the_one_whose_answers_move_least_is_first_whatever_its_name() -> None:
    given = [judgement(model, USED, swap()) for model in ("a", "b", "c")]
    found = in_brief(given, tables(flip("a", 0.5), flip("b", 0.04), flip("b", 0.9, "Edema"), flip("c", 0.2)), {})
    assert [one.model for one in found] == ["b", "c", "a"]


def test_a_number_stands_with_its_pairs_its_patients_and_its_adjusted_p() -> None:
    tested = {"dataset": "xray", "model": "a", "comparison": "swap", "p_holm": "0.0004"}
    gain = {"dataset": "xray", "model": "a", "effect": "gain", "patients": "1"}
    difference = Statement("report-effect", "gain", Answer.LESS, "With the report", "", number="+16.7 points")
    whole = tables(flip("a", 0.2), effects=(gain,), significance=(tested,))
    (found,) = in_brief([judgement("a", USED, swap(), difference)], whole, {})
    assert [(line.number, line.behind.replace("\N{NO-BREAK SPACE}", " ")) for line in found.lines] == [
        ("20.9 %", "1,212 pairs, 40 patients, adjusted p < 0.001"),
        ("+16.7 points", "1 patient"),
    ]
    assert [line.answer for line in found.lines] == [Answer.MORE, Answer.LESS]


def test_what_no_table_counts_is_left_blank() -> None:
    (found,) = in_brief([judgement("a", USED, swap(about="elsewhere"))], tables(flip("a", 0.2)), {})
    assert found.lines[0].behind == ""
