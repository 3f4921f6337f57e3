"""The viewer's pages of a large run, against reading the run's files with pandas for each page."""

from __future__ import annotations

import statistics
import sys
import time
from pathlib import Path

import pandas as pd
import pytest
from starlette.testclient import TestClient

from benchmarks.conftest import Bench

sys.path.insert(0, str(Path(__file__).parents[1] / "data"))

HERE = "http://127.0.0.1:8008"


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import made

    from benchmarks.conftest import QUICK
    from unit.viewer.conftest import finish

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(made, "PATIENTS", {"mri": (1,) * (20 if QUICK else 120), "xray": (2,) * (20 if QUICK else 300)})
        return finish(tmp_path_factory.mktemp("run") / "large")


def bench_pages(bench: Bench, large: Path) -> None:
    from overread_viewer.app import create_app
    from overread_viewer.options import Options

    files = sorted(large.glob("*/responses/*/*/run-*.parquet"))
    answers = sum(len(pd.read_parquet(file, columns=["trial"])) for file in files)

    def by_hand() -> None:
        """What a page of trials needs: every answer with its trial."""
        for file in files:
            trials = file.parents[3] / "trials" / file.parent.name / file.name
            pd.read_parquet(file).merge(pd.read_parquet(trials), on=["trial", "question"])

    began = time.perf_counter()
    by_hand()
    naive = time.perf_counter() - began
    with TestClient(create_app(Options(large)), base_url=HERE) as client:
        for page in ("/", "/studies", "/compare"):
            assert client.get(page).status_code == 200  # what is read once is read now
            seconds = []
            for _ in range(bench.size(20, 5)):
                began = time.perf_counter()
                client.get(page)
                seconds.append(time.perf_counter() - began)
            bench.measured(
                f"page {page}, {answers:,} answers", statistics.median(seconds), "reading all with pandas", naive,
                expected=10, clock="wall",
            )  # fmt: skip
