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
    return row(setting=setting, position=position, gold_share=gold, chosen_share=chosen, recall=0.5, rstd=1)


def said(tables: Tables, *, aspect: str, **options: Any) -> list[Statement]:
    """The statements of an aspect, with plain spaces for unbreakable ones."""
    statements = judge(DATASET, MODEL, tables, spec(**options)).statements
    return [replace(one, text=one.text.replace(SPACE, " ")) for one in statements if one.aspect == aspect]


def only(tables: Tables, *, aspect: str, **options: Any) -> Statement:
    (statement,) = said(tables, aspect=aspect, **options)
    return statement


def headline(tables: Tables, **options: Any) -> str:
    return judge(DATASET, MODEL, tables, spec(**options)).headline


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
        ((0.423, 0.38, 0.462), Answer.MORE, "The image helps without a report"),
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
    assert statement.reads == (answer is Answer.MORE)
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


def groups(changed: tuple[float, float, float], unchanged: tuple[float, float, float]) -> list[Row]:
    return [
        flip("swap", *changed, group="label-changed", pairs=200),
        flip("swap", *unchanged, group="label-unchanged", pairs=200),
    ]


def test_answers_follow_the_image_where_they_change_with_the_truth() -> None:
    flips = [flip("swap", 0.54, 0.44, 0.65), *groups((0.8, 0.7, 0.9), (0.05, 0.01, 0.1))]
    statement = only(Tables([], flips, [], []), aspect="image", comparisons=SWAP)
    assert (statement.answer, statement.reads) == (Answer.MORE, True)
    assert statement.title == "Its answers follow the image without a report"
    assert statement.text.startswith("54.0 % [44.0, 65.0] of its answers change when the image is replaced by that")
    assert "(400 pairs, 50 patients)" in statement.text
    assert "80.0 % [70.0, 90.0] change; where it is the same, 5.0 % [1.0, 10.0]." in statement.text
    assert NOT_AN_ERROR in statement.caveats
    assert NOT_FROZEN not in statement.caveats


@pytest.mark.parametrize("unchanged", [(0.5, 0.4, 0.75), (0.5, 0.4, 0.7)])
def test_answers_only_move_with_the_image_where_the_intervals_of_the_groups_touch(unchanged: Any) -> None:
    flips = [flip("swap", 0.54, 0.44, 0.65), *groups((0.8, 0.7, 0.9), unchanged)]
    statement = only(Tables([], flips, [], []), aspect="image", comparisons=SWAP)
    assert (statement.answer, statement.reads) == (Answer.MORE, False)
    assert statement.title == "Its answers move with the image without a report"
    assert "cannot be told from that" in statement.text


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [flip("swap", 0.8, 0.7, 0.9, group="label-changed")],
        groups((0.8, 0.7, 0.9), (None, None, None)),  # type: ignore[arg-type]
    ],
)
def test_answers_only_move_with_the_image_where_a_group_is_missing(rows: list[Row]) -> None:
    statement = only(Tables([], [flip("swap", 0.5, 0.4, 0.6), *rows], [], []), aspect="image", comparisons=SWAP)
    assert (statement.title, statement.reads) == ("Its answers move with the image without a report", False)


def test_too_few_patients_in_the_group_where_the_truth_changes_say_nothing_of_following() -> None:
    flips = [flip("swap", 0.5, 0.4, 0.6), *groups((0.8, 0.7, 0.9), (0.05, 0.01, 0.1))]
    flips[1]["patients"] = str(FEWEST_PATIENTS - 1)
    assert not only(Tables([], flips, [], []), aspect="image", comparisons=SWAP).reads


def test_flips_under_a_black_image_are_no_sign_of_reading() -> None:
    flips = [flip("swap", 0.5, 0.4, 0.6), *groups((0.8, 0.7, 0.9), (0.05, 0.01, 0.1))]
    comparisons = {"swap": {"flips": ["own", "black"]}}
    statement = only(Tables([], flips, [], []), aspect="image", comparisons=comparisons)
    assert (statement.title, statement.reads) == ("Its answers move with the image without a report", False)
    assert "replaced by a black one" in statement.text


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
        assert statement.title == "Its answers move with the image beside the whole report"
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


@pytest.mark.parametrize(
    ("interval", "answer", "word"),
    [
        ((0.8, 0.75, 0.85), Answer.MORE, "better than"),
        ((0.6, 0.55, 0.65), Answer.LESS, "worse than"),
        ((0.7, 0.65, 0.75), Answer.CANNOT_TELL, "whether it does better than"),
    ],
)
def test_accuracy_is_judged_against_the_best_answer_given_without_looking(
    interval: Any, answer: Answer, word: str
) -> None:
    """Chance is 50 %, always the first option 30 %, always the second 70 %: the last is the one to beat."""
    tables = Tables(
        [accuracy("own", *interval, chance=0.5, always_first=0.3)],
        [],
        [],
        [place("own", 1, 0.3, 0.5), place("own", 2, 0.7, 0.5)],
    )
    statement = only(tables, aspect="accuracy", comparisons=GAIN)
    assert statement.answer is answer
    assert statement.title == f"own: {word} answering without looking"
    assert "by chance, 50.0 %; always the first option, 30.0 %; always option 2, 70.0 %." in statement.text
    assert "(200 questions, 50 patients, 1 run)" in statement.text
    assert ("70.0 %. The interval includes the best of these, 70.0 %." in statement.text) == (
        answer is Answer.CANNOT_TELL
    )


def test_only_settings_with_the_own_image_that_are_compared_are_judged_by_accuracy() -> None:
    rows = [accuracy(name, 0.8, 0.7, 0.9) for name in ("black", "other-view", "own", "report")]
    assert [one.about for one in said(Tables(rows, [], [], []), aspect="accuracy", comparisons=GAIN)] == ["own"]
    flips_only = {"swap": {"flips": ["report", "report-swapped"]}}
    (beside,) = said(Tables(rows, [], [], []), aspect="accuracy", comparisons=flips_only)
    assert (beside.about, NOT_COMPETENCE in beside.caveats) == ("report", True)
    uncompared = said(Tables(rows, [], [], []), aspect="accuracy")
    assert [one.about for one in uncompared] == ["other-view", "own", "report"]


def test_a_model_without_images_is_judged_by_what_it_was_asked() -> None:
    statement = only(Tables([accuracy("text", 0.5257, 0.48, 0.57)], [], [], []), aspect="accuracy", comparisons=GAIN)
    assert "of the answers without any image without a report" in statement.text
    assert statement.answer is Answer.MORE


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


# -- the headline ----------------------------------------------------------------------------------------------------


def test_the_headline_says_whether_the_image_is_used() -> None:
    both = {**GAIN, **SWAP}
    still, moving = [flip("swap", 0.0, 0.0, 0.0)], [flip("swap", 0.5, 0.4, 0.6)]
    helps, none, unsure = (effect("gain", *one) for one in ((0.2, 0.1, 0.3), (0.0, 0.0, 0.0), (0.1, -0.1, 0.3)))
    assert headline(Tables([], still, [helps], []), comparisons=both) == "Uses the image"
    assert headline(Tables([], moving, [unsure], []), comparisons=both).startswith("Reacts to the image")
    assert headline(Tables([], still, [none], []), comparisons=both) == "Shows no use of the image"
    assert headline(Tables([], still, [unsure], []), comparisons=both) == "Cannot tell whether it uses the image"
    assert headline(Tables([], [], [], []), comparisons=both) == "Use of the image was not tested"


def test_the_headline_rests_on_what_was_asked_without_a_report_where_that_was_asked() -> None:
    flips = [flip("without", 0.0, 0.0, 0.0), flip("with", 0.2, 0.1, 0.3)]
    assert headline(Tables([], flips, [], []), comparisons=SWAPS) == "Shows no use of the image"
    assert headline(Tables([], flips[1:], [], []), comparisons=SWAPS) == (
        "Reacts to the image; whether it reads it cannot be told beside a report"
    )


def test_the_headline_names_what_bends_the_answers() -> None:
    comparisons = {**GAIN, **SWAPS, "cost": {"accuracy": ["own", "shuffled"]}}
    effects = {"pull": {"minus": ["without", "with"]}}
    rows = [effect("gain", -0.1, -0.2, -0.05), effect("cost", 0.3, 0.2, 0.4), effect("pull", 0.1, 0.05, 0.2)]
    text = headline(Tables([], RATES, rows, [place("own", 1, 0.5, 0.99)]), comparisons=comparisons, effects=effects)
    assert text.split("; ")[2:] == [
        "is correct more often without its image in at least one comparison",
        "follows it less once the report is there",
        "leans on the order of the options",
        "gives nearly always the same answer in at least one setting",
    ]


def test_a_judgement_rests_on_the_rows_of_its_dataset_and_model_alone() -> None:
    other = [{**one, "model": "another"} for one in [flip("swap", 0.5, 0.4, 0.6)]]
    elsewhere = [{**one, "dataset": "elsewhere"} for one in [flip("swap", 0.5, 0.4, 0.6)]]
    assert judge(DATASET, MODEL, Tables([], [*other, *elsewhere], [], []), spec(SWAP)).statements == ()


def test_caveats_of_a_judgement_stand_once() -> None:
    flips = [flip("without", 0.0, 0.0, 0.0), flip("with", 0.0, 0.0, 0.0)]
    assert judge(DATASET, MODEL, Tables([], flips, [], []), spec(SWAPS)).caveats == (NOT_FROZEN,)
