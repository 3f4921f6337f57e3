"""What a machine lacks is said at the end of a test run; in CI it fails the run."""

from __future__ import annotations

from pathlib import Path

import pytest

import lacking

TESTS = """
import pytest

@pytest.mark.browser
@pytest.mark.parametrize("number", range(3))
def test_page(number):
    assert number < 2, "a fault that is found where there is a browser"

@pytest.mark.slurm
def test_cluster():
    raise AssertionError

@pytest.fixture
def costly():
    raise AssertionError("nothing is set up for a test that is skipped")

@pytest.mark.vllm
def test_engine(costly): ...

@pytest.mark.release
def test_export():
    raise AssertionError

def test_plain(): ...

@pytest.mark.xfail(strict=True)
def test_expected():
    raise AssertionError
"""

CONFTEST = """
import lacking

pytest_plugins = ["lacking"]
lacking.NEEDS = {name: (lambda name=name: NEEDS.get(name)) for name in ("browser", "slurm", "vllm", "release")}
NEEDS = """


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A test run in a process of its own, without what the first of the names below tell."""
    monkeypatch.setenv("PYTHONPATH", str(Path(lacking.__file__).parent))
    monkeypatch.delenv("CI", raising=False)
    pytester.makepyfile(test_all=TESTS)
    pytester.makeini("[pytest]\nmarkers =\n    browser\n    slurm\n    vllm\n    release\naddopts = -ra\n")
    return pytester


NAMES = {"browser": "Chromium", "slurm": "SLURM", "vllm": "vLLM", "release": "exports"}
ALL = {marker: f"{name}: `get it`" for marker, name in NAMES.items()}


@pytest.mark.parametrize("workers", ["0", "2"])
def test_what_is_lacking_is_skipped_and_named_in_the_last_lines_with_what_to_ask_for(
    suite: pytest.Pytester, workers: str
):
    suite.makeconftest(CONFTEST + repr(ALL))
    result = suite.runpytest_subprocess("-n", workers)
    result.assert_outcomes(passed=1, skipped=6, xfailed=1)
    assert result.ret == 0
    assert result.outlines[-9:-1] == [
        "NOT RUN: 3 tests need Chromium: `get it`",
        "    test_all.py: 3",
        "NOT RUN: 1 tests need SLURM: `get it`",
        "    test_all.py: 1",
        "NOT RUN: 1 tests need exports: `get it`",
        "    test_all.py: 1",
        "NOT RUN: 1 tests need vLLM: `get it`",
        "    test_all.py: 1",
    ]
    assert "1 passed, 6 skipped, 1 xfailed" in result.outlines[-1]


def test_in_ci_a_skip_is_a_failure(suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CI", "true")
    suite.makeconftest(CONFTEST + repr(ALL))
    result = suite.runpytest_subprocess()
    result.assert_outcomes(passed=1, errors=6, xfailed=1)
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*skipped, which is a failure in CI: lacking: SLURM: `get it`"])


def test_what_is_there_is_tested(suite: pytest.Pytester):
    suite.makeconftest(CONFTEST + "{}")
    result = suite.runpytest_subprocess()
    result.assert_outcomes(passed=3, failed=3, errors=1, xfailed=1)
    assert not [line for line in result.outlines if line.startswith("NOT RUN")]


def test_each_need_names_what_to_ask_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(lacking, "CHROMIUM", tmp_path / "chromium")
    monkeypatch.setattr(lacking, "ROOT", tmp_path)
    monkeypatch.setattr(lacking, "program", lambda name: None)
    monkeypatch.delenv("OVERREAD_VLLM_PYTHON", raising=False)
    monkeypatch.delenv("OVERREAD_EXPORTS_PYTHON", raising=False)
    assert "apt-get install chromium" in str(lacking.browser())
    assert "apt-get install slurm-wlm munge" in str(lacking.slurm())
    assert "make vllm" in str(lacking.vllm())
    assert "make exports" in str(lacking.release())
    # An environment that could not be made to its end is none.
    (tmp_path / ".venv-vllm/bin").mkdir(parents=True)
    (tmp_path / ".venv-vllm/bin/python").touch()
    assert "make vllm" in str(lacking.vllm())
    (tmp_path / ".venv-vllm/.done").touch()
    assert lacking.vllm() is None


def test_every_marker_that_needs_something_is_known():
    """A marker that names what a test needs is in the plugin, so that it is never an error where it is lacking."""
    text = (lacking.ROOT / "pyproject.toml").read_text()
    markers = text.split("markers = [")[1].split("]")[0]
    named = {line.strip().strip('"').split(":")[0] for line in markers.splitlines() if ":" in line}
    assert named - set(lacking.NEEDS) == {"workflow"}
