"""What the tables of a study are made from, each part read when a table first asks for it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

import pandas as pd

from overread.config.human import HumanSubset
from overread.core.records import Picture, read_columns, read_questions
from overread.estimates import tables
from overread.estimates.found import Found, all_found
from overread.estimates.ratings import Ratings, ratings_frame
from overread.estimates.scored import CellKey, by_cell, read_cells
from overread.estimates.source import Source, read_source
from overread.estimates.spec import TablesSpec


class Run:
    """A run in the folder `results`.

    subsets  reader studies by name: with them the run is limited to the data sets that people have rated
    """

    def __init__(self, results: Path, spec: TablesSpec, subsets: Mapping[str, HumanSubset] | None = None) -> None:
        self.results, self.spec, self.subsets = results, spec, subsets
        self._made: dict[str, pd.DataFrame] = {}

    @cached_property
    def cells(self) -> dict[CellKey, pd.DataFrame]:
        """The scored rows of each cell."""
        wanted = self.spec.cells
        if self.subsets is not None:
            rated = {dataset for dataset, _ in self.ratings.values()}
            wanted = tuple(cell for cell in wanted if cell.dataset in rated)
        return by_cell(read_cells(self.results, wanted)) if wanted else {}

    @cached_property
    def found(self) -> list[Found]:
        """What is found of each data set and model."""
        return all_found(self.cells, self.spec)

    @cached_property
    def sources(self) -> dict[str, Source]:
        """Studies and questions of each data set."""
        return {name: read_source(self.results / name) for name in sorted({cell.dataset for cell in self.spec.cells})}

    @cached_property
    def hidden(self) -> dict[str, dict[tuple[str, str], float]]:
        """By data set, study and rendered view: the share of the lesion that a covered box hides."""
        found: dict[str, dict[tuple[str, str], float]] = {}
        for dataset in sorted({cell.dataset for cell in self.spec.cells}):
            pictures = read_columns(self.results / dataset / "images.parquet", Picture, ["study", "view", "hides"])
            rows = zip(*(pictures[name].to_pylist() for name in ("study", "view", "hides")), strict=True)
            found[dataset] = {(study, view): hides for study, view, hides in rows if hides is not None}
        return found

    @cached_property
    def ratings(self) -> Ratings:
        """What people rated, by reader study; one without a file is left out."""
        found: dict[str, tuple[str, pd.DataFrame]] = {}
        for name, subset in sorted((self.subsets or {}).items()):
            if subset.ratings:
                questions = read_questions(self.results / subset.dataset / "questions.jsonl")
                paths = [Path(path) for path in sorted(subset.ratings)]
                found[name] = (subset.dataset, ratings_frame(name, subset.dataset, paths, questions))
        return found

    def table(self, name: str) -> pd.DataFrame:
        """A table's frame, built once: a table may be made from another."""
        if name not in self._made:
            self._made[name] = tables.table(name).build(self)
        return self._made[name]
