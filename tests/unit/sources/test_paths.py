"""What a table's cell or a link may name: nothing outside the data set's folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from overread.images.kinds import file_problem
from overread.sources.shared.paths import DataRoot


@pytest.fixture
def root(tmp_path: Path) -> DataRoot:
    (tmp_path / "data" / "deep").mkdir(parents=True)
    (tmp_path / "data" / "deep" / "a.png").write_bytes(b"x")
    (tmp_path / "secret.png").write_bytes(b"x")
    return DataRoot(tmp_path / "data")


def test_a_path_inside_is_found_from_the_folder_on(root: DataRoot) -> None:
    for text in ("deep/a.png", "./deep/a.png", "deep/../deep/a.png", " deep/a.png ", str(root.folder / "deep/a.png")):
        assert root.locate(text) == (root.folder / "deep/a.png", None)
    path, problem = root.locate("not/there.png")
    assert path == root.folder / "not/there.png" and problem is None


@pytest.mark.parametrize(
    "text", ["../secret.png", "deep/../../secret.png", "/etc/passwd", "deep/../../data2/a.png", ".././secret.png", ".."]
)
def test_a_path_that_leaves_is_refused_also_where_links_are_followed(root: DataRoot, text: str) -> None:
    for data in (root, DataRoot(root.folder, follow_links=True)):
        path, problem = data.locate(text)
        assert problem is not None and "lies outside the data set's folder" in problem
        assert not path.is_relative_to(root.folder)


@pytest.mark.parametrize("text", ["", "   ", "a\x00b.png", "a\nb.png", "\x1b[2J"])
def test_what_is_no_path_is_refused(root: DataRoot, text: str) -> None:
    path, problem = root.locate(text)
    assert path is None and problem is not None and "is no path" in problem
    assert "\n" not in problem and "\x1b" not in problem


def test_links_inside_are_followed_and_links_outside_are_not(root: DataRoot, tmp_path: Path) -> None:
    (root.folder / "inside.png").symlink_to(root.folder / "deep/a.png")
    (root.folder / "outside.png").symlink_to(tmp_path / "secret.png")
    (root.folder / "way").symlink_to(tmp_path)
    (root.folder / "broken.png").symlink_to(tmp_path / "nothing.png")
    assert root.problem(root.folder / "inside.png") is None
    for name in ("outside.png", "way/secret.png", "broken.png", "way/data/deep/../../secret.png"):
        problem = root.problem(root.folder / name)
        assert problem is not None and "leads outside" in problem and "follow_links: true" in problem, name
        assert DataRoot(root.folder, follow_links=True).problem(root.folder / name) is None
    assert root.problem(root.folder / "way/data/deep/a.png") is None


def test_a_folder_that_is_a_link_itself_holds_what_it_leads_to(root: DataRoot, tmp_path: Path) -> None:
    """Naming the folder in the config is consent enough."""
    (tmp_path / "link").symlink_to(root.folder)
    assert DataRoot(tmp_path / "link").locate("deep/a.png") == (tmp_path / "link/deep/a.png", None)
    assert DataRoot(tmp_path / "link").locate("../secret.png")[1] is not None


def test_links_in_a_circle_are_no_file(root: DataRoot) -> None:
    (root.folder / "x").symlink_to(root.folder / "y")
    (root.folder / "y").symlink_to(root.folder / "x")
    for name in ("x", "x/a.png"):
        path, problem = root.locate(name)
        assert path is not None
        assert problem is not None or "Too many levels of symbolic links" in (file_problem(path) or "")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(st.sampled_from(["..", ".", "deep", "a.png", "way", "", "/"]), min_size=1, max_size=8))
def test_whatever_a_cell_says_what_is_accepted_lies_inside(root: DataRoot, parts: list[str]) -> None:
    path, problem = root.locate("/".join(parts))
    if path is not None and problem is None:
        assert Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root.folder))
