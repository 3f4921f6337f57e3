"""The verdict in words, on tables made by hand: every branch, with numbers that can be checked by eye."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from overread.config import Setting
from overread.reporting.contrasts import (
    NOT_AN_ERROR,
    NOT_COMPETENCE,
    NOT_FROZEN,
    SENSIBLE,
    Statement,
    Tables,
    contrast,
)
from overread.reporting.evidence import FEW_PATIENTS, FEWEST_PATIENTS, Answer, Evidence, unseen_share
from overread.reporting.rows import Row
from overread.reporting.verdict import judge
from overread.reporting.words import SPACE

DATASET, MODEL = "data", "model"

SETTINGS: dict[str, Setting] = {
    name: Setting.model_validate(one)
    for name, one in {
        "own": {"images": "frontal"},
        "black": {"images": "frontal", "source": "black"},
        "swapped": {"images": "frontal", "source": "substitute"},
        "text": {},
        "shuffled": {"images": "frontal", "options": "shuffled"},
        "report": {"images": "frontal", "report": "full"},
        "report-swapped": {"images": "frontal", "report": "full", "source": "substitute"},
        "report-text": {"report": "full"},
        "neutral": {"images": "frontal", "report": "neutral"},
        "text-first": {"images": "frontal", "report": "full", "order": "text-first"},
        "other-view": {"images": "montage"},
    }.items()
}


def spec(
    comparisons: dict[str, Any] | None = None, effects: dict[str, Any] | None = None, temperature: float = 0
) -> dict[str, Any]:
    return {
        "settings": SETTINGS,
        "comparisons": comparisons or {},
        "effects": effects or {},
        "statistics": {"level": 0.95, "draws": 1000, "seed": 0},
        "models": {MODEL: {"label": "Model", "decoding": {"temperature": temperature}}},
    }


def row(**values: object) -> Row:
    return {"dataset": DATASET, "model": MODEL} | {name: "" if v is None else str(v) for name, v in values.items()}


def accuracy(setting: str, value: float | None, low: float | None, high: float | None, **more: object) -> Row:
    base: dict[str, object] = {
        "runs": 1, "questions": 200, "patients": 50, "balanced_accuracy": value, "answered": 200, "unparsed": 0,
        "refused": 0, "truncated": 0, "failed": 0, "chance": 0.25, "always_first": 0.3,
    }  # fmt: skip
    return row(setting=setting, accuracy=value, low=low, high=high, **(base | more))


def flip(comparison: str, rate: float | None, low: float | None, high: float | None, **more: object) -> Row:
    base: dict[str, object] = {
        "group": "all", "pairs": 400, "patients": 50, "mean_abs_margin_change": 0.69, "margin_moved_over_0_5": 0.322,
        "yes_rate_a": None, "yes_rate_b": None,
    }  # fmt: skip
    return row(comparison=comparison, flip_rate=rate, low=low, high=high, **(base | more))


def effect(name: str, estimate: float | None, low: float | None, high: float | None, patients: int = 50) -> Row:
    return row(effect=name, estimate=estimate, low=low, high=high, patients=patients)


def place(setting: str, position: int, gold: float, chosen: float | None) -> Row:
    return row(setting=setting, position=position, gold_share=gold, chosen_share=chosen, recall=0.5)


def said(tables: Tables, *, aspect: str, **options: Any) -> list[Statement]:
    """The statements of an aspect, with plain spaces for unbreakable ones."""
    statements = judge(DATASET, MODEL, tables, spec(**options)).statements
    return [replace(one, text=one.text.replace(SPACE, " ")) for one in statements if one.aspect == aspect]


def only(tables: Tables, *, aspect: str, **options: Any) -> Statement:
    (statement,) = said(tables, aspect=aspect, **options)
    return statement


# -- what an interval says -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("evidence", "answer", "why"),
    [
        (Evidence(0.2, 0.1, 0.3, 50), Answer.MORE, None),
        (Evidence(-0.2, -0.3, -0.1, 50), Answer.LESS, None),
        (Evidence(0.0, 0.0, 0.0, 50), Answer.NONE, None),
        (Evidence(0.1, -0.1, 0.3, 50), Answer.CANNOT_TELL, "The interval includes 0."),
        (Evidence(0.1, 0.0, 0.3, 50), Answer.CANNOT_TELL, "The interval includes 0."),
        (Evidence(-0.1, -0.3, 0.0, 50), Answer.CANNOT_TELL, "The interval includes 0."),
        (Evidence(0.2, None, None, 50), Answer.CANNOT_TELL, "The table gives no interval."),
        (Evidence(None, None, None, 50), Answer.CANNOT_TELL, "There is no estimate."),
        (Evidence(0.2, 0.1, 0.3, FEWEST_PATIENTS), Answer.MORE, None),
        (Evidence(0.2, 0.1, 0.3, FEWEST_PATIENTS - 1), Answer.CANNOT_TELL, "Too few patients"),
        (Evidence(0.0, 0.0, 0.0, FEWEST_PATIENTS - 1), Answer.CANNOT_TELL, "Too few patients"),
    ],
)
def test_an_interval_says_a_direction_nothing_or_that_it_cannot_be_told(
    evidence: Evidence, answer: Answer, why: str | None
) -> None:
    assert evidence.against() is answer
    if why is not None:
        assert evidence.why_not().startswith(why)


def test_an_interval_is_judged_against_another_value_than_zero() -> None:
    evidence = Evidence(0.6, 0.5, 0.7, 50)
    assert [evidence.against(value) for value in (0.4, 0.55, 0.8)] == [Answer.MORE, Answer.CANNOT_TELL, Answer.LESS]


def test_a_difference_turned_round_turns_its_interval_too() -> None:
    assert Evidence(0.2, 0.1, 0.4, 9).negated() == Evidence(-0.2, -0.4, -0.1, 9)
    assert Evidence(0.2, None, None, 9).negated() == Evidence(-0.2, None, None, 9)


@pytest.mark.parametrize("patients", [10, 24, 293])
def test_the_share_that_may_go_unseen_leaves_it_unseen_in_five_per_cent_of_studies(patients: int) -> None:
    assert (1 - unseen_share(patients)) ** patients == pytest.approx(0.05)


# -- what a comparison compares --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("a", "b", "kind"),
    [
        ("own", "black", "image"), ("own", "swapped", "image"), ("own", "text", "image"), ("black", "own", "image"),
        ("report", "report-text", "image"), ("own", "report", "report"), ("neutral", "report", "report"),
        ("own", "shuffled", "order"), ("shuffled", "own", "order"), ("own", "other-view", "other"),
        ("swapped", "black", "other"), ("own", "report-swapped", "other"), ("report", "text-first", "other"),
        ("own", "own", "other"),
    ],
)  # fmt: skip
def test_a_comparison_is_known_by_what_its_settings_differ_in(a: str, b: str, kind: str) -> None:
    assert contrast(SETTINGS[a], SETTINGS[b]) == kind


# -- differences in accuracy -----------------------------------------------------------------------------------------

GAIN = {"gain": {"accuracy": ["own", "black"], "flips": None}}
ARMS = [accuracy("own", 0.833, 0.76, 0.9), accuracy("black", 0.41, 0.34, 0.48)]


@pytest.mark.parametrize(
    ("numbers", "answer", "title"),
    [
        (
            (0.423, 0.38, 0.462),
            Answer.MORE,
            "It is correct more often with its own image than with a black image without a report",
        ),
        (
            (-0.05, -0.09, -0.01),
            Answer.LESS,
            "It is correct more often with a black image than with its own without a report",
        ),
        ((0.02, -0.01, 0.05), Answer.CANNOT_TELL, "Whether the image changes its accuracy without a report"),
        ((0.0, 0.0, 0.0), Answer.NONE, "No sign that the image changes its accuracy without a report"),
        ((0.2, None, None), Answer.CANNOT_TELL, "Whether the image changes its accuracy without a report"),
    ],
)
def test_a_black_image_is_judged_by_the_interval_of_the_difference(numbers: Any, answer: Answer, title: str) -> None:
    statement = only(Tables(ARMS, [], [effect("gain", *numbers)], []), aspect="image", comparisons=GAIN)
    assert (statement.answer, statement.title, statement.beside) == (answer, title, False)
    assert statement.text.startswith("Correct in 83.3 % with the study's own image and in 41.0 % with a black image")


def test_a_difference_is_told_with_its_interval_and_patients() -> None:
    statement = only(Tables(ARMS, [], [effect("gain", 0.423, 0.38, 0.462)], []), aspect="image", comparisons=GAIN)
    assert "a difference of +42.3 points [38.0, 46.2] over 50 patients." in statement.text


def test_a_comparison_written_the_other_way_round_says_the_same() -> None:
    turned = {"gain": {"accuracy": ["black", "own"], "flips": None}}
    one = only(Tables(ARMS, [], [effect("gain", 0.423, 0.38, 0.462)], []), aspect="image", comparisons=GAIN)
    two = only(Tables(ARMS, [], [effect("gain", -0.423, -0.462, -0.38)], []), aspect="image", comparisons=turned)
    assert one == two


@pytest.mark.parametrize(
    ("pair", "words"),
    [
        (["own", "swapped"], "with another study's image"),
        (["own", "text"], "without any image"),
        (["report", "report-text"], "without any image"),
    ],
)
def test_what_stands_in_for_the_image_is_named(pair: list[str], words: str) -> None:
    tables = Tables([], [], [effect("gain", 0.1, 0.05, 0.2)], [])
    statement = only(tables, aspect="image", comparisons={"gain": {"accuracy": pair}})
    assert words in statement.text
    assert statement.beside == (pair[0] == "report")
    assert (NOT_COMPETENCE in statement.caveats) == (pair[0] == "report")


@pytest.mark.parametrize(
    ("numbers", "title"),
    [((0.1, 0.05, 0.2), "The report helps"), ((-0.1, -0.2, -0.05), "The report makes it worse")],
)
def test_a_report_is_judged_with_a_warning_that_it_is_no_competence(numbers: Any, title: str) -> None:
    comparisons = {"gain": {"accuracy": ["report", "own"]}}
    statement = only(Tables([], [], [effect("gain", *numbers)], []), aspect="report", comparisons=comparisons)
    assert statement.title == title
    assert NOT_COMPETENCE in statement.caveats


@pytest.mark.parametrize(
    ("numbers", "title"),
    [
        ((0.35, 0.2, 0.48), "It leans on the order of the options"),
        ((-0.35, -0.48, -0.2), "It does better when the options change their order"),
        ((0.1, -0.1, 0.2), "Whether the order of the options changes its accuracy"),
        ((0.0, 0.0, 0.0), "No sign that the order of the options changes its accuracy"),
    ],
)
def test_the_order_of_options_is_judged_with_the_first_place_in_both_orders(numbers: Any, title: str) -> None:
    positions = [place("own", 1, 0.847, 0.9), place("own", 2, 0.153, 0.1), place("shuffled", 1, 0.25, 0.62)]
    tables = Tables([], [], [effect("cost", *numbers)], positions)
    statement = only(tables, aspect="order", comparisons={"cost": {"accuracy": ["own", "shuffled"]}})
    assert statement.title == title
    assert "With the options as written, 90.0 % of its answers are the first option" in statement.text
    assert "which is correct in 84.7 %" in statement.text
    assert "62.0 % of its answers are the first option, which is correct in 25.0 %" in statement.text


def test_any_other_pair_of_settings_is_told_by_their_names() -> None:
    comparisons = {"views": {"accuracy": ["own", "other-view"]}}
    for numbers, title in (
        ((0.1, 0.05, 0.2), "Correct more often under own than under other-view"),
        ((-0.1, -0.2, -0.05), "Correct more often under other-view than under own"),
        ((0.1, -0.2, 0.2), "Whether own and other-view differ in accuracy"),
    ):
        tables = Tables([], [], [effect("views", *numbers)], [])
        assert only(tables, aspect="other", comparisons=comparisons).title == title


def test_nothing_is_said_of_a_comparison_that_the_model_does_not_have() -> None:
    both = {**GAIN, "swap": {"flips": ["own", "swapped"]}}
    assert judge(DATASET, MODEL, Tables([], [], [], []), spec(both)).statements == ()


# -- flips -----------------------------------------------------------------------------------------------------------

SWAP = {"swap": {"flips": ["own", "swapped"], "accuracy": None}}


def follows(estimate: float, low: float, high: float) -> Row:
    return row(
        comparison="swap", group="all", patients=50, towards=0.5 + estimate / 2, away=0.5 - estimate / 2,
        following=estimate, low=low, high=high,
    )  # fmt: skip


def test_a_swap_tells_how_far_answers_move_towards_what_the_picture_says_within_the_finding() -> None:
    tables = Tables([], [flip("swap", 0.54, 0.44, 0.65)], [], [], following=[follows(0.4, 0.3, 0.5)])
    statement = only(tables, aspect="image", comparisons=SWAP)
    assert (statement.answer, statement.title) == (Answer.MORE, "Its answers move with the image without a report")
    assert statement.text.startswith("54.0 % [44.0, 65.0] of its answers change when the image is replaced by that")
    assert "(400 pairs, 50 patients)" in statement.text
    assert (
        "70.0 % of the answers move towards what the shown image says and 30.0 % away from it: a difference of "
        "+40.0 points [30.0, 50.0]." in statement.text
    )
    assert NOT_AN_ERROR in statement.caveats
    assert NOT_FROZEN not in statement.caveats


def test_few_answers_that_move_are_said_to_be_few_however_sure_it_is() -> None:
    tables = Tables([], [flip("swap", 0.018, 0.012, 0.025)], [], [], following=[follows(0.01, 0.001, 0.02)])
    statement = only(tables, aspect="image", comparisons=SWAP)
    assert (statement.answer, statement.title) == (Answer.MORE, "Few answers move with the image without a report")
    assert statement.number.replace(SPACE, " ") == "1.8 % [1.2, 2.5]"


def test_under_a_black_image_nothing_is_said_of_following() -> None:
    tables = Tables([], [flip("swap", 0.5, 0.4, 0.6)], [], [], following=[follows(0.4, 0.3, 0.5)])
    statement = only(tables, aspect="image", comparisons={"swap": {"flips": ["own", "black"]}})
    assert statement.title == "Its answers move with the image without a report"
    assert "replaced by a black one" in statement.text
    assert "towards" not in statement.text


def test_no_flip_at_all_is_told_with_what_may_have_gone_unseen() -> None:
    """50 patients without a flip: 1 - 0.05^(1/50) = 5.8 %."""
    statement = only(Tables([], [flip("swap", 0.0, 0.0, 0.0)], [], []), aspect="image", comparisons=SWAP)
    assert statement.answer is Answer.NONE
    assert statement.title == "No answer moves with the image without a report"
    assert "up to 5.8 % of such patients could still show one" in statement.text
    assert NOT_FROZEN in statement.caveats


def test_a_flip_rate_whose_interval_reaches_zero_cannot_tell() -> None:
    statement = only(Tables([], [flip("swap", 0.01, 0.0, 0.03)], [], []), aspect="image", comparisons=SWAP)
    assert statement.answer is Answer.CANNOT_TELL
    assert statement.title == "Whether its answers move with the image without a report"
    assert "The interval includes 0." in statement.text
    assert NOT_FROZEN in statement.caveats


def test_a_swap_beside_a_report_says_so_whichever_arm_is_named_first() -> None:
    flips = [flip("swap", 0.04, 0.03, 0.05)]
    for pair in (["report", "report-swapped"], ["report-swapped", "report"]):
        statement = only(Tables([], flips, [], []), aspect="image", comparisons={"swap": {"flips": pair}})
        assert statement.title == "Few answers move with the image beside the whole report"
        assert statement.beside


def test_an_image_left_out_is_told_as_such() -> None:
    comparisons = {"swap": {"flips": ["own", "text"]}}
    statement = only(Tables([], [flip("swap", 0.4, 0.3, 0.5)], [], []), aspect="image", comparisons=comparisons)
    assert "when the image is left out" in statement.text


def test_margins_are_told_where_there_are_any() -> None:
    with_margins = only(Tables([], [flip("swap", 0.4, 0.3, 0.5)], [], []), aspect="image", comparisons=SWAP)
    assert "moves by 0.69 on average; 32.2 % of the pairs move by over 0.5." in with_margins.text
    blank = flip("swap", 0.4, 0.3, 0.5, mean_abs_margin_change=None, margin_moved_over_0_5=None)
    assert "no log-probabilities" in only(Tables([], [blank], [], []), aspect="image", comparisons=SWAP).text


@pytest.mark.parametrize(("rates", "constant"), [((0.5, 0.4), False), ((0.99, 0.98), True), ((0.02, 0.03), True)])
def test_nearly_constant_answers_are_named_because_they_can_hardly_flip(
    rates: tuple[float, float], constant: bool
) -> None:
    flips = [flip("swap", 0.04, 0.03, 0.05, yes_rate_a=rates[0], yes_rate_b=rates[1])]
    statement = only(Tables([], flips, [], []), aspect="image", comparisons=SWAP)
    assert f"It says yes in {100 * rates[0]:.1f} % under own" in statement.text
    assert any("few can flip" in caveat for caveat in statement.caveats) == constant


@pytest.mark.parametrize(("temperature", "warned"), [(0.0, False), (0.2, True)])
def test_a_model_that_draws_its_answers_is_warned_of(temperature: float, warned: bool) -> None:
    tables = Tables([], [flip("swap", 0.4, 0.3, 0.5)], [], [])
    statement = only(tables, aspect="image", comparisons=SWAP, temperature=temperature)
    assert any("by chance" in caveat for caveat in statement.caveats) == warned


def test_flips_between_other_settings_are_told_by_their_names() -> None:
    comparisons = {"order": {"flips": ["report", "text-first"]}}
    for numbers, title in (
        ((0.2, 0.1, 0.3), "Its answers differ between report and text-first"),
        ((0.0, 0.0, 0.0), "No answer differs between report and text-first"),
        ((0.1, 0.0, 0.3), "Whether its answers differ between report and text-first"),
    ):
        statement = only(Tables([], [flip("order", *numbers)], [], []), aspect="other", comparisons=comparisons)
        assert statement.title == title
        assert NOT_AN_ERROR not in statement.caveats


@pytest.mark.parametrize(("patients", "warned"), [(FEW_PATIENTS - 1, True), (FEW_PATIENTS, False)])
def test_a_verdict_on_few_patients_carries_a_warning(patients: int, warned: bool) -> None:
    tables = Tables([], [flip("swap", 0.4, 0.3, 0.5, patients=patients)], [], [])
    statement = only(tables, aspect="image", comparisons=SWAP)
    assert any("too narrow" in caveat for caveat in statement.caveats) == warned


# -- effects ---------------------------------------------------------------------------------------------------------

SWAPS = {"without": {"flips": ["own", "swapped"]}, "with": {"flips": ["report", "report-swapped"]}}
RATES = [flip("without", 0.2094, 0.197, 0.2213), flip("with", 0.0426, 0.0395, 0.046)]


@pytest.mark.parametrize(
    ("numbers", "answer", "title"),
    [
        ((0.167, 0.156, 0.177), Answer.MORE, "With the report beside it, its answers follow the image less"),
        ((-0.1, -0.2, -0.05), Answer.LESS, "With the report beside it, its answers move with the image more"),
        (
            (0.01, -0.02, 0.05),
            Answer.CANNOT_TELL,
            "Whether the report changes how much its answers move with the image",
        ),
        ((0.0, 0.0, 0.0), Answer.NONE, "No sign that the report changes how much its answers move with the image"),
    ],
)
def test_the_report_effect_is_told_with_both_rates(numbers: Any, answer: Answer, title: str) -> None:
    options = {"comparisons": SWAPS, "effects": {"pull": {"minus": ["without", "with"]}}}
    statement = only(Tables([], RATES, [effect("pull", *numbers)], []), aspect="report-effect", **options)
    assert (statement.answer, statement.title) == (answer, title)
    assert statement.text.startswith("20.9 % of its answers change without the report and 4.3 % with it")
    assert (SENSIBLE in statement.caveats) == (answer is Answer.MORE)


def test_the_report_effect_is_the_same_whichever_comparison_is_subtracted() -> None:
    one = {"comparisons": SWAPS, "effects": {"pull": {"minus": ["without", "with"]}}}
    two = {"comparisons": SWAPS, "effects": {"pull": {"minus": ["with", "without"]}}}
    assert only(Tables([], RATES, [effect("pull", 0.167, 0.156, 0.177)], []), aspect="report-effect", **one) == only(
        Tables([], RATES, [effect("pull", -0.167, -0.177, -0.156)], []), aspect="report-effect", **two
    )


def test_any_other_effect_is_told_by_its_names() -> None:
    comparisons = {"a": {"accuracy": ["own", "black"]}, "b": {"accuracy": ["report", "report-text"]}}
    options = {"comparisons": comparisons, "effects": {"gap": {"minus": ["a", "b"]}}}
    for numbers, title in (
        ((0.2, 0.1, 0.3), "More under a than under b"),
        ((-0.2, -0.3, -0.1), "Less under a than under b"),
        ((0.1, -0.1, 0.2), "Whether a and b differ"),
    ):
        statement = only(Tables([], [], [effect("gap", *numbers)], []), aspect="other", **options)
        assert statement.title == title
        assert statement.text.startswith("A difference of ")


# -- single settings -------------------------------------------------------------------------------------------------


def over(opponent: str, gain: float, low: float, high: float, setting: str = "own") -> Row:
    return row(
        setting=setting, opponent=opponent, questions=200, patients=50, balanced_within=0.7,
        opponent_balanced=0.7 - gain, gain=gain, low=low, high=high,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("numbers", "answer", "word"),
    [
        ((0.2, 0.1, 0.3), Answer.MORE, "does better than"),
        ((-0.2, -0.3, -0.1), Answer.LESS, "does worse than"),
        ((0.0, -0.1, 0.1), Answer.CANNOT_TELL, "whether it does better than"),
    ],
)
def test_accuracy_is_set_against_each_opponent_within_the_finding(numbers: Any, answer: Answer, word: str) -> None:
    """The majority of each finding, not the commonest answer of all of them pooled."""
    tables = Tables([], [], [], [], gain=[over("majority of the finding", *numbers)])
    statement = only(tables, aspect="accuracy")
    assert statement.answer is answer
    assert statement.title == f"own: {word} by always giving each finding's commonest answer"
    assert "70.0 % with the image without a report" in statement.text
    assert "over 200 questions answered both times." in statement.text
    assert ("The interval includes 0." in statement.text) == (answer is Answer.CANNOT_TELL)


def test_accuracy_beside_a_report_is_said_to_be_no_competence() -> None:
    rows = [over("no image", 0.2, 0.1, 0.3), over("no image", 0.2, 0.1, 0.3, setting="report")]
    alone, beside = said(Tables([], [], [], [], gain=rows), aspect="accuracy")
    assert NOT_COMPETENCE not in alone.caveats
    assert NOT_COMPETENCE in beside.caveats


def test_answers_that_are_nearly_always_the_same_are_noted_by_place() -> None:
    shares = [place("own", 1, 0.5, 0.99), place("own", 2, 0.5, 0.01), place("black", 1, 0.5, 0.96)]
    shares += [place("report", 2, 0.5, 0.95), place("report", 1, 0.5, 0.05), place("text", 1, 0.5, 0.94)]
    statement = only(Tables([], [], [], shares), aspect="constant")
    assert statement.answer is Answer.DESCRIPTION
    assert statement.text == (
        "Option 1 in 96.0 % or more of its answers under black and own; option 2 in 95.0 % of its answers under report."
    )
    assert said(Tables([], [], [], [place("own", 1, 0.5, 0.94), place("black", 1, 0.5, None)]), aspect="constant") == []


def test_many_answers_that_could_not_be_used_are_noted() -> None:
    rows = [
        accuracy("own", 0.5, 0.4, 0.6, answered=190, unparsed=4, refused=3, truncated=3),
        accuracy("black", 0.5, 0.4, 0.6, answered=191, unparsed=9),
        accuracy("text", None, None, None, answered=0, failed=10),
    ]
    statement = only(Tables(rows, [], [], []), aspect="unread")
    assert "5.0 % under own." in statement.text
    assert "black" not in statement.text


def test_a_judgement_rests_on_the_rows_of_its_dataset_and_model_alone() -> None:
    other = [{**one, "model": "another"} for one in [flip("swap", 0.5, 0.4, 0.6)]]
    elsewhere = [{**one, "dataset": "elsewhere"} for one in [flip("swap", 0.5, 0.4, 0.6)]]
    assert judge(DATASET, MODEL, Tables([], [*other, *elsewhere], [], []), spec(SWAP)).statements == ()


def test_caveats_of_a_judgement_stand_once() -> None:
    flips = [flip("without", 0.0, 0.0, 0.0), flip("with", 0.0, 0.0, 0.0)]
    assert judge(DATASET, MODEL, Tables([], flips, [], []), spec(SWAPS)).caveats == (NOT_FROZEN,)
