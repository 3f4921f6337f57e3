"""statuses.csv."""

from __future__ import annotations

import pandas as pd
import pytest

from overread.config import Statistics
from overread.estimates.tables.statuses import statuses_table


def test_each_status_has_its_count_and_share_of_all_trials():
    """Of eight trials of four patients six are answered, one is refused and one fails: a failed trial counts here."""
    statuses = ["answered"] * 6 + ["refused", "failed"]
    cell = pd.DataFrame({"status": statuses, "patient": ["a", "a", "b", "b", "c", "c", "d", "d"]})
    table = statuses_table({("mri", "model", "own"): cell}, Statistics(draws=500)).set_index("status")
    assert table["trials"].to_dict() == {"answered": 6, "unparsed": 0, "refused": 1, "truncated": 0, "failed": 1}
    assert table["share"].tolist() == pytest.approx([6 / 8, 0, 1 / 8, 0, 1 / 8])
    assert set(table["patients"]) == {4}
    assert (table["low"] <= table["share"]).all() and (table["share"] <= table["high"]).all()
    assert table.loc["refused", "high"] > 1 / 8, "one patient in four holds it"
