"""human_agreement.csv and the alpha of human.csv: against the library, and worked out by hand."""

from __future__ import annotations

from pathlib import Path

import krippendorff
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data.rated import frame, question, rating, three_raters, write
from overread.config import Statistics
from overread.estimates.alpha import alpha_interval
from overread.estimates.ratings import ratings_frame
from overread.estimates.tables.readers.human import human_table
from overread.estimates.tables.readers.human_agreement import TABLE, agreement_table

FEW = Statistics(draws=500)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.lists(st.sampled_from(["1", "2", "3", "none", ""]), min_size=3, max_size=3), min_size=3, max_size=12)
)
def test_alpha_is_the_library_s(ratings: list[list[str]]):
    """With missing ratings, and with questions that one rater alone has rated."""
    rows = [
        {"rater": str(rater), "question": f"q{place}", "patient": f"p{place // 2}", "label": value}
        for place, given in enumerate(ratings)
        for rater, value in enumerate(given)
        if value
    ]
    pairable = {value for given in ratings if sum(map(bool, given)) > 1 for value in given if value}
    if len(pairable) < 2:
        return
    data = [[given[rater] or None for given in ratings] for rater in range(3)]
    values = sorted(pairable)
    coded = np.array([[np.nan if one not in values else values.index(one) for one in each] for each in data], float)
    single = np.sum(~np.isnan(coded), axis=0) < 2
    coded[:, single] = np.nan
    wanted = krippendorff.alpha(coded, level_of_measurement="nominal", value_domain=list(range(len(values))))
    found = alpha_interval(pd.DataFrame(rows), "label", FEW)
    assert found.estimate == pytest.approx(wanted)
    if found.low is not None and found.high is not None:
        assert found.low <= found.high <= 1


def test_the_interval_of_alpha_is_that_of_whole_patients():
    """Two raters equal for patient 1 (alpha of a draw of it alone: 1) and at odds for patient 2, in one draw of two."""
    rows = [
        {"rater": rater, "question": f"q{place}", "patient": patient, "label": label}
        for place, (patient, labels) in enumerate([("p1", "11"), ("p1", "22"), ("p2", "12"), ("p2", "21")])
        for rater, label in zip("AB", labels, strict=True)
    ]
    found = alpha_interval(pd.DataFrame(rows), "label", FEW)
    # n = 8, four of each value; two questions of four unequal, each two ordered pairs: 1 - 7 * 4 / (64 - 32).
    assert found.estimate == pytest.approx(1 - 7 * 4 / 32)
    # Only patient 1: 1. Only patient 2: 1 - 7 * 8 / 32.
    assert (found.low, found.high) == (pytest.approx(1 - 7 * 8 / 32), 1.0)


def test_agreement_is_told_for_answers_and_for_each_view_of_the_questions(tmp_path: Path):
    rows = three_raters()[:8]
    for number in (0, 4, 5):
        rows[number]["relevant"] = "no"
    own = {"fellows": ("data", frame(tmp_path, rows))}
    table = agreement_table(own, FEW)
    assert tuple(table.columns) == TABLE.names
    assert list(dict.fromkeys(table["of"])) == ["answer", "agreement", "relevance", "confidence", "answerable"]
    equal = table[table["statistic"] == "share equal"].set_index("of")
    # A and B: front/front, front/back, back/top, can't tell/back; relevant no/no, yes/no, yes/yes, yes/yes.
    assert equal.loc["answer", "value"] == 1 / 4
    assert equal.loc["relevance", "value"] == 3 / 4
    kappa = table[(table["statistic"] == "Cohen's kappa") & (table["of"] == "relevance")].iloc[0]
    assert kappa["value"] == pytest.approx((0.75 - (1 / 8 + 3 / 8)) / (1 - (1 / 8 + 3 / 8)))
    alpha = table[(table["statistic"] == "Krippendorff's alpha (nominal)") & (table["of"] == "relevance")].iloc[0]
    assert alpha["low"] <= alpha["value"] <= alpha["high"]
    human = human_table(own, {}, FEW)
    answers = table[(table["of"] == "answer") & table["statistic"].str.startswith("Kripp")].iloc[0]
    assert human.iloc[-1]["alpha"] == pytest.approx(answers["value"])


def test_agreement_on_right_options_that_stand_first_is_no_chance(tmp_path: Path):
    """Two readers who both always know the right option, which as written stands first, agree perfectly; by its place
    as written there would be one value alone, and no alpha."""
    asked = [question(number, f"p{number}") for number in range(12)]
    rows = [rating(rater, one, "front") for rater in "AB" for one in asked]
    own = ratings_frame("fellows", "data", [write(tmp_path / "r.csv", rows)], asked)
    assert own["choice"].nunique() == 1
    assert human_table({"fellows": ("data", own)}, {}, FEW).iloc[-1]["alpha"] == 1.0
