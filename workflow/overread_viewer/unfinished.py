"""A run whose models have not answered yet: its generated questions can be reviewed, and nothing else is served.

Review comes before the models are asked: `snakemake sheets` takes a study as far as that, and `snakemake sheets images`
renders the pictures to look at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from overread.core.errors import BadInput
from overread.core.records import Picture, Question
from overread_viewer.catalogue import Catalogue


def open_run(results: Path) -> Catalogue:
    """A finished run, or one that can be reviewed at least.

    raises  BadInput if it is neither
    """
    try:
        return Catalogue(results)
    except BadInput as why:
        try:
            return Unfinished(results, str(why))
        except BadInput:
            raise why from None


class Unfinished(Catalogue):
    """The datasets of a run whose generated questions have been through the rules.

    why     what the run lacks, as `Catalogue` says it
    raises  BadInput if there is no such dataset
    """

    def __init__(self, results: Path, why: str) -> None:
        super().__init__(results)
        self.why = why

    def _require(self) -> None:
        wanted = ("studies.parquet", "questions/kept.jsonl", "questions/trail.csv")
        there = [name for name in self.datasets if all((self.results / name / file).is_file() for file in wanted)]
        if not there:
            raise BadInput(f"{self.results}: nothing to review; run `snakemake sheets` first")
        self._cells = {name: self._cells[name] for name in there}
        self.datasets = tuple(there)

    def questions(self, dataset: str) -> Mapping[str, Question]:
        """None are asked before they are reviewed: those of an earlier state of the study are not looked at."""
        self._known(dataset)
        return {}

    def _pictures_by_study(self, dataset: str) -> Mapping[str, Sequence[Picture]]:
        there = (self.folder(dataset) / "images.parquet").is_file()
        return super()._pictures_by_study(dataset) if there else {}

    def _picture_paths(self, dataset: str) -> frozenset[str]:
        return frozenset(one.path for many in self._pictures_by_study(dataset).values() for one in many)

    def load(self) -> None:
        """What the review needs is read by its first page."""
