"""cost.csv: what each model's answers cost. Times are measured, so this table differs from run to run."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from overread.core.account import Cost, read_cost, summed
from overread.core.columns import (
    COMPLETION_TOKENS,
    DATASET,
    FROM_0,
    MODEL,
    PROMPT_TOKENS,
    RUNS,
    SECONDS,
    SETTING,
    count,
    number,
    text,
)  # fmt: skip
from overread.estimates.spec import Cell
from overread.estimates.tables import Table

NO_RECORD = "a run has no record of it"
TABLE = Table(
    __name__,
    __doc__,
    (
        DATASET, MODEL, SETTING, RUNS,
        *(
            column.but(blank=NO_RECORD)
            for column in (
                count("requests", "answers as they were given; one kept from an earlier job counts in that job"),
                PROMPT_TOKENS,
                count("prefilled_tokens", "those that went through the model; the rest was shared", unit="tokens"),
                COMPLETION_TOKENS,
                count("images_encoded", "pictures that went through the model's image encoder"),
                SECONDS,
                text("device", "what it ran on"),
                count("gpus", "how many GPUs it ran on"),
                number("gpu_hours", "GPUs times hours", unit="h", range=FROM_0),
                number("peak_gb", "the most memory that was taken", unit="GB", range=FROM_0),
                number("dollars", "what a server charged, by the prices in the model's file", unit="US$", range=FROM_0),
                count("jobs", "jobs that answered"),
            )
        ),
    ),
    lambda run: cost_table(run.results, run.spec.cells),
)  # fmt: skip
COUNTS = (
    "requests", "prompt_tokens", "prefilled_tokens", "completion_tokens", "images_encoded", "gpus", "jobs",
)  # fmt: skip
ALL = "all"
"""The setting of a row that sums a model's settings."""


def cost_table(results: Path, cells: Iterable[Cell]) -> pd.DataFrame:
    """A row a cell over all its runs, and one a dataset and model over all its cells (`setting` is `all`), sorted.

    `prompt_tokens` less `prefilled_tokens` is what prompts shared. `requests` counts answers as they were given: an
    answer that was kept from an earlier job is in that job's. What a run has no record of is blank, and so are sums.
    """
    found: dict[tuple[str, str], list[tuple[str, int, Cost | None]]] = {}
    for cell in sorted(cells, key=lambda one: (one.dataset, one.model, one.setting)):
        folder = results / cell.dataset / "responses" / cell.model / cell.setting
        costs = [_recorded(folder / f"run-{run}.cost.json") for run in range(1, cell.runs + 1)]
        found.setdefault((cell.dataset, cell.model), []).append((cell.setting, cell.runs, _together(costs)))
    rows: list[list[object]] = []
    for key, settings in found.items():
        whole = (ALL, sum(runs for _, runs, _ in settings), _together([cost for _, _, cost in settings]))
        rows += [[*key, *_row(*each)] for each in (*settings, whole)]
    # A blank would make floats of a column's whole numbers.
    return TABLE.frame(rows).astype(dict.fromkeys(COUNTS, "Int64"))


def _recorded(path: Path) -> Cost | None:
    return read_cost(path) if path.exists() else None


def _together(costs: list[Cost | None]) -> Cost | None:
    known = [cost for cost in costs if cost is not None]
    return summed(known) if len(known) == len(costs) else None


def _row(setting: str, runs: int, cost: Cost | None) -> list[object]:
    if cost is None:
        return [setting, runs, *[None] * (len(TABLE.columns) - 4)]
    return [
        setting, runs, cost.requests, cost.prompt_tokens, cost.prefilled_tokens, cost.completion_tokens,
        cost.images_encoded, cost.seconds, cost.device, cost.gpus, cost.gpu_hours, cost.peak_bytes / 1e9, cost.dollars,
        cost.jobs,
    ]  # fmt: skip
