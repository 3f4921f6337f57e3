"""`overread readers links`, `status` and `export`, and what `overread serve --study` says."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from overread.cli import app
from overread.core.errors import BadInput
from overread_viewer.catalogue import Catalogue
from overread_viewer.readers.database import Judgement, Reading
from overread_viewer.readers.opening import ReaderStudy, open_study
from overread_viewer.readers_commands import announced


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "readers.yaml"
    content: dict[str, Any] = {
        "name": "fellows", "dataset": "mri", "questions": {"sample": 3}, "view": "flair-axial", "practice": 1,
        "raters": {"ann": "Ann", "bob": "Bob"},
    }  # fmt: skip
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    return path


@pytest.fixture
def study(file: Path, results: Path) -> ReaderStudy:
    made = open_study(file, Catalogue(results))
    for place, finished in ((1, True), (2, False)):
        item = made.database.item("ann", False, place)
        assert item is not None
        made.database.seen("ann", item.asked.question)
        made.database.store_reading("ann", item.asked.question, Reading(0, 5, True))
        if finished:
            made.database.store_judgement("ann", item.asked.question, Judgement(True, True))
    return made


def ran(*arguments: str) -> str:
    found = CliRunner().invoke(app, ["readers", *arguments], catch_exceptions=False)
    assert found.exit_code == 0
    return found.output


def test_status_tells_each_raters_progress_while_the_server_runs(file, study):
    ann, bob = ran("status", str(file)).splitlines()
    assert ann.startswith("ann (Ann): 1 of 3 questions finished, 1 with the own answer only, 0 of 1 for practice; last")
    assert bob == "bob (Bob): 0 of 3 questions finished, 0 of 1 for practice; not begun"


def test_links_are_those_that_the_server_tells(file, study):
    lines = ran("links", str(file), "--address", "http://reading-room:8008/").splitlines()
    assert lines[0] == f"ann (Ann): http://reading-room:8008/read/{study.database.raters()[0].token}"
    assert lines[2] == f"organiser: http://reading-room:8008/read/{study.database.organiser()}"
    told = announced(study, "http://reading-room:8008")
    assert [one.split("http")[1] for one in told[1:]] == [one.split("http")[1] for one in lines]


def test_export_writes_the_files_ratings_or_another(file, study, tmp_path):
    assert ran("export", str(file)) == f"1 ratings: {tmp_path / 'fellows-ratings.csv'}\n"
    ran("export", str(file), "--out", str(tmp_path / "else.csv"))
    assert (tmp_path / "else.csv").read_bytes() == (tmp_path / "fellows-ratings.csv").read_bytes()
    with (tmp_path / "else.csv").open(newline="", encoding="utf-8") as read:
        (row,) = csv.DictReader(read)
    assert (row["rater"], row["subset"], row["confidence"], row["place"]) == ("ann", "fellows", "5", "1")


@pytest.mark.parametrize("command", ["links", "status", "export"])
def test_a_study_that_has_not_begun_is_told_with_what_begins_it(file, command):
    found = CliRunner().invoke(app, ["readers", command, str(file)])
    assert isinstance(found.exception, BadInput)
    assert f"overread serve RUN --study {file}" in str(found.exception)
    assert not file.with_name("fellows.sqlite").exists()  # a look makes nothing


def test_a_rater_named_later_gets_a_link_when_the_server_starts_again(file, study, results):
    content = yaml.safe_load(file.read_text(encoding="utf-8"))
    content["raters"] = {"eve": "Eve", **content["raters"]}
    file.write_text(yaml.safe_dump(content), encoding="utf-8")
    again = open_study(file, Catalogue(results))
    assert [one.rater.rater for one in again.database.progress()] == ["ann", "bob", "eve"]
    assert again.remarks == [] and "eve (Eve): " in ran("links", str(file))


def test_the_tables_read_what_is_exported(file, study, results, tmp_path):
    from overread.estimates.ratings import ratings_frame

    ran("export", str(file))
    questions = Catalogue(results).questions("mri").values()
    frame = ratings_frame("fellows", "mri", [tmp_path / "fellows-ratings.csv"], questions)
    asked = study.database.item("ann", False, 1).asked
    assert frame[["rater", "question", "right", "confidence"]].to_dict("records") == [
        {"rater": "ann", "question": asked.question, "right": asked.answer == 0, "confidence": 5}
    ]
