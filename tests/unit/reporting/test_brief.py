"""The verdicts in brief: who uses the image least stands first, on numbers with what stands behind them."""

from __future__ import annotations

from overread.reporting.brief import in_brief
from overread.reporting.conclusion import ORDER, Conclusion
from overread.reporting.contrasts import Statement, Tables
from overread.reporting.evidence import Answer
from overread.reporting.rows import Row
from overread.reporting.verdict import Judgement

BLIND, READS = ("does not use", "blind"), ("uses", "reads")


def judgement(model: str, kind: tuple[str, str], *statements: Statement, size: float = 0.0) -> Judgement:
    return Judgement("xray", model, Conclusion("xray", model, kind, size=size), statements)


def swap(answer: Answer = Answer.MORE, about: str = "swap", number: str = "20.9 %") -> Statement:
    return Statement("image", about, answer, "Its answers follow the image", "", number=number)


def flip(model: str, rate: float, group: str = "all") -> Row:
    names = {"dataset": "xray", "model": model, "comparison": "swap", "group": group}
    return {**names, "flip_rate": str(rate), "pairs": "1212", "patients": "40"}


def tables(*flips: Row, effects: tuple[Row, ...] = (), significance: tuple[Row, ...] = ()) -> Tables:
    return Tables((), flips, effects, (), significance)


def test_models_go_from_the_least_use_of_the_image_to_the_most() -> None:
    given = [judgement(str(place), kind) for place, kind in reversed(list(enumerate(ORDER)))]
    found = in_brief(given, tables(), {})
    assert [one.model for one in found] == [str(place) for place in range(len(ORDER))]
    assert (ORDER[0], ORDER[-1]) == (BLIND, READS)


def test_among_equals_the_one_that_follows_least_comes_first_whatever_its_name() -> None:
    given = [judgement(model, READS, size=size) for model, size in (("a", 0.5), ("b", 0.04), ("c", 0.2))]
    assert [one.model for one in in_brief(given, tables(), {})] == ["b", "c", "a"]


def test_a_number_stands_with_its_pairs_its_patients_and_its_adjusted_p() -> None:
    tested = {"dataset": "xray", "model": "a", "comparison": "swap", "p_holm": "0.0004"}
    gain = {"dataset": "xray", "model": "a", "effect": "gain", "patients": "1"}
    difference = Statement("report-effect", "gain", Answer.LESS, "With the report", "", number="+16.7 points")
    whole = tables(flip("a", 0.2), effects=(gain,), significance=(tested,))
    (found,) = in_brief([judgement("a", READS, swap(), difference)], whole, {})
    assert [(line.number, line.behind.replace("\N{NO-BREAK SPACE}", " ")) for line in found.lines] == [
        ("20.9 %", "1,212 pairs, 40 patients, adjusted p < 0.001"),
        ("+16.7 points", "1 patient"),
    ]
    assert [line.answer for line in found.lines] == [Answer.MORE, Answer.LESS]


def test_what_no_table_counts_is_left_blank() -> None:
    (found,) = in_brief([judgement("a", READS, swap(about="elsewhere"))], tables(flip("a", 0.2)), {})
    assert found.lines[0].behind == ""
