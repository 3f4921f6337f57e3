"""All tables of a run, through the command."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pydantic import ValidationError
from typer.testing import CliRunner

from data.made import make_results, tables_spec
from overread.core.columns import Column
from overread.estimates import tables
from overread.estimates.make import make_tables
from overread.estimates.spec import TablesSpec
from overread.estimates.tables import Table
from overread.reporting.commands import app


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    results = tmp_path_factory.mktemp("results") / "small"
    return results, tables_spec(make_results(results))


def made(results: Path, spec: dict[str, Any], out: Path) -> dict[str, bytes]:
    paths = make_tables(results, TablesSpec.model_validate(spec), out)
    return {path.stem: path.read_bytes() for path in paths}


def test_the_command_writes_every_table_with_rows(run: tuple[Path, dict[str, Any]], tmp_path: Path):
    results, spec = run
    asked = tmp_path / "asked.json"
    asked.write_text(json.dumps(spec))
    outcome = CliRunner().invoke(app, ["make", str(results), "--spec", str(asked), "--out", str(tmp_path / "tables")])
    assert outcome.exit_code == 0, outcome.output
    assert sorted(path.stem for path in (tmp_path / "tables").glob("*.csv")) == list(tables.names())
    for path in (tmp_path / "tables").glob("*.csv"):
        assert len(path.read_text(encoding="utf-8").splitlines()) > 1, path.name


def test_a_rerun_is_equal_to_the_byte_on_one_thread_and_on_two(run: tuple[Path, dict[str, Any]], tmp_path: Path):
    results, spec = run
    before = made(results, spec, tmp_path / "here")
    program = (
        "import sys; from pathlib import Path; from overread.estimates.make import make_tables; "
        "from overread.estimates.spec import TablesSpec; "
        "make_tables(Path(sys.argv[1]), TablesSpec.model_validate_json(sys.argv[2]), Path(sys.argv[3]))"
    )
    for threads in ("1", "2"):
        out = tmp_path / threads
        variables = {"OPENBLAS_NUM_THREADS": threads, "OMP_NUM_THREADS": threads, "MKL_NUM_THREADS": threads}
        command = [sys.executable, "-c", program, str(results), json.dumps(spec), str(out)]
        subprocess.run(command, check=True, env={**os.environ, **variables, "PYTHONHASHSEED": threads})
        assert {path.stem: path.read_bytes() for path in out.iterdir()} == before


def test_the_order_of_the_config_changes_nothing(run: tuple[Path, dict[str, Any]], tmp_path: Path):
    results, spec = run
    before = made(results, spec, tmp_path / "straight")
    shuffled = json.loads(json.dumps(spec))
    random.Random(4).shuffle(shuffled["cells"])
    for key in ("settings", "comparisons", "effects"):
        entries = list(shuffled[key].items())
        random.Random(5).shuffle(entries)
        shuffled[key] = dict(entries)
    assert made(results, shuffled, tmp_path / "shuffled") == before


def test_adding_a_model_leaves_the_other_models_rows_as_they_were(run: tuple[Path, dict[str, Any]], tmp_path: Path):
    results, spec = run
    fewer = {**spec, "cells": [cell for cell in spec["cells"] if cell["model"] != "reader"]}
    made(results, spec, tmp_path / "all")
    made(results, fewer, tmp_path / "fewer")
    for name in ("accuracy", "flips", "effects", "findings", "modality", "own_label", "noise", "layers", "positions"):
        table = pd.read_csv(tmp_path / "all" / f"{name}.csv")
        rest = table[table["model"] != "reader"].reset_index(drop=True)
        pd.testing.assert_frame_equal(rest, pd.read_csv(tmp_path / "fewer" / f"{name}.csv"), check_dtype=False)


def test_tables_without_a_row_still_have_their_columns(run: tuple[Path, dict[str, Any]], tmp_path: Path):
    results, spec = run
    cells = [cell for cell in spec["cells"] if cell["setting"] == "single-slice"]
    made(results, {**spec, "cells": cells, "comparisons": {}, "effects": {}}, tmp_path)
    for name in ("flips", "effects", "blind_hits", "findings", "margins", "significance", "own_label", "layers"):
        (line,) = (tmp_path / f"{name}.csv").read_text(encoding="utf-8").splitlines()
        assert line.startswith("dataset,")


def test_rows_agree_between_tables(run: tuple[Path, dict[str, Any]], tmp_path: Path):
    """The wide table is the accuracy in per cent; a gain is the difference of two accuracies of the same trials."""
    results, spec = run
    made(results, spec, tmp_path)
    accuracy = pd.read_csv(tmp_path / "accuracy.csv").set_index(["model", "setting"])["accuracy"]
    wide = pd.read_csv(tmp_path / "accuracy_wide.csv").set_index(["model", "input"])
    assert wide.loc[("reader", "flair-axial"), "own image"] == pytest.approx(
        100 * accuracy["reader", "single-slice"], abs=0.005
    )
    assert wide.loc[("reader", "frontal"), "with report"] == pytest.approx(
        100 * accuracy["reader", "xray-report"], abs=0.005
    )
    effects = pd.read_csv(tmp_path / "effects.csv").set_index(["model", "effect"])["estimate"]
    gain = accuracy["reader", "single-slice"] - accuracy["reader", "black"]
    assert effects["reader", "image-gain"] == pytest.approx(gain, abs=2e-6)
    flips = pd.read_csv(tmp_path / "flips.csv").set_index(["model", "comparison", "group"])["flip_rate"]
    effect = flips["reader", "swap-without-report", "all"] - flips["reader", "swap-with-report", "all"]
    assert effects["reader", "report-effect"] == pytest.approx(effect, abs=2e-6)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cells": []}, "at least 1 item"),
        ({"cells": [{"dataset": "mri", "model": "m", "setting": "blakc", "runs": 1}]}, "Did you mean black"),
        ({"effects": {"e": {"minus": ["swap", "image-swap"]}}}, "no comparison 'swap'"),
        ({"effects": {"image-gain": {"minus": ["image-swap", "image-swap"]}}}, "has this name too"),
        ({"tables": {}}, "no key 'tables'"),
    ],
)
def test_a_spec_that_does_not_fit_together_is_refused(
    run: tuple[Path, dict[str, Any]], change: dict[str, Any], message: str
):
    with pytest.raises(ValidationError, match=message):
        TablesSpec.model_validate({**run[1], **change})


def test_a_cell_that_stands_twice_is_refused(run: tuple[Path, dict[str, Any]]):
    spec = run[1]
    with pytest.raises(ValidationError, match="occurs twice"):
        TablesSpec.model_validate({**spec, "cells": [*spec["cells"], spec["cells"][0]]})


def test_numbers_are_written_with_fixed_decimals_and_nothing_as_blank(tmp_path: Path):
    columns = {"share": [1 / 3, -1e-9, float("nan")], "count": [1, 2, 3], "text": ['a,"b"', None, "c"]}
    table = Table("t", "A table.", [Column(name, name) for name in columns], lambda run: pd.DataFrame(columns))
    table.save(pd.DataFrame(columns), tmp_path)
    written = 'share,count,text\n0.333333,1,"a,""b"""\n0.000000,2,\n,3,c\n'
    assert (tmp_path / "t.csv").read_text(encoding="utf-8") == written
    Table("t", "A table.", table.columns, table.build, decimals=2).save(pd.DataFrame(columns), tmp_path)
    assert (tmp_path / "t.csv").read_text(encoding="utf-8").splitlines()[1].startswith("0.33,1")
