"""Margins, own labels, modality, layers, findings and effects of effects, on answers written out by hand."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from data.handmade import Asked, read, write_cell
from overread.config import Comparison, Effect, Setting, Statistics
from overread.estimates.bootstrap import clustered_interval
from overread.estimates.spec import TablesSpec
from overread.estimates.tables import findings, layers, margins, modality, own_label
from overread.estimates.tables.accuracy import accuracy_table
from overread.estimates.tables.effects import effects_table
from overread.estimates.tables.findings import findings_table
from overread.estimates.tables.flips import flips_table
from overread.estimates.tables.layers import layers_table
from overread.estimates.tables.margins import margins_table
from overread.estimates.tables.modality import modality_table
from overread.estimates.tables.own_label import own_label_table

FEW = Statistics()
DRAWN = Statistics(draws=300, intervals="bootstrap")
OWN, SWAPPED = {"images": "frontal"}, {"images": "frontal", "source": "substitute"}
Cells = dict[tuple[str, str, str], pd.DataFrame]


def settings(**written: dict[str, Any]) -> dict[str, Setting]:
    return {name.replace("_", "-"): Setting.model_validate(one) for name, one in written.items()}


def write(folder: Path, **cells: list[Asked]) -> Cells:
    return read(folder, *(write_cell(folder, name.replace("_", "-"), asked) for name, asked in cells.items()))


# -- margins ---------------------------------------------------------------------------------------------------------


def at(*margin: float | None) -> list[Asked]:
    """A question a patient (two of p1), whose margin, log p(yes) - log p(no), is given."""
    asked = []
    for place, one in enumerate(margin):
        logprobs = None if one is None else tuple(-math.log1p(math.exp(sign * one)) for sign in (-1, 1))
        asked.append(Asked(f"q{place}", f"p{max(place, 1)}", "yes", "yes", logprobs=logprobs))
    return asked


REPORT_EFFECT = {"report-effect": Effect(minus=("without", "with"))}
PAIRS = {"without": Comparison(flips=("own", "other")), "with": Comparison(flips=("report", "report-other"))}


def test_the_share_of_questions_that_move_more_without_the_report(tmp_path: Path):
    """Moves without: 2, 3, 1, 0.5; with: 1, 3, 4, 0. q0 and q3 move more, q1 moves alike; q4 has no margin once."""
    cells = write(
        tmp_path, own=at(0, 0, 0, 0, 0), other=at(2, -3, 1, 0.5, 5),
        report=at(1, 1, 1, 1, 1), report_other=at(2, 4, -3, 1, None),
    )  # fmt: skip
    table = margins_table(cells, PAIRS, REPORT_EFFECT, FEW)
    assert tuple(table.columns) == margins.TABLE.names
    (row,) = table.to_dict("records")
    assert (row["pairs"], row["patients"], row["moves_more"]) == (4, 3, 0.5)
    assert row["mean_abs_change_first"] == pytest.approx(6.5 / 4)
    assert row["mean_abs_change_second"] == pytest.approx(8 / 4)
    # By patient: p1 1 of 2, p2 0 of 1, p3 1 of 1.
    assert 0 <= row["low"] < 0.5 < row["high"] <= 1


def test_a_model_without_log_probabilities_has_no_margins(tmp_path: Path):
    bare = at(None, None)
    cells = write(tmp_path, own=bare, other=bare, report=bare, report_other=bare)
    assert len(margins_table(cells, PAIRS, REPORT_EFFECT, FEW)) == 0


# -- the truth of the picture shown ------------------------------------------------------------------------------------


def shown(*rows: tuple[str, str | None, str | None, str]) -> list[Asked]:
    """Patient, what is true of the picture, the answer, and the picture's study."""
    asked = []
    for place, (patient, truth, given, study) in enumerate(rows):
        one = Asked(f"q{place}", patient, "yes", given, image=(study, patient, truth))
        asked.append(replace(one, given=None, status="failed") if given == "failed" else one)
    return asked


def test_each_arm_is_scored_against_the_study_it_shows(tmp_path: Path):
    """Own pictures: yes yes no yes, answered yes no no yes. The others: no yes no yes, answered yes yes yes, unread.

    So right are 3 of 4 and 1 of 4. Recall of yes and no: own 2/3 and 1; others 1/2 and 0. Of the rest, q4's truth is
    not known, q5's second arm failed and q6 shows the same study twice: left out.
    """
    own = shown(
        ("p1", "yes", "yes", "s"), ("p1", "yes", "no", "s"), ("p2", "no", "no", "s"), ("p3", "yes", "yes", "s"),
        ("p3", "yes", "yes", "s"), ("p3", "yes", "yes", "s"), ("p3", "yes", "yes", "s"),
    )  # fmt: skip
    other = shown(
        ("p1", "no", "yes", "t"), ("p1", "yes", "yes", "t"), ("p2", "no", "yes", "t"), ("p3", "yes", None, "t"),
        ("p3", None, "yes", "t"), ("p3", "yes", "failed", "t"), ("p3", "yes", "yes", "s"),
    )  # fmt: skip
    table = own_label_table(write(tmp_path, own=own, other=other), {"swap": Comparison(flips=("own", "other"))}, FEW)
    assert tuple(table.columns) == own_label.TABLE.names
    assert table["arm"].tolist() == ["first", "second", "difference"]
    assert table["setting"].tolist() == ["own", "other", "own - other"]
    assert table["pairs"].tolist() == [4] * 3 and table["patients"].tolist() == [3] * 3
    assert table["accuracy_for_image"].tolist() == pytest.approx([3 / 4, 1 / 4, 1 / 2])
    assert table["balanced_accuracy_for_image"].tolist() == pytest.approx([5 / 6, 1 / 4, 5 / 6 - 1 / 4])
    assert (table["low"] <= table["accuracy_for_image"]).all() and (table["accuracy_for_image"] <= table["high"]).all()


def test_a_black_image_has_no_truth(tmp_path: Path):
    own = [Asked("q1", "p1", "yes", "yes", image=("s", "p1", "yes"))]
    cells = write(tmp_path, own=own, black=[Asked("q1", "p1", "yes", "no")])
    assert len(own_label_table(cells, {"swap": Comparison(flips=("own", "black"))}, FEW)) == 0


# -- modality ----------------------------------------------------------------------------------------------------------


def answers(*given: str | None) -> list[Asked]:
    """Six questions of three patients; the right answers are yes yes yes yes no no."""
    return [
        Asked(f"q{place}", f"p{place // 2}", "yes" if place < 4 else "no", one)
        for place, one in enumerate(given)
    ]  # fmt: skip


FAMILY = settings(
    z={"readout": "yes-no"}, y={"report": "full", "readout": "yes-no"}, x={**OWN, "readout": "yes-no"},
    w={**OWN, "report": "full", "readout": "yes-no"}, v={**OWN, "report": "neutral", "readout": "yes-no"},
    u={**OWN, "source": "black", "readout": "yes-no"}, t={**OWN, "readout": "first-token"},
    s={**OWN, "report": "full", "readout": "yes-no", "order": "text-first"},
)  # fmt: skip


def test_what_image_and_report_add_to_balanced_accuracy(tmp_path: Path):
    """Recalls of yes and no: question 1, 0; report 3/4, 1; image 1/2, 1/2; both 1, 1/2."""
    yes, no = "yes", "no"
    cells = write(
        tmp_path, z=answers(yes, yes, yes, yes, yes, yes), y=answers(yes, yes, yes, no, no, no),
        x=answers(yes, no, yes, no, no, yes), w=answers(yes, yes, yes, yes, no, yes), v=answers(*[no] * 6),
        u=answers(*[no] * 6), t=answers(*[no] * 6),
    )  # fmt: skip
    table = modality_table(cells, FAMILY, FEW)
    assert tuple(table.columns) == modality.TABLE.names
    assert table["shown"].tolist() == [
        "question", "report", "image", "both", "image added to the question", "image added to the report",
    ]  # fmt: skip
    assert table["setting"].tolist() == ["z", "y", "x", "w", "x - z", "w - y"]
    values = [1 / 2, 7 / 8, 1 / 2, 3 / 4, 0, -1 / 8]
    assert table["balanced_accuracy"].tolist() == pytest.approx(values)
    plain = accuracy_table(cells, FEW).set_index("setting")["balanced_accuracy"]
    assert table["balanced_accuracy"].tolist()[:4] == pytest.approx([plain[name] for name in "zyxw"])
    assert (table["low"] <= table["balanced_accuracy"]).all()


def test_a_question_that_failed_on_one_side_counts_on_neither_side_of_a_difference(tmp_path: Path):
    """Without q1, wrong with the image, both sides are right in everything."""
    yes, no = "yes", "no"
    failed = replace(answers(None, None)[1], status="failed")
    question = [*answers(yes), failed, *answers(yes, yes, yes, yes, no, no)[2:]]
    cells = write(tmp_path, z=question, x=answers(yes, no, yes, yes, no, no))
    table = modality_table(cells, FAMILY, FEW).set_index("shown")
    assert table["balanced_accuracy"].to_dict() == pytest.approx(
        {"question": 1, "image": 7 / 8, "image added to the question": 0}
    )
    assert table["questions"].to_dict() == {"question": 5, "image": 6, "image added to the question": 5}


def test_a_family_is_known_by_what_its_settings_are_and_needs_one_without_the_image(tmp_path: Path):
    one = answers("yes", "no", "yes", "yes", "no", "no")
    assert len(modality_table(write(tmp_path, x=one, w=one, t=one), FAMILY, FEW)) == 0
    table = modality_table(write(tmp_path, y=one, w=one, s=one), FAMILY, FEW)
    assert table["setting"].tolist() == ["y", "s", "s - y", "y", "w", "w - y"]


def test_a_balanced_difference_takes_the_same_patients_on_both_sides_and_has_a_width(tmp_path: Path):
    """Answers that are the same with and without the image: 0 in every draw, and still not known to be 0 elsewhere."""
    one = answers("yes", "no", "yes", "yes", "no", "yes")
    cells = write(tmp_path, z=one, x=one)
    columns = ["balanced_accuracy", "low", "high"]
    drawn = modality_table(cells, FAMILY, DRAWN).set_index("shown").loc["image added to the question"]
    assert drawn[columns].tolist() == [0, 0, 0]
    row = modality_table(cells, FAMILY, FEW).set_index("shown").loc["image added to the question"]
    assert row["low"] == pytest.approx(-row["high"])
    assert row["balanced_accuracy"] == 0 and row["high"] > 0.1


# -- layers ------------------------------------------------------------------------------------------------------------


def test_a_layer_curve_is_found_by_what_is_hidden_and_knows_what_to_be_read_against(tmp_path: Path):
    report = {**OWN, "report": "full"}
    every = settings(
        a={**report, "attention": "from-0"}, a2={**report, "attention": "from-0", "source": "substitute"},
        b={**report, "attention": "from-10"}, b2={**report, "attention": "from-10", "source": "substitute"},
        c={**report, "attention": "only-2"}, c2={**report, "attention": "only-2", "source": "substitute"},
        d=report, d2={**report, "source": "substitute"}, e=OWN, e2=SWAPPED,
    )  # fmt: skip
    comparisons = {name: Comparison(flips=(one, f"{one}2")) for name, one in zip("pqrst", "badce", strict=True)}
    comparisons["mixed"] = Comparison(flips=("a", "b2"))
    same, moved = answers(*["yes"] * 6), answers(*["yes"] * 3, *["no"] * 3)
    cells = write(tmp_path, a=same, a2=moved, b=same, b2=same, c=same, c2=same, d=same, d2=same, e=same, e2=moved)
    flips = flips_table(cells, comparisons, FEW)
    table = layers_table(flips, comparisons, every)
    assert tuple(table.columns) == layers.TABLE.names
    shown = table[["mode", "layer", "flip_rate", "comparison", "in_view", "no_report"]].values.tolist()
    assert shown == [
        ["from", 0, 0.5, "q", "r", "t"], ["from", 10, 0.0, "p", "r", "t"], ["only", 2, 0.0, "s", "r", "t"],
    ]  # fmt: skip
    del comparisons["t"], comparisons["r"]
    assert layers_table(flips, comparisons, every)[["in_view", "no_report"]].isna().all(axis=None)
    assert len(layers_table(flips[flips["comparison"] == "t"], comparisons, every)) == 0


# -- findings, and effects of effects ----------------------------------------------------------------------------------


def swap(flipped: str) -> tuple[list[Asked], list[Asked]]:
    """Six questions of three patients, two topics; the answer flips where there is a 1."""
    own, other = [], []
    for place, one in enumerate(flipped):
        base = Asked(f"q{place}", f"p{place // 2}", "yes", "yes", topic=("Edema", "Fracture")[place % 2])
        own.append(base)
        other.append(replace(base, given="no" if one == "1" else "yes"))
    return own, other


ARMS = {"without": "111100", "with": "100000", "first-without": "110000", "first-with": "000000"}


def arms(folder: Path) -> tuple[Cells, dict[str, Comparison]]:
    cells: Cells = {}
    for name, flipped in ARMS.items():
        own, other = swap(flipped)
        cells |= read(folder, write_cell(folder, f"{name}-a", own), write_cell(folder, f"{name}-b", other))
    return cells, {name: Comparison(flips=(f"{name}-a", f"{name}-b")) for name in ARMS}


EFFECTS = {
    "report": Effect(minus=("without", "with")),
    "report-first": Effect(minus=("first-without", "first-with")),
    "order": Effect(minus=("report", "report-first")),
}


def test_a_difference_by_finding_is_that_of_the_rates_of_the_finding(tmp_path: Path):
    """Edema is q0 q2 q4: without 2 of 3, with 1 of 3. Fracture is q1 q3 q5: 2 of 3 and none."""
    cells, comparisons = arms(tmp_path)
    flips = flips_table(cells, comparisons, FEW)
    table = findings_table(cells, flips, comparisons, {"report": EFFECTS["report"]}, FEW)
    assert tuple(table.columns) == findings.TABLE.names
    assert table["group"].tolist() == ["all", "Edema", "Fracture"]
    assert table["rate_first"].tolist() == pytest.approx([4 / 6, 2 / 3, 2 / 3])
    assert table["rate_second"].tolist() == pytest.approx([1 / 6, 1 / 3, 0])
    assert table["difference"].tolist() == pytest.approx([3 / 6, 1 / 3, 2 / 3])
    assert table["floor"].isna().all()
    whole = effects_table(cells, comparisons, EFFECTS, FEW).set_index("effect").loc["report"]
    assert table.loc[0, ["low", "high"]].tolist() == whole[["low", "high"]].tolist()
    assert len(findings_table(cells, flips, comparisons, {"order": EFFECTS["order"], **EFFECTS}, FEW)) == 6


def test_an_effect_of_two_effects_draws_patients_once_for_all_four_comparisons(tmp_path: Path):
    """Patients flip without 2 2 0, with 1 0 0, first without 2 0 0, first with 0 0 0 of 2 each: per patient
    (2 - 1 - 2 + 0) / 2, (2 - 0 - 0 + 0) / 2 and 0: -1/2, 1 and 0, whose mean is 1/6."""
    cells, comparisons = arms(tmp_path)
    row = effects_table(cells, comparisons, EFFECTS, DRAWN).set_index("effect").loc["order"]
    assert row["estimate"] == pytest.approx(1 / 6)
    assert row["patients"] == 3
    direct = clustered_interval(np.array([-0.5, 1.0, 0.0]), np.arange(3), draws=300)
    assert (row["low"], row["high"]) == pytest.approx((direct.low, direct.high))
    row = effects_table(cells, comparisons, EFFECTS, FEW).set_index("effect").loc["order"]
    assert row["estimate"] == pytest.approx(1 / 6)
    assert row["low"] < direct.low and row["high"] > direct.high


def test_an_effect_lacking_one_of_four_comparisons_is_left_out(tmp_path: Path):
    cells, comparisons = arms(tmp_path)
    fewer = {key: rows for key, rows in cells.items() if key[2] != "first-with-b"}
    assert effects_table(fewer, comparisons, EFFECTS, FEW)["effect"].tolist() == ["report"]


@pytest.mark.parametrize(
    ("effects", "message"),
    [
        ({"a": ["b", "b"], "b": ["a", "a"]}, "a -> b -> a comes back to itself"),
        ({"a": ["without", "with"], "b": ["a", "with"]}, "sets a comparison against an effect"),
        ({"a": ["without", "c"]}, "no comparison 'c'"),
    ],
)
def test_effects_that_cannot_be_worked_out_are_refused(effects: dict[str, list[str]], message: str):
    cell = {"dataset": "d", "model": "m", "setting": "own", "runs": 1}
    spec = {
        "cells": [cell], "settings": {"own": OWN}, "statistics": {},
        "comparisons": {name: {"flips": ["own", "other"]} for name in ("with", "without")},
        "effects": {name: {"minus": pair} for name, pair in effects.items()},
    }  # fmt: skip
    with pytest.raises(ValueError, match=message):
        TablesSpec.model_validate(spec)
