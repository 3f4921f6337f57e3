"""Snakemake's own report: what it holds under which heading, that it opens offline, and what it leaves out."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from overread.estimates import tables
from workflow.runner import Workflow

pytestmark = pytest.mark.workflow
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def archive(finished: Workflow, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report as a folder, unpacked."""
    folder = tmp_path_factory.mktemp("archive")
    finished.run("--report", str(folder / "whole.zip"))
    with zipfile.ZipFile(folder / "whole.zip") as whole:
        whole.extractall(folder)
    return folder / "whole"


def held(archive: Path) -> dict[str, list[Path]]:
    """The files that are in it, by name."""
    files: dict[str, list[Path]] = {}
    for path in sorted((archive / "data" / "raw").rglob("*.*")):
        files.setdefault(path.name, []).append(path)
    return files


def test_it_holds_the_report_every_table_every_figure_with_its_data_and_the_counts(
    archive: Path, finished: Workflow
) -> None:
    files = held(archive)
    for path in [*finished.results.glob("tables/*.csv"), *finished.results.glob("figures/*.[cs]v*")]:
        assert path.read_bytes() in [one.read_bytes() for one in files[path.name]], path
    assert [one.read_bytes() for one in files["report.html"]] == [(finished.results / "report.html").read_bytes()]
    for name in (
        "studies_counts.csv",
        "studies_rejected.csv",
        "studies_remarks.csv",
        "cohort.csv",
        "cohort_left_out.csv",
    ):
        assert len(files[name]) == 2, f"{name} of both data sets"


def test_each_result_stands_under_its_heading_with_its_caption(archive: Path) -> None:
    page = "\n".join(path.read_text(encoding="utf-8") for path in archive.rglob("*") if path.suffix in (".html", ".js"))
    for category in ("Report", "Tables", "Figures", "Data"):
        assert f'"{category}"' in page
    for table in tables.names():
        assert json.dumps(tables.description(table))[1:-1] in page, f"what {table}.csv holds stands beside it"
    assert "The studies of xray that could not be used" in page
    assert "Where the correct answers stand, and where the answers given stand." in page
    assert "A figure of the study." not in page, "every figure has words of its own"
    assert "Overread asks vision-language models questions about scans" in page


def test_every_caption_is_used() -> None:
    rules = (
        "".join(path.read_text() for path in (ROOT / "workflow/rules").glob("*.smk")) + (ROOT / "Snakefile").read_text()
    )
    for path in (ROOT / "workflow/report").glob("*.rst"):
        assert f'"{path.stem}"' in rules or f"/{path.name}" in rules, path.name


def test_a_study_with_restricted_data_lists_no_study_by_name(study: Workflow) -> None:
    """Nor runs anything for being asked: the section changes, so the report is written from what is there."""
    study.config = {
        **study.config,
        "datasets": {name: {**one, "restricted": True} for name, one in study.config["datasets"].items()},
    }
    study.run("--touch")
    folder = study.folder / "report"
    folder.mkdir()
    study.run("--report", str(folder / "whole.zip"))
    with zipfile.ZipFile(folder / "whole.zip") as whole:
        names = {Path(name).name for name in whole.namelist()}
    assert {"studies_counts.csv", "cohort.csv", "accuracy.csv", "report.html"} <= names
    assert not {"studies_rejected.csv", "studies_remarks.csv", "cohort_left_out.csv"} & names


@pytest.mark.browser
def test_it_opens_offline_without_an_error(archive: Path) -> None:
    from playwright.sync_api import sync_playwright

    problems: list[str] = []
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path="/usr/bin/chromium", args=["--no-sandbox", "--disable-gpu"]
        )
        page = chromium.new_context(offline=True).new_page()
        page.on("console", lambda one: problems.append(one.text) if one.type == "error" else None)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("requestfailed", lambda request: problems.append(request.url))
        page.goto((archive / "report.html").as_uri())
        page.get_by_text("Figures", exact=True).first.click()
        page.get_by_text("flips_by_finding", exact=True).first.wait_for()
        chromium.close()
    assert problems == []
