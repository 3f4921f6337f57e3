import csv

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overread.core.errors import BadInput
from overread.core.records import Question
from overread.curation.review import (
    Decision,
    apply_decisions,
    read_decisions,
    sample,
    write_outcomes,
    write_reader_sheet,
    write_review_sheet,
)
from overread.curation.rules import read_rules
from overread.estimates.agreement import agreement, write_agreement
from overread.trials.options import balanced

RULES = read_rules()


def question(number=0, **changes):
    values = {
        "study": f"s{number:03d}", "patient": f"p{number:03d}", "stem": f"Where is left mass {number}?",
        "options": ("front", "back", "top", "bottom"), "answer": "front", "topic": "location", "origin": "author",
        "evidence": "It is in front.",
    }  # fmt: skip
    return Question(**{**values, **changes})


QUESTIONS = [question(number) for number in range(300)]


def decision(number=0, reviewer="a", verdict="accept", **more):
    return Decision(question=QUESTIONS[number].question, reviewer=reviewer, decision=verdict, **more)


def test_a_sample_depends_on_seed_and_content_and_not_on_order():
    drawn = sample(QUESTIONS, 200, seed=1)
    assert len(drawn) == len({one.question for one in drawn}) == 200
    assert drawn == sample(QUESTIONS[::-1], 200, seed=1)
    assert drawn != sample(QUESTIONS, 200, seed=2)


def test_a_sample_of_a_few_is_all_of_them():
    assert sample(QUESTIONS[:3], 200, seed=1) == QUESTIONS[:3]


@given(st.integers(0, 299))
def test_a_dropped_question_is_replaced_and_the_rest_of_the_sample_stays(dropped):
    before = {one.question for one in sample(QUESTIONS, 75, seed=1)}
    after = {one.question for one in sample(QUESTIONS[:dropped] + QUESTIONS[dropped + 1 :], 75, seed=1)}
    assert len(before - after) == (QUESTIONS[dropped].question in before)


def test_readers_and_reviewers_get_samples_of_their_own():
    assert sample(QUESTIONS, 75, 1, "readers") != sample(QUESTIONS, 75, 1, "review")


def test_the_review_sheet_comes_back_as_decisions(tmp_path):
    write_review_sheet(QUESTIONS[:4], tmp_path / "sheet.csv")
    with (tmp_path / "sheet.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert (rows[0]["evidence"], rows[0]["answer"]) == ("It is in front.", "front")
    cells = [("accept", "", ""), ("Reject", "vague", ""), ("edit", "", "Where is it?"), ("", "", "")]
    for row, filled in zip(rows, cells, strict=True):
        row.update(reviewer="a", decision=filled[0], reason=filled[1], new_stem=filled[2])
    with (tmp_path / "filled.csv").open("w", newline="", encoding="utf-8-sig") as file:
        table = csv.DictWriter(file, fieldnames=list(rows[0]))
        table.writeheader()
        table.writerows(rows)
    decisions = read_decisions([tmp_path / "filled.csv"])
    assert [one.decision for one in decisions] == ["accept", "reject", "edit"]
    kept, outcomes = apply_decisions(QUESTIONS[:4], decisions, "majority", RULES)
    assert [one.stem for one in kept] == ["Where is left mass 0?", "Where is it?", "Where is left mass 3?"]
    assert [one.verdict for one in outcomes] == ["kept", "rejected", "edited"]
    write_outcomes(outcomes, tmp_path / "outcomes.csv")
    assert len((tmp_path / "outcomes.csv").read_text().splitlines()) == 4


def test_the_reader_sheet_shows_neither_answer_nor_evidence(tmp_path):
    orders = balanced(QUESTIONS[:5], 1)
    write_reader_sheet(QUESTIONS[:5], orders, tmp_path / "sheet.csv")
    text = (tmp_path / "sheet.csv").read_text()
    assert "It is in front." not in text
    with (tmp_path / "sheet.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    for row, one in zip(rows, QUESTIONS[:5], strict=True):
        assert row["answer"] == ""
        assert [row[f"option_{k}"] for k in range(1, 5)] == [one.options[k] for k in orders[one.question]]


@pytest.mark.parametrize(
    ("rule", "verdicts", "dropped"),
    [
        ("any", ["accept", "accept", "reject"], True),
        ("majority", ["accept", "accept", "reject"], False),
        ("majority", ["accept", "reject"], True),
        ("majority", ["accept", "reject", "reject"], True),
        ("majority", ["reject"], True),
        ("all", ["accept", "reject", "reject"], False),
        ("all", ["reject", "reject"], True),
        ("any", ["accept"], False),
    ],
)
def test_the_rule_says_when_rejections_drop_a_question(rule, verdicts, dropped):
    decisions = [decision(0, f"r{k}", one, reason="x" if one == "reject" else "") for k, one in enumerate(verdicts)]
    kept, _ = apply_decisions(QUESTIONS[:2], decisions, rule, RULES)
    assert (QUESTIONS[0] not in kept) == dropped
    assert QUESTIONS[1] in kept


def test_an_edited_option_takes_the_answer_with_it():
    edit = decision(0, verdict="edit", options=("in front", None, None, None))
    (kept,), (outcome,) = apply_decisions(QUESTIONS[:1], [edit], "majority", RULES)
    assert (kept.answer, kept.options[1:]) == ("in front", QUESTIONS[0].options[1:])
    assert (outcome.question, outcome.became) == (QUESTIONS[0].question, kept.question)
    assert kept.question != QUESTIONS[0].question


def test_an_edit_that_code_would_not_let_through_is_reported_and_stands():
    edit = decision(verdict="edit", stem="Is the left mass stable?")
    (kept,), (outcome,) = apply_decisions(QUESTIONS[:1], [edit], "majority", RULES)
    assert kept.stem == "Is the left mass stable?"
    assert outcome.checks.startswith("stable: ")


def test_two_different_edits_are_an_error_and_two_equal_ones_are_one():
    edits = [decision(0, who, "edit", stem=stem) for who, stem in (("a", "Where?"), ("b", "Where is it?"))]
    with pytest.raises(BadInput, match="in different ways by a and b"):
        apply_decisions(QUESTIONS[:1], edits, "majority", RULES)
    same = [decision(0, who, "edit", stem="Where?") for who in "ab"]
    assert apply_decisions(QUESTIONS[:1], same, "majority", RULES)[0][0].stem == "Where?"


def test_an_edit_that_makes_no_question_is_an_error():
    with pytest.raises(BadInput, match="not distinct"):
        apply_decisions(QUESTIONS[:1], [decision(verdict="edit", options=("back",))], "majority", RULES)


def sheet(tmp_path, *rows):
    head = "question,reviewer,decision,reason,new_stem,new_option_1,new_answer"
    (tmp_path / "sheet.csv").write_text("\n".join([head, *rows]) + "\n")
    return [tmp_path / "sheet.csv"]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("q,a,reject,,,,", r"sheet\.csv:2: a rejection needs a reason"),
        ("q,a,maybe,,,,", r"sheet\.csv:2: decision: Input should be 'accept', 'edit' or 'reject'"),
        ("q,a,edit,,,,", r"sheet\.csv:2: an edit changes something"),
        ("q,a,accept,,Where?,,", r"sheet\.csv:2: an edit changes something"),
        ("q,,accept,,,,", r"sheet\.csv:2: reviewer"),
    ],
)
def test_a_wrong_line_is_named(tmp_path, row, message):
    with pytest.raises(BadInput, match=message):
        read_decisions(sheet(tmp_path, row))


def test_nobody_decides_twice_and_only_about_questions_that_are_there(tmp_path):
    with pytest.raises(BadInput, match=r"sheet\.csv:3: a has decided about question q before"):
        read_decisions(sheet(tmp_path, "q,a,accept,,,,", "q,a,reject,no,,,"))
    with pytest.raises(BadInput, match="no question 'q'"):
        apply_decisions(QUESTIONS[:1], read_decisions(sheet(tmp_path, "q,a,accept,,,,")), "any", RULES)


# -- agreement -------------------------------------------------------------------------------------------------------


def ratings(**columns):
    return {
        name: {f"i{k}": value for k, value in enumerate(text.split()) if value != "-"} for name, text in columns.items()
    }


def value(rows, statistic, raters=None):
    return next(row for row in rows if row.statistic.startswith(statistic) and raters in (None, row.rated_by)).value


def test_cohens_kappa_is_that_of_a_table_worked_out_by_hand():
    """20 yes-yes, 5 yes-no, 10 no-yes, 15 no-no: observed 0.7, by chance 0.5*0.6 + 0.5*0.4 = 0.5, kappa 0.4."""
    a = " ".join(["y"] * 25 + ["n"] * 25)
    b = " ".join(["y"] * 20 + ["n"] * 5 + ["y"] * 10 + ["n"] * 15)
    rows = agreement(ratings(a=a, b=b))
    assert value(rows, "share equal") == pytest.approx(0.7)
    assert value(rows, "Cohen") == pytest.approx(0.4)


def test_fleiss_kappa_is_that_of_a_table_worked_out_by_hand():
    """Three raters, items yyy, yyn, nnn, nny: P = (1 + 1/3 + 1 + 1/3)/4 = 2/3, p(y) = 1/2, P_e = 1/2, kappa 1/3."""
    rows = agreement(ratings(a="y y n n", b="y y n n", c="y n n y"))
    assert value(rows, "Fleiss") == pytest.approx(1 / 3)


def test_krippendorffs_alpha_is_that_of_coincidences_worked_out_by_hand():
    """Two raters, items yy, yn, nn: coincidences y-y 2, n-n 2, y-n 1, n-y 1; alpha = 1 - (6-1)*1/(3*3) = 4/9."""
    rows = agreement(ratings(a="y y n -", b="y n n y"))
    assert value(rows, "Krippendorff") == pytest.approx(4 / 9)


def test_full_agreement_is_one_and_no_variation_is_blank():
    full = agreement(ratings(a="y n y", b="y n y", c="y n y"))
    assert {round(row.value, 12) for row in full} == {1.0}
    blank = agreement(ratings(a="y y", b="y y"))
    assert [row.value for row in blank] == [1.0, None, None, None]
    assert all(row.note for row in blank if row.value is None)


def test_raters_without_an_item_in_common_have_no_agreement(tmp_path):
    rows = agreement(ratings(a="y -", b="- n"))
    assert all(row.value is None and row.note for row in rows)
    write_agreement(rows, tmp_path / "agreement.csv")
    assert (tmp_path / "agreement.csv").read_text().startswith("statistic,rated_by,items,value,note\n")


def test_ordinal_alpha_forgives_a_near_miss_more_than_a_far_one():
    values = ["1", "2", "3", "4", "5"]
    near = agreement(ratings(a="1 2 3 4 5", b="1 2 3 4 4"), values=values, level="ordinal")
    far = agreement(ratings(a="1 2 3 4 5", b="1 2 3 4 1"), values=values, level="ordinal")
    assert value(near, "Krippendorff") > value(far, "Krippendorff")


def test_an_unknown_value_is_refused():
    with pytest.raises(ValueError, match="no value 'x'"):
        agreement(ratings(a="x", b="y"), values=["y", "n"])
