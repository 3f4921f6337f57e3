"""flips.csv and effects.csv, worked out by hand."""

from __future__ import annotations

import math
from pathlib import Path

import pandas as pd
import pytest
from scipy import stats

from data.handmade import Asked, read, write_cell
from overread.config import Comparison, Effect, Statistics
from overread.estimates.tables.effects import effects_table
from overread.estimates.tables.flips import TABLE, flips_table

FEW = Statistics(draws=500)
SWAP = {"swap": Comparison(flips=("own", "swapped"))}


def sure(yes: float) -> tuple[float, float]:
    return (math.log(yes), math.log(1 - yes))


OWN = [
    Asked("q1", "p1", "yes", "yes", topic="Oedema", image=("s1", "p1", "yes"), logprobs=sure(0.9)),
    Asked("q2", "p1", "no", "no", topic="Oedema", image=("s1", "p1", "no"), logprobs=sure(0.2)),
    Asked("q3", "p2", "yes", "yes", topic="Fracture", image=("s2", "p2", "yes"), logprobs=sure(0.6)),
    Asked("q4", "p2", "no", "yes", topic="Fracture", image=("s2", "p2", "no"), logprobs=sure(0.7)),
    Asked("q5", "p3", "no", "no", topic="Fracture", image=("s3", "p3", "no"), logprobs=sure(0.4)),
]
SWAPPED = [
    Asked("q1", "p1", "yes", "no", topic="Oedema", image=("s9", "p1", "no"), logprobs=sure(0.1)),
    Asked("q2", "p1", "no", "no", topic="Oedema", image=("s9", "p1", "no"), logprobs=sure(0.2)),
    Asked("q3", "p2", "yes", "yes", topic="Fracture", image=("s1", "p1", "yes"), logprobs=sure(0.6)),
    Asked("q4", "p2", "no", "no", topic="Fracture", image=("s1", "p1", None), logprobs=sure(0.3)),
    Asked("q5", "p3", "no", None, topic="Fracture", image=("s1", "p1", "yes")),
]


def flips(tmp_path: Path, own: list[Asked], swapped: list[Asked]) -> pd.DataFrame:
    cells = read(tmp_path, write_cell(tmp_path, "own", own), write_cell(tmp_path, "swapped", swapped))
    rows = flips_table(cells, SWAP, FEW)
    assert tuple(rows.columns) == TABLE.names
    return rows.set_index("group")


def test_flip_rates_of_all_groups_in_a_worked_example(tmp_path: Path):
    """q1 and q4 flip of the four pairs whose arms were answered; q5's second arm could not be read."""
    table = flips(tmp_path, OWN, SWAPPED)
    assert list(table.index) == [
        "all", "Fracture", "Oedema", "label-changed", "label-unchanged", "within-patient", "across-patients",
    ]  # fmt: skip
    assert table["pairs"].tolist() == [4, 2, 2, 1, 2, 2, 2]
    assert table["patients"].tolist() == [2, 1, 1, 1, 2, 1, 1]
    assert table["flip_rate"].tolist() == [0.5, 0.5, 0.5, 1, 0, 0.5, 0.5]
    assert table["unpaired"].tolist() == [1, 1, 0, 1, 0, 0, 1]
    assert table.loc["all", ["yes_rate_a", "yes_rate_b"]].tolist() == [0.75, 0.25]
    # Margins: q1 from log 9 to log 1/9, q4 from log 7/3 to log 3/7, q2 and q3 stay.
    moved = [2 * math.log(9), 0, 0, 2 * math.log(7 / 3)]
    assert table.loc["all", "mean_abs_margin_change"] == pytest.approx(sum(moved) / 4)
    assert table.loc["all", "margin_moved_over_0_5"] == 0.5
    assert table.loc["label-unchanged", "mean_abs_margin_change"] == pytest.approx(0)


def jeffreys_or_wider(events: int, pairs: int) -> list[float]:
    """Between Clopper and Pearson's limits and Jeffreys': here a quarter of the way from the former."""
    ends = [
        stats.beta.ppf(q, events + 0.5 + shift, pairs - events + 0.5 - shift)
        for q, shift in ((0.025, -0.375), (0.975, 0.375))
    ]
    return [float(end) for end in ends]


def test_both_patients_flip_half_and_the_interval_has_a_width_and_one_patient_has_none(tmp_path: Path):
    """Two patients who are alike say no more of the next one than their answers do, were they independent: 2 of 4."""
    table = flips(tmp_path, OWN, SWAPPED)
    assert table.loc["all", ["low", "high"]].tolist() == pytest.approx(jeffreys_or_wider(2, 4), abs=0.06)
    assert table.loc["Oedema", ["low", "high"]].isna().all()


def test_an_answer_is_the_option_as_written_so_a_shuffle_alone_flips_nothing(tmp_path: Path):
    options = ("a", "b", "c", "d")
    own = [Asked("q1", "p1", "a", "b", options=options), Asked("q2", "p2", "a", "d", options=options)]
    moved = [
        Asked("q1", "p1", "a", "b", options=options, shown=("d", "c", "b", "a")),
        Asked("q2", "p2", "a", "a", options=options, shown=("d", "c", "b", "a")),
    ]
    table = flips(tmp_path, own, moved)
    assert table.loc["all", "flip_rate"] == 0.5
    assert list(table.index) == ["all", "topic"], "no picture of two studies: no group about a swap"
    assert table[["yes_rate_a", "yes_rate_b", "mean_abs_margin_change", "margin_moved_over_0_5"]].isna().all(axis=None)


def test_a_margin_that_moves_by_just_half_has_not_moved_over_half(tmp_path: Path):
    own = [Asked("q1", "p1", "yes", "yes", logprobs=(-0.25, -1.25)), Asked("q2", "p2", "yes", "yes", logprobs=(0, -2))]
    other = [Asked("q1", "p1", "yes", "yes", logprobs=(-0.5, -1.0)), Asked("q2", "p2", "yes", "yes", logprobs=(0, -3))]
    table = flips(tmp_path, own, other)
    assert table.loc["all", "mean_abs_margin_change"] == pytest.approx(0.75)
    assert table.loc["all", "margin_moved_over_0_5"] == 0.5


def test_a_group_with_no_pair_is_left_out(tmp_path: Path):
    own = [Asked("q1", "p1", "yes", "yes"), Asked("q2", "p2", "yes", None, topic="never read")]
    table = flips(tmp_path, own, [Asked("q1", "p1", "yes", "no"), Asked("q2", "p2", "yes", "yes", topic="never read")])
    assert list(table.index) == ["all", "topic"]
    assert table["unpaired"].tolist() == [1, 0]


def test_a_topic_with_the_name_of_a_group_stands_apart_from_it(tmp_path: Path):
    own = [Asked("q1", "p1", "yes", "yes", topic="all"), Asked("q2", "p2", "yes", "yes")]
    table = flips(tmp_path, own, [Asked("q1", "p1", "yes", "no", topic="all"), Asked("q2", "p2", "yes", "yes")])
    assert table["flip_rate"].to_dict() == {"all": 0.5, "all (topic)": 1, "topic": 0}


def test_a_comparison_with_an_arm_that_was_not_run_is_left_out(tmp_path: Path):
    cells = read(tmp_path, write_cell(tmp_path, "own", OWN))
    assert flips_table(cells, SWAP, FEW).empty
    gain = {"gain": Comparison(accuracy=("own", "swapped")), **SWAP}
    effects = {"effect": Effect(minus=("gain", "swap"))}
    assert effects_table(cells, gain, effects, FEW).empty


def test_accuracy_comparisons_are_paired_differences(tmp_path: Path):
    """Right under a: q1, q2, q3; right under b: q3; q4 failed under b, so its right answer under a does not count."""
    a = [Asked(f"q{n}", f"p{n}", "yes", given) for n, given in enumerate(("yes", "yes", "yes", "yes", "no"), start=1)]
    b = [Asked(f"q{n}", f"p{n}", "yes", given) for n, given in enumerate(("no", None, "yes"), start=1)]
    b += [Asked("q4", "p4", "yes", None, status="failed"), Asked("q5", "p5", "yes", "no")]
    cells = read(tmp_path, write_cell(tmp_path, "a", a), write_cell(tmp_path, "b", b))
    table = effects_table(cells, {"gain": Comparison(accuracy=("a", "b"))}, {}, FEW)
    assert list(table.columns) == ["dataset", "model", "effect", "estimate", "low", "high", "patients"]
    assert table.iloc[0, :4].tolist() == ["data", "reader", "gain", pytest.approx((3 - 1) / 4)]
    assert table.loc[0, "patients"] == 4
    assert table.loc[0, "low"] < 0 < 0.5 < table.loc[0, "high"] <= 1, "two of four patients differ: chance does that"


def test_an_effect_is_the_difference_of_two_flip_rates_over_the_union_of_patients(tmp_path: Path):
    """Without the report p1 and p2 flip 2 of 3; with it p2 and p3 flip 1 of 4: 2/3 - 1/4."""

    def arm(setting: str, answers: dict[str, str]) -> dict[str, object]:
        patients = {"q1": "p1", "q2": "p1", "q3": "p2", "q4": "p2", "q5": "p3", "q6": "p3"}
        return write_cell(tmp_path, setting, [Asked(q, patients[q], "yes", given) for q, given in answers.items()])

    cells = read(
        tmp_path,
        arm("bare", {"q1": "yes", "q2": "yes", "q3": "no"}),
        arm("bare-swapped", {"q1": "no", "q2": "yes", "q3": "yes"}),
        arm("report", {"q3": "yes", "q4": "yes", "q5": "no", "q6": "no"}),
        arm("report-swapped", {"q3": "yes", "q4": "no", "q5": "no", "q6": "no"}),
    )
    comparisons = {
        "without": Comparison(flips=("bare", "bare-swapped")),
        "with": Comparison(flips=("report", "report-swapped")),
        "gain": Comparison(accuracy=("bare", "bare-swapped")),
    }
    effects = {
        "report-effect": Effect(minus=("without", "with")),
        "backwards": Effect(minus=("with", "without")),
        "mixed": Effect(minus=("gain", "without")),
    }
    table = effects_table(cells, comparisons, effects, FEW).set_index("effect")
    assert list(table.index) == ["backwards", "gain", "mixed", "report-effect"]
    assert table.loc["report-effect", "estimate"] == pytest.approx(2 / 3 - 1 / 4)
    assert table.loc["report-effect", "patients"] == 3
    assert table.loc["gain", "estimate"] == pytest.approx(0)
    assert table.loc["mixed", "estimate"] == pytest.approx(0 - 2 / 3)
    forth, back = table.loc["report-effect"], table.loc["backwards"]
    assert (forth["low"], forth["high"]) == pytest.approx((-back["high"], -back["low"]))


def test_models_and_datasets_are_never_paired_with_each_other(tmp_path: Path):
    cells = read(
        tmp_path,
        write_cell(tmp_path, "own", OWN, model="one"),
        write_cell(tmp_path, "swapped", SWAPPED, model="two"),
        write_cell(tmp_path, "swapped", SWAPPED, model="one", dataset="other"),
    )
    assert flips_table(cells, SWAP, FEW).empty


# -- beyond chance, and what is lost -----------------------------------------------------------------------------------


def polar(counts: list[tuple[str, str, int]]) -> tuple[list[Asked], list[Asked]]:
    """Pairs of yes/no answers, so many of each kind, a patient each."""
    kinds = [(a, b) for a, b, number in counts for _ in range(number)]
    return tuple(  # type: ignore[return-value]
        [
            Asked(f"q{place}", f"p{place}", "yes", None if kind[side] == "-" else kind[side], status="answered")
            for place, kind in enumerate(kinds)
        ]
        for side in (0, 1)
    )


@pytest.mark.parametrize(
    ("counts", "ac1"),
    [
        ([("yes", "yes", 118), ("yes", "no", 5), ("no", "yes", 2)], 0.9407763),
        ([("yes", "yes", 40), ("yes", "no", 9), ("no", "yes", 6), ("no", "no", 45)], 0.7007481),
    ],
)
def test_agreement_beyond_chance_is_gwets_ac1(tmp_path: Path, counts: list[tuple[str, str, int]], ac1: float):
    row = flips(tmp_path, *polar(counts)).loc["all"]
    assert row["ac1"] == pytest.approx(ac1, abs=1e-7)
    assert row["ac1_low"] < ac1 < row["ac1_high"] <= 1
    a, b = row["yes_rate_a"], row["yes_rate_b"]
    assert row["expected_rate"] == pytest.approx(a * (1 - b) + b * (1 - a))


def test_a_change_between_an_answer_and_none_is_a_change_and_bounds_stand_beside(tmp_path: Path):
    """Of 10 pairs 5 stay, 2 flip, 2 lose one arm and 1 both: outcomes change in 4; between 2 and 5 of 10 may flip."""
    counts = [("yes", "yes", 5), ("yes", "no", 2), ("yes", "-", 1), ("-", "no", 1), ("-", "-", 1)]
    row = flips(tmp_path, *polar(counts)).loc["all"]
    assert (row["pairs"], row["unpaired"], row["all_pairs"]) == (7, 3, 10)
    assert row["flip_rate"] == pytest.approx(2 / 7)
    assert row["outcome_flip_rate"] == pytest.approx(0.4)
    assert (row["bound_low"], row["bound_high"]) == pytest.approx((0.2, 0.5))
    assert row["outcome_low"] < 0.4 < row["outcome_high"]
    assert row["patients_moved"] == 2
