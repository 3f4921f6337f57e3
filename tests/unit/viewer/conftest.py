"""A small finished run in memory's speed, and a client that a browser's page would be.

results    its folder, made by tests/data/made.py with its tables (read only: copy it to change it)
client_of  client_of(results, **options): a client of the app, which sends what a browser's own page would
client     the client of `results`
asked_run  the folder of a run that questions of one's own can be put to (tests/data/asked_run.py); asked_config
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "data"))

HERE = "http://127.0.0.1:8008"


def finish(folder: Path, **made: Any) -> Path:
    """Make the run in `folder`, with tables and a stand-in for the report."""
    import json

    from made import make_results, tables_spec

    from overread.estimates.make import make_tables
    from overread.estimates.spec import TablesSpec

    spec = make_results(folder, draws=200, **made)
    make_tables(folder, TablesSpec.model_validate(tables_spec(spec)), folder / "tables")
    (folder / "study.json").write_text(json.dumps(spec), encoding="utf-8")
    page = "<!doctype html><html lang='en'><head><title>r</title><style>p{color:red}</style></head><p>report</p></html>"
    (folder / "report.html").write_text(page, encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return finish(tmp_path_factory.mktemp("run") / "small")


@pytest.fixture(scope="session")
def restricted_results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same run, whose radiographs are restricted."""
    return finish(tmp_path_factory.mktemp("run") / "closed", restricted=["xray"])


@pytest.fixture(scope="session")
def asked_run(results: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run with trials as `overread trials build` makes them, which questions of one's own are like."""
    from data.asked_run import build_run

    return build_run(tmp_path_factory.mktemp("ask") / "small", results)


@pytest.fixture(scope="session")
def asked_config(asked_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its config file."""
    from data.asked_run import write_config

    return write_config(tmp_path_factory.mktemp("ask") / "config", asked_run)


@pytest.fixture
def client_of() -> Iterator[Callable[..., Any]]:
    from starlette.testclient import TestClient

    from overread_viewer.app import create_app
    from overread_viewer.options import Options

    opened: list[TestClient] = []

    def of(folder: Path, **options: Any) -> TestClient:
        client = TestClient(
            create_app(Options(folder, **options)), base_url=HERE, headers={"sec-fetch-site": "same-origin"}
        )
        opened.append(client.__enter__())
        return client

    yield of
    for client in opened:
        client.__exit__(None, None, None)


@pytest.fixture
def client(client_of: Callable[..., Any], results: Path) -> Any:
    return client_of(results)


@pytest.fixture
def serve(client_of: Callable[..., Any], results: Path, tmp_path: Path) -> Callable[..., Any]:
    """Serves a reader study of the run: see `reading_server.server`."""
    from unit.viewer.reading_server import server

    return server(client_of, results, tmp_path)


@pytest.fixture
def served(serve: Callable[..., Any]) -> Any:
    return serve()
