"""Half doses of readers whose accuracy falls with the dose in a known way."""

from __future__ import annotations

import os

import numpy as np
import pandas as pd
import pytest

from overread.config import Comparison, Setting, Statistics
from overread.estimates.tables.accuracy import accuracy_table
from overread.estimates.tables.curves import curves_table
from overread.estimates.tables.half_doses import half_doses_table

STUDIES = int(os.environ.get("STUDIES", "60"))
DOSES = (1.0, 2.0, 4.0, 8.0)
SETTINGS = {
    "own": Setting(images="v"), "black": Setting(images="v", source="black"), "text": Setting(),
} | {f"blurred-{dose:g}": Setting(images="v", edit={"kind": "blur", "mm": dose}) for dose in DOSES}  # fmt: skip
FLIPS = pd.DataFrame({"group": [], "comparison": []})


def cell(share: float, rng: np.random.Generator, patients: int = 60, each: int = 4) -> pd.DataFrame:
    patient = np.repeat(np.arange(patients), each)
    right = np.where(
        rng.random(len(patient)) < 0.3, (rng.random(patients) < share)[patient], rng.random(len(patient)) < share
    )
    return pd.DataFrame(
        {
            "question": [f"q{number}" for number in range(len(patient))], "run": 1,
            "patient": [f"p{one}" for one in patient], "status": "answered", "right": right, "n_options": 4,
            "gold": 0, "yes_no": False, "gold_yes": False,
        }
    )  # fmt: skip


def table(shares: dict[str, float], seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    cells = {("d", "m", name): cell(share, rng) for name, share in shares.items()}
    accuracy = accuracy_table(cells, Statistics())
    comparisons: dict[str, Comparison] = {}
    settings = {name: SETTINGS[name] for name in shares}
    return half_doses_table(curves_table(accuracy, FLIPS, comparisons, settings, {}), accuracy, settings)


@pytest.mark.parametrize("life", [1.5, 3.0])
def test_the_interval_holds_the_dose_that_takes_half(life: float) -> None:
    """Accuracy falls by halves: 30 + 60 x 2^(-dose / life) per cent."""
    shares = {"own": 0.9, "black": 0.3, "text": 0.25}
    shares |= {f"blurred-{dose:g}": 0.3 + 0.6 * 2 ** (-dose / life) for dose in DOSES}
    held = 0
    for seed in range(STUDIES):
        (row,) = table(shares, seed).to_dict("records")
        assert (row["setting"], row["dose"]) == ("own", "blur mm") and row["blind_setting"] in ("black", "text")
        # Between two doses the curve is a line, which crosses half a little later than the curve itself.
        high = row["half_high"] if pd.notna(row["half_high"]) else np.inf
        held += row["half_low"] <= life * 1.1 and life * 0.9 <= high
    assert held / STUDIES >= 0.93 - 3 * np.sqrt(0.05 * 0.95 / STUDIES)


def test_a_straight_fall_is_cut_where_it_is_half() -> None:
    curves = pd.DataFrame(
        {
            "dataset": "d", "model": "m", "curve": "blurred", "measure": "accuracy", "dose": "blur mm",
            "amount": DOSES, "rate": [0.8, 0.7, 0.5, 0.1], "low": [0.7, 0.6, 0.4, 0.0], "high": [0.9, 0.8, 0.6, 0.2],
            "about": [f"blurred-{dose:g}" for dose in DOSES],
        }
    )  # fmt: skip
    accuracy = pd.DataFrame(
        {
            "dataset": "d", "model": "m", "setting": ["own", "black", *(f"blurred-{dose:g}" for dose in DOSES)],
            "accuracy": [0.9, 0.3, 0.8, 0.7, 0.5, 0.1], "low": 0.8, "high": 1.0,
        }
    )  # fmt: skip
    (row,) = half_doses_table(curves, accuracy, SETTINGS).to_dict("records")
    assert row["half"] == pytest.approx(0.6) and row["half_dose"] == pytest.approx(3.0)
    assert row["half_low"] == pytest.approx(2.0) and row["half_high"] == pytest.approx(4.0)


def test_where_nothing_is_lost_or_gained_there_is_no_half_dose() -> None:
    doses = {f"blurred-{dose:g}": 0.9 for dose in DOSES}
    (row,) = table({"own": 0.9, "black": 0.3, **doses}, 0).to_dict("records")
    assert pd.isna(row["half_dose"]) and pd.isna(row["half_high"])
    (row,) = table({"own": 0.3, "black": 0.6, **doses}, 0).to_dict("records")
    assert pd.isna(row["half_dose"]) and pd.isna(row["half_low"])
    assert table({"own": 0.9, **doses}, 0).empty and table({"black": 0.9, **doses}, 0).empty
