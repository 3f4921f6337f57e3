"""All tables of a run, from its trials and responses."""

from __future__ import annotations

from pathlib import Path

from overread.estimates.scored import by_cell, read_cells
from overread.estimates.spec import TablesSpec
from overread.estimates.tables.accuracy import accuracy_table
from overread.estimates.tables.accuracy_wide import accuracy_wide_table
from overread.estimates.tables.blind_hits import blind_hits_table
from overread.estimates.tables.cost import cost_table
from overread.estimates.tables.dataset import dataset_table, read_source
from overread.estimates.tables.effects import effects_table
from overread.estimates.tables.findings import findings_table
from overread.estimates.tables.flips import flips_table
from overread.estimates.tables.layers import layers_table
from overread.estimates.tables.margins import margins_table
from overread.estimates.tables.modality import modality_table
from overread.estimates.tables.noise import noise_table
from overread.estimates.tables.own_label import own_label_table
from overread.estimates.tables.positions import positions_table
from overread.estimates.tables.significance import significance_table
from overread.estimates.writing import write_csv


def make_tables(results: Path, spec: TablesSpec, out: Path) -> list[Path]:
    """Write every CSV of the tables stage into `out`, also those without a row. The order of the spec changes
    nothing.

    returns   the files written
    raises    BadInput for a file of the run that is missing, damaged or out of step with the others
    """
    cells = by_cell(read_cells(results, spec.cells))
    sources = {name: read_source(results / name) for name in sorted({cell.dataset for cell in spec.cells})}
    accuracy = accuracy_table(cells, spec.statistics)
    flips = flips_table(cells, spec.comparisons, spec.statistics)
    tables = {
        "dataset": dataset_table(sources),
        "accuracy": accuracy,
        "flips": flips,
        "effects": effects_table(cells, spec.comparisons, spec.effects, spec.statistics),
        "findings": findings_table(cells, flips, spec.comparisons, spec.effects, spec.statistics),
        "margins": margins_table(cells, spec.comparisons, spec.effects, spec.statistics),
        "noise": noise_table(cells, spec.statistics),
        "significance": significance_table(cells, spec.comparisons, spec.settings, spec.statistics),
        "own_label": own_label_table(cells, spec.comparisons, spec.statistics),
        "modality": modality_table(cells, spec.settings, spec.statistics),
        "layers": layers_table(flips, spec.comparisons, spec.settings),
        "cost": cost_table(results, spec.cells),
        "positions": positions_table(cells),
        "blind_hits": blind_hits_table(cells, spec.settings, sources),
    }
    for name, table in tables.items():
        write_csv(table, out / f"{name}.csv")
    write_csv(accuracy_wide_table(accuracy, spec.settings), out / "accuracy_wide.csv", decimals=2)
    return [out / f"{name}.csv" for name in (*tables, "accuracy_wide")]
