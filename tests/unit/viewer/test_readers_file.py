"""readers.yaml: what it refuses, in one line each, and what may change once a study has begun."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from overread.core.errors import BadConfig
from overread_viewer.readers.readers_file import differences, load

PLAIN: dict[str, Any] = {
    "name": "fellows",
    "dataset": "mri",
    "questions": {"sample": 10},
    "raters": {"fellow": "Dr Fellow"},
    "view": "flair-axial",
}


def written(folder: Path, **changes: Any) -> Path:
    path = folder / "readers.yaml"
    content = {key: value for key, value in (PLAIN | changes).items() if value is not None}
    path.write_text(yaml.safe_dump(content, sort_keys=False, allow_unicode=True), encoding="utf-8")
    return path


def test_database_and_ratings_lie_beside_the_file_under_the_studys_name(tmp_path):
    read = load(written(tmp_path))
    assert read.database == str(tmp_path / "fellows.sqlite")
    assert read.ratings == str(tmp_path / "fellows-ratings.csv")


def test_paths_start_from_the_files_folder(tmp_path):
    read = load(written(tmp_path, database="kept/r.sqlite", questions={"ids": "ids.txt"}))
    assert read.database == str(tmp_path / "kept" / "r.sqlite")
    assert read.questions.ids == str(tmp_path / "ids.txt")


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"wiev": "x"}, "no key 'wiev'"),
        ({"dataset": None}, "dataset: is missing"),
        ({"name": "Fellow Study"}, "name: must be small letters"),
        ({"raters": {}}, "raters: is empty"),
        ({"raters": {"Dr X": "Dr X"}}, "raters.Dr X: must be small letters"),
        ({"raters": {"a": "Same", "b": "Same"}}, "raters: two raters have the same name"),
        ({"raters": {"a": "two\nlines"}}, "raters.a: must be printable text on one line"),
        ({"questions": {"sample": 0}}, "questions.sample: must be at least 1 (it is 0)"),
        ({"questions": {}}, "questions: needs one of sample, ids and sheet; it has none"),
        (
            {"questions": {"sample": 5, "ids": "x"}},
            "questions: needs one of sample, ids and sheet; it has sample and ids",
        ),
        ({"questions": {"ids": "x", "by": "topic"}}, "questions: by goes with sample"),
        ({"questions": {"sample": 5, "by": "size"}}, "questions.by: no value 'size'"),
        ({"view": None}, "names neither a view nor series"),
        ({"series": "some"}, "series: no value 'some'; there are: all, none"),
        ({"series": []}, "series: the list is empty"),
        ({"options": "release"}, "`options: release` and `release: <folder>` go together"),
        ({"options": "sheet"}, "`options: sheet` needs questions.sheet"),
        ({"order": "random"}, "order: no value 'random'"),
        ({"practice": -1}, "practice: must be at least 0 (it is -1)"),
        ({"break_after": 0}, "break_after: must be at least 1 (it is 0)"),
        ({"seed": "one"}, "seed: must be a whole number"),
    ],
)
def test_what_is_wrong_is_one_line_with_file_key_and_value(tmp_path, changes, line):
    path = written(tmp_path, **changes)
    with pytest.raises(BadConfig) as caught:
        load(path)
    lines = str(caught.value).splitlines()
    assert len(lines) == 1 and lines[0].startswith(f"{path}: ") and line in lines[0]


def test_every_problem_is_told_at_once(tmp_path):
    with pytest.raises(BadConfig) as caught:
        load(written(tmp_path, seed=-1, practice=99, order="x"))
    assert len(str(caught.value).splitlines()) == 3


def test_raters_breaks_and_paths_may_change_and_nothing_else(tmp_path):
    began = load(written(tmp_path)).fixed()
    later = load(written(tmp_path, raters={"new": "N"}, break_after=5, database="d.db", ratings="r.csv")).fixed()
    assert differences(began, later) == []
    changed = load(written(tmp_path, seed=1, view="frontal", questions={"sample": 11})).fixed()
    assert differences(began, changed) == ["questions", "seed", "view"]


def test_a_moved_list_of_questions_is_no_change(tmp_path):
    one = load(written(tmp_path, questions={"ids": "here/ids.txt"})).fixed()
    other = load(written(tmp_path, questions={"ids": "there/ids.txt"})).fixed()
    renamed = load(written(tmp_path, questions={"ids": "there/other.txt"})).fixed()
    assert differences(one, other) == [] and differences(one, renamed) == ["questions"]
