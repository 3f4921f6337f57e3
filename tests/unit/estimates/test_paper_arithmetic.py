"""A cohort of ModaLens' size through the tables: its rates, its difference, and intervals as wide as it published.

293 patients, 3,199 cases, 14 questions a case. Flips are drawn so that the population's rates are 4.26 % and 20.94 %.
Patients differ in their rates as beta distributions do, with an intra-patient correlation of 0.005 with the report and
of 0.03 without it; a patient who flips more in one flips more in the other. These correlations are ours: the paper
gives none. They are what its intervals amount to, for patients whose numbers of studies are as uneven as here.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from overread.config import Comparison, Effect, Setting, Statistics
from overread.estimates.tables.effects import effects_table
from overread.estimates.tables.findings import findings_table
from overread.estimates.tables.flips import flips_table
from overread.estimates.tables.significance import significance_table

PATIENTS, CASES, QUESTIONS = 293, 3199, 14
RATES = {"report": 0.0426, "plain": 0.2094}
CORRELATIONS = {"report": 0.005, "plain": 0.03}
PUBLISHED = {"report": (0.0395, 0.0460), "plain": (0.1970, 0.2213), "effect": (0.156, 0.177)}

SETTINGS = {
    name: Setting.model_validate({"images": "frontal", "readout": "yes-no", **one})
    for name, one in {
        "plain": {}, "plain-swapped": {"source": "substitute"}, "report": {"report": "full"},
        "report-swapped": {"report": "full", "source": "substitute"},
    }.items()
}  # fmt: skip
COMPARISONS = {name: Comparison(flips=(name, f"{name}-swapped")) for name in RATES}
EFFECTS = {"effect": Effect(minus=("plain", "report"))}


def sizes(draw: np.random.Generator) -> np.ndarray:
    """Cases a patient: at least one each, the rest as uneven as a log-normal; 3,199 in all."""
    weights = draw.lognormal(0, 0.9, PATIENTS)
    return 1 + draw.multinomial(CASES - PATIENTS, weights / weights.sum())


def cohort(seed: int) -> dict[tuple[str, str, str], pd.DataFrame]:
    """The scored rows of the four cells, as `scored.read_cells` gives them."""
    draw = np.random.default_rng([61, seed])
    case = np.repeat(np.arange(CASES), QUESTIONS)
    patient = np.repeat(np.arange(PATIENTS), sizes(draw))[case]
    both = draw.multivariate_normal([0, 0], [[1, 0.75], [0.75, 1]], PATIENTS)
    text = np.array([f"q{place:05d}" for place in range(len(case))])
    yes = draw.random(len(case)) < 0.4
    shared = pd.DataFrame(
        {
            "question": text, "run": 1, "topic": np.tile([f"finding {n:02d}" for n in range(QUESTIONS)], CASES),
            "study": case.astype(str), "patient": np.char.add("p", patient.astype(str)), "n_options": 2, "yes_no": True,
            "status": "answered", "right": yes, "margin": np.nan, "image_label": "yes", "right_for_image": yes,
            "image_known": True, "trial": text, "image_choice": 0, "yes_choice": 0,
        }
    )  # fmt: skip
    cells = {}
    for column, (name, rate) in enumerate(RATES.items()):
        total = 1 / CORRELATIONS[name] - 1
        shares = stats.beta.ppf(stats.norm.cdf(both[:, column]), rate * total, (1 - rate) * total)
        flips = draw.random(len(case)) < shares[patient]
        for step, (setting, said_yes) in enumerate(((name, yes), (f"{name}-swapped", yes ^ flips))):
            shown = np.char.add("p", ((patient + step) % PATIENTS).astype(str))
            picture = {"image_study": ("own", "other")[step], "image_patient": shown}
            rows = shared.assign(choice=np.where(said_yes, 0, 1), said_yes=said_yes, **picture)
            cells["mimic", "medgemma-27b", setting] = rows
    return cells


@pytest.fixture(scope="module")
def cells() -> dict[tuple[str, str, str], pd.DataFrame]:
    return cohort(1)


def test_the_cohort_is_of_the_papers_size(cells: dict[tuple[str, str, str], pd.DataFrame]):
    flips = flips_table(cells, COMPARISONS, Statistics(draws=200)).set_index(["comparison", "group"])
    assert len(flips.loc["plain"]) == 1 + QUESTIONS + 2
    for name in RATES:
        assert flips.loc[(name, "all"), ["pairs", "patients"]].tolist() == [44_786, 293]
        assert flips.loc[(name, "finding 03"), ["pairs", "patients"]].tolist() == [3_199, 293]


def test_the_tables_hold_the_papers_rates_difference_and_widths(cells: dict[tuple[str, str, str], pd.DataFrame]):
    """The rates stray from the population's by sampling: by 0.17, 0.63 and 0.54 points (a standard error each)."""
    flips = flips_table(cells, COMPARISONS, Statistics()).query("group == 'all'").set_index("comparison")
    (effect,) = effects_table(cells, COMPARISONS, EFFECTS, Statistics()).to_dict("records")
    rows = {name: flips.loc[name].rename({"flip_rate": "estimate"}) for name in RATES} | {"effect": effect}
    truths = {**RATES, "effect": RATES["plain"] - RATES["report"]}
    assert truths["effect"] == pytest.approx(0.167, abs=0.0005)
    for name, row in rows.items():
        width = PUBLISHED[name][1] - PUBLISHED[name][0]
        assert row["estimate"] == pytest.approx(truths[name], abs=3 * width / 3.92), name
        assert 1 / 1.3 <= (row["high"] - row["low"]) / width <= 1.3, name
    # The two rates hang together, so that the difference is known better than two separate studies would know it.
    apart = np.hypot(*(rows[name]["high"] - rows[name]["low"] for name in RATES))
    assert effect["high"] - effect["low"] < apart


def test_intervals_that_take_trials_as_independent_would_be_a_third_as_wide(
    cells: dict[tuple[str, str, str], pd.DataFrame],
):
    """A binomial interval of 20.94 % of 44,786 is 0.75 points wide; the paper's is 2.43."""
    flips = flips_table(cells, COMPARISONS, Statistics(draws=2000)).query("group == 'all'").set_index("comparison")
    binomial = 2 * 1.96 * np.sqrt(0.2094 * 0.7906 / 44_786)
    assert binomial == pytest.approx(0.0075, abs=0.0001)
    assert (flips.loc["plain", "high"] - flips.loc["plain", "low"]) > 2.4 * binomial


def test_both_image_swaps_are_found_and_the_difference_holds_by_finding(
    cells: dict[tuple[str, str, str], pd.DataFrame],
):
    few = Statistics(draws=200)
    tests = significance_table(cells, COMPARISONS, SETTINGS)
    assert tests["report_shown"].tolist() == ["none", "full"]
    assert (tests["floor_basis"] == "not measured").all(), "asked once, so there is nothing to test against"
    findings = findings_table(cells, flips_table(cells, COMPARISONS, few), COMPARISONS, EFFECTS, few)
    by_finding = findings[findings["group"].str.startswith("finding")]
    assert len(by_finding) == QUESTIONS
    assert (by_finding["low"] > 0).all()
