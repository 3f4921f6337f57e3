"""cost.csv as a whole: a row a cell and one a model, summed over runs and settings, blank where no account was kept."""

from __future__ import annotations

import csv
from pathlib import Path

from overread.core.account import Cost, write_cost
from overread.estimates.spec import Cell
from overread.estimates.tables.cost import TABLE, cost_table


def spent(results: Path, setting: str, run: int, cost: Cost, *, model: str = "reader", dataset: str = "mri") -> None:
    folder = results / dataset / "responses" / model / setting
    folder.mkdir(parents=True, exist_ok=True)
    write_cost(cost, folder / f"run-{run}.cost.json")


def written(results: Path, cells: list[Cell]) -> list[dict[str, str]]:
    """The table as it is read back from its file."""
    TABLE.save(cost_table(results, cells), results)
    with (results / "cost.csv").open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        rows = list(reader)
    assert tuple(reader.fieldnames or ()) == TABLE.names
    return rows


def cell(setting: str, runs: int = 1, *, model: str = "reader", dataset: str = "mri") -> Cell:
    return Cell(dataset=dataset, model=model, setting=setting, runs=runs)


def test_the_whole_table_by_hand(tmp_path: Path) -> None:
    """Two runs of one setting and one of another: sums of what adds up, the largest peak, the most GPUs."""
    one = Cost(
        device="H100", gpus=1, prompt_tokens=1000, prefilled_tokens=400, completion_tokens=30, images_encoded=10,
        peak_bytes=2_500_000_000, dollars=0.0, requests=12, seconds=90.0, gpu_hours=0.025, jobs=1,
    )  # fmt: skip
    two = Cost(
        device="H100", gpus=2, prompt_tokens=1000, prefilled_tokens=500, completion_tokens=20, images_encoded=10,
        peak_bytes=1_000_000_000, dollars=0.25, requests=12, seconds=18.0, gpu_hours=0.01, jobs=3,
    )  # fmt: skip
    black = Cost(
        device="H100", gpus=1, prompt_tokens=600, prefilled_tokens=100, completion_tokens=10, images_encoded=1,
        peak_bytes=500_000_000, dollars=0.5, requests=12, seconds=3.6, gpu_hours=0.001, jobs=1,
    )  # fmt: skip
    spent(tmp_path, "own", 1, one)
    spent(tmp_path, "own", 2, two)
    spent(tmp_path, "black", 1, black)
    named = ("dataset", "model", "setting", "runs", "requests", "prompt_tokens", "prefilled_tokens")
    rows = written(tmp_path, [cell("own", 2), cell("black")])
    assert [[row[name] for name in named] for row in rows] == [
        ["mri", "reader", "black", "1", "12", "600", "100"],
        ["mri", "reader", "own", "2", "24", "2000", "900"],
        ["mri", "reader", "all", "3", "36", "2600", "1000"],
    ]
    named = ("completion_tokens", "images_encoded", "device", "gpus", "jobs")
    assert [[row[name] for name in named] for row in rows] == [
        ["10", "1", "H100", "1", "1"],
        ["50", "20", "H100", "2", "4"],
        ["60", "21", "H100", "2", "5"],
    ]
    named = ("seconds", "gpu_hours", "peak_gb", "dollars")
    assert [[round(float(row[name]), 6) for name in named] for row in rows] == [
        [3.6, 0.001, 0.5, 0.5],
        [108.0, 0.035, 2.5, 0.25],
        [111.6, 0.036, 2.5, 0.75],
    ]


def test_a_run_without_an_account_blanks_its_cell_and_the_sum_and_nothing_else(tmp_path: Path) -> None:
    """A sum over what is known would be taken for the whole."""
    spent(tmp_path, "own", 1, Cost(requests=5, seconds=1.0, jobs=1))
    spent(tmp_path, "black", 1, Cost(requests=7, seconds=2.0, jobs=1))
    rows = {row["setting"]: row for row in written(tmp_path, [cell("own", 2), cell("black")])}
    assert (rows["black"]["requests"], float(rows["black"]["seconds"])) == ("7", 2.0)
    for setting, runs in (("own", "2"), ("all", "3")):
        assert rows[setting]["runs"] == runs
        assert {rows[setting][name] for name in TABLE.names[4:]} == {""}


def test_models_and_datasets_are_summed_apart_and_the_order_of_the_cells_changes_nothing(tmp_path: Path) -> None:
    cells = [
        cell(setting, model=model, dataset=dataset)
        for dataset in ("mri", "xray")
        for model in ("a", "b")
        for setting in ("black", "own")
    ]
    for number, one in enumerate(cells, start=1):
        spent(tmp_path, one.setting, 1, Cost(requests=number), model=one.model, dataset=one.dataset)
    rows = written(tmp_path, cells)
    assert rows == written(tmp_path, cells[::-1])
    sums = {(row["dataset"], row["model"]): row["requests"] for row in rows if row["setting"] == "all"}
    assert sums == {("mri", "a"): "3", ("mri", "b"): "7", ("xray", "a"): "11", ("xray", "b"): "15"}
    assert len(rows) == 12
