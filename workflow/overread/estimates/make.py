"""All tables of a run, from its trials and responses."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from overread.config.human import HumanSubset
from overread.estimates import tables
from overread.estimates.run import Run
from overread.estimates.spec import TablesSpec


def make_tables(
    results: Path, spec: TablesSpec, out: Path, subsets: Mapping[str, HumanSubset] | None = None
) -> list[Path]:
    """Write every table of models into `out`, also those without a row; with `subsets`, the tables of readers instead.
    The order of the spec changes nothing.

    returns   the files written
    raises    BadInput for a file of the run that is missing, damaged or out of step with the others
    """
    run = Run(results, spec, subsets)
    frames = {name: run.table(name) for name in tables.names(readers=subsets is not None)}
    return [tables.table(name).save(frame, out) for name, frame in frames.items()]
