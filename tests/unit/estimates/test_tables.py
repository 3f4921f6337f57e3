"""The tables register themselves: a module in `estimates/tables/` is a table."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from data.made import make_results, tables_spec
from overread.core.errors import BadInput
from overread.estimates import tables
from overread.estimates.make import make_tables
from overread.estimates.spec import TablesSpec

EVERY = [*tables.names(), *tables.names(readers=True)]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    make_tables(folder, TablesSpec.model_validate(tables_spec(make_results(folder))), folder / "tables")
    return folder / "tables"


def test_the_tables_are_the_modules_of_the_folder():
    assert {"accuracy", "flips", "effects", "dataset", "cost"} <= set(tables.names())
    assert tables.names(readers=True) == ("human", "human_agreement", "human_differences")


@pytest.mark.parametrize("name", EVERY)
def test_a_table_is_named_as_its_module_and_says_what_it_holds(name: str):
    table = tables.table(name)
    assert (table.name, table.path) == (name, f"tables/{name}.csv")
    assert table.holds == tables.description(name)
    assert len(table.holds) > 20 and table.holds.endswith((".", ":"))


@pytest.mark.parametrize("name", EVERY)
def test_every_column_says_what_it_means_and_none_stands_twice(name: str):
    columns = tables.table(name).columns
    assert all(column.meaning for column in columns)
    assert len({column.name for column in columns}) == len(columns)


@pytest.mark.parametrize("name", tables.names())
def test_what_is_written_is_what_is_declared_and_reads_back(made: Path, name: str):
    table = tables.table(name)
    rows = table.read(made / f"{name}.csv")
    assert rows
    assert tuple(rows[0])[: len(table.columns)] == table.names
    more = tuple(rows[0])[len(table.columns) :]
    assert not more or table.more, f"{name}.csv has columns that its module does not declare: {more}"
    for column in table.columns:
        assert column.blank or all(row[column.name] for row in rows), f"{column.name} is blank, and nothing says when"


def test_counts_stay_whole_beside_rows_that_have_none(tmp_path: Path):
    """A model of which nothing is tested stands beside one of which something is."""
    table = tables.table("verdicts")
    blank = dict.fromkeys(table.names)
    models = [{"model": "tested", "questions": 9, "patients": 2, "lost": 1.0}, {"model": "untested"}]
    rows = [{**blank, "dataset": "d", "verdict": "not tested", "decoding": "greedy", **each} for each in models]
    read = table.read(table.save(table.frame([list(row.values()) for row in rows]), tmp_path))
    assert [(row["questions"], row["patients"]) for row in read] == [("9", "2"), ("", "")]
    assert read[0]["lost"] == "1.000000"


def test_a_cell_that_does_not_fit_its_column_is_refused_with_its_place(made: Path, tmp_path: Path):
    frame = pd.read_csv(made / "accuracy.csv", dtype=str, keep_default_na=False)
    for column, value, what in (
        ("accuracy", "1.2", "row 2: accuracy: '1.2' is not 0 to 1"),
        ("patients", "3.5", "row 2: patients: '3.5' is not a whole number"),
        ("low", "none", "row 2: low: 'none' is not a number"),
    ):
        changed = frame.copy()
        changed.loc[1, column] = value
        changed.to_csv(tmp_path / "accuracy.csv", index=False)
        with pytest.raises(BadInput, match=what):
            tables.table("accuracy").read(tmp_path / "accuracy.csv")
    frame.drop(columns="failed").to_csv(tmp_path / "accuracy.csv", index=False)
    with pytest.raises(BadInput, match="no column failed; make the tables again"):
        tables.table("accuracy").read(tmp_path / "accuracy.csv")


def test_an_unknown_table_is_answered_with_the_nearest():
    with pytest.raises(KeyError, match="Did you mean accuracy"):
        tables.table("acuracy")


def test_the_rules_learn_the_names_without_what_the_tables_import():
    program = (
        "import sys; from overread.estimates import tables; tables.names(); tables.description('flips');"
        "print([name for name in ('pandas', 'numpy', 'scipy', 'pyarrow') if name in sys.modules])"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert said.strip() == "[]"
