"""Occlusion maps of readers whose dependence on the lesion is known by construction."""

from __future__ import annotations

import os

import numpy as np
import pandas as pd
import pytest

from overread.config import Setting, Statistics
from overread.estimates.tables.occlusion import maps, occlusion_table
from overread.estimates.tables.occlusion_lesion import occlusion_lesion_table
from overread.settings.image import Image

STUDIES = int(os.environ.get("STUDIES", "60"))
GRID = 3
CELLS = GRID**2
SETTINGS = {"own": Setting(images="v")} | {
    f"cell-{cell}": Setting(images="v", edit={"kind": "occlude", "grid": GRID, "cell": cell}) for cell in range(CELLS)
}
MAIN, BESIDE = 0.7, 0.3
"""Shares of the lesion in its cell and in the next."""


def error(share: float) -> float:
    return float(3 * np.sqrt(share * (1 - share) / STUDIES))


def view(cell: int) -> str:
    setting = SETTINGS[f"cell-{cell}"]
    return setting.view(setting[Image].images)


def lesions(patients: int, rng: np.random.Generator) -> np.ndarray:
    """(patients, cells): where each patient's lesion lies."""
    shares = np.zeros((patients, CELLS))
    main = rng.integers(CELLS, size=patients)
    shares[np.arange(patients), main] = MAIN
    shares[np.arange(patients), (main + 1) % CELLS] = BESIDE
    return shares


def frame(patients: int, each: int, choices: np.ndarray) -> pd.DataFrame:
    patient = np.repeat(np.arange(patients), each)
    return pd.DataFrame(
        {
            "question": [f"q{number:04d}" for number in range(len(patient))], "run": 1, "topic": "size",
            "study": [f"s{one}" for one in patient], "patient": [f"p{one}" for one in patient], "status": "answered",
            "choice": choices, "right": choices == 0,
        }
    )  # fmt: skip


def made(
    patients: int, each: int, looks: float, touched: float, corner: float, seed: int
) -> tuple[dict[tuple[str, str, str], pd.DataFrame], dict[tuple[str, str], float]]:
    """A reader whose answer changes with probability `looks` times the share of the lesion that is covered, `touched`
    wherever a cell is, and `corner` when the first cell is. A patient's answers hang together.
    """
    rng = np.random.default_rng(seed)
    shares = lesions(patients, rng)
    patient = np.repeat(np.arange(patients), each)
    cells = {("d", "m", "own"): frame(patients, each, np.zeros(len(patient), dtype=int))}
    for cell in range(CELLS):
        chance = np.clip(looks * shares[:, cell] + touched + (corner if cell == 0 else 0), 0, 1)[patient]
        common = rng.random(patients)[patient]
        draw = np.where(rng.random(len(patient)) < 0.3, common, rng.random(len(patient)))
        cells["d", "m", f"cell-{cell}"] = frame(patients, each, (draw < chance).astype(int))
    hidden = {(f"s{one}", view(cell)): shares[one, cell] for one in range(patients) for cell in range(CELLS)}
    return cells, hidden


@pytest.mark.parametrize(
    ("looks", "touched", "corner"),
    [(0.8, 0.05, 0.0), (0.3, 0.0, 0.0), (0.0, 0.1, 0.0), (0.0, 0.0, 0.6), (0.0, 0.0, 0.0)],
)
def test_what_is_read_of_the_lesion_lies_within_the_interval(looks: float, touched: float, corner: float) -> None:
    """Cells count by their share of the lesion: a reader of it changes by looks x (0.7² + 0.3²) more than elsewhere."""
    truth = looks * (MAIN**2 + BESIDE**2)
    held, shown = 0, 0
    for seed in range(STUDIES):
        cells, hidden = made(30, 4, looks, touched, corner, seed)
        (row,) = occlusion_lesion_table(cells, SETTINGS, Statistics(), {"d": hidden}).to_dict("records")
        held += row["low"] <= truth <= row["high"]
        shown += row["p"] <= 0.025
        assert row["maps"] == 120 and row["patients"] == 30 and row["area"] == pytest.approx(1 / 9, abs=1e-6)
    assert held / STUDIES >= 0.93 - error(0.05)
    if looks == 0:
        assert shown / STUDIES <= 0.025 + error(0.025)
    if looks >= 0.8:
        assert shown == STUDIES


def test_the_map_says_where_and_how_much_of_the_lesion_is_there() -> None:
    cells, hidden = made(40, 4, 0.0, 0.0, 0.6, 3)
    table = occlusion_table(cells, SETTINGS, Statistics(), {"d": hidden})
    assert list(table["cell"]) == list(range(CELLS)) and (table["grid"] == GRID).all()
    assert 0.4 < table["changed"][0] < 0.8 and (table["changed"][1:] == 0).all()
    assert table["cell_cost"][0] == table["changed"][0]
    assert table["lesion_share"].sum() == pytest.approx(1, abs=1e-4)
    assert ((table["low"] <= table["changed"]) & (table["changed"] <= table["high"])).all()


def test_the_weight_of_a_reader_of_the_lesion_lies_in_it_and_of_a_nervous_one_anywhere() -> None:
    for looks, touched, low, high in ((0.9, 0.0, 0.5, 0.62), (0.0, 0.3, 0.08, 0.15)):
        cells, hidden = made(40, 4, looks, touched, 0.0, 1)
        (row,) = occlusion_lesion_table(cells, SETTINGS, Statistics(), {"d": hidden}).to_dict("records")
        assert low < row["weight_in_lesion"] < high


def test_half_a_grid_has_a_map_and_no_sum_and_no_lesion_is_said_so() -> None:
    cells, hidden = made(20, 2, 0.5, 0.0, 0.0, 0)
    some = {key: rows for key, rows in cells.items() if key[2] != "cell-8"}
    assert len(occlusion_table(some, SETTINGS, Statistics(), {"d": hidden})) == 8
    assert occlusion_lesion_table(some, SETTINGS, Statistics(), {"d": hidden}).empty
    assert occlusion_table(cells, SETTINGS, Statistics(), {})["lesion_share"].isna().all()
    assert occlusion_lesion_table(cells, SETTINGS, Statistics(), {}).empty


def test_an_unanswered_cell_leaves_its_question_out_of_the_sum_alone() -> None:
    cells, hidden = made(20, 2, 0.5, 0.0, 0.0, 0)
    cells["d", "m", "cell-4"].loc[:5, "status"] = "refused"
    table = occlusion_table(cells, SETTINGS, Statistics(), {"d": hidden}).set_index("cell")
    assert table["pairs_compared"][4] == 34 and table["pairs_compared"][3] == 40
    (row,) = occlusion_lesion_table(cells, SETTINGS, Statistics(), {"d": hidden}).to_dict("records")
    assert row["maps"] == 34


def test_settings_of_one_grid_belong_together() -> None:
    more = SETTINGS | {
        "fine": Setting(images="v", edit={"kind": "occlude", "grid": 4, "cell": 2}),
        "box": Setting(images="v", edit={"kind": "occlude", "box": [0, 0, 0.5, 0.5]}),
        "two": Setting(images="v", edit=[{"kind": "occlude", "grid": 3, "cell": 0}, {"kind": "blur", "mm": 1}]),
    }
    found = list(maps(more))
    assert [(one.own, one.grid, len(one.cells)) for one in found] == [("own", 3, 9), ("own", 4, 1)]
